//! Records of rings: verification, and contents. Every record is released exactly once, on every path.

use crate::harness::Bench;
use longwire_program::map::{Record, RingStats};
use longwire_program::{
    Fault, Item, MapKind, MapSpec, Maps, Program, Register, Rejected, Rejection, VerifiedProgram, assemble,
    verify,
};

fn maps() -> [MapSpec; 4] {
    [
        MapSpec::new("events", MapKind::RingBuf, 0, 0, 4096),
        MapSpec::new("packets", MapKind::PerfEventArray, 4, 4, 2),
        MapSpec::new("table", MapKind::Array, 4, 600, 1),
        MapSpec::new("other", MapKind::RingBuf, 0, 0, 8192),
    ]
}

fn check(text: &str) -> Result<VerifiedProgram, Box<Rejected>> {
    verify(Program::new("test", assemble(text).unwrap_or_else(|error| panic!("{error}\n{text}")), maps()))
}

/// `r6` is a record of 16 bytes, or the program has ended.
const RESERVED: &str = "r6 = r1
    r1 = map[0] ll
    r2 = 16
    r3 = 0
    call ringbuf_reserve
    if r0 == 0 goto out
    r6 = r0
";
const SUBMIT: &str = "r1 = r6\n r2 = 0\n call ringbuf_submit\n";
const OUT: &str = "out: r0 = 2\n exit";

const R0: Register = Register::R0;
const R1: Register = Register::R1;
const R6: Register = Register::R6;

/// The code between reservation and end, the reason for refusal, and its message.
#[test]
fn attacks_are_refused() {
    let unreleased = |reserved| Rejection::Unreleased { map: "events".into(), reserved };
    let released = |register| Rejection::Released { register };
    let inside = Rejection::RecordInside { register: R1 };
    let bounds = |first, last| Rejection::Bounds {
        what: "a record of ring events".into(),
        first,
        last,
        low: 0,
        high: 15,
    };
    for (text, fault) in [
        // Left behind: at the end, on one path, by overwriting the only address, by a returning function.
        (String::new(), unreleased(5)),
        (format!("r7 = *(u64 *)(r6 + 0)\n if r7 == 0 goto out\n {SUBMIT}"), unreleased(5)),
        ("r6 = 0\n".into(), unreleased(5)),
        ("*(u64 *)(r10 - 8) = r6\n *(u64 *)(r10 - 8) = 0\n".into(), unreleased(5)),
        // Released twice, and used afterwards.
        (format!("{SUBMIT}{SUBMIT}"), released(R1)),
        (format!("r7 = r6\n {SUBMIT} r1 = r7\n r2 = 0\n call ringbuf_discard\n"), released(R1)),
        (format!("{SUBMIT} *(u64 *)(r6 + 0) = 1\n"), released(R6)),
        (
            format!("*(u64 *)(r10 - 8) = r6\n {SUBMIT} r6 = *(u64 *)(r10 - 8)\n r0 = *(u8 *)(r6 + 0)\n"),
            released(R6),
        ),
        (
            format!("r7 = r6\n r7 += 8\n {SUBMIT} r0 = *(u8 *)(r7 + 0)\n"),
            Rejection::Released { register: Register::R7 },
        ),
        // Outside the record.
        (format!("*(u64 *)(r6 + 16) = 1\n {SUBMIT}"), bounds(16, 23)),
        (format!("r0 = *(u8 *)(r6 - 1)\n {SUBMIT}"), bounds(-1, -1)),
        (
            format!(
                "r7 = *(u8 *)(r6 + 0)\n r7 &= 15\n r8 = r6\n r8 += r7\n r0 = *(u16 *)(r8 + 0)\n {SUBMIT}"
            ),
            bounds(0, 16),
        ),
        // Released by another address.
        ("r6 += 8\n".to_owned() + SUBMIT, inside.clone()),
        (format!("r7 = *(u8 *)(r6 + 0)\n r6 += r7\n {SUBMIT}"), inside),
    ] {
        let text = format!("{RESERVED}{text}{OUT}");
        let Err(rejected) = check(&text) else { panic!("let in:\n{text}") };
        assert_eq!(rejected.fault, fault, "{rejected}\n{text}");
    }
    let message = check(&format!("{RESERVED}{OUT}")).unwrap_err().to_string();
    let wanted = "the program ends here with a record of ring events, which instruction 5 has reserved; \
        submit or discard it on every path";
    assert!(message.ends_with(wanted), "{message}");
}

