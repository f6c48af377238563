//! Random scenarios with routers.

use longwire_block::Dice;
use std::fmt::Write;

/// Routers in a ring, joined by links, each with its own network: a port directly on it, a link to a port, or
/// a bridge with one. Routes lead in both directions, often in loops; some lead to unknown neighbours; and
/// they change.
pub fn ring(seed: u64, way: u64) -> String {
    let mut dice = Dice::named(seed, &format!("routers/{way}"));
    let mut text = format!("seed = {seed}\n");
    let routers = 2 + dice.below(3);
    for router in 0..routers {
        let kind = dice.below(3);
        let bridge = if kind == 2 { format!("bridge = \"lan{router}\"\n") } else { String::new() };
        writeln!(
            text,
            "[[port]]\nname = \"p{router}\"\ndriver = \"source\"\n\
             {bridge}addresses = [\"10.0.{router}.9\", \"fd00:0:0:{router}::9\"]"
        )
        .unwrap();
        let own = match kind {
            0 => format!("port = \"p{router}\""),
            1 => {
                let ends = (format!("p{router}"), format!("r{router}-lan"));
                link(&mut dice, &mut text, ("lan", router), (&ends.0, &ends.1));
                format!("port = \"r{router}-lan\"")
            }
            _ => {
                writeln!(text, "[[bridge]]\nname = \"lan{router}\"").unwrap();
                let ends = (format!("r{router}-lan"), format!("lan{router}"));
                if dice.below(2) == 0 {
                    link(&mut dice, &mut text, ("lan", router), (&ends.0, &ends.1));
                    format!("port = \"r{router}-lan\"")
                } else {
                    format!("port = \"r{router}-lan\", bridge = \"lan{router}\"")
                }
            }
        };
        let mtu = 1280 + dice.below(300);
        let next = (router + 1) % routers;
        let before = (router + routers - 1) % routers;
        writeln!(
            text,
            "[[router]]\nname = \"r{router}\"\nports = [\n\
             {{ {own}, mtu = {mtu}, addresses = [\"10.0.{router}.1/24\", \"fd00:0:0:{router}::1/64\"] }},\n\
             {{ port = \"r{router}-on\", \
             addresses = [\"10.9.{router}.1/30\", \"fd00:9:0:{router}::1/64\"] }},\n\
             {{ port = \"r{router}-back\", \
             addresses = [\"10.9.{before}.2/30\", \"fd00:9:0:{before}::2/64\"] }} ]\nroutes = ["
        )
        .unwrap();
        for other in (0..routers).filter(|other| *other != router) {
            let (v4, v6) = via(&mut dice, router, before);
            writeln!(
                text,
                "{{ to = \"10.0.{other}.0/24\", via = \"{v4}\" }}, {{ to = \"fd00:0:0:{other}::/64\", via = \
                 \"{v6}\" }},"
            )
            .unwrap();
        }
        writeln!(text, "{{ to = \"10.77.0.0/16\", via = \"10.0.{router}.200\" }} ]").unwrap();
        link(&mut dice, &mut text, ("trunk", router), (&format!("r{router}-on"), &format!("r{next}-back")));
        if dice.below(2) == 0 {
            let (time, other) = (dice.below(50_000), (router + 1 + dice.below(routers - 1)) % routers);
            let (v4, _) = via(&mut dice, router, before);
            writeln!(
                text,
                "[[at]]\ntime = \"{time} us\"\nrouter = \"r{router}\"\nremove-route = \"10.77.0.0/16\"\n\
                 add-route = \"10.0.{other}.0/24 via {v4}\""
            )
            .unwrap();
        }
    }
    traffic(&mut dice, &mut text, routers);
    text
}

/// The neighbour in one direction or the other.
fn via(dice: &mut Dice, router: u64, before: u64) -> (String, String) {
    match dice.below(2) {
        0 => (format!("10.9.{router}.2"), format!("fd00:9:0:{router}::2")),
        _ => (format!("10.9.{before}.1"), format!("fd00:9:0:{before}::1")),
    }
}

pub fn link(dice: &mut Dice, text: &mut String, (kind, number): (&str, u64), (from, to): (&str, &str)) {
    writeln!(text, "[[link]]\nname = \"{kind}{number}\"\nbetween = [\"{from}\", \"{to}\"]").unwrap();
    // Some have too little delay to lead to another worker.
    let delay = [dice.below(50), 50 + dice.below(9_000)][usize::from(dice.below(3) > 0)];
    writeln!(text, "delay = \"{delay} us\"").unwrap();
    if dice.below(3) > 0 {
        let (rate, queue) = (1 + dice.below(60), 3 + dice.below(30));
        writeln!(text, "rate = \"{rate} Mbit/s\"\nqueue = \"{queue} packets\"").unwrap();
    }
    if dice.below(3) == 0 {
        writeln!(text, "loss = \"{} %\"", dice.below(9)).unwrap();
    }
    if dice.below(4) == 0 {
        writeln!(text, "mtu = {{ kind = \"too-big\", mtu = {} }}", 600 + dice.below(900)).unwrap();
    }
}

fn traffic(dice: &mut Dice, text: &mut String, routers: u64) {
    for source in 0..2 + dice.below(4) {
        let from = dice.below(routers);
        let to = (from + 1 + dice.below(routers - 1)) % routers;
        let interval = 50_000 + dice.below(2_000_000);
        let (packets, size) = (1 + dice.below(100), 62 + dice.below(1452));
        let addresses = match dice.below(4) {
            0 => "destination = \"10.77.1.1\"\nsource = \"10.0.".to_owned() + &format!("{from}.9\"\n"),
            1 => format!("source = \"fd00:0:0:{from}::9\"\ndestination = \"fd00:0:0:{to}::9\"\n"),
            _ => String::new(),
        };
        writeln!(
            text,
            "[[source]]\nname = \"s{source}\"\nfrom = \"p{from}\"\nto = \"p{to}\"\n\
             interval = \"{interval} ns\"\n\
             size = \"{size} B\"\npackets = {packets}\npoisson = {}\n{addresses}",
            dice.below(2) == 0
        )
        .unwrap();
    }
}
