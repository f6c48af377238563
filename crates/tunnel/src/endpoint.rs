//! One end of a tunnel: finds its peer, keeps a session and the offset of the clocks, seals and opens frames.
//!
//! Both ends do the same. An end has a fresh salt for the next session, and tells it in hellos. A hello that
//! repeats this salt was made by somebody who has the key after the salt was made: both salts then make a
//! session, and the next one has another salt. So a recorded hello begins no session.

use crate::clock_offset::{ClockOffset, Exchange};
use crate::message::{BadHello, Echo, HEADER, Hello, Kind, Message, OVERHEAD, Probe, STAMP, Salt};
use crate::session::{Refusal, Session};
use longwire_nesp::{Key, MacKey, TAG};

const MILLI: u64 = 1_000_000;
/// Time between hellos while there is no session.
const HELLO_EVERY: u64 = 100 * MILLI;
/// Time between probes, and between the first ones of a session.
const PROBE_EVERY: u64 = 25 * MILLI;
const FIRST_PROBES_EVERY: u64 = MILLI;
const FIRST_PROBES: u32 = 8;
/// A peer that was silent for so long is gone.
const SILENCE: u64 = 2_000 * MILLI;

/// Counters of received messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Sessions so far.
    pub sessions: u64,
    /// Messages lost on the way: later ones came.
    pub lost: u64,
    /// Messages that later ones overtook.
    pub reordered: u64,
    /// Messages that were received before, or are too old to tell.
    pub replayed: u64,
    /// Messages whose authenticator is wrong.
    pub forged: u64,
    /// Messages that break the rules of the protocol.
    pub malformed: u64,
    /// Messages of no session, or of an ended one.
    pub other_session: u64,
    /// Hellos of another version.
    pub other_version: u64,
    /// How often one of the clocks was set, or stood still.
    pub clock_jumps: u64,
}

/// The state of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Whether frames can be sent.
    pub is_connected: bool,
    /// Counters so far.
    pub counters: Counters,
    /// The least round trip of late.
    pub round_trip: Option<u64>,
    /// The peer's clock minus the own clock.
    pub offset: Option<i64>,
    /// The largest possible error of the offset.
    pub clock_error: Option<u64>,
    /// The peer's version, if it is another.
    pub other_version: Option<u8>,
}

/// What a message brought.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageEvent<'m> {
    /// Nothing to do; it was counted.
    Nothing,
    /// A message to be sent.
    Reply(Message),
    /// A probe, to be answered at once: see [`Endpoint::echo`].
    Probe(Probe),
    /// An Ethernet frame.
    Frame {
        /// When it left the peer, on the own clock; none if the offset of the clocks is not known yet.
        stamp: Option<u64>,
        /// Its bytes.
        frame: &'m [u8],
    },
}

/// See the module.
#[derive(Debug)]
pub struct Endpoint {
    key: Key,
    hello: MacKey,
    /// A random number of this start, which makes the salts.
    random: [u8; 32],
    salts: u64,
    /// The salt of the next session.
    pending: Salt,
    session: Option<Session>,
    clock: ClockOffset,
    /// When the last authentic message of the session came.
    heard: u64,
    next_hello: u64,
    next_probe: u64,
    /// Probes sent in this session.
    probes: u32,
    /// Of ended sessions, and of messages of no session.
    counters: Counters,
    other_version: Option<u8>,
}

impl Endpoint {
    /// An end that shares `key` with its peer. `random` is a random number of this start.
    pub fn new(key: Key, random: [u8; 32]) -> Self {
        let hello = key.derive(&[b"LWT hello"]);
        let mut end = Self {
            key,
            hello,
            random,
            salts: 0,
            pending: Salt::default(),
            session: None,
            clock: ClockOffset::default(),
            heard: 0,
            next_hello: 0,
            next_probe: 0,
            probes: 0,
            counters: Counters::default(),
            other_version: None,
        };
        end.renew_salt();
        end
    }

    fn renew_salt(&mut self) {
        self.salts += 1;
        let secret = self.key.secret(&[b"LWT salt", &self.random, &self.salts.to_be_bytes()]);
        self.pending.copy_from_slice(&secret[..size_of::<Salt>()]);
    }

    /// Whether frames can be sent: there is a session, and the offset of the clocks is known.
    #[inline]
    pub fn is_connected(&self) -> bool {
        self.session.is_some() && self.clock.offset().is_some()
    }

    /// The next message to be sent at `now`, if one is due; to be called until none is.
    pub fn due(&mut self, now: u64) -> Option<Message> {
        if self.session.is_some() && now.saturating_sub(self.heard) > SILENCE {
            self.end_session();
        }
        let Some(session) = &mut self.session else {
            if now < self.next_hello {
                return None;
            }
            self.next_hello = now + HELLO_EVERY;
            return Some(Hello { own: self.pending, echo: None }.write(&self.hello));
        };
        if now < self.next_probe {
            return None;
        }
        self.probes = self.probes.saturating_add(1);
        self.next_probe = now + if self.probes < FIRST_PROBES { FIRST_PROBES_EVERY } else { PROBE_EVERY };
        sealed(session, Kind::Probe, &now.to_be_bytes())
    }

    /// When the next message is due.
    pub fn next_due(&self) -> u64 {
        if self.session.is_some() { self.next_probe.min(self.heard + SILENCE) } else { self.next_hello }
    }

    /// The answer to a probe, sent at `now`.
    pub fn echo(&mut self, probe: Probe, now: u64) -> Option<Message> {
        let echo = Echo { sent: probe.sent, came: probe.came, answered: now };
        sealed(self.session.as_mut()?, Kind::Echo, &echo.write())
    }