/// Only records can be released, and their size is known.
#[test]
fn arguments_are_what_they_have_to_be() {
    let reserve =
        |size: &str| format!("{size}\n r1 = map[0] ll\n r3 = 0\n call ringbuf_reserve\n r0 = 0\n exit");
    for (text, part) in [
        (
            reserve("r2 = *(u32 *)(r1 + 12)"),
            "ringbuf_reserve takes a constant number in r2, which is a number",
        ),
        (
            reserve("r2 = 66545"),
            "ringbuf_reserve takes a number from 0 to 66544 in r2, which is 66545 to 66545",
        ),
        (
            "r1 = r10\n r1 += -8\n r2 = 0\n call ringbuf_submit\n exit".into(),
            "takes a record that ringbuf_reserve gave in r1, which is an address in the stack",
        ),
        (
            "r2 = 0\n call ringbuf_discard\n exit".into(),
            "takes a record that ringbuf_reserve gave in r1, which is the context",
        ),
        (
            "r1 = map[0] ll\n r2 = 8\n r3 = 0\n call ringbuf_reserve\n r1 = r0\n r2 = 0\n call \
             ringbuf_submit\n r0 = 0\n exit"
                .into(),
            "r1 may be 0, as ring events may have no room; compare it with 0 first",
        ),
        (
            "r1 = map[0] ll\n r2 = 8\n r3 = 0\n call ringbuf_reserve\n *(u64 *)(r0 + 0) = 1\n exit".into(),
            "r0 may be 0, as ring events may have no room",
        ),
        (format!("{RESERVED}{SUBMIT} r7 = r0\n {OUT}"), "r0 was not written before"),
        (
            "r1 = map[2] ll\n r2 = 8\n r3 = 0\n call ringbuf_reserve\n r0 = 0\n exit".into(),
            "ringbuf_reserve can't use map table, which is a array; it takes a ringbuf",
        ),
        (
            "r1 = map[1] ll\n r2 = 8\n r3 = 0\n call ringbuf_reserve\n r0 = 0\n exit".into(),
            "which is a perf_event_array; it takes a ringbuf",
        ),
        (
            "*(u32 *)(r10 - 4) = 0\n r1 = map[0] ll\n r2 = r10\n r2 += -4\n call map_lookup_elem\n r0 = 0\n \
             exit"
                .into(),
            "map_lookup_elem can't use map events, which is a ringbuf; records are written into it, with \
             ringbuf_reserve",
        ),
        (
            "r2 = map[0] ll\n r3 = -1\n r4 = r10\n r5 = 0\n call perf_event_output\n r0 = 0\n exit".into(),
            "perf_event_output can't use map events, which is a ringbuf; it takes a perf_event_array",
        ),
        (
            "r2 = r10\n r3 = 0\n r4 = r10\n r5 = 0\n call perf_event_output\n r0 = 0\n exit".into(),
            "perf_event_output takes a map in r2, which is an address in the stack",
        ),
        (
            "r1 = map[0] ll\n r2 = r10\n r2 += -8\n r3 = 8\n r4 = 0\n call ringbuf_output\n r0 = 0\n exit"
                .into(),
            "byte -8 of the stack frame was not written",
        ),
    ] {
        let Err(rejected) = check(&text) else { panic!("let in:\n{text}") };
        assert!(rejected.to_string().contains(part), "{rejected}\n{text}");
    }
}

