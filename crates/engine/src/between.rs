//! Queues between workers, modelled on those between the input and output contexts of Spalink and others,
//! "Building a robust software-based router using network processors", section 3.4.
//!
//! - One ring per pair of workers, or one per receiver that senders share under a lock.
//! - Packets are written a batch at a time, and the receiver is told once.
//! - Bits say which rings may have packets.
//! - Each ring exists in two classes, of which one is emptied first.
//!
//! The paper's queues overwrite unread packets; these report that they are full.

use crate::bell::Bell;
use crate::ring::{self, Receiver, RingRead, Sender};
use longwire_packet::{BATCH, Batch, Handle, Meta, Pool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kind of rings between workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RingKind {
    /// One ring per ordered pair of workers: no contention, but memory grows quadratically.
    #[default]
    Private,
    /// One ring per receiver; senders take a lock once per batch.
    Shared,
}

/// Number of packet classes; their rings are emptied in this order.
pub(crate) const CLASSES: usize = 2;
/// Memory of a ring of each class, in bytes.
const RING_BYTES: [usize; CLASSES] = [256 << 10, 4 << 20];
const URGENT: usize = 0;
const ORDINARY: usize = 1;

/// The class of a packet. Class 0 holds packets that nodes generate or their control planes send (neighbour
/// requests, hellos, errors), and those that a program or filter put into the first band.
pub(crate) const fn class(meta: &Meta) -> usize {
    if meta.flags & Meta::OWN != 0 || meta.band() == 0 { URGENT } else { ORDINARY }
}

/// Bits for the rings of a class that may have packets, on their own cache lines: one word to check, however
/// many rings there are.
///
/// No packet is missed. A sender publishes, then sets the bit; the receiver clears it, then reads. Both
/// access the bits by read-modify-write operations, so one of the two comes first. If the sender's is first,
/// the receiver's reads what that or a later sender wrote (a release sequence), and sees what was published
/// before. If the receiver's is first, the bit is still set at its next check. A worker that is about to
/// sleep checks after a fence that pairs with the bell's, which is rung after the bit was set.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Ready(AtomicU64);

impl Ready {
    fn set(&self, ring: usize) {
        self.0.fetch_or(1 << ring, Ordering::Release);
    }

    fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Returns the bits and clears them.
    fn take(&self) -> u64 {
        if self.any() { self.0.swap(0, Ordering::Acquire) } else { 0 }
    }
}

/// Packets from other workers.
pub(crate) struct Inbox {
    sides: [ClassRings; CLASSES],
    /// Most packets taken from a ring per step.
    pub most: usize,
}

struct ClassRings {
    ready: Arc<Ready>,
    /// Taken bits of rings that have not been found empty since.
    left: u64,
    rings: Vec<Receiver>,
}

impl Inbox {
    /// Whether there are no other workers.
    pub fn is_alone(&self) -> bool {
        self.sides[ORDINARY].rings.is_empty()
    }

    pub fn most_in_a_step(&self) -> usize {
        self.sides.iter().map(|class_rings| class_rings.rings.len() * self.most).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.sides.iter().all(|class_rings| class_rings.left == 0 && !class_rings.ready.any())
    }

    /// The rings of a class that may have something.
    pub fn look(&mut self, class: usize) -> u64 {
        let class_rings = &mut self.sides[class];
        class_rings.left |= class_rings.ready.take();
        class_rings.left
    }

    /// The first ring, in class order, that may have packets.
    pub fn first(&mut self) -> Option<(usize, usize)> {
        let some = |class| Some(self.look(class)).filter(|&left| left != 0).map(|left| (class, left));
        let (class, left) = (0..CLASSES).find_map(some)?;
        Some((class, left.trailing_zeros() as usize))
    }

    pub fn take(&mut self, (class, ring): (usize, usize), pool: &mut Pool) -> RingRead {
        let class_rings = &mut self.sides[class];
        let taken = class_rings.rings[ring].take(pool);
        if matches!(taken, RingRead::Empty) {
            class_rings.left &= !(1 << ring);
        }
        taken
    }
}

/// Packets to other workers.
pub(crate) struct Outbound {
    /// By worker, the queues of each class to it; none to this worker itself.
    pub outlets: Vec<Option<[RingSender; CLASSES]>>,
    /// Bit mask of workers for which packets wait.
    pub waiting: u64,
}

/// The queue to one worker for one packet class.
pub(crate) struct RingSender {
    sender: Sender,
    /// Index of the ring at the receiver.
    ring: usize,
    ready: Arc<Ready>,
    pub batch: Batch,
}

/// Creates the queues between `count` workers, at most 64: each worker's sending and receiving ends.
pub(crate) fn connect(count: usize, between: RingKind) -> Vec<(Outbound, Inbox)> {
    let others = count.saturating_sub(1);
    let most = if between == RingKind::Shared { BATCH * others } else { BATCH };
    let mut outbound: Vec<_> = (0..count).map(|_| Outbound { outlets: Vec::new(), waiting: 0 }).collect();
    let mut inboxes = Vec::with_capacity(count);
    for to in 0..count {
        let [(urgent, first), (ordinary, second)] = RING_BYTES.map(|bytes| rings_of(bytes, others, between));
        let mut ends = urgent.into_iter().zip(ordinary);
        for (from, out) in outbound.iter_mut().enumerate() {
            let ends = if from == to { None } else { ends.next() };
            out.outlets.push(ends.map(|(urgent, ordinary)| [urgent, ordinary]));
        }
        inboxes.push(Inbox { sides: [first, second], most });
    }
    outbound.into_iter().zip(inboxes).collect()
}

/// The rings of a class to one worker, of about `bytes` bytes each, and the sending ends for the others.
fn rings_of(bytes: usize, others: usize, between: RingKind) -> (Vec<RingSender>, ClassRings) {
    let (senders, rings): (Vec<_>, Vec<_>) = match between {
        RingKind::Private => (0..others).map(|_| ring::private(bytes)).unzip(),
        RingKind::Shared if others > 0 => {
            let (senders, receiver) = ring::shared(bytes, others);
            (senders, vec![receiver])
        }
        RingKind::Shared => (vec![], vec![]),
    };
    let ready = Arc::<Ready>::default();
    let ends = senders.into_iter().enumerate().map(|(number, sender)| {
        let ring = number.min(rings.len() - 1);
        RingSender { sender, ring, ready: Arc::clone(&ready), batch: Batch::new() }
    });
    (ends.collect(), ClassRings { ready: Arc::clone(&ready), left: 0, rings })
}

impl RingSender {
    /// Puts packets into the ring, publishes them, and rings `bell`; returns how many had room.
    pub fn send(&mut self, bell: &Bell, pool: &Pool, packets: &[Handle]) -> usize {
        let sent = self.sender.send(pool, packets);
        if sent > 0 {
            self.ready.set(self.ring);
            bell.ring();
        }
        sent
    }
}

/// A worker's connections to the others: what it receives, what it sends, and every worker's bell.
pub(crate) struct Peers {
    pub inbox: Inbox,
    pub outbound: Outbound,
    pub bells: Arc<[Bell]>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::Worker;
    use crate::{Map, Setup, WorkerSetup};
    use longwire_block::DropReason;
    use longwire_block::path::Paths;
    use longwire_link::Links;
    use longwire_link::classify::Classifier;
    use longwire_units::Nanos;

    const BOTH: [RingKind; 2] = [RingKind::Private, RingKind::Shared];

    fn pool() -> Pool {
        Pool::new(1 << 20).unwrap()
    }

    /// The queues for ordinary packets from each of `count - 1` workers to the last, and the last one's
    /// inbox.
    fn senders_to_last(count: usize, between: RingKind) -> (Vec<RingSender>, Inbox) {
        let mut all = connect(count, between);
        let (_, inbox) = all.pop().unwrap();
        let ordinary = |(mut out, _): (Outbound, Inbox)| {
            let [_, ordinary] = out.outlets.pop().flatten().unwrap();
            ordinary
        };
        (all.into_iter().map(ordinary).collect(), inbox)
    }

    fn packet(pool: &mut Pool, number: u64) -> Handle {
        let handle = pool.insert(&[7; 60]).unwrap();
        pool.meta_mut(handle).seq = number;
        handle
    }

    /// All interleavings of the actors' steps, as sequences of actor numbers.
    fn orders(steps: &[usize]) -> Vec<Vec<usize>> {
        if steps.iter().all(|&left| left == 0) {
            return vec![vec![]];
        }
        let mut all = Vec::new();
        for actor in (0..steps.len()).filter(|&actor| steps[actor] > 0) {
            let mut rest = steps.to_vec();
            rest[actor] -= 1;
            all.extend(orders(&rest).into_iter().map(|order| [&[actor][..], &order].concat()));
        }
        all
    }

    /// Number of packets from two senders that a receiver misses. The receiver takes the bits and then reads;
    /// the senders publish and then set the bit, or the reverse. `order` says whose step is next.
    fn forgotten(order: &[usize], between: RingKind, publish_first: bool, pools: &mut [Pool; 2]) -> usize {
        const RECEIVER: usize = 2;
        let (mut senders, mut inbox) = senders_to_last(3, between);
        let [here, there] = pools;
        let one = packet(here, 0);
        let (mut steps, mut came) = ([0; 3], 0);
        let mut read = |inbox: &mut Inbox| {
            let mut some = inbox.sides[ORDINARY].left;
            while some != 0 {
                let ring = some.trailing_zeros() as usize;
                some &= some - 1;
                while let RingRead::Packet(handle) = inbox.take((ORDINARY, ring), there) {
                    there.free(handle);
                    came += 1;
                }
            }
        };
        for &actor in order {
            steps[actor] += 1;
            let is_first = steps[actor] % 2 == 1;
            match actor {
                RECEIVER if is_first => _ = inbox.look(ORDINARY),
                RECEIVER => read(&mut inbox),
                sender if is_first == publish_first => {
                    assert_eq!(senders[sender].sender.send(here, &[one]), 1);
                }
                sender => senders[sender].ready.set(senders[sender].ring),
            }
        }
        // A worker about to sleep checks once more.
        if !inbox.is_empty() {
            inbox.look(ORDINARY);
            read(&mut inbox);
        }
        here.free(one);
        3 - came
    }

    #[test]
    fn no_packet_is_forgotten_in_whatever_order_steps_are_taken() {
        let all = orders(&[4, 2, 4]);
        assert_eq!(all.len(), 3150, "10! / (4! 2! 4!)");
        let mut pools = [pool(), pool()];
        for between in BOTH {
            let mut lost = |order: &Vec<usize>, first| forgotten(order, between, first, &mut pools);
            assert_eq!(all.iter().find(|order| lost(order, true) > 0), None, "{between:?}");
            assert!(all.iter().any(|order| lost(order, false) > 0), "{between:?}: the other order is wrong");
        }
    }

    #[test]
    fn all_come_in_their_sender_s_order_while_threads_send() {
        const EACH: u64 = 20_000;
        const SENDERS: usize = 3;
        for between in BOTH {
            let (senders, mut inbox) = senders_to_last(SENDERS + 1, between);
            let (mut there, mut next) = (pool(), [0; SENDERS]);
            let bells = [Bell::new()];
            let mut take = |inbox: &mut Inbox| {
                while let Some(ring) = inbox.first() {
                    if let RingRead::Packet(handle) = inbox.take(ring, &mut there) {
                        let meta = there.meta(handle);
                        let from = usize::from(meta.in_port);
                        assert_eq!(meta.seq, next[from], "{between:?}");
                        next[from] += 1;
                        there.free(handle);
                    }
                }
            };
            std::thread::scope(|scope| {
                let send = |(number, mut sender): (usize, RingSender)| {
                    let bell = &bells[0];
                    scope.spawn(move || {
                        let mut here = pool();
                        let mut sent = 0;
                        while sent < EACH {
                            // One to seven at a time; packets without room are retried.
                            let more = (sent % 7 + 1).min(EACH - sent);
                            let batch: Vec<_> = (0..more).map(|at| packet(&mut here, sent + at)).collect();
                            batch.iter().for_each(|&it| here.meta_mut(it).in_port = number as u16);
                            sent += sender.send(bell, &here, &batch) as u64;
                            batch.into_iter().for_each(|handle| here.free(handle));
                        }
                    })
                };
                let threads: Vec<_> = senders.into_iter().enumerate().map(send).collect();
                while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                    take(&mut inbox);
                    std::thread::yield_now();
                }
            });
            take(&mut inbox);
            assert_eq!(next, [EACH; SENDERS], "{between:?}");
            assert!(inbox.is_empty());
        }
    }

    /// Workers on the machine's clock that have only packet memory.
    fn workers(count: usize, between: RingKind) -> Vec<Worker> {
        let setup = |_| {
            let links = Links::with_capacity(0, 1, Nanos::ZERO);
            WorkerSetup::new(Pool::new(8 << 20).unwrap(), links)
        };
        let map = Map::new(Classifier::new(&[], &[], &[]), Paths::default(), vec![]);
        Worker::of(Setup { between, ..Setup::new((0..count).map(setup).collect(), map) })
    }

    /// Two workers overload a third until their rings are full; then each sends an urgent packet.
    #[test]
    fn what_is_urgent_has_room_when_all_else_is_lost_and_goes_first() {
        const EACH: u64 = 40_000;
        for between in BOTH {
            let mut workers = workers(3, between);
            let (senders, receiver) = workers.split_at_mut(2);
            for sender in &mut *senders {
                for number in 0..EACH {
                    let handle = packet(&mut sender.pool, number);
                    sender.hand_over(2, handle);
                }
                for own in [true, false] {
                    let handle = packet(&mut sender.pool, EACH);
                    let meta = sender.pool.meta_mut(handle);
                    let (flags, band) = if own { (Meta::OWN, Meta::NO_BAND) } else { (0, 0) };
                    meta.flags = flags;
                    meta.set_band(band);
                    sender.hand_over(2, handle);
                }
                assert!(sender.pool.live() > 0, "a part of a batch waits for the end of the step");
                sender.send_all_over();
                let flow = &sender.counters.flow;
                let lost = sender.counters.drops[DropReason::RingFull as usize];
                assert_eq!((flow.handed_over + lost, sender.pool.live()), (EACH + 2, 0), "{between:?}");
                assert!(lost > 0, "{between:?}: {lost}");
            }
            let [receiver] = receiver else { panic!("one receives") };
            let came = receiver.take_from_rings();
            let numbers: Vec<_> =
                receiver.intake.ready.iter().map(|&it| receiver.pool.meta(it).seq).collect();
            assert_eq!(numbers[..6], [EACH, EACH, EACH, EACH, 0, 1], "{between:?}");
            assert_eq!(came, 4 + 2 * BATCH, "{between:?}: a batch of each sender in a step");
            receiver.drain_rings(|worker, handle| worker.pool.free(handle));
            assert!(receiver.peers.inbox.is_empty());
            let handed_over: u64 = senders.iter().map(|sender| sender.counters.flow.handed_over).sum();
            assert_eq!(receiver.counters.flow.received, handed_over, "{between:?}");
        }
    }

    /// 63 senders use all bits that a worker can have.
    #[test]
    fn there_may_be_64_workers() {
        for (between, rings) in [(RingKind::Private, 63), (RingKind::Shared, 1)] {
            let (mut senders, mut inbox) = senders_to_last(64, between);
            assert_eq!((senders.len(), inbox.sides[ORDINARY].rings.len()), (63, rings));
            assert_eq!(inbox.most_in_a_step(), 2 * 63 * BATCH);
            let (mut here, mut there) = (pool(), pool());
            let bell = Bell::new();
            let one = packet(&mut here, 0);
            senders.iter_mut().for_each(|sender| assert_eq!(sender.send(&bell, &here, &[one]), 1));
            let mut came = 0;
            while let Some(ring) = inbox.first() {
                came += usize::from(matches!(inbox.take(ring, &mut there), RingRead::Packet(_)));
            }
            assert_eq!(came, 63);
        }
        assert!(connect(1, RingKind::Private).iter().all(|(_, inbox)| inbox.is_alone() && inbox.is_empty()));
    }
}
