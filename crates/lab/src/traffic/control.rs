//! The control connection: lines of JSON announce a measurement, accept it, and report its end and its
//! result.
//!
//! ```text
//! sender                                   receiver
//! {"longwire":1,"clock":…,"test":{…}}  ──►  checks it, opens its sockets
//!                                      ◄──  {"ready":{"port":40000,"flow":77,…}}   or {"refused":"why"}
//!            … packets, or connections, to that port …
//! {"sent":2000}                        ──►
//!                                      ◄──  {"udp":{…}}   or the result of another kind
//! ```
//!
//! Lines are bounded, every wait has an end, and every number is checked before anything is allocated for it.

use super::clock::ClockId;
use super::goodput::BulkReception;
use super::socket::{self, TICK_NS};
use super::tally::UdpReception;
use super::{Error, Layer, Result};
use longwire_clock::monotonic;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// The port on which a receiver listens unless told otherwise.
pub const DEFAULT_PORT: u16 = 5309;

/// Version of this protocol.
const PROTOCOL: u32 = 1;
/// The longest line that a receiver accepts.
pub(super) const SENDER_LINE: usize = 4 << 10;
/// The longest line that a sender accepts: results with their intervals.
const RESULT_LINE: usize = 512 << 10;

/// A receiver's addresses and time limit.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    /// Address and control port.
    pub address: SocketAddr,
    /// The destination of packets and data connections, if not the receiver's address and the port that it
    /// names: a relay, a forwarded port.
    pub data: Option<SocketAddr>,
    /// Time limit for each of its answers; more than the path's round-trip time.
    pub patience: Duration,
}

impl Receiver {
    /// A receiver at this address, with a time limit of 30 s.
    pub fn at(address: SocketAddr) -> Self {
        Self { address, data: None, patience: Duration::from_secs(30) }
    }
}

/// A sender's first message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub longwire: u32,
    pub clock: ClockId,
    pub test: Test,
}

/// The measurement.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Test {
    Udp(UdpOffer),
    Bulk(BulkOffer),
    Request(RequestOffer),
}

/// A stream's parameters for the receiver.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UdpOffer {
    pub packets: u64,
    pub layer: Layer,
    pub quiet_ns: u64,
}

/// A transfer's parameters for the receiver.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkOffer {
    pub streams: u32,
    pub interval_ns: u64,
    pub duration_ns: Option<u64>,
}

/// Requests' parameters for the receiver.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestOffer {
    pub transport: Transport,
    pub request: usize,
    pub response: usize,
}

/// The transport of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A datagram for each; lost ones time out.
    Udp,
    /// One connection; nothing is lost, and a timeout ends the measurement.
    Tcp,
}

/// A sender's last message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    pub sent: u64,
}

/// A receiver's message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Ready(Ready),
    Refused(String),
    Udp(Box<UdpReception>),
    Bulk(BulkReception),
    Request(u64),
}

/// The receiver's port and flow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    pub port: u16,
    pub flow: u32,
}

/// One end of a control connection.
#[derive(Debug)]
pub(super) struct Control {
    pub stream: TcpStream,
    line: Vec<u8>,
    limit: usize,
}

impl Control {
    pub fn new(stream: TcpStream, limit: usize) -> Result<Self> {
        stream.set_nodelay(true).map_err(Error::system("setting up the control connection"))?;
        Ok(Self { stream, line: Vec::with_capacity(limit), limit })
    }

    /// Connects to a receiver, offers a measurement, and waits until it is ready; returns where to send.
    pub fn offer(receiver: &Receiver, test: Test) -> Result<(Self, SocketAddr, Ready)> {
        let doing = || format!("connecting to the receiver at {}", receiver.address);
        let stream = TcpStream::connect_timeout(&receiver.address, receiver.patience).map_err(|source| {
            Error::System {
                doing: doing(),
                source,
                fix: "; start `longwire traffic receive` there, and let its port through",
            }
        })?;
        let mut control = Self::new(stream, RESULT_LINE)?;
        control.write(&Hello { longwire: PROTOCOL, clock: ClockId::this(), test })?;
        match control.read("answer to the offer", receiver.patience)? {
            Answer::Ready(ready) => {
                let mut to = receiver.address;
                to.set_port(ready.port);
                Ok((control, receiver.data.unwrap_or(to), ready))
            }
            Answer::Refused(why) => Err(Error::Refused(why)),
            _ => Err(Error::Protocol("a result before the measurement".into())),
        }
    }

