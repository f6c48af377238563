//! Results, accesses and faults of programs in the interpreter: expected values derived by hand from RFC
//! 9669.

mod faults;
mod instructions;
mod maps;

use crate::harness::{Bench, ROOM, Ran};
use longwire_program::map::{MapError, NO_EXIST};
use longwire_program::{Abort, Fault, MapKind, MapSpec, Maps, Redirect, Stopped, Verdict, assemble, hash};

/// With a packet of 64 bytes, 0, 1, 2, …, and no maps.
fn plain() -> Bench {
    with_maps(&[]).unwrap()
}

fn run(bench: &mut Bench, text: &str) -> Result<Ran, Stopped> {
    bench.run(&assemble(text).unwrap())
}

/// A program's return value.
fn returned(text: &str) -> u64 {
    run(&mut plain(), text).unwrap().returned
}

/// The fault that stopped a program, and its instruction.
fn stopped(text: &str) -> (usize, Fault) {
    let Stopped { slot, fault } = run(&mut plain(), text).unwrap_err();
    (slot, fault)
}

fn with_maps(specs: &[MapSpec]) -> Result<Bench, MapError> {
    let packet: Vec<u8> = (0..64).collect();
    Ok(Bench::new(&packet, Maps::new(specs, 4, 9)?))
}

#[test]
fn verdicts_and_effects_are_noted() {
    for (text, wanted) in [
        ("r0 = 0", Verdict::Aborted(Abort::Returned)),
        ("r0 = 3", Verdict::Transmit),
        ("r0 = 4", Verdict::Aborted(Abort::Nowhere)),
        ("r0 = 77", Verdict::Aborted(Abort::UnknownCode(77))),
        ("r1 = 9\n r2 = 0\n call redirect", Verdict::Redirect(Redirect::Port(9))),
        ("r1 = 9\n r2 = 1\n call redirect", Verdict::Aborted(Abort::Returned)),
        ("r1 = 12\n call lw_redirect_link", Verdict::Redirect(Redirect::Link(12))),
        ("r1 = 5\n call lw_drop", Verdict::Drop(Some(5))),
        ("r1 = 63\n call lw_drop", Verdict::Drop(Some(63))),
        // All higher numbers are treated as one; the lower half is used.
        ("r1 = 64\n call lw_drop", Verdict::Drop(Some(64))),
        ("r1 = -1\n call lw_drop", Verdict::Drop(Some(64))),
        ("r1 = 0x700000005 ll\n call lw_drop", Verdict::Drop(Some(5))),
        ("r1 = 9\n r2 = 0\n call redirect\n r0 = 2", Verdict::Pass),
    ] {
        assert_eq!(run(&mut plain(), &format!("{text}\n exit")).unwrap().verdict, wanted, "{text}");
    }
    let text = "r1 = 7\n call lw_choose_queue\n r6 = r0\n r1 = 65536\n call lw_choose_queue\n r6 += r0
        r1 = -1\n call lw_mark\n r1 = r10\n r1 += -8\n *(u64 *)(r1 + 0) = 0\n r2 = 8\n call trace_printk\n \
        r0 = r6\n exit";
    let ran = run(&mut plain(), text).unwrap();
    assert_eq!((ran.returned as i64, ran.effects.queue, ran.effects.mark), (-22, Some(7), Some(u32::MAX)));
    assert_eq!((ran.effects.traces, ran.effects.redirect, ran.effects.reason), (1, None, None));
    let text = "call lw_read_mark\n r6 = r0\n r1 = 5\n call lw_mark\n call lw_read_mark\n r0 <<= 32\n r0 |= \
        r6\n exit";
    assert_eq!(run(&mut plain(), text).unwrap().returned, 0x5_9000_0001, "that of the context, then its own");
    let ran = run(&mut plain(), "r1 = 3\n call lw_choose_link\n exit").unwrap();
    assert_eq!((ran.returned, ran.effects.link, ran.effects.redirect), (0, Some(3), None));
}

#[test]
fn transport_headers_are_found() {
    let frame = |kind: u16, ip: &[u8]| [&[0; 12], &kind.to_be_bytes()[..], ip].concat();
    let four = |fragment: [u8; 2]| {
        let head = [
            0x46,
            0,
            0,
            32,
            0,
            0,
            fragment[0],
            fragment[1],
            64,
            17,
            0,
            0,
            10,
            0,
            0,
            1,
            10,
            0,
            0,
            2,
            1,
            1,
            1,
            0,
        ];
        frame(0x800, &[&head[..], &[0; 8]].concat())
    };
    let six = |next: u8, payload: &[u8]| {
        let head = [&[0x60, 0, 0, 0, 0, payload.len() as u8, next, 64][..], &[0xfd; 32]].concat();
        frame(0x86dd, &[&head[..], payload].concat())
    };
    let options = [17, 0, 1, 4, 0, 0, 0, 0];
    for (packet, found) in [
        (four([0, 0]), 38 << 16 | 17),
        (four([0x20, 0]), 38 << 16 | 0x100 | 17),
        (four([0, 1]), 0x100 | 17),
        (six(6, &[0; 20]), 54 << 16 | 6),
        (six(60, &[options, [0; 8]].concat()), 62 << 16 | 17),
        (six(44, &[17, 0, 0, 1, 0, 0, 0, 9]), 62 << 16 | 0x100 | 17),
        (six(44, &[17, 0, 0, 9, 0, 0, 0, 9]), 0x100 | 17),
        (six(50, &[0; 16]), 50),
        (six(59, &[]), 59),
        (six(60, &options[..1]), 60 - 0x1_0000),
        (six(60, &[60, 0, 1, 4, 0, 0, 0, 0].repeat(9)), 60 - 0x1_0000),
        (six(44, &[60, 0, 0, 1, 0, 0, 0, 9]), 0x100 + 60 - 0x1_0000),
        (six(6, &[])[..40].to_vec(), -22),
        (frame(0x806, &[0; 28]), -22),
        (vec![0; 13], -22),
    ] {
        let ran =
            run(&mut Bench::new(&packet, Maps::new(&[], 1, 1).unwrap()), "call lw_transport\n exit").unwrap();
        assert_eq!(ran.returned as i64, found, "{packet:02x?}");
    }
}

