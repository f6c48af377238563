//! Tail calls: verification, cost, and interpretation.

use crate::harness::Bench;
use longwire_program::{
    Code, Fault, Helper, Item, MAX_TAIL_CALLS, MapKind, MapSpec, Maps, Object, Prices, Program, Rejection,
    Stopped, VerifiedProgram, assemble, verify,
};

const CHAIN: &[u8] = include_bytes!("xdp/chain.o");

/// A program array with these programs, by their numbers.
fn array(programs: &[u32]) -> MapSpec {
    let initial = programs.iter().flat_map(|number| number.to_le_bytes()).collect();
    MapSpec { initial, ..MapSpec::new("jumps", MapKind::ProgArray, 4, 4, 4) }
}

/// Programs in sequence, beginning with the first; they are numbered from 1.
fn code(programs: &[&str]) -> Code {
    let mut starts = Vec::new();
    let mut text = String::new();
    for program in programs {
        starts.push(if text.is_empty() { 0 } else { assemble(&text).unwrap().len() });
        text.push_str(program);
        text.push('\n');
    }
    let numbered = starts.into_iter().zip(1..).map(|(start, number)| (number, start));
    assemble(&text).unwrap_or_else(|error| panic!("{error}\n{text}")).with_programs(numbered)
}

fn check(programs: &[&str], entries: &[u32]) -> Result<VerifiedProgram, (usize, Rejection)> {
    let program = Program::new("test", code(programs), [array(entries)]);
    verify(program).map_err(|rejected| (rejected.slot, rejected.fault))
}

fn run(programs: &[&str], entries: &[u32]) -> Result<(u64, u64), Stopped> {
    let mut bench = Bench::new(&[7; 64], Maps::new(&[array(entries)], 1, 0).unwrap());
    bench.run(&code(programs)).map(|ran| (ran.returned, ran.instructions))
}

/// A tail call to entry `index`; otherwise returns 2.
fn goes_to(index: &str) -> String {
    format!("r2 = map[0] ll\n r3 = {index}\n call tail_call\n r0 = 2\n exit")
}

#[test]
fn another_program_goes_on_or_none() {
    let programs = [&*goes_to("1"), "r0 = 3\n exit"];
    assert_eq!(run(&programs, &[0, 2]), Ok((3, 5)));
    // An empty entry, or no such entry; only the lower half of the index is used.
    assert_eq!(run(&programs, &[0, 0]), Ok((2, 5)));
    assert_eq!(run(&[&goes_to("4"), "r0 = 3\n exit"], &[2, 2, 2, 2, 2]), Ok((2, 5)));
    assert_eq!(run(&[&goes_to("-1"), "r0 = 3\n exit"], &[2, 2, 2, 2]), Ok((2, 5)));
    assert_eq!(run(&[&goes_to("0x900000001 ll"), "r0 = 3\n exit"], &[0, 2]), Ok((3, 5)));
    // It begins like any program: with the context, and nothing else.
    let context =
        ["r6 = 7\n *(u64 *)(r10 - 8) = 1\n r2 = map[0] ll\n r3 = 0\n call tail_call\n r0 = 2\n exit", ""];
    let with = |second| run(&[context[0], second], &[2]).map_err(|stopped| stopped.fault);
    assert_eq!(with("r0 = *(u32 *)(r1 + 12)\n exit"), Ok((3, 7)));
    assert_eq!(with("r0 = r6\n exit"), Err(Fault::Register(6)));
    assert!(matches!(with("r0 = *(u64 *)(r10 - 8)\n exit"), Err(Fault::Unwritten { .. })));
    // Arguments are also gone if the call fails.
    let fault =
        |text: &str| run(&[&format!("r2 = map[0] ll\n r3 = 0\n call tail_call\n {text}\n exit")], &[]);
    assert_eq!(fault("r0 = r1").unwrap_err().fault, Fault::Register(1));
    assert_eq!(fault("").unwrap_err().fault, Fault::Register(0));
}

#[test]
fn there_are_33_tail_calls_at_most() {
    // Each run takes five instructions; the last one continues after the call, with two more.
    let again = goes_to("0");
    assert_eq!(run(&[&again], &[1]), Ok((2, 34 * 3 + 2)));
    let verified = check(&[&again], &[1]).unwrap();
    assert_eq!(verified.most()[Item::Instruction], 34 * 3 + 2);
    assert_eq!(u32::from(MAX_TAIL_CALLS) + 1, verified.most()[Item::ArrayLookup]);
    let worst = verified.worst_path(&Prices::VRP_CYCLES);
    assert_eq!(worst.path, [[0, 1, 2].repeat(34), vec![3, 4]].concat());
}

