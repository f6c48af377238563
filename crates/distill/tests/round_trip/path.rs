//! A path that is emulated in virtual time, and captures of its both ends.

#[path = "../../../assemble/tests/support/mod.rs"]
mod support;

use longwire_assemble::TO_THE_END;
use longwire_distill::{Assumptions, Capture, Distilled, Level, Record, distill, scenario};
use longwire_scenario::plan_of;
use longwire_units::Nanos;
use support::{PacketView, simulate, source_ports};

/// The captures at both ends of a link made of these settings, with the traffic of these sources.
pub fn captures(link: &str, sources: &[&str], seed: u64) -> [Capture; 2] {
    let mut text = format!("seed = {seed}\n[engine]\npool = \"16 MiB\"\n");
    for (name, address) in [("a", "10.0.0.1"), ("b", "10.0.0.2")] {
        text += &format!("[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"{address}\"\n");
    }
    text += &format!("[[link]]\nname = \"path\"\nfrom = \"a\"\nto = \"b\"\n{link}\n");
    for (number, source) in sources.iter().enumerate() {
        text += &format!("[[source]]\nname = \"s{number}\"\nfrom = \"a\"\nto = \"b\"\n{source}\n");
    }
    let plan = plan_of(&text);
    let look = |view: &PacketView<'_>| {
        let record = Record::of(Nanos(view.time), view.frame.len() as u32, view.frame);
        Some((view.left, record.expect("sources send IP packets")))
    };
    let (seen, _) = simulate(&plan, source_ports(&plan), TO_THE_END, look);
    [false, true].map(|left| {
        Capture::new(
            seen.iter().filter(|(has_left, _)| *has_left == left).map(|(_, record)| *record).collect(),
        )
    })
}

/// What is distilled at a level from captures; the scenario is valid, and has its link.
pub fn distilled([sent, received]: &[Capture; 2], level: f64) -> Distilled {
    let level = Level::new(level).unwrap();
    let found = distill(sent, received, Assumptions { level, ..Assumptions::default() }).unwrap();
    let plan = plan_of(&scenario(&found, "sent", "received"));
    assert_eq!(&*plan.links[0].name, "path");
    found
}
