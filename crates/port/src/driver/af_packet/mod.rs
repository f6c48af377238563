//! Real interfaces and veth through packet sockets: a receive ring, and one system call per batch to send.
//!
//! With the virtio header (`PACKET_VNET_HDR`) trains and partial checksums pass unchanged; without it the
//! interface's receive offloads are off while the port is open, trains are split and checksums completed. The
//! machine's own stack also receives each frame, so an interface with addresses is refused.
#![allow(unsafe_code)]

mod fanout;
mod open;
mod ring;
mod send;
mod splits;

pub use open::Opener;

use super::InterfaceState;
use crate::interface::{Claim, Counters, Feature, Interface, OffloadGuard, OpenError};
use crate::system::{checked, grow, owned, read_option, set_option};
use crate::vnet::{ETHERNET, RawFrame};
use fanout::{Group, MutedSocket, SharedState};
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_clock::{Mapping, monotonic};
use longwire_packet::{BATCH_BYTES, Batch, Handle, MAX_FRAME, Pool};
use longwire_units::Nanos;
use longwire_wire::ethertype;
use ring::{Ring, Slot};
use send::{SendFailure, Sender};
use splits::Splits;
use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Interval between checks of the interface's state, in nanoseconds.
const STATE_EVERY: u64 = 50_000_000;
/// Interval between checks of clocks and MTU, in nanoseconds.
const CLOCK_EVERY: u64 = 1_000_000_000;

/// Whether frames carry a virtio header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// If the interface is virtual or has an offload on, so that trains or partial checksums may arrive.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never: receive offloads are turned off while the port is open. Trains from the far end of a veth pair
    /// exceed the MTU and are counted as bad: turn segmentation offload off there.
    Off,
}

/// Options of a packet socket port.
#[derive(Debug, Clone, Default)]
pub struct AfPacketOptions {
    /// Open the interface even if it has addresses, so that the machine's own stack also answers.
    pub allow_addresses: bool,
    /// Whether frames carry a virtio header.
    pub header: Header,
    /// Frames in the receive ring, 64 to 65536. Default: 1024 with the virtio header (68 MiB), else 4096 (7
    /// MiB at an MTU of 1500).
    pub slots: Option<u32>,
}

/// A port on a packet socket.
pub struct AfPacket {
    name: String,
    interface: Interface,
    socket: OwnedFd,
    ring: Ring,
    sender: Sender,
    with_header: bool,
    splits: Splits,
    /// Whether frames were refused since the interface was last asked what it splits.
    was_full: bool,
    /// The longest frame that fits a slot of the ring.
    longest: usize,
    mapping: Mapping,
    /// When it was opened: no timestamp is earlier.
    opened: u64,
    mtu: u32,
    state: InterfaceState,
    /// Whether there is a carrier, if read since the last check.
    carrier: Option<bool>,
    next_state: u64,
    next_clock: u64,
    stats: PortStats,
    /// The kernel's counters of the interface, in one of its ports only.
    counters: Option<Counters>,
    /// Frames that the kernel had lost before.
    lost_before: u64,
    /// Frames lost because the ring was full, and frames lost before it.
    ring_full: Cell<u64>,
    lost: Cell<u64>,
    shared: Arc<SharedState>,
}

impl AfPacket {
    /// Opens `interface` in the calling thread's network namespace as port `name`.
    ///
    /// # Errors
    /// No such interface, not Ethernet, it has addresses, another instance uses it, or the system refuses;
    /// each error says what to do.
    pub fn open(name: &str, interface: &str, options: &AfPacketOptions) -> Result<Self, OpenError> {
        let sockets = Self::open_queues(name, interface, options, 1)?;
        sockets.into_iter().next().ok_or_else(|| OpenError::Missing { name: interface.into() })
    }