#[test]
fn what_goes_on_is_priced() {
    let long = "r0 = 0\n r0 = 1\n r0 = 2\n exit";
    let most = |programs: &[&str], entries: &[u32]| {
        let verified = check(programs, entries).unwrap();
        let worst = verified.worst_path(&Prices::VRP_CYCLES);
        assert_eq!(worst.path.len(), verified.most()[Item::Instruction] as usize);
        verified.most()[Item::Instruction]
    };
    // The longer one of the code after the call and the target.
    assert_eq!(most(&[&goes_to("0"), long], &[2]), 3 + 4);
    assert_eq!(most(&[&goes_to("0"), "r0 = 1\n exit"], &[2]), 5);
    // An empty entry, and an impossible index.
    assert_eq!(most(&[&goes_to("1"), long], &[2]), 5);
    // An index that depends on the packet: any entry, or those within its bounds.
    let any = "r3 = *(u32 *)(r1 + 12)\n r2 = map[0] ll\n call tail_call\n r0 = 2\n exit";
    let some = "r3 = *(u32 *)(r1 + 12)\n r3 &= 1\n r2 = map[0] ll\n call tail_call\n r0 = 2\n exit";
    assert_eq!(most(&[any, long], &[0, 0, 2]), 3 + 4);
    assert_eq!(most(&[some, long], &[0, 0, 2]), 6);
    assert_eq!(most(&[some, long], &[0, 2]), 4 + 4);
    // Several in a row; one with a loop before the call, and one with the call in a loop.
    assert_eq!(most(&[&goes_to("0"), &goes_to("1"), long], &[2, 3]), 3 + 3 + 4);
    let loops =
        format!("r6 = r1\n r0 = 0\n again: r0 += 1\n if r0 < 5 goto again\n r1 = r6\n {}", goes_to("1"));
    assert_eq!(most(&[&goes_to("0"), &loops, long], &[2, 3]), 3 + 2 + 5 * 2 + 1 + 3 + 4);
    let within = "r6 = r1\n r7 = 0\n again: r1 = r6\n r2 = map[0] ll\n r3 = r7\n call tail_call\n r7 += 1
         if r7 < 3 goto again\n r0 = 2\n exit";
    assert_eq!(most(&[within, long], &[0, 0, 2]), 2 + 2 * 6 + 4 + 4);
    assert_eq!(run(&[within, long], &[0, 0, 2]), Ok((2, 2 + 2 * 6 + 4 + 4)));
}

/// Each of its visits looks at all entries.
#[test]
fn large_arrays_are_not_passed_again_and_again() {
    let text = |rounds: u32| {
        format!(
            "r6 = r1\n r7 = 0\n again: r1 = r6\n r2 = map[0] ll\n r3 = *(u32 *)(r6 + 12)\n call \
             tail_call\n r7 += 1\n if r7 < {rounds} goto again\n r0 = 2\n exit"
        )
    };
    let check = |rounds: u32| {
        let programs = MapSpec { max_entries: 1 << 16, ..array(&[2; 1 << 16]) };
        verify(Program::new("test", code(&[&text(rounds), "r0 = 3\n exit"]), [programs]))
    };
    assert!(check(9).is_ok());
    let fault = check(200).unwrap_err().fault;
    assert!(matches!(fault, Rejection::Unbounded { .. }), "{fault}");
}

/// Half a million pairs of a tail call and its target: their worst case would take long.
#[test]
fn programs_that_all_lead_to_all_are_too_complex() {
    let check = |programs: u32| {
        let one = "r3 = *(u32 *)(r1 + 12)\n r2 = map[0] ll\n call tail_call\n r0 = 2\n exit\n ";
        let code = assemble(&one.repeat(programs as usize)).unwrap();
        let code = code.with_programs((0..programs).map(|number| (number + 1, number as usize * 5)));
        let numbers: Vec<u32> = (1..=programs).collect();
        let array = MapSpec { max_entries: programs, ..array(&numbers) };
        verify(Program::new("test", code, [array]))
    };
    assert!(check(50).is_ok());
    assert!(matches!(check(700).unwrap_err().fault, Rejection::TooComplex));
}

/// State, links and frames are those of all programs.
#[test]
fn all_programs_are_verified() {
    let first = goes_to("0");
    let state =
        "r1 = 40\n call lw_flow_state\n r1 = *(u64 *)(r0 + 32)\n r1 = 4\n call lw_choose_link\n call \
        f\n r0 = 2\n exit
         f: r0 = 1\n exit";
    let verified = check(&[&first, state], &[2]).unwrap();
    assert_eq!((verified.state_size(), verified.links(), verified.frames()), (40, 5, 2));
    // An impossible entry's program is not followed.
    let bad = "r0 = *(u64 *)(r1 + 0)\n exit";
    assert!(check(&[&first, bad], &[0, 2]).is_ok());
    assert!(matches!(check(&[&first, bad], &[2]), Err((6, Rejection::ContextField { .. }))));
    // Knowledge about the packet is not inherited.
    let checks = "r2 = *(u32 *)(r1 + 4)\n r3 = *(u32 *)(r1 + 0)\n r3 += 8\n r0 = 2\n if r3 > r2 goto out\n \
        r2 = map[0] ll
         r3 = 0\n call tail_call\n r0 = 2\n out: exit";
    let reads = "r1 = *(u32 *)(r1 + 0)\n r0 = *(u8 *)(r1 + 0)\n exit";
    assert!(matches!(check(&[checks, reads], &[2]), Err((12, Rejection::PacketUnchecked { .. }))));
}

