//! Accepts control processes on a Unix socket: identity, request, shared memory; and detects when they leave.

use crate::admission::{Admission, DoesNotFit, Request};
use crate::bucket::Bucket;
use crate::client::{Hello, WELCOME, Welcome};
use crate::cpu::{Account, Standing};
use crate::cut::Cut;
use crate::layout::{HEAD, MAX_LINES, Sizes};
use crate::level::AttachmentId;
use crate::limits::Limits;
use crate::punt::Door;
use crate::ring::LINE_WORDS;
use crate::shared::{self, Memory};
use crate::wire::{Attach, Bell, Status, Wire};
use longwire_units::Nanos;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Time for a process to identify itself.
const GREETING: Duration = Duration::from_secs(1);
/// Most processes that have not identified themselves.
const GREETERS: usize = 16;
/// Interval between checks of the worker's notes.
const LOOK: Duration = Duration::from_millis(20);
/// Reads per second from a process's socket, and burst: more is a flood.
const READS: (u64, u64) = (20_000, 20_000);

/// Reason why the listener can't be opened.
#[derive(Debug, Error)]
pub enum ListenerError {
    /// Another process listens on it.
    #[error("{path} is in use by a running Longwire: choose another path, or stop that one")]
    InUse {
        /// The socket's path.
        path: PathBuf,
    },
    /// The socket can't be created.
    #[error("{path}: {source}")]
    Socket {
        /// The socket's path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A process that may attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The name that the process must use; up to 32 bytes.
    pub name: String,
    /// Limits of its attachment.
    pub limits: Limits,
    /// Its guarantee and its share of the rest, fixed at installation. By default they are what the process
    /// requests.
    pub promise: Option<(Request, u32)>,
}

/// Expected processes, by attachment numbers, and all guarantees.
#[derive(Debug)]
struct Book {
    attachments: Vec<Option<Expected>>,
    admission: Admission,
}

/// Accepts control processes of one node. Dropping it stops that, and removes its path.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    book: Arc<Mutex<Book>>,
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Opens it, without expecting any process. `admission` limits all processes together.
    ///
    /// # Errors
    /// The socket can't be created at `path`.
    pub fn open(path: &Path, door: Door, admission: Admission) -> Result<Self, ListenerError> {
        let failed = |source| ListenerError::Socket { path: path.into(), source };
        if UnixStream::connect(path).is_ok() {
            return Err(ListenerError::InUse { path: path.into() });
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let (stop, stopped) = UnixStream::pair().map_err(failed)?;
        let book = Arc::new(Mutex::new(Book { attachments: Vec::new(), admission }));
        let mut host = Host {
            listener,
            stopped,
            book: Arc::clone(&book),
            way: door,
            guests: Vec::new(),
            left: Vec::new(),
            begin: Instant::now(),
        };
        let thread = std::thread::Builder::new().name("longwire-control".into());
        let thread = thread.spawn(move || host.run()).map_err(failed)?;
        Ok(Self { path: path.into(), book, stop, thread: Some(thread) })
    }

    /// Expects a process for an attachment of the node, and admits its guarantee.
    ///
    /// # Errors
    /// The computation, if it does not fit; or the name belongs to another.
    pub fn expect(&self, attachment: AttachmentId, expected: Expected) -> Result<(), DoesNotFit> {
        let AttachmentId(_, number) = attachment;
        let mut book = lock(&self.book);
        let name = &expected.name;
        if book.attachments.iter().flatten().any(|other| other.name == *name) {
            return Err(DoesNotFit::Twice { name: name.clone() });
        }
        if let Some((request, _)) = expected.promise {
            book.admission.admit(name, request)?;
        }
        if book.attachments.len() <= number {
            book.attachments.resize(number + 1, None);
        }
        book.attachments[number] = Some(expected);
        Ok(())
    }

    /// No longer expects a process for that attachment, and releases its guarantee. The node handles an
    /// attached process.
    pub fn forget(&self, attachment: AttachmentId) {
        let AttachmentId(_, number) = attachment;
        let mut book = lock(&self.book);
        if let Some(expected) = book.attachments.get_mut(number).and_then(Option::take) {
            book.admission.release(&expected.name);
        }
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        shared::ring(&self.stop);
        if let Some(thread) = self.thread.take() {
            // It never panics.
            let _ = thread.join();
        }
        // It may already have been removed.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// No holder of the lock panics, so that it is never poisoned.
fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Host {
    listener: UnixListener,
    stopped: UnixStream,
    book: Arc<Mutex<Book>>,
    way: Door,
    guests: Vec<Guest>,
    /// Memory of processes that have left, kept until the worker has released it, so that the worker does not
    /// unmap it.
    left: Vec<Arc<Memory>>,
    begin: Instant,
}

struct Guest {
    socket: Arc<UnixStream>,
    state: State,
}

enum State {
    /// Identifying itself: the bytes so far, and the time limit.
    Greeting(Vec<u8>, Instant),
    Attached {
        attachment: usize,
        memory: Arc<Memory>,
        status: Arc<Status>,
        reads: Bucket,
        /// Its share of the rest, and, unless it is this process, its process id and processor account.
        share: u32,
        account: Option<(libc::pid_t, Account)>,
    },
    Over,
}

impl Host {
    fn run(&mut self) {
        loop {
            let guests = self.guests.iter().map(|guest| guest.socket.as_fd());
            let fds: Vec<_> =
                [self.stopped.as_fd(), self.listener.as_fd()].into_iter().chain(guests).collect();
            let ready = shared::wait(&fds, LOOK);
            if ready[0] {
                return;
            }
            for (index, _) in ready[2..].iter().enumerate().filter(|(_, is_ready)| **is_ready) {
                self.listen_to(index);
            }
            (0..self.guests.len()).for_each(|index| self.look_after(index));
            self.guests.retain(|guest| !matches!(guest.state, State::Over));
            self.left.retain(|memory| Arc::strong_count(memory) > 1);
            if ready[1] {
                self.accept();
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((socket, _)) = self.listener.accept() {
            let greeters =
                self.guests.iter().filter(|guest| matches!(guest.state, State::Greeting(..))).count();
            if greeters >= GREETERS || socket.set_nonblocking(true).is_err() {
                continue;
            }
            let state = State::Greeting(Vec::new(), Instant::now() + GREETING);
            self.guests.push(Guest { socket: Arc::new(socket), state });
        }
    }

    fn listen_to(&mut self, index: usize) {
        let now = Nanos(self.begin.elapsed().as_nanos() as u64);
        let guest = &mut self.guests[index];
        let mut bytes = [0; 4096];
        let count = match (&*guest.socket).read(&mut bytes) {
            Ok(0) => return self.end(index, Cut::Left),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => return self.end(index, Cut::Left),
        };
        match &mut guest.state {
            State::Greeting(said, _) => {
                said.extend_from_slice(&bytes[..count]);
                if let Some(hello) = said.first_chunk().copied() {
                    self.greet(index, &hello);
                }
            }
            State::Attached { reads, .. } => {
                if !reads.take(now) {
                    self.end(index, Cut::Flood);
                }
            }
            State::Over => {}
        }
    }

    /// Checks what does not go through the socket.
    fn look_after(&mut self, index: usize) {
        match &self.guests[index].state {
            State::Greeting(_, until) if Instant::now() > *until => self.end(index, Cut::Left),
            State::Attached { status, .. } => {
                let why = status.cut().or_else(|| self.overrun(index).then_some(Cut::Overrun));
                if let Some(why) = why {
                    self.end(index, why);
                }
            }
            State::Greeting(..) | State::Over => {}
        }
    }

    /// Charges a process's processor time. Returns whether it is far overdrawn.
    fn overrun(&mut self, index: usize) -> bool {
        let now = self.begin.elapsed();
        let shares = self.guests.iter().map(|guest| match guest.state {
            State::Attached { share, .. } => share,
            _ => 0,
        });
        let shares = shares.fold(0, u32::saturating_add);
        let State::Attached { attachment, status, share, account: Some((process, account)), .. } =
            &mut self.guests[index].state
        else {
            return false;
        };
        // A process that has ended closes its socket.
        let Some(used) = shared::processor_time(*process) else { return false };
        let book = lock(&self.book);
        let name = book
            .attachments
            .get(*attachment)
            .and_then(Option::as_ref)
            .map_or("", |attachment| &attachment.name);
        let cycles = book.admission.weight(name, (*share, shares));
        account.promise(cycles, book.admission.capacity().cycles);
        let (had, standing) = account.charge(used, now);
        status.note_processor(had, standing != Standing::Within);
        standing == Standing::FarBeyond
    }

    fn greet(&mut self, index: usize, hello: &[u8; 64]) {
        let socket = Arc::clone(&self.guests[index].socket);
        match self.admit(&socket, hello) {
            Ok(state) => self.guests[index].state = state,
            Err(why) => {
                // A refusal stays valid even if it can't be delivered.
                let _ = shared::send(&socket, &Welcome::refused(&why), None);
                self.end(index, Cut::Left);
            }
        }
    }

    fn admit(&mut self, socket: &Arc<UnixStream>, hello: &[u8; 64]) -> Result<State, String> {
        let hello = Hello::read(hello)?;
        let book = Arc::clone(&self.book);
        let mut book = lock(&book);
        let of_name = |attachment: &Option<Expected>| {
            attachment.as_ref().is_some_and(|attachment| attachment.name == hello.name)
        };
        let Some(number) = book.attachments.iter().position(of_name) else {
            let names: Vec<_> =
                book.attachments.iter().flatten().map(|attachment| attachment.name.as_str()).collect();
            return Err(format!(
                "nobody is expected by the name {:?}; expected: {}",
                hello.name,
                names.join(", ")
            ));
        };
        let is_attached =
            |guest: &Guest| matches!(guest.state, State::Attached { attachment, .. } if attachment == number);
        if self.guests.iter().any(is_attached) {
            return Err(format!("{} is there already", hello.name));
        }
        let Some(Expected { limits, promise, .. }) = book.attachments[number].clone() else {
            return Err("nobody is expected any more".into());
        };
        let asked = Request { packets: hello.packets, cycles: hello.cycles };
        let (request, share) = match promise {
            None => {
                book.admission.admit(&hello.name, asked).map_err(|error| error.to_string())?;
                (asked, hello.share)
            }
            Some((promised, share)) if asked.fits(promised) => (
                Request {
                    packets: if asked.packets == 0 { promised.packets } else { asked.packets },
                    ..asked
                },
                share,
            ),
            Some((promised, _)) => {
                return Err(format!(
                    "{} asks for {asked}, and was promised {promised}: ask for no more, or promise it more",
                    hello.name
                ));
            }
        };
        let attached = self.attach(socket, (number, limits), (request.packets, share));
        attached.map_err(|error| {
            if promise.is_none() {
                book.admission.release(&hello.name);
            }
            format!("the memory can't be shared: {error}")
        })
    }

    fn attach(
        &mut self,
        socket: &Arc<UnixStream>,
        (attachment, limits): (usize, Limits),
        (promised, share): (u64, u32),
    ) -> io::Result<State> {
        let packets = limits.packets.clamp(16, 1 << 16);
        // A packet takes two lines, and so does a verdict with a changed head; bodies and new packets need
        // room for the longest.
        let lines = 2 * packets.next_power_of_two() + MAX_LINES as u32;
        let sizes = Sizes::at_least(lines, lines);
        let memory = Arc::new(Memory::create(sizes.words())?);
        let first = &memory.words()[..LINE_WORDS];
        first.iter().zip(sizes.first_line()).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        shared::send(socket, &Welcome::welcome(sizes.words() as u64 * 8), Some(memory.fd()))?;
        let status = Arc::new(Status::default());
        let bell = Bell::Socket(Arc::clone(socket));
        let wire = Wire::new(Arc::clone(&memory), sizes, bell, Arc::clone(&status), false);
        let attach = Attach { attachment, wire, promised, share };
        self.way.0.push(attach).map_err(|_| io::Error::other("the worker does not let anyone in"))?;
        let now = self.begin.elapsed();
        let account = shared::peer(socket).and_then(|process| {
            let used = shared::processor_time(process)?;
            Some((process, Account::new(0, 1, used, now)))
        });
        Ok(State::Attached {
            attachment,
            memory,
            status,
            reads: Bucket::new(READS.0, READS.1),
            share,
            account,
        })
    }

    fn end(&mut self, index: usize, why: Cut) {
        let guest = &mut self.guests[index];
        // It may already be closed.
        let _ = guest.socket.shutdown(Shutdown::Both);
        if let State::Attached { attachment, memory, status, .. } =
            std::mem::replace(&mut guest.state, State::Over)
        {
            status.leave(why);
            let mut book = lock(&self.book);
            let name = book.attachments.get(attachment).and_then(Option::as_ref);
            // A guarantee from the installation is kept.
            if let Some(name) = name
                .filter(|attachment| attachment.promise.is_none())
                .map(|attachment| attachment.name.clone())
            {
                book.admission.release(&name);
            }
            self.left.push(memory);
        }
    }
}

const _: () = assert!(HEAD == 64 && WELCOME == 64);