    /// Opens several sockets, each a port that receives some of the flows; both directions of a flow belong
    /// to the same one.
    ///
    /// # Errors
    /// As [`AfPacket::open`].
    pub fn open_queues(
        name: &str,
        interface: &str,
        options: &AfPacketOptions,
        queues: u16,
    ) -> Result<Vec<Self>, OpenError> {
        let interface = Interface::open(interface)?;
        let claim = Claim::take(&interface)?;
        interface.mac()?;
        if !options.allow_addresses {
            interface.refuse_addresses()?;
        }
        let with_header = wants_header(&interface, options.header)?;
        let unwanted: &[Feature] = if with_header { &[Feature::Lro] } else { &[Feature::Lro, Feature::Gro] };
        let offloads = OffloadGuard::turn_off(&interface, unwanted)?;
        let shared = Arc::new(SharedState { queues, unhandled: AtomicU64::new(0), offloads, _claim: claim });
        let mut group = Group::default();
        let mut sockets = Vec::with_capacity(usize::from(queues));
        for _ in 0..queues {
            let group = (queues > 1).then_some(&mut group);
            let shared = Arc::clone(&shared);
            sockets.push(Self::open_socket(name, interface.clone(), (options, with_header), group, shared)?);
        }
        if let Some(last) = sockets.last_mut() {
            let counters = Counters::of(&interface);
            last.lost_before = counters.lost().map_or(0, |lost| lost.received);
            last.counters = Some(counters);
        }
        Ok(sockets)
    }

    fn open_socket(
        name: &str,
        interface: Interface,
        (options, with_header): (&AfPacketOptions, bool),
        group: Option<&mut Group>,
        shared: Arc<SharedState>,
    ) -> Result<Self, OpenError> {
        let mtu = interface.mtu()?;
        let splits = Splits::of(&interface, with_header)?;
        let (slots, longest) = dimensions(&interface, options, with_header, mtu)?;
        let socket = prepared_socket(&interface, with_header)?;
        let ring = Ring::map(socket.as_fd(), slots, longest, interface.name())?;
        let filtered = |e| OpenError::from_io(interface.name(), "set the filter of a socket", e);
        match group {
            Some(group) => {
                let deaf = MutedSocket::new(&socket).map_err(filtered)?;
                join(socket.as_fd(), &interface)?;
                group.join(socket.as_fd(), &interface)?;
                deaf.unmute().map_err(filtered)?;
            }
            None => join(socket.as_fd(), &interface)?,
        }
        Ok(Self {
            name: name.into(),
            interface,
            socket,
            ring,
            sender: Sender::new(with_header),
            with_header,
            splits,
            was_full: false,
            longest,
            mapping: Mapping::measure(),
            opened: monotonic().0,
            mtu,
            state: InterfaceState::Up,
            carrier: None,
            next_state: 0,
            next_clock: 0,
            stats: PortStats::default(),
            counters: None,
            lost_before: 0,
            ring_full: Cell::new(0),
            lost: Cell::new(0),
            shared,
        })
    }

    /// Takes the frames in the ring.
    fn drain(&mut self, pool: &mut Pool, now: u64, batch: &mut Batch) {
        // Rejected frames count too, so that a flood of bad ones can't keep the loop running.
        let enough = self.stats.in_bytes + BATCH_BYTES;
        for _ in 0..batch.room() {
            if self.stats.in_bytes >= enough {
                break;
            }
            match self.ring.peek(self.with_header) {
                Slot::Empty => break,
                Slot::Cut => self.stats.in_bad += 1,
                Slot::Frame(mut found, seconds, nanoseconds) => {
                    let stamp = self.mapping.monotonic(seconds, nanoseconds).max(self.opened as i64) as u64;
                    // A frame may have arrived after the poll began: it must not leave early. A timestamp in
                    // the future means that the clock was just set.
                    found.arrival = if stamp > now { stamp.min(monotonic().0) } else { stamp };
                    if is_unhandled(&found) {
                        self.shared.unhandled.fetch_add(1, Ordering::Relaxed);
                    }
                    found.keep(pool, &mut self.stats, batch);
                }
            }
            self.ring.release();
        }
    }

