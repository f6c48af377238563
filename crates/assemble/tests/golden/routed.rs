//! Cases with routers: schedulers, forwarders, services.

use super::routers;
use longwire_block::Dice;
use std::fmt::Write;

/// Two routers with a line between them, and a host at each of three ports; `keys` adds keys of the first
/// router.
fn two_routers(name: &str, way: u64, keys: impl Fn(&mut Dice) -> String) -> (Dice, String) {
    let mut dice = Dice::named(way, name);
    let mut text = format!("seed = {}\n", dice.below(1_000_000));
    for (host, network) in [("a", 1), ("c", 3), ("b", 2)] {
        writeln!(
            text,
            "[[host]]\nname = \"{host}\"\naddress = [\"10.0.{network}.9/24\", \"fd00:0:0:{network}::9/64\"]"
        )
        .unwrap();
    }
    let mtu = if dice.below(2) == 0 { 1500 } else { 1280 };
    let police = match dice.below(3) {
        0 => {
            "police = { errors = \"100/s burst 2\", echo = \"100/s burst 1\", exceptions = \"500/s burst 4\" \
             }\n"
        }
        _ => "",
    };
    let keys = keys(&mut dice);
    writeln!(
        text,
        "[[router]]\nname = \"r\"\nports = [\n\
         {{ port = \"a\", addresses = [\"10.0.1.1/24\", \"fd00:0:0:1::1/64\"] }},\n\
         {{ port = \"c\", addresses = [\"10.0.3.1/24\", \"fd00:0:0:3::1/64\"] }},\n\
         {{ port = \"r-0\", mtu = {mtu}, addresses = [\"10.9.0.1/30\", \"fd00:9::1/64\"] }},\n\
         {{ port = \"r-1\", addresses = [\"10.9.1.1/30\"] }} ]\n\
         routes = [\n\
         {{ to = \"10.0.2.0/24\", next-hops = [{{ via = \"10.9.0.2\" }}, {{ via = \"10.9.1.2\", weight = 2 \
         }}] }},\n\
         {{ to = \"10.1.0.0/16\", discard = true }},\n\
         {{ to = \"fd00:0:0:2::/64\", via = \"fd00:9::2\" }} ]\n{police}{keys}\n\
         [[router]]\nname = \"s\"\nports = [\n\
         {{ port = \"b\", addresses = [\"10.0.2.1/24\", \"fd00:0:0:2::1/64\"] }},\n\
         {{ port = \"s-0\", addresses = [\"10.9.0.2/30\", \"fd00:9::2/64\"] }},\n\
         {{ port = \"s-1\", addresses = [\"10.9.1.2/30\"] }} ]\n\
         routes = [{{ to = \"default\", via = \"10.9.0.1\" }}, {{ to = \"fd00::/16\", via = \"fd00:9::1\" }}]"
    )
    .unwrap();
    for line in 0..2 {
        routers::link(&mut dice, &mut text, ("line", line), (&format!("r-{line}"), &format!("s-{line}")));
    }
    if dice.below(3) == 0 {
        let time = dice.below(30_000);
        writeln!(
            text,
            "[[at]]\ntime = \"{time} us\"\nrouter = \"r\"\nremove-route = \"10.1.0.0/16\"\n\
             add-route = \"10.0.2.0/24 via 10.9.1.2\""
        )
        .unwrap();
    }
    (dice, text)
}

/// Flows share the first router's processors under a scheduler.
pub fn scheduler(name: &str, way: u64, scheduler: &str) -> String {
    let keys = |dice: &mut Dice| {
        let processors = 1 + dice.below(3);
        let cycles = ["30_000", "\"2_000 + 40/byte\"", "\"20000..90000\""][dice.below(3) as usize];
        let (limit, table) = (2 + dice.below(8), 2 + dice.below(12));
        let mut keys = format!(
            "scheduler = \"{scheduler}\"\nprocessors = {processors}\nclock = \"600 MHz\"\ncycles = {}\n\
             flow-limit = {limit}\nflow-table = {table}\npackets = {}\n\
             flows = [{{ name = \"x\", key = {{ destination-port = 53 }}, weight = 3, cycles = 70000 }}]\n",
            cycles.replace('_', ""),
            16 + dice.below(32)
        );
        if dice.below(2) == 0 {
            writeln!(keys, "port-rate = \"{} Mbit/s\"", 5 + dice.below(60)).unwrap();
        }
        match dice.below(3) {
            0 => keys += "rings = { input = 4, ready = 2, step = \"3 us\" }\n",
            1 => keys += "flow-key = [\"source\", \"protocol\"]\nestimator = \"last\"\n",
            _ => {}
        }
        keys
    };
    let (mut dice, mut text) = two_routers(name, way, keys);
    let (time, weight) = (dice.below(40_000), 1 + dice.below(9));
    writeln!(text, "[[at]]\ntime = \"{time} us\"\nrouter = \"r\"\nflow = \"x\"\nweight = {weight}").unwrap();
    text
}

/// The first router has a program that some or all packets meet.
pub fn program(name: &str, way: u64, program: &str) -> String {
    let (mut dice, mut text) = two_routers(name, way, |_| String::new());
    let key = ["", "key = { protocol = \"tcp\" }\n", "key = { destination = \"10.0.2.9\" }\n"];
    let key = key[dice.below(3) as usize];
    let links = if program == "balancer" { "links = [\"line1\"]\n" } else { "" };
    writeln!(text, "[[forwarder]]\nrouter = \"r\"\nprogram = \"{program}\"\n{links}{key}").unwrap();
    if dice.below(2) == 0 {
        writeln!(
            text,
            "[[forwarder]]\nrouter = \"r\"\nprogram = \"dscp-marker\"\nkey = {{ destination-port = 53 }}\n\
             data = \"2e000000010000000000000000000000\"\nqueue = 1"
        )
        .unwrap();
    }
    text
}

/// Some packets go up from the first router to a service.
pub fn service(name: &str, way: u64, service: &str) -> String {
    let keys = |dice: &mut Dice| {
        let packets = 20_000 + dice.below(100_000);
        format!("slow-path = {{ packets = {packets}, cycles = 1_000_000_000 }}\n").replace('_', "")
    };
    let (mut dice, mut text) = two_routers(name, way, keys);
    let (packets, cycles) = (1000 + dice.below(9000), 1000 + dice.below(20_000));
    let otherwise = ["pass", "drop"][dice.below(2) as usize];
    writeln!(
        text,
        "[[forwarder]]\nrouter = \"r\"\nwhere = \"slow-path\"\nservice = \"{service}\"\npackets = {packets}\n\
         cycles = {cycles}\n\
         otherwise = \"{otherwise}\"\nwithin = \"{} ms\"\n\
         key = {{ destination = \"10.0.2.9\", protocol = \"udp\" }}",
        1 + dice.below(9)
    )
    .unwrap();
    text
}
