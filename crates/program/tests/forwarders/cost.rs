//! Verifies every forwarder, and prints its worst-case cost beside the paper's figures.

use super::bench::{OBJECTS, program};
use longwire_program::{
    Budget, BudgetItem, Counts, Demand, Item, Prices, Resource, VerifiedProgram, admit, verify,
};

/// Table 5 of "Building a Robust Software-Based Router Using Network Processors": bytes of state read and
/// written, register operations.
const PAPER: &[(&str, u32, u32)] = &[
    ("tcp_splicer", 24, 45),
    ("wavelet", 8, 28),
    ("ack_monitor", 12, 15),
    ("syn_monitor", 4, 5),
    ("port_filter", 20, 26),
    ("minimal_ip", 24, 32),
];

fn verified(name: &str) -> VerifiedProgram {
    verify(program(name)).unwrap_or_else(|rejected| panic!("{rejected}"))
}

#[test]
fn every_forwarder_is_let_in() {
    println!(
        "worst case               | instructions cycles  paper   ratio | state bytes  paper  4 B | map 4 B  \
         hashes | assumed ns"
    );
    for (name, _) in OBJECTS {
        let verified = verified(name);
        let most = verified.most();
        let paper = PAPER.iter().find(|(known, ..)| known == name);
        let [bytes, operations, ratio] =
            paper.map_or(["-"; 3].map(String::from), |&(_, bytes, operations)| {
                let ratio = f64::from(most[Item::Cycle]) / f64::from(operations);
                [bytes.to_string(), operations.to_string(), format!("{ratio:.1}")]
            });
        println!(
            "{name:<24} | {:>12} {:>6} {operations:>6} {ratio:>7} | {:>11} {bytes:>6} {:>4} | {:>7} {:>7} | \
             {:>10}",
            most[Item::Instruction],
            verified.worst_path(&Prices::VRP_CYCLES).price,
            most[Item::StateByte],
            most[Item::StateTransfer],
            most[Item::MapTransfer],
            most.hashes(),
            verified.worst_path(&Prices::ASSUMED_PICOSECONDS).price / 1000,
        );
    }
}

/// The paper's budget per packet for 8 × 100 Mbit/s (section 4.3): 4-byte transfers and bytes of state.
const TRANSFERS: u32 = 24;
const BYTES: u32 = 96;
/// Bytes of state of its classifier (section 4.5).
const CLASSIFIER: u32 = 20;

#[test]
fn four_of_the_papers_forwarders_share_its_memory_budget() {
    // The paper's own figures for these four: 72 bytes, with the classifier 92.
    let mut most = Counts::NONE;
    for name in ["tcp_splicer", "port_filter", "syn_monitor", "minimal_ip"] {
        most = most.plus(verified(name).most());
    }
    println!("with the classifier: {} bytes", most[Item::StateByte] + CLASSIFIER);
    assert!(most[Item::StateByte] + CLASSIFIER <= BYTES);
    assert!(most[Item::StateTransfer] + CLASSIFIER / 4 <= TRANSFERS);
    assert_eq!(most.hashes(), 0);
}

fn installed(name: &str) -> BudgetItem {
    let demand = Demand::of(&verified(name), &Prices::ASSUMED_PICOSECONDS);
    BudgetItem { name: name.into(), demand }
}

/// Cycles of forwarders beside the classifier: one for a flow, others for all packets, and minimal IP last,
/// either the included program or the router's charge for its own (table 5: 32).
fn together(flow: &str, general: &[&str], own: bool) -> u64 {
    let mut all: Vec<_> = general.iter().map(|name| installed(name)).collect();
    let mut minimal = Demand::default();
    minimal
        .with(Resource::Cycles, 32)
        .with(Resource::Slots, 32)
        .with(Resource::Transfers, 6)
        .with(Resource::StateBytes, 24);
    let minimal = BudgetItem { name: "minimal IP".into(), demand: minimal };
    all.push(if own { minimal } else { installed("minimal_ip") });
    let need = admit(&Budget::VRP, Demand::VRP_CLASSIFIER, &[installed(flow)], &all);
    need.unwrap_or_else(|overdrawn| panic!("{overdrawn}")).amount(Resource::Cycles)
}

#[test]
fn the_papers_forwarders_fit_its_router() {
    let cycles = ["tcp_splicer", "wavelet", "ack_monitor", "syn_monitor", "port_filter", "minimal_ip"]
        .map(|name| installed(name).demand.amount(Resource::Cycles));
    assert_eq!(cycles, [48, 25, 31, 22, 45, 30]);
    // The paper's: 24, 8, 12, 4, 20, 24.
    let bytes = ["tcp_splicer", "wavelet", "ack_monitor", "syn_monitor", "port_filter", "minimal_ip"]
        .map(|name| installed(name).demand.amount(Resource::StateBytes));
    assert_eq!(bytes, [25, 8, 12, 4, 20, 16]);
    // The classifier's 56, and as above; with minimal IP by the router or by the program.
    assert_eq!(together("tcp_splicer", &["port_filter", "syn_monitor"], true), 203);
    assert_eq!(together("tcp_splicer", &["port_filter", "syn_monitor"], false), 201);
    assert_eq!(together("ack_monitor", &["port_filter", "syn_monitor"], true), 186);
}

#[test]
fn minimal_ip_needs_no_more_than_the_router_charges_for_its_own() {
    let demand = installed("minimal_ip").demand;
    let own = [(Resource::Cycles, 32), (Resource::Transfers, 6), (Resource::StateBytes, 24)];
    for (resource, charged) in own {
        assert!(demand.amount(resource) <= charged, "{}: {}", resource.name(), demand.amount(resource));
    }
}