    /// Reads a sender's first line; `stopped` is polled about five times a second.
    pub fn hello(&mut self, patience: Duration, stopped: &dyn Fn() -> bool) -> Result<Hello> {
        let mut tick = |_: u64| if stopped() { Err(Error::Stopped) } else { Ok(()) };
        let hello: Hello = self.read_within("offer", patience, &mut tick)?;
        if hello.longwire != PROTOCOL {
            return Err(Error::Protocol(format!("version {} instead of {PROTOCOL}", hello.longwire)));
        }
        Ok(hello)
    }

    pub fn write(&mut self, message: &impl Serialize) -> Result<()> {
        let failed = || Error::system("writing to the control connection");
        let mut line = serde_json::to_vec(message).map_err(|error| failed()(error.into()))?;
        line.push(b'\n');
        self.stream.set_write_timeout(Some(Duration::from_secs(30))).map_err(failed())?;
        self.stream.write_all(&line).map_err(failed())
    }

    /// Waits for a line, at most for `patience`.
    pub fn read<T: DeserializeOwned>(&mut self, what: &'static str, patience: Duration) -> Result<T> {
        self.read_within(what, patience, &mut |_| Ok(()))
    }

    /// Waits for a line, at most for `patience`, calling `tick` about five times a second.
    fn read_within<T: DeserializeOwned>(
        &mut self,
        what: &'static str,
        patience: Duration,
        tick: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<T> {
        let end = monotonic().0.saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        self.read_until(what, end, tick)?.ok_or(Error::Silent { what, after: patience })
    }

    /// Waits for a line until the monotonic clock shows `end`, calling `tick` about five times a second; none
    /// if no line came.
    pub fn read_until<T: DeserializeOwned>(
        &mut self,
        what: &'static str,
        end: u64,
        tick: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Option<T>> {
        loop {
            if let Some(message) = self.line(what)? {
                return Ok(Some(message));
            }
            let now = monotonic().0;
            if now >= end {
                return Ok(None);
            }
            tick(now)?;
            let mut wait = [socket::interest(&self.stream, libc::POLLIN)];
            socket::poll(&mut wait, TICK_NS.min(end - now))
                .map_err(Error::system("waiting for the other side"))?;
            if wait[0].revents != 0 {
                self.fill(what)?;
            }
        }
    }

    /// Reads from the connection, which must be readable so that this does not block.
    pub fn fill(&mut self, what: &'static str) -> Result<()> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Error::Ended(what)),
            Ok(count) if self.line.len() + count > self.limit => {
                Err(Error::Protocol(format!("a line of more than {} bytes", self.limit)))
            }
            Ok(count) => {
                self.line.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) if socket::is_passing(&error) => Ok(()),
            Err(error) => Err(Error::system(format!("waiting for the {what}"))(error)),
        }
    }

    /// The next complete line.
    pub fn line<T: DeserializeOwned>(&mut self, what: &'static str) -> Result<Option<T>> {
        let Some(end) = self.line.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let message = serde_json::from_slice(&self.line[..end]);
        self.line.drain(..=end);
        message.map(Some).map_err(|error| Error::Protocol(format!("the {what} cannot be read ({error})")))
    }

    /// The other side's address on the connection.
    pub fn peer(&self) -> Result<IpAddr> {
        let address = self.stream.peer_addr().map_err(Error::system("asking for the sender's address"))?;
        Ok(socket::canonical(address).ip())
    }

    /// This side's address on the connection with any port.
    pub fn local(&self) -> Result<SocketAddr> {
        let mut address = socket::canonical(
            self.stream.local_addr().map_err(Error::system("asking for the local address"))?,
        );
        address.set_port(0);
        Ok(address)
    }
}
