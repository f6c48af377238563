//! Memory of links besides their packets.

use longwire_assemble::{Calibration, price};
use longwire_scenario::plan_of;

/// 1024 flows of about 80 bytes, or of 40 without CoDel; 496 counters of 8 bytes.
#[test]
fn tables_of_queues_and_histograms_are_counted() {
    let links = |more: &str| {
        let host = |name| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.1/24\"\n");
        let hosts = host("a") + &host("b").replace("0.1/", "0.2/");
        let text = format!("{hosts}[[link]]\nbetween = [\"a\", \"b\"]\n{more}\n");
        price(&plan_of(&text), &Calibration::default()).link_memory.0
    };
    let plain = links("");
    let (fair, drr) = (links("queue = { kind = \"fq-codel\" }"), links("queue = { kind = \"drr\" }"));
    assert!((fair - plain) / 2 > 1024 * 64 && (fair - plain) / 2 < 1024 * 160, "{fair} {plain}");
    assert!(drr > plain + 2 * 1024 * 32, "{drr} {plain}");
    let each = (links("histogram = true") - plain) / 2;
    assert!((496 * 8..8192).contains(&each), "{each}");
}
