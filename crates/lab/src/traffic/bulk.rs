//! Bulk TCP transfers, as fast as the path allows.

use super::control::{Answer, BulkOffer, Control, End, Ready, Receiver, Test};
use super::goodput::Goodput;
use super::header::{HEADER_BYTES, Header};
use super::socket::{self, TICK_NS, TcpInfo};
use super::spread::{Distribution, Spread};
use super::udp::IDLE_NS;
use super::{Error, MAX_DURATION_NS, OnProgress, Reporter, Result, StopAfter, check};
use longwire_clock::monotonic;
use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion, tcp_congestion};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub use super::goodput::BulkReception;

/// The most connections of one transfer.
pub const MAX_STREAMS: u32 = 64;
/// The most bytes of one transfer: 2⁵⁰, a day at 100 Gbit/s.
pub const MAX_BYTES: u64 = 1 << 50;
/// Interval between samples of TCP's round-trip time, in nanoseconds.
const SAMPLE_NS: u64 = 50_000_000;
/// Bytes of one write or read.
const CHUNK: usize = 256 << 10;
/// After the sender's end, silence of this length on all connections ends the transfer: a reset may have been
/// lost.
const QUIET_NS: u64 = 1_000_000_000;
/// Time limit of a receiver for the announced connections, in nanoseconds.
pub(super) const CONNECT_NS: u64 = 60_000_000_000;

/// A requested transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bulk {
    /// When to stop: after a time, or a number of bytes over all connections.
    pub until: StopAfter,
    /// Connections that share it, 1 to [`MAX_STREAMS`].
    pub streams: u32,
    /// Congestion control, as in `/proc/sys/net/ipv4/tcp_available_congestion_control`; the system's default
    /// if none.
    pub congestion: Option<String>,
    /// Interval of goodput reports in nanoseconds, 1 ms to an hour.
    pub interval_ns: u64,
}

impl Bulk {
    /// One connection, the system's congestion control, intervals of 100 ms.
    pub fn new(until: StopAfter) -> Self {
        Self { until, streams: 1, congestion: None, interval_ns: 100_000_000 }
    }
}

/// The result of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkResult {
    /// The request.
    pub bulk: Bulk,
    /// Congestion control in use, as the kernel names it.
    pub congestion: String,
    /// Bytes passed to TCP; with a duration, those in flight at its end are discarded.
    pub sent_bytes: u64,
    /// Retransmitted segments, over all connections.
    pub retransmits: u64,
    /// TCP's smoothed round-trip time, sampled every 50 ms on every connection.
    pub rtt: Option<Distribution>,
    /// The smallest round-trip time that TCP measured, in nanoseconds.
    pub min_rtt_ns: Option<u64>,
    /// The receiver's result.
    pub reception: BulkReception,
}

/// Makes a transfer to a receiver, and returns both sides' results.
///
/// # Errors
/// A parameter out of range, a congestion control that the system lacks, a receiver that cannot be reached,
/// refuses, or falls silent, or a progress function that stops.
pub fn send(receiver: &Receiver, bulk: &Bulk, on_progress: OnProgress<'_>) -> Result<BulkResult> {
    bulk.until.check(MAX_BYTES)?;
    let duration_ns = bulk.until.duration_ns();
    let offer = BulkOffer { streams: bulk.streams, interval_ns: bulk.interval_ns, duration_ns };
    offer.check()?;
    let (mut control, to, ready) = Control::offer(receiver, Test::Bulk(offer))?;
    let mut sender = Sender::connect(bulk, to, ready, receiver.patience)?;
    let started = monotonic().0;
    let mut reporter = Reporter::new(on_progress, started, duration_ns);
    sender.push(started, bulk.until, &mut reporter)?;
    sender.finish(bulk.until)?;
    control.write(&End { sent: sender.sent })?;
    let reception = sender.reception(&mut control, &mut reporter, receiver.patience)?;
    let min_rtt_us = sender.last.iter().filter_map(|info| info.min_rtt_us).min();
    Ok(BulkResult {
        bulk: bulk.clone(),
        congestion: sender.congestion,
        sent_bytes: sender.sent,
        retransmits: sender.last.iter().map(|info| u64::from(info.retransmits)).sum(),
        rtt: sender.rtt.distribution(),
        min_rtt_ns: min_rtt_us.map(|us| u64::from(us) * 1000),
        reception,
    })
}

struct Sender {
    streams: Vec<TcpStream>,
    congestion: String,
    sent: u64,
    rtt: Spread,
    last: Vec<TcpInfo>,
    next_sample: u64,
}

