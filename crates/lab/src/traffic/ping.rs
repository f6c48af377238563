//! ICMP echo, with overlapping requests.

use super::clock::precise_sleeps;
use super::header::{HEADER_BYTES, Header};
use super::socket::{self, IcmpSocket, Incoming, TICK_NS};
use super::spread::{Distribution, Spread};
use super::{Error, OnProgress, Reporter, Result, check, percent};
use longwire_clock::monotonic;
use longwire_wire::checksum::Sum;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The most requests of one measurement.
pub const MAX_REQUESTS: u32 = 1 << 24;
/// The largest payload: an IPv4 packet without its header and the echo header.
pub const MAX_PAYLOAD: usize = 65_507;

const ICMP_HEADER: usize = 8;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

/// Requested echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// The target.
    pub target: IpAddr,
    /// Number of requests, 1 to [`MAX_REQUESTS`].
    pub count: u32,
    /// Interval between requests in nanoseconds, 10 µs to a minute; they overlap if it is shorter than the
    /// round-trip time.
    pub interval_ns: u64,
    /// Bytes after the echo header, [`HEADER_BYTES`] to [`MAX_PAYLOAD`].
    pub payload: usize,
    /// Time limit for replies after the last request, in nanoseconds, at most ten minutes.
    pub timeout_ns: u64,
}

impl Ping {
    /// Requests of 56 bytes, one per millisecond, with a time limit of a second for the last reply.
    pub fn new(target: IpAddr, count: u32) -> Self {
        Self { target, count, interval_ns: 1_000_000, payload: 56, timeout_ns: 1_000_000_000 }
    }

    fn check(&self) -> Result<()> {
        let ns = |time: u64| format!("{time} ns");
        let (interval, payload) = (self.interval_ns, self.payload);
        check((1..=MAX_REQUESTS).contains(&self.count), "count", self.count, "give 1 to 16777216")?;
        let is_good = (10_000..=60_000_000_000).contains(&interval);
        check(is_good, "interval", ns(interval), "give 10 µs to 60 s")?;
        let is_good = (HEADER_BYTES..=MAX_PAYLOAD).contains(&payload);
        check(is_good, "payload", payload, "give 18 to 65507 bytes")?;
        let is_good = self.timeout_ns <= 600_000_000_000;
        check(is_good, "timeout", ns(self.timeout_ns), "give at most ten minutes")
    }
}

/// The results of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PingResult {
    /// The request.
    pub ping: Ping,
    /// Requests sent.
    pub sent: u64,
    /// Answered requests.
    pub answered: u64,
    /// Unanswered requests.
    pub lost: u64,
    /// Replies beyond the first to a request.
    pub duplicates: u64,
    /// Round-trip times, from sending to the kernel's timestamp of the reply.
    pub rtt: Option<Distribution>,
}

impl PingResult {
    /// Unanswered requests as a share of those sent, in percent.
    pub fn loss_percent(&self) -> f64 {
        percent(self.lost, self.sent)
    }
}

/// Pings a host and returns the round-trip times.
///
/// # Errors
/// A parameter out of range, no permission for ICMP sockets, no route, or a progress function that stops.
pub fn ping(ping: &Ping, on_progress: OnProgress<'_>) -> Result<PingResult> {
    ping_each(ping, on_progress, &mut |_| ())
}

/// Pings a host, shows each round-trip time in nanoseconds as it is measured, and returns all.
///
/// # Errors
/// As for [`ping`].
pub fn ping_each(ping: &Ping, on_progress: OnProgress<'_>, each: &mut dyn FnMut(i64)) -> Result<PingResult> {
    ping.check()?;
    let socket = IcmpSocket::open(ping.target).map_err(|source| Error::System {
        doing: format!("opening a socket to ping {}", ping.target),
        source,
        fix: "; run as root, or write \"0 2147483647\" to /proc/sys/net/ipv4/ping_group_range",
    })?;
    let flow = socket::random_u32().map_err(Error::system("drawing a number"))?;
    precise_sleeps();
    let mut pinger = Pinger::new(ping, &socket, flow, each);
    pinger.run(on_progress)?;
    let answered = pinger.rtt.count();
    Ok(PingResult {
        ping: *ping,
        sent: u64::from(pinger.sent),
        answered,
        lost: u64::from(pinger.sent) - answered,
        duplicates: pinger.duplicates,
        rtt: pinger.rtt.distribution(),
    })
}

struct Pinger<'a> {
    ping: &'a Ping,
    socket: &'a IcmpSocket,
    flow: u32,
    /// When each request was sent; 0 once it is answered. Times in replies are not trusted.
    departures: Vec<u64>,
    packet: Vec<u8>,
    incoming: Incoming,
    sent: u32,
    duplicates: u64,
    rtt: Spread,
    each: &'a mut dyn FnMut(i64),
}

impl<'a> Pinger<'a> {
    fn new(ping: &'a Ping, socket: &'a IcmpSocket, flow: u32, each: &'a mut dyn FnMut(i64)) -> Self {
        Self {
            ping,
            socket,
            flow,
            each,
            departures: vec![0; ping.count as usize],
            packet: vec![0; ICMP_HEADER + ping.payload],
            incoming: Incoming::new(),
            sent: 0,
            duplicates: 0,
            rtt: Spread::new(),
        }
    }

