//! Requests and their responses, over UDP or TCP, several at a time.

use super::bulk::{CONNECT_NS, accept};
use super::control::{Answer, Control, End, Ready, Receiver, RequestOffer, Test};
use super::header::{HEADER_BYTES, Header};
use super::socket::{self, TICK_NS};
use super::spread::{Distribution, Spread};
use super::udp::{IDLE_NS, connected};
use super::{Error, MAX_DURATION_NS, MAX_PACKETS, OnProgress, Reporter, Result, StopAfter, check};
use longwire_clock::monotonic;
use rustix::net::{self, RecvFlags, SendFlags};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

pub use super::control::Transport;

/// Most outstanding requests.
pub const MAX_OUTSTANDING: u32 = 1024;
/// The largest request or response: the limit of UDP over IPv4.
pub const MAX_BYTES: usize = super::udp::MAX_PAYLOAD;

/// Requested exchanges. A new request is sent as soon as one is answered or times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Their transport.
    pub transport: Transport,
    /// Bytes of a request, 18 to [`MAX_BYTES`].
    pub request: usize,
    /// Bytes of a response, 18 to [`MAX_BYTES`].
    pub response: usize,
    /// Number of outstanding requests, 1 to [`MAX_OUTSTANDING`].
    pub outstanding: u32,
    /// When to stop.
    pub until: StopAfter,
    /// Timeout of a request in nanoseconds; more than the path's round-trip time.
    pub timeout_ns: u64,
}

impl Requests {
    /// One at a time, 64 bytes each way, with a timeout of a second.
    pub fn new(transport: Transport, until: StopAfter) -> Self {
        Self { transport, request: 64, response: 64, outstanding: 1, until, timeout_ns: 1_000_000_000 }
    }
}

/// The results of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestResult {
    /// The request.
    pub requests: Requests,
    /// Requests sent.
    pub sent: u64,
    /// Requests that the receiver answered.
    pub answered: u64,
    /// Responses received in time.
    pub completed: u64,
    /// Requests that timed out.
    pub lost: u64,
    /// Responses to requests that had timed out or were already answered, and foreign packets.
    pub stray: u64,
    /// From first request to last response, in nanoseconds.
    pub span_ns: u64,
    /// Time from sending a request to having read the whole response, as a program sees it.
    pub latency: Option<Distribution>,
}

impl RequestResult {
    /// Completed requests per second.
    pub fn per_second(&self) -> Option<f64> {
        (self.span_ns > 0).then(|| self.completed as f64 * 1e9 / self.span_ns as f64)
    }
}

/// Makes requests to a receiver, and returns their latencies.
///
/// # Errors
/// A parameter out of range, a receiver that cannot be reached, refuses, or falls silent, or a progress
/// function that stops.
pub fn send(receiver: &Receiver, requests: &Requests, on_progress: OnProgress<'_>) -> Result<RequestResult> {
    let offer = RequestOffer {
        transport: requests.transport,
        request: requests.request,
        response: requests.response,
    };
    offer.check()?;
    requests.until.check(MAX_PACKETS)?;
    let (outstanding, timeout) = (requests.outstanding, requests.timeout_ns);
    check((1..=MAX_OUTSTANDING).contains(&outstanding), "outstanding", outstanding, "give 1 to 1024")?;
    let is_good = (1..=MAX_DURATION_NS).contains(&timeout);
    check(is_good, "timeout", timeout, "give more than 0 and at most a day")?;
    let (mut control, to, ready) = Control::offer(receiver, Test::Request(offer))?;
    let mut asker = Requester::new(requests, to, ready, receiver.patience)?;
    asker.run(on_progress)?;
    control.write(&End { sent: asker.sent })?;
    let Answer::Request(answered) = control.read("result", receiver.patience)? else {
        return Err(Error::Protocol("a result of another kind".into()));
    };
    Ok(RequestResult {
        requests: *requests,
        sent: asker.sent,
        answered,
        completed: asker.completed,
        lost: asker.lost,
        stray: asker.stray,
        span_ns: asker.last.saturating_sub(asker.first),
        latency: asker.latency.distribution(),
    })
}