impl Sender {
    fn connect(bulk: &Bulk, to: SocketAddr, ready: Ready, patience: Duration) -> Result<Self> {
        let mut streams = Vec::with_capacity(bulk.streams as usize);
        let mut congestion = String::new();
        for sequence in 0..bulk.streams {
            let failed = || Error::system(format!("connecting to {to} for the transfer"));
            let mut stream = TcpStream::connect_timeout(&to, patience).map_err(failed())?;
            if let Some(name) = &bulk.congestion {
                set_tcp_congestion(&stream, name).map_err(|source| Error::System {
                    doing: format!("choosing the congestion control {name:?}"),
                    source: source.into(),
                    fix: "; /proc/sys/net/ipv4/tcp_allowed_congestion_control lists what may be chosen",
                })?;
            }
            congestion = tcp_congestion(&stream).map_err(|e| failed()(e.into()))?;
            let mut header = [0; HEADER_BYTES];
            Header { flow: ready.flow, sequence, sent: monotonic().0 }.write(&mut header);
            stream.write_all(&header).map_err(failed())?;
            stream.set_nonblocking(true).map_err(failed())?;
            streams.push(stream);
        }
        let last = vec![TcpInfo::default(); streams.len()];
        Ok(Self { streams, congestion, sent: 0, rtt: Spread::new(), last, next_sample: 0 })
    }

    /// Writes to whichever connection takes it, until the end.
    fn push(&mut self, started: u64, until: StopAfter, reporter: &mut Reporter<'_>) -> Result<()> {
        let chunk = vec![0; CHUNK];
        let mut wait: Vec<_> = self.streams.iter().map(|s| socket::interest(s, libc::POLLOUT)).collect();
        let (most, end) = match until {
            StopAfter::Count(bytes) => (bytes, u64::MAX),
            StopAfter::DurationNs(time) => (u64::MAX, started.saturating_add(time)),
        };
        let mut last_sent = started;
        loop {
            let now = monotonic().0;
            self.sample(now);
            reporter.tell(now, self.sent)?;
            if now >= end || self.sent >= most {
                return Ok(());
            }
            if now.saturating_sub(last_sent) > IDLE_NS {
                return Err(Error::silent("room in the connections", IDLE_NS));
            }
            let step = SAMPLE_NS.min(end - now);
            socket::poll(&mut wait, step).map_err(Error::system("waiting for the connections"))?;
            for (stream, ready) in self.streams.iter_mut().zip(&wait) {
                // The last share is cut to what is left, so that `most` is met exactly.
                let share = usize::try_from(most - self.sent).unwrap_or(CHUNK).min(CHUNK);
                if ready.revents == 0 || share == 0 {
                    continue;
                }
                match stream.write(&chunk[..share]) {
                    Ok(count) => {
                        self.sent += count as u64;
                        last_sent = now;
                    }
                    Err(error) if socket::is_passing(&error) => {}
                    Err(error) => return Err(Error::system("writing to a connection")(error)),
                }
            }
        }
    }

    /// After a duration the rest is discarded; otherwise each connection delivers everything.
    fn finish(&mut self, until: StopAfter) -> Result<()> {
        self.next_sample = 0;
        self.sample(monotonic().0);
        match until {
            StopAfter::DurationNs(_) => {
                // Closing them discards unsent data, and resets them.
                let streams = std::mem::take(&mut self.streams);
                streams
                    .iter()
                    .try_for_each(|stream| set_socket_linger(stream, Some(Duration::ZERO)))
                    .map_err(|e| Error::system("ending the connections")(e.into()))
            }
            // The receiver's result reports a connection that it has already closed.
            StopAfter::Count(_) => {
                self.streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Write)));
                Ok(())
            }
        }
    }

    /// Waits for the result as long as the connections move.
    fn reception(
        &mut self,
        control: &mut Control,
        reporter: &mut Reporter<'_>,
        patience: Duration,
    ) -> Result<BulkReception> {
        // Sending the buffers may take long on a slow link: the receiver gives up when nothing arrives for
        // IDLE_NS.
        let slow = if self.streams.is_empty() { 0 } else { MAX_DURATION_NS };
        let end = monotonic().0 + slow + u64::try_from(patience.as_nanos()).unwrap_or(IDLE_NS) + QUIET_NS;
        let answer = control.read_until("result", end, &mut |now| {
            self.sample(now);
            reporter.tell(now, self.sent)
        })?;
        match answer {
            Some(Answer::Bulk(reception)) => Ok(reception),
            Some(_) => Err(Error::Protocol("a result of another kind".into())),
            None => Err(Error::Silent { what: "result", after: patience }),
        }
    }

    fn sample(&mut self, now: u64) {
        if now < self.next_sample {
            return;
        }
        self.next_sample = now + SAMPLE_NS;
        for (stream, last) in self.streams.iter().zip(&mut self.last) {
            // A closed connection keeps its last values.
            if let Ok(info) = socket::tcp_info(stream) {
                *last = info;
                if info.rtt_us > 0 {
                    self.rtt.record(i64::from(info.rtt_us) * 1000);
                }
            }
        }
    }
}

impl BulkOffer {
    /// Checks the parameters.
    pub fn check(&self) -> Result<()> {
        check((1..=MAX_STREAMS).contains(&self.streams), "streams", self.streams, "give 1 to 64")?;
        let is_good = (1_000_000..=3_600_000_000_000).contains(&self.interval_ns);
        check(is_good, "interval", format!("{} ns", self.interval_ns), "give 1 ms to 1 h")?;
        let is_good = self.duration_ns.is_none_or(|time| (1..=MAX_DURATION_NS).contains(&time));
        check(is_good, "duration", "0 or more than a day", "give more than 0 and at most a day")
    }

