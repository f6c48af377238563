//! Random scenarios.

use longwire_block::{Dice, ParamKind, Spec, Values};
use longwire_link::without;
use std::collections::HashMap;
use std::fmt::Write;

/// Adds a link's blocks to the text, and returns them, so that they can be changed. The number is that of the
/// link in the scenario.
pub type Make<'a> = &'a dyn Fn(&mut Dice, usize, &mut String) -> Vec<&'static Spec>;

/// A link of a scenario, and its blocks that can be changed.
pub struct Made {
    name: String,
    blocks: Vec<&'static Spec>,
}

/// Chooses one of several named things. An additional one changes few draws: each name has its own number,
/// and the highest wins.
fn choose<'a, T>(dice: &mut Dice, things: &'a [T], name: impl Fn(&T) -> String) -> &'a T {
    let seed = dice.draw();
    things.iter().max_by_key(|thing| Dice::named(seed, &name(thing)).draw()).expect("there is one at least")
}

/// A random scenario: bridges in a ring or a line, ports on them, links made by `make` between them, some of
/// which steer packets to another one beside them, and some of which share a medium; changes of links, and
/// traffic. `way` distinguishes scenarios of one seed.
pub fn scenario(seed: u64, way: u64, make: Make<'_>) -> String {
    let mut dice = Dice::named(seed, &format!("swarm/{way}"));
    let mut text = format!("seed = {seed}\nrouting = \"shortest-delay\"\n");
    let bridges = 1 + dice.below(4);
    let ports = 2 + dice.below(4);
    for bridge in 0..bridges {
        writeln!(text, "[[bridge]]\nname = \"b{bridge}\"").unwrap();
    }
    for port in 0..ports {
        let bridge = dice.below(bridges);
        writeln!(
            text,
            "[[port]]\nname = \"p{port}\"\ndriver = \"source\"\nbridge = \"b{bridge}\"\n\
             addresses = [\"10.0.0.{}/32\"]",
            port + 1
        )
        .unwrap();
    }
    let mut ends = vec![("p0".to_string(), "p1".to_string())];
    if bridges > 1 {
        let edges = bridges - 1 + dice.below(2);
        let edge = |edge: u64| (format!("b{}", edge % bridges), format!("b{}", (edge + 1) % bridges));
        ends = (0..edges).map(edge).collect();
    }
    links(&mut dice, &mut text, &ends, make);
    let sources = 1 + dice.below(5);
    source_changes(&mut dice, (sources, ports), &mut text);
    for source in 0..sources {
        let from = dice.below(ports);
        let to = (from + 1 + dice.below(ports - 1)) % ports;
        let interval = 1 + dice.below(2_000_000);
        let (packets, size) = (1 + dice.below(400), 62 + dice.below(1440));
        let (start, poisson) = (dice.below(3) * 1000, dice.below(2) == 0);
        writeln!(
            text,
            "[[source]]\nname = \"s{source}\"\nfrom = \"p{from}\"\nto = \"p{to}\"\n\
             interval = \"{interval} ns\"\n\
             packets = {packets}\nsize = \"{size} B\"\nstart = \"{start} ns\"\npoisson = {poisson}"
        )
        .unwrap();
    }
    text
}

/// Links between these ends, in a third of the cases some of them stations of a medium, and changes of them.
pub fn links(dice: &mut Dice, text: &mut String, ends: &[(String, String)], make: Make<'_>) {
    let shared = dice.below(3) == 0;
    let mut links = Vec::new();
    for (from, to) in ends {
        link(dice, text, (from, to), &mut links, (make, shared));
    }
    if text.contains("medium = ") {
        let kind = ["half-duplex", "csma-cd", "dcf"][dice.below(3) as usize];
        writeln!(text, "[[medium]]\nname = \"air\"\nkind = \"{kind}\"").unwrap();
        medium_changes(dice, kind, text);
    }
    changes(dice, &links, text);
}

