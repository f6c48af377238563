//! UDP at a set rate, with loss, reordering, duplication and delay measured at the other end.

use super::clock::{precise_sleeps, wait_until};
use super::control::{Answer, Control, End, Ready, Receiver, Test, UdpOffer};
use super::header::{HEADER_BYTES, Header};
use super::recording::Recording;
use super::socket::{self, BATCH, Incoming, Outgoing, TICK_NS};
use super::spread::{Distribution, Spread};
use super::tally::{Arrival, Tally, UdpReception};
use super::{Error, Layer, MAX_DURATION_NS, MAX_PACKETS, OnProgress, Reporter, Result, StopAfter};
use super::{check, percent};
use longwire_clock::monotonic;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// The largest payload: what IPv4 carries in one packet.
pub const MAX_PAYLOAD: usize = 65_507;
/// Longest wait for late packets: slightly more than twice the longest delay of a link.
const MAX_QUIET_NS: u64 = 210_000_000_000;
/// The longest gap between two packets of a paced stream.
const MAX_GAP_NS: u64 = 60_000_000_000;
/// A sender later than this shifts its schedule rather than catch up.
const SLIP_NS: u64 = 100_000_000;
/// A delayed sender catches up at twice its rate, and sends at most this much time's worth at once, so that a
/// pause of the machine does not become a burst that fills the queue under test.
const BURST_NS: u64 = 50_000;
/// A receiver gives up if neither packets nor messages arrive for this long.
pub(super) const IDLE_NS: u64 = 300_000_000_000;

/// The sending rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendingRate {
    /// Bits per second, at the layer of the stream.
    BitsPerSecond(u64),
    /// Packets per second.
    PacketsPerSecond(u64),
    /// As fast as the system accepts packets.
    Unlimited,
}

