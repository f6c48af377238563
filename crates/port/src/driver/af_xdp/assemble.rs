//! Assembly of ports: checks each interface, then creates memory, sockets and programs for all of them.

use super::error::AfXdpError;
use super::far_end::{LostFrames, Queues, prepare, prepare_generic, queues};
use super::program::{Attach, Redirect};
use super::sender::Sender;
use super::socket::{Buffers, Mode, RingSizes, Socket};
use super::umem::{Frames, Umem};
use super::{AfXdpPlan, AfXdpPort, MAX_MTU, SharedState};
use crate::driver::InterfaceState;
use crate::interface::{Claim, Interface, OffloadGuard, OpenError};
use crate::system::{checked, owned};
use longwire_block::PortStats;
use longwire_units::{Nanos, counted};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// An interface that was checked and claimed.
struct Ready {
    name: String,
    interface: Interface,
    claim: Claim,
    guards: Vec<OffloadGuard>,
    lost: LostFrames,
    queues: Queues,
    /// Number of ports that share them.
    ports: u32,
    mtu: u32,
    ring: u32,
}

/// The sockets and the program of one interface.
struct InterfaceSockets {
    redirect: Redirect,
    attach: Attach,
    /// Why native XDP was not possible.
    not_native: Option<String>,
    sockets: Vec<Socket>,
    /// One per port.
    senders: Vec<Sender>,
}

/// An error and its port.
struct Failure {
    port: usize,
    action: &'static str,
    source: io::Error,
}

pub(super) fn open_all(plans: Vec<AfXdpPlan>) -> Result<Vec<AfXdpPort>, AfXdpError> {
    let mut ready = plans.into_iter().map(Ready::new).collect::<Result<Vec<_>, _>>()?;
    let longest = ready.iter().map(|port| port.mtu).max().unwrap_or(0);
    let buffers = Buffers::for_mtu(longest);
    let (umem, wired, mode, not_zero_copy) = match wire_all(&ready, Mode::ZeroCopy, buffers) {
        Ok((umem, wired)) => (umem, wired, Mode::ZeroCopy, None),
        Err(zero_copy) => {
            let (umem, wired) =
                wire_all(&ready, Mode::Copy, buffers).map_err(|failure| failure.explain(&ready, buffers))?;
            let name = ready.get(zero_copy.port).map_or("", |port| port.interface.name());
            (umem, wired, Mode::Copy, Some(format!("{name}: {}", zero_copy.source)))
        }
    };
    let mut ports = Vec::with_capacity(ready.len());
    for (mut ready, wired) in ready.drain(..).zip(wired) {
        if wired.attach == Attach::Generic {
            ready.guards.push(prepare_generic(&ready.interface)?);
        }
        let description = describe(&ready, &wired, mode, not_zero_copy.as_deref())
            + if buffers == Buffers::Several { ", multi-buffer" } else { "" };
        deal(ready, wired, &umem, (description, buffers), &mut ports)?;
    }
    Ok(ports)
}

/// Creates the ports of an interface.
fn deal(
    ready: Ready,
    wired: InterfaceSockets,
    umem: &Arc<Umem>,
    (description, buffers): (String, Buffers),
    ports: &mut Vec<AfXdpPort>,
) -> Result<(), AfXdpError> {
    let shared =
        Arc::new(SharedState { _redirect: wired.redirect, _guards: ready.guards, _claim: ready.claim });
    let mut own: Vec<Vec<Socket>> = wired.senders.iter().map(|_| Vec::new()).collect();
    for (queue, socket) in wired.sockets.into_iter().enumerate() {
        own[queue % wired.senders.len()].push(socket);
    }
    let mut lost = Some(ready.lost);
    for (sockets, sender) in own.into_iter().zip(wired.senders) {
        let readable = readable(&sockets);
        ports.push(AfXdpPort {
            readable: readable.map_err(|e| OpenError::from_io(&ready.name, "watch its sockets", e))?,
            name: ready.name.clone(),
            description: description.clone(),
            _shared: Arc::clone(&shared),
            sockets,
            sender,
            umem: Arc::clone(umem),
            interface: ready.interface.clone(),
            lost: lost.take(),
            mtu: ready.mtu,
            max_mtu: buffers.max_mtu(),
            turn: 0,
            check_at: Nanos::ZERO,
            state: InterfaceState::Up,
            stats: PortStats::default(),
        });
    }
    Ok(())
}

