//! Maps of maps: declarations in objects, verification, and interpretation.

use crate::harness::Bench;
use longwire_program::map::Refusal;
use longwire_program::{
    Inner, Item, MapKind, MapSpec, Maps, Object, Program, Region, Rejection, VerifiedProgram, assemble,
    verify,
};

const OBJECT: &[u8] = include_bytes!("xdp/inner.o");

fn plain(name: &str, kind: MapKind, value_size: u32) -> MapSpec {
    MapSpec::new(name, kind, 4, value_size, 4)
}

/// Two with the same declaration, one with another value size, and a map that holds the first one in its
/// second entry.
fn maps(kind: MapKind) -> [MapSpec; 4] {
    let like = plain("like", MapKind::Array, 16);
    let inner = Some(Inner { spec: Box::new(like), maps: [0, 1].into() });
    let initial = [0_u32, 1].iter().flat_map(|number| number.to_le_bytes()).collect();
    [
        plain("first", MapKind::Array, 16),
        plain("second", MapKind::Array, 16),
        plain("other", MapKind::Array, 8),
        MapSpec { inner, initial, ..plain("outer", kind, 4) },
    ]
}

fn check(text: &str) -> Result<VerifiedProgram, (usize, Rejection)> {
    let code = assemble(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(Program::new("test", code, maps(MapKind::ArrayOfMaps)))
        .map_err(|rejected| (rejected.slot, rejected.fault))
}

/// Looks up a key of the outer map and continues with the result, or returns 9.
fn with_inner(key: u32, then: &str) -> String {
    format!(
        "*(u32 *)(r10 - 4) = {key}\n r1 = map[3] ll\n r2 = r10\n r2 += -4\n call map_lookup_elem\n if r0 != \
         0 goto found
         r0 = 9\n exit\n found: {then}"
    )
}

/// Looks up key 1 of the inner map, writes its value and returns 2, or returns 8.
const COUNTS: &str =
    "r1 = r0\n *(u32 *)(r10 - 4) = 1\n r2 = r10\n r2 += -4\n call map_lookup_elem\n if r0 != 0 goto there
    r0 = 8\n exit\n there: r1 = *(u64 *)(r0 + 8)\n r1 += 5\n *(u64 *)(r0 + 8) = r1\n r0 = 2\n exit";

#[test]
fn what_is_found_is_a_map() {
    for kind in [MapKind::ArrayOfMaps, MapKind::HashOfMaps] {
        let mut bench = Bench::new(&[7; 64], Maps::new(&maps(kind), 1, 0).unwrap());
        let mut run = |key| bench.run(&assemble(&with_inner(key, COUNTS)).unwrap()).unwrap().returned;
        assert_eq!([run(0), run(1), run(7)], [9, 2, 9], "{kind:?}");
        let outer = bench.maps.at(3).unwrap();
        // Only maps with the same declaration may replace it.
        assert_eq!(outer.set(&[1, 0, 0, 0], 0, &[2, 0, 0, 0], 0), Ok(()));
        for number in [3_u32, 4, 5, u32::MAX] {
            assert_eq!(outer.set(&[1, 0, 0, 0], 0, &number.to_le_bytes(), 0), Err(Refusal::Unlike));
        }
        let mut run = |key| bench.run(&assemble(&with_inner(key, COUNTS)).unwrap()).unwrap().returned;
        assert_eq!([run(1), run(1)], [2, 2]);
        let counted = |map| bench.maps.at(map).unwrap().get(&[1, 0, 0, 0], 0).unwrap()[8];
        assert_eq!([counted(0), counted(1)], [5, 10]);
        assert_eq!(bench.maps.at(3).unwrap().set(&[1, 0, 0, 0], 0, &[0; 4], 0), Ok(()));
        let mut run = |key| bench.run(&assemble(&with_inner(key, COUNTS)).unwrap()).unwrap().returned;
        assert_eq!(run(1), 9);
    }
}

#[test]
fn accesses_are_to_one_of_several() {
    let verified = check(&with_inner(1, COUNTS)).unwrap();
    let regions = verified.facts().iter().filter_map(|fact| fact.access).map(|access| access.region);
    let values: Vec<_> = regions.filter(|region| *region != Some(Region::Stack)).collect();
    assert_eq!(values, [None, None]);
    let most = verified.most();
    assert_eq!((most[Item::ArrayLookup], most[Item::MapAccess], most[Item::MapLine]), (2, 2, 1));
}

#[test]
fn attacks_are_refused() {
    let found = "a map, or 0 if the map of maps has none for the key; compare it with 0 first";
    let argument = |found| Rejection::Argument {
        helper: longwire_program::Helper::MapLookup,
        number: 1,
        wanted: longwire_program::Argument::Map,
        found,
    };
    let lookup = "*(u32 *)(r10 - 4) = 1\n r1 = map[3] ll\n r2 = r10\n r2 += -4\n call map_lookup_elem\n";
    let kind = |helper| Rejection::MapKind { helper, map: "outer".into(), kind: MapKind::ArrayOfMaps };
    for (text, slot, fault) in [
        // Not compared with 0, or only on another path.
        (
            format!("{lookup} r1 = r0\n r2 = r10\n r2 += -4\n call map_lookup_elem\n r0 = 2\n exit"),
            9,
            argument(found),
        ),
        (
            format!(
                "{lookup} r6 = r0\n {lookup} if r0 == 0 goto out\n r1 = r6\n r2 = r10\n r2 += -4\n call \
                 map_lookup_elem\n out: r0 = 2\n exit"
            ),
            17,
            argument(found),
        ),
        // It has no bytes of its own.
        (
            with_inner(1, "r0 = *(u64 *)(r0 + 0)\n exit"),
            9,
            Rejection::NotAddress { register: longwire_program::Register::R0, what: "a map" },
        ),
        (
            with_inner(1, "r0 += 8\n r0 = 2\n exit"),
            9,
            Rejection::PointerArithmetic { register: longwire_program::Register::R0, what: "a map" },
        ),
        // Beyond a value of the declared size.
        (
            with_inner(1, &COUNTS.replace("r0 + 8", "r0 + 16")),
            17,
            Rejection::Bounds { what: "a value of map like".into(), first: 16, last: 23, low: 0, high: 15 },
        ),
        // Programs can't write maps of maps.
        (
            format!(
                "{lookup} r1 = map[3] ll\n r2 = r10\n r2 += -4\n r3 = r2\n r4 = 0\n call map_update_elem\n \
                 r0 = 2\n exit"
            ),
            12,
            kind(longwire_program::Helper::MapUpdate),
        ),
        (
            format!("{lookup} r1 = map[3] ll\n r2 = r10\n r2 += -4\n call map_delete_elem\n r0 = 2\n exit"),
            10,
            kind(longwire_program::Helper::MapDelete),
        ),
        (
            "r1 = map[3][0]+0 ll\n r0 = 0\n exit".into(),
            0,
            Rejection::NoMapValue { map: "outer".into(), offset: 0 },
        ),
    ] {
        match check(&text) {
            Ok(_) => panic!("let in:\n{text}"),
            Err(found) => assert_eq!(found, (slot, fault), "{text}"),
        }
    }
}

/// A replaced program's map of maps is kept only if its numbers are still those of the same maps.
#[test]
fn numbers_of_other_maps_are_not_kept() {
    let specs = maps(MapKind::HashOfMaps);
    let before = Maps::new(&specs, 1, 0).unwrap();
    let kept = |specs: &[MapSpec]| {
        let after = Maps::in_place_of(Some(&before), specs, 1, 0).unwrap();
        after.all().iter().map(|map| before.has(map)).collect::<Vec<_>>()
    };
    assert_eq!(kept(&specs), [true; 4]);
    let [first, second, other, outer] = specs;
    assert_eq!(kept(&[second, first, other, outer]), [true, true, true, false]);
}

#[test]
fn what_they_hold_is_declared() {
    let object = Object::parse(OBJECT).unwrap();
    let spec = |name: &str| object.maps().iter().find(|spec| *spec.name == *name).unwrap();
    let place = |name: &str| object.maps().iter().position(|spec| *spec.name == *name).unwrap() as u32;
    let inner = spec("by_number").inner.as_ref().unwrap();
    assert_eq!(*inner.maps, [place("small"), place("large")]);
    assert_eq!(
        (&*inner.spec.name, inner.spec.kind, inner.spec.value_size),
        ("by_number.inner", MapKind::Array, 8)
    );
    let numbers = |name| {
        spec(name).initial.as_chunks::<4>().0.iter().map(|&n| u32::from_le_bytes(n)).collect::<Vec<_>>()
    };
    assert_eq!(numbers("by_number"), [place("small") + 1, 0, place("large") + 1]);
    assert_eq!(numbers("by_key"), [0, place("large") + 1]);
    for (program, _) in object.programs() {
        verify(object.program(program).unwrap()).unwrap();
    }
    // Invalid declarations are refused when maps are created.
    let [.., outer] = maps(MapKind::ArrayOfMaps);
    let inner =
        |maps: &[u32], kind| Some(Inner { spec: Box::new(plain("like", kind, 16)), maps: maps.into() });
    for (bad, wanted) in [
        (MapSpec { inner: None, ..outer.clone() }, "nothing says what the maps in it are like"),
        (
            MapSpec { inner: inner(&[1], MapKind::Array), ..outer.clone() },
            "not like the one that it declares",
        ),
        (MapSpec { inner: inner(&[0], MapKind::DevMap), ..outer.clone() }, "can't be of this type"),
        (MapSpec { inner: inner(&[0], MapKind::HashOfMaps), ..outer.clone() }, "can't be of this type"),
        (MapSpec { kind: MapKind::Array, ..outer }, "only array_of_maps and hash_of_maps hold maps"),
    ] {
        let message = bad.check().unwrap_err().to_string();
        assert!(message.contains(wanted), "{message}");
    }
}