impl SendingRate {
    /// When packet `number` is due, in nanoseconds after the first, rounded down; packets have `bytes` bytes
    /// at the layer of the rate.
    fn due(self, number: u64, bytes: u64) -> u64 {
        let (bits, per_second) = match self {
            Self::BitsPerSecond(rate) => (u128::from(bytes) * 8, rate),
            Self::PacketsPerSecond(rate) => (1, rate),
            Self::Unlimited => return 0,
        };
        let due = u128::from(number) * bits * 1_000_000_000 / u128::from(per_second.max(1));
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// Number of packets due within `time` nanoseconds, including the first.
    fn within(self, time: u64, bytes: u64) -> u64 {
        let (bits, per_second) = match self {
            Self::BitsPerSecond(rate) => (u128::from(bytes) * 8, rate),
            Self::PacketsPerSecond(rate) => (1, rate),
            // More than any machine sends.
            Self::Unlimited => (1, 20_000_000),
        };
        let count = (u128::from(time) * u128::from(per_second)).div_ceil(bits * 1_000_000_000);
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

/// A requested stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpStream {
    /// How fast.
    pub pace: SendingRate,
    /// The bytes that count for the rate, when sending and receiving.
    pub layer: Layer,
    /// Bytes of UDP payload, [`HEADER_BYTES`] to [`MAX_PAYLOAD`].
    pub payload: usize,
    /// When to stop.
    pub until: StopAfter,
    /// The receiver waits for late packets until this many nanoseconds pass without a packet; more than the
    /// path's delay.
    pub quiet_ns: u64,
}

impl UdpStream {
    /// 1000-byte payloads at this rate for `time`, waiting a second for late packets.
    pub fn new(pace: SendingRate, time: Duration) -> Self {
        Self {
            pace,
            layer: Layer::default(),
            payload: 1000,
            until: StopAfter::duration(time),
            quiet_ns: 1_000_000_000,
        }
    }

    /// What is wrong with it, if anything is; returns how many packets it has at most.
    fn check(&self, address: IpAddr) -> Result<u64> {
        let is_good = (HEADER_BYTES..=MAX_PAYLOAD).contains(&self.payload);
        check(is_good, "payload", self.payload, "give 18 to 65507 bytes")?;
        self.until.check(MAX_PACKETS)?;
        let bytes = self.layer.bytes(self.payload as u64, address);
        let is_good = self.pace.due(1, bytes) <= MAX_GAP_NS;
        check(is_good, "rate", "less than a packet a minute", "send faster, or smaller packets")?;
        let packets = match self.until {
            StopAfter::Count(count) => count,
            StopAfter::DurationNs(time) => self.pace.within(time, bytes).max(1),
        };
        let is_good = packets <= MAX_PACKETS || self.pace == SendingRate::Unlimited;
        let fix =
            "send slower, larger packets, or for a shorter time: a measurement has at most 2^30 packets";
        check(is_good, "duration", format!("{packets} packets at this rate"), fix)?;
        let packets = packets.min(MAX_PACKETS);
        let fix = "send faster, or fewer packets: a measurement lasts a day at most";
        check(self.pace.due(packets, bytes) <= MAX_DURATION_NS, "count", packets, fix)?;
        Ok(packets)
    }
}

/// The result of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpResult {
    /// The request.
    pub stream: UdpStream,
    /// Packets sent.
    pub sent: u64,
    /// From first to last sending, in nanoseconds.
    pub send_span_ns: u64,
    /// Bits at the layer of all packets but the first over the span; none with fewer than two packets.
    pub sent_bits_per_second: Option<f64>,
    /// Lateness of sent packets.
    pub lateness: Option<Distribution>,
    /// How often the sender was so late that it shifted its schedule.
    pub slips: u64,
    /// Total shift in nanoseconds.
    pub slipped_ns: u64,
    /// The receiver's result.
    pub reception: UdpReception,
}

impl UdpResult {
    /// Lost packets as a share of those sent, in percent.
    pub fn loss_percent(&self) -> f64 {
        percent(self.reception.lost, self.sent)
    }
}

/// Sends a stream to a receiver, and returns both sides' results.
///
/// The calling thread sleeps until 0.1 ms before each packet and then spins. When late, it catches up at
/// twice the rate. Packets due at the same time are sent in one system call.
///
/// # Errors
/// A parameter out of range, a receiver that cannot be reached, refuses, or falls silent, or a progress
/// function that stops.
pub fn send(receiver: &Receiver, stream: &UdpStream, on_progress: OnProgress<'_>) -> Result<UdpResult> {
    send_recorded(receiver, stream, None, on_progress)
}

/// Sends a stream as [`send`] does, and records the packets if there is a recording.
///
/// # Errors
/// As for [`send`], or the recording can't be written.
pub fn send_recorded(
    receiver: &Receiver,
    stream: &UdpStream,
    mut recording: Option<&mut Recording>,
    on_progress: OnProgress<'_>,
) -> Result<UdpResult> {
    let packets = stream.check(socket::canonical(receiver.address).ip())?;
    let offer = UdpOffer { packets, layer: stream.layer, quiet_ns: stream.quiet_ns };
    let (mut control, to, ready) = Control::offer(receiver, Test::Udp(offer))?;
    let socket = connected(to)?;
    // Bounded even if the interface accepts nothing.
    socket
        .set_write_timeout(Some(receiver.patience))
        .map_err(Error::system("setting up the sending socket"))?;
    recording.iter_mut().try_for_each(|recording| recording.begin())?;
    let sender = Sender { recording, ..Sender::new(&socket, stream, packets, ready, to.ip()) };
    let departures = sender.run(on_progress)?;
    control.write(&End { sent: departures.sent })?;
    let patience = receiver.patience.saturating_add(Duration::from_nanos(stream.quiet_ns));
    let Answer::Udp(reception) = control.read("result", patience)? else {
        return Err(Error::Protocol("a result of another kind".into()));
    };
    let bytes = stream.layer.bytes(stream.payload as u64, to.ip());
    let span = departures.last.saturating_sub(departures.first);
    let bits = (departures.sent.saturating_sub(1) * bytes * 8) as f64;
    Ok(UdpResult {
        stream: *stream,
        sent: departures.sent,
        send_span_ns: span,
        sent_bits_per_second: (span > 0).then(|| bits * 1e9 / span as f64),
        lateness: departures.lateness.distribution(),
        slips: departures.slips,
        slipped_ns: departures.slipped,
        reception: *reception,
    })
}

/// A socket for datagrams to and from `to`.
pub(super) fn connected(to: SocketAddr) -> Result<UdpSocket> {
    let any: SocketAddr = if to.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let failed = || Error::system(format!("opening a UDP socket to {to}"));
    let socket = UdpSocket::bind(any).map_err(failed())?;
    socket.connect(to).map_err(failed())?;
    Ok(socket)
}

struct Sender<'a> {
    socket: &'a UdpSocket,
    pace: SendingRate,
    packets: u64,
    duration: u64,
    bytes: u64,
    flow: u32,
    /// Half the gap between packets, in nanoseconds.
    half_gap: u64,
    /// Earliest time of the next packet, however late it is.
    floor: u64,
    /// Bytes of a frame, and where frames are recorded.
    frame_bytes: u64,
    recording: Option<&'a mut Recording>,
    out: Outgoing,
    departures: Departures,
}

