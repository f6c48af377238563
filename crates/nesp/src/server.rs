//! The emulator's side: sessions, and which message is a new request.
//!
//! A client has to say hello first, and is given a number that has not been given before in this start of the emulator. The keys of
//! its messages derive from the number and from a random number of the start, so that nothing that was recorded in another session
//! or before a restart is authentic. A hello keeps no state here, however often it is replayed: a session is kept from its first
//! authentic request on. When there is no room for it the session that was quiet for longest ends, and no number up to
//! its own begins a session any more.

use crate::body::{Answer, Operation, Request, Status, Welcome};
use crate::group::{Assembled, Group, add};
use crate::item::{ErrorCode, Item, Items};
use crate::key::TAG;
use crate::key::{Key, MacKey};
use crate::message::{Message, MessageKind, seal};
use crate::window::{Freshness, Window};
use std::collections::VecDeque;

/// Sessions that are kept.
const MOST_SESSIONS: usize = 32;
/// Answers that each session keeps for retransmissions.
const MOST_ANSWERS: usize = 16;

/// What has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Hellos that were answered.
    pub hellos: u64,
    /// Requests, and parts of them, that were new.
    pub requests: u64,
    /// Requests that had come before and were answered as before: retransmissions, or replays of such.
    pub repeated: u64,
    /// Authentic requests that had come before, or are too old to tell, and that were not answered.
    pub replayed: u64,
    /// Messages whose authenticator was wrong.
    pub bad_authenticator: u64,
    /// Requests of sessions that have ended or that never were.
    pub unknown_session: u64,
    /// What is no message of a client, or breaks the rules.
    pub malformed: u64,
}

/// An authentic request that has not come before, with all its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    session: u64,
    sequence: u32,
    tag: [u8; TAG],
    /// What is asked for.
    pub operation: Operation,
    /// When it is to be carried out; 0 for at once.
    pub time: u64,
    /// What is meant.
    pub items: Items<'static>,
}

/// What is to be done about a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing: it was counted.
    Nothing,
    /// This is to be sent back.
    Reply(Vec<u8>),
    /// It is to be carried out, and then [`Server::finish`]ed, before the next message.
    Work(Job),
}

struct Session {
    number: u64,
    requests: MacKey,
    answers: MacKey,
    window: Window,
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
    /// Those that were quiet for longest first.
    sessions: Vec<Session>,
    /// The number of sessions that were offered.
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

    /// What has come.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sees to a message that came at `now`, in nanoseconds from the start of the run.
    pub fn receive(&mut self, bytes: &[u8], now: u64) -> Outcome {
        let Ok(message) = Message::read(bytes) else { return self.malformed() };
        match message.kind {
            MessageKind::Hello => self.greet(&message, now),
            MessageKind::Request => self.request(&message, now),
            // What servers send: an echo, or another emulator's.
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
        let mut session = match known {
            Some(at) if message.is_signed_with(&self.sessions[at].requests) => self.sessions.remove(at),
            Some(_) => {
                self.counters.bad_authenticator += 1;
                return Outcome::Nothing;
            }
            None => match self.begin(message) {
                Some(session) => session,
                None => return Outcome::Nothing,
            },
        };
        let outcome = session.take(message, now, &mut self.counters);
        self.sessions.push(session);
        outcome
    }

    /// A session that begins with this request, if that is authentic.
    fn begin(&mut self, message: &Message<'_>) -> Option<Session> {
        let requests = self.key.of_requests(&self.instance, message.session);
        if !message.is_signed_with(&requests) {
            self.counters.bad_authenticator += 1;
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

    /// The answer to a job, which is kept for retransmissions of the request.
    pub fn finish(&mut self, job: &Job, answer: &Answer<'_>) -> Option<Vec<u8>> {
        let session = self.sessions.iter_mut().find(|session| session.number == job.session)?;
        session.answer(job.sequence, job.tag, answer)
    }
}

impl Session {
    /// Sees to an authentic request.
    fn take(&mut self, message: &Message<'_>, now: u64, counters: &mut Counters) -> Outcome {
        match self.window.look(message.sequence) {
            Freshness::New => {}
            Freshness::Old => {
                counters.replayed += 1;
                return Outcome::Nothing;
            }
            Freshness::Repeated => {
                let same =
                    |(number, tag, _): &&(u32, _, _)| *number == message.sequence && tag == message.tag;
                let Some((_, _, given)) = self.given.iter().find(same) else {
                    counters.replayed += 1;
                    return Outcome::Nothing;
                };
                counters.repeated += 1;
                return Outcome::Reply(given.clone());
            }
        }
        self.window.note(message.sequence);
        let request = match Request::read(message.body) {
            Ok(request) => request,
            Err(_) => {
                counters.malformed += 1;
                return self.refuse(
                    message,
                    now,
                    ErrorCode::BadRequest,
                    "the request breaks the rules of NESP",
                );
            }
        };
        counters.requests += 1;
        let (operation, time) = (request.operation, request.time);
        match add(&mut self.group, request, now) {
            Assembled::Whole(items) => {
                let (session, sequence, tag) = (self.number, message.sequence, *message.tag);
                Outcome::Work(Job { session, sequence, tag, operation, time, items })
            }
            Assembled::Partial => {
                let answer = Answer { status: Status::Partial, time: now, items: Vec::new() };
                self.answer(message.sequence, *message.tag, &answer).map_or(Outcome::Nothing, Outcome::Reply)
            }
            Assembled::Refused(code, why) => self.refuse(message, now, code, why),
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
