//! Client of a control process: attaches a Rust program above a router.
//!
//! ```no_run
//! use longwire_punt::Verdict;
//! use longwire_punt::client::{Control, Event, Hello};
//! # fn main() -> Result<(), longwire_punt::client::ClientError> {
//! let hello = Hello { name: "echo".into(), packets: 10_000, cycles: 500, share: 1 };
//! let mut control = Control::connect("control.sock".as_ref(), &hello)?;
//! loop {
//!     while let Some(event) = control.next()? {
//!         if let Event::Packet(facts, _head) = event {
//!             let (token, port) = (facts.token, facts.in_port);
//!             control.answer(token, Verdict::Send { port, band: None }, &[])?;
//!         }
//!     }
//!     control.flush();
//!     control.wait(std::time::Duration::from_millis(100))?;
//! }
//! # }
//! ```

use crate::cut::CutReason;
use crate::layout::{
    ASLEEP, ENDED, Facts, MAGIC, MAX_FRAME, NOW, Opening, RingSizes, VERSION, Verdict, down, up,
};
use crate::ring::{CorruptRing, LINE_WORDS, Line, Reader, Writer};
use crate::shared::{self, Memory};
use longwire_units::Nanos;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;
use thiserror::Error;

/// Bytes of a reply to a hello, before its text.
pub(crate) const WELCOME: usize = 64;
/// Most bytes of the text in a refusal.
const TEXT: usize = 1024;
/// Most bytes of a name.
const NAME: usize = 32;

/// Identity and request of a control process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The name of its attachment; up to 32 bytes.
    pub name: String,
    /// Requested packets per second.
    pub packets: u64,
    /// Cycles for each packet.
    pub cycles: u64,
    /// Its share of unguaranteed capacity, relative to others.
    pub share: u32,
}

