//! The cases: a scenario drawn from the case's name, and its input frames. A new block, scheduler or
//! forwarder has its own cases and leaves nearly all others unchanged.

use super::trace::{hash, read};
use super::{draw, routed, routers};
use longwire_assemble::TO_THE_END;
use longwire_block::{Dice, Spec};
use longwire_link::MEDIA;
use longwire_program::ShippedForwarder;
use longwire_units::Nanos;
use std::fmt::Write;

/// A scenario with its duration.
pub struct Case {
    /// Its subject, and its number: `block/queue/red/2`.
    pub name: String,
    /// The scenario without its section `[engine]`.
    pub text: String,
    /// The content of that section besides workers and memory.
    pub engine: &'static str,
    pub until: Nanos,
}

/// The beginning of the line for a link's block, with any parameters.
fn begin(spec: &Spec) -> String {
    format!("{} = {{ kind = \"{}\"", spec.key, spec.kind)
}

impl Case {
    /// Whether a link has such a block, or gets one by a change.
    pub fn has_block(&self, spec: &Spec) -> bool {
        self.text.lines().any(|line| line.starts_with(&begin(spec)))
    }

    /// The number of workers with which it must do the same as with one. Each case tries one other number,
    /// because threads that wait for each other are slow on few processors.
    pub fn workers(&self) -> u32 {
        2 + (hash(self.name.as_bytes()) % 3) as u32
    }

    /// A copy without the first block of this row.
    pub fn without_block(&self, spec: &Spec) -> Self {
        let begin = begin(spec);
        let place = self.text.lines().position(|line| line.starts_with(&begin));
        let lines = self.text.lines().enumerate().filter(|(number, _)| Some(*number) != place);
        let text = lines.map(|(_, line)| format!("{line}\n")).collect();
        Self { name: self.name.clone(), text, ..*self }
    }
}

/// Every case.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |group: &str, count: u64, draw: &dyn Fn(&str, u64, u64) -> String| {
        cases.extend(
            (0..count).map(|number| drawn(&format!("{group}/{number}"), |name, way| draw(name, number, way))),
        );
    };
    add("plain", 70, &|_, number, way| draw::scenario(number, way, &draw::plain));
    add("chain", 30, &|_, number, way| draw::chain(number, way));
    add("routers", 40, &|_, number, way| routers::ring(number, way));
    add("routers-frames", 40, &|_, number, way| with_frames(&routers::ring(1000 + number, way)));
    for spec in draw::kinds() {
        let make =
            |dice: &mut Dice, number: usize, text: &mut String| draw::of_any_kind(dice, number, text, spec);
        let group = format!("{}/{}", spec.key, spec.kind);
        add(&format!("block/{group}"), if spec.key == "queue" { 8 } else { 5 }, &|name, _, way| {
            links(name, way, &make)
        });
        add(&format!("sources/{group}"), 1, &|name, _, way| {
            draw::scenario(hash(name.as_bytes()) >> 40, way, &make)
        });
    }
    for spec in MEDIA {
        let of_it = |text: &String| text.contains(&format!("name = \"air\"\nkind = \"{}\"", spec.kind));
        add(&format!("medium/{}", spec.kind), 8, &|name, _, way| {
            let mut ways = (0..1000).map(|inner| links(name, way * 1000 + inner, &draw::plain));
            ways.find(of_it).expect("some of them have media")
        });
    }
    for spec in longwire_sched::SPECS {
        add(&format!("scheduler/{}", spec.name), 5, &|name, _, way| routed::scheduler(name, way, spec.name));
    }
    for shipped in ShippedForwarder::ALL {
        add(&format!("program/{}", shipped.name), 4, &|name, _, way| {
            routed::program(name, way, shipped.name)
        });
    }
    for service in ["echo", "witness"] {
        add(&format!("service/{service}"), 4, &|name, _, way| routed::service(name, way, service));
    }
    cases
}

/// The first scenario of a name that is accepted: some changes are refused, of objects that are gone or still
/// changing.
fn drawn(name: &str, draw: impl Fn(&str, u64) -> String) -> Case {
    let mut dice = Dice::named(1, name);
    let engine = ["", "", "", "tick = \"100 us\"", "train-spread = \"1 ms\"", "train-spread = \"0 s\""];
    let engine = engine[dice.below(6) as usize];
    let until = if dice.below(3) == 0 { Nanos(1 + dice.below(60_000_000)) } else { TO_THE_END };
    let case = |way| Case { name: name.into(), text: draw(name, way), engine, until };
    let mut refusals = Vec::new();
    let mut ways = (0..100).map(case);
    let found = ways.find(|case| read(case, 1).map_err(|error| refusals.push(error)).is_ok());
    found.unwrap_or_else(|| panic!("{name}: all are refused: {}", refusals[0]))
}

/// The scenario without its sources; frames come by its ports instead.
fn with_frames(text: &str) -> String {
    let end = text.find("[[source]]").unwrap_or(text.len());
    text[..end].replace("driver = \"source\"", "driver = \"memory\"")
}

/// Links made by `make`, in one of several places: between two ports, around a bridge, in a row or in a ring
/// of bridges.
fn links(name: &str, way: u64, make: draw::Make<'_>) -> String {
    let mut dice = Dice::named(way, name);
    let mut text = format!("seed = {}\nrouting = \"shortest-delay\"\n", dice.below(1_000_000));
    let shape = dice.below(4);
    let (bridges, ports) = [(1, 2), (1, 3), (2, 3), (3, 4)][shape as usize];
    for bridge in 0..bridges {
        writeln!(text, "[[bridge]]\nname = \"b{bridge}\"\nageing = \"1 s\"\ntable = 16").unwrap();
    }
    for port in 0..ports {
        let bridge = port % bridges;
        writeln!(
            text,
            "[[port]]\nname = \"p{port}\"\ndriver = \"memory\"\nbridge = \"b{bridge}\"\n\
             addresses = [\"10.0.0.{}/32\", \"fd00::{}/128\"]",
            port + 1,
            port + 1
        )
        .unwrap();
    }
    let end = |kind: &str, number: u64| format!("{kind}{number}");
    let ends: Vec<(String, String)> = match shape {
        0 => vec![(end("p", 0), end("p", 1))],
        1 => (0..3).map(|port| (end("p", port), end("b", 0))).collect(),
        2 => vec![(end("b", 0), end("b", 1)), (end("p", 2), end("b", 0))],
        _ => (0..3).map(|bridge| (end("b", bridge), end("b", (bridge + 1) % 3))).collect(),
    };
    draw::links(&mut dice, &mut text, &ends, make);
    text
}
