//! Invariants for arbitrary bytes as a trace; also the fuzz target `trace`.

use longwire_trace::list::Quantity;
use longwire_trace::{LinkState, Opportunities, Series, list, theaterq};
use longwire_units::{Nanos, Probability, Rate};

/// Reads the bytes in every format. An accepted trace is in time order and ends after its beginning.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    listed::<Rate>(&text);
    listed::<Nanos>(&text);
    listed::<Probability>(&text);
    listed::<LinkState>(&text);
    match Opportunities::parse(&text) {
        Ok(trace) => {
            assert!(trace.times().windows(2).all(|pair| pair[0] <= pair[1]), "{text:?}");
            assert!(trace.length() > Nanos::ZERO && !trace.times().is_empty(), "{text:?}");
            let _ = trace.mean();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match theaterq::entries(&text) {
        Ok(entries) => assert!(entries.iter().all(|entry| entry.keep > Nanos::ZERO), "{text:?}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn listed<T: Quantity + Copy + PartialEq>(text: &str) {
    match list::parse::<T>(text) {
        Ok(series) => in_order(text, &series),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn in_order<T: Copy + PartialEq>(text: &str, series: &Series<T>) {
    let steps = series.steps();
    assert_eq!(steps.first().map(|step| step.0), Some(Nanos::ZERO), "{text:?}");
    assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0), "{text:?}");
    assert!(series.spans().all(|(time, _)| time > Nanos::ZERO), "{text:?}");
}
