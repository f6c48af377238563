//! A worker's observer, which sends events to the log's writer.

use super::links::{Numbers, Placing, take_over};
use super::ring::RowSender;
use super::row::{Event, NO_LINK, NO_REASON, NO_TIME, Row};
use longwire_block::path::LinkRef;
use longwire_engine::{Observer, PacketView};
use longwire_packet::{Handle, Meta, PacketEvent};

/// State of packets in the pool, by handle.
struct Visits {
    /// Its number; 0 if it has none yet.
    ids: Vec<u64>,
    /// Arrival time at its current or last link.
    arrivals: Vec<u64>,
    /// Departure time from there; [`NO_TIME`] before.
    leaves: Vec<u64>,
    /// Bytes in the queue there at its arrival.
    queues: Vec<u64>,
}

/// The observer of a worker for the packet log.
pub struct Recorder {
    sender: RowSender,
    placing: Placing,
    /// The numbers of links, once the first are known.
    numbers: Option<Numbers>,
    /// Whether drops outside links are logged.
    outside: bool,
    /// Bytes of a frame to keep.
    frame_bytes: usize,
    visits: Visits,
    last_id: u64,
    /// Time of the latest event.
    latest: u64,
}

impl Recorder {
    /// The recorder of the worker with this number, whose pool has `pool` bytes. The first links are
    /// placed before the first packet.
    pub fn new(
        worker: u32,
        pool: u64,
        sender: RowSender,
        placing: Placing,
        (frame_bytes, outside): (usize, bool),
    ) -> Self {
        // A packet takes at least two lines of 64 bytes. Zeroed memory is not touched.
        let packets = (pool / 128) as usize + 1;
        let column = || vec![0; packets];
        let visits = Visits { ids: column(), arrivals: column(), leaves: column(), queues: column() };
        let last_id = u64::from(worker) << 48;
        let numbers = None;
        Self { sender, placing, numbers, outside, frame_bytes, visits, last_id, latest: 0 }
    }

    /// The number of a logged link.
    fn number(&mut self, link: Option<LinkRef>) -> Option<u32> {
        let &number = self.numbers().get(link?.local() as usize)?;
        (number != NO_LINK).then_some(number)
    }

    /// The numbers of the worker's links.
    fn numbers(&mut self) -> &mut Numbers {
        let Self { placing, numbers, .. } = self;
        numbers.get_or_insert_with(|| {
            let mut first = Numbers::new();
            take_over(placing, &mut first);
            first
        })
    }

    /// The number of a packet at a link; new if the packet was created there.
    fn id_at_link(&mut self, handle: Handle) -> u64 {
        let at = (handle.0 / 2) as usize;
        let Visits { ids, leaves, .. } = &mut self.visits;
        match (ids.get(at), leaves.get(at)) {
            (Some(&id), Some(&NO_TIME)) if id != 0 => id,
            _ => {
                self.last_id += 1;
                self.visits.begin(at, self.last_id, None);
                self.last_id
            }
        }
    }

    fn arrived(&mut self, handle: Handle, meta: &Meta, queue_bytes: u64) {
        let at = (handle.0 / 2) as usize;
        let Visits { ids, leaves, .. } = &self.visits;
        let goes_on = ids.get(at).is_some_and(|&id| id != 0) && leaves.get(at) == Some(&meta.arrival);
        if !goes_on {
            self.last_id += 1;
        }
        let id = if goes_on { self.visits.ids[at] } else { self.last_id };
        self.visits.begin(at, id, Some((meta.arrival, queue_bytes)));
    }

