//! The receive ring (TPACKET_V2, Documentation/networking/packet_mmap.rst): slots shared with the kernel,
//! with a frame each.

use crate::interface::OpenError;
use crate::system::{MappedMemory, set_option};
use crate::vnet::{self, ETHERNET, RawFrame, TAG};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a block of the ring; slots do not cross block boundaries.
const BLOCK: usize = 1 << 20;
/// Bytes before the frame in a slot: the kernel's header and address, the virtio header, and alignment.
const BEFORE: usize = libc::TPACKET2_HDRLEN + vnet::LEN + 32;

/// A mapped receive ring.
pub(crate) struct Ring {
    memory: MappedMemory,
    blocks: usize,
    slot: usize,
    slots_a_block: usize,
    /// The slot that the kernel fills next or has filled.
    block: usize,
    place: usize,
}

/// The contents of a slot.
pub(crate) enum Slot<'a> {
    /// Not filled yet.
    Empty,
    /// A frame longer than the slot.
    Cut,
    /// A frame, with its timestamp in seconds and nanoseconds of real time.
    Frame(RawFrame<'a>, u32, u32),
}

impl Ring {
    /// Creates a ring of at least `slots` slots for frames of up to `longest` bytes. The socket's TPACKET
    /// version and virtio header must be set.
    pub(crate) fn map(
        socket: BorrowedFd<'_>,
        slots: u32,
        longest: usize,
        name: &str,
    ) -> Result<Self, OpenError> {
        let slot = (longest + TAG + BEFORE).next_multiple_of(64);
        let slots_a_block = BLOCK / slot;
        let blocks = (slots as usize).div_ceil(slots_a_block);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: (blocks * slots_a_block) as u32,
        };
        let failed = |action| move |error| OpenError::from_io(name, action, error);
        set_option(socket, (libc::SOL_PACKET, libc::PACKET_RX_RING), &request)
            .map_err(failed("make its receive ring"))?;
        let memory = MappedMemory::map(Some(socket), 0, blocks * BLOCK);
        let memory = memory.map_err(failed("map its receive ring"))?;
        Ok(Self { memory, blocks, slot, slots_a_block, block: 0, place: 0 })
    }

    /// Capacity in frames.
    pub(crate) fn slots(&self) -> usize {
        self.blocks * self.slots_a_block
    }

    /// The contents of the current slot, which stays ours until [`Ring::release`].
    #[inline]
    pub(crate) fn peek(&self, with_header: bool) -> Slot<'_> {
        let slot = self.at(self.block, self.place);
        if self.status(slot).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return Slot::Empty;
        }
        // SAFETY: the slot is ours (status read with acquire), aligned to 64 bytes and longer than the
        // header.
        let head = unsafe { &*slot.as_ptr().cast::<libc::tpacket2_hdr>() };
        let (start, len) = (usize::from(head.tp_mac), head.tp_snaplen as usize);
        if head.tp_len != head.tp_snaplen || start < vnet::LEN || start + len > self.slot {
            return Slot::Cut;
        }
        // SAFETY: start + len lies within the slot, as just checked; the kernel does not write to our slots.
        let bytes = unsafe { std::slice::from_raw_parts(slot.as_ptr().add(start), len) };
        let header = with_header.then(|| {
            // SAFETY: the virtio header ends where the frame starts, and `start` leaves room for it.
            unsafe { slot.as_ptr().add(start - vnet::LEN).cast::<[u8; vnet::LEN]>().read_unaligned() }
        });
        let found = RawFrame {
            header,
            bytes,
            tag: tag_of(head, len),
            open_checksum: head.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0,
            arrival: 0,
        };
        Slot::Frame(found, head.tp_sec, head.tp_nsec)
    }

    /// Returns the current slot to the kernel and advances to the next.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.status(self.at(self.block, self.place)).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.place += 1;
        if self.place == self.slots_a_block {
            self.place = 0;
            self.block = (self.block + 1) % self.blocks;
        }
        // Slots are far apart: without the prefetch each costs a cache miss or two.
        let next = self.at(self.block, (self.place + 2).min(self.slots_a_block - 1));
        // SAFETY: both lines lie in the mapping; AtomicU32 allows shared access to memory the kernel writes.
        unsafe {
            longwire_packet::prefetch(&*next.as_ptr().cast::<AtomicU32>());
            longwire_packet::prefetch(&*next.as_ptr().add(64).cast::<AtomicU32>());
        }
    }

    #[inline]
    fn at(&self, block: usize, place: usize) -> NonNull<u8> {
        // SAFETY: `block` and `place` stay below their counts, so this is in the mapping.
        unsafe { self.memory.start().add(block * BLOCK + place * self.slot) }
    }

    #[inline]
    fn status(&self, slot: NonNull<u8>) -> &AtomicU32 {
        // SAFETY: a slot begins with its status word, aligned to 64 bytes; the kernel and we access it
        // atomically.
        unsafe { &*slot.as_ptr().cast::<AtomicU32>() }
    }
}

/// The VLAN tag that the kernel took out of the frame.
#[inline]
fn tag_of(head: &libc::tpacket2_hdr, len: usize) -> Option<[u8; TAG]> {
    if head.tp_status & libc::TP_STATUS_VLAN_VALID == 0 || len < ETHERNET {
        return None;
    }
    let kind = match head.tp_status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => libc::ETH_P_8021Q as u16,
        _ => head.tp_vlan_tpid,
    };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), head.tp_vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}
