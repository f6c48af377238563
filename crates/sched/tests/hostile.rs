//! Random operations with hostile settings, with every scheduler: no panic, counters add up, flows keep their
//! order, and eligible flows proceed.

use longwire_block::Dice;
use longwire_sched::{Estimator, PerByte, Resource, SPECS, Scheduler, Settings, Ticket, Weight};
use longwire_units::Nanos;
use std::collections::BTreeMap;

const STEPS: u64 = 600;

fn pick<T: Copy>(dice: &mut Dice, of: &[T]) -> T {
    of[dice.below(of.len() as u64) as usize]
}

fn settings(dice: &mut Dice) -> Settings {
    Settings {
        flows: pick(dice, &[1, 2, 3, 8, 300]),
        packets: pick(dice, &[1, 2, 7, 40, 1000]),
        flow_limit: pick(dice, &[1, 3, 12, 1000]),
        processors: pick(dice, &[1, 1, 2, 4, 65_536]),
        under_way: pick(dice, &[None, None, Some(0), Some(1), Some(6)]),
        clock_mhz: pick(dice, &[1, 600, 1000, 1_000_000]),
        port: pick(dice, &[0, 8, u32::MAX].map(PerByte::of_ns)),
        charged: pick(dice, &[0, 80, u32::MAX].map(PerByte::of_ns)),
        ports: pick(dice, &[1, 2, 3, 5, 256]),
        quantum: Nanos(pick(dice, &[1, 1000, 20_000, u32::MAX.into()])),
        quantum_bytes: pick(dice, &[1, 1518, u32::MAX]),
        dovetail: Nanos(pick(dice, &[u64::MAX, 0, 1000, (1 << 52) - 1, 1 << 52])),
        estimator: pick(dice, &Estimator::ALL).1,
        first_estimate: pick(dice, &[None, None, Some(0), Some(1)]),
        budget: pick(dice, &[1, 100_000, 1 << 30]),
        longest: 1518,
        ready_limit: pick(dice, &[None, Some(1), Some(2), Some(64)]),
    }
}

/// A packet inside.
#[derive(Debug, Clone, Copy)]
struct Packet {
    ticket: Ticket,
    handle: u32,
    key: u32,
}

/// A scheduler, and a model of its packets.
struct Trial {
    name: &'static str,
    settings: Settings,
    scheduler: Scheduler,
    waiting: Vec<Packet>,
    working: Vec<Packet>,
    /// By flow: the handle after the last one sent.
    sent: BTreeMap<u32, u32>,
    handles: u32,
    accepted: u64,
    out: u64,
    gone: u64,
}

impl Trial {
    fn new(name: &'static str, dice: &mut Dice) -> Self {
        let settings = settings(dice);
        let scheduler = Scheduler::new(name, &settings).unwrap();
        let (waiting, working, sent) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { name, settings, scheduler, waiting, working, sent, handles: 0, accepted: 0, out: 0, gone: 0 }
    }

    /// Whether a flow gets no processor because of its packets for its port: by port, or with `separate-drr`
    /// by flow.
    fn is_held_up(&self, key: u32) -> bool {
        let flow = self.scheduler.flows().find(|flow| flow.key == key).unwrap();
        let ahead = match self.name {
            "separate-drr" => flow.inside - flow.waiting,
            _ => self.scheduler.ready(flow.port),
        };
        self.settings.ready_limit.is_some_and(|limit| ahead >= limit)
    }

    fn come(&mut self, dice: &mut Dice) {
        let (key, bytes) = (dice.below(6) as u32, pick(dice, &[0, 1, 60, 1518, u32::MAX]));
        // Flows that are idle change their port.
        self.scheduler.aim(key, dice.below(u64::from(self.settings.ports) + 1) as u16);
        let cycles = pick(dice, &[0, 1, 3000, 100_000, 1 << 30, u64::MAX]);
        let taken = match dice.below(3) {
            0 => self.scheduler.enqueue(key, self.handles, bytes, Nanos::ZERO),
            _ => self.scheduler.enqueue_known(key, self.handles, bytes, Nanos::ZERO, Some(cycles)),
        };
        if let Ok(ticket) = taken {
            self.waiting.push(Packet { ticket, handle: self.handles, key });
            self.accepted += 1;
        }
        self.handles += 1;
    }

