//! TAP interfaces: the kernel's end is the host's interface, this end a port. With the virtio header and
//! every offload, so that the host's stack sends whole trains and partial checksums.
#![allow(unsafe_code)]

mod open;
mod queue;
mod read;
mod ring;
mod send;
mod steer;

pub use open::Opener;
pub use send::Writes;

use super::InterfaceState;
use super::reopening::Reopening;
use crate::interface::{Counters, Interface, OpenError, Request, namespace};
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_drivers::Netns;
use longwire_packet::{BATCH_BYTES, Batch, Pool};
use longwire_units::{Nanos, counted};
use queue::{namespace_of, open_queue};
use read::Reader;
use send::{Answer, Sender};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Interval between checks of the interface's state, in nanoseconds.
const STATE_EVERY: u64 = 50_000_000;

/// Options of a TAP interface.
#[derive(Debug, Clone)]
pub struct TapOptions {
    /// Its hardware address. Default: a random one from the kernel.
    pub mac: Option<[u8; 6]>,
    /// Its MTU in bytes, 68 to 65521; the port sends no longer frames.
    pub mtu: u32,
    /// Length of each queue towards Longwire, 1 to 65536 packets; further ones are lost.
    pub queue_length: u32,
    /// Whether to set it up at once, and not after it has moved into another namespace.
    pub up: bool,
    /// How frames are written.
    pub writes: Writes,
}

impl Default for TapOptions {
    fn default() -> Self {
        Self { mac: None, mtu: 1500, queue_length: 4096, up: false, writes: Writes::default() }
    }
}

/// A port at this end of a TAP interface, with one of its queues. The interface vanishes with its last queue,
/// wherever it was moved.
pub struct Tap {
    name: String,
    interface: String,
    queue: OwnedFd,
    /// Number of queues of the interface.
    queues: u16,
    sender: Sender,
    reader: Reader,
    mtu: u32,
    state: InterfaceState,
    /// The interface's name, if read since it went down.
    current: Option<String>,
    next_state: u64,
    stats: PortStats,
    /// The kernel's counters, in the namespace where the interface was last seen, and their last value; in
    /// one port of the interface only.
    counters: Option<RefCell<DropCounter>>,
}

/// The kernel's counters, if the interface still exists, and the number of lost frames when they were last
/// read.
type DropCounter = (Option<Counters>, u64);

/// The origin of a TAP interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Created here: the name must be free.
    Made,
    /// Created by somebody else.
    Found,
}

impl Tap {
    /// Creates the TAP interface `interface` (or the first free one of a pattern like `lw%d`) in the calling
    /// thread's network namespace; `name` is the port's. It may then be moved into another namespace.
    ///
    /// # Errors
    /// An option is out of range, an interface of that name exists, or `/dev/net/tun` is missing or not
    /// permitted.
    pub fn create(name: &str, interface: &str, options: &TapOptions) -> Result<Self, OpenError> {
        let queues = Self::create_queues(name, interface, options, 1)?;
        queues.into_iter().next().ok_or_else(|| OpenError::Missing { name: interface.into() })
    }

    /// Creates it with 1 to 256 queues, each a port that receives some of the flows; both directions of a
    /// flow belong to the same one.
    ///
    /// # Errors
    /// As [`Tap::create`], or the system can't spread flows.
    pub fn create_queues(
        name: &str,
        interface: &str,
        options: &TapOptions,
        queues: u16,
    ) -> Result<Vec<Self>, OpenError> {
        Self::open(name, interface, (options, queues), Origin::Made)
    }

    /// Opens the device as [`Tap::create_queues`] does, in `netns`, which must be the calling thread's, and
    /// continues when the interface was removed and somebody else has created it again (`ip tuntap add`). It
    /// is not recreated here, because whoever removed it may not want it back.
    ///
    /// # Errors
    /// As [`Tap::create_queues`].
    pub fn reopening(
        name: &str,
        interface: &str,
        netns: &Netns,
        options: &TapOptions,
        queues: u16,
    ) -> Result<Vec<Reopening>, OpenError> {
        let first = Self::create_queues(name, interface, options, queues)?;
        let interface = first.first().map_or_else(|| interface.to_owned(), |tap| tap.interface.clone());
        let (name, options) = (name.to_owned(), options.clone());
        let again = move || {
            Interface::open(&interface).ok()?;
            Self::open(&name, &interface, (&options, queues), Origin::Found).ok()
        };
        Ok(Reopening::queues(netns, first, again))
    }

    fn open(
        name: &str,
        interface: &str,
        (options, count): (&TapOptions, u16),
        origin: Origin,
    ) -> Result<Vec<Self>, OpenError> {
        let bad = |option, value: u32, range| {
            Err(OpenError::BadOption { name: interface.into(), option, value: value.into(), range })
        };
        match options {
            _ if !(1..=256).contains(&count) => return bad("queues", count.into(), "1 to 256"),
            o if !(68..=65521).contains(&o.mtu) => return bad("mtu", o.mtu, "68 to 65521"),
            o if !(1..=65536).contains(&o.queue_length) => {
                return bad("queue_length", o.queue_length, "1 to 65536");
            }
            _ => {}
        }
        let mut queues: Vec<OwnedFd> = Vec::new();
        let mut made = interface.to_string();
        for number in 0..count {
            let first = number == 0 && origin == Origin::Made;
            let (queue, name) = open_queue(&made, count > 1, first)?;
            if number == 1 {
                steer::by_flow(queue.as_fd())
                    .map_err(|e| OpenError::from_io(&name, "spread its flows over its queues", e))?;
            }
            queues.push(queue);
            made = name;
        }
        let device = Interface::open(&made)?;
        if let Some(mac) = options.mac {
            device.set_mac(mac)?;
        }
        device.set_mtu(options.mtu)?;
        device.set_queue_length(options.queue_length)?;
        if options.up {
            device.set_up(true)?;
        }
        let mut counters = Some(RefCell::new((Some(Counters::of(&device)), 0)));
        let tap = |queue: OwnedFd| Self {
            name: name.into(),
            interface: made.clone(),
            sender: Sender::new(queue.as_fd(), options.writes),
            queue,
            queues: count,
            reader: Reader::new(),
            mtu: options.mtu,
            state: InterfaceState::Up,
            current: None,
            next_state: 0,
            stats: PortStats::default(),
            counters: counters.take(),
        };
        Ok(queues.into_iter().map(tap).collect())
    }

