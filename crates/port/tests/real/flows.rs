//! Ports with several queues, each of which receives a part of the flows.

use crate::net::{receive, send, until};
use longwire_block::Port;
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;

const FLOWS: u8 = 48;

/// A frame of a flow, or of its other direction: UDP over IPv4, TCP over IPv4, UDP over IPv6, in turn.
fn packet(flow: u8, back: bool, number: u8) -> Vec<u8> {
    let ends = |mut ends: [Vec<u8>; 2]| {
        if back {
            ends.reverse();
        }
        ends.concat()
    };
    let mut bytes = ends([vec![2, 0, 0, 0, 0, 1], vec![2, 0, 0, 0, 0, 2]]);
    let transport = if flow % 3 == 1 { 6 } else { 17 };
    if flow % 3 == 2 {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 46, transport, 64]);
        let address = |last| [&[0xfd][..], &[0; 14], &[last]].concat();
        bytes.extend(ends([address(1), address(2)]));
    } else {
        bytes.extend([8, 0, 0x45, 0, 0, 66, 0, 0, 0, 0, 64, transport, 0, 0]);
        bytes.extend(ends([vec![10, 0, 0, 1], vec![10, 0, 0, 2]]));
    }
    bytes.extend(ends([vec![0x40, flow], vec![0x13, 0x89]]));
    // A datagram's length, or a number of TCP; then what the test looks at.
    bytes.extend([0, 46, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    bytes.resize(98, 0);
    bytes.extend([flow, number]);
    bytes
}

/// By flow: the queue that received all its frames, which have the `numbers` in order.
fn received<P: Port>(queues: &mut [P], pool: &mut Pool, numbers: &[u8]) -> Vec<usize> {
    let mut got = vec![Vec::new(); usize::from(FLOWS)];
    until("all frames", || {
        for (place, queue) in queues.iter_mut().enumerate() {
            let mut batch = Batch::new();
            queue.receive(pool, Nanos(u64::MAX >> 1), &mut batch).unwrap();
            for &handle in batch.as_slice() {
                if let [.., flow, number] = *pool.data(handle) {
                    got[usize::from(flow)].push((place, number));
                }
                pool.free(handle);
            }
        }
        (got.iter().map(Vec::len).sum::<usize>() >= usize::from(FLOWS) * numbers.len()).then_some(())
    });
    let one_queue = |got: Vec<(usize, u8)>| {
        let (places, in_order): (Vec<_>, Vec<_>) = got.into_iter().unzip();
        assert_eq!(in_order, numbers);
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
        places[0]
    };
    got.into_iter().map(one_queue).collect()
}

/// Lets a host send flows to the queues, which receive each flow, and its other direction, by the same one of
/// them, whichever of them sends to the host meanwhile.
pub fn are_shared<P: Port>(host: &mut dyn Port, queues: &mut [P], pool: &mut Pool) {
    let all = |back: bool, number: u8| (0..FLOWS).map(move |flow| packet(flow, back, number));
    let mut send_and_receive = |queues: &mut [P], pool: &mut Pool, back, numbers: &[u8]| {
        let frames: Vec<_> = numbers.iter().flat_map(|&number| all(back, number)).collect();
        send(host, pool, &frames).unwrap();
        received(queues, pool, numbers)
    };
    let first = send_and_receive(queues, pool, false, &[0, 1, 2, 3]);
    for queue in 0..queues.len() {
        let flows = first.iter().filter(|place| **place == queue).count();
        assert!(flows > usize::from(FLOWS) / 8, "queue {queue} has {flows} flows");
    }
    assert_eq!(send_and_receive(queues, pool, true, &[4]), first);
    for (flow, queue) in (0..FLOWS).zip(&first) {
        let other = (queue + 1) % queues.len();
        send(&mut queues[other], pool, &[packet(flow, true, 9)]).unwrap();
    }
    assert_eq!(send_and_receive(queues, pool, false, &[5, 6]), first);
    assert_eq!(send_and_receive(queues, pool, true, &[7]), first);
    let got = receive(host, pool, usize::from(FLOWS));
    assert!(got.iter().all(|(frame, _)| frame.ends_with(&[9])), "nothing but what was sent comes back");
    let (came, went) = queues
        .iter()
        .map(Port::stats)
        .fold((0, 0), |(came, went), stats| (came + stats.in_frames, went + stats.out_frames));
    assert_eq!((came, went, pool.live()), (8 * u64::from(FLOWS), u64::from(FLOWS), 0));
}