    /// Checks what changes rarely.
    #[cold]
    fn look(&mut self, now: u64) {
        self.next_state = now + STATE_EVERY;
        self.carrier = None;
        self.state = match self.interface.link_up() {
            // The MTU was raised: a port that is opened again has slots for longer frames.
            Ok(true) if longest_frame(self.mtu) > self.longest => InterfaceState::Gone,
            Ok(true) => InterfaceState::Up,
            Ok(false) => InterfaceState::Down,
            Err(_) => InterfaceState::Gone,
        };
        if self.state != InterfaceState::Up {
            // Reading clears the error that an interface going down leaves on the socket, which would
            // otherwise end every wait for frames at once.
            let _ = read_option::<1>(self.socket.as_fd(), (libc::SOL_SOCKET, libc::SO_ERROR));
        }
        if now >= self.next_clock {
            self.next_clock = now + CLOCK_EVERY;
            self.mapping.renew();
            self.mtu = self.interface.link_mtu().unwrap_or(self.mtu);
            if std::mem::take(&mut self.was_full) {
                self.splits = Splits::of(&self.interface, self.with_header).unwrap_or(self.splits);
            }
        }
    }

    fn error(&self) -> PortError {
        match self.state {
            InterfaceState::Gone => PortError::Vanished { port: self.name.clone() },
            InterfaceState::Up | InterfaceState::Down => PortError::down(&*self.name, self.interface.name()),
        }
    }

    /// Sends packets unchanged, trains whole.
    fn send(&mut self, pool: &Pool, frames: &[Handle]) -> Result<(), PortError> {
        let full_before = self.stats.out_full;
        let result = self.sender.send(self.socket.as_fd(), pool, frames, self.mtu, &mut self.stats);
        match result {
            Ok(()) => return Ok(()),
            Err(SendFailure::Down) => self.state = InterfaceState::Down,
            Err(SendFailure::Gone) => self.state = InterfaceState::Gone,
            Err(SendFailure::Full) => {
                // The kernel returns the same for a missing carrier, which is not an overload.
                if *self.carrier.get_or_insert_with(|| self.interface.carrier()) {
                    self.was_full = true;
                    return Ok(());
                }
                self.stats.out_down += self.stats.out_full - full_before;
                self.stats.out_full = full_before;
            }
        }
        Err(self.error())
    }
}

impl Port for AfPacket {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        let header = if self.with_header { "with the virtio header" } else { "without the virtio header" };
        let off =
            if self.shared.offloads.is_idle() { "" } else { ", merging on receipt off until it is closed" };
        let queues = match self.shared.queues {
            1 => String::new(),
            queues => format!(" in each of {queues} queues"),
        };
        format!("af_packet on {}, {header}, {} slots{queues}{off}", self.interface.name(), self.ring.slots())
    }

    fn stamp(&self) -> Stamp {
        Stamp::Kernel
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        if now.0 >= self.next_state {
            self.look(now.0);
        }
        let before = batch.len();
        self.drain(pool, now.0, batch);
        if self.state == InterfaceState::Up || batch.len() > before { Ok(()) } else { Err(self.error()) }
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let frames = batch.as_slice();
        let result =
            if self.splits.any() { self.send_some_split(pool, frames) } else { self.send(pool, frames) };
        frames.iter().for_each(|&handle| pool.free(handle));
        result
    }

    fn readable_fd(&self) -> Option<i32> {
        Some(self.socket.as_raw_fd())
    }

    fn stats(&self) -> PortStats {
        // Reading these counters resets them.
        let ring = read_option(self.socket.as_fd(), (libc::SOL_PACKET, libc::PACKET_STATISTICS));
        // Of `struct tpacket_stats`.
        if let Ok([_received, dropped]) = ring {
            self.ring_full.set(self.ring_full.get() + u64::from(dropped));
        }
        if let Some(lost) = self.counters.as_ref().and_then(Counters::lost) {
            let unhandled = self.shared.unhandled.load(Ordering::Relaxed);
            self.lost.set(lost.received.saturating_sub(self.lost_before + unhandled));
        }
        PortStats { in_missed: self.ring_full.get() + self.lost.get(), ..self.stats }
    }
}

