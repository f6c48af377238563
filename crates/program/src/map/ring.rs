//! Rings: records from programs to a control process, which reads them in the order of their reservation.
//!
//! A program that writes a record advances `produced` by its length with one compare-and-exchange, which
//! reserves the room. The record is complete when its first word is stored. A reader goes from record to
//! record, stops at an incomplete one, clears what it has read, and advances `consumed`. So the first word of
//! unwritten room is 0, and neither side ever waits for the other. A map's rings have one reader at a time.
//!
//! A record begins at `produced` modulo the ring's capacity and is contiguous: there is room for the rest of
//! the longest record beyond the capacity. The corresponding bytes at the beginning are unused meanwhile.

use super::Map;
use crate::words::Words;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes before a record's data: its length and state, and its packet's time.
pub(crate) const HEADER: u32 = 16;
/// Most bytes of a record's data: the longest packet, and a program's own data.
pub(crate) const MAX_RECORD: u32 = 66_560 - HEADER;
/// Bytes of each worker's ring of a perf_event_array, whose declaration has no size.
pub(super) const EVENTS: u32 = 1 << 18;

/// Flags in a record's first word: complete, and discarded. The lower half has the length.
const WHOLE: u64 = 1 << 63;
const DISCARDED: u64 = 1 << 62;
const LENGTH: u64 = u32::MAX as u64;

/// How often a worker tries to reserve room while others succeed.
const TRIES: u32 = 64;

/// A record read from a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The worker that wrote it, if each has its own ring.
    pub worker: Option<u32>,
    /// The time of its packet, in nanoseconds.
    pub time: u64,
    /// Its content.
    pub data: Vec<u8>,
}

/// Statistics of a map's rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingStats {
    /// Capacity of all rings together in bytes, including headers of 16 bytes.
    pub capacity: u64,
    /// Bytes written or reserved, and not read.
    pub waiting: u64,
    /// Records read.
    pub taken: u64,
    /// Records refused because a ring was full.
    pub lost: u64,
}

/// How a program ends a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It is passed to the reader, with the packet's time.
    Submitted(u64),
    /// It is discarded.
    Discarded,
}

/// The rings of a map.
#[derive(Debug)]
pub(super) struct Rings {
    each: Box<[Ring]>,
    /// Lock of the reader.
    reader: Mutex<()>,
}

/// Alone on its cache line: workers' and reader's positions are separate.
#[derive(Debug)]
#[repr(align(64))]
struct Line<T>(T);

/// A ring. Positions are bytes since the beginning and never wrap.
#[derive(Debug)]
struct Ring {
    /// Its offset in the map's memory.
    base: usize,
    capacity: u64,
    produced: Line<AtomicU64>,
    lost: Line<AtomicU64>,
    consumed: Line<AtomicU64>,
    taken: AtomicU64,
}

/// Memory of a ring with this capacity: the longest record may begin at its last bytes.
pub(super) fn footprint(capacity: u32) -> u64 {
    u64::from(capacity) + u64::from(capacity.min(HEADER + MAX_RECORD))
}

/// Size of a record with this much data.
fn total(length: u32) -> u64 {
    u64::from(HEADER + length).next_multiple_of(8)
}

impl Rings {
    /// This many rings in a row in a map's memory.
    pub fn new(count: u32, capacity: u32) -> Self {
        let ring = |number: u32| Ring {
            base: number as usize * footprint(capacity) as usize,
            capacity: capacity.into(),
            produced: Line(AtomicU64::new(0)),
            lost: Line(AtomicU64::new(0)),
            consumed: Line(AtomicU64::new(0)),
            taken: AtomicU64::new(0),
        };
        Self { each: (0..count).map(ring).collect(), reader: Mutex::new(()) }
    }

    /// The ring of a worker. Workers beyond the last share its ring.
    fn of(&self, worker: u32) -> Option<&Ring> {
        self.each.get((worker as usize).min(self.each.len().wrapping_sub(1)))
    }
}

