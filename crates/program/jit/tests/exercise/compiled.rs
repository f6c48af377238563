//! Arbitrary bytes as an object or a program: if the verifier accepts it, machine code and interpreter behave
//! alike; also the fuzz target `compiled`.

#[path = "../differential/bench.rs"]
mod bench;

use bench::Bench;
use longwire_program::{Code, Item, MapKind, MapSpec, Maps, Object, Program, verify};

/// Compiles each program in the bytes, and runs it both ways. Returns their number.
pub fn run(bytes: &[u8]) -> usize {
    let programs: Vec<Program> = match Object::parse(bytes) {
        Ok(object) => object.programs().take(16).filter_map(|(name, _)| object.program(name).ok()).collect(),
        Err(_) => Code::decode(bytes).map(|code| Program::new("any", code, specs())).into_iter().collect(),
    };
    programs.into_iter().filter(|program| alike(program.clone())).count()
}

/// Whether it was accepted, and ran.
fn alike(program: Program) -> bool {
    // The bench has 64 bytes of state and fills maps: large ones take time and add nothing.
    let large = |map: &MapSpec| u64::from(map.value_size) * u64::from(map.max_entries) > 1 << 16;
    let fits = |program: &Program| !program.maps.iter().any(large);
    let Some(verified) = fits(&program).then(|| verify(program.clone()).ok()).flatten() else { return false };
    let long = verified.most()[Item::Instruction] > 100_000;
    if long || verified.state_size() > bench::STATE || Maps::new(&program.maps, 2, 1).is_err() {
        return false;
    }
    let mut packet = [7; 64];
    packet[12..15].copy_from_slice(&[8, 0, 0x45]);
    let bench = Bench::new(program, &packet);
    let interpreted = bench.interpreted();
    assert!(interpreted.result.is_ok(), "{}: {interpreted:?}", bench.program);
    assert_eq!(bench.verified().as_ref(), Some(&interpreted), "{}", bench.program);
    true
}

/// An array as map 0, a hash map as map 1, a devmap as map 2.
fn specs() -> [MapSpec; 3] {
    [
        MapSpec::new("a", MapKind::Array, 4, 24, 4),
        MapSpec::new("h", MapKind::LruHash, 4, 8, 4),
        MapSpec::new("d", MapKind::DevMap, 4, 4, 4),
    ]
}
