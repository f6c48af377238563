use super::*;
use crate::message::VERSION;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Time that the network takes in each direction.
const WAY: u64 = 200_000;

fn key() -> Key {
    Key::read(&"5a".repeat(32)).unwrap()
}

/// Two ends and the network between them. The clock of each is ahead of the world's.
struct World {
    ends: [Endpoint; 2],
    ahead: [u64; 2],
    now: u64,
    /// Messages on their way: when they come, to whom.
    flying: VecDeque<(u64, usize, Vec<u8>)>,
    /// Every message that was sent, and to whom.
    seen: Vec<(usize, Vec<u8>)>,
    /// Frames that came: to whom, when they left on the world's clock, bytes.
    came: Vec<(usize, Option<u64>, Vec<u8>)>,
}

impl World {
    fn new() -> Self {
        Self {
            ends: [Endpoint::new(key(), [1; 32]), Endpoint::new(key(), [2; 32])],
            ahead: [7_000_000_000_000, 30],
            now: 1_000_000,
            flying: VecDeque::new(),
            seen: Vec::new(),
            came: Vec::new(),
        }
    }

    fn connected() -> Self {
        let mut world = Self::new();
        world.go_on(300 * MILLI, |_, _| true);
        assert!(world.ends.iter().all(Endpoint::is_connected));
        world
    }

    fn clock(&self, end: usize) -> u64 {
        self.now + self.ahead[end]
    }

    fn send(&mut self, from: usize, message: &[u8], passes: bool) {
        self.seen.push((1 - from, message.to_vec()));
        if passes {
            self.flying.push_back((self.now + WAY, 1 - from, message.to_vec()));
        }
    }

    fn send_frame(&mut self, from: usize, frame: &[u8]) -> bool {
        let (mut place, stamp) = (vec![0; frame.len() + OVERHEAD], self.clock(from));
        let sealed = self.ends[from].seal(stamp, frame, &mut place).is_some();
        if sealed {
            self.send(from, &place, true);
        }
        sealed
    }

    fn deliver(&mut self, to: usize, mut message: Vec<u8>) -> Option<Message> {
        let at = self.clock(to);
        match self.ends[to].receive(&mut message, at) {
            MessageEvent::Nothing => None,
            MessageEvent::Reply(reply) => Some(reply),
            MessageEvent::Probe(probe) => self.ends[to].echo(probe, at),
            MessageEvent::Frame { stamp, frame } => {
                self.came.push((to, stamp.map(|stamp| stamp - self.ahead[to]), frame.to_vec()));
                None
            }
        }
    }

    /// For `time`, in steps of 100 us. `passes` says which messages the network carries: to whom, and how
    /// many there were before.
    fn go_on(&mut self, time: u64, passes: impl Fn(usize, usize) -> bool) {
        for _ in 0..time / 100_000 {
            self.now += 100_000;
            while let Some((_, to, message)) = self.flying.pop_front_if(|(at, ..)| *at <= self.now) {
                if let Some(reply) = self.deliver(to, message) {
                    let carried = passes(1 - to, self.seen.len());
                    self.send(to, reply.as_slice(), carried);
                }
            }
            for from in 0..2 {
                let clock = self.clock(from);
                while let Some(message) = self.ends[from].due(clock) {
                    let carried = passes(1 - from, self.seen.len());
                    self.send(from, message.as_slice(), carried);
                }
            }
        }
    }

    fn counters(&self, end: usize) -> Counters {
        self.ends[end].status(self.clock(end)).counters
    }
}

#[test]
fn both_ends_connect_and_carry_frames_with_their_times() {
    let mut world = World::connected();
    for (from, frame) in [(0, &b"there"[..]), (1, b"back"), (0, b"")] {
        let sent = world.now;
        assert!(world.send_frame(from, frame));
        world.go_on(MILLI, |_, _| true);
        let (to, stamp, bytes) = world.came.pop().unwrap();
        assert_eq!((to, &bytes[..]), (1 - from, frame));
        // Both ways take the same: the offset is exact.
        assert!(stamp.unwrap().abs_diff(sent) <= 1, "{stamp:?} {sent}");
    }
    for end in 0..2 {
        let status = world.ends[end].status(world.clock(end));
        assert_eq!(status.counters, Counters { sessions: 1, ..Counters::default() });
        assert_eq!((status.round_trip, status.other_version), (Some(2 * WAY), None));
        assert!(status.clock_error.unwrap() < WAY + 10_000);
    }
}

#[test]
fn an_end_that_starts_again_gets_another_session() {
    let mut world = World::connected();
    world.ends[1] = Endpoint::new(key(), [3; 32]);
    world.ahead[1] = 5_000_000;
    assert!(!world.send_frame(1, b"too early"));
    world.go_on(500 * MILLI, |_, _| true);
    assert!(world.ends.iter().all(Endpoint::is_connected));
    assert_eq!((world.counters(0).sessions, world.counters(1).sessions), (2, 1));
    let sent = world.now;
    assert!(world.send_frame(1, b"now"));
    world.go_on(MILLI, |_, _| true);
    let (_, stamp, _) = world.came.pop().unwrap();
    assert!(stamp.unwrap().abs_diff(sent) <= 1, "by the new clock: {stamp:?} {sent}");
}