/// Whether the kernel counts a frame as dropped although a packet socket received it: one with a VLAN tag
/// that no protocol handles (`__netif_receive_skb_core` delivers tagged frames to sockets early, and then
/// ignores that).
#[inline]
fn is_unhandled(found: &RawFrame<'_>) -> bool {
    const CARED_FOR: [u16; 3] = [ethertype::IPV4, ethertype::ARP, ethertype::IPV6];
    match (found.tag, found.bytes.get(12..14)) {
        (Some(_), Some(&[a, b])) => !CARED_FOR.contains(&u16::from_be_bytes([a, b])),
        _ => false,
    }
}

/// Whether trains or partial checksums may arrive.
fn wants_header(interface: &Interface, header: Header) -> Result<bool, OpenError> {
    const OFFLOADS: [Feature; 6] =
        [Feature::Gro, Feature::Tso, Feature::Uso, Feature::Gso, Feature::TxChecksum, Feature::RxChecksum];
    match header {
        Header::On => Ok(true),
        Header::Off => Ok(false),
        Header::Auto => {
            // The offloads of the far end of a veth pair can't be seen from here.
            let features = interface.features()?;
            Ok(interface.driver()? == "veth" || OFFLOADS.iter().any(|&feature| features.is_on(feature)))
        }
    }
}

/// Number of slots, and bytes of each.
fn dimensions(
    interface: &Interface,
    options: &AfPacketOptions,
    with_header: bool,
    mtu: u32,
) -> Result<(u32, usize), OpenError> {
    let slots = options.slots.unwrap_or(if with_header { 1024 } else { 4096 });
    if !(64..=65536).contains(&slots) {
        let name = interface.name().into();
        let value = slots.into();
        return Err(OpenError::BadOption { name, option: "slots", value, range: "64 to 65536" });
    }
    Ok((slots, if with_header { MAX_FRAME } else { longest_frame(mtu) }))
}

/// Bytes of the longest frame: two VLAN tags may be added to the MTU.
fn longest_frame(mtu: u32) -> usize {
    (mtu as usize + ETHERNET + 8).min(MAX_FRAME)
}

/// Creates a packet socket that receives nothing yet.
fn prepared_socket(interface: &Interface, with_header: bool) -> Result<OwnedFd, OpenError> {
    let name = interface.name();
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let failed = |action| move |error| OpenError::from_io(name, action, error);
    // SAFETY: socket takes no pointers; nothing else owns the descriptor that it returns.
    let socket = unsafe { owned(libc::socket(libc::AF_PACKET, kind, 0)) };
    let socket = socket.map_err(failed("open a packet socket"))?;
    let on = 1i32;
    let version = libc::tpacket_versions::TPACKET_V2 as i32;
    let set = |option, value: &i32, action| {
        set_option(socket.as_fd(), (libc::SOL_PACKET, option), value).map_err(failed(action))
    };
    set(libc::PACKET_VERSION, &version, "choose the ring's version")?;
    if with_header {
        set(libc::PACKET_VNET_HDR, &on, "turn the virtio header on")?;
    }
    set(libc::PACKET_IGNORE_OUTGOING, &on, "ignore own frames")?;
    set(libc::PACKET_QDISC_BYPASS, &on, "bypass its queueing discipline")?;
    // Room for a few hundred trains. A refusal only costs retries.
    grow(socket.as_fd(), [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], 16 << 20);
    Ok(socket)
}

/// Starts receiving all frames on the interface.
fn join(socket: BorrowedFd<'_>, interface: &Interface) -> Result<(), OpenError> {
    let everything = libc::packet_mreq {
        mr_ifindex: interface.index() as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    let failed = |action| move |error| OpenError::from_io(interface.name(), action, error);
    set_option(socket, (libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP), &everything)
        .map_err(failed("make it receive every frame"))?;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: interface.index() as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` is a socket address of `length` bytes.
    let bound = checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) });
    bound.map(drop).map_err(failed("bind to it"))
}