#[derive(Default)]
struct Departures {
    sent: u64,
    first: u64,
    last: u64,
    lateness: Spread,
    slips: u64,
    slipped: u64,
}

impl<'a> Sender<'a> {
    fn new(socket: &'a UdpSocket, stream: &UdpStream, packets: u64, ready: Ready, to: IpAddr) -> Self {
        let bytes = stream.layer.bytes(stream.payload as u64, to);
        Self {
            socket,
            pace: stream.pace,
            packets,
            duration: stream.until.duration_ns().unwrap_or(u64::MAX),
            bytes,
            flow: ready.flow,
            half_gap: stream.pace.due(1, bytes) / 2,
            floor: 0,
            frame_bytes: Layer::Ethernet.bytes(stream.payload as u64, to),
            recording: None,
            out: Outgoing::new(stream.payload),
            departures: Departures::default(),
        }
    }

    fn run(mut self, on_progress: OnProgress<'_>) -> Result<Departures> {
        precise_sleeps();
        let mut start = monotonic().0;
        let end = start.saturating_add(self.duration);
        let total = match self.pace {
            SendingRate::Unlimited => (self.duration < u64::MAX).then_some(self.duration),
            pace => Some(pace.due(self.packets, self.bytes)),
        };
        let mut reporter = Reporter::new(on_progress, start, total);
        self.departures.first = start;
        while self.departures.sent < self.packets {
            let due = start.saturating_add(self.pace.due(self.departures.sent, self.bytes));
            let now = self.wait(due.max(self.floor), &mut reporter)?;
            if now >= end {
                break;
            }
            let late = now - due;
            if self.pace != SendingRate::Unlimited {
                self.departures.lateness.record(late.cast_signed());
                if late > SLIP_NS {
                    self.departures.slips += 1;
                    self.departures.slipped += late;
                    start += late;
                }
            }
            self.send_due(start, now)?;
        }
        Ok(self.departures)
    }

    /// Waits for the due time in steps short enough to report progress.
    fn wait(&self, due: u64, reporter: &mut Reporter<'_>) -> Result<u64> {
        const STEP: u64 = 250_000_000;
        loop {
            let now = monotonic().0;
            reporter.tell(now, self.departures.sent)?;
            if due <= now {
                return Ok(now);
            }
            wait_until(due.min(now + STEP));
        }
    }

    /// Number of packets that may leave now, including the next one, up to a batch.
    fn plan(&mut self, start: u64, now: u64) -> u64 {
        let first = self.departures.sent;
        let most = (self.packets - first).min(BATCH as u64);
        let due = |number| start.saturating_add(self.pace.due(number, self.bytes));
        let mut floor = due(first).max(self.floor).max(now.saturating_sub(BURST_NS)) + self.half_gap;
        let mut count = 1;
        while count < most && due(first + count).max(floor) <= now {
            floor = due(first + count).max(floor) + self.half_gap;
            count += 1;
        }
        self.floor = floor;
        count
    }

