//! `longwire bench peers`, in quick mode, has numbers.
#![forbid(unsafe_code)]

use longwire_bench::{Settings, run};
use longwire_report::Row;
use std::sync::atomic::AtomicBool;

fn number(row: &Row) -> Option<f64> {
    row.measured.as_ref()?.as_f64()
}

#[test]
fn what_is_here_has_numbers_and_what_is_absent_a_reason() {
    let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
    let rows = run("peers", &settings).expect("there is a bench of this name");
    for row in &rows {
        println!("{}: {:?} {}; {}", row.name, row.measured, row.unit, row.notes.join("; "));
    }
    if let [row] = &rows[..]
        && row.measured.as_ref().is_some_and(|measured| *measured == "not run".into())
    {
        return println!("skipped: {}", row.notes.join("; "));
    }
    let of = |name: &str| rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name}"));
    for name in ["bare loop", "Longwire, AF_PACKET", "kernel bridge"] {
        let rate = number(of(&format!("peers: {name}, 64 bytes")));
        assert!(rate.is_some_and(|rate| rate > 1000.0), "{name}: {rate:?}");
    }
    // On a busy machine everything may be late and slow, but nothing is early, and no link exceeds its rate.
    let way = number(of("peers: kernel bridge, one-way time with no delay set")).expect("a time");
    let error = number(of("peers: Longwire, AF_PACKET, 10 ms: error of the mean delay")).expect("an error");
    assert!(way > 0.0 && error > 0.0, "{way} {error}");
    let rate = number(of("peers: Longwire, AF_PACKET, 10 Mbit/s")).expect("a rate");
    assert!((1e5..10.05e6).contains(&rate), "{rate}");
    for row in rows.iter().filter(|row| number(row).is_none()) {
        assert!(!row.notes.is_empty() && !row.notes.concat().is_empty(), "{} does not say why", row.name);
    }
    for peer in ["tc netem", "dummynet", "mahimahi", "Rattan", "DPDK testpmd, AF_PACKET", "FastClick"] {
        let name = format!("peers: {peer}");
        assert!(
            rows.iter().any(|row| row.name == name || row.name.starts_with(&format!("{name},"))),
            "{peer}"
        );
    }
    assert!(rows.iter().all(|row| row.pass.is_none()), "nothing is judged");
}
