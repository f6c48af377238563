//! Arbitrary bytes as messages to an end: as they are, and changing authentic ones.

use longwire_nesp::Key;
use longwire_tunnel::{Endpoint, Message, MessageEvent, OVERHEAD};
use std::collections::VecDeque;

fn key() -> Key {
    Key::read("000102030405060708090a0b0c0d0e0f").expect("a key")
}

/// Delivers messages until nobody has anything to say.
fn settle(ends: &mut [Endpoint; 2], now: u64) {
    let mut waiting: VecDeque<(usize, Message)> = VecDeque::new();
    for (from, end) in ends.iter_mut().enumerate() {
        while let Some(message) = end.due(now) {
            waiting.push_back((1 - from, message));
        }
    }
    while let Some((to, message)) = waiting.pop_front() {
        let mut bytes = message.as_slice().to_vec();
        let reply = match ends[to].receive(&mut bytes, now) {
            MessageEvent::Reply(reply) => Some(reply),
            MessageEvent::Probe(probe) => ends[to].echo(probe, now),
            MessageEvent::Nothing | MessageEvent::Frame { .. } => None,
        };
        waiting.extend(reply.map(|reply| (1 - to, reply)));
    }
}

/// Treats `bytes` as a message of a stranger, before and in a session; then as a series of attempts to change
/// authentic frames: each is a place and the bits to change there.
pub fn run(bytes: &[u8]) {
    let mut ends = [Endpoint::new(key(), [1; 32]), Endpoint::new(key(), [2; 32])];
    let mut now = 1;
    let stranger = |end: &mut Endpoint, now| {
        assert_eq!(
            end.receive(&mut bytes.to_vec(), now),
            MessageEvent::Nothing,
            "a stranger is not answered"
        );
    };
    stranger(&mut ends[0], now);
    for _ in 0..10 {
        now += 200_000_000;
        settle(&mut ends, now);
    }
    assert!(ends.iter().all(Endpoint::is_connected));
    stranger(&mut ends[0], now);
    let frame = [7; 60];
    for change in bytes.as_chunks::<3>().0.iter().take(50) {
        let &[high, low, bits] = change;
        let mut message = [0; 60 + OVERHEAD];
        assert_eq!(ends[0].seal(now, &frame, &mut message), Some(message.len()));
        let at = usize::from(u16::from_be_bytes([high, low])) % (message.len() + 1);
        let mut changed = message.to_vec();
        match changed.get_mut(at) {
            Some(byte) => *byte ^= bits,
            None => changed.truncate(usize::from(bits) % message.len()),
        }
        if changed != message {
            assert_eq!(ends[1].receive(&mut changed, now), MessageEvent::Nothing);
        }
        let mut again = message;
        let MessageEvent::Frame { stamp, frame: came } = ends[1].receive(&mut message, now) else {
            panic!("the true message is taken");
        };
        assert!(came == frame && stamp.is_some());
        assert_eq!(ends[1].receive(&mut again, now), MessageEvent::Nothing, "a message is taken once");
    }
    let counted = ends[1].status(now).counters;
    assert_eq!((counted.lost, counted.reordered, counted.sessions), (0, 0, 1));
}