    /// Sends the packets that may leave now.
    fn send_due(&mut self, start: u64, now: u64) -> Result<()> {
        let first = self.departures.sent;
        let count = self.plan(start, now);
        for at in 0..count {
            // Numbers stay below MAX_PACKETS.
            let header = Header { flow: self.flow, sequence: (first + at) as u32, sent: monotonic().0 };
            header.write(self.out.packet(at as usize));
            if let Some(recording) = self.recording.as_deref_mut() {
                recording.add(&header, header.sent, self.frame_bytes)?;
            }
            self.departures.last = header.sent;
            if first + at == 0 {
                self.departures.first = header.sent;
            }
        }
        send_all(&mut self.out, self.socket, count as usize)?;
        self.departures.sent += count;
        Ok(())
    }
}

/// Sends all packets of the batch.
fn send_all(out: &mut Outgoing, socket: &UdpSocket, count: usize) -> Result<()> {
    let mut done = 0;
    while done < count {
        match out.send(socket, done, count) {
            Ok(sent) => done += sent,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // An ICMP error about an earlier packet, reported once; the current packet has not been sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            // This host's own queue dropped the packet: it is lost like any other.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => done += 1,
            Err(error) => return Err(Error::system("sending UDP")(error)),
        }
    }
    Ok(())
}

/// Which packets belong to a stream, and where they are recorded.
struct Arrivals<'a> {
    flow: u32,
    local: IpAddr,
    recording: Option<&'a mut Recording>,
}

impl UdpOffer {
    /// Checks the parameters.
    pub fn check(&self) -> Result<()> {
        check((1..=MAX_PACKETS).contains(&self.packets), "packets", self.packets, "give 1 to 2^30")?;
        check(self.quiet_ns <= MAX_QUIET_NS, "quiet_ns", self.quiet_ns, "give at most 210 s")
    }