/// At most eight records are reserved at once.
#[test]
fn records_are_reserved_only_so_often() {
    let eight = "r1 = map[0] ll\n r2 = 0\n r3 = 0\n call ringbuf_reserve\n".repeat(9) + "r0 = 0\n exit";
    assert_eq!(check(&eight).unwrap_err().fault, Rejection::TooManyRecords);
    // A loop that reserves in each round never ends acceptably.
    let rounds = "r6 = 0\n again: r1 = map[0] ll\n r2 = 8\n r3 = 0\n call ringbuf_reserve\n r6 += 1\n if r6 \
        < 20 goto again\n r0 = 0\n exit";
    assert_eq!(check(rounds).unwrap_err().fault, Rejection::TooManyRecords);
}

#[test]
fn a_register_that_was_not_written_is_named_with_the_fix() {
    assert_eq!(
        Rejection::Unwritten { register: R0 }.to_string(),
        "r0 was not written before on every path; set it first (calls make r1 to r5 undefined)"
    );
}

/// A record may be kept on the stack, passed to functions and helpers, released in either way, or be missing.
#[test]
fn what_gives_every_record_back_is_let_in() {
    let discard = "r1 = r6\n r2 = 0\n call ringbuf_discard\n";
    let function =
        "r1 = r6\n call give\n out: r0 = 2\n exit\n give: r2 = 0\n call ringbuf_submit\n r0 = 0\n exit";
    let maybe = "r7 = *(u32 *)(r1 + 12)\n r6 = 0\n if r7 == 3 goto check\n r1 = map[0] ll\n r2 = 16\n r3 = \
        0\n \
                 call ringbuf_reserve\n r6 = r0\n check: if r6 == 0 goto out\n";
    let second = "r1 = map[3] ll\n r2 = 8\n r3 = 0\n call ringbuf_reserve\n if r0 == 0 goto one\n r1 = r0\n \
        r2 = 0\n \
                  call ringbuf_submit\n one: ";
    let copied = "r1 = map[3] ll\n r2 = r6\n r3 = 16\n r4 = 0\n call ringbuf_output\n";
    let round = "r7 = 0\n again: r1 = map[0] ll\n r2 = 8\n r3 = 0\n call ringbuf_reserve\n if r0 == 0 goto \
        out\n r1 = r0\n r2 = 0\n \
                 call ringbuf_submit\n r7 += 1\n if r7 < 20 goto again\n";
    for text in [
        format!("{RESERVED}{SUBMIT}{OUT}"),
        format!("{RESERVED}{discard}{OUT}"),
        format!("{RESERVED}*(u64 *)(r10 - 8) = r6\n r6 = 0\n r6 = *(u64 *)(r10 - 8)\n {SUBMIT}{OUT}"),
        format!(
            "{RESERVED}r7 = r6\n r7 += 8\n *(u64 *)(r7 + 0) = 1\n lock *(u64 *)(r7 + 0) += r7\n {SUBMIT}{OUT}"
        ),
        format!(
            "{RESERVED}r7 = *(u8 *)(r6 + 0)\n if r7 == 0 goto throw\n {SUBMIT} goto out\n throw: \
             {discard}{OUT}"
        ),
        format!("{RESERVED}{function}"),
        format!("{maybe}{SUBMIT}{OUT}"),
        format!("{RESERVED}{second}{SUBMIT}{OUT}"),
        format!("{RESERVED}{copied}{SUBMIT}{OUT}"),
        format!("{round}{OUT}"),
    ] {
        if let Err(rejected) = check(&text) {
            panic!("{rejected}\n{text}");
        }
    }
}

