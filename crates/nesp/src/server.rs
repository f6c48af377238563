//! The emulator's side: sessions, and detection of new requests.
//!
//! A client first sends a hello and is assigned a number that is unique in this start of the emulator. The
//! keys of its messages derive from the number and from a random number of the start, so that recordings of
//! another session or from before a restart are not authentic. A hello creates no state, however often it is
//! replayed: a session is stored from its first authentic request on. If there is no room for it, the session
//! that was idle for longest ends, and all numbers up to its own become invalid.

use crate::body::{Answer, Operation, Request, Status, Welcome};
use crate::group::{Group, GroupState, add};
use crate::item::{ErrorCode, Item, Items};
use crate::key::TAG;
use crate::key::{Key, MacKey};
use crate::message::{Message, MessageKind, seal};
use crate::window::{Freshness, Window};
use std::collections::VecDeque;

/// Words of a session's replay window: 64 numbers.
const WINDOW: usize = 2;
/// Sessions that are kept.
const MOST_SESSIONS: usize = 32;
/// Answers that each session stores for retransmissions.
const MOST_ANSWERS: usize = 16;

/// Counters of received messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Hellos that were answered.
    pub hellos: u64,
    /// New requests and parts.
    pub requests: u64,
    /// Repeated requests that got the same answer again: retransmissions, or replays of them.
    pub repeated: u64,
    /// Authentic requests that were repeated, or too old to decide, and were not answered.
    pub replayed: u64,
    /// Messages whose authenticator was wrong.
    pub bad_authenticator: u64,
    /// Requests of unknown or ended sessions.
    pub unknown_session: u64,
    /// Invalid messages.
    pub malformed: u64,
}

/// A new authentic request with all its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    session: u64,
    sequence: u32,
    tag: [u8; TAG],
    /// The operation.
    pub operation: Operation,
    /// Execution time; 0 for at once.
    pub time: u64,
    /// Its objects and settings.
    pub items: Items<'static>,
}

/// Result of receiving a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to do; it was counted.
    Nothing,
    /// A reply to be sent.
    Reply(Vec<u8>),
    /// A job to be executed and [`Server::finish`]ed before the next message.
    Work(Job),
}

struct Session {
    number: u64,
    requests: MacKey,
    answers: MacKey,
    window: Window<WINDOW>,
    group: Option<Group>,
    /// The last answers, by number and authenticator of the request.
    given: VecDeque<(u32, [u8; TAG], Vec<u8>)>,
}

/// See the module.
pub struct Server {
    key: Key,
    hello: MacKey,
    welcome: MacKey,
    instance: [u8; 16],
    /// The longest idle ones first.
    sessions: Vec<Session>,
    /// Number of sessions offered.
    offered: u64,
    /// The highest number of a session that has ended.
    ended: u64,
    counters: Counters,
}

impl Server {
    /// A server that shares `key` with its clients; `instance` is a random number of this start.
    pub fn new(key: Key, instance: [u8; 16]) -> Self {
        let (hello, welcome) = (key.of_hello(), key.of_welcome());
        let counters = Counters::default();
        Self { key, hello, welcome, instance, sessions: Vec::new(), offered: 0, ended: 0, counters }
    }

    /// Counters so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Handles a message that came at `now`, in nanoseconds from the start of the run.
    pub fn receive(&mut self, bytes: &[u8], now: u64) -> Outcome {
        let Ok(message) = Message::read(bytes) else { return self.malformed() };
        match message.kind {
            MessageKind::Hello => self.greet(&message, now),
            MessageKind::Request => self.request(&message, now),
            // Messages of servers: an echo, or another emulator's.
            MessageKind::Welcome | MessageKind::Answer => self.malformed(),
        }
    }

    fn malformed(&mut self) -> Outcome {
        self.counters.malformed += 1;
        Outcome::Nothing
    }

    fn greet(&mut self, message: &Message<'_>, time: u64) -> Outcome {
        if !message.is_signed_with(&self.hello) {
            self.counters.bad_authenticator += 1;
            return Outcome::Nothing;
        }
        let Ok(nonce) = message.body.try_into() else { return self.malformed() };
        self.counters.hellos += 1;
        self.offered += 1;
        let body = Welcome { nonce, instance: self.instance, time }.write();
        let sealed = seal(MessageKind::Welcome, self.offered, 0, &body, &self.welcome);
        sealed.map_or(Outcome::Nothing, Outcome::Reply)
    }

