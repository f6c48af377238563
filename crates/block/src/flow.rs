//! Settings of a traffic source besides its model: destination, number of packets, state.

use longwire_settings::{Choice, Grammar, Limit, Parsed, Settings, Spec, Value, Values};
use longwire_units::Nanos;
use std::net::IpAddr;
use std::sync::Arc;

/// The row of a source's settings that do not belong to its model.
pub static FLOW: Spec = FlowSettings::SPEC;

/// Destination, limits and state of a source.
#[derive(Debug, Settings)]
#[settings(key = "flow", kind = "flow", source = "Longwire's own", live)]
struct FlowSettings {
    /// The host or port to which its frames go.
    #[setting(grammar = PORT)]
    to: Arc<Aim>,
    /// Destination address; with another `to`, the first one there of the same family unless it is given.
    #[setting(grammar = ADDRESS)]
    destination: Arc<IpAddr>,
    /// Total number of frames, those already sent included; "unlimited" for no limit.
    #[setting(default = "unlimited")]
    packets: Limit,
    /// How long it sends, from its start; "unlimited" for no limit.
    #[setting(name = "for", default = "unlimited")]
    lasts: Limit,
    /// Whether it sends: while it is down, its own time stops.
    #[setting(default = "up")]
    state: FlowState,
}

/// Whether a source sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
enum FlowState {
    Up,
    Down,
}

/// Destination of a source's frames: the value of `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aim {
    /// The port, by its place in the plan.
    pub port: u16,
    /// Destination MAC address of its frames.
    pub mac: [u8; 6],
}

/// Settings of a source besides its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// The destination of its frames.
    pub aim: Aim,
    /// Their destination address.
    pub destination: IpAddr,
    /// Most packets.
    pub packets: u64,
    /// Duration from its start; [`Nanos::NEVER`] for no end.
    pub duration: Nanos,
    /// Whether it sends.
    pub up: bool,
}

impl Course {
    /// Reads the settings from values of [`FLOW`].
    pub fn of(values: &Values) -> Self {
        let settings = FlowSettings::of(values);
        Self {
            aim: *settings.to,
            destination: *settings.destination,
            packets: match settings.packets {
                Limit::Packets(packets) => packets,
                _ => u64::MAX,
            },
            duration: match settings.lasts {
                Limit::Waiting(time) => time,
                _ => Nanos::NEVER,
            },
            up: settings.state == FlowState::Up,
        }
    }

    /// Reads the settings from the rows of a source; none if there is no row of [`FLOW`].
    pub fn among(rows: &[(&Spec, Values)]) -> Option<Self> {
        rows.iter().find(|(spec, _)| spec.is(&FLOW)).map(|(_, values)| Self::of(values))
    }

    /// Converts to values of [`FLOW`]; `to` is the name of the port.
    pub fn values(&self, to: &str) -> Values {
        Values::made(vec![
            self.aim.value(to),
            Value::Parsed(Parsed {
                text: self.destination.to_string().into(),
                value: Arc::new(self.destination),
            }),
            Value::Packets(self.packets),
            match self.duration {
                Nanos::NEVER => Value::Packets(u64::MAX),
                time => Value::Waiting(time),
            },
            Value::Choice(usize::from(!self.up)),
        ])
    }
}

impl Aim {
    /// Converts to a value of `to`; `name` is the port's.
    pub fn value(self, name: &str) -> Value {
        Value::Parsed(Parsed { text: name.into(), value: Arc::new(self) })
    }
}

/// Only the scenario can resolve a name: see [`Aim::value`].
const PORT: Grammar = Grammar {
    wanted: "the name of a host or port",
    form: None,
    read: |text, _| Err(format!("what \"{text}\" means, only the scenario knows")),
    examples: &[],
};

const ADDRESS: Grammar = Grammar {
    wanted: "an IPv4 or IPv6 address",
    form: None,
    read: |text, _| match text.trim().parse::<IpAddr>() {
        Ok(address) => Ok(Arc::new(address)),
        Err(_) => Err(format!("\"{}\" is no address; write \"10.0.0.2\"", text.escape_debug())),
    },
    examples: &["10.0.0.2", "fd00::2"],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_written_and_read_back() {
        let aim = Aim { port: 3, mac: [2, 0, 0, 0, 0, 4] };
        for (packets, duration, up, printed) in [
            (u64::MAX, Nanos::NEVER, true, ["b", "10.0.0.2", "unlimited", "unlimited", "up"]),
            (10, Nanos::from_secs(2), false, ["b", "10.0.0.2", "10 packets", "2 s", "down"]),
        ] {
            let destination = "10.0.0.2".parse().unwrap();
            let course = Course { aim, destination, packets, duration, up };
            let values = course.values("b");
            let texts =
                FLOW.params.iter().zip(values.as_slice()).map(|(param, value)| value.print(param.kind));
            assert_eq!(texts.collect::<Vec<_>>(), printed);
            assert_eq!(Course::of(&values), course);
        }
    }
}