impl Ring {
    /// Offset of a record's data, if there is room.
    fn reserve(&self, words: &Words, length: u32) -> Option<u32> {
        let size = total(length.min(MAX_RECORD));
        let mut produced = self.produced.0.load(Ordering::Relaxed);
        for _ in 0..TRIES {
            // Whoever sees freed room also sees that it is cleared.
            let consumed = self.consumed.0.load(Ordering::Acquire);
            // If the difference is negative, others have advanced since `produced` was read.
            let fits = produced.checked_sub(consumed).is_none_or(|used| used + size <= self.capacity);
            if length > MAX_RECORD || !fits {
                break;
            }
            let (next, order) = (produced + size, Ordering::Relaxed);
            match self.produced.0.compare_exchange(produced, next, Ordering::Release, order) {
                Ok(_) => {
                    let place = self.base + (produced % self.capacity) as usize;
                    word(words, place).store(u64::from(length), Ordering::Relaxed);
                    return Some(place as u32 + HEADER);
                }
                Err(seen) => produced = seen,
            }
        }
        self.lost.0.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Iterates over complete records, oldest first.
    fn read(&self, words: &Words, wanted: &mut RingRead) {
        let produced = self.produced.0.load(Ordering::Acquire);
        let mut at = self.consumed.0.load(Ordering::Relaxed);
        while at < produced && wanted.records > 0 && wanted.bytes > 0 {
            let place = self.base + (at % self.capacity) as usize;
            let head = word(words, place).load(Ordering::Acquire);
            if head & WHOLE == 0 {
                break;
            }
            let length = ((head & LENGTH) as u32).min(MAX_RECORD);
            let size = total(length).min(produced - at);
            if head & DISCARDED == 0 {
                let mut data = vec![0; length as usize];
                words.read(place + HEADER as usize, &mut data);
                let time = word(words, place + 8).load(Ordering::Relaxed);
                wanted.records -= 1;
                wanted.bytes = wanted.bytes.saturating_sub(size as usize);
                wanted.found.push(Record { worker: wanted.worker, time, data });
                self.taken.fetch_add(u64::from(!wanted.stay), Ordering::Relaxed);
            }
            if !wanted.stay {
                words.clear(place, size as usize);
            }
            at += size;
        }
        if !wanted.stay {
            self.consumed.0.store(at, Ordering::Release);
        }
    }
}

/// The parameters of a reader.
struct RingRead {
    records: usize,
    bytes: usize,
    worker: Option<u32>,
    /// Whether records stay in the ring.
    stay: bool,
    found: Vec<Record>,
}

fn word(words: &Words, place: usize) -> &AtomicU64 {
    &words.words()[place / 8]
}

impl Map {
    /// For programs: offset in [`Map::values`] of a new record of this size, cleared; none if there is no
    /// room, which is counted.
    pub(crate) fn reserve(&self, worker: u32, length: u32) -> Option<u32> {
        self.rings.as_ref()?.of(worker)?.reserve(&self.values, length)
    }

    /// For programs: ends the record with data at this offset.
    pub(crate) fn finish(&self, data: u32, length: u32, end: End) {
        let place = data.saturating_sub(HEADER) as usize;
        let head = match end {
            End::Submitted(time) => {
                word(&self.values, place + 8).store(time, Ordering::Relaxed);
                WHOLE
            }
            End::Discarded => WHOLE | DISCARDED,
        };
        // A reader that sees it complete sees all writes before.
        word(&self.values, place).store(head | u64::from(length), Ordering::Release);
    }

    /// For programs: bytes available, capacity, and the positions of reader and writers, by the kernel's
    /// numbers (BPF_RB_AVAIL_DATA and following).
    pub(crate) fn query(&self, what: u64) -> u64 {
        let Some(ring) = self.rings.as_ref().and_then(|rings| rings.of(0)) else { return 0 };
        let consumed = ring.consumed.0.load(Ordering::Acquire);
        let produced = ring.produced.0.load(Ordering::Acquire);
        match what {
            0 => produced.saturating_sub(consumed),
            1 => ring.capacity,
            2 => consumed,
            3 => produced,
            _ => 0,
        }
    }

    /// For the control half: reads complete records, oldest first, up to `records` or `bytes`. Records of
    /// each of several rings keep their order, and all are ordered by time. None for other maps.
    pub fn take(&self, records: usize, bytes: usize) -> Vec<Record> {
        self.walk(records, bytes, false)
    }

    /// As [`Map::take`], but the records stay in the rings.
    pub fn peek(&self, records: usize, bytes: usize) -> Vec<Record> {
        self.walk(records, bytes, true)
    }

    fn walk(&self, records: usize, bytes: usize, stay: bool) -> Vec<Record> {
        let Some(rings) = &self.rings else { return Vec::new() };
        let _reader = rings.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let several = self.spec.kind.is_per_worker();
        let mut wanted = RingRead { records, bytes, worker: None, stay, found: Vec::new() };
        for (number, ring) in rings.each.iter().enumerate() {
            wanted.worker = several.then_some(number as u32);
            ring.read(&self.values, &mut wanted);
        }
        wanted.found.sort_by_key(|record| record.time);
        wanted.found
    }