/// The requesting side.
struct Requester<'a> {
    requests: &'a Requests,
    /// A connected socket of the transport.
    line: OwnedFd,
    flow: u32,
    /// Outstanding requests: number and time of sending.
    waiting: Vec<(u32, u64)>,
    /// The request being written, and the number of written bytes; TCP may accept it in parts.
    out: Vec<u8>,
    written: usize,
    /// The response being read, and the number of bytes read.
    response: Vec<u8>,
    read: usize,
    sent: u64,
    completed: u64,
    lost: u64,
    stray: u64,
    first: u64,
    last: u64,
    latency: Spread,
}

impl<'a> Requester<'a> {
    fn new(requests: &'a Requests, to: SocketAddr, ready: Ready, patience: Duration) -> Result<Self> {
        let failed = || Error::system(format!("connecting to {to} for requests"));
        let line = match requests.transport {
            Transport::Udp => {
                let socket = connected(to)?;
                socket.set_nonblocking(true).map_err(failed())?;
                socket.into()
            }
            Transport::Tcp => {
                let mut stream = TcpStream::connect_timeout(&to, patience).map_err(failed())?;
                stream.set_nodelay(true).map_err(failed())?;
                let mut greeting = [0; HEADER_BYTES];
                Header { flow: ready.flow, sequence: 0, sent: 0 }.write(&mut greeting);
                stream.write_all(&greeting).map_err(failed())?;
                stream.set_nonblocking(true).map_err(failed())?;
                stream.into()
            }
        };
        Ok(Self {
            requests,
            line,
            flow: ready.flow,
            waiting: Vec::with_capacity(requests.outstanding as usize),
            out: vec![0; requests.request],
            written: requests.request,
            response: vec![0; requests.response],
            read: 0,
            sent: 0,
            completed: 0,
            lost: 0,
            stray: 0,
            first: 0,
            last: 0,
            latency: Spread::new(),
        })
    }

    fn run(&mut self, on_progress: OnProgress<'_>) -> Result<()> {
        let started = monotonic().0;
        let (most, end) = match self.requests.until {
            StopAfter::Count(count) => (count, u64::MAX),
            StopAfter::DurationNs(time) => (MAX_PACKETS, started.saturating_add(time)),
        };
        let mut reporter = Reporter::new(on_progress, started, self.requests.until.duration_ns());
        loop {
            let now = monotonic().0;
            reporter.tell(now, self.completed)?;
            self.give_up(now)?;
            let asking = self.sent < most && now < end;
            if asking {
                self.ask(most)?;
            }
            let writing = self.written < self.out.len();
            if !asking && !writing && self.waiting.is_empty() {
                return Ok(());
            }
            self.wait(now, writing)?;
            self.flush()?;
            self.take()?;
        }
    }