#[test]
fn programs_are_told_time_worker_and_dice() {
    for (helper, wanted) in [
        ("ktime_get_ns", 5_000_000_123),
        ("ktime_get_boot_ns", 5_000_000_123),
        ("ktime_get_coarse_ns", 5_000_000_123),
        ("jiffies64", 5_000),
        ("get_smp_processor_id", 1),
        ("get_numa_node_id", 0),
        ("get_prandom_u32", 1),
        ("get_prandom_u32\n call get_prandom_u32", 2),
        ("xdp_get_buff_len", 64),
    ] {
        assert_eq!(returned(&format!("call {helper}\n exit")), wanted, "{helper}");
    }
}

#[test]
fn the_packets_ends_move() {
    let adjust = |helper: &str, by: i32| {
        let text = format!("r2 = {by}\n call {helper}\n exit");
        let ran = run(&mut plain(), &text).unwrap();
        (ran.returned as i64, ran.packet.len(), ran.packet[0], *ran.packet.last().unwrap())
    };
    assert_eq!(adjust("xdp_adjust_head", 14), (0, 50, 14, 63));
    assert_eq!(adjust("xdp_adjust_head", -32), (0, 96, 0xee, 63));
    assert_eq!(adjust("xdp_adjust_head", -33), (-22, 64, 0, 63));
    assert_eq!(adjust("xdp_adjust_head", 51), (-22, 64, 0, 63));
    assert_eq!(adjust("xdp_adjust_tail", 32), (0, 96, 0, 0));
    assert_eq!(adjust("xdp_adjust_tail", 33), (-22, 64, 0, 63));
    assert_eq!(adjust("xdp_adjust_tail", -50), (0, 14, 0, 13));
    assert_eq!(adjust("xdp_adjust_tail", -51), (-22, 64, 0, 63));
}

#[test]
fn bytes_are_copied_to_and_from_the_packet() {
    let copy = |helper: &str, offset: u32, size: u32| {
        let text = format!(
            "*(u64 *)(r10 - 8) = -1\n r2 = {offset}\n r3 = r10\n r3 += -8\n r4 = {size}\n call {helper}
             r6 = r0\n r0 = *(u64 *)(r10 - 8)\n if r6 == 0 goto out\n r0 = r6\n out: exit"
        );
        let ran = run(&mut plain(), &text).unwrap();
        (ran.returned, ran.packet.iter().filter(|&&byte| byte == 255).count())
    };
    assert_eq!(copy("xdp_load_bytes", 61, 3), (0xffff_ffff_ff3f_3e3d, 0));
    assert_eq!(copy("xdp_load_bytes", 61, 4), (-22i64 as u64, 0));
    assert_eq!(copy("xdp_load_bytes", 65536, 4), (-14i64 as u64, 0));
    assert_eq!(copy("xdp_store_bytes", 0, 8), (u64::MAX, 8));
    assert_eq!(copy("xdp_store_bytes", 57, 8), (-22i64 as u64, 0));
}

#[test]
fn checksums_differ_by_what_changed() {
    // From 10.0.0.1 to 10.0.0.2, as words in native order: ~0x000a + ~0x0100 + 0x000a + 0x0200, folded.
    let diff = |from: i32, to: i32, seed: i32| {
        returned(&format!(
            "*(u32 *)(r10 - 8) = {from}\n *(u32 *)(r10 - 4) = {to}\n r1 = r10\n r1 += -8\n r2 = 4
             r3 = r10\n r3 += -4\n r4 = 4\n r5 = {seed}\n call csum_diff\n exit"
        ))
    };
    assert_eq!(diff(0x0100_000a, 0x0200_000a, 0), 0x0100);
    assert_eq!(diff(0x0100_000a, 0x0200_000a, 0xff00), 0x0001);
    assert_eq!(diff(0x0200_000a, 0x0100_000a, 0), 0xfeff);
    // 74565 is 0x12345.
    let one = "*(u32 *)(r10 - 4) = 74565\n r3 = r10\n r3 += -4\n r5 = 7";
    assert_eq!(
        returned(&format!("{one}\n r1 = 0\n r2 = 0\n r4 = 4\n call csum_diff\n exit")),
        0x2345 + 1 + 7
    );
    assert_eq!(
        returned(&format!("{one}\n r1 = r3\n r2 = 4\n r3 = 0\n r4 = 0\n call csum_diff\n exit")),
        0xffff - 0x2346 + 7
    );
    assert_eq!(returned(&format!("{one}\n r1 = 0\n r2 = 0\n r4 = 3\n call csum_diff\n exit")), -22i64 as u64);
    assert_eq!(returned(&format!("{one}\n r1 = 0\n r2 = 0\n r4 = 0\n call csum_diff\n exit")), 7);
}

#[test]
fn hashes_are_the_crates() {
    let text = "r3 = 0x1122334455667788 ll\n *(u64 *)(r10 - 8) = r3\n r1 = r10\n r1 += -8\n r2 = 6\n r3 = \
        42\n call lw_hash\n exit";
    assert_eq!(returned(text), hash(42, &0x1122_3344_5566_7788u64.to_le_bytes()[..6]));
}