#[test]
fn attacks_are_refused() {
    let helper = Helper::TailCall;
    let other = "r0 = 1\n exit";
    // Not within a called function: the next program would return to its caller.
    let called =
        "r6 = r1\n call f\n r0 = 2\n exit\n f: r2 = map[0] ll\n r3 = 0\n call tail_call\n r0 = 2\n exit";
    assert_eq!(check(&[called, other], &[2]).unwrap_err(), (7, Rejection::TailCallInFunction));
    assert_eq!(run(&[called, other], &[2]).unwrap_err().fault, Fault::TailCall);
    let called = "r1 = 1\n r2 = pc f ll\n r3 = 0\n r4 = 0\n call loop\n r0 = 2\n exit
         f: r1 = 0\n r2 = map[0] ll\n r3 = 0\n call tail_call\n r0 = 0\n exit";
    assert!(check(&[called, other], &[2]).is_err());
    // A missing program, and an unreachable one.
    let missing = check(&[&goes_to("0"), other], &[9]).unwrap_err();
    assert_eq!(missing, (3, Rejection::NoProgram { map: "jumps".into(), number: 9 }));
    assert_eq!(run(&[&goes_to("0"), other], &[9]).unwrap_err().fault, Fault::TailCall);
    // r0 to r5 are undefined after the call.
    let reads = "r2 = map[0] ll\n r3 = 0\n call tail_call\n exit";
    assert!(matches!(check(&[reads], &[]), Err((4, Rejection::Unwritten { .. }))));
    // Another map, and a program array for another helper.
    let kind = |text: &str, map: MapSpec| {
        let program = Program::new("test", assemble(text).unwrap(), [map]);
        verify(program).map_err(|rejected| rejected.fault).unwrap_err()
    };
    let plain = MapSpec { kind: MapKind::Array, ..array(&[]) };
    assert!(
        matches!(kind(&goes_to("0"), plain), Rejection::MapKind { helper: found, .. } if found == helper)
    );
    for call in ["r3 = r2\n r4 = 0\n call map_update_elem", "call map_lookup_elem", "call map_delete_elem"] {
        let text =
            format!("*(u32 *)(r10 - 4) = 0\n r1 = map[0] ll\n r2 = r10\n r2 += -4\n {call}\n r0 = 0\n exit");
        assert!(matches!(kind(&text, array(&[])), Rejection::MapKind { .. }), "{call}");
    }
    assert!(matches!(kind("r1 = map[0][0]+0 ll\n r0 = 0\n exit", array(&[])), Rejection::NoMapValue { .. }));
    // Its verified entries are read-only.
    let maps = Maps::new(&[array(&[2])], 1, 0).unwrap();
    let refusal = maps.at(0).unwrap().set(&[1, 0, 0, 0], 0, &[2, 0, 0, 0], 0).unwrap_err();
    assert_eq!(refusal, longwire_program::map::Refusal::Constant);
}

/// The programs of an array are set in the object or at installation.
#[test]
fn objects_fill_program_arrays() {
    let mut object = Object::parse(CHAIN).unwrap();
    let names = |program: &Program| {
        let named =
            program.code.programs().map(|(_, start)| program.function(start).unwrap().name.to_string());
        named.collect::<Vec<_>>()
    };
    let first = object.program("first").unwrap();
    assert_eq!(names(&first), ["version4", "version6", "again"]);
    assert_eq!(
        first.functions.iter().map(|f| &*f.name).collect::<Vec<_>>(),
        ["first", "version4", "version6", "again"]
    );
    // An array may hold the program itself.
    let again = object.program("again").unwrap();
    assert_eq!((names(&again).len(), again.code.programs().any(|(_, start)| start == 0)), (3, true));
    object.set_programs("parsers", &["", "version4"]).unwrap();
    assert_eq!(names(&object.program("first").unwrap()), ["version4"]);
    for (map, programs, wanted) in [
        ("counts", &["again"][..], "counts is no map that holds programs"),
        ("parsers", &["nobody"], "nobody"),
        ("parsers", &["again"; 9], "map parsers: entry 8 is beyond its last"),
    ] {
        let message = object.set_programs(map, programs).unwrap_err().to_string();
        assert!(message.contains(wanted), "{message}");
    }
}