/// A link. Of three without a filter, one steers some packets to a link beside it. Of two without a rate, one
/// is a station of a medium that is `shared`.
fn link(
    dice: &mut Dice,
    text: &mut String,
    (from, to): (&str, &str),
    links: &mut Vec<Made>,
    (make, shared): (Make<'_>, bool),
) {
    let mut add = |text: &mut String, dice: &mut Dice, name: String| {
        writeln!(text, "[[link]]\nname = \"{name}\"\nbetween = [\"{from}\", \"{to}\"]").unwrap();
        let begin = text.len();
        let blocks = make(dice, links.len(), text);
        if shared && !text[begin..].lines().any(|line| line.starts_with("rate = ")) && dice.below(2) == 0 {
            writeln!(text, "medium = \"air\"").unwrap();
        }
        let filtered = blocks.iter().any(|spec| spec.key == "filter");
        links.push(Made { name, blocks });
        filtered
    };
    let name = format!("{from}{to}");
    if !add(text, dice, name.clone()) && dice.below(3) == 0 {
        let conditions = ["less 700", "greater 1000", "udp", "src host 10.0.0.1", "not dst host 10.0.0.2"];
        let condition = conditions[dice.below(5) as usize];
        writeln!(text, "filter = \"steer {name}-aside if {condition}\"").unwrap();
        add(text, dice, format!("{name}-aside"));
    }
}

/// Rate, delay, loss and queue.
pub fn plain(dice: &mut Dice, _: usize, text: &mut String) -> Vec<&'static Spec> {
    if dice.below(3) > 0 {
        let decades = dice.below(6) as u32;
        writeln!(text, "rate = \"{} bit/s\"", 300_000 + dice.below(10u64.pow(decades + 4))).unwrap();
    }
    match dice.below(3) {
        0 => {}
        1 => writeln!(text, "delay = \"{} us\"", dice.below(200)).unwrap(),
        _ => writeln!(text, "delay = \"{} ms\"", dice.below(30)).unwrap(),
    }
    if dice.below(2) == 0 {
        writeln!(text, "loss = \"{} %\"", dice.below(30)).unwrap();
    }
    if dice.below(2) == 0 {
        writeln!(text, "queue = \"{} packets\"", 1 + dice.below(30)).unwrap();
    }
    Vec::new()
}

/// Random changes of the links: steps, ramps, outages, repetitions.
fn changes(dice: &mut Dice, links: &[Made], text: &mut String) {
    // A parameter has one ramp, or other changes: changes that overlap a ramp are refused.
    let mut known = HashMap::new();
    for _ in 0..dice.below(7) {
        let link = &links[dice.below(links.len() as u64) as usize];
        let (key, value, can_ramp) = match dice.below(4) {
            0 => plain_change(dice),
            _ if link.blocks.is_empty() => plain_change(dice),
            1 => another_kind(dice, link),
            _ => {
                let spec = *choose(dice, &link.blocks, |spec| spec.key.into());
                change(dice, spec)
            }
        };
        let ramp = can_ramp && dice.below(2) == 0;
        // Nor does another kind get parameters meant for the previous one.
        let alone = ramp
            || value.contains("kind = ") && link.blocks.iter().all(|spec| !value.contains(spec.kind))
            || value == "\"none\"";
        if known.insert((&link.name, key), alone).is_some_and(|before| before || alone) {
            known.insert((&link.name, key), true);
            continue;
        }
        let way = ["", ".forward", ".backward"][dice.below(3) as usize];
        // Including changes at the exact time of an arrival.
        let time = dice.below(20) * dice.below(3_000);
        let name = &link.name;
        writeln!(text, "[[at]]\ntime = \"{time} us\"\nlink = \"{name}{way}\"\n{key} = {value}").unwrap();
        match dice.below(4) {
            0 | 3 if ramp => writeln!(text, "ramp = \"{} us\"", 1 + dice.below(9000)).unwrap(),
            1 if !ramp => writeln!(text, "every = \"{} us\"", 1000 + dice.below(9000)).unwrap(),
            2 if !ramp => writeln!(text, "every = \"{} us\"\ntimes = 3", 1 + dice.below(9000)).unwrap(),
            _ => {}
        }
    }
}

/// The time of a change, and whether it repeats or is a ramp.
fn timing(dice: &mut Dice, can_ramp: bool, text: &mut String) {
    writeln!(text, "[[at]]\ntime = \"{} us\"", dice.below(20) * dice.below(3_000)).unwrap();
    match dice.below(4) {
        0 if can_ramp => writeln!(text, "ramp = \"{} us\"", 1 + dice.below(9000)).unwrap(),
        1 => writeln!(text, "every = \"{} us\"\ntimes = 3", 1 + dice.below(9000)).unwrap(),
        _ => {}
    }
}

/// Random changes of the medium "air".
fn medium_changes(dice: &mut Dice, kind: &str, text: &mut String) {
    for _ in 0..dice.below(4) {
        timing(dice, true, text);
        let decades = dice.below(5) as u32;
        let rate = 300_000 + dice.below(10u64.pow(decades + 4));
        let other = match (kind, dice.below(3)) {
            ("half-duplex", 0) => format!("overhead = {}", dice.below(60)),
            ("csma-cd", _) => format!("propagation = \"{} ns\"", dice.below(400)),
            ("dcf", 0) => format!("slot = \"{} us\"", 1 + dice.below(90)),
            ("dcf", 1) => format!("window = {}\nattempts = {}", 1 + dice.below(64), dice.below(5)),
            _ => String::new(),
        };
        writeln!(text, "medium = \"air\"\nrate = \"{rate} bit/s\"\n{other}").unwrap();
    }
}