    /// Starts new requests while there is room.
    fn ask(&mut self, most: u64) -> Result<()> {
        while self.sent < most
            && self.waiting.len() < self.requests.outstanding as usize
            && self.written == self.out.len()
        {
            let now = monotonic().0;
            // Numbers stay below MAX_PACKETS.
            let sequence = self.sent as u32;
            Header { flow: self.flow, sequence, sent: now }.write(&mut self.out);
            if self.sent == 0 {
                self.first = now;
            }
            self.written = 0;
            self.sent += 1;
            self.waiting.push((sequence, now));
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the rest of the current request.
    fn flush(&mut self) -> Result<()> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            match net::send(&self.line, rest, SendFlags::NOSIGNAL).map_err(io::Error::from) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if passing(&error) => {}
                Err(error) => return Err(Error::system("sending a request")(error)),
            }
        }
        Ok(())
    }

    fn wait(&self, now: u64, writing: bool) -> Result<()> {
        let oldest = self.waiting.iter().map(|(_, sent)| *sent).min().unwrap_or(now);
        let timeout = (oldest + self.requests.timeout_ns).saturating_sub(now).min(TICK_NS);
        let events = if writing { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        let mut wait = [socket::interest(&self.line, events)];
        socket::poll(&mut wait, timeout).map_err(Error::system("waiting for responses"))
    }

    /// Reads available responses.
    fn take(&mut self) -> Result<()> {
        loop {
            let rest = &mut self.response[self.read..];
            let received = net::recv(&self.line, rest, RecvFlags::empty()).map_err(io::Error::from);
            match (received.map(|(count, _)| count), self.requests.transport) {
                (Ok(0), Transport::Tcp) => return Err(Error::Ended("response")),
                (Ok(count), Transport::Tcp) => {
                    self.read += count;
                    if self.read == self.response.len() {
                        self.read = 0;
                        self.responded(self.response.len());
                    }
                }
                (Ok(count), Transport::Udp) => self.responded(count),
                (Err(error), _) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                (Err(error), _) if passing(&error) => {}
                (Err(error), _) => return Err(Error::system("receiving a response")(error)),
            }
        }
    }

    fn responded(&mut self, length: usize) {
        let now = monotonic().0;
        let header = Header::read(&self.response[..length]).filter(|header| header.flow == self.flow);
        let asked =
            header.and_then(|header| self.waiting.iter().position(|(number, _)| *number == header.sequence));
        let Some(at) = asked.filter(|_| length == self.response.len()) else {
            self.stray += 1;
            return;
        };
        let (_, sent) = self.waiting.swap_remove(at);
        self.completed += 1;
        self.last = now;
        self.latency.record(now.saturating_sub(sent).cast_signed());
    }

    /// Drops requests that have timed out.
    fn give_up(&mut self, now: u64) -> Result<()> {
        let before = self.waiting.len();
        let timeout = self.requests.timeout_ns;
        self.waiting.retain(|(_, sent)| now.saturating_sub(*sent) < timeout);
        let gone = before - self.waiting.len();
        if gone > 0 && self.requests.transport == Transport::Tcp {
            return Err(Error::silent("response", timeout));
        }
        self.lost += gone as u64;
        Ok(())
    }
}

/// Interrupted, or an ICMP error about an earlier packet: the socket still works.
fn passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused)
}

impl RequestOffer {
    /// Checks the parameters.
    pub fn check(&self) -> Result<()> {
        [("request", self.request), ("response", self.response)].into_iter().try_for_each(|(field, bytes)| {
            let is_good = (HEADER_BYTES..=MAX_BYTES).contains(&bytes);
            check(is_good, field, format!("{bytes} bytes"), "give 18 to 65507")
        })
    }

    /// Answers requests until the sender's end; returns their number. `stopped` is polled about five times a
    /// second.
    pub fn answer(&self, control: &mut Control, stopped: &dyn Fn() -> bool) -> Result<u64> {
        let failed = || Error::system("opening a socket for requests");
        let flow = socket::random_u32().map_err(failed())?;
        let local = control.local()?;
        match self.transport {
            Transport::Udp => {
                let socket = UdpSocket::bind(local).map_err(failed())?;
                socket.set_nonblocking(true).map_err(failed())?;
                let port = socket.local_addr().map_err(failed())?.port();
                control.write(&Answer::Ready(Ready { port, flow }))?;
                let mut buffer = vec![0; self.request.max(self.response)];
                let peer = control.peer()?;
                self.serve(&socket, control, stopped, &mut || self.reply(&socket, (peer, flow), &mut buffer))
            }
            Transport::Tcp => {
                let listener = TcpListener::bind(local).map_err(failed())?;
                let port = listener.local_addr().map_err(failed())?.port();
                control.write(&Answer::Ready(Ready { port, flow }))?;
                let end = monotonic().0 + CONNECT_NS;
                let mut stream = loop {
                    if let Some(stream) = accept(&listener, control, flow, end, stopped)? {
                        break stream;
                    }
                };
                stream.set_nodelay(true).map_err(failed())?;
                stream.set_write_timeout(Some(Duration::from_nanos(IDLE_NS))).map_err(failed())?;
                let waiting = stream.try_clone().map_err(failed())?;
                let mut buffer = vec![0; self.request.max(self.response)];
                let mut read = 0;
                self.serve(&waiting, control, stopped, &mut || {
                    self.reply_in_order(&mut stream, flow, &mut buffer, &mut read)
                })
            }
        }
    }