/// Errors of a control process.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The name is too long.
    #[error("the name {0:?} has more than 32 bytes")]
    Name(String),
    /// Error of the socket.
    #[error("the socket of the router: {0}")]
    Socket(#[from] io::Error),
    /// Refused by Longwire.
    #[error("refused: {0}")]
    Refused(String),
    /// Protocol version mismatch.
    #[error("the router does not speak version {VERSION} of the protocol")]
    Version,
    /// Cut off by Longwire, or Longwire has ended.
    #[error("cut off: {}", .0.map_or("the router is gone", CutReason::name))]
    Ended(Option<CutReason>),
    /// Invalid contents of the shared memory.
    #[error(transparent)]
    Broken(#[from] CorruptRing),
    /// More bytes than the longest frame.
    #[error("{0} bytes are more than a frame has")]
    TooLong(usize),
}

/// Events from the router.
#[derive(Debug)]
pub enum Event<'a> {
    /// A packet, with its first bytes: 64, or all.
    Packet(Facts, &'a [u8]),
    /// Requested bytes of a packet: its token, their offset, and the bytes; empty if it is no longer up.
    Body(u64, u32, &'a [u8]),
}

/// A control process attached to a router.
#[derive(Debug)]
pub struct Control {
    socket: UnixStream,
    memory: Arc<Memory>,
    up: Reader,
    down: Writer,
    bytes: Vec<u8>,
}

impl Control {
    /// Attaches to a router.
    ///
    /// # Errors
    /// Nobody listens on `path`, the name is unknown or taken, or the request does not fit.
    pub fn connect(path: &Path, hello: &Hello) -> Result<Self, ClientError> {
        let socket = UnixStream::connect(path)?;
        shared::send(&socket, &hello.bytes()?, None)?;
        let mut welcome = [0; WELCOME];
        let (mut count, fd) = shared::receive(&socket, &mut welcome)?;
        while count < WELCOME {
            match (&socket).read(&mut welcome[count..])? {
                0 => return Err(ClientError::Ended(None)),
                more => count += more,
            }
        }
        let Welcome { is_refused, text } = Welcome::read(&welcome).ok_or(ClientError::Version)?;
        if is_refused {
            let mut why = vec![0; text.min(TEXT)];
            (&socket).read_exact(&mut why)?;
            return Err(ClientError::Refused(String::from_utf8_lossy(&why).into_owned()));
        }
        let memory = Arc::new(Memory::open(fd.ok_or(ClientError::Version)?)?);
        let words = memory.words();
        let line: Line =
            std::array::from_fn(|index| words.get(index).map_or(0, |word| word.load(Ordering::Relaxed)));
        let sizes = RingSizes::read(&line, words.len()).ok_or(ClientError::Version)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            up: Reader::new(Arc::clone(&memory), sizes.up_place()),
            down: Writer::new(Arc::clone(&memory), sizes.down_place()),
            memory,
            bytes: vec![0; MAX_FRAME],
        })
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    /// Longwire has cut it off.
    // Not an iterator, because events borrow from `self`.
    #[expect(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, ClientError> {
        let available = self.up.available()?;
        if available == 0 {
            return match self.memory.words()[ENDED].load(Ordering::Acquire) {
                0 => Ok(None),
                why => Err(ClientError::Ended(CutReason::from_number(why as u8))),
            };
        }
        let line = self.up.line(0);
        let opening = Opening::read(line[0]);
        if !opening.can_be(available) || opening.bytes as usize > MAX_FRAME {
            return Err(CorruptRing { what: "start of a record", value: line[0] }.into());
        }
        let bytes = &mut self.bytes[..opening.bytes as usize];
        self.up.bytes(1, bytes);
        self.up.advance(opening.lines.into());
        match opening.kind {
            up::PACKET => Ok(Some(Event::Packet(Facts::read(&line), bytes))),
            up::BODY => Ok(Some(Event::Body(line[1], line[3] as u32, bytes))),
            _ => Err(CorruptRing { what: "kind of record", value: opening.kind.into() }.into()),
        }
    }

    /// Sends the verdict on a packet; `head` replaces its first bytes, and may be empty. Returns false
    /// without room: flush, and try again.
    ///
    /// # Errors
    /// The head is longer than a frame, or the ring is broken.
    #[inline]
    pub fn answer(&mut self, token: u64, verdict: Verdict, head: &[u8]) -> Result<bool, ClientError> {
        self.put(down::VERDICT, [token, verdict.word(), 0], head)
    }

    /// Returns a packet without a verdict because too little time is left, which is not a fault. Returns
    /// false without room.
    ///
    /// # Errors
    /// The ring is broken.
    pub fn give_back(&mut self, token: u64) -> Result<bool, ClientError> {
        self.put(down::RETURN, [token, 0, 0], &[])
    }

    /// The router's time, in the same clock as the packets' times, at its last poll.
    pub fn now(&self) -> Nanos {
        Nanos(self.memory.words()[NOW].load(Ordering::Relaxed))
    }

    /// Requests `count` bytes of a packet from offset `from`, or as many as there are: they arrive as an
    /// [`Event::Body`]. Returns false without room. Later messages are processed after it, so the caller must
    /// keep reading.
    ///
    /// # Errors
    /// The ring is broken.
    pub fn fetch(&mut self, token: u64, from: u32, count: u32) -> Result<bool, ClientError> {
        self.put(down::FETCH, [token, 0, u64::from(from) | u64::from(count) << 32], &[])
    }

    /// Sends a new frame out of a port of the router. False if there is no room.
    ///
    /// # Errors
    /// The frame is too long, or the ring is broken.
    pub fn send(&mut self, port: u16, frame: &[u8]) -> Result<bool, ClientError> {
        self.put(down::NEW, [0, Verdict::Send { port, band: None }.word(), 0], frame)
    }

    /// Makes sent messages visible to Longwire.
    #[inline]
    pub fn flush(&mut self) {
        self.up.release();
        self.down.publish();
    }

    /// Flushes, and sleeps until an event comes, at most for `time`.
    ///
    /// # Errors
    /// Longwire has ended.
    pub fn wait(&mut self, time: Duration) -> Result<(), ClientError> {
        self.flush();
        let asleep = &self.memory.words()[ASLEEP];
        asleep.store(1, Ordering::Relaxed);
        // Orders the flag before the check of the ring; the writer does the opposite.
        fence(Ordering::SeqCst);
        if self.up.available()? == 0 {
            shared::wait(&[self.socket.as_fd()], time);
        }
        self.memory.words()[ASLEEP].store(0, Ordering::Relaxed);
        let mut bytes = [0; 64];
        match (&self.socket).read(&mut bytes) {
            Ok(0) => {
                let why = self.memory.words()[ENDED].load(Ordering::Acquire);
                Err(ClientError::Ended(CutReason::from_number(why as u8)))
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Sends every packet back out of its input port, until it is cut off: for benches and examples. Packets
    /// with too little time left are returned.
    ///
    /// # Errors
    /// It was cut off, or an operation failed.
    pub fn echo(&mut self) -> Result<std::convert::Infallible, ClientError> {
        /// Empty polls before it sleeps, and answers between flushes.
        const LOOKS: u32 = 10_000;
        const TOGETHER: u32 = 32;
        let (mut idle, mut said) = (0, 0);
        loop {
            match self.next()? {
                Some(Event::Packet(facts, _)) => {
                    let verdict = Verdict::Send { port: facts.in_port, band: None };
                    let is_hopeless = facts.is_hopeless(self.now());
                    while !(if is_hopeless {
                        self.give_back(facts.token)?
                    } else {
                        self.answer(facts.token, verdict, &[])?
                    }) {
                        self.flush();
                    }
                    (idle, said) = (0, said + 1);
                    if said == TOGETHER {
                        self.flush();
                        said = 0;
                    }
                }
                Some(Event::Body(..)) => {}
                None if idle == LOOKS => {
                    self.wait(Duration::from_millis(100))?;
                    idle = 0;
                }
                None => {
                    if said > 0 {
                        self.flush();
                        said = 0;
                    }
                    idle += 1;
                    std::hint::spin_loop();
                }
            }
        }
    }

    #[inline]
    fn put(&mut self, kind: u16, words: [u64; 3], bytes: &[u8]) -> Result<bool, ClientError> {
        if bytes.len() > MAX_FRAME {
            return Err(ClientError::TooLong(bytes.len()));
        }
        let opening = Opening::new(kind, bytes.len());
        if !self.down.has_room(opening.lines.into())? {
            return Ok(false);
        }
        let mut line = [0; LINE_WORDS];
        line[0] = opening.word();
        line[1..4].copy_from_slice(&words);
        self.down.line(0, &line);
        self.down.bytes(1, bytes);
        self.down.advance(opening.lines.into());
        Ok(true)
    }
}

impl Hello {
    fn bytes(&self) -> Result<[u8; 64], ClientError> {
        let mut bytes = [0; 64];
        if self.name.len() > NAME {
            return Err(ClientError::Name(self.name.clone()));
        }
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.share.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.packets.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.cycles.to_le_bytes());
        bytes[32..32 + self.name.len()].copy_from_slice(self.name.as_bytes());
        Ok(bytes)
    }

    /// Parses a hello.
    pub(crate) fn read(bytes: &[u8; 64]) -> Result<Self, String> {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |index: usize| u64::from_le_bytes(words[index]);
        if word(0) != MAGIC || word(1) as u32 != VERSION {
            return Err(format!("that is no hello of version {VERSION} of this protocol"));
        }
        let name = bytes[32..].split(|&byte| byte == 0).next().unwrap_or_default();
        let name = std::str::from_utf8(name).map_err(|_| "the name is not UTF-8".to_string())?;
        Ok(Self { name: name.into(), packets: word(2), cycles: word(3), share: (word(1) >> 32) as u32 })
    }
}

/// The answer to a hello.
pub(crate) struct Welcome {
    is_refused: bool,
    /// Bytes of text that follow it.
    text: usize,
}

impl Welcome {
    /// The reply that is sent with the shared memory of `memory` bytes.
    pub(crate) fn welcome(memory: u64) -> Vec<u8> {
        Self::bytes(0, 0, memory)
    }

    pub(crate) fn refused(why: &str) -> Vec<u8> {
        let text = &why.as_bytes()[..why.len().min(TEXT)];
        [&Self::bytes(1, text.len() as u32, 0), text].concat()
    }

    fn bytes(status: u32, text: u32, memory: u64) -> Vec<u8> {
        let words = [MAGIC, u64::from(VERSION) | u64::from(status) << 32, memory, u64::from(text)];
        let mut bytes: Vec<_> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.resize(WELCOME, 0);
        bytes
    }

    fn read(bytes: &[u8; WELCOME]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |index: usize| u64::from_le_bytes(words[index]);
        let is_right = word(0) == MAGIC && word(1) as u32 == VERSION;
        is_right.then(|| Self { is_refused: word(1) >> 32 != 0, text: word(3) as usize })
    }
}