/// With far more paths to an instruction than separate states, a record is still tracked.
#[test]
fn states_with_records_are_joined_by_their_records() {
    let ways: String = (0..8)
        .map(|bit| {
            format!(
                "r8 = *(u32 *)(r9 + 12)\n if r8 & {} goto w{bit}\n r7 += {}\n w{bit}: ",
                1 << bit,
                1 << bit
            )
        })
        .collect();
    let start = "r9 = r1\n r7 = 0\n";
    let reserve = RESERVED.replacen("r6 = r1\n", "", 1);
    let use_it = "*(u64 *)(r6 + 0) = r7\n";
    let good = format!("{start}{reserve}{ways}{use_it}{SUBMIT}{OUT}");
    check(&good).unwrap_or_else(|rejected| panic!("{rejected}"));
    // Reserved before and after, so that the names differ.
    let late = format!("{start}{ways}{reserve}{ways2}{use_it}{SUBMIT}{OUT}", ways2 = ways.replace('w', "v"));
    check(&late).unwrap_or_else(|rejected| panic!("{rejected}"));
    let leaking = format!("{start}{reserve}{ways}if r7 == 77 goto out\n {SUBMIT}{OUT}");
    assert!(matches!(check(&leaking).unwrap_err().fault, Rejection::Unreleased { .. }));
}

fn bench() -> Bench {
    let packet: Vec<u8> = (0..64).collect();
    Bench::new(&packet, Maps::new(&maps(), 2, 9).unwrap())
}

fn run(bench: &mut Bench, text: &str) -> u64 {
    check(text).unwrap_or_else(|rejected| panic!("{rejected}\n{text}"));
    bench.run(&assemble(text).unwrap()).unwrap_or_else(|stopped| panic!("{stopped}\n{text}")).returned
}

/// A record's content and time: the bench's packet arrives at 5.000000123 s on worker 1.
fn record(data: &[u8]) -> Record {
    Record { worker: None, time: 5_000_000_123, data: data.to_vec() }
}

#[test]
fn records_are_read_in_order_and_discarded_ones_are_not() {
    let mut bench = bench();
    let write = |value: u8, end: &str| {
        format!("{RESERVED}*(u64 *)(r6 + 8) = {value}\n r1 = r6\n r2 = 0\n call ringbuf_{end}\n{OUT}")
    };
    for (value, end) in [(1, "submit"), (2, "discard"), (3, "submit")] {
        assert_eq!(run(&mut bench, &write(value, end)), 2);
    }
    let output = "*(u64 *)(r10 - 8) = 4\n r1 = map[0] ll\n r2 = r10\n r2 += -8\n r3 = 3\n r4 = 2\n call \
        ringbuf_output\n exit";
    assert_eq!(run(&mut bench, output), 0);
    let numbered = |value: u8| record(&[[0; 8], [value, 0, 0, 0, 0, 0, 0, 0]].concat());
    let ring = bench.maps.at(0).unwrap();
    let all = vec![numbered(1), numbered(3), record(&[4, 0, 0])];
    assert_eq!(ring.peek(9, 1 << 20), all);
    // Three of 32 bytes with their headers, and one of 24.
    let stats = RingStats { capacity: 4096, waiting: 120, taken: 0, lost: 0 };
    assert_eq!(ring.ring_stats(), Some(stats));
    assert_eq!(ring.take(1, 1 << 20), all[..1]);
    assert_eq!(ring.take(9, 1), all[1..2]);
    assert_eq!(ring.take(9, 1 << 20), all[2..]);
    assert_eq!(ring.ring_stats(), Some(RingStats { waiting: 0, taken: 3, ..stats }));
    assert!(ring.take(9, 1 << 20).is_empty());
}