/// Random changes of the sources.
fn source_changes(dice: &mut Dice, (sources, ports): (u64, u64), text: &mut String) {
    for _ in 0..dice.below(6) {
        let key = dice.below(8);
        timing(dice, key == 0, text);
        writeln!(text, "source = \"s{}\"", dice.below(sources)).unwrap();
        match key {
            0 | 1 => writeln!(text, "interval = \"{} ns\"", 1000 + dice.below(2_000_000)).unwrap(),
            2 => writeln!(text, "size = \"{} B\"", 62 + dice.below(1440)).unwrap(),
            3 => writeln!(text, "packets = {}", 1 + dice.below(600)).unwrap(),
            4 => writeln!(text, "state = \"{}\"", ["up", "down"][dice.below(2) as usize]).unwrap(),
            5 => writeln!(text, "to = \"p{}\"", dice.below(ports)).unwrap(),
            6 => {
                writeln!(text, "for = \"{} us\"\nrate = \"{} kbit/s\"", dice.below(90_000), dice.below(9000))
                    .unwrap();
            }
            _ => writeln!(text, "model = \"{}\"", ["cbr", "poisson"][dice.below(2) as usize]).unwrap(),
        }
    }
}

/// A key, its new value, and whether a ramp is possible.
fn plain_change(dice: &mut Dice) -> (&'static str, String, bool) {
    let most = 10u64.pow(dice.below(6) as u32 + 4);
    let (key, value) = match dice.below(5) {
        0 => ("rate", format!("{} bit/s", 300_000 + dice.below(most))),
        1 => ("rate", if dice.below(2) == 0 { "0".into() } else { "unlimited".into() }),
        2 => ("delay", format!("{} us", dice.below(20_000))),
        3 => ("loss", format!("{} %", dice.below(40))),
        _ => ("queue", format!("{} packets", 1 + dice.below(30))),
    };
    (key, format!("\"{value}\""), key == "delay" || key == "loss")
}

/// A change of a whole block: one that replaces a block of the link, adds a key that it may not have, or
/// removes a block.
fn another_kind(dice: &mut Dice, link: &Made) -> (&'static str, String, bool) {
    let mut kinds = kinds();
    if dice.below(2) == 0 {
        let key = choose(dice, &link.blocks, |spec| spec.key.into()).key;
        kinds.retain(|spec| spec.key == key);
    }
    let spec = *choose(dice, &kinds, |spec| format!("{} {}", spec.key, spec.kind));
    if dice.below(3) == 0 && without(spec.key).is_some() {
        return (spec.key, "\"none\"".into(), false);
    }
    (spec.key, block(dice, spec).unwrap_or_else(|| format!("{{ kind = {:?} }}", spec.kind)), false)
}

/// A change of one parameter of a block of the link.
fn change(dice: &mut Dice, spec: &'static Spec) -> (&'static str, String, bool) {
    let param = choose(dice, spec.params, |param| param.name.into());
    let value = value(&mut Dice::seeded(dice.draw()), spec, param.kind);
    let words = matches!(param.kind, ParamKind::Limit | ParamKind::Choice(_) | ParamKind::Parsed(_));
    (spec.key, format!("{{ kind = \"{}\", {} = {value:?} }}", spec.kind, param.name), !words)
}

/// The rows of all kinds of blocks that a single link can have.
pub fn kinds() -> Vec<&'static Spec> {
    longwire_link::registry().into_iter().filter(|spec| spec.kind != "shared").collect()
}

/// A link of up to four blocks of the registry, of any key and kind, with random values; the first link has a
/// block of the kind `first`.
pub fn of_any_kind(
    dice: &mut Dice,
    number: usize,
    text: &mut String,
    first: &'static Spec,
) -> Vec<&'static Spec> {
    let kinds = kinds();
    let mut keys: Vec<&str> = kinds.iter().map(|spec| spec.key).collect();
    keys.dedup();
    let mut blocks = Vec::new();
    for turn in 0..1 + dice.below(4) {
        let spec = if number == 0 && turn == 0 {
            first
        } else {
            let key = *choose(dice, &keys, |key| (*key).into());
            let own: Vec<_> = kinds.iter().copied().filter(|spec| spec.key == key).collect();
            *choose(dice, &own, |spec| spec.kind.into())
        };
        keys.retain(|key| *key != spec.key);
        let Some(block) = block(dice, spec) else { continue };
        writeln!(text, "{} = {block}", spec.key).unwrap();
        blocks.push(spec);
    }
    blocks
}