    /// Receives the stream, and records it if there is a recording; `stopped` is polled about five times a
    /// second.
    pub fn receive(
        &self,
        control: &mut Control,
        shared_clock: bool,
        mut recording: Option<&mut Recording>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<UdpReception> {
        let local = control.local()?;
        let failed = || Error::system("opening a UDP socket to receive on");
        let socket = UdpSocket::bind(local).map_err(failed())?;
        socket::prepare_to_receive(&socket).map_err(failed())?;
        let port = socket.local_addr().map_err(failed())?.port();
        let flow = socket::random_u32().map_err(failed())?;
        let mut tally = Tally::new(self.packets);
        let mut incoming = Incoming::new();
        recording.iter_mut().try_for_each(|recording| recording.begin())?;
        control.write(&Answer::Ready(Ready { port, flow }))?;
        let mut last_heard = monotonic().0;
        let mut end: Option<End> = None;
        loop {
            let mut wait =
                [socket::interest(&socket, libc::POLLIN), socket::interest(&control.stream, libc::POLLIN)];
            let watched = if end.is_some() { 1 } else { 2 };
            socket::poll(&mut wait[..watched], TICK_NS).map_err(Error::system("waiting for packets"))?;
            let before = tally.received();
            let arrivals = Arrivals { flow, local: local.ip(), recording: recording.as_deref_mut() };
            self.drain(&socket, arrivals, &mut incoming, &mut tally)?;
            // Foreign packets don't prolong the wait.
            if tally.received() > before {
                last_heard = monotonic().0;
            }
            if wait[1].revents != 0 {
                control.fill("sender's end")?;
                last_heard = monotonic().0;
                end = control.line("sender's end")?;
            }
            let silence = monotonic().0.saturating_sub(last_heard);
            match &end {
                Some(end) if tally.unique() >= end.sent || silence >= self.quiet_ns => {
                    let sent = end.sent.min(self.packets);
                    let mut reception = tally.reception(sent, self.layer, shared_clock);
                    reception.receiver_drops = socket::drops(&socket);
                    return Ok(reception);
                }
                None if silence >= IDLE_NS => {
                    return Err(Error::silent("packet", IDLE_NS));
                }
                _ if stopped() => return Err(Error::Stopped),
                _ => {}
            }
        }
    }

    /// Receives waiting packets, at most a hundred batches, so that a flood leaves time for the control
    /// connection.
    fn drain(
        &self,
        socket: &UdpSocket,
        mut arrivals: Arrivals<'_>,
        incoming: &mut Incoming,
        tally: &mut Tally,
    ) -> Result<()> {
        for _ in 0..100 {
            let count = incoming.receive(socket).map_err(Error::system("receiving UDP"))?;
            for at in 0..count {
                let (bytes, length, arrived) = incoming.packet(at);
                let header = Header::read(bytes).filter(|header| header.flow == arrivals.flow);
                let Some(header) = header else {
                    tally.foreign();
                    continue;
                };
                let payload = length as u64;
                if let Some(recording) = arrivals.recording.as_deref_mut() {
                    recording.add(&header, arrived, Layer::Ethernet.bytes(payload, arrivals.local))?;
                }
                tally.arrive(&Arrival {
                    sequence: u64::from(header.sequence),
                    sent: header.sent,
                    arrived,
                    payload,
                    counted: self.layer.bytes(payload, arrivals.local),
                });
            }
            if count < BATCH {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_by_hand() {
        // 1000 bytes at 8 Mbit/s: a packet a millisecond.
        let pace = SendingRate::BitsPerSecond(8_000_000);
        assert_eq!([0, 1, 2, 1000].map(|k| pace.due(k, 1000)), [0, 1_000_000, 2_000_000, 1_000_000_000]);
        assert_eq!(pace.within(1_000_000_000, 1000), 1000);
        assert_eq!(pace.within(1, 1000), 1);
        // A third of a nanosecond never adds up to an error.
        assert_eq!(SendingRate::PacketsPerSecond(3).due(3_000_000, 1), 1_000_000_000_000_000);
        assert_eq!(SendingRate::PacketsPerSecond(3).due(1, 1), 333_333_333);
    }

    #[test]
    fn catching_up_is_no_burst() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = IpAddr::from([127, 0, 0, 1]);
        let ready = Ready { port: 1, flow: 1 };
        // (packets per second, late by µs, packets that may leave at once)
        for (rate, late, count) in [
            (1_000, 0, 1),
            (1_000, 10_000, 1),
            // Every 5 µs: ten are missing; 21 fit into 50 µs at twice the rate.
            (200_000, 50, 11),
            (200_000, 10_000, 21),
            (10_000_000, 10_000, 64),
        ] {
            let stream = UdpStream::new(SendingRate::PacketsPerSecond(rate), Duration::from_secs(10));
            let mut sender = Sender::new(&socket, &stream, 1_000_000, ready, address);
            let (start, now) = (1_000_000_000, 1_000_000_000 + late * 1000);
            assert_eq!(sender.plan(start, now), count, "{rate} {late}");
            assert!(sender.floor > now - BURST_NS);
        }
    }

    #[test]
    fn streams_are_checked() {
        let good = UdpStream::new(SendingRate::PacketsPerSecond(10), Duration::from_secs(1));
        let address = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(good.check(address).unwrap(), 10);
        let bad = [
            UdpStream { payload: 17, ..good },
            UdpStream { payload: 65_508, ..good },
            UdpStream { until: StopAfter::Count(0), ..good },
            UdpStream { until: StopAfter::Count(MAX_PACKETS + 1), ..good },
            UdpStream { until: StopAfter::DurationNs(0), ..good },
            UdpStream { until: StopAfter::DurationNs(u64::MAX), ..good },
            UdpStream { pace: SendingRate::BitsPerSecond(0), ..good },
            UdpStream { until: StopAfter::Count(1_000_000), ..good },
            // 3.6 billion packets.
            UdpStream {
                pace: SendingRate::PacketsPerSecond(1_000_000),
                until: StopAfter::duration(Duration::from_secs(3600)),
                ..good
            },
        ];
        for stream in bad {
            assert!(matches!(stream.check(address), Err(Error::Parameter { .. })), "{stream:?}");
        }
    }
}