    /// Writes a frame that left at `stamp`, on the own clock, as a message into `place`; returns its length.
    /// None if the end is not connected, or `place` has no room.
    #[inline]
    pub fn seal(&mut self, stamp: u64, frame: &[u8], place: &mut [u8]) -> Option<usize> {
        let length = frame.len() + OVERHEAD;
        let message = place.get_mut(..length)?;
        let session = self.session.as_mut().filter(|_| self.clock.offset().is_some())?;
        message[HEADER..HEADER + STAMP].copy_from_slice(&stamp.to_be_bytes());
        message[HEADER + STAMP..length - TAG].copy_from_slice(frame);
        session.seal(Kind::Frame, message)?;
        Some(length)
    }

    /// Handles a message that came at `at`, and opens it in place.
    #[inline]
    pub fn receive<'m>(&mut self, message: &'m mut [u8], at: u64) -> MessageEvent<'m> {
        if Hello::is_one(message) {
            return self.take_hello(message, at).map_or(MessageEvent::Nothing, MessageEvent::Reply);
        }
        let opened = match &mut self.session {
            Some(session) => session.open(message),
            None => Err(Refusal::OtherSession),
        };
        let (kind, body) = match opened {
            Ok(opened) => opened,
            Err(refusal) => return self.refuse(refusal),
        };
        self.heard = self.heard.max(at);
        match kind {
            Kind::Frame => match body.split_first_chunk::<STAMP>() {
                Some((stamp, frame)) => {
                    MessageEvent::Frame { stamp: self.clock.to_own(u64::from_be_bytes(*stamp)), frame }
                }
                None => self.refuse(Refusal::Malformed),
            },
            Kind::Probe => match <[u8; 8]>::try_from(body) {
                Ok(sent) => MessageEvent::Probe(Probe { sent: u64::from_be_bytes(sent), came: at }),
                Err(_) => self.refuse(Refusal::Malformed),
            },
            Kind::Echo => match Echo::read(body) {
                Some(Echo { sent, came, answered }) => {
                    self.clock.add(&Exchange { sent, came, answered, back: at });
                    MessageEvent::Nothing
                }
                None => self.refuse(Refusal::Malformed),
            },
            Kind::Hello => self.refuse(Refusal::Malformed),
        }
    }

    #[cold]
    fn refuse(&mut self, refusal: Refusal) -> MessageEvent<'static> {
        let count = match refusal {
            Refusal::Malformed => &mut self.counters.malformed,
            Refusal::OtherSession => &mut self.counters.other_session,
            Refusal::Replayed => &mut self.counters.replayed,
            Refusal::Forged => &mut self.counters.forged,
        };
        *count += 1;
        MessageEvent::Nothing
    }

    #[cold]
    fn take_hello(&mut self, message: &[u8], at: u64) -> Option<Message> {
        let hello = match Hello::read(message, &self.hello) {
            Ok(hello) => hello,
            Err(bad) => {
                match bad {
                    BadHello::Malformed => self.counters.malformed += 1,
                    BadHello::Forged => self.counters.forged += 1,
                    BadHello::Version(version) => {
                        self.counters.other_version += 1;
                        self.other_version = Some(version);
                    }
                }
                return None;
            }
        };
        let own = self.session.as_ref().map(|session| session.own);
        if hello.own == self.pending || Some(hello.own) == own {
            // The own hello, sent back.
            self.counters.replayed += 1;
            return None;
        }
        self.other_version = None;
        let answer = |own, echo| Some(Hello { own, echo: Some(echo) }.write(&self.hello));
        match (&self.session, hello.echo) {
            // The peer missed the last answer.
            (Some(session), None) if session.peer == hello.own => answer(session.own, hello.own),
            (_, None) => answer(self.pending, hello.own),
            (_, Some(echo)) if echo == self.pending => {
                let answer = answer(self.pending, hello.own);
                self.begin_session(hello.own, at);
                answer
            }
            // The last answer, repeated.
            (Some(session), Some(echo)) if session.peer == hello.own && session.own == echo => None,
            (_, Some(_)) => {
                self.counters.replayed += 1;
                None
            }
        }
    }

    fn begin_session(&mut self, peer: Salt, at: u64) {
        self.end_session();
        self.session = Some(Session::new(&self.key, self.pending, peer));
        self.renew_salt();
        self.counters.sessions += 1;
        (self.heard, self.next_probe, self.probes) = (at, at, 0);
        self.next_hello = 0;
    }

    fn end_session(&mut self) {
        if let Some(session) = self.session.take() {
            self.counters.lost += session.lost();
            self.counters.reordered += session.reordered;
        }
        self.clock.forget();
    }

    /// The state at `now`.
    pub fn status(&self, now: u64) -> Status {
        let (lost, reordered) =
            self.session.as_ref().map_or((0, 0), |session| (session.lost(), session.reordered));
        let counters = Counters {
            lost: self.counters.lost + lost,
            reordered: self.counters.reordered + reordered,
            clock_jumps: self.clock.jumps(),
            ..self.counters
        };
        Status {
            is_connected: self.is_connected(),
            counters,
            round_trip: self.clock.round_trip(),
            offset: self.clock.offset(),
            clock_error: self.clock.error(now),
            other_version: self.other_version,
        }
    }
}

/// A short sealed message.
fn sealed(session: &mut Session, kind: Kind, body: &[u8]) -> Option<Message> {
    let mut message = Message::of(&[&[0; HEADER], body, &[0; TAG]]);
    session.seal(kind, message.as_mut_slice())?;
    Some(message)
}

#[cfg(test)]
mod tests;
