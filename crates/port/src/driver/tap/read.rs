//! Receives a frame: into a buffer, and from there into as much of the pool as it needs; or, when long trains
//! arrive in succession, directly into the pool.

use crate::system::checked;
use crate::vnet::{self, RawFrame};
use longwire_block::PortStats;
use longwire_clock::monotonic;
use longwire_packet::{Batch, Handle, MAX_FRAME, Pool};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Receives from the queues of an interface.
pub(super) struct Reader {
    /// A virtio header and a frame.
    buffer: Box<[u8]>,
    /// The previous frame needed the largest buffer of the pool, and the next probably does too.
    expects_long: bool,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; vnet::LEN + MAX_FRAME].into(), expects_long: false }
    }

    /// Takes a frame into the pool and the batch, which must have room, or counts why not.
    ///
    /// # Errors
    /// No frame waits, or the interface is down or gone.
    pub(super) fn read(
        &mut self,
        queue: BorrowedFd<'_>,
        pool: &mut Pool,
        stats: &mut PortStats,
        batch: &mut Batch,
    ) -> io::Result<()> {
        // Without room for the longest frame this one may still fit.
        if self.expects_long
            && let Some(place) = pool.alloc(MAX_FRAME)
        {
            return self.read_in_place(queue, place, pool, stats, batch);
        }
        let buffer = &mut *self.buffer;
        // SAFETY: the buffer is ours and has this length.
        let read = unsafe { libc::read(queue.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        let read = checked(read)?;
        let Some((&header, bytes)) = buffer[..read].split_first_chunk() else {
            stats.in_bad += 1;
            return Ok(());
        };
        // Not the time of the poll: a frame that arrived after it must not leave early.
        let arrival = monotonic().0;
        self.expects_long = is_longest(bytes.len());
        let found = RawFrame { header: Some(header), bytes, tag: None, open_checksum: false, arrival };
        found.keep(pool, stats, batch);
        Ok(())
    }

    /// Reads into `place`, which has room for any frame. A shorter frame is moved, so that it holds no more
    /// of the pool than a copied one.
    fn read_in_place(
        &mut self,
        queue: BorrowedFd<'_>,
        place: Handle,
        pool: &mut Pool,
        stats: &mut PortStats,
        batch: &mut Batch,
    ) -> io::Result<()> {
        let mut header = [0; vnet::LEN];
        let frame = pool.data_mut(place);
        let vectors = [
            libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: header.len() },
            libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() },
        ];
        // SAFETY: both vectors are our memory, of these lengths, and outlive the call.
        let read = checked(unsafe { libc::readv(queue.as_raw_fd(), vectors.as_ptr(), 2) });
        let read = read.inspect_err(|_| pool.free(place))?;
        let arrival = monotonic().0;
        let len = read.saturating_sub(vnet::LEN).min(MAX_FRAME);
        self.expects_long = is_longest(len);
        if self.expects_long && pool.resize(place, len) {
            let meta = pool.meta_mut(place);
            (meta.wire_len, meta.arrival) = (len as u32, arrival);
            vnet::take(&header, place, pool, stats, batch);
            return Ok(());
        }
        let bytes = &mut self.buffer[..len];
        bytes.copy_from_slice(&pool.data(place)[..len]);
        pool.free(place);
        if read < vnet::LEN {
            stats.in_bad += 1;
            return Ok(());
        }
        let found = RawFrame { header: Some(header), bytes, tag: None, open_checksum: false, arrival };
        found.keep(pool, stats, batch);
        Ok(())
    }
}

/// Whether a frame of this length needs as much of the pool as the longest.
fn is_longest(len: usize) -> bool {
    Pool::cost_of(len) == Pool::cost_of(MAX_FRAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    /// Reads a datagram of a header and `len` bytes; returns how much of the pool the packet holds.
    fn pass(reader: &mut Reader, pool: &mut Pool, stats: &mut PortStats, len: usize) -> Option<u64> {
        let (near, far) = UnixDatagram::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let (mut batch, before) = (Batch::new(), pool.used_bytes());
        let mut read =
            |batch: &mut Batch| reader.read(near.as_fd(), pool, stats, batch).map_err(|error| error.kind());
        assert_eq!(read(&mut batch), Err(io::ErrorKind::WouldBlock));
        let mut sent = vec![0; vnet::LEN];
        sent.extend((0..len).map(|at| (at * 7 + len) as u8));
        far.send(&sent).unwrap();
        assert_eq!(read(&mut batch), Ok(()));
        assert_eq!(read(&mut batch), Err(io::ErrorKind::WouldBlock));
        let used = pool.used_bytes() - before;
        let &handle = batch.as_slice().first()?;
        assert_eq!(pool.meta(handle).wire_len as usize, len);
        assert_eq!(pool.data(handle), &sent[vnet::LEN..]);
        pool.free(handle);
        Some(used)
    }

    #[test]
    fn frames_are_whole_and_hold_what_they_need_wherever_they_are_read() {
        let mut pool = Pool::new(16 << 20).unwrap();
        let (mut reader, mut stats) = (Reader::new(), PortStats::default());
        let lengths = [60, 64_000, 64_100, 60, 65_000, 53_000, 30_000, 65_000, 1514, 14, 64_000, 2000];
        for len in lengths {
            let used = pass(&mut reader, &mut pool, &mut stats, len).unwrap();
            assert_eq!(used, Pool::cost_of(len), "{len}");
        }
        for short in [13, 0] {
            assert!(pass(&mut reader, &mut pool, &mut stats, 65_000).is_some());
            assert_eq!(pass(&mut reader, &mut pool, &mut stats, short), None);
        }
        assert_eq!((stats.in_frames, stats.in_bad, pool.live()), (lengths.len() as u64 + 2, 2, 0));
    }

    #[test]
    fn a_full_pool_counts_a_long_frame_and_keeps_a_short_one() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let (mut reader, mut stats) = (Reader::new(), PortStats::default());
        assert!(pass(&mut reader, &mut pool, &mut stats, 65_000).is_some());
        assert!(reader.expects_long);
        let small = pool.alloc(60).unwrap();
        let held: Vec<_> = std::iter::from_fn(|| pool.alloc(MAX_FRAME)).collect();
        assert!(!held.is_empty());
        assert!(pass(&mut reader, &mut pool, &mut stats, 60).is_some());
        assert_eq!(pass(&mut reader, &mut pool, &mut stats, 65_000), None);
        assert_eq!((stats.in_frames, stats.in_pool_full), (2, 1));
        assert_eq!(pool.live(), held.len() as u64 + 1);
        pool.free(small);
    }
}