    fn run(&mut self, on_progress: OnProgress<'_>) -> Result<()> {
        let start = monotonic().0;
        let total = u64::from(self.ping.count) * self.ping.interval_ns;
        let mut reporter = Reporter::new(on_progress, start, Some(total));
        let mut end = u64::MAX;
        loop {
            let now = monotonic().0;
            reporter.tell(now, u64::from(self.sent))?;
            let all_sent = self.sent == self.ping.count;
            if all_sent && (now >= end || self.rtt.count() == u64::from(self.sent)) {
                return Ok(());
            }
            let due = if all_sent { end } else { start + u64::from(self.sent) * self.ping.interval_ns };
            if !all_sent && now >= due {
                self.request()?;
                end = monotonic().0 + self.ping.timeout_ns;
                continue;
            }
            let mut wait = [socket::interest(self.socket, libc::POLLIN)];
            socket::poll(&mut wait, (due - now).min(TICK_NS))
                .map_err(Error::system("waiting for replies"))?;
            if wait[0].revents != 0 {
                self.take()?;
            }
        }
    }

    fn request(&mut self) -> Result<()> {
        let now = monotonic().0;
        let header = Header { flow: self.flow, sequence: self.sent, sent: now };
        // For datagram sockets and ICMPv6 the kernel sets identifier or checksum, overwriting what is written
        // here.
        echo_request(&mut self.packet, self.ping.target.is_ipv4(), &header);
        self.departures[self.sent as usize] = now;
        self.sent += 1;
        match self.socket.send(&self.packet) {
            Ok(()) => Ok(()),
            // Lost locally, or an error about an earlier request.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EINTR | libc::ECONNREFUSED)) =>
            {
                Ok(())
            }
            Err(error) => Err(Error::system(format!("sending to {}", self.ping.target))(error)),
        }
    }

    fn take(&mut self) -> Result<()> {
        let count = self.incoming.receive(self.socket).map_err(Error::system("receiving replies"))?;
        for at in 0..count {
            let (bytes, _, arrived) = self.incoming.packet(at);
            let v4 = self.ping.target.is_ipv4();
            let reply = echo_reply(bytes, v4, v4 && self.socket.raw).filter(|reply| reply.flow == self.flow);
            let Some(reply) = reply.filter(|reply| reply.sequence < self.sent) else { continue };
            match std::mem::take(&mut self.departures[reply.sequence as usize]) {
                0 => self.duplicates += 1,
                sent => {
                    let time = arrived.wrapping_sub(sent).cast_signed();
                    self.rtt.record(time);
                    (self.each)(time);
                }
            }
        }
        Ok(())
    }
}

/// Writes an echo request (RFC 792, RFC 4443) whose payload begins with `header`.
fn echo_request(packet: &mut [u8], v4: bool, header: &Header) {
    packet[..ICMP_HEADER].fill(0);
    packet[0] = if v4 { ECHO_REQUEST } else { ECHO_REQUEST_V6 };
    let [_, _, id @ ..] = header.flow.to_be_bytes();
    packet[4..6].copy_from_slice(&id);
    // The sequence field wraps; the one in the payload does not.
    packet[6..8].copy_from_slice(&(header.sequence as u16).to_be_bytes());
    header.write(&mut packet[ICMP_HEADER..]);
    let sum = Sum::ZERO.bytes(packet).checksum();
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// The header in the payload of an echo reply, which may have an IPv4 header before it.
fn echo_reply(bytes: &[u8], v4: bool, ip_header: bool) -> Option<Header> {
    let skip = if ip_header { usize::from(bytes.first()? & 15) * 4 } else { 0 };
    let icmp = bytes.get(skip..)?;
    let reply = if v4 { ECHO_REPLY } else { ECHO_REPLY_V6 };
    if *icmp.first()? != reply {
        return None;
    }
    Header::read(icmp.get(ICMP_HEADER..)?)
}

#[cfg(test)]
mod tests {
    use super::super::quiet;
    use super::*;

    #[test]
    fn requests_carry_a_header_and_replies_give_it_back() {
        let header = Header { flow: 0x0102_0304, sequence: 65_537, sent: 9 };
        let mut packet = [0xff; ICMP_HEADER + HEADER_BYTES];
        echo_request(&mut packet, true, &header);
        assert_eq!((packet[0], &packet[4..8]), (ECHO_REQUEST, &[3, 4, 0, 1][..]));
        let mut verify = packet;
        let sum = [verify[2], verify[3]];
        verify[2..4].fill(0);
        assert_eq!(Sum::ZERO.bytes(&verify).checksum().to_be_bytes(), sum);
        assert_eq!(echo_reply(&packet, true, false), None, "a request is no reply");
        packet[0] = ECHO_REPLY;
        assert_eq!(echo_reply(&packet, true, false), Some(header));
        let mut raw = vec![0x45; 20];
        raw.extend_from_slice(&packet);
        assert_eq!(echo_reply(&raw, true, true), Some(header));
        for length in 0..raw.len() {
            assert_eq!(echo_reply(&raw[..length], true, true), None, "cut at {length}");
        }
    }

    #[test]
    fn loopback_answers_overlapping_requests() {
        for target in ["127.0.0.1", "::1"] {
            let ask = Ping { interval_ns: 100_000, ..Ping::new(target.parse().unwrap(), 50) };
            match ping(&ask, &mut quiet) {
                Ok(result) => {
                    assert_eq!(
                        (result.sent, result.answered, result.lost, result.duplicates),
                        (50, 50, 0, 0)
                    );
                    assert!(result.rtt.unwrap().min_ns > 0);
                }
                Err(Error::System { doing, source, .. }) => {
                    println!(
                        "skipped: {doing}: {source}; needs root or a wider ping_group_range, and {target}"
                    );
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn pings_are_checked() {
        let good = Ping::new(IpAddr::from([127, 0, 0, 1]), 1);
        for bad in [
            Ping { count: 0, ..good },
            Ping { interval_ns: 0, ..good },
            Ping { payload: 17, ..good },
            Ping { timeout_ns: u64::MAX, ..good },
        ] {
            assert!(matches!(ping(&bad, &mut quiet), Err(Error::Parameter { .. })), "{bad:?}");
        }
    }
}