    /// Receives the transfer; `stopped` is polled about five times a second.
    pub fn receive(&self, control: &mut Control, stopped: &dyn Fn() -> bool) -> Result<BulkReception> {
        let failed = || Error::system("listening for the transfer");
        let listener = TcpListener::bind(control.local()?).map_err(failed())?;
        let port = listener.local_addr().map_err(failed())?.port();
        let flow = socket::random_u32().map_err(failed())?;
        control.write(&Answer::Ready(Ready { port, flow }))?;
        let mut streams = Vec::with_capacity(self.streams as usize);
        let end = monotonic().0 + CONNECT_NS;
        while streams.len() < self.streams as usize {
            streams.extend(accept(&listener, control, flow, end, stopped)?);
        }
        self.take(&mut streams, control, stopped)
    }

    /// Reads all connections to their ends.
    fn take(
        &self,
        streams: &mut [TcpStream],
        control: &mut Control,
        stopped: &dyn Fn() -> bool,
    ) -> Result<BulkReception> {
        let mut ended = control.line::<End>("sender's end")?.is_some();
        let mut buffer = vec![0; CHUNK];
        let mut wait: Vec<_> = streams.iter().map(|stream| socket::interest(stream, libc::POLLIN)).collect();
        wait.push(socket::interest(&control.stream, libc::POLLIN));
        let mut goodput = Goodput::new(self.interval_ns);
        let mut open = streams.len();
        let mut last_heard = monotonic().0;
        while open > 0 || !ended {
            socket::poll(&mut wait, TICK_NS).map_err(Error::system("waiting for the transfer"))?;
            let now = monotonic().0;
            for (stream, ready) in streams.iter_mut().zip(&mut wait).filter(|(_, ready)| ready.revents != 0) {
                last_heard = now;
                match stream.read(&mut buffer) {
                    Ok(count @ 1..) => goodput.arrive(now, count as u64),
                    Err(error) if socket::is_passing(&error) => {}
                    // An orderly end, or a reset at the end of a duration; poll(2) ignores negative
                    // descriptors.
                    Ok(_) | Err(_) => {
                        open -= 1;
                        ready.fd = -1;
                        ready.revents = 0;
                    }
                }
            }
            let control_ready = wait.last().is_some_and(|ready| ready.revents != 0);
            if control_ready && !ended {
                control.fill("sender's end")?;
                ended = control.line::<End>("sender's end")?.is_some();
                last_heard = now;
            }
            if ended && let Some(entry) = wait.last_mut() {
                (entry.fd, entry.revents) = (-1, 0);
            }
            let silence = now.saturating_sub(last_heard);
            if stopped() {
                return Err(Error::Stopped);
            }
            if ended && self.duration_ns.is_some() && silence > QUIET_NS {
                break;
            }
            if silence > IDLE_NS {
                return Err(Error::silent("byte", IDLE_NS));
            }
        }
        Ok(goodput.reception())
    }
}

/// The next connection of this flow, or none if it was another; gives up when the monotonic clock shows
/// `end`.
pub(super) fn accept(
    listener: &TcpListener,
    control: &mut Control,
    flow: u32,
    end: u64,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<TcpStream>> {
    const GREETING: Duration = Duration::from_secs(10);
    let failed = || Error::system("accepting a connection of the transfer");
    loop {
        let mut wait =
            [socket::interest(listener, libc::POLLIN), socket::interest(&control.stream, libc::POLLIN)];
        socket::poll(&mut wait, TICK_NS).map_err(failed())?;
        if stopped() {
            return Err(Error::Stopped);
        }
        if monotonic().0 > end {
            return Err(Error::silent("connection", CONNECT_NS));
        }
        if wait[0].revents != 0 {
            break;
        }
        // A failed sender is not waited for; the end of a short transfer may arrive before its connections
        // are accepted.
        if wait[1].revents != 0 {
            control.fill("connections of the transfer")?;
        }
    }
    let (mut stream, _) = listener.accept().map_err(failed())?;
    stream.set_read_timeout(Some(GREETING)).map_err(failed())?;
    let mut bytes = [0; HEADER_BYTES];
    let ours = stream.read_exact(&mut bytes).is_ok() && Header::read(&bytes).is_some_and(|h| h.flow == flow);
    Ok(ours.then_some(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_checked() {
        let good = BulkOffer { streams: 1, interval_ns: 1_000_000, duration_ns: Some(1) };
        assert!(good.check().is_ok());
        for bad in [
            BulkOffer { streams: 0, ..good },
            BulkOffer { streams: 65, ..good },
            BulkOffer { interval_ns: 0, ..good },
            BulkOffer { duration_ns: Some(0), ..good },
            BulkOffer { duration_ns: Some(u64::MAX), ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
