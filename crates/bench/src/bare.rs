//! The minimum work of any emulator, in the near caches: frames are copied in, their addresses looked up,
//! they wait in a timing wheel, and are copied out. Relative to it, the engine's speed is comparable between
//! slow and fast machines.

use crate::Sample;
use longwire_report::Row;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes of a frame and of its slot.
const FRAME: usize = 60;
const PLACE: usize = 64;
/// Address pairs, and slots of the lookup table.
const PAIRS: usize = 8;
const TABLE: usize = 16;
/// Packets per turn, slots of the wheel, and turns that a packet waits.
const BATCH: usize = 64;
const TURNS: usize = 16;
const WAITS: usize = 8;
/// All packets: those that wait, and those of a turn.
const PACKETS: usize = BATCH * (WAITS + 1);
/// Turns between two clock readings.
const AT_ONCE: usize = 64;

/// Offset of the addresses in an IPv4 packet's frame.
const ADDRESSES: std::ops::Range<usize> = 26..34;
const NONE: u16 = u16::MAX;

/// The loop and its counters.
pub(crate) struct Bare {
    source: [[u8; FRAME]; PAIRS],
    packets: Box<[[u8; PLACE]; PACKETS]>,
    /// The successor of each packet in its list.
    next: [u16; PACKETS],
    free: u16,
    /// The packets that leave in each turn.
    wheel: [u16; TURNS],
    turn: usize,
    /// Address pairs and their links; vacant slots have all bits set.
    table: [(u64, u32); TABLE],
    /// Packets per link.
    counts: [u64; PAIRS],
    lost: u64,
    sink: [u8; PLACE],
    sent: u64,
}

impl Bare {
    pub fn new() -> Self {
        let mut source = [[0; FRAME]; PAIRS];
        let mut table = [(u64::MAX, 0); TABLE];
        for (link, frame) in source.iter_mut().enumerate() {
            let pair = (0x0a00_0001_0b00_0001_u64 + (link as u64) * 0x1_0000_0001).to_be_bytes();
            frame[ADDRESSES].copy_from_slice(&pair);
            let mut place = place(u64::from_be_bytes(pair));
            while table[place].0 != u64::MAX {
                place = (place + 1) % TABLE;
            }
            table[place] = (u64::from_be_bytes(pair), link as u32);
        }
        let next = std::array::from_fn(|at| if at + 1 < PACKETS { at as u16 + 1 } else { NONE });
        Self {
            source,
            packets: Box::new([[0; PLACE]; PACKETS]),
            next,
            free: 0,
            wheel: [NONE; TURNS],
            turn: 0,
            table,
            counts: [0; PAIRS],
            lost: 0,
            sink: [0; PLACE],
            sent: 0,
        }
    }

    /// Packets per second over this time.
    pub fn run(&mut self, time: Duration) -> f64 {
        let begin = Instant::now();
        let sent = self.carry(time);
        sent as f64 / begin.elapsed().as_secs_f64()
    }

    /// Packets sent in this time, or slightly more.
    pub fn carry(&mut self, time: Duration) -> u64 {
        let (begin, before) = (Instant::now(), self.sent);
        loop {
            (0..AT_ONCE).for_each(|_| self.turn());
            if begin.elapsed() >= time {
                return self.sent - before;
            }
        }
    }

    /// Takes in a batch, and sends one.
    fn turn(&mut self) {
        for at in 0..BATCH {
            let packet = usize::from(self.free) % PACKETS;
            self.free = self.next[packet];
            let frame = &black_box(&self.source)[at % PAIRS];
            self.packets[packet][..FRAME].copy_from_slice(frame);
            let Some(link) = self.link(packet) else {
                self.lost += 1;
                continue;
            };
            self.counts[link % PAIRS] += 1;
            let turn = (self.turn + WAITS) % TURNS;
            (self.next[packet], self.wheel[turn]) = (self.wheel[turn], packet as u16);
        }
        let mut leaving = std::mem::replace(&mut self.wheel[self.turn], NONE);
        while leaving != NONE {
            let packet = usize::from(leaving) % PACKETS;
            leaving = self.next[packet];
            self.sink = self.packets[packet];
            black_box(&self.sink);
            self.sent += 1;
            (self.next[packet], self.free) = (self.free, packet as u16);
        }
        self.turn = (self.turn + 1) % TURNS;
    }

    /// The link of a packet, by its addresses.
    fn link(&self, packet: usize) -> Option<usize> {
        let pair = self.packets[packet][ADDRESSES].try_into().ok().map(u64::from_be_bytes)?;
        let mut place = place(pair);
        loop {
            let (key, link) = self.table[place];
            if key == pair {
                return Some(link as usize);
            }
            if key == u64::MAX {
                return None;
            }
            place = (place + 1) % TABLE;
        }
    }
}

/// First slot of the search for an address pair.
const fn place(pair: u64) -> usize {
    (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % TABLE
}

/// The engine's speed relative to the loop's, from alternating runs: `pairs` has packets per second of both.
pub(crate) fn row(name: &str, pairs: &[(f64, f64)]) -> Row {
    let shares: Sample = pairs.iter().map(|(own, bare)| own / bare * 100.0).collect();
    let bare: Sample = pairs.iter().map(|(_, bare)| *bare).collect();
    let note = format!(
        "by turns with a bare loop in memory: copy in, look up addresses, timing wheel, copy out; {:.1} ns a \
         packet",
        1e9 / bare.most()
    );
    shares
        .shown(&format!("engine: {name}, of the bare loop"), "%")
        .extra("bare_pps", bare.median())
        .note(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_is_looked_up_and_comes_out() {
        let mut bare = Bare::new();
        (0..1000).for_each(|_| bare.turn());
        assert_eq!((bare.sent, bare.lost), (((1000 - WAITS) * BATCH) as u64, 0));
        assert_eq!(bare.counts, [(1000 * BATCH / PAIRS) as u64; PAIRS]);
        assert_eq!(bare.sink[..FRAME], bare.source[0], "the first of a turn leaves last");
        assert!(bare.run(Duration::from_millis(1)) > 0.0);
        assert!(bare.link(0).is_some());
        bare.packets[0] = [0; PLACE];
        assert_eq!(bare.link(0), None);
    }

    #[test]
    fn the_share_is_that_of_each_turn() {
        let row = row("plain", &[(5.0, 10.0), (4.0, 10.0), (6.0, 10.0)]);
        assert_eq!((row.name.as_str(), row.measured), ("engine: plain, of the bare loop", Some(50.0.into())));
    }
}
