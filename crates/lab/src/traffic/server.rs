//! The receiving side, which serves senders one after the other.

use super::bulk::BulkReception;
use super::clock::ClockId;
use super::control::{Answer, Control, Hello, SENDER_LINE, Test};
use super::recording::Recording;
use super::socket::{self, TICK_NS};
use super::tally::UdpReception;
use super::{Error, Result};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time limit for a sender's first message.
const HELLO: Duration = Duration::from_secs(10);

/// Listens for senders and receives what they send.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
}

/// One sender served.
#[derive(Debug)]
pub struct Session {
    /// The peer.
    pub peer: SocketAddr,
    /// Its result, or why it failed.
    pub outcome: Result<SessionOutcome>,
}

/// The result of a measurement, as reported to the sender.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionOutcome {
    /// A UDP stream.
    Udp(Box<UdpReception>),
    /// A bulk transfer.
    Bulk(BulkReception),
    /// Requests, with the number of answered ones.
    Requests(u64),
}

impl Server {
    /// Listens on this address; port 0 means any free one. `[::]` includes IPv4 if the system is set up so.
    ///
    /// # Errors
    /// The address is not this host's, or its port is in use.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).map_err(|source| Error::System {
            doing: format!("listening on {address}"),
            source,
            fix: "; choose another port, or end the receiver that has it",
        })?;
        Ok(Self { listener })
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// The system refuses.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(Error::system("asking for the address"))
    }

    /// Serves senders until `stop` is set, which is noticed within a fifth of a second, and reports each
    /// finished session. A misbehaving sender only ends its own session.
    ///
    /// # Errors
    /// The listening socket fails.
    pub fn serve(&self, stop: &AtomicBool, on_session: &mut dyn FnMut(Session)) -> Result<()> {
        while let Some(session) = self.serve_one(stop)? {
            on_session(session);
        }
        Ok(())
    }

    /// Serves the next sender; none if `stop` was set before one came.
    ///
    /// # Errors
    /// The listening socket fails.
    pub fn serve_one(&self, stop: &AtomicBool) -> Result<Option<Session>> {
        self.serve_one_recorded(stop, None)
    }

    /// Serves the next sender as [`Server::serve_one`] does, and records its UDP packets if there is a
    /// recording.
    ///
    /// # Errors
    /// The listening socket fails.
    pub fn serve_one_recorded(
        &self,
        stop: &AtomicBool,
        recording: Option<&mut Recording>,
    ) -> Result<Option<Session>> {
        let failed = || Error::system("accepting a sender");
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let mut wait = [socket::interest(&self.listener, libc::POLLIN)];
            socket::poll(&mut wait, TICK_NS).map_err(failed())?;
            if wait[0].revents == 0 {
                continue;
            }
            // A sender that left before it was accepted is ignored.
            let Ok((stream, peer)) = self.listener.accept() else { continue };
            let outcome = session(stream, recording, &|| stop.load(Ordering::Relaxed));
            return Ok(Some(Session { peer: socket::canonical(peer), outcome }));
        }
    }
}

fn session(
    stream: TcpStream,
    recording: Option<&mut Recording>,
    stopped: &dyn Fn() -> bool,
) -> Result<SessionOutcome> {
    let mut control = Control::new(stream, SENDER_LINE)?;
    let hello = control.hello(HELLO, stopped);
    let outcome = hello.and_then(|hello| receive(&mut control, &hello, recording, stopped));
    let answer = match &outcome {
        Ok(SessionOutcome::Udp(reception)) => Answer::Udp(reception.clone()),
        Ok(SessionOutcome::Bulk(reception)) => Answer::Bulk(reception.clone()),
        Ok(SessionOutcome::Requests(answered)) => Answer::Request(*answered),
        Err(error) => Answer::Refused(error.to_string()),
    };
    let told = control.write(&answer);
    // The first error is the relevant one.
    outcome.and_then(|outcome| told.map(|()| outcome))
}

fn receive(
    control: &mut Control,
    hello: &Hello,
    recording: Option<&mut Recording>,
    stopped: &dyn Fn() -> bool,
) -> Result<SessionOutcome> {
    let shared_clock = hello.clock.same_as(&ClockId::this());
    match &hello.test {
        Test::Udp(offer) => {
            offer.check()?;
            let reception = offer.receive(control, shared_clock, recording, stopped)?;
            Ok(SessionOutcome::Udp(Box::new(reception)))
        }
        Test::Bulk(offer) => {
            offer.check()?;
            offer.receive(control, stopped).map(SessionOutcome::Bulk)
        }
        Test::Request(offer) => {
            offer.check()?;
            offer.answer(control, stopped).map(SessionOutcome::Requests)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_that_is_to_end_waits_for_no_silent_sender() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let outcome = session(listener.accept().unwrap().0, None, &|| true);
        assert!(matches!(outcome, Err(Error::Stopped)), "{outcome:?}");
    }
}