    /// The name with which the interface was created.
    pub fn interface_name(&self) -> &str {
        &self.interface
    }

    /// The interface, in whatever namespace and under whatever name it is now.
    ///
    /// # Errors
    /// It is gone, or entering its namespace is not permitted.
    pub fn interface(&self) -> Result<Interface, OpenError> {
        let failed = |e| OpenError::from_io(&self.interface, "find it", e);
        let queue = self.queue.as_fd();
        let namespace = namespace_of(queue).map_err(failed)?;
        let mut request = Request::named(&self.interface)?;
        request.call(queue, libc::TUNGETIFF).map_err(failed)?;
        let current = request.name();
        let found = namespace::visit_open(namespace.as_fd(), || Interface::open(&current));
        found.map_err(|e| OpenError::from_io(&current, "enter its network namespace", e))?
    }

    /// Takes the frames in the queue.
    fn drain(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let Self { queue, reader, stats, .. } = self;
        // Rejected frames count too, so that a flood of bad ones can't keep the loop running.
        let enough = stats.in_bytes + BATCH_BYTES;
        for _ in 0..batch.room() {
            if stats.in_bytes >= enough {
                break;
            }
            match reader.read(queue.as_fd(), pool, stats, batch) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                result => result?,
            }
        }
        Ok(())
    }

    /// Checks whether the interface is up: only then is a queue writable, whatever its namespace.
    #[cold]
    fn look(&mut self, now: u64) {
        self.next_state = now + STATE_EVERY;
        let mut ask = libc::pollfd { fd: self.queue.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: `ask` is one pollfd, and the timeout of zero makes the call return at once.
        let answered = unsafe { libc::poll(&raw mut ask, 1, 0) };
        self.state = match ask.revents {
            _ if answered < 0 => self.state,
            events if events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 => InterfaceState::Gone,
            events if events & libc::POLLOUT != 0 => InterfaceState::Up,
            _ => InterfaceState::Down,
        };
        if self.state == InterfaceState::Up {
            self.current = None;
        }
    }

    fn check(&mut self) -> Result<(), PortError> {
        let port = self.name.clone();
        match self.state {
            InterfaceState::Up => Ok(()),
            InterfaceState::Down => Err(PortError::down(port, self.current_name())),
            InterfaceState::Gone => Err(PortError::Vanished { port }),
        }
    }

    /// The name of the interface that is down: a host's has been renamed. It is read once, because that takes
    /// a thread.
    fn current_name(&mut self) -> String {
        let name = self.current.take().unwrap_or_else(|| match self.interface() {
            Ok(found) => found.name().to_owned(),
            Err(_) => self.interface.clone(),
        });
        self.current.insert(name).clone()
    }
}

impl Port for Tap {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        let queues = self.queues;
        format!(
            "tap {}, with the virtio header, {}, {}",
            self.interface,
            counted(queues, "queue"),
            self.sender.describe()
        )
    }

    fn stamp(&self) -> Stamp {
        Stamp::Poll
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        if now.0 >= self.next_state {
            self.look(now.0);
        }
        let before = batch.len();
        if let Err(error) = self.drain(pool, batch) {
            self.state = if error.raw_os_error() == Some(libc::EBADFD) {
                InterfaceState::Gone
            } else {
                InterfaceState::Down
            };
        }
        if self.state == InterfaceState::Up || batch.len() > before { Ok(()) } else { self.check() }
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let queue = self.queue.as_fd();
        let not_up = self.sender.send(queue, pool, batch, self.mtu, &mut self.stats);
        batch.as_slice().iter().for_each(|&handle| pool.free(handle));
        match not_up {
            None => Ok(()),
            Some(answer) => {
                self.state = if answer == Answer::Gone { InterfaceState::Gone } else { InterfaceState::Down };
                self.check()
            }
        }
    }

    fn readable_fd(&self) -> Option<i32> {
        Some(self.queue.as_raw_fd())
    }

    fn stats(&self) -> PortStats {
        let Some(counters) = &self.counters else { return self.stats };
        let mut counters = counters.borrow_mut();
        let (place, missed) = &mut *counters;
        let mut lost = place.as_ref().and_then(Counters::lost);
        if lost.is_none() && place.is_some() {
            // It was moved or is gone.
            *place = self.interface().ok().as_ref().map(Counters::of);
            lost = place.as_ref().and_then(Counters::lost);
        }
        *missed = lost.map_or(*missed, |lost| lost.sent);
        PortStats { in_missed: *missed, ..self.stats }
    }
}

#[cfg(test)]
mod tests;
