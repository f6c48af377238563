//! Bodies of the four kinds of messages. A hello's body is only the client's nonce.

use crate::item::{Item, Items, read_all};
use crate::message::{MOST_BODY, Malformed};

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The settings of objects.
    Get,
    /// Changes settings: all named ones, or none.
    Set,
    /// Lists the names of objects, of one kind or of all.
    List,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Get, Self::Set, Self::List];
}

/// A request, or one part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'b> {
    /// The group that it belongs to: the client's number.
    pub group: u32,
    /// Number of the part, from 0.
    pub part: u8,
    /// Number of parts of the group, 1 to [`Request::MOST_PARTS`].
    pub parts: u8,
    /// The operation.
    pub operation: Operation,
    /// Execution time, in nanoseconds from the start of the run; 0 for at once.
    pub time: u64,
    /// Its objects and settings.
    pub items: Items<'b>,
}

/// Result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was executed, or will be at its time.
    Done,
    /// It was refused, and nothing has changed; the first item gives the reason.
    Refused,
    /// This part was received, and others of its group are missing.
    Partial,
}

impl Status {
    const ALL: [Self; 3] = [Self::Done, Self::Refused, Self::Partial];
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<'b> {
    /// The result.
    pub status: Status,
    /// The emulator's time, in nanoseconds from the start of the run: when the change took or takes effect,
    /// else the time of the answer.
    pub time: u64,
    /// The requested items, or the reason of a refusal.
    pub items: Items<'b>,
}

/// A new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// The nonce of the answered hello.
    pub nonce: [u8; 16],
    /// A random number of this start of the emulator, which invalidates earlier recordings.
    pub instance: [u8; 16],
    /// The emulator's time, in nanoseconds from the start of the run.
    pub time: u64,
}

/// Size of a body before its items.
const REQUEST: usize = 16;
const ANSWER: usize = 12;

impl<'b> Request<'b> {
    /// Most parts of a group.
    pub const MOST_PARTS: u8 = 16;
    /// Most bytes for the items of one part.
    pub const ROOM: usize = MOST_BODY - REQUEST;

    /// Parses a body.
    ///
    /// # Errors
    /// If a field or an item is invalid.
    pub fn read(body: &'b [u8]) -> Result<Self, Malformed> {
        let (head, items) = body.split_first_chunk::<REQUEST>().ok_or(Malformed::Short)?;
        let [g0, g1, g2, g3, part, parts, operation, reserved, time @ ..] = *head;
        if parts == 0 || parts > Self::MOST_PARTS || part >= parts {
            return Err(Malformed::Body("the part is none of the parts"));
        }
        let operation = Operation::ALL.into_iter().find(|known| *known as u8 + 1 == operation);
        let operation = operation.ok_or(Malformed::Body("there is no such operation"))?;
        if reserved != 0 {
            return Err(Malformed::Body("a reserved byte is not 0"));
        }
        let items = read_all(items)?;
        if items.iter().any(|item| matches!(item, Item::Error(..))) {
            return Err(Malformed::Body("a request has no errors"));
        }
        let (group, time) = (u32::from_be_bytes([g0, g1, g2, g3]), u64::from_be_bytes(time));
        Ok(Self { group, part, parts, operation, time, items })
    }

    /// The body.
    pub fn write(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.group.to_be_bytes());
        body.extend_from_slice(&[self.part, self.parts, self.operation as u8 + 1, 0]);
        body.extend_from_slice(&self.time.to_be_bytes());
        self.items.iter().for_each(|item| item.write(&mut body));
        body
    }
}

impl<'b> Answer<'b> {
    /// Most bytes for its items.
    pub const ROOM: usize = MOST_BODY - ANSWER;

    /// Parses a body.
    ///
    /// # Errors
    /// If a field or an item is invalid.
    pub fn read(body: &'b [u8]) -> Result<Self, Malformed> {
        let (head, items) = body.split_first_chunk::<ANSWER>().ok_or(Malformed::Short)?;
        let [status, reserved @ .., _, _, _, _, _, _, _, _] = *head;
        let status = Status::ALL.into_iter().find(|known| *known as u8 + 1 == status);
        let status = status.ok_or(Malformed::Body("there is no such status"))?;
        if reserved != [0; 3] {
            return Err(Malformed::Body("a reserved byte is not 0"));
        }
        let time = head.last_chunk().ok_or(Malformed::Short)?;
        Ok(Self { status, time: u64::from_be_bytes(*time), items: read_all(items)? })
    }

    /// The body.
    pub fn write(&self) -> Vec<u8> {
        let mut body = vec![self.status as u8 + 1, 0, 0, 0];
        body.extend_from_slice(&self.time.to_be_bytes());
        self.items.iter().for_each(|item| item.write(&mut body));
        body
    }
}

impl Welcome {
    /// Parses a body.
    ///
    /// # Errors
    /// If it has another length.
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let (nonce, rest) = body.split_first_chunk().ok_or(Malformed::Short)?;
        let (instance, rest) = rest.split_first_chunk().ok_or(Malformed::Short)?;
        let time = rest.try_into().map_err(|_| Malformed::Body("a welcome has another length"))?;
        Ok(Self { nonce: *nonce, instance: *instance, time: u64::from_be_bytes(time) })
    }

    /// The body.
    pub fn write(&self) -> Vec<u8> {
        [&self.nonce[..], &self.instance, &self.time.to_be_bytes()].concat()
    }
}
