//! Common rules of all schedulers: no packet is lost, flows keep their order, and work is conserved.

use longwire_sched::{INVALID_HANDLE, Resource, SPECS, Scheduler, Settings, Ticket};
use longwire_units::Nanos;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Step {
    Put {
        flow: u32,
        bytes: u32,
        cycles: u64,
    },
    Process,
    /// The n-th packet with a processor is finished or abandoned.
    Done {
        which: usize,
        gives_up: bool,
    },
    Send {
        port: u16,
    },
    Revoke {
        which: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u32..5, 40u32..1500, 0u64..9000).prop_map(|(flow, bytes, cycles)| Step::Put { flow, bytes,
            cycles }),
        3 => Just(Step::Process),
        3 => (any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(which, gives_up)| Step::Done { which,
            gives_up }),
        3 => (0u16..2).prop_map(|port| Step::Send { port }),
        1 => any::<usize>().prop_map(|which| Step::Revoke { which }),
    ];
    prop::collection::vec(step, 1..300)
}

/// A scheduler, and its expected contents.
struct CheckedScheduler {
    name: &'static str,
    scheduler: Scheduler,
    waiting: Vec<(Ticket, u32)>,
    working: Vec<(Ticket, u32)>,
    revoked: Vec<u32>,
    sent: BTreeMap<u32, Vec<u32>>,
    next_handle: u32,
    given_up: u64,
    refused: u64,
}

impl CheckedScheduler {
    fn new(name: &'static str) -> Self {
        let settings = Settings { flow_limit: 12, packets: 40, ports: 2, ..Settings::default() };
        let mut scheduler = Scheduler::new(name, &settings).unwrap();
        scheduler.set_port(3, 1).unwrap();
        scheduler.set_port(4, 1).unwrap();
        Self {
            name,
            scheduler,
            waiting: Vec::new(),
            working: Vec::new(),
            revoked: Vec::new(),
            sent: BTreeMap::new(),
            next_handle: 0,
            given_up: 0,
            refused: 0,
        }
    }

    fn obey(&mut self, step: &Step) {
        match *step {
            Step::Put { flow, bytes, cycles } => {
                let handle = self.next_handle;
                self.next_handle += 1;
                match self.scheduler.enqueue_known(flow, handle, bytes, Nanos::ZERO, Some(cycles)) {
                    Ok(ticket) => self.waiting.push((ticket, handle)),
                    Err(_) => self.refused += 1,
                }
            }
            Step::Process => {
                self.process();
            }
            Step::Done { which, gives_up } if !self.working.is_empty() => {
                let (ticket, handle) = self.working.remove(which % self.working.len());
                if gives_up {
                    assert_eq!(self.scheduler.abandon(ticket), Some(handle));
                    self.given_up += 1;
                } else {
                    assert!(self.scheduler.finish(ticket, 100));
                }
                assert!(!self.scheduler.processed(ticket, None), "once only");
            }
            Step::Send { port } => {
                self.send(port);
            }
            Step::Revoke { which } if !self.waiting.is_empty() => {
                let (ticket, handle) = self.waiting.remove(which % self.waiting.len());
                assert!(self.scheduler.revoke(ticket) && !self.scheduler.revoke(ticket));
                self.revoked.push(handle);
            }
            Step::Done { .. } | Step::Revoke { .. } => {}
        }
        let total = self.scheduler.totals();
        assert_eq!(
            total.in_packets,
            total.out_packets + total.abandoned + total.revoked + u64::from(self.scheduler.inside()),
            "{}",
            self.name
        );
        assert_eq!((total.abandoned, total.refused), (self.given_up, self.refused));
    }

    fn process(&mut self) -> bool {
        let Some(granted) = self.scheduler.dequeue(Resource::Processor) else {
            // Work conservation: only MR³ and GMR³ may wait, and only for packets ahead.
            let further = self.scheduler.inside() > self.scheduler.waiting();
            let may_wait = matches!(self.name, "mr3" | "gmr3") && further;
            assert!(self.waiting.is_empty() || may_wait, "{}: idle with {:?}", self.name, self.waiting);
            return false;
        };
        let place = self.waiting.iter().position(|(ticket, _)| *ticket == granted.ticket);
        let (_, handle) = self.waiting.remove(place.expect("it waited, and was not revoked"));
        assert_eq!(handle, granted.handle);
        self.working.push((granted.ticket, handle));
        true
    }

    fn send(&mut self, port: u16) -> bool {
        let ready = self.scheduler.ready(port);
        let Some(granted) = self.scheduler.dequeue(Resource::Port(port)) else {
            assert_eq!(ready, 0, "{}: a port may not be idle", self.name);
            return false;
        };
        assert_eq!(port, u16::from(granted.key >= 3));
        let sent = self.sent.entry(granted.key).or_default();
        assert!(sent.last().is_none_or(|last| *last < granted.handle), "{}: out of order", self.name);
        sent.push(granted.handle);
        true
    }

    /// Passes all packets through.
    fn drain(&mut self) {
        loop {
            let mut moved = self.process();
            while let Some((ticket, _)) = self.working.pop() {
                moved |= self.scheduler.processed(ticket, None);
            }
            moved |= self.send(0) | self.send(1);
            if !moved {
                break;
            }
        }
        assert_eq!(self.scheduler.inside(), 0, "{}", self.name);
        let sent: usize = self.sent.values().map(Vec::len).sum();
        let kept = u64::from(self.next_handle) - self.refused - self.given_up - self.revoked.len() as u64;
        assert_eq!(sent as u64, kept, "{}", self.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn packets_are_kept_and_flows_stay_in_order(steps in steps()) {
        for spec in SPECS {
            let mut world = CheckedScheduler::new(spec.name);
            steps.iter().for_each(|step| world.obey(step));
            world.drain();
        }
    }
}

#[test]
fn an_invalid_message_is_counted_and_nothing_else() {
    for spec in SPECS {
        let mut scheduler = Scheduler::new(spec.name, &Settings::default()).unwrap();
        assert!(scheduler.enqueue(1, INVALID_HANDLE, 60, Nanos::ZERO).is_err());
        assert_eq!((scheduler.happened().invalid, scheduler.inside()), (1, 0));
        assert_eq!(scheduler.dequeue(Resource::Processor), None);
        assert_eq!(scheduler.dequeue(Resource::Port(9)), None, "there is no such port");
    }
}

#[test]
fn an_invalid_handle_is_not_charged() {
    // Two flows; half the packets of the first are invalid by their turn. Both get the same.
    for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
        let settings = Settings { flow_limit: 1000, ..Settings::default() };
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        for handle in 0..400 {
            let ticket = scheduler.enqueue_known(handle % 2, handle, 1000, Nanos::ZERO, Some(9000)).unwrap();
            if handle % 4 == 0 {
                scheduler.revoke(ticket);
            }
        }
        let mut counts = [0u32; 2];
        for _ in 0..160 {
            let granted = scheduler.dequeue(Resource::Processor).unwrap();
            counts[granted.key as usize] += 1;
            scheduler.processed(granted.ticket, None);
            scheduler.dequeue(Resource::Port(0)).unwrap();
        }
        // A round's credit of 20 µs covers two of these packets, and part of one.
        assert!(counts[0].abs_diff(counts[1]) <= 3, "{}: {counts:?}", spec.name);
    }
}
