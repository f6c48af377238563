//! An AF_XDP socket: options, rings, binding to a queue.

use super::ring::Ring;
use super::umem::{Frames, Umem};
use crate::system::{checked, grow, owned, set_option};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// From linux/if_xdp.h, since Linux 6.17; missing in libc.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// Attempts to bind to a queue that a socket being closed still holds, and the time between them.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);
/// A native program without fragments needs headroom, frame and the kernel's data in one page.
const MAX_MTU_OF_ONE: u32 = 3506;

/// How the kernel moves frames between the device and the shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The device accesses the memory.
    ZeroCopy,
    /// The kernel copies.
    Copy,
}

/// Number of buffers of shared memory that a frame may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Buffers {
    /// One: supported by every kernel and driver.
    One,
    /// Several (`XDP_USE_SG`, Linux 6.6): for larger MTUs.
    Several,
}

impl Buffers {
    /// The buffers for this MTU.
    pub(super) const fn for_mtu(mtu: u32) -> Self {
        if mtu > MAX_MTU_OF_ONE { Self::Several } else { Self::One }
    }

    pub(super) const fn max_mtu(self) -> u32 {
        match self {
            Self::One => MAX_MTU_OF_ONE,
            Self::Several => super::MAX_MTU,
        }
    }

    /// Most buffers of a frame to send.
    pub(super) const fn most(self) -> usize {
        match self {
            Self::One => 1,
            Self::Several => longwire_packet::MAX_FRAME.div_ceil(super::umem::FRAME),
        }
    }
}

/// A socket with its rings. Binding requires a fill ring and a completion ring.
pub(super) struct Socket {
    pub(super) fd: OwnedFd,
    pub(super) fill: Ring<u64>,
    pub(super) completion: Ring<u64>,
    pub(super) receive: Ring<libc::xdp_desc>,
    /// Only one socket of a port sends, so that frames keep their order.
    pub(super) transmit: Option<Ring<libc::xdp_desc>>,
}

/// Sizes of a socket's rings, powers of two.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingSizes {
    pub(super) receive: u32,
    pub(super) transmit: Option<u32>,
}

impl Socket {
    /// Opens a socket with its rings, not yet bound. The first socket of a worker registers the shared
    /// memory.
    pub(super) fn open(own: Option<&Umem>, sizes: RingSizes) -> io::Result<Self> {
        // SAFETY: socket takes no pointers; nothing else owns the descriptor that it returns.
        let fd = unsafe { owned(libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0)) }?;
        let socket = fd.as_fd();
        if let Some(umem) = own {
            let registration = libc::xdp_umem_reg {
                addr: umem.address(),
                len: umem.len(),
                chunk_size: super::umem::FRAME as u32,
                headroom: 0,
                flags: 0,
                tx_metadata_len: 0,
            };
            set_option(socket, (libc::SOL_XDP, libc::XDP_UMEM_REG), &registration)?;
        }
        // A completion ring is required; two slots are the minimum.
        let completions = sizes.transmit.unwrap_or(2);
        let set = |option, value: u32| set_option(socket, (libc::SOL_XDP, option), &value);
        set(libc::XDP_UMEM_FILL_RING, sizes.receive)?;
        set(libc::XDP_UMEM_COMPLETION_RING, completions)?;
        set(libc::XDP_RX_RING, sizes.receive)?;
        if let Some(size) = sizes.transmit {
            set(libc::XDP_TX_RING, size)?;
            // One system call is to send the whole ring, instead of 32 frames or fewer. Failure, as on old
            // kernels, only costs speed.
            let _ = set(XDP_MAX_TX_SKB_BUDGET, size);
            grow(socket, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], 64 << 20);
        }
        let offsets = offsets(socket)?;
        let transmit =
            sizes.transmit.map(|size| Ring::map(socket, libc::XDP_PGOFF_TX_RING, &offsets.tx, size));
        Ok(Self {
            fill: Ring::map(socket, libc::XDP_UMEM_PGOFF_FILL_RING as i64, &offsets.fr, sizes.receive)?,
            completion: Ring::map(
                socket,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64,
                &offsets.cr,
                completions,
            )?,
            receive: Ring::map(socket, libc::XDP_PGOFF_RX_RING, &offsets.rx, sizes.receive)?,
            transmit: transmit.transpose()?,
            fd,
        })
    }

    /// Passes all of `frames` to the kernel for receiving.
    pub(super) fn offer(&mut self, frames: &Frames) {
        for frame in 0..frames.count.min(self.fill.room(frames.count)) {
            self.fill.put(frames.first + u64::from(frame) * super::umem::FRAME as u64);
        }
        self.fill.publish_filled();
    }

    /// Binds to a queue of the interface with this index. `shared` is the socket whose memory is used; its
    /// mode and buffers also apply to this one, and no other flag may be passed.
    pub(super) fn bind(
        &self,
        index: u32,
        queue: u32,
        (mode, buffers): (Mode, Buffers),
        shared: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let several = if buffers == Buffers::Several { libc::XDP_USE_SG } else { 0 };
        let flags = match (shared, mode) {
            (Some(_), _) => libc::XDP_SHARED_UMEM,
            (None, Mode::ZeroCopy) => libc::XDP_ZEROCOPY | libc::XDP_USE_NEED_WAKEUP | several,
            (None, Mode::Copy) => libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP | several,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: index,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: shared.map_or(0, |fd| fd.as_raw_fd() as u32),
        };
        let length = size_of_val(&address) as libc::socklen_t;
        for _ in 1..TRIES {
            // SAFETY: `address` is a socket address of `length` bytes.
            match checked(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), length) }) {
                // The kernel releases a queue some time after its socket is closed.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(PAUSE),
                result => return result.map(drop),
            }
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }

    /// Makes the kernel continue receiving; also the cheapest way to find that the interface is down or gone.
    pub(super) fn wake_receive(&self) -> io::Result<()> {
        // SAFETY: no buffer is passed.
        let result = unsafe { libc::recv(self.fd.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
        checked(result).map(drop)
    }

    /// Frames for this queue that the kernel dropped: no frame or slot was free, or they were too long.
    pub(super) fn lost(&self) -> u64 {
        let statistics: io::Result<[u64; 6]> = read(self.fd.as_fd(), libc::XDP_STATISTICS);
        // struct xdp_statistics: rx_dropped first, rx_ring_full fourth.
        statistics.map_or(0, |words| words[0] + words[3])
    }
}

/// Makes the kernel send the frames in the transmit ring.
pub(super) fn wake_transmit(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no buffer is passed.
    checked(unsafe { libc::send(socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT) }).map(drop)
}

fn offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    let words: [u64; 16] = read(socket, libc::XDP_MMAP_OFFSETS)?;
    let ring = |at: usize| libc::xdp_ring_offset {
        producer: words[at],
        consumer: words[at + 1],
        desc: words[at + 2],
        flags: words[at + 3],
    };
    Ok(libc::xdp_mmap_offsets { rx: ring(0), tx: ring(4), fr: ring(8), cr: ring(12) })
}

/// Reads an option that is an array of 64-bit words. A kernel that returns fewer words is too old.
fn read<const N: usize>(socket: BorrowedFd<'_>, option: libc::c_int) -> io::Result<[u64; N]> {
    let mut words = [0; N];
    let mut length = size_of_val(&words) as libc::socklen_t;
    let wanted = length;
    // SAFETY: `words` has `length` bytes to write to.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, (&raw mut words).cast(), &raw mut length)
    };
    checked(result)?;
    if length == wanted { Ok(words) } else { Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)) }
}
