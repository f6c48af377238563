//! Copies of packets before programs or levels above rewrote them: ICMP errors quote the original packet, and
//! go to its sender (RFC 5508, section 4, requires this of NATs).
//!
//! A packet whose length a program changes is another packet, which errors quote as it is: its excess length
//! is not its sender's.

use longwire_packet::{BATCH, FirstLine, Handle, Pool};

/// The first bytes of a packet, and its length.
#[derive(Debug, Clone, Copy)]
struct OriginalBytes {
    handle: Handle,
    len: u32,
    line: FirstLine,
}

/// Copies for packets being decided about, and for some that wait.
#[derive(Debug)]
pub(crate) struct Before {
    noted: Box<[OriginalBytes; BATCH]>,
    count: usize,
    held: Vec<OriginalBytes>,
    /// Those of `held` that are at levels above.
    up: usize,
}

/// Capacity for waiting packets. Errors about others that wait quote them as they are.
const HELD: usize = 512;

impl Before {
    pub fn new() -> Self {
        let none = OriginalBytes { handle: Handle::NONE, len: 0, line: [0; size_of::<FirstLine>()] };
        Self { noted: Box::new([none; BATCH]), count: 0, held: Vec::new(), up: 0 }
    }

    /// Copies a packet that may be rewritten.
    #[inline]
    pub fn note(&mut self, pool: &Pool, handle: Handle) {
        self.note_as(pool, handle, *pool.first_line(handle));
    }

    /// Records a packet that was rewritten, with its original first bytes.
    #[inline]
    pub fn note_as(&mut self, pool: &Pool, handle: Handle, line: FirstLine) {
        if let Some(place) = self.noted.get_mut(self.count) {
            *place = OriginalBytes { handle, len: pool.meta(handle).len, line };
            self.count += 1;
        }
    }

    /// All packets of the batch have been decided about, except those on hold.
    #[inline]
    pub const fn clear(&mut self) {
        self.count = 0;
    }

    /// Keeps the copy of a packet that waits for a decision.
    pub fn hold(&mut self, handle: Handle) {
        if let Some(&noted) = self.noted().iter().find(|noted| noted.handle == handle)
            && self.held.len() < HELD
        {
            // Once, and only if something waits.
            self.held.reserve_exact(HELD - self.held.len());
            self.held.push(noted);
        }
    }

    /// Keeps the copy of a packet that goes up, if programs have changed it.
    pub fn go_up(&mut self, pool: &Pool, handle: Handle) {
        let noted = self.noted().iter().find(|noted| noted.handle == handle);
        if noted.is_some_and(|noted| noted.line != *pool.first_line(handle)) {
            let held = self.held.len();
            self.hold(handle);
            self.up += self.held.len() - held;
        }
    }

    /// Restores the copy of a packet that was up, if any.
    #[inline]
    pub fn come_back(&mut self, handle: Handle) {
        if self.up > 0 {
            let held = self.held.len();
            self.resume(handle);
            self.up -= held - self.held.len();
        }
    }

    /// Restores the copy of a packet on hold, if any.
    pub fn resume(&mut self, handle: Handle) {
        if let Some(at) = self.held.iter().position(|noted| noted.handle == handle) {
            let noted = self.held.swap_remove(at);
            if let Some(place) = self.noted.get_mut(self.count) {
                *place = noted;
                self.count += 1;
            }
        }
    }

    /// Restores the original bytes of a packet that goes no further.
    pub fn restore(&self, pool: &mut Pool, handle: Handle) {
        let noted = self.noted().iter().find(|noted| noted.handle == handle);
        if let Some(noted) = noted.filter(|noted| noted.len == pool.meta(handle).len) {
            let frame = pool.data_mut(handle);
            let count = frame.len().min(noted.line.len());
            frame[..count].copy_from_slice(&noted.line[..count]);
        }
    }

    fn noted(&self) -> &[OriginalBytes] {
        &self.noted[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_what_they_were_unless_their_length_is_another() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut before = Before::new();
        let [short, long, cut] = [30, 100, 90].map(|len| pool.insert(&vec![7; len]).unwrap());
        for handle in [short, long, cut] {
            before.note(&pool, handle);
            pool.data_mut(handle).fill(9);
        }
        pool.meta_mut(cut).len = 80;
        for handle in [short, long, cut] {
            before.restore(&mut pool, handle);
        }
        assert_eq!(pool.data(short), [7; 30]);
        assert_eq!(pool.data(long), [[7; 64].as_slice(), &[9; 36]].concat());
        assert_eq!(pool.data(cut), [9; 80]);
    }

    #[test]
    fn what_is_held_outlasts_the_others_and_is_noted_once() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut before = Before::new();
        let [held, other] = [7, 8].map(|byte| pool.insert(&[byte; 60]).unwrap());
        for handle in [held, other] {
            before.note(&pool, handle);
            pool.data_mut(handle).fill(9);
        }
        before.hold(held);
        before.clear();
        let first = |before: &Before, pool: &mut Pool, handle| {
            before.restore(pool, handle);
            pool.data(handle)[0]
        };
        assert_eq!([held, other].map(|handle| first(&before, &mut pool, handle)), [9, 9]);
        before.resume(other);
        before.resume(held);
        assert_eq!([held, other].map(|handle| first(&before, &mut pool, handle)), [7, 9]);
        before.clear();
        pool.data_mut(held).fill(9);
        before.resume(held);
        assert_eq!(first(&before, &mut pool, held), 9, "it has gone on");
    }

    #[test]
    fn no_more_are_held_than_there_is_room_for() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut before = Before::new();
        for _ in 0..HELD + 5 {
            let handle = pool.insert(&[7; 60]).unwrap();
            before.note(&pool, handle);
            before.hold(handle);
            before.clear();
        }
        assert_eq!(before.held.len(), HELD);
    }
}