    /// For the control half: statistics of records; none for other maps.
    pub fn ring_stats(&self) -> Option<RingStats> {
        let rings = self.rings.as_ref()?;
        let add = |sum: RingStats, ring: &Ring| {
            // In this order, so that the difference is never negative.
            let consumed = ring.consumed.0.load(Ordering::Acquire);
            let produced = ring.produced.0.load(Ordering::Acquire);
            RingStats {
                capacity: sum.capacity + ring.capacity,
                waiting: sum.waiting + produced.saturating_sub(consumed),
                taken: sum.taken + ring.taken.load(Ordering::Relaxed),
                lost: sum.lost + ring.lost.0.load(Ordering::Relaxed),
            }
        };
        Some(rings.each.iter().fold(RingStats::default(), add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Maps;
    use crate::{MapKind, MapSpec};
    use std::sync::atomic::AtomicBool;

    fn map(kind: MapKind, workers: u32) -> Maps {
        let (size, max_entries) = if kind == MapKind::RingBuf { (0, 4096) } else { (4, 2) };
        let spec = MapSpec::new("records", kind, size, size, max_entries);
        Maps::new(&[spec], workers, 1).unwrap()
    }

    /// The record of this writer with this number: its content is repeated in each of its words, whose number
    /// follows from it.
    fn words_of(writer: u64, number: u64) -> u32 {
        (1 + (number * 7 + writer) % 24) as u32
    }

    /// Writes a record, or discards every fifth. False if there was no room.
    fn write(map: &Map, writer: u64, number: u64) -> bool {
        let length = words_of(writer, number) * 8;
        let Some(place) = map.reserve(writer as u32, length) else { return false };
        for at in (0..length).step_by(8) {
            let before =
                word(map.values(), (place + at) as usize).swap(writer << 32 | number, Ordering::Relaxed);
            assert_eq!(before, 0, "nobody has it, and nothing is left of who had it");
        }
        map.finish(place, length, if number % 5 == 4 { End::Discarded } else { End::Submitted(number) });
        true
    }

    /// Three writers and a reader: each record is read intact, in its writer's order, or was refused.
    fn race(kind: MapKind) {
        const WRITERS: u64 = 3;
        const EACH: u64 = 40_000;
        let maps = map(kind, WRITERS as u32);
        let map = maps.at(0).unwrap();
        let ended = AtomicBool::new(false);
        let (refused, read) = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    scope.spawn(move || {
                        let refused = (0..EACH).filter(|&number| !write(map, writer, number));
                        refused.filter(|number| number % 5 != 4).count()
                    })
                })
                .collect();
            let reader = scope.spawn(|| {
                let (mut last, mut read) = ([None; WRITERS as usize], 0);
                loop {
                    let over = ended.load(Ordering::Acquire);
                    let records = map.take(100, 1 << 20);
                    for record in &records {
                        let said = u64::from_le_bytes(*record.data.first_chunk().unwrap());
                        let (writer, number) = (said >> 32, said & u64::from(u32::MAX));
                        assert!(record.data.chunks(8).all(|word| word == said.to_le_bytes()), "{record:?}");
                        assert_eq!(
                            (record.data.len() as u32, record.time),
                            (words_of(writer, number) * 8, number)
                        );
                        assert!(
                            record.worker.is_none_or(|worker| u64::from(worker) == writer) && number % 5 != 4
                        );
                        assert!(last[writer as usize] < Some(number));
                        last[writer as usize] = Some(number);
                        read += 1;
                    }
                    if over && records.is_empty() {
                        return read;
                    }
                }
            });
            let refused: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            ended.store(true, Ordering::Release);
            (refused, reader.join().unwrap())
        });
        let kept = WRITERS * EACH / 5 * 4;
        assert_eq!(read + refused as u64, kept);
        let stats = map.ring_stats().unwrap();
        assert_eq!((stats.taken, stats.waiting), (read, 0));
        assert!(stats.lost >= refused as u64);
        println!("{read} read, {refused} of {kept} refused");
    }

    #[test]
    fn writers_of_one_ring_and_its_reader_do_not_wait_for_each_other() {
        race(MapKind::RingBuf);
    }

    #[test]
    fn writers_of_rings_of_their_own_do_not_meet() {
        race(MapKind::PerfEventArray);
    }

    /// An unfinished record blocks those after it, but no writer; a repeated read gives the same result.
    #[test]
    fn a_record_that_is_being_written_is_waited_for() {
        let maps = map(MapKind::RingBuf, 1);
        let map = maps.at(0).unwrap();
        let first = map.reserve(0, 8).unwrap();
        let second = map.reserve(0, 8).unwrap();
        map.finish(second, 8, End::Submitted(2));
        assert_eq!(map.take(9, 1 << 20).len(), 0);
        assert_eq!(map.ring_stats().unwrap().waiting, 48);
        map.finish(first, 8, End::Submitted(1));
        let times = |records: Vec<Record>| records.iter().map(|record| record.time).collect::<Vec<_>>();
        assert_eq!(times(map.peek(9, 1 << 20)), [1, 2]);
        assert_eq!(times(map.take(9, 1 << 20)), [1, 2]);
    }
}