    /// Sends a row of an event at a link.
    fn log(&mut self, event: Event, time: u64, view: &PacketView<'_>, dropped: Option<(u8, u16, u32)>) {
        let id = self.id_at_link(view.handle);
        let Some(link) = self.number(view.link) else { return };
        let (at, meta) = ((view.handle.0 / 2) as usize, view.meta);
        let known = |column: &[u64]| column.get(at).copied().unwrap_or_default();
        let arrival = known(&self.visits.arrivals);
        let bytes = u32::try_from(meta.segment_bytes()).unwrap_or(u32::MAX);
        let (reason, segments, length) = dropped.unwrap_or((NO_REASON, meta.segments, bytes));
        let row = Row {
            time,
            arrival: if arrival == NO_TIME { meta.arrival } else { arrival },
            leave: if event == Event::Leave { time } else { NO_TIME },
            id,
            queue_bytes: known(&self.visits.queues),
            length,
            link,
            segments,
            event,
            reason,
        };
        self.send(&row, view.frame);
    }

    fn send(&mut self, row: &Row, frame: &[u8]) {
        self.sender.send(row, &frame[..frame.len().min(self.frame_bytes)]);
    }

    /// Logs a drop outside links; the packet may have been at one before.
    fn refused(&mut self, reason: u8, view: &PacketView<'_>) {
        let (at, meta) = ((view.handle.0 / 2) as usize, view.meta);
        let id = self.visits.ids.get(at).copied().filter(|&id| id != 0);
        if self.outside {
            let id = id.unwrap_or_else(|| {
                self.last_id += 1;
                self.last_id
            });
            let row = Row {
                arrival: meta.arrival,
                length: u32::try_from(meta.segment_bytes()).unwrap_or(u32::MAX),
                segments: meta.segments,
                reason,
                ..Row::outside(Event::Drop, self.latest.max(meta.arrival), id)
            };
            self.send(&row, view.frame);
        }
        self.visits.end(at);
    }
}

impl Visits {
    fn begin(&mut self, at: usize, id: u64, arrival: Option<(u64, u64)>) {
        let (arrival, queue) = arrival.unwrap_or((NO_TIME, 0));
        if let Some(slot) = self.ids.get_mut(at) {
            *slot = id;
            (self.arrivals[at], self.leaves[at], self.queues[at]) = (arrival, NO_TIME, queue);
        }
    }

    /// Forgets a freed packet.
    fn end(&mut self, at: usize) {
        if let Some(id) = self.ids.get_mut(at) {
            *id = 0;
        }
    }
}

impl Observer for Recorder {
    fn see(&mut self, event: PacketEvent, view: &PacketView<'_>) {
        let (at, meta) = ((view.handle.0 / 2) as usize, view.meta);
        match event {
            PacketEvent::Arrived { queue_bytes } => {
                self.latest = self.latest.max(meta.arrival);
                self.arrived(view.handle, meta, queue_bytes);
                self.log(Event::Arrive, meta.arrival, view, None);
            }
            PacketEvent::Left => {
                self.latest = self.latest.max(meta.leave());
                // A link's reply to a sender was created outside its path.
                if meta.flags & Meta::REPLY != 0 {
                    return;
                }
                let event = if meta.flags & Meta::DIVERTED == 0 { Event::Leave } else { Event::Steer };
                self.log(event, meta.leave(), view, None);
                if let Some(leave) = self.visits.leaves.get_mut(at) {
                    *leave = meta.leave();
                }
            }
            PacketEvent::Marked { time } => self.log(Event::Mark, time, view, None),
            PacketEvent::Dropped { time, reason, segments, bytes } => {
                self.latest = self.latest.max(time);
                self.log(Event::Drop, time, view, Some((reason, segments, bytes)));
                if segments == meta.segments {
                    self.visits.end(at);
                }
            }
            PacketEvent::Refused { reason } => self.refused(reason, view),
            PacketEvent::Departed => self.visits.end(at),
        }
    }

    fn asks_for_queues(&self) -> bool {
        true
    }

    fn links_joined(&mut self) {
        self.numbers();
        if let Some(numbers) = &mut self.numbers {
            take_over(&self.placing, numbers);
        }
    }
}
