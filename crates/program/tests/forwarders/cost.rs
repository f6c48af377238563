//! Every forwarder is verified, and what it costs at worst is printed beside the paper's figures.

use super::bench::{OBJECTS, program};
use longwire_program::{Item, Prices, Verified, verify};

/// Table 5 of "Building a Robust Software-Based Router Using Network Processors": bytes of state read and written, register
/// operations.
const PAPER: &[(&str, u32, u32)] = &[
    ("tcp_splicer", 24, 45),
    ("wavelet", 8, 28),
    ("ack_monitor", 12, 15),
    ("syn_monitor", 4, 5),
    ("port_filter", 20, 26),
    ("minimal_ip", 24, 32),
];

fn verified(name: &str) -> Verified {
    verify(program(name)).unwrap_or_else(|rejected| panic!("{rejected}"))
}

#[test]
fn every_forwarder_is_let_in() {
    println!(
        "{:<20} {:>5} | {:>12} {:>6} {:>6} | {:>11} {:>6} | {:>6} {:>6} {:>6}",
        "forwarder", "slots", "instructions", "paper", "", "state bytes", "paper", "map 4B", "hashes", "ns"
    );
    for (name, _) in OBJECTS {
        let verified = verified(name);
        let most = verified.most();
        let paper = PAPER.iter().find(|(known, ..)| known == name);
        let number = |number: Option<u32>| number.map_or("-".into(), |number| number.to_string());
        println!(
            "{name:<20} {:>5} | {:>12} {:>6} {:>6} | {:>11} {:>6} | {:>6} {:>6} {:>6}",
            verified.program().code.len(),
            most[Item::Instruction],
            number(paper.map(|paper| paper.2)),
            paper.map_or(String::new(), |p| format!(
                "{:.1}x",
                f64::from(most[Item::Instruction]) / f64::from(p.2)
            )),
            most[Item::StateByte],
            number(paper.map(|paper| paper.1)),
            most[Item::MapTransfer],
            most.hashes(),
            verified.dearest_path(&Prices::ASSUMED_PICOSECONDS).price / 1000,
        );
    }
}