#[test]
fn what_finds_no_room_is_lost_and_counted_and_the_ring_goes_on() {
    let mut bench = bench();
    // 4096 bytes hold 4 of 1000 and their headers: 1016 each.
    let write = RESERVED.replace("r2 = 16", "r2 = 1000")
        + "*(u8 *)(r6 + 999) = 7\n"
        + SUBMIT
        + "r0 = 1\n exit\n"
        + OUT;
    for round in 0..50 {
        let returned: Vec<u64> = (0..6).map(|_| run(&mut bench, &write)).collect();
        assert_eq!(returned, [1, 1, 1, 1, 2, 2], "round {round}");
        let ring = bench.maps.at(0).unwrap();
        let taken = ring.take(9, 1 << 20);
        // However far a record extends beyond the ring's end, it is intact, and was cleared.
        let whole =
            |record: &Record| record.data[..999].iter().all(|&byte| byte == 0) && record.data[999] == 7;
        assert!(taken.len() == 4 && taken.iter().all(whole), "round {round}");
        assert_eq!(ring.ring_stats().unwrap().lost, (round + 1) * 2);
    }
    // Exactly the capacity, and a byte more.
    let exact = |size: u32| {
        format!("{}{SUBMIT}r0 = 1\n exit\n{OUT}", RESERVED.replace("r2 = 16", &format!("r2 = {size}")))
    };
    assert_eq!(run(&mut bench, &exact(4080)), 1);
    assert_eq!(bench.maps.at(0).unwrap().take(9, 1 << 20), [record(&[0; 4080])]);
    assert_eq!(run(&mut bench, &exact(4081)), 2);
}

#[test]
fn a_ring_says_what_is_in_it() {
    let mut bench = bench();
    let query = |what: u32| format!("r1 = map[0] ll\n r2 = {what}\n call ringbuf_query\n exit");
    let all = |bench: &mut Bench| [0, 1, 2, 3, 4].map(|what| run(bench, &query(what)));
    assert_eq!(all(&mut bench), [0, 4096, 0, 0, 0]);
    run(&mut bench, &format!("{RESERVED}{SUBMIT}{OUT}"));
    assert_eq!(all(&mut bench), [32, 4096, 0, 32, 0]);
    bench.maps.at(0).unwrap().take(1, 1 << 20);
    assert_eq!(all(&mut bench), [0, 4096, 32, 32, 0]);
}

#[test]
fn packets_follow_what_a_program_says_of_them() {
    let mut bench = bench();
    let output = |flags: &str, size: u32| {
        format!(
            "*(u64 *)(r10 - 8) = 0x0807\n r2 = map[1] ll\n r3 = {flags} ll\n r4 = r10\n r4 += -8\n r5 = \
             {size}\n \
             call perf_event_output\n exit"
        )
    };
    let error = |number: i64| -number as u64;
    for (flags, size, wanted) in [
        ("0xffffffff", 2, 0),
        ("0x1", 2, 0),
        ("0x6ffffffff", 2, 0),
        ("0x40ffffffff", 0, 0),
        // More than the packet has; another worker's; an unknown one; unknown flags: in the kernel's order.
        ("0x41ffffffff", 2, error(14)),
        ("0x0", 2, error(95)),
        ("0x2", 2, error(7)),
        ("0x10000000000001", 2, error(22)),
    ] {
        assert_eq!(run(&mut bench, &output(flags, size)), wanted, "{flags}");
    }
    let ring = bench.maps.at(1).unwrap();
    let of_worker = |data: &[u8]| Record { worker: Some(1), ..record(data) };
    let packet: Vec<u8> = (0..64).collect();
    let wanted =
        [of_worker(&[7, 8]), of_worker(&[7, 8]), of_worker(&[7, 8, 0, 1, 2, 3, 4, 5]), of_worker(&packet)];
    assert_eq!(ring.take(9, 1 << 20), wanted);
    // 262,144 bytes hold 3276 of 64 bytes and their headers.
    let all = output("0x40ffffffff", 0);
    let written = (0..4000).take_while(|_| run(&mut bench, &all) == 0).count();
    assert_eq!((written, run(&mut bench, &all)), (3276, error(28)));
    assert_eq!(bench.maps.at(1).unwrap().ring_stats().unwrap().lost, 2);
    assert_eq!(bench.maps.at(1).unwrap().take(9999, 1 << 20).len(), 3276);
}

