//! Arbitrary bytes as an object, and as a program, verified or not. Accepted programs must run to their end.

#[path = "../harness/mod.rs"]
pub mod harness;

use harness::{Bench, ROOM, Ran};
use longwire_program::{
    Code, Item, MapKind, MapSpec, Maps, Object, Program, ProgramState, Stack, Stopped, verify,
};

/// Calls all queries of an object. Returns the number of loadable programs.
pub fn object(bytes: &[u8]) -> usize {
    let Ok(object) = Object::parse(bytes) else { return 0 };
    let names: Vec<String> = object.programs().map(|(name, _)| name.into()).collect();
    let mut loaded = 0;
    for name in names.iter().take(16) {
        match object.program(name) {
            Ok(program) => {
                assert!(!program.to_string().is_empty());
                shapes(&program);
                if let Ok(maps) = Maps::new(&program.maps, 1, 0) {
                    let mut bench = Bench::new(&[0; 60], maps);
                    let ran = bench.run(&program.code);
                    check_verdict(program, &ran, bench.budget);
                }
                loaded += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    loaded
}

/// Whatever the types of maps are, their shapes are bounded, and as large as the maps' keys and values.
fn shapes(program: &Program) {
    for (place, map) in program.maps.iter().enumerate() {
        let sizes = [
            (program.types.key(place, map), map.key_size),
            (program.types.value(place, map), map.value_size),
        ];
        for (shape, size) in sizes {
            match shape {
                Ok(shape) => assert_eq!(shape.size(), u64::from(size)),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    assert!(program.types.named("no such type").is_err());
}

/// Decodes and runs bytes: deterministic, without access outside the program's memory.
pub fn bytecode(bytes: &[u8]) {
    let Ok(code) = Code::decode(bytes) else { return };
    assert_eq!(code.encode(), bytes);
    run(&code);
}

/// Runs an unverified program.
fn run(code: &Code) {
    let first = left_behind(code, Stack::checked());
    if let Ok(ran) = &first.0 {
        assert!(ran.instructions <= 1000);
        assert!(ran.packet.len() >= 14 && ran.packet.len() <= 64 + 2 * ROOM);
        // A trusting stack changes nothing for a valid program.
        assert!(first == left_behind(code, Stack::trusting()));
    }
    assert!(first == left_behind(code, Stack::checked()));
    check_verdict(Program::new("any", code.clone(), specs()), &first.0, 1000);
}

/// An accepted program ran to its end within the stated number of instructions, if it had enough state and
/// budget.
fn check_verdict(program: Program, ran: &Result<Ran, Stopped>, budget: u64) {
    let Ok(verified) = verify(program) else { return };
    let most = u64::from(verified.most()[Item::Instruction]);
    if verified.state_size() <= 64 && most <= budget {
        assert!(ran.as_ref().is_ok_and(|ran| ran.instructions <= most), "{ran:?}\n{}", verified.program());
    }
}

/// A run's result, and the packet's buffer, maps and state after it.
type Left = (Result<Ran, Stopped>, Vec<u8>, Vec<Vec<(Vec<u8>, Vec<Vec<u8>>)>>, Vec<u8>);

fn left_behind(code: &Code, stack: Stack) -> Left {
    let mut bench = Bench::new(&[7; 64], Maps::new(&specs(), 2, 1).unwrap());
    (bench.stack, bench.state) = (stack, ProgramState::new(64));
    let ran = bench.run(code);
    let values = bench.maps.all().iter().map(|map| map.dump()).collect();
    (ran, bench.buffer, values, bench.state.get())
}

/// An array as map 0, a hash map as map 1, a devmap as map 2.
fn specs() -> [MapSpec; 3] {
    [
        MapSpec::new("a", MapKind::Array, 4, 24, 4),
        MapSpec::new("h", MapKind::LruHash, 4, 8, 4),
        MapSpec::new("d", MapKind::DevMap, 4, 4, 4),
    ]
}
