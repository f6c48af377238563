//! `longwire bench aqm` with real TCP, in quick mode, passes.
#![forbid(unsafe_code)]

use longwire_bench::{Settings, run};
use std::sync::atomic::AtomicBool;

#[test]
fn queues_that_drop_or_mark_early_keep_delay_low_and_the_link_in_use() {
    let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
    let rows = run("aqm", &settings).expect("there is a bench of this name");
    for row in &rows {
        let (measured, expected) = (row.measured.as_ref(), row.expected.as_ref());
        println!("{}: {measured:?} {}, {expected:?} asked; {}", row.name, row.unit, row.notes.join("; "));
    }
    if let [row] = &rows[..]
        && row.pass.is_none()
    {
        return println!("skipped: {}", row.notes.join("; "));
    }
    let failed: Vec<_> = rows.iter().filter(|row| row.pass == Some(false)).map(|row| &row.name).collect();
    assert!(failed.is_empty(), "{failed:?}");
    // Delay and rate of nine queues, marks of four, fairness of two.
    assert_eq!(rows.iter().filter(|row| row.pass == Some(true)).count(), 9 * 2 + 4 + 2);
}
