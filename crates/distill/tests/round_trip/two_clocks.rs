//! Captures whose clocks differ.

use super::path::captures;
use longwire_distill::{Assumptions, Capture, Clocks, DelayFinding, Distilled, distill, scenario};
use longwire_scenario::plan_of;
use longwire_units::Nanos;

const LINK: &str = "delay = \"20 ms\"\nrate = \"10 Mbit/s\"\nqueue = \"unlimited\"";
const TRAFFIC: &str = "size = \"996 B\"\nmodel = \"poisson\"\nrate = \"6 Mbit/s\"\npackets = 5000";

/// The receiver's clock is a day ahead, and runs faster by 40 ppm.
fn shifted() -> [Capture; 2] {
    let [sent, received] = captures(LINK, &[TRAFFIC], 3);
    let mut records = received.records;
    for record in &mut records {
        record.time = Nanos(86_400_000_000_000 + record.time.0 + record.time.0 * 40 / 1_000_000);
    }
    [sent, Capture::new(records)]
}

fn found(least_delay: Option<Nanos>) -> Distilled {
    let [sent, received] = shifted();
    distill(&sent, &received, Assumptions { clocks: Clocks::Two, least_delay, ..Assumptions::default() })
        .unwrap()
}

#[test]
fn offset_and_drift_are_estimated() {
    let found = found(None);
    let drift = found.drift_ppm.unwrap();
    // Two lowest points some seconds apart, each rounded by at most 2 ns.
    assert!((drift - 40.0).abs() < 0.01, "{drift}");
    let rate = found.rate.estimate().unwrap();
    assert!(rate.contains(1e7), "{rate:?}");
    let text = scenario(&found, "sent", "received");
    assert!(text.contains("two clocks don't show how long"), "{text}");
    assert!(text.contains("delay = \"0 ms\""), "{text}");
}

#[test]
fn the_least_delay_may_be_given() {
    let found = found(Some(Nanos::from_millis(20)));
    let Some(DelayFinding::Constant { delay_ns, early: None }) = &found.delay else { panic!("{found:?}") };
    assert_eq!(delay_ns.value, 20e6);
    let plan = plan_of(&scenario(&found, "sent", "received"));
    assert_eq!(plan.links.len(), 1);
}

#[test]
fn one_clock_is_not_assumed_in_silence() {
    let [sent, received] = shifted();
    let error = distill(&sent, &received, Assumptions::default()).unwrap_err();
    assert!(error.to_string().contains("give --two-clocks"), "{error}");
}

#[test]
fn a_path_that_changes_is_no_drift() {
    let [sent, mut received] = captures(LINK, &[TRAFFIC], 3);
    for record in &mut received.records {
        record.time.0 += record.time.0 / 10;
    }
    let two = Assumptions { clocks: Clocks::Two, ..Assumptions::default() };
    let error = distill(&sent, &received, two).unwrap_err();
    assert!(error.to_string().starts_with("the least delay changes by "), "{error}");
}
