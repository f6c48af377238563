//! The sending side of a port: it puts frames into the shared memory and descriptors into the ring, and makes
//! system calls to send them.

use super::socket::{Buffers, Socket, wake_transmit};
use super::umem::{FRAME, Frames, Umem};
use std::io;
use std::os::fd::AsFd;

/// State of the sending side.
pub(super) struct Sender {
    /// Free frames.
    free: Vec<u64>,
    /// For each slot of the ring: length of the frame whose last buffer is there, or zero.
    ends: Box<[u32]>,
    /// Most buffers of a frame.
    most: usize,
    /// The kernel's position in the ring, as far as it is known.
    position: u32,
    /// Descriptors are left in the ring because the kernel could not take more.
    stuck: bool,
    /// Frames passed to the kernel minus those that it dropped.
    pub(super) sent: Count,
    /// Frames that the kernel has dropped.
    pub(super) dropped: u64,
}

/// Frames and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Count {
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

impl Sender {
    /// Creates a sender with these frames, as many as the ring has slots.
    pub(super) fn new(frames: &Frames, buffers: Buffers) -> Self {
        let address = |frame| frames.first + u64::from(frame) * FRAME as u64;
        Self {
            free: (0..frames.count).rev().map(address).collect(),
            ends: vec![0; frames.count as usize].into(),
            most: buffers.most(),
            position: 0,
            stuck: false,
            sent: Count::default(),
            dropped: 0,
        }
    }

    /// Whether the kernel must be asked to send again.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// Puts a frame into the ring, in buffers of [`FRAME`]. False without room, or if it needs too many.
    pub(super) fn put(&mut self, socket: &mut Socket, umem: &Umem, data: &[u8]) -> io::Result<bool> {
        let pieces = data.len().div_ceil(FRAME);
        if pieces > self.most {
            return Ok(false);
        }
        if !self.has_room(socket, pieces) {
            self.kick(socket)?;
            self.reap(socket);
            if !self.has_room(socket, pieces) {
                return Ok(false);
            }
        }
        let Some(ring) = socket.transmit.as_mut() else { return Ok(false) };
        let mut rest = data;
        while let Some(address) = self.free.pop() {
            let (piece, behind) = rest.split_at(rest.len().min(FRAME));
            // SAFETY: the address is that of a free frame of this sender, which the kernel does not hold.
            let is_written = unsafe { umem.write(address, piece) };
            debug_assert!(is_written, "addresses on the free list are in the memory");
            let (end, options) =
                if behind.is_empty() { (data.len() as u32, 0) } else { (0, libc::XDP_PKT_CONTD) };
            let slot = ring.end() as usize & (self.ends.len() - 1);
            self.ends[slot] = end;
            ring.put(libc::xdp_desc { addr: address, len: piece.len() as u32, options });
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        self.sent.frames += 1;
        self.sent.bytes += data.len() as u64;
        Ok(true)
    }

    /// Publishes the frames, and makes the kernel send as many as it can without waiting.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub(super) fn kick(&mut self, socket: &mut Socket) -> io::Result<()> {
        let Some(ring) = socket.transmit.as_mut() else { return Ok(()) };
        ring.publish_filled();
        self.follow(ring.taken());
        while self.position != ring.end() && ring.wants_wakeup() {
            let result = wake_transmit(socket.fd.as_fd());
            let taken = ring.taken();
            match result.as_ref().err().and_then(io::Error::raw_os_error) {
                // The device dropped a frame; the next may succeed (net/xdp/xsk.c, __xsk_generic_xmit). The
                // kernel updates its position, this frame included, only if it sent frames before it.
                Some(libc::EBUSY) => {
                    let mut refused = if self.follow(taken) { taken.wrapping_sub(1) } else { self.position };
                    while self.length(refused) == 0 {
                        refused = refused.wrapping_add(1);
                    }
                    self.sent.frames -= 1;
                    self.sent.bytes -= self.length(refused);
                    self.dropped += 1;
                    self.position = refused.wrapping_add(1);
                }
                // It may stop early; without progress the rest waits for room in the device or memory.
                None | Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => {
                    if !self.follow(taken) {
                        break;
                    }
                }
                Some(_) => return result,
            }
        }
        self.stuck = self.position != ring.end();
        Ok(())
    }

    /// Takes back completed frames.
    pub(super) fn reap(&mut self, socket: &mut Socket) {
        loop {
            let done = socket.completion.filled(1);
            if done == 0 {
                break;
            }
            for _ in 0..done {
                let address = socket.completion.take();
                self.free.push(address & !(FRAME as u64 - 1));
            }
            socket.completion.publish_taken();
        }
    }

    /// Counts the frames that are still in the ring as not sent.
    pub(super) fn abandon(&mut self, socket: &mut Socket) -> u64 {
        let Some(ring) = socket.transmit.as_mut() else { return 0 };
        let mut left = 0;
        while self.position != ring.end() {
            let length = self.length(self.position);
            let frames = u64::from(length > 0);
            self.sent.frames -= frames;
            self.sent.bytes -= length;
            self.position = self.position.wrapping_add(1);
            left += frames;
        }
        self.stuck = false;
        left
    }

    /// Records the kernel's position; returns whether it has advanced.
    fn follow(&mut self, taken: u32) -> bool {
        let is_ahead = (taken.wrapping_sub(self.position) as i32) > 0;
        if is_ahead {
            self.position = taken;
        }
        is_ahead
    }

    /// The length of the frame whose last buffer is at this position of the ring, or zero.
    fn length(&self, place: u32) -> u64 {
        u64::from(self.ends[place as usize & (self.ends.len() - 1)])
    }

    fn has_room(&mut self, socket: &mut Socket, pieces: usize) -> bool {
        let pieces = pieces as u32;
        let in_ring = socket.transmit.as_mut().is_some_and(|ring| ring.room(pieces) >= pieces);
        in_ring && self.free.len() >= pieces as usize
    }
}