impl Ready {
    fn new(plan: AfXdpPlan) -> Result<Self, AfXdpError> {
        let interface = Interface::open(&plan.interface)?;
        let name = || plan.interface.clone();
        if !plan.ring.is_power_of_two() || !(64..=32_768).contains(&plan.ring) {
            return Err(AfXdpError::Ring { name: name(), ring: plan.ring });
        }
        let claim = Claim::take(&interface)?;
        // Fails if it is not Ethernet.
        interface.mac()?;
        let mtu = interface.mtu()?;
        if mtu > MAX_MTU {
            return Err(AfXdpError::Mtu { name: name(), mtu, max: MAX_MTU });
        }
        let queues = queues(&interface)?;
        queues.suffice(plan.queues.into(), interface.name())?;
        let prepared = prepare(&interface, plan.far_end)?;
        let lost = LostFrames::new(&interface, prepared.found.as_ref())?;
        Ok(Self {
            name: plan.name,
            interface,
            claim,
            guards: prepared.guards,
            lost,
            queues,
            ports: plan.queues.into(),
            mtu,
            ring: plan.ring,
        })
    }

    /// Number of frames: a ring's worth for each receive queue and for each port's sending.
    fn frames(&self) -> u32 {
        self.ring * (self.queues.count + self.ports)
    }

    /// The frames, from `first` on, of a receive queue or, after those, of a sending port.
    fn part(&self, first: u64, number: u32) -> Frames {
        Frames { first: first + u64::from(self.ring * number) * FRAME, count: self.ring }
    }
}

/// Creates memory, sockets and programs for all ports. Zero-copy is a property of the memory, so all have it
/// or none.
fn wire_all(
    ready: &[Ready],
    mode: Mode,
    buffers: Buffers,
) -> Result<(Arc<Umem>, Vec<InterfaceSockets>), Failure> {
    let total = ready.iter().map(|port| port.frames() as usize).sum();
    let failure = |port, action| move |source| Failure { port, action, source };
    let umem = Arc::new(Umem::new(total).map_err(failure(0, "get memory for its frames"))?);
    let mut wired: Vec<InterfaceSockets> = Vec::with_capacity(ready.len());
    let mut first = 0;
    for (port, fit) in ready.iter().enumerate() {
        let shared = wired.first().and_then(|wired| wired.sockets.first()).map(|socket| socket.fd.as_fd());
        let sockets = bind(fit, &umem, first, (mode, buffers), shared)
            .map_err(failure(port, "bind an AF_XDP socket"))?;
        let (redirect, attach, not_native) =
            attach(fit, &sockets, mode, buffers).map_err(failure(port, "attach the XDP program"))?;
        let senders = (0..fit.ports)
            .map(|port| Sender::new(&fit.part(first, fit.queues.count + port), buffers))
            .collect();
        wired.push(InterfaceSockets { redirect, attach, not_native, sockets, senders });
        first += u64::from(fit.frames()) * FRAME;
    }
    Ok((umem, wired))
}

const FRAME: u64 = super::umem::FRAME as u64;

