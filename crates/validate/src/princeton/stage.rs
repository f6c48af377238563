//! The two stages of the paper's pipeline, memory to memory: the loops of its figures 5 and 6.

use super::queue::{Buffers, Entry, Frame, Guard, Queue, Ready};
use std::hint::black_box;

/// Output ports, as on the paper's board.
pub(super) const PORTS: usize = 8;
/// Queues per port where there are several (section 3.4.1).
pub(super) const PRIORITIES: usize = 16;
/// Slots of a FIFO.
const SLOTS: usize = 16;
/// Packets between two clock readings.
pub(super) const BURST: u64 = 4096;

/// The route of an address.
#[derive(Debug, Clone, Copy, Default)]
struct Route {
    address: u32,
    port: u32,
    mac: u64,
}

/// A route cache with a single access: the hash of an address is its slot. It contains every address used, as
/// in the paper.
#[derive(Debug)]
struct RouteCache([Route; 256]);

impl RouteCache {
    fn new() -> Self {
        let mut routes = [Route::default(); 256];
        for host in 0..PORTS as u32 {
            let address = address(host);
            routes[place(address)] = Route { address, port: host, mac: 0x0200_0000_0100 | u64::from(host) };
        }
        Self(routes)
    }

    #[inline]
    fn find(&self, address: u32) -> Option<Route> {
        let route = self.0[place(address)];
        (route.address == address).then_some(route)
    }
}

const fn address(host: u32) -> u32 {
    0x0a00_0001 + (host << 8)
}

#[inline]
const fn place(address: u32) -> usize {
    (address.wrapping_mul(0x9e37_79b1) >> 24) as usize
}

/// A packet of 64 bytes to a host behind this port. Its destination address is bytes 30 to 33: across words 3
/// and 4.
fn frame(port: u32) -> Frame {
    let mut bytes = [0x55u8; 64];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[30..34].copy_from_slice(&address(port).to_be_bytes());
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

#[inline]
const fn destination(frame: &Frame) -> u32 {
    ((frame[3] >> 48) as u32 | (frame[4] as u32) << 16).swap_bytes()
}

/// An input worker: FIFO slots that always hold packets, registers, a buffer, a queue.
#[derive(Debug)]
pub(super) struct Input<'a> {
    worker: usize,
    fifo: [Frame; SLOTS],
    routes: RouteCache,
    buffers: &'a Buffers,
    /// Its queues, by port and priority.
    queues: &'a [Queue],
    ready: Option<&'a [Ready]>,
    guard: Guard,
    heads: Vec<u64>,
    next: u64,
}

impl<'a> Input<'a> {
    /// The worker with this number, whose packets go to these ports. There is a queue per port, or
    /// [`PRIORITIES`] queues per port with bits that mark the non-empty ones.
    pub fn new(
        worker: usize,
        ports: &[u32],
        buffers: &'a Buffers,
        (queues, ready): (&'a [Queue], Option<&'a [Ready]>),
        guard: Guard,
    ) -> Self {
        Self {
            worker,
            fifo: std::array::from_fn(|slot| frame(ports[slot % ports.len()])),
            routes: RouteCache::new(),
            buffers,
            queues,
            ready,
            guard,
            heads: vec![0; queues.len()],
            next: 0,
        }
    }

    /// Receives this many packets, by figure 5.
    pub fn run(&mut self, packets: u64) {
        for _ in 0..packets {
            self.one();
        }
    }

    #[inline]
    fn one(&mut self) {
        let mut registers = black_box(&self.fifo)[self.next as usize % SLOTS];
        let Some(route) = self.routes.find(destination(&registers)) else { return };
        // The simplest forwarder: another destination MAC address.
        registers[0] = registers[0] & !0xffff_ffff_ffff | route.mac;
        self.buffers.write(self.next, &registers);
        let entry = Entry::new(self.worker, self.next);
        let port = route.port as usize;
        match self.ready {
            None => self.queues[port].put(self.guard, &mut self.heads[port], entry),
            Some(ready) => {
                let priority = self.next as usize % PRIORITIES;
                let queue = port * PRIORITIES + priority;
                self.queues[queue].put(self.guard, &mut self.heads[queue], entry);
                ready[port].set(priority);
            }
        }
        self.next += 1;
    }
}

/// Queues of an output worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// One queue, whose head is read when all known packets have been sent.
    Batched,
    /// One queue, whose head is read for each packet.
    Unbatched,
    /// [`PRIORITIES`] queues, and bits that mark non-empty ones.
    Indirect,
}

/// Counters of an output worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OutputCounts {
    pub sent: u64,
    /// Packets whose buffers had been overwritten.
    pub late: u64,
    /// Packets whose queue entries had been overwritten.
    pub overwritten: u64,
}

/// An output worker for one port: queues, buffers, FIFO slots.
#[derive(Debug)]
pub(super) struct Output<'a> {
    choice: Choice,
    /// Buffers of the input workers, by number.
    buffers: &'a [Buffers],
    queues: &'a [Queue],
    ready: Option<&'a Ready>,
    tails: [u64; PRIORITIES],
    /// The queue's head when last read.
    known: u64,
    fifo: [Frame; SLOTS],
    pub counts: OutputCounts,
}