#[test]
fn large_values_of_maps_are_written_as_they_are() {
    let mut bench = bench();
    let value: Vec<u8> = (0..600u32).map(|at| at as u8).collect();
    bench.maps.at(2).unwrap().set(&[0; 4], 0, &value, 0).unwrap();
    let text = "*(u32 *)(r10 - 4) = 0\n r1 = map[2] ll\n r2 = r10\n r2 += -4\n call map_lookup_elem\n if r0 \
        == 0 goto out\n \
                r1 = map[0] ll\n r2 = r0\n r3 = 600\n r4 = 0\n call ringbuf_output\n exit\n out: r0 = 2\n \
                exit";
    assert_eq!(run(&mut bench, text), 0);
    assert_eq!(bench.maps.at(0).unwrap().take(9, 1 << 20), [record(&value)]);
}

/// An error of an unverified program stops it, and its records don't block the reader.
#[test]
fn the_interpreter_notices_what_the_verifier_refuses() {
    let stopped = |bench: &mut Bench, text: &str| bench.run(&assemble(text).unwrap()).unwrap_err().fault;
    for (text, fault) in [
        (String::new(), Fault::Unreleased),
        (format!("{SUBMIT}{SUBMIT}"), Fault::Argument(1)),
        (
            format!("{SUBMIT} r0 = *(u8 *)(r6 + 0)\n"),
            Fault::OutOfBounds { address: 0x100_0000_0010, size: 1 },
        ),
        ("*(u64 *)(r6 + 16) = 1\n".into(), Fault::OutOfBounds { address: 0x100_0000_0020, size: 8 }),
        ("*(u64 *)(r6 - 8) = 1\n".into(), Fault::OutOfBounds { address: 0x100_0000_0008, size: 8 }),
        ("r6 += 8\n".to_owned() + SUBMIT, Fault::Argument(1)),
    ] {
        let mut bench = bench();
        assert_eq!(stopped(&mut bench, &format!("{RESERVED}{text}{OUT}")), fault, "{text}");
        run(&mut bench, &format!("{RESERVED}{SUBMIT}{OUT}"));
        let last = bench.maps.at(0).unwrap().take(9, 1 << 20).pop();
        assert_eq!(last, Some(record(&[0; 16])), "{text}");
    }
    let nine = "r1 = map[0] ll\n r2 = 0\n r3 = 0\n call ringbuf_reserve\n".repeat(9);
    assert_eq!(stopped(&mut bench(), &format!("{nine}exit")), Fault::Records);
}

/// Output costs its bytes; stores through a record's address are priced separately.
#[test]
fn records_have_a_price() {
    let most = |text: &str| *check(text).unwrap_or_else(|rejected| panic!("{rejected}\n{text}")).most();
    let reserved = most(&format!("{RESERVED}*(u64 *)(r6 + 0) = 1\n{SUBMIT}{OUT}"));
    assert_eq!((reserved[Item::Record], reserved[Item::Call], reserved[Item::MapAccess]), (1, 1, 1));
    // Reader's and writers' positions and the header, and the line that the program writes.
    assert_eq!((reserved[Item::MapLine], reserved[Item::CopiedByte]), (4, 0));
    let output = |flags: &str| {
        let text = format!(
            "*(u64 *)(r10 - 8) = 0\n r3 = *(u32 *)(r1 + 12)\n {flags}\n r2 = map[1] ll\n r4 = r10\n r4 += \
             -8\n r5 = 8\n \
             call perf_event_output\n exit"
        );
        most(&text)[Item::CopiedByte]
    };
    assert_eq!(output("r3 = -1\n r3 >>= 32"), 8);
    assert_eq!(output("r3 &= 127\n r3 <<= 32"), 8 + 127);
    // A packet has no more than that.
    assert_eq!(output("r3 <<= 32"), 8 + 65_535);
}

