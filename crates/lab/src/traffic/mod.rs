//! Traffic between hosts of a lab or between real machines, with measurements.
//!
//! One side runs a [`Server`]; the other calls [`udp::send`], [`bulk::send`] or [`request::send`], which
//! announce a measurement to the server over a TCP connection, send it, and return both sides' results.
//! [`ping::ping`] needs no server, and [`quic::wait_for_server`] one of QUIC. Every measurement returns a
//! typed result, which converts to rows of a report.
//!
//! Arrival times of datagrams and echoes are the kernel's receive timestamps, so that late wake-ups are not
//! measured as delay. One-way delays are absolute if both sides read the same clock (the same boot of the
//! same machine, including namespaces); between machines clocks are not synchronised, and delays are relative
//! to the smallest one.
//!
//! Functions that run longer than two seconds call their progress function about twice a second; it can stop
//! them.

pub mod bulk;
pub mod clock;
mod control;
mod goodput;
mod header;
pub mod ping;
pub mod quic;
mod recording;
pub mod request;
mod rows;
mod server;
mod socket;
mod spread;
mod tally;
pub mod udp;

pub use control::{DEFAULT_PORT, Receiver};
pub use header::HEADER_BYTES;
pub use recording::Recording;
pub use server::{Server, Session, SessionOutcome};
pub use spread::{Distribution, Spread};
pub use tally::{Arrival, LossRuns, Tally, UdpReception};

use serde::{Deserialize, Serialize};
use std::io;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Most packets of a measurement, so that both sides' records of them stay below 128 MiB.
pub const MAX_PACKETS: u64 = 1 << 30;
/// The longest a measurement lasts, in nanoseconds: a day.
pub const MAX_DURATION_NS: u64 = 86_400_000_000_000;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter is out of its range.
    #[error("{field}: {problem}; {fix}")]
    Parameter {
        /// The parameter.
        field: &'static str,
        /// Its fault.
        problem: String,
        /// What to give instead.
        fix: &'static str,
    },
    /// The system refused something.
    #[error("{doing}: {source}{fix}")]
    System {
        /// The operation, with the address if there is one.
        doing: String,
        /// The system's error.
        source: io::Error,
        /// A possible fix, with its punctuation, or nothing.
        fix: &'static str,
    },
    /// The other side violated the protocol.
    #[error("the other side's control message: {0}; both sides must run the same version of longwire")]
    Protocol(String),
    /// The other side ended the connection before this message.
    #[error("the other side ended the connection before the {0}")]
    Ended(&'static str),
    /// The other side refused, with this reason.
    #[error("refused by the receiver: {0}")]
    Refused(String),
    /// The other side was silent for too long.
    #[error("no {what} within {after:?}; see whether the path lets TCP through both ways")]
    Silent {
        /// The awaited event.
        what: &'static str,
        /// For how long.
        after: Duration,
    },
    /// The progress function asked to stop.
    #[error("stopped")]
    Stopped,
}

/// The outcome of a part of a measurement.
type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source, fix: "" }
    }

    /// Silence for so many nanoseconds.
    fn silent(what: &'static str, ns: u64) -> Self {
        Self::Silent { what, after: Duration::from_nanos(ns) }
    }
}

/// Refuses a parameter whose value is not good.
fn check(is_good: bool, field: &'static str, value: impl ToString, fix: &'static str) -> Result<()> {
    if is_good { Ok(()) } else { Err(Error::Parameter { field, problem: value.to_string(), fix }) }
}

/// A part of all in percent; 0 of nothing.
fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 }
}

/// Progress of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since its first packet, in nanoseconds.
    pub elapsed_ns: u64,
    /// Total duration of sending in nanoseconds, if known.
    pub total_ns: Option<u64>,
    /// Packets, requests or bytes so far.
    pub done: u64,
}

/// Receives the progress of a measurement about twice a second; breaks to stop it.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// A progress function that shows nothing and never stops.
pub fn quiet(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A progress function that shows nothing, and stops when the flag is set.
pub fn until(stop: &AtomicBool) -> impl FnMut(Progress) -> ControlFlow<()> {
    move |_| if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Calls the progress function when it is due.
struct Reporter<'a> {
    on_progress: OnProgress<'a>,
    started: u64,
    next: u64,
    total_ns: Option<u64>,
}

impl<'a> Reporter<'a> {
    /// Between two calls, in nanoseconds.
    const EVERY: u64 = 500_000_000;

    fn new(on_progress: OnProgress<'a>, started: u64, total_ns: Option<u64>) -> Self {
        Self { on_progress, started, next: started + Self::EVERY, total_ns }
    }

    fn tell(&mut self, now: u64, done: u64) -> Result<()> {
        if now < self.next {
            return Ok(());
        }
        self.next = now + Self::EVERY;
        let elapsed_ns = now.saturating_sub(self.started);
        match (self.on_progress)(Progress { elapsed_ns, total_ns: self.total_ns, done }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Stopped),
        }
    }
}

/// The bytes of a datagram that count towards a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// UDP payload only.
    Payload,
    /// IP packet: payload, UDP header, IP header.
    Ip,
    /// Ethernet frame with its check sequence, at least 64 bytes: the default of links.
    #[default]
    Ethernet,
    /// Ethernet frame with preamble and gap.
    Wire,
}

impl Layer {
    /// Bytes that a datagram with `payload` bytes has at this layer, to or from `address`. Fragments are not
    /// considered.
    ///
    /// ```
    /// use longwire_lab::traffic::Layer;
    /// let v4 = "127.0.0.1".parse().unwrap();
    /// assert_eq!(Layer::Ip.bytes(100, v4), 128);
    /// assert_eq!(Layer::Ethernet.bytes(100, v4), 146);
    /// assert_eq!(Layer::Ethernet.bytes(18, v4), 64);
    /// assert_eq!(Layer::Wire.bytes(18, v4), 84);
    /// ```
    pub fn bytes(self, payload: u64, address: IpAddr) -> u64 {
        const UDP: u64 = 8;
        const ETHERNET: u64 = 14;
        const SHORTEST: u64 = 60;
        const CHECK: u64 = 4;
        const PREAMBLE_AND_GAP: u64 = 20;
        let ip = payload + UDP + if address.is_ipv4() { 20 } else { 40 };
        let ethernet = (ip + ETHERNET).max(SHORTEST) + CHECK;
        match self {
            Self::Payload => payload,
            Self::Ip => ip,
            Self::Ethernet => ethernet,
            Self::Wire => ethernet + PREAMBLE_AND_GAP,
        }
    }

    /// Its name, as in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Ip => "ip",
            Self::Ethernet => "ethernet",
            Self::Wire => "wire",
        }
    }
}

/// When a sender stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopAfter {
    /// After this many packets, requests or bytes.
    Count(u64),
    /// After this many nanoseconds.
    DurationNs(u64),
}

impl StopAfter {
    /// After this time.
    pub fn duration(time: Duration) -> Self {
        Self::DurationNs(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    fn check(self, most: u64) -> Result<()> {
        match self {
            Self::Count(count) => {
                let fix = "give 1 or more, and at most what this measurement can keep account of";
                check((1..=most).contains(&count), "count", count, fix)
            }
            Self::DurationNs(time) => {
                let is_good = (1..=MAX_DURATION_NS).contains(&time);
                check(is_good, "duration", format!("{time} ns"), "give more than 0 and at most a day")
            }
        }
    }

    fn duration_ns(self) -> Option<u64> {
        match self {
            Self::Count(_) => None,
            Self::DurationNs(time) => Some(time),
        }
    }
}

#[cfg(test)]
mod tests;
