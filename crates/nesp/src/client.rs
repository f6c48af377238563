//! The client: a session, and the answers to its requests.

use crate::body::{Answer, Request, Status, Welcome};
use crate::item::{ErrorCode, Item};
use crate::key::{Key, MacKey};
use crate::message::{Message, MessageKind, seal};
use thiserror::Error;

/// A client before and in its session. Messages are passed as bytes.
pub struct Client {
    key: Key,
    nonce: [u8; 16],
    session: Option<Session>,
    group: u32,
}

struct Session {
    number: u64,
    requests: MacKey,
    answers: MacKey,
    sequence: u32,
}

/// A request that was refused, with the emulator's reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct RequestRefusal {
    /// Kind of reason.
    pub code: ErrorCode,
    /// The reason.
    pub why: String,
}

impl Client {
    /// A client without a session; `nonce` is random.
    pub const fn new(key: Key, nonce: [u8; 16]) -> Self {
        Self { key, nonce, session: None, group: 0 }
    }

    /// The message that requests a session.
    pub fn hello(&self) -> Vec<u8> {
        let sealed = seal(MessageKind::Hello, 0, 0, &self.nonce, &self.key.of_hello());
        sealed.unwrap_or_else(|| unreachable!("a hello is short"))
    }

    /// Accepts the welcome to this client's hello; none for any other message.
    pub fn take_welcome(&mut self, bytes: &[u8]) -> Option<Welcome> {
        let message = Message::open(bytes, MessageKind::Welcome, &self.key.of_welcome())?;
        let welcome = Welcome::read(message.body).ok().filter(|welcome| welcome.nonce == self.nonce)?;
        self.session = Some(Session {
            number: message.session,
            requests: self.key.of_requests(&welcome.instance, message.session),
            answers: self.key.of_answers(&welcome.instance, message.session),
            sequence: 0,
        });
        Some(welcome)
    }

    /// The number of a new group.
    pub const fn next_group(&mut self) -> u32 {
        self.group += 1;
        self.group
    }

    /// The next message of the session; none without a session, or if the request is too long. Sending it
    /// again is a retransmission.
    pub fn request(&mut self, request: &Request<'_>) -> Option<Vec<u8>> {
        let session = self.session.as_mut()?;
        session.sequence = session.sequence.checked_add(1)?;
        seal(MessageKind::Request, session.number, session.sequence, &request.write(), &session.requests)
    }

    /// The answer to the last request, if the bytes are one.
    pub fn take_answer<'b>(&self, bytes: &'b [u8]) -> Option<Answer<'b>> {
        let session = self.session.as_ref()?;
        let message = Message::open(bytes, MessageKind::Answer, &session.answers)?;
        let expected = (message.session, message.sequence) == (session.number, session.sequence);
        Answer::read(message.body).ok().filter(|_| expected)
    }
}

impl Answer<'_> {
    /// The reason, if it was refused.
    pub fn refusal(&self) -> Option<RequestRefusal> {
        if self.status != Status::Refused {
            return None;
        }
        let reason = self.items.iter().find_map(|item| match item {
            Item::Error(code, why) => Some(RequestRefusal { code: *code, why: why.clone().into_owned() }),
            _ => None,
        });
        Some(reason.unwrap_or_else(|| RequestRefusal {
            code: ErrorCode::BadRequest,
            why: "no reason was given".into(),
        }))
    }
}