/// Binds a socket to each receive queue, with frames from `first` on. The very first one registers the
/// memory.
fn bind(
    ready: &Ready,
    umem: &Umem,
    first: u64,
    how: (Mode, Buffers),
    shared: Option<BorrowedFd<'_>>,
) -> io::Result<Vec<Socket>> {
    let mut sockets: Vec<Socket> = Vec::with_capacity(ready.queues.count as usize);
    for queue in 0..ready.queues.count {
        let owner = shared.or_else(|| sockets.first().map(|socket| socket.fd.as_fd()));
        let sizes = RingSizes { receive: ready.ring, transmit: (queue < ready.ports).then_some(ready.ring) };
        let mut socket = Socket::open(owner.is_none().then_some(umem), sizes)?;
        socket.offer(&ready.part(first, queue));
        match socket.bind(ready.interface.index(), queue, how, owner) {
            Ok(()) => sockets.push(socket),
            // Fewer queues are in use than the interface supports.
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL)
                    && !ready.queues.is_exact
                    && queue >= ready.ports =>
            {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
}

/// A descriptor that this process has just closed may still be open in a child that another thread is
/// starting, until the child runs its command. Attempts to wait for that, and the time between them.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Attaches the program: in the driver if possible, else generically.
fn attach(
    ready: &Ready,
    sockets: &[Socket],
    mode: Mode,
    buffers: Buffers,
) -> io::Result<(Redirect, Attach, Option<String>)> {
    let index = ready.interface.index();
    let by_queue: Vec<_> = sockets.iter().map(|socket| socket.fd.as_fd()).collect();
    let mut native = Redirect::attach(index, &by_queue, Attach::Native, buffers);
    for _ in 1..TRIES {
        match &native {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(PAUSE),
            _ => break,
        }
        native = Redirect::attach(index, &by_queue, Attach::Native, buffers);
    }
    let error = match native {
        Ok(redirect) => return Ok((redirect, Attach::Native, None)),
        Err(error) => error,
    };
    let is_final = matches!(
        error.raw_os_error(),
        Some(libc::EBUSY | libc::EEXIST | libc::ERANGE | libc::EPERM | libc::EACCES | libc::ENODEV)
    );
    if is_final || mode == Mode::ZeroCopy {
        return Err(error);
    }
    let redirect = Redirect::attach(index, &by_queue, Attach::Generic, buffers)?;
    Ok((redirect, Attach::Generic, Some(error.to_string())))
}

impl Failure {
    fn explain(self, ready: &[Ready], buffers: Buffers) -> AfXdpError {
        let name = ready.get(self.port).map_or_else(String::new, |port| port.interface.name().into());
        let is_attaching = self.action.starts_with("attach");
        match self.source.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) if is_attaching => AfXdpError::Occupied { name },
            // veth_xdp_set in the kernel's drivers/net/veth.c.
            Some(libc::ERANGE) if is_attaching => AfXdpError::FarMtu { name, max: buffers.max_mtu() },
            // The kernel or the driver does not support frames in several buffers.
            Some(libc::EINVAL | libc::EOPNOTSUPP) if buffers == Buffers::Several => {
                let mtu = ready.iter().map(|port| port.mtu).max().unwrap_or(0);
                let long = ready.iter().find(|port| port.mtu == mtu);
                let name = long.map_or(name, |port| port.interface.name().into());
                AfXdpError::Mtu { name, mtu, max: Buffers::One.max_mtu() }
            }
            _ => OpenError::from_io(&name, self.action, self.source).into(),
        }
    }
}

fn describe(ready: &Ready, wired: &InterfaceSockets, mode: Mode, not_zero_copy: Option<&str>) -> String {
    let native = match (&wired.attach, &wired.not_native) {
        (Attach::Native, _) => "native".into(),
        (Attach::Generic, None) => "generic".into(),
        (Attach::Generic, Some(reason)) => format!("generic (no native XDP: {reason})"),
    };
    let copy = match (mode, not_zero_copy) {
        (Mode::ZeroCopy, _) => "zero-copy".into(),
        (Mode::Copy, None) => "copy".into(),
        (Mode::Copy, Some(reason)) => format!("copy (no zero-copy: {reason})"),
    };
    let queues = counted(wired.sockets.len() as u64, "queue");
    let workers = match ready.ports {
        1 => String::new(),
        ports => format!(" at {ports} workers"),
    };
    format!("af_xdp on {}, {native}, {copy}, {queues}{workers}", ready.interface.name())
}

/// A descriptor that becomes readable when a frame waits at any of the sockets.
fn readable(sockets: &[Socket]) -> io::Result<OwnedFd> {
    // SAFETY: epoll_create1 takes no pointers; nothing else owns the descriptor that it returns.
    let epoll = unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }?;
    for socket in sockets {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let (fd, watched) = (epoll.as_raw_fd(), socket.fd.as_raw_fd());
        // SAFETY: `event` is only read during the call.
        checked(unsafe { libc::epoll_ctl(fd, libc::EPOLL_CTL_ADD, watched, &raw mut event) })?;
    }
    Ok(epoll)
}