    fn request(&mut self, message: &Message<'_>, now: u64) -> Outcome {
        let known = self.sessions.iter().position(|session| session.number == message.session);
        if known.is_none() && !(self.ended + 1..=self.offered).contains(&message.session) {
            self.counters.unknown_session += 1;
            return Outcome::Nothing;
        }
        let authentic = match known {
            Some(at) => message.is_signed_with(&self.sessions[at].requests).then(|| self.sessions.remove(at)),
            None => self.begin(message),
        };
        let Some(mut session) = authentic else {
            self.counters.bad_authenticator += 1;
            return Outcome::Nothing;
        };
        let outcome = session.take(message, now, &mut self.counters);
        self.sessions.push(session);
        outcome
    }

    /// A session that begins with this request, if it is authentic.
    fn begin(&mut self, message: &Message<'_>) -> Option<Session> {
        let requests = self.key.of_requests(&self.instance, message.session);
        if !message.is_signed_with(&requests) {
            return None;
        }
        if self.sessions.len() == MOST_SESSIONS {
            self.ended = self.ended.max(self.sessions.remove(0).number);
        }
        Some(Session {
            number: message.session,
            requests,
            answers: self.key.of_answers(&self.instance, message.session),
            window: Window::default(),
            group: None,
            given: VecDeque::new(),
        })
    }

    /// Makes the answer to a job, which is stored for retransmissions of the request.
    pub fn finish(&mut self, job: &Job, answer: &Answer<'_>) -> Option<Vec<u8>> {
        let session = self.sessions.iter_mut().find(|session| session.number == job.session)?;
        session.answer(job.sequence, job.tag, answer)
    }
}

impl Session {
    /// Handles an authentic request.
    fn take(&mut self, message: &Message<'_>, now: u64, counters: &mut Counters) -> Outcome {
        let freshness = self.window.look(message.sequence.into());
        if freshness != Freshness::New {
            let same = |(number, tag, _): &&(u32, _, _)| *number == message.sequence && tag == message.tag;
            let given = self.given.iter().find(same).filter(|_| freshness == Freshness::Repeated);
            let Some((_, _, given)) = given else {
                counters.replayed += 1;
                return Outcome::Nothing;
            };
            counters.repeated += 1;
            return Outcome::Reply(given.clone());
        }
        self.window.note(message.sequence.into());
        let Ok(request) = Request::read(message.body) else {
            counters.malformed += 1;
            let why = "the request breaks the rules of NESP";
            return self.refuse(message, now, ErrorCode::BadRequest, why);
        };
        counters.requests += 1;
        let (operation, time) = (request.operation, request.time);
        match add(&mut self.group, request, now) {
            GroupState::Whole(items) => {
                let (session, sequence, tag) = (self.number, message.sequence, *message.tag);
                Outcome::Work(Job { session, sequence, tag, operation, time, items })
            }
            GroupState::Partial => {
                let answer = Answer { status: Status::Partial, time: now, items: Vec::new() };
                self.answer(message.sequence, *message.tag, &answer).map_or(Outcome::Nothing, Outcome::Reply)
            }
            GroupState::Refused(code, why) => self.refuse(message, now, code, why),
        }
    }

    fn refuse(&mut self, message: &Message<'_>, time: u64, code: ErrorCode, why: &'static str) -> Outcome {
        let answer = Answer { status: Status::Refused, time, items: vec![Item::Error(code, why.into())] };
        self.answer(message.sequence, *message.tag, &answer).map_or(Outcome::Nothing, Outcome::Reply)
    }

    fn answer(&mut self, sequence: u32, tag: [u8; TAG], answer: &Answer<'_>) -> Option<Vec<u8>> {
        let sealed = seal(MessageKind::Answer, self.number, sequence, &answer.write(), &self.answers)?;
        if self.given.len() == MOST_ANSWERS {
            self.given.pop_front();
        }
        self.given.push_back((sequence, tag, sealed.clone()));
        Some(sealed)
    }
}