/// A block as a scenario writes it, with random values. Excluded combinations are drawn again; none if no
/// combination works.
fn block(dice: &mut Dice, spec: &'static Spec) -> Option<String> {
    let mut dice = Dice::seeded(dice.draw());
    let params = (0..20).map(|_| params(&mut dice, spec)).find(|params| {
        let pairs: Vec<_> = params.iter().map(|(name, text)| (*name, text.as_str())).collect();
        Values::read(spec, &pairs).is_ok()
    })?;
    let params: String = params.iter().map(|(name, text)| format!(", {name} = {text:?}")).collect();
    Some(format!("{{ kind = \"{}\"{params} }}", spec.kind))
}

/// Random values for required parameters, and for half of the others.
fn params(dice: &mut Dice, spec: &Spec) -> Vec<(&'static str, String)> {
    let seed = dice.draw();
    let mut params = Vec::new();
    for param in spec.params {
        let mut dice = Dice::named(seed, param.name);
        if param.default.is_required() || dice.below(2) == 0 {
            params.push((param.name, value(&mut dice, spec, param.kind)));
        }
    }
    params
}

fn value(dice: &mut Dice, spec: &Spec, kind: ParamKind) -> String {
    match kind {
        // Background traffic never ends; a low rate lets other packets pass.
        ParamKind::Rate if spec.key == "background" => format!("{} bit/s", 10_000 + dice.below(400_000)),
        ParamKind::Rate => {
            let most = 10u64.pow(4 + dice.below(6) as u32);
            format!("{} bit/s", 300_000 + dice.below(most))
        }
        ParamKind::Time { min, max } => {
            format!("{} ns", (1 + dice.below(max.0.min(20_000_000))).max(min.0))
        }
        ParamKind::Probability => format!("{} %", dice.below(30)),
        ParamKind::Integer { min, max } => (min + dice.below((max - min).min(20) + 1)).to_string(),
        ParamKind::Limit => format!("{} packets", 1 + dice.below(40)),
        ParamKind::Size { min, max } => format!("{} B", min.0 + dice.below((max.0 - min.0).min(3000) + 1)),
        ParamKind::Decimal { min, max } => {
            let millionths = min + dice.below((max - min).min(3_000_000) + 1);
            format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
        }
        ParamKind::Choice(words) => (*choose(dice, words, |word| (*word).into())).into(),
        ParamKind::Parsed(grammar) => (*choose(dice, grammar.examples, |text| (*text).into())).into(),
    }
}

/// Four bridges in a row, with a link to each end that crosses from worker to worker, and many changes of
/// them.
pub fn chain(seed: u64, way: u64) -> String {
    let mut dice = Dice::named(seed, &format!("chain/{way}"));
    let mut text = format!("seed = {seed}\n");
    for place in 0..4 {
        writeln!(
            text,
            "[[bridge]]\nname = \"b{place}\"\n[[port]]\nname = \"p{place}\"\ndriver = \"source\"\n\
             bridge = \"b{place}\"\n\
             addresses = \"10.0.0.{}/32\"",
            place + 1
        )
        .unwrap();
    }
    let links: Vec<Made> =
        (0..3).map(|place| Made { name: format!("l{place}"), blocks: Vec::new() }).collect();
    for (place, link) in links.iter().enumerate() {
        let (rate, delay) = (2 + dice.below(30), 500 + dice.below(9_000));
        let (loss, queue) = (dice.below(9), 3 + dice.below(20));
        // Some act when packets are sent rather than before.
        let on_wire = ["", ", where = \"wire\""][dice.below(2) as usize];
        let name = &link.name;
        writeln!(
            text,
            "[[link]]\nname = \"{name}\"\nbetween = [\"b{place}\", \"b{}\"]\nrate = \"{rate} Mbit/s\"\n\
             delay = \"{delay} us\"\nloss = {{ probability = \"{loss} %\"{on_wire} }}\n\
             queue = \"{queue} packets\"",
            place + 1
        )
        .unwrap();
        if dice.below(2) == 0 {
            let rate = 1 + dice.below(rate);
            writeln!(text, "background = {{ kind = \"poisson\", rate = \"{rate} Mbit/s\" }}").unwrap();
        }
    }
    for _ in 0..3 {
        changes(&mut dice, &links, &mut text);
    }
    for (from, to) in [(0, 3), (3, 0), (1, 3), (2, 0), (0, 2)] {
        let (interval, size) = (20_000 + dice.below(500_000), 62 + dice.below(1440));
        writeln!(
            text,
            "[[source]]\nfrom = \"p{from}\"\nto = \"p{to}\"\ninterval = \"{interval} ns\"\n\
             size = \"{size} B\"\n\
             poisson = true\npackets = {}",
            60_000_000 / interval
        )
        .unwrap();
    }
    text
}