#[test]
fn rings_are_declared_as_in_the_kernel() {
    for (bad, part) in [
        (MapSpec::new("r", MapKind::RingBuf, 4, 0, 4096), "key_size is 4; it has to be 0 in a ringbuf"),
        (MapSpec::new("r", MapKind::RingBuf, 0, 8, 4096), "value_size is 8; it has to be 0 in a ringbuf"),
        (
            MapSpec::new("r", MapKind::RingBuf, 0, 0, 5000),
            "max_entries is 5000; it has to be a power of two from 4096",
        ),
        (MapSpec::new("r", MapKind::RingBuf, 0, 0, 1 << 28), "max_entries is 268435456"),
        (
            MapSpec::new("p", MapKind::PerfEventArray, 4, 8, 1),
            "value_size is 8; it has to be 4 in a map of this type",
        ),
    ] {
        let told = Maps::new(&[bad], 1, 0).unwrap_err().to_string();
        assert!(told.contains(part), "{told}");
    }
    // Of all rings, including the room beyond their ends.
    let large = MapSpec::new("p", MapKind::PerfEventArray, 4, 4, 1);
    assert_eq!(large.memory(3), 3 * (262_144 + 66_560));
    assert!(Maps::new(&[large], 1000, 0).unwrap_err().to_string().contains("the limit is 268435456"));
}

/// Callbacks release what they reserve, and none of their caller's.
#[test]
fn rounds_leave_the_records_as_they_found_them() {
    let round = "r1 = map[0] ll\n r2 = 8\n r3 = 0\n call ringbuf_reserve\n if r0 == 0 goto none\n";
    let looped = |before: &str, data: &str, f: &str, after: &str| {
        format!(
            "{before}r1 = 20\n r2 = pc f ll\n r3 = {data}\n r4 = 0\n call loop\n {after}{OUT}\n f: {f} none: \
             r0 = 0\n exit"
        )
    };
    let good = [
        looped("", "0", &format!("{round} r1 = r0\n r2 = 0\n call ringbuf_submit\n"), ""),
        looped(RESERVED, "0", &format!("{round} r1 = r0\n r2 = 0\n call ringbuf_discard\n"), SUBMIT),
    ];
    for text in good {
        check(&text).unwrap_or_else(|rejected| panic!("{rejected}\n{text}"));
    }
    let kept = "*(u64 *)(r10 - 8) = r6\n r7 = r10\n r7 += -8\n";
    let theirs = "r1 = *(u64 *)(r2 + 0)\n r2 = 0\n call ringbuf_submit\n";
    let bad = [
        looped("", "0", round, ""),
        looped(&format!("{RESERVED}{kept}"), "r7", theirs, ""),
        looped(&format!("{RESERVED}{kept}"), "r7", theirs, SUBMIT),
    ];
    for text in bad {
        let Err(rejected) = check(&text) else { panic!("let in:\n{text}") };
        let fits = matches!(
            rejected.fault,
            Rejection::TooManyRecords | Rejection::Unreleased { .. } | Rejection::Released { .. }
        );
        assert!(fits, "{rejected}\n{text}");
    }
}

/// After a thousand rounds states are joined, whatever records they leave behind.
#[test]
fn rounds_that_leave_records_behind_are_refused() {
    let round = "r3 = *(u64 *)(r2 + 0)\n r3 += 1\n *(u64 *)(r2 + 0) = r3\n if r3 != 100000 goto none\n r1 = \
                 map[0] ll\n r2 = 8\n r3 = 0\n call ringbuf_reserve\n none: r0 = 0\n exit";
    let text = format!(
        "*(u64 *)(r10 - 8) = 0\n r1 = 100000\n r2 = pc f ll\n r3 = r10\n r3 += -8\n r4 = 0\n call loop\n {OUT}
         f: {round}"
    );
    let rejected = check(&text).unwrap_err();
    assert!(matches!(rejected.fault, Rejection::TooManyRecords), "{rejected}");
}