impl<'a> Output<'a> {
    /// For one port: its queue, or its queues with their bits.
    pub fn new(
        choice: Choice,
        buffers: &'a [Buffers],
        queues: &'a [Queue],
        ready: Option<&'a Ready>,
    ) -> Self {
        Self {
            choice,
            buffers,
            queues,
            ready,
            tails: [0; PRIORITIES],
            known: 0,
            fifo: [[0; 8]; SLOTS],
            counts: OutputCounts::default(),
        }
    }

    /// Runs this many iterations, by figure 6. Returns the number of packets met.
    pub fn run(&mut self, times: u64) -> u64 {
        let before = self.met();
        for _ in 0..times {
            let Some(queue) = self.select() else { continue };
            self.take(queue);
        }
        self.met() - before
    }

    /// Packets so far, lost ones included.
    pub const fn met(&self) -> u64 {
        self.counts.sent + self.counts.late + self.counts.overwritten
    }

    /// Which of its queues have packets.
    pub fn waiting(&self) -> impl Iterator<Item = bool> {
        self.queues.iter().zip(self.tails).map(|(queue, tail)| tail < queue.head())
    }

    /// Read positions of its queues.
    pub const fn tails(&self) -> [u64; PRIORITIES] {
        self.tails
    }

    #[inline]
    fn select(&mut self) -> Option<usize> {
        match self.choice {
            Choice::Batched if self.tails[0] < self.known => Some(0),
            Choice::Batched | Choice::Unbatched => {
                self.known = self.queues[0].head();
                (self.tails[0] < self.known).then_some(0)
            }
            Choice::Indirect => {
                let ready = self.ready?;
                let queue = ready.first()?;
                if self.tails[queue] < self.queues[queue].head() {
                    return Some(queue);
                }
                ready.clear(queue);
                // An arrival before the bit was cleared would be missed.
                if self.tails[queue] < self.queues[queue].head() {
                    ready.set(queue);
                }
                None
            }
        }
    }

    #[inline]
    fn take(&mut self, queue: usize) {
        let tail = self.tails[queue];
        let Some(entry) = self.queues[queue].entry(tail) else {
            let resumed = self.queues[queue].resume(tail + 1);
            self.counts.overwritten += resumed - tail;
            self.tails[queue] = resumed;
            return;
        };
        self.tails[queue] = tail + 1;
        let (worker, number) = entry.place();
        let Some(registers) = self.buffers[worker].read(number) else {
            self.counts.late += 1;
            return;
        };
        self.fifo[self.counts.sent as usize % SLOTS] = registers;
        black_box(&self.fifo);
        self.counts.sent += 1;
    }

    /// The last packet sent.
    #[cfg(test)]
    fn last(&self) -> &Frame {
        &self.fifo[(self.counts.sent as usize - 1) % SLOTS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_through_as_they_were_but_for_the_address() {
        for (choice, queues) in [(Choice::Batched, 1), (Choice::Unbatched, 1), (Choice::Indirect, PRIORITIES)]
        {
            let buffers = [Buffers::new(64)];
            let all: Vec<_> = (0..PORTS * queues).map(|_| Queue::new(64)).collect();
            let bits: Vec<_> = (0..PORTS).map(|_| Ready::default()).collect();
            let ready = (queues > 1).then_some(&bits[..]);
            let mut input = Input::new(0, &[3, 5], &buffers[0], (&all, ready), Guard::Lock);
            input.run(40);
            for (port, count) in [(2, 0), (3, 20), (5, 20)] {
                let own = &all[port * queues..(port + 1) * queues];
                let mut output = Output::new(choice, &buffers, own, ready.map(|bits| &bits[port]));
                output.run(100);
                assert_eq!(
                    output.counts,
                    OutputCounts { sent: count, ..OutputCounts::default() },
                    "{choice:?} {port}"
                );
                if count > 0 {
                    let mut expected = frame(port as u32);
                    expected[0] = expected[0] & 0xffff << 48 | 0x0200_0000_0100 | port as u64;
                    assert_eq!(output.last(), &expected);
                }
            }
        }
    }

    #[test]
    fn who_is_too_late_counts_what_he_lost() {
        // 100 packets in 32 buffers and a queue of 64: the queue is resumed at 68, where all of the remaining
        // 32 exist.
        let (buffers, queues) = ([Buffers::new(32)], [Queue::new(64)]);
        Input::new(0, &[0], &buffers[0], (&queues, None), Guard::Private).run(100);
        let mut output = Output::new(Choice::Batched, &buffers, &queues, None);
        output.run(1000);
        assert_eq!(output.counts, OutputCounts { sent: 32, late: 0, overwritten: 68 });
        // In a queue of 128 all entries exist, and 32 packets.
        let queues = [Queue::new(128)];
        Input::new(0, &[0], &buffers[0], (&queues, None), Guard::Private).run(100);
        let mut output = Output::new(Choice::Batched, &buffers, &queues, None);
        output.run(1000);
        assert_eq!(output.counts, OutputCounts { sent: 32, late: 68, overwritten: 0 });
    }
}
