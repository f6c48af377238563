//! The machine: an input, a scheduler with its threads, processors, ports, and the rings between them.

use super::demand::Packet;
use super::setup::Setup;
use super::traffic::{Departure, DropCause, Traffic};
use crate::{GrantedPacket, INVALID_HANDLE, Resource, Scheduler, SettingsError};
use longwire_units::Nanos;
use std::collections::VecDeque;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineStats {
    /// Packets that arrived at the input.
    pub arrived: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets dropped at the input because ring 1 was full.
    pub dropped_at_input: u64,
    /// Packets that the scheduler refused.
    pub refused: u64,
    /// Packets consumed during processing.
    pub consumed: u64,
    /// Packets whose programs were stopped.
    pub stopped: u64,
    /// Processor time used, of all processors, in ns.
    pub processor_busy: u64,
    /// The ports' time used, in ns.
    pub port_busy: u64,
}

/// Packets in each place of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Places {
    /// In ring 1.
    pub input: usize,
    /// In the flows' queues, or processed before an earlier packet of their flow.
    pub queues: usize,
    /// In ring 2, and the packet held for it by the dequeue thread.
    pub requests: usize,
    /// On processors, or waiting there for room in ring 4.
    pub processors: usize,
    /// In ring 4; with `separate-drr` in the second scheduler's queues, too.
    pub ready: usize,
    /// In ring 5.
    pub transmit: usize,
    /// Being sent.
    pub ports: usize,
}

/// A packet inside the machine; its index is its handle.
#[derive(Debug, Clone, Copy)]
struct Inside {
    packet: Packet,
    arrived: Nanos,
    processing: Nanos,
}

#[derive(Debug, Clone, Copy)]
enum Processor {
    Idle,
    /// Busy until this time; `stopped` if the program will exceed its budget.
    Busy {
        granted: GrantedPacket,
        until: Nanos,
        stopped: bool,
    },
    /// Processed, but its messages do not fit yet; `goes_on` if it is for a port.
    Waits {
        granted: GrantedPacket,
        since: Nanos,
        goes_on: bool,
    },
}

#[derive(Debug, Default)]
struct Port {
    ring: VecDeque<GrantedPacket>,
    sending: Option<(GrantedPacket, Nanos, Nanos)>,
}

/// Processors, rings and ports around a scheduler.
#[derive(Debug)]
pub struct Machine {
    setup: Setup,
    scheduler: Scheduler,
    inside: Vec<Inside>,
    free: Vec<u32>,
    input: VecDeque<u32>,
    requests: VecDeque<GrantedPacket>,
    feedback: VecDeque<(u32, u64)>,
    /// The dequeue thread's message that waits for ring 2.
    pending: Option<GrantedPacket>,
    processors: Vec<Processor>,
    /// Processors that have finished, temporarily.
    done: Vec<(Nanos, usize)>,
    ports: Vec<Port>,
    /// The thread with the next turn: enqueue, dequeue, prediction.
    thread: u8,
    /// End of the scheduler's current turn.
    scheduler_free: Nanos,
    now: Nanos,
    stats: MachineStats,
}

impl Machine {
    /// A machine in its initial state.
    ///
    /// # Errors
    /// If the scheduler is unknown or a setting is out of its range.
    pub fn new(setup: Setup) -> Result<Self, SettingsError> {
        let scheduler = Scheduler::new(&setup.scheduler, &setup.settings)?;
        let processors = vec![Processor::Idle; setup.settings.processors as usize];
        let ports = (0..setup.settings.ports).map(|_| Port::default()).collect();
        Ok(Self {
            scheduler,
            inside: Vec::new(),
            free: Vec::new(),
            input: VecDeque::new(),
            requests: VecDeque::new(),
            feedback: VecDeque::new(),
            pending: None,
            done: Vec::with_capacity(processors.len()),
            processors,
            ports,
            thread: 0,
            scheduler_free: Nanos::ZERO,
            now: Nanos::ZERO,
            stats: MachineStats::default(),
            setup,
        })
    }

