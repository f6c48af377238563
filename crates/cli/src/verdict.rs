//! The fidelity verdict on a run, in words.

use longwire_engine::Fidelity;
use longwire_report::shown;

/// A line with the verdict on a run in real time, and one for each cause if it was not faithful.
pub fn real(fidelity: &Fidelity) -> String {
    let late = &fidelity.lateness;
    let line = format!(
        "{}: {} packets, late by {} (median), {} (99 %), {} (at most)",
        word(fidelity),
        shown::count(late.packets),
        shown::time(late.all.p50.0 as f64),
        shown::time(late.all.p99.0 as f64),
        shown::time(late.all.max.0 as f64),
    );
    with_causes(line, fidelity)
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
