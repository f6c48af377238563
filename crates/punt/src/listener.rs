//! Accepts control processes on a Unix socket (identity, request, shared memory), and detects when they
//! leave.

use crate::admission::{Admission, DoesNotFit, Request};
use crate::bucket::Bucket;
use crate::client::{Hello, WELCOME, Welcome};
use crate::cpu::{Account, Usage};
use crate::cut::CutReason;
use crate::layout::{HEAD, MAX_LINES, RingSizes};
use crate::level::AttachmentId;
use crate::limits::Limits;
use crate::punt::AttachSender;
use crate::ring::LINE_WORDS;
use crate::shared::{self, Memory};
use crate::wire::{Attach, Bell, Status, Wire};
use longwire_units::Nanos;
use std::ffi::OsString;
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
/// Interval between checks of the worker's status.
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
pub struct ExpectedProcess {
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
struct AdmissionTable {
    attachments: Vec<Option<ExpectedProcess>>,
    admission: Admission,
}

/// Accepts control processes of one node. Dropping it stops that, and removes its path.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    admissions: Arc<Mutex<AdmissionTable>>,
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Opens a listener that expects no process yet. `admission` limits all processes together.
    ///
    /// # Errors
    /// The socket can't be created at `path`.
    pub fn open(path: &Path, attach: AttachSender, admission: Admission) -> Result<Self, ListenerError> {
        let failed = |source| ListenerError::Socket { path: path.into(), source };
        if UnixStream::connect(path).is_ok() {
            return Err(ListenerError::InUse { path: path.into() });
        }
        let listener = listen(path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let (stop, stopped) = UnixStream::pair().map_err(failed)?;
        let admissions = Arc::new(Mutex::new(AdmissionTable { attachments: Vec::new(), admission }));
        let mut host = Host {
            listener,
            stopped,
            admissions: Arc::clone(&admissions),
            attach,
            peers: Vec::new(),
            left: Vec::new(),
            begin: Instant::now(),
        };
        let thread = std::thread::Builder::new().name("longwire-control".into());
        let thread = thread.spawn(move || host.run()).map_err(failed)?;
        Ok(Self { path: path.into(), admissions, stop, thread: Some(thread) })
    }

    /// Expects a process for an attachment of the node, and admits its guarantee.
    ///
    /// # Errors
    /// The request does not fit, with the computation; or the name is in use.
    pub fn expect(&self, attachment: AttachmentId, expected: ExpectedProcess) -> Result<(), DoesNotFit> {
        let AttachmentId(_, number) = attachment;
        let mut admissions = lock(&self.admissions);
        let name = &expected.name;
        if admissions.attachments.iter().flatten().any(|other| other.name == *name) {
            return Err(DoesNotFit::Twice { name: name.clone() });
        }
        if let Some((request, _)) = expected.promise {
            admissions.admission.admit(name, request)?;
        }
        if admissions.attachments.len() <= number {
            admissions.attachments.resize(number + 1, None);
        }
        admissions.attachments[number] = Some(expected);
        Ok(())
    }

    /// Stops expecting a process for that attachment, and releases its guarantee. The node cuts off an
    /// attached process.
    pub fn forget(&self, attachment: AttachmentId) {
        let AttachmentId(_, number) = attachment;
        let mut admissions = lock(&self.admissions);
        if let Some(expected) = admissions.attachments.get_mut(number).and_then(Option::take) {
            admissions.admission.release(&expected.name);
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

/// Creates the socket under a hidden name and renames it once it answers, so that a socket that refuses
/// connections is always dead.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    let hidden = path.with_file_name(hidden);
    match std::fs::remove_file(&hidden) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&hidden)?;
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&hidden, path)?;
    Ok(listener)
}

/// No holder of the lock panics, so that it is never poisoned.
fn lock(admissions: &Mutex<AdmissionTable>) -> MutexGuard<'_, AdmissionTable> {
    admissions.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Host {
    listener: UnixListener,
    stopped: UnixStream,
    admissions: Arc<Mutex<AdmissionTable>>,
    attach: AttachSender,
    peers: Vec<Peer>,
    /// Memory of processes that have left, kept until the worker has released it, so that unmapping does not
    /// take the worker's time.
    left: Vec<Arc<Memory>>,
    begin: Instant,
}

struct Peer {
    socket: Arc<UnixStream>,
    state: ClientState,
}

enum ClientState {
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
            let peers = self.peers.iter().map(|peer| peer.socket.as_fd());
            let fds: Vec<_> =
                [self.stopped.as_fd(), self.listener.as_fd()].into_iter().chain(peers).collect();
            let ready = shared::wait(&fds, LOOK);
            if ready[0] {
                return;
            }
            for (index, _) in ready[2..].iter().enumerate().filter(|(_, is_ready)| **is_ready) {
                self.listen_to(index);
            }
            (0..self.peers.len()).for_each(|index| self.look_after(index));
            self.peers.retain(|peer| !matches!(peer.state, ClientState::Over));
            self.left.retain(|memory| Arc::strong_count(memory) > 1);
            if ready[1] {
                self.accept();
            }
        }
    }

    fn accept(&mut self) {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Without free descriptors the connection stays queued, and would end the next wait.
                    shared::wait(&[self.stopped.as_fd()], LOOK);
                    return;
                }
            };
            let is_greeting = |peer: &&Peer| matches!(peer.state, ClientState::Greeting(..));
            let greeters = self.peers.iter().filter(is_greeting).count();
            if greeters >= GREETERS || socket.set_nonblocking(true).is_err() {
                continue;
            }
            let state = ClientState::Greeting(Vec::new(), Instant::now() + GREETING);
            self.peers.push(Peer { socket: Arc::new(socket), state });
        }
    }

    fn listen_to(&mut self, index: usize) {
        let now = Nanos(self.begin.elapsed().as_nanos() as u64);
        let peer = &mut self.peers[index];
        let mut bytes = [0; 4096];
        let count = match (&*peer.socket).read(&mut bytes) {
            Ok(0) => return self.end(index, CutReason::Left),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => return self.end(index, CutReason::Left),
        };
        match &mut peer.state {
            ClientState::Greeting(said, _) => {
                said.extend_from_slice(&bytes[..count]);
                if let Some(hello) = said.first_chunk().copied() {
                    self.greet(index, &hello);
                }
            }
            ClientState::Attached { reads, .. } => {
                if !reads.take(now) {
                    self.end(index, CutReason::Flood);
                }
            }
            ClientState::Over => {}
        }
    }

    /// Checks what is not reported through the socket.
    fn look_after(&mut self, index: usize) {
        match &self.peers[index].state {
            ClientState::Greeting(_, until) if Instant::now() > *until => self.end(index, CutReason::Left),
            ClientState::Attached { status, .. } => {
                let why = status.cut().or_else(|| self.overrun(index).then_some(CutReason::Overrun));
                if let Some(why) = why {
                    self.end(index, why);
                }
            }
            ClientState::Greeting(..) | ClientState::Over => {}
        }
    }

    /// Charges a process's processor time. Returns whether it is far overdrawn.
    fn overrun(&mut self, index: usize) -> bool {
        let now = self.begin.elapsed();
        let shares = self.peers.iter().map(|peer| match peer.state {
            ClientState::Attached { share, .. } => share,
            _ => 0,
        });
        let shares = shares.fold(0, u32::saturating_add);
        let ClientState::Attached { attachment, status, share, account: Some((process, account)), .. } =
            &mut self.peers[index].state
        else {
            return false;
        };
        // A process that has ended closes its socket.
        let Some(used) = shared::processor_time(*process) else { return false };
        let admissions = lock(&self.admissions);
        let expected = admissions.attachments.get(*attachment).and_then(Option::as_ref);
        let name = expected.map_or("", |expected| &expected.name);
        let cycles = admissions.admission.weight(name, (*share, shares));
        account.promise(cycles, admissions.admission.capacity().cycles);
        let (had, usage) = account.charge(used, now);
        status.note_processor(had, usage != Usage::Within);
        usage == Usage::FarBeyond
    }

    fn greet(&mut self, index: usize, hello: &[u8; 64]) {
        let socket = Arc::clone(&self.peers[index].socket);
        match self.admit(&socket, hello) {
            Ok(state) => self.peers[index].state = state,
            Err(why) => {
                // A refusal stays valid even if it can't be delivered.
                let _ = shared::send(&socket, &Welcome::refused(&why), None);
                self.end(index, CutReason::Left);
            }
        }
    }

    fn admit(&mut self, socket: &Arc<UnixStream>, hello: &[u8; 64]) -> Result<ClientState, String> {
        let hello = Hello::read(hello)?;
        let admissions = Arc::clone(&self.admissions);
        let mut admissions = lock(&admissions);
        let found = (0..).zip(&admissions.attachments).find_map(|(number, expected)| {
            let expected = expected.as_ref().filter(|expected| expected.name == hello.name)?;
            Some((number, expected.limits, expected.promise))
        });
        let Some((number, limits, promise)) = found else {
            let names: Vec<_> =
                admissions.attachments.iter().flatten().map(|expected| expected.name.as_str()).collect();
            return Err(format!(
                "nobody is expected by the name {:?}; expected: {}",
                hello.name,
                names.join(", ")
            ));
        };
        let is_attached = |peer: &Peer| match peer.state {
            ClientState::Attached { attachment, .. } => attachment == number,
            _ => false,
        };
        if self.peers.iter().any(is_attached) {
            return Err(format!("{} is there already", hello.name));
        }
        let asked = Request { packets: hello.packets, cycles: hello.cycles };
        let (request, share) = match promise {
            None => {
                admissions.admission.admit(&hello.name, asked).map_err(|error| error.to_string())?;
                (asked, hello.share)
            }
            Some((promised, share)) if asked.fits(promised) => {
                let packets = if asked.packets == 0 { promised.packets } else { asked.packets };
                (Request { packets, ..asked }, share)
            }
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
                admissions.admission.release(&hello.name);
            }
            format!("the memory can't be shared: {error}")
        })
    }

    fn attach(
        &mut self,
        socket: &Arc<UnixStream>,
        (attachment, limits): (usize, Limits),
        (promised, share): (u64, u32),
    ) -> io::Result<ClientState> {
        let full = || io::Error::other("too many processes or services are attaching");
        if self.attach.0.is_full() {
            return Err(full());
        }
        let packets = limits.packets.clamp(16, 1 << 16);
        // A packet takes two lines, as does a verdict with a changed head; bodies and new packets need room
        // for the longest frame.
        let lines = 2 * packets.next_power_of_two() + MAX_LINES as u32;
        let sizes = RingSizes::at_least(lines, lines);
        let memory = Arc::new(Memory::create(sizes.words())?);
        let first = &memory.words()[..LINE_WORDS];
        first.iter().zip(sizes.first_line()).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        shared::send(socket, &Welcome::welcome(sizes.words() as u64 * 8), Some(memory.fd()))?;
        let status = Arc::new(Status::default());
        let bell = Bell::Socket(Arc::clone(socket));
        let wire = Wire::new(Arc::clone(&memory), sizes, bell, Arc::clone(&status), false);
        let attach = Attach { attachment, wire, promised, share };
        self.attach.0.push(attach).map_err(|_| full())?;
        let now = self.begin.elapsed();
        let account = shared::peer(socket).and_then(|process| {
            let used = shared::processor_time(process)?;
            Some((process, Account::new(0, 1, used, now)))
        });
        Ok(ClientState::Attached {
            attachment,
            memory,
            status,
            reads: Bucket::new(READS.0, READS.1),
            share,
            account,
        })
    }

    fn end(&mut self, index: usize, why: CutReason) {
        let peer = &mut self.peers[index];
        // It may already be closed.
        let _ = peer.socket.shutdown(Shutdown::Both);
        if let ClientState::Attached { attachment, memory, status, .. } =
            std::mem::replace(&mut peer.state, ClientState::Over)
        {
            status.leave(why);
            let mut admissions = lock(&self.admissions);
            let expected = admissions.attachments.get(attachment).cloned().flatten();
            // A guarantee from the installation is kept.
            if let Some(ExpectedProcess { name, promise: None, .. }) = expected {
                admissions.admission.release(&name);
            }
            self.left.push(memory);
        }
    }
}

const _: () = assert!(HEAD == 64 && WELCOME == 64);
