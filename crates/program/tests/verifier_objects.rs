//! Ordinary XDP programs compiled by clang 14 with -mcpu=v3 and by clang 19 with -mcpu=v4 are accepted.

use longwire_program::{Fact, Instruction, Item, Object, Prices, Region, verify};

const OBJECTS: &[(&str, &[u8], &[u8])] = &[
    ("filter", include_bytes!("xdp/filter.v3.o"), include_bytes!("xdp/filter.v4.o")),
    ("headers", include_bytes!("xdp/headers.v3.o"), include_bytes!("xdp/headers.v4.o")),
    ("limits", include_bytes!("xdp/limits.v3.o"), include_bytes!("xdp/limits.v4.o")),
    ("options", include_bytes!("xdp/options.v3.o"), include_bytes!("xdp/options.v4.o")),
    ("rewrite", include_bytes!("xdp/rewrite.v3.o"), include_bytes!("xdp/rewrite.v4.o")),
    ("tunnel", include_bytes!("xdp/tunnel.v3.o"), include_bytes!("xdp/tunnel.v4.o")),
];

/// The accepted programs of an object.
fn let_in(name: &str, bytes: &[u8]) -> Vec<String> {
    let object = Object::parse(bytes).unwrap();
    let check = |program: &str| {
        let program = object.program(program).unwrap();
        let listing = program.to_string();
        let verified = verify(program).unwrap_or_else(|rejected| panic!("{name}: {rejected}\n{listing}"));
        for (&instruction, fact) in verified.program().code.instructions().iter().zip(verified.facts()) {
            check_fact(instruction, fact);
        }
        let worst = verified.worst_path(&Prices::ASSUMED_PICOSECONDS);
        assert_eq!(worst.path.len(), worst.counts[Item::Instruction] as usize);
        assert!(worst.path.len() <= verified.most()[Item::Instruction] as usize);
        assert_eq!(worst.counts.most(verified.most()), *verified.most());
        verified.program().name.to_string()
    };
    object.programs().map(|(program, _)| check(program)).collect()
}

/// A fact is complete for its instruction.
fn check_fact(instruction: Instruction, fact: &Fact) {
    let accesses = matches!(
        instruction,
        Instruction::Load { .. }
            | Instruction::LoadExtended { .. }
            | Instruction::Store { .. }
            | Instruction::Atomic { .. }
    );
    assert_eq!(fact.access.is_some(), accesses && fact.reached, "{instruction}");
    assert_eq!(fact.call.is_some(), matches!(instruction, Instruction::Call { .. }) && fact.reached);
    let branches = matches!(instruction, Instruction::Branch { .. });
    assert_eq!(fact.falls || fact.jumps, branches && fact.reached, "{instruction}");
    if let Some(access) = fact.access {
        let placed = matches!(access.region, Some(Region::Context | Region::Stack | Region::State));
        assert!(access.place.is_none() || placed, "{instruction}");
    }
}

/// Loops that are not unrolled, and their maximum cost, as counted in their listings: a checksum takes 10
/// instructions before its loop, 10 rounds of 6, and 10 after it; sorting takes 8, 11 rounds of 3 + 11 * 13 +
/// 3, and 1.
#[test]
fn loops_are_let_in() {
    let bytes = include_bytes!("xdp/loops.o");
    assert_eq!(let_in("loops", bytes), ["checksum", "tags", "items", "bits", "sort"]);
    let object = Object::parse(bytes).unwrap();
    let most = |name| verify(object.program(name).unwrap()).unwrap().most()[Item::Instruction];
    assert_eq!(["checksum", "tags", "items", "bits", "sort"].map(most), [80, 60, 408, 837, 1648]);
}

/// Records are released on every path, or the program is refused, with the line.
#[test]
fn records_are_given_back_by_what_is_let_in() {
    let events = include_bytes!("objects/events.o");
    assert_eq!(let_in("events", events), ["reserved", "copied", "sampled"]);
    let object = Object::parse(include_bytes!("objects/forgetful.o")).unwrap();
    let refused = verify(object.program("forgetful").unwrap()).unwrap_err().to_string();
    let wanted = "forgetful.c:24: the program ends here with a record of ring records, which instruction";
    assert!(refused.contains(wanted), "{refused}");
}

#[test]
fn ordinary_programs_are_let_in() {
    let all: Vec<_> = OBJECTS.iter().map(|(name, v3, v4)| [let_in(name, v3), let_in(name, v4)]).collect();
    let both = |names: &[&str]| {
        [names.to_vec(), names.to_vec()].map(|names| names.into_iter().map(String::from).collect())
    };
    let wanted: Vec<[Vec<String>; 2]> = vec![
        both(&["ports", "payload", "dscp"]),
        both(&["headers"]),
        both(&["limit"]),
        both(&["clamp"]),
        both(&["nat", "ping"]),
        both(&["into", "out"]),
    ];
    assert_eq!(all, wanted);
}

#[test]
fn the_objects_of_other_tests_are_let_in() {
    for (name, bytes, programs) in [
        ("counter", &include_bytes!("objects/counter.o")[..], &["count"][..]),
        ("globals", include_bytes!("objects/globals.o"), &["first", "second", "third"]),
        ("longwire", include_bytes!("objects/longwire.o"), &["spread"]),
        ("modern", include_bytes!("objects/modern.o"), &["modern"]),
    ] {
        assert_eq!(let_in(name, bytes), programs);
    }
}
