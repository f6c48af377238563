//! Tests of frames that need several buffers of the shared memory.

use super::*;

/// A frame of an EtherType for experiments.
fn frame(len: usize, seed: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..len).map(|at| (at * 7 + at / 256 + seed) as u8).collect();
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame
}

fn pair(mtu: u32) -> Far {
    veth("near", "far", 1);
    ip(&format!("link set near mtu {mtu}"));
    ip(&format!("link set far mtu {mtu}"));
    Far::on("far")
}

/// Opens `near`; prints why if this kernel can't.
fn open(plan: AfXdpPlan) -> Option<DrivenPort> {
    match AfXdpPort::open(plan) {
        Ok(port) => Some(DrivenPort::from(port)),
        Err(error @ AfXdpError::Mtu { max: 3506, .. }) => {
            println!("skipped: no frames in several pieces: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn frames_of_every_number_of_pieces_cross_whole_and_in_order() {
    in_namespace(|| {
        let far = pair(MAX_MTU);
        let Some(mut near) = open(AfXdpPlan::on("near")) else { return };
        assert!(near.port.describe().ends_with("1 queue, multi-buffer"), "{}", near.port.describe());
        let around = |edge: usize| [edge - 1, edge, edge + 1];
        let edges = [3840, 4096, 2 * 3840, 8192, 9014, 4 * 4096, 40_000, 60_000];
        let lengths: Vec<_> = edges.into_iter().flat_map(around).chain([60, 1514, 65_535, 60]).collect();
        let frames: Vec<_> = lengths.iter().enumerate().map(|(seed, &len)| frame(len, seed)).collect();
        for _ in 0..20 {
            for chunk in frames.chunks(4) {
                assert!(chunk.iter().all(|frame| far.send(frame)));
                let came = near.receive(chunk.len());
                assert!(came == chunk);
                near.send(chunk).unwrap();
                assert!(chunk.iter().all(|frame| far.receive() == *frame));
            }
        }
        let (stats, bytes) = (near.port.stats(), 20 * lengths.iter().sum::<usize>() as u64);
        let count = 20 * lengths.len() as u64;
        assert_eq!((stats.out_frames, stats.out_bytes, stats.in_missed), (count, bytes, 0));
        assert_eq!((stats.out_full, stats.out_oversize, stats.in_bad), (0, 0, 0));
    });
}

#[test]
fn what_small_rings_have_no_room_for_is_counted() {
    in_namespace(|| {
        let far = pair(9000);
        let Some(mut near) = open(AfXdpPlan { ring: 64, ..AfXdpPlan::on("near") }) else { return };
        near.send(&vec![frame(9014, 1); 500]).unwrap();
        near.send(&[frame(9015, 1)]).unwrap();
        let stats = near.port.stats();
        assert_eq!((stats.out_frames + stats.out_full, stats.out_oversize), (500, 1));
        assert_eq!(stats.out_bytes, stats.out_frames * 9014);

        // While nobody receives, three buffers each.
        (0..500).for_each(|_| {
            far.send(&frame(9014, 2));
        });
        let (deadline, mut came) = (Instant::now() + PATIENCE, 0);
        while came + near.port.stats().in_missed < 500 {
            assert!(Instant::now() < deadline, "{came} came, {:?}", near.port.stats());
            let frames = near.poll().unwrap();
            assert!(frames.iter().all(|came| *came == frame(9014, 2)));
            came += frames.len() as u64;
        }
        assert_eq!(came + near.port.stats().in_missed, 500);
        // Afterwards all buffers are free again.
        for _ in 0..10 {
            far.send(&frame(9000, 3));
            assert!(near.receive(1) == [frame(9000, 3)]);
        }
    });
}

#[test]
fn what_waits_in_the_ring_of_an_interface_that_goes_is_counted_once() {
    in_namespace(|| {
        let _far = pair(9000);
        let Some(mut near) = open(AfXdpPlan::on("near")) else { return };
        near.send(&[frame(9014, 1), frame(60, 1)]).unwrap();
        ip("link del near");
        let mut sent = 2;
        let deadline = Instant::now() + PATIENCE;
        while !matches!(near.poll(), Err(PortError::Vanished { .. })) {
            assert!(Instant::now() < deadline);
            let _ = near.send(&[frame(9014, 2), frame(4096, 2), frame(60, 2)]);
            sent += 3;
        }
        let stats = near.port.stats();
        assert_eq!(stats.out_frames + stats.out_down + stats.out_full, sent);
    });
}