#[test]
fn a_silent_peer_is_gone_and_may_come_back() {
    let mut world = World::connected();
    world.go_on(SILENCE - 100 * MILLI, |to, _| to == 0);
    assert!(world.ends[0].is_connected(), "it still hears the other end");
    world.go_on(SILENCE + 100 * MILLI, |_, _| false);
    assert!(!world.ends[0].is_connected() && !world.ends[1].is_connected());
    assert!(!world.send_frame(0, b"nobody is there"));
    world.go_on(500 * MILLI, |_, _| true);
    assert!(world.ends.iter().all(Endpoint::is_connected));
}

/// Everything that was ever sent, again, in any order: nothing is taken twice, and the session goes on.
#[test]
fn replays_change_nothing() {
    let mut world = World::connected();
    world.ends[1] = Endpoint::new(key(), [3; 32]);
    world.go_on(500 * MILLI, |_, _| true);
    for number in 0..50u8 {
        world.send_frame(0, &[number; 60]);
    }
    world.go_on(MILLI, |_, _| true);
    assert_eq!(world.came.len(), 50);
    let before = [world.counters(0), world.counters(1)];
    for (to, message) in world.seen.clone().into_iter().rev() {
        for to in [to, 1 - to] {
            if let Some(reply) = world.deliver(to, message.clone()) {
                world.send(to, reply.as_slice(), true);
            }
        }
    }
    world.go_on(500 * MILLI, |_, _| true);
    assert_eq!(world.came.len(), 50);
    for (end, before) in before.into_iter().enumerate() {
        assert_eq!(world.counters(end).sessions, before.sessions);
        assert!(world.counters(end).replayed > before.replayed);
    }
    assert!(world.ends.iter().all(Endpoint::is_connected));
}

#[test]
fn strangers_are_counted() {
    let mut world = World::connected();
    let mut stranger = Endpoint::new(Key::read(&"00".repeat(16)).unwrap(), [9; 32]);
    let hello = stranger.due(0).unwrap();
    assert_eq!(world.deliver(0, hello.as_slice().to_vec()), None);
    assert_eq!(world.counters(0).forged, 1);
    for rubbish in [&b""[..], b"LT", &[b'L', b'T', VERSION, 1], &[0; 1500], &[b'L', b'T', VERSION, 2, 0, 0]] {
        assert_eq!(world.deliver(0, rubbish.to_vec()), None);
    }
    assert_eq!(world.counters(0).malformed, 5);
    let mut other = [b'L', b'T', VERSION, 2].to_vec();
    other.extend([0; 60]);
    assert_eq!(world.deliver(0, other), None);
    assert_eq!(world.counters(0).other_session, 1);
    assert!(world.ends[0].is_connected());
}

#[test]
fn another_version_is_named() {
    let mut end = Endpoint::new(key(), [1; 32]);
    let signed = [b'L', b'T', VERSION + 1, 1, 0, 0, 0, 0, 9, 9, 9, 9];
    let mut hello = [&signed[..], &key().derive(&[b"LWT hello"]).tag(&signed)].concat();
    assert_eq!(end.receive(&mut hello, 5), MessageEvent::Nothing);
    let status = end.status(5);
    assert_eq!((status.other_version, status.counters.other_version), (Some(VERSION + 1), 1));
    hello[2] = VERSION + 2;
    assert_eq!(end.receive(&mut hello, 6), MessageEvent::Nothing);
    assert_eq!(end.status(6).other_version, Some(VERSION + 1), "a forged version is not believed");
}

#[test]
fn an_end_does_not_talk_to_itself() {
    let mut end = Endpoint::new(key(), [1; 32]);
    let mut hello = end.due(0).unwrap();
    assert_eq!(end.receive(hello.as_mut_slice(), 5), MessageEvent::Nothing);
    assert_eq!(end.status(5).counters, Counters { replayed: 1, ..Counters::default() });
}

#[test]
fn an_authentic_message_that_breaks_the_rules_is_counted() {
    let mut world = World::connected();
    for (kind, length) in [(Kind::Frame, 7), (Kind::Probe, 9), (Kind::Echo, 23)] {
        let session = world.ends[0].session.as_mut().unwrap();
        let message = sealed(session, kind, &[1; 24][..length]).unwrap();
        assert_eq!(world.deliver(1, message.as_slice().to_vec()), None);
    }
    assert_eq!(world.counters(1).malformed, 3);
    assert!(world.came.is_empty());
}

proptest! {
    /// Whatever the network loses at the beginning, both ends connect afterwards.
    #[test]
    fn ends_connect_whatever_was_lost(lost in prop::collection::vec(any::<bool>(), 1..40)) {
        let mut world = World::new();
        world.go_on(700 * MILLI, |_, number| !lost.get(number).copied().unwrap_or(false));
        world.go_on(SILENCE + 700 * MILLI, |_, _| true);
        prop_assert!(world.ends.iter().all(Endpoint::is_connected));
        prop_assert!(world.send_frame(0, b"x") && world.send_frame(1, b"y"));
        world.go_on(MILLI, |_, _| true);
        prop_assert_eq!(world.came.len(), 2);
    }
}