    /// Requests a packet for a processor. Returns whether there was one.
    fn take(&mut self) -> bool {
        let is_open = self.waiting.iter().any(|packet| !self.is_held_up(packet.key));
        let Some(granted) = self.scheduler.dequeue(Resource::Processor) else {
            // These watch packets ahead of the port, and one queue for all stops at a full port.
            let may_wait = match self.name {
                "mr3" | "gmr3" => self.scheduler.inside() > self.scheduler.waiting(),
                name => name == "fifo" && self.settings.ready_limit.is_some(),
            };
            assert!(!is_open || may_wait, "{}: none though {} wait", self.name, self.waiting.len());
            return false;
        };
        let of_flow = |packet: &Packet| packet.key == granted.key;
        let first = self.waiting.iter().position(of_flow).unwrap();
        let packet = self.waiting.remove(first);
        assert_eq!((packet.ticket, packet.handle), (granted.ticket, granted.handle), "{}: order", self.name);
        self.working.push(packet);
        true
    }

    fn end(&mut self, dice: &mut Dice) {
        if self.working.is_empty() {
            return;
        }
        let packet = self.working.swap_remove(dice.below(self.working.len() as u64) as usize);
        let (ticket, cycles) = (packet.ticket, pick(dice, &[0, 1, 3000, 1 << 30, u64::MAX]));
        match dice.below(6) {
            0 => assert_eq!(self.scheduler.abandon(ticket), Some(packet.handle)),
            1 => assert!(self.scheduler.consume(ticket, Some(cycles))),
            2 => assert!(self.scheduler.processed(ticket, None)),
            3 => assert!(self.scheduler.processed(ticket, Some(cycles))),
            _ => assert!(self.scheduler.finish(ticket, cycles)),
        }
        let counted = self.scheduler.totals();
        self.gone = counted.abandoned + counted.consumed;
    }

    /// Returns whether a packet was sent.
    fn send(&mut self, port: u16) -> bool {
        let Some(granted) = self.scheduler.dequeue(Resource::Port(port)) else { return false };
        let next = self.sent.entry(granted.key).or_insert(0);
        assert!(granted.handle >= *next, "{}: sent out of order", self.name);
        *next = granted.handle + 1;
        self.out += 1;
        true
    }

    fn change(&mut self, dice: &mut Dice) {
        let key = dice.below(6) as u32;
        match dice.below(5) {
            0 | 1 => {
                let weight = pick(dice, &[1, 2, 3, 255, 32_768, 65_535]);
                let _ = self.scheduler.set_weight(key, Weight::new(weight).unwrap());
            }
            2 => self.scheduler.forget(key),
            3 => self.scheduler.feedback(key, pick(dice, &[0, 1, 1 << 30, u64::MAX])),
            _ => {
                let _ = self.scheduler.set_port(key, dice.below(self.settings.ports.into()) as u16);
            }
        }
    }

    fn revoke(&mut self, dice: &mut Dice) {
        if !self.waiting.is_empty() {
            let packet = self.waiting.remove(dice.below(self.waiting.len() as u64) as usize);
            assert!(self.scheduler.revoke(packet.ticket));
        }
    }

    /// Processes and sends all packets.
    fn drain(&mut self) {
        loop {
            let mut moved = self.take();
            while let Some(packet) = self.working.pop() {
                moved |= self.scheduler.processed(packet.ticket, None);
            }
            for port in 0..self.settings.ports {
                while self.send(port) {
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let left = (self.waiting.len(), self.scheduler.inside(), self.scheduler.waiting());
        assert_eq!(left, (0, 0, 0), "{}: nothing goes on", self.name);
    }

    fn adds_up(&self) {
        let counted = self.scheduler.totals();
        assert_eq!((counted.in_packets, counted.out_packets), (self.accepted, self.out), "{}", self.name);
        let ended = self.out + self.gone + counted.revoked + u64::from(self.scheduler.inside());
        assert_eq!(counted.in_packets, ended, "{}", self.name);
    }
}

#[test]
fn whatever_happens_packets_add_up_and_go_on() {
    for seed in 0..500 {
        for spec in SPECS {
            let mut dice = Dice::named(seed, "sched/hostile");
            let mut trial = Trial::new(spec.name, &mut dice);
            let mut often = [1; 6];
            for step in 0..STEPS {
                // Parameters change from time to time.
                if step % 50 == 0 {
                    often = std::array::from_fn(|_| 1 + dice.below(6));
                }
                let mut drawn = dice.below(often.iter().sum());
                let passed = |share: &&u64| drawn.checked_sub(**share).map(|rest| drawn = rest).is_some();
                match often.iter().take_while(passed).count() {
                    0 => trial.come(&mut dice),
                    1 => _ = trial.take(),
                    2 => trial.end(&mut dice),
                    3 => _ = trial.send(dice.below(u64::from(trial.settings.ports.min(5)) + 1) as u16),
                    4 => trial.revoke(&mut dice),
                    _ => trial.change(&mut dice),
                }
                trial.adds_up();
            }
            trial.drain();
            trial.adds_up();
        }
    }
}
