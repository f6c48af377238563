//! Arbitrary bytes as two captures: an error with a reason, or estimates within their intervals and a valid
//! scenario.

use longwire_distill::{Assumptions, Capture, Clocks, Level, Selection, distill, rows, scenario};
use longwire_units::Nanos;

/// The first byte has options, the next four the length of the sender's capture, which follows; the rest is
/// the receiver's.
pub fn run(bytes: &[u8]) {
    let Some((&[options, a, b, c, d], captures)) = bytes.split_first_chunk() else { return };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let (sent, received) = captures.split_at(length.min(captures.len()));
    let most_bytes = if options & 1 == 0 { usize::MAX } else { 54 };
    let read = |bytes: &[u8]| Capture::read(bytes, Selection { filter: None, most_bytes });
    let (sent, received) = match (read(sent), read(received)) {
        (Ok(sent), Ok(received)) => (sent, received),
        (Err(error), _) | (_, Err(error)) => return assert!(error.to_string().len() > 10),
    };
    let assumptions = Assumptions {
        clocks: if options & 2 == 0 { Clocks::One } else { Clocks::Two },
        least_delay: (options & 4 != 0).then_some(Nanos::from_millis(7)),
        level: Level::new(f64::from(options >> 3) / 32.0).unwrap_or(Level::DEFAULT),
    };
    let found = match distill(&sent, &received, assumptions) {
        Ok(found) => found,
        Err(error) => return assert!(error.to_string().len() > 10),
    };
    for row in rows(&found) {
        let end = |name: &str| row.extra.get(name).map(|value| value.as_f64().expect("a number"));
        if let (Some(low), Some(high), Some(value)) =
            (end("low"), end("high"), row.measured.as_ref().and_then(|value| value.as_f64()))
        {
            let error = value.abs() * 1e-9;
            assert!(low - error <= value && value <= high + error, "{row:?}");
        }
    }
    let text = scenario(&found, "a\n[[link]]", "b");
    let plan =
        longwire_scenario::parse("distilled.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(plan.links.len(), 1);
}
