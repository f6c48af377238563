//! The fidelity verdict on a run, in words.

use longwire_engine::Fidelity;
use longwire_report::shown;
use longwire_units::{Nanos, plural};
use serde_json::Value;

/// A line with the verdict on a run in real time, and one for each cause if it was not faithful.
pub fn real(fidelity: &Fidelity) -> String {
    let late = &fidelity.lateness;
    let line = format!(
        "{}: {} {}, late by {} (median), {} (99 %), {} (at most)",
        word(fidelity),
        shown::count(late.packets),
        plural(late.packets, "packet"),
        shown::time(late.all.p50.0 as f64),
        shown::time(late.all.p99.0 as f64),
        shown::time(late.all.max.0 as f64),
    );
    with_causes(line, fidelity)
}

/// Fewest packets for a verdict: with fewer, a single late one exceeds the share allowed.
const ENOUGH: u64 = 100;

/// The verdict in a few words.
pub fn brief(fidelity: &Fidelity) -> String {
    match (&fidelity.brief, fidelity.lateness.packets) {
        (_, 0) => "nothing crossed the link".into(),
        (None, packets @ ..ENOUGH) => format!("too few packets to judge ({packets})"),
        (None, _) => "faithful".into(),
        (Some(cause), _) => format!("not faithful: {cause}"),
    }
}

/// Whether there is a verdict: a fault is one at any number of packets, none needs enough of them.
pub const fn is_judged(fidelity: &Fidelity) -> bool {
    let packets = fidelity.lateness.packets;
    packets >= ENOUGH || (packets > 0 && fidelity.brief.is_some())
}

/// Whether packets have shown that the link was faithful: none may mean that they took another way.
pub const fn has_shown_faithful(fidelity: &Fidelity) -> bool {
    fidelity.faithful && fidelity.lateness.packets > 0
}

/// A line with the verdicts on a run's windows; none before the first is over.
pub fn windows(window: &Value) -> Option<String> {
    let number = |of: &Value, name: &str| of.get(name).and_then(Value::as_u64);
    let time = |of: &Value, name: &str| shown::time(number(of, name).unwrap_or(0) as f64);
    let length = Nanos(number(window, "length_ns")?);
    let (judged, faithful) = (number(window, "judged")?, number(window, "faithful")?);
    let last = &window["last"]["fidelity"];
    let line = match (number(last, "packets"), last["brief"].as_str()) {
        (_, Some(cause)) => format!("the last {length}: not faithful: {cause}"),
        (Some(0), None) => format!("the last {length}: no packets"),
        _ => format!("the last {length}: faithful"),
    };
    if judged == 0 {
        return Some(line);
    }
    if judged == faithful {
        // Without packets, the last one may be unfaithful, and is not judged.
        let which = if last["brief"].is_string() { " with packets" } else { "" };
        return Some(format!("{line}; all windows of {length}{which} were faithful"));
    }
    let percent = 100.0 * faithful as f64 / judged as f64;
    let worst = &window["worst"];
    let (from, to) = (time(worst, "from_ns"), time(worst, "to_ns"));
    let cause = worst["fidelity"]["brief"].as_str().unwrap_or_default();
    Some(format!(
        "{line}; {percent:.1} % of {judged} windows were faithful, the worst ({from} to {to}): {cause}"
    ))
}

/// The verdict on a run in virtual time.
pub fn simulated(fidelity: &Fidelity) -> String {
    with_causes(format!("{}: every packet left at its time, by definition", word(fidelity)), fidelity)
}

const fn word(fidelity: &Fidelity) -> &'static str {
    if fidelity.faithful { "faithful" } else { "NOT faithful" }
}

fn with_causes(mut text: String, fidelity: &Fidelity) -> String {
    for cause in &fidelity.causes {
        text += "\n  because ";
        text += cause;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_engine::LatenessSummary;
    use serde_json::json;

    /// A clock that jumps makes a window unfaithful in which nothing left, and which is not judged.
    #[test]
    fn windows_that_are_not_judged_are_not_called_faithful() {
        let said = |judged: u64, packets: u64, brief: Option<&str>| {
            let last = json!({ "fidelity": { "packets": packets, "brief": brief } });
            let length_ns = Nanos::from_secs(10).0;
            let window =
                json!({ "length_ns": length_ns, "judged": judged, "faithful": judged, "last": last });
            windows(&window).unwrap()
        };
        assert_eq!(said(0, 0, None), "the last 10 s: no packets");
        let jumped = "the last 10 s: not faithful: clock of far jumped";
        assert_eq!(said(0, 0, Some("clock of far jumped")), jumped);
        let with_packets = format!("{jumped}; all windows of 10 s with packets were faithful");
        assert_eq!(said(3, 0, Some("clock of far jumped")), with_packets);
        assert_eq!(said(3, 9, None), "the last 10 s: faithful; all windows of 10 s were faithful");
    }

    #[test]
    fn brief_verdicts() {
        let judged = |packets: u64, cause: Option<&str>| {
            let lateness = LatenessSummary { packets, ..LatenessSummary::default() };
            let brief = cause.map(str::to_owned);
            Fidelity { faithful: cause.is_none(), causes: Vec::new(), brief, lateness, tunnels: Vec::new() }
        };
        let said = |packets, cause| brief(&judged(packets, cause));
        let shown = |packets, cause| has_shown_faithful(&judged(packets, cause));
        assert_eq!(
            [shown(0, None), shown(99, None), shown(100, None), shown(100, Some("CPU busy"))],
            [false, true, true, false]
        );
        let is_judged = |packets, cause| is_judged(&judged(packets, cause));
        for (packets, cause, has_verdict) in [
            (0, None, false),
            (0, Some("CPU busy"), false),
            (99, None, false),
            (9, Some("CPU busy"), true),
            (100, None, true),
        ] {
            assert_eq!(is_judged(packets, cause), has_verdict, "{}", said(packets, cause));
        }
        assert_eq!(said(0, None), "nothing crossed the link");
        assert_eq!(said(99, None), "too few packets to judge (99)");
        assert_eq!(said(100, None), "faithful");
        assert_eq!(
            said(9, Some("interface down (1 packet dropped)")),
            "not faithful: interface down (1 packet dropped)"
        );
    }
}