    /// The scheduler, to set weights and ports and to read counters.
    pub fn scheduler(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// The scheduler, to read counters.
    pub fn scheduler_ref(&self) -> &Scheduler {
        &self.scheduler
    }

    /// What was counted.
    pub fn stats(&self) -> MachineStats {
        self.stats
    }

    /// Packets between the input and the ends of the ports.
    pub fn inside(&self) -> usize {
        self.inside.len() - self.free.len()
    }

    /// Where its packets are.
    pub fn places(&self) -> Places {
        let mut places = Places {
            input: self.input.len(),
            requests: self.requests.len() + usize::from(self.pending.is_some()),
            processors: self.processors.iter().filter(|one| !matches!(one, Processor::Idle)).count(),
            ready: (0..self.setup.settings.ports).map(|port| self.scheduler.ready(port) as usize).sum(),
            transmit: self.ports.iter().map(|port| port.ring.len()).sum(),
            ports: self.ports.iter().filter(|port| port.sending.is_some()).count(),
            ..Places::default()
        };
        let known = places.input + places.requests + places.processors + places.ready;
        places.queues = self.inside() - known - places.transmit - places.ports;
        places
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Runs until `until`, or until nothing is left to do; `sent` receives every packet that is sent.
    pub fn run(&mut self, traffic: &mut dyn Traffic, until: Nanos, sent: &mut dyn FnMut(&Departure)) {
        loop {
            self.settle(traffic, sent);
            let next = self.next_time(traffic.next_time());
            let Some(time) = next.filter(|time| *time <= until) else {
                self.now = self.now.max(until.min(next.unwrap_or(self.now)));
                return;
            };
            self.now = time;
        }
    }

    /// Executes all events at the current time.
    fn settle(&mut self, traffic: &mut dyn Traffic, sent: &mut dyn FnMut(&Departure)) {
        loop {
            // Departures precede arrivals.
            let mut moved = self.finish_sending(traffic, sent);
            moved |= self.finish_processing(traffic);
            moved |= self.arrivals(traffic);
            moved |= self.threads(traffic);
            moved |= self.start_processing();
            moved |= self.start_sending();
            if !moved {
                return;
            }
        }
    }

    /// Time of the next event, if there is one; `arrival` is that of the next packet.
    pub fn next_time(&self, arrival: Option<Nanos>) -> Option<Nanos> {
        let later = |time: Nanos| (time > self.now).then_some(time);
        let processors = self.processors.iter().filter_map(|processor| match processor {
            Processor::Busy { until, .. } => Some(*until),
            _ => None,
        });
        let ports = self.ports.iter().filter_map(|port| port.sending.map(|(_, end, _)| end));
        let own = processors.chain(ports).chain(later(self.scheduler_free)).min();
        // A blocked input receives nothing.
        let arrival = if self.input_blocked() { None } else { arrival.map(|time| time.max(self.now)) };
        own.into_iter().chain(arrival).min()
    }

    fn input_blocked(&self) -> bool {
        !self.setup.drop_at_input && self.input.len() >= self.setup.input_ring
    }

    fn finish_sending(&mut self, traffic: &mut dyn Traffic, sent: &mut dyn FnMut(&Departure)) -> bool {
        let mut moved = false;
        for place in 0..self.ports.len() {
            let Some((granted, _, transmission)) =
                self.ports[place].sending.take_if(|(_, end, _)| *end <= self.now)
            else {
                continue;
            };
            let Inside { packet, arrived, processing } = self.leave(granted.handle);
            let departure = Departure { packet, arrived, sent: self.now, processing, transmission };
            self.stats.sent += 1;
            sent(&departure);
            traffic.departed(&departure);
            moved = true;
        }
        moved
    }

    /// Finished processors put their messages into rings 3 and 4, or wait for room there: the longest waiting
    /// goes first.
    fn finish_processing(&mut self, traffic: &mut dyn Traffic) -> bool {
        let done = self.processors.iter().enumerate().filter_map(|(place, processor)| match *processor {
            Processor::Busy { until, .. } if until <= self.now => Some((until, place)),
            Processor::Waits { since, .. } => Some((since, place)),
            _ => None,
        });
        let mut list = std::mem::take(&mut self.done);
        list.extend(done);
        list.sort_unstable();
        let mut moved = false;
        for done in list.drain(..) {
            moved |= self.finish_one(traffic, done);
        }
        self.done = list;
        moved
    }

    /// Handles the processor at `place`, which has finished at `since`. Returns whether it is free now.
    fn finish_one(&mut self, traffic: &mut dyn Traffic, (since, place): (Nanos, usize)) -> bool {
        let (granted, goes_on) = match self.processors[place] {
            Processor::Idle => return false,
            Processor::Busy { granted, stopped: true, .. } => {
                if let Some(handle) = self.scheduler.abandon(granted.ticket) {
                    let packet = self.leave(handle).packet;
                    self.stats.stopped += 1;
                    traffic.dropped(packet, DropCause::Stopped, self.now);
                }
                self.processors[place] = Processor::Idle;
                return true;
            }
            Processor::Busy { granted, .. } => {
                let packet = &mut self.inside[granted.handle as usize].packet;
                (granted, traffic.processed(packet, self.now))
            }
            Processor::Waits { granted, goes_on, .. } => (granted, goes_on),
        };
        // If the scheduler watches the ring before a port, no packet was given for a full one.
        let waits = self.setup.settings.ready_limit.is_none();
        let ready = || self.scheduler.ready(self.scheduler.port_of(granted.key));
        let ready_full = || waits && ready() >= self.setup.ready_ring;
        if self.feedback.len() >= self.setup.feedback_ring || (goes_on && ready_full()) {
            self.processors[place] = Processor::Waits { granted, since, goes_on };
            return false;
        }
        let cycles = self.inside[granted.handle as usize].packet.cycles;
        self.feedback.push_back((granted.key, cycles));
        if goes_on {
            self.scheduler.processed(granted.ticket, Some(cycles));
        } else {
            self.scheduler.consume(granted.ticket, Some(cycles));
            self.leave(granted.handle);
            self.stats.consumed += 1;
        }
        self.processors[place] = Processor::Idle;
        true
    }

    /// Packets enter ring 1 while it has room, or are dropped.
    fn arrivals(&mut self, traffic: &mut dyn Traffic) -> bool {
        let mut moved = false;
        while !self.input_blocked()
            && let Some(time) = traffic.next_time().filter(|time| *time <= self.now)
        {
            let Some(packet) = traffic.take() else { break };
            self.stats.arrived += 1;
            moved = true;
            if self.input.len() >= self.setup.input_ring {
                self.stats.dropped_at_input += 1;
                traffic.dropped(packet, DropCause::Input, self.now);
                continue;
            }
            // A packet that waited before the input keeps its arrival time.
            let handle = self.enter(Inside { packet, arrived: time, processing: Nanos::ZERO });
            self.input.push_back(handle);
        }
        moved
    }

    /// The scheduler's threads take turns: one without work yields to the next.
    fn threads(&mut self, traffic: &mut dyn Traffic) -> bool {
        let (mut moved, mut idle) = (false, 0);
        while idle < 3 && self.scheduler_free <= self.now {
            let worked = match self.thread {
                0 => self.enqueue_thread(traffic),
                1 => self.dequeue_thread(),
                _ => self.prediction_thread(),
            };
            self.thread = (self.thread + 1) % 3;
            idle = if worked { 0 } else { idle + 1 };
            moved |= worked;
            if worked {
                self.scheduler_free = self.now + self.setup.step;
            }
        }
        moved
    }

    fn enqueue_thread(&mut self, traffic: &mut dyn Traffic) -> bool {
        let Some(handle) = self.input.pop_front() else { return false };
        let Inside { packet, arrived, .. } = self.inside[handle as usize];
        self.scheduler.aim(packet.key, packet.port);
        let cycles = self.setup.known.then_some(packet.cycles);
        let taken = self.scheduler.enqueue_known(packet.key, handle, packet.bytes, arrived, cycles);
        if let Err(refusal) = taken {
            self.leave(handle);
            self.stats.refused += 1;
            traffic.dropped(packet, DropCause::Refused(refusal), self.now);
        }
        true
    }

    /// Dequeues, and waits with its message while ring 2 is full.
    fn dequeue_thread(&mut self) -> bool {
        let had_one = self.pending.is_some();
        if !had_one {
            self.pending = self.scheduler.dequeue(Resource::Processor);
        }
        let Some(granted) = self.pending else { return false };
        if self.requests.len() < self.setup.request_ring {
            self.requests.push_back(granted);
            self.pending = None;
            return true;
        }
        !had_one
    }

    fn prediction_thread(&mut self) -> bool {
        let Some((key, cycles)) = self.feedback.pop_front() else { return false };
        self.scheduler.feedback(key, cycles);
        true
    }

    /// Free processors take requests.
    fn start_processing(&mut self) -> bool {
        let mut moved = false;
        for place in 0..self.processors.len() {
            if !matches!(self.processors[place], Processor::Idle) {
                continue;
            }
            let Some(granted) = self.requests.pop_front() else { break };
            let settings = &self.setup.settings;
            let inside = &mut self.inside[granted.handle as usize];
            let cycles = inside.packet.cycles.min(settings.budget);
            let stopped = inside.packet.cycles > settings.budget;
            let time = Nanos(cycles * 1000 / u64::from(settings.clock_mhz));
            inside.processing = time;
            self.stats.processor_busy += time.0;
            self.processors[place] = Processor::Busy { granted, until: self.now + time, stopped };
            moved = true;
        }
        moved
    }

    fn start_sending(&mut self) -> bool {
        let mut moved = false;
        for number in 0..self.setup.settings.ports {
            loop {
                let port = &mut self.ports[usize::from(number)];
                if port.sending.is_none()
                    && let Some(granted) = port.ring.pop_front()
                {
                    let time = Nanos(self.setup.settings.port.bytes(granted.bytes).into());
                    port.sending = Some((granted, self.now + time, time));
                    self.stats.port_busy += time.0;
                    moved = true;
                    continue;
                }
                let direct = self.setup.transmit_ring == 0;
                let room =
                    if direct { port.sending.is_none() } else { port.ring.len() < self.setup.transmit_ring };
                let granted = room.then(|| self.scheduler.dequeue(Resource::Port(number))).flatten();
                let Some(granted) = granted else { break };
                port.ring.push_back(granted);
                moved = true;
            }
        }
        moved
    }

    fn enter(&mut self, inside: Inside) -> u32 {
        if let Some(place) = self.free.pop() {
            self.inside[place as usize] = inside;
            return place;
        }
        self.inside.push(inside);
        let place = (self.inside.len() - 1) as u32;
        debug_assert_ne!(place, INVALID_HANDLE);
        place
    }

    fn leave(&mut self, handle: u32) -> Inside {
        self.free.push(handle);
        self.inside[handle as usize]
    }
}
