//! Tunnels in reports: the networks under them, and their part in the verdict.

use longwire_block::Underlay;
use longwire_engine::TunnelRecord;
use longwire_report::shown;
use longwire_units::Nanos;
use serde_json::{Value, json};

/// A tunnel's part in the verdict.
pub(crate) fn tunnel_json(tunnel: &TunnelRecord) -> Value {
    json!({
        "name": &*tunnel.name,
        "overdue_packets": tunnel.overdue,
        "lost_messages": tunnel.lost,
        "clock_jumps": tunnel.clock_jumps,
        "clock_error_ns": tunnel.clock_error.map(|error| error.0),
    })
}

/// The network under a tunnel, as its port sees it.
pub(crate) fn underlay_json(underlay: &Underlay) -> Value {
    json!({
        "connected": underlay.is_connected,
        "sessions": underlay.sessions,
        "overdue_packets": underlay.overdue,
        "lost_messages": underlay.lost,
        "reordered": underlay.reordered,
        "replayed": underlay.replayed,
        "forged": underlay.forged,
        "malformed": underlay.malformed,
        "other_session": underlay.other_session,
        "other_version": underlay.other_version,
        "clock_jumps": underlay.clock_jumps,
        "round_trip_ns": underlay.round_trip.map(|time| time.0),
        "clock_offset_ns": underlay.clock_offset,
        "clock_error_ns": underlay.clock_error.map(|error| error.0),
    })
}

/// Notes on it for people.
pub(crate) fn underlay_notes(underlay: &Underlay) -> Vec<String> {
    let mut notes = Vec::new();
    let time = |time: Nanos| shown::time(time.0 as f64);
    if let (Some(error), Some(round_trip)) = (underlay.clock_error, underlay.round_trip) {
        let (error, round_trip) = (time(error), time(round_trip));
        notes.push(format!("the peer's clock is known to {error}; round trip {round_trip}"));
    }
    let counted = [
        (underlay.overdue, "came later than they were due"),
        (underlay.lost, "were lost by the network under it"),
        (underlay.replayed, "were replayed"),
        (underlay.forged, "were forged"),
        (underlay.malformed, "were malformed"),
        (underlay.other_session, "were of no session, or of an ended one"),
        (underlay.other_version, "were of another version"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    notes.extend(counted.map(|(count, what)| format!("{count} messages {what}")));
    if underlay.clock_jumps > 0 {
        notes.push(format!("a clock jumped {} times", underlay.clock_jumps));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_what_happened_only() {
        let mut underlay = Underlay::default();
        assert_eq!(underlay_notes(&underlay), Vec::<String>::new());
        underlay.clock_error = Some(Nanos::from_micros(12));
        underlay.round_trip = Some(Nanos::from_micros(20));
        (underlay.forged, underlay.clock_jumps) = (3, 1);
        let notes = underlay_notes(&underlay);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].contains("round trip") && notes[1] == "3 messages were forged", "{notes:?}");
        assert_eq!(underlay_json(&underlay)["clock_error_ns"], 12_000);
    }
}