    /// Calls `reply` whenever `socket` is readable; `reply` returns the number of answered requests, or none
    /// at the end of the connection.
    fn serve(
        &self,
        socket: &impl std::os::fd::AsFd,
        control: &mut Control,
        stopped: &dyn Fn() -> bool,
        reply: &mut dyn FnMut() -> Result<Option<u64>>,
    ) -> Result<u64> {
        let mut answered = 0;
        let mut wait =
            [socket::interest(socket, libc::POLLIN), socket::interest(&control.stream, libc::POLLIN)];
        let mut last_heard = monotonic().0;
        loop {
            socket::poll(&mut wait, TICK_NS).map_err(Error::system("waiting for requests"))?;
            let now = monotonic().0;
            if wait[0].revents != 0 {
                match reply()? {
                    Some(count) => {
                        answered += count;
                        last_heard = if count > 0 { now } else { last_heard };
                    }
                    None => (wait[0].fd, wait[0].revents) = (-1, 0),
                }
            }
            if wait[1].revents != 0 {
                control.fill("sender's end")?;
                if control.line::<End>("sender's end")?.is_some() {
                    return Ok(answered);
                }
            }
            if stopped() {
                return Err(Error::Stopped);
            }
            if now.saturating_sub(last_heard) > IDLE_NS {
                return Err(Error::silent("request", IDLE_NS));
            }
        }
    }

    /// Answers a datagram if it is a request of this flow from the address of the control connection. A
    /// response may be thousands of times as large as its request, and UDP addresses can be forged: answering
    /// others would let anyone who knows the flow flood them through this host.
    fn reply(
        &self,
        socket: &UdpSocket,
        (peer, flow): (IpAddr, u32),
        buffer: &mut [u8],
    ) -> Result<Option<u64>> {
        let (length, from) = match socket.recv_from(buffer) {
            Ok(received) => received,
            Err(error) if passing(&error) || error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(0)),
            Err(error) => return Err(Error::system("receiving a request")(error)),
        };
        let ours = Header::read(&buffer[..length]).is_some_and(|header| header.flow == flow);
        if !ours || socket::canonical(from).ip() != peer || length != self.request {
            return Ok(Some(0));
        }
        // A response that this host cannot send is lost like any other.
        Ok(Some(u64::from(socket.send_to(&buffer[..self.response], from).is_ok())))
    }

    /// Reads a part of a request; answers it if it is whole.
    fn reply_in_order(
        &self,
        stream: &mut TcpStream,
        flow: u32,
        buffer: &mut [u8],
        read: &mut usize,
    ) -> Result<Option<u64>> {
        match stream.read(&mut buffer[*read..self.request]) {
            Ok(0) => return Ok(None),
            Ok(count) => *read += count,
            Err(error) if passing(&error) || error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(0)),
            Err(error) => return Err(Error::system("receiving a request")(error)),
        }
        if *read < self.request {
            return Ok(Some(0));
        }
        *read = 0;
        if Header::read(buffer).is_none_or(|header| header.flow != flow) {
            return Err(Error::Protocol("a request that is none".into()));
        }
        stream.write_all(&buffer[..self.response]).map_err(Error::system("sending a response"))?;
        Ok(Some(1))
    }
}
