use super::*;
use std::sync::atomic::AtomicU32;

fn map(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32, workers: u32) -> Map {
    let spec = MapSpec::new("m", kind, key_size, value_size, max_entries);
    spec.check().unwrap();
    Map::new(&spec, workers, 7)
}

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

#[test]
fn arrays_have_all_their_numbers() {
    let array = map(MapKind::Array, 4, 12, 3, 1);
    let places: Vec<_> = (0..4).map(|i| array.lookup(&key(i), 0)).collect();
    assert_eq!(places, [Some(0), Some(16), Some(32), None]);
    assert_eq!(array.set(&key(2), 0, &[5; 12], 0), Ok(()));
    assert_eq!(array.get(&key(2), 0).unwrap(), [5; 12]);
    assert_eq!(array.get(&key(1), 0).unwrap(), [0; 12]);
    assert_eq!(array.get(&key(3), 0), None);
    assert_eq!(array.set(&key(3), 0, &[5; 12], 0), Err(Refusal::TooBig));
    assert_eq!(array.set(&key(0), 0, &[5; 12], NO_EXIST), Err(Refusal::Exists));
    assert_eq!(array.set(&key(0), 0, &[5; 12], EXIST), Ok(()));
    assert_eq!(array.set(&key(0), 0, &[5; 11], 0), Err(Refusal::Invalid));
    assert_eq!(array.set(&key(0), 0, &[5; 12], LOCK), Err(Refusal::Invalid));
    assert_eq!(array.set(&key(3), 0, &[5; 12], LOCK), Err(Refusal::TooBig));
    assert_eq!(array.delete(&key(0)), Err(Refusal::Invalid));
    assert_eq!(array.lookup(&[0; 8], 0), None);
    let first = |most| array.first(most).into_iter().map(|(_, values)| values[0][0]).collect::<Vec<_>>();
    assert_eq!(array.dump(), array.first(3));
    assert_eq!((first(3), first(2), first(0)), (vec![5, 0, 5], vec![5, 0], vec![]));
}

#[test]
fn hash_maps_do_as_their_flags_say() {
    let hash = map(MapKind::Hash, 4, 4, 2, 1);
    let set = |k, v: u8, flags| hash.set(&key(k), 0, &[v; 4], flags);
    assert_eq!(hash.get(&key(1), 0), None);
    assert_eq!(set(1, 1, EXIST), Err(Refusal::NotFound));
    assert_eq!(set(1, 1, NO_EXIST), Ok(()));
    assert_eq!(set(1, 2, NO_EXIST), Err(Refusal::Exists));
    assert_eq!(set(1, 3, 0), Ok(()));
    assert_eq!(set(1, 4, 3), Err(Refusal::Invalid));
    assert_eq!(set(9, 9, 0), Ok(()));
    assert_eq!(set(5, 5, 0), Err(Refusal::TooBig));
    assert_eq!(hash.len(), 2);
    assert_eq!(hash.dump(), [(key(1).to_vec(), vec![vec![3; 4]]), (key(9).to_vec(), vec![vec![9; 4]])]);
    assert_eq!(hash.first(1), hash.dump()[..1]);
    assert_eq!(hash.first(0), []);
    assert_eq!(hash.delete(&key(1)), Ok(()));
    assert_eq!(hash.delete(&key(1)), Err(Refusal::NotFound));
    assert_eq!(hash.get(&key(1), 0), None);
    assert_eq!((hash.len(), hash.is_empty()), (1, false));
}

#[test]
fn a_removed_value_stays_where_it_was_until_its_place_is_needed() {
    let hash = map(MapKind::Hash, 4, 8, 2, 1);
    hash.set(&key(1), 0, &[1; 8], 0).unwrap();
    let place = hash.lookup(&key(1), 0).unwrap() as usize;
    hash.delete(&key(1)).unwrap();
    hash.set(&key(2), 0, &[2; 8], 0).unwrap();
    assert_eq!(hash.values().load(place, crate::Size::Byte), 1);
    // A new key's value is complete, whatever its entry held before.
    hash.set(&key(3), 0, &[3; 8], 0).unwrap();
    assert_eq!(hash.lookup(&key(3), 0).unwrap() as usize, place);
}

#[test]
fn workers_have_values_of_their_own() {
    for kind in [MapKind::PerCpuArray, MapKind::PerCpuHash, MapKind::LruPerCpuHash] {
        let map = map(kind, 4, 4, 2, 3);
        map.set(&key(1), 2, &[7; 4], 0).unwrap();
        let values: Vec<u8> = (0..3).map(|worker| map.get(&key(1), worker).unwrap()[0]).collect();
        assert_eq!(values, [0, 0, 7], "{}", kind.name());
        assert_eq!(map.lookup(&key(1), 2).unwrap() - map.lookup(&key(1), 0).unwrap(), 16);
        // When it is reused, the other workers' values are zero again.
        if map.delete(&key(1)).is_ok() {
            map.set(&key(3), 0, &[1; 4], 0).unwrap();
            map.set(&key(4), 0, &[1; 4], 0).unwrap();
            assert!((3..5).all(|k| map.get(&key(k), 2).unwrap() == [0; 4]));
        }
    }
}

#[test]
fn lru_maps_are_never_full() {
    let lru = map(MapKind::LruHash, 4, 4, 16, 1);
    for k in 0..1000 {
        assert_eq!(lru.set(&key(k), 0, &[1; 4], 0), Ok(()));
        assert!(lru.len() <= 16);
        assert!(lru.get(&key(k), 0).is_some());
    }
}

/// A key with this many bits of an IPv4 address.
fn prefix(address: [u8; 4], length: u32) -> Vec<u8> {
    [length.to_le_bytes(), address].concat()
}

#[test]
fn the_longest_prefix_is_found() {
    let trie = map(MapKind::LpmTrie, 8, 4, 4, 1);
    let set = |address, length, value: u8| trie.set(&prefix(address, length), 0, &[value; 4], 0);
    let found = |address, length| trie.get(&prefix(address, length), 0).map(|value| value[0]);
    assert_eq!(found([10, 1, 2, 3], 32), None);
    assert_eq!((set([10, 9, 9, 9], 8, 1), set([10, 1, 0, 0], 16, 2)), (Ok(()), Ok(())));
    assert_eq!(
        (found([10, 1, 2, 3], 32), found([10, 2, 2, 3], 32), found([11, 1, 2, 3], 32)),
        (Some(2), Some(1), None)
    );
    // Prefixes longer than the key don't match.
    assert_eq!(
        (found([10, 1, 2, 3], 15), found([10, 1, 2, 3], 8), found([10, 1, 2, 3], 7)),
        (Some(1), Some(1), None)
    );
    assert_eq!((set([0; 4], 0, 3), found([11, 1, 2, 3], 32)), (Ok(()), Some(3)));
    // The same prefix in another form is updated; one more fits, and no other.
    assert_eq!((set([10, 7, 7, 7], 8, 4), trie.len(), found([10, 2, 2, 3], 32)), (Ok(()), 3, Some(4)));
    assert_eq!((set([10, 1, 2, 3], 32, 5), set([1, 1, 1, 1], 32, 6)), (Ok(()), Err(Refusal::NoSpace)));
    assert_eq!(
        (set([10, 1, 2, 3], 33, 6), trie.delete(&prefix([0; 4], 33))),
        (Err(Refusal::Invalid), Err(Refusal::Invalid))
    );
    assert_eq!(found([10, 1, 2, 3], 33), None);
    assert_eq!(trie.delete(&prefix([10, 1, 255, 255], 16)), Ok(()));
    assert_eq!(trie.delete(&prefix([10, 1, 0, 0], 16)), Err(Refusal::NotFound));
    assert_eq!((found([10, 1, 2, 4], 32), found([10, 1, 2, 3], 32)), (Some(4), Some(5)));
    assert_eq!((Refusal::NoSpace.code() as i64, trie.spec().searches()), (-28, 4));
}

/// Compared with trying every prefix.
#[test]
fn prefixes_are_found_as_if_all_were_tried() {
    let trie = map(MapKind::LpmTrie, 6, 4, 200, 1);
    let mut all = std::collections::BTreeMap::new();
    for step in 0..4000u32 {
        let random = crate::hash(1, &step.to_le_bytes());
        let (bits, length) = (random as u16, (random >> 16) as u32 % 17);
        let masked = (u32::from(bits) & !(0xffff_u32 >> length)) as u16;
        let written = [&length.to_le_bytes()[..], &bits.to_be_bytes()].concat();
        match random >> 40 & 3 {
            0 => assert_eq!(trie.delete(&written).is_ok(), all.remove(&(length, masked)).is_some()),
            _ if trie.set(&written, 0, &step.to_le_bytes(), 0).is_ok() => {
                all.insert((length, masked), step);
            }
            _ => assert_eq!((trie.len(), all.contains_key(&(length, masked))), (200, false)),
        }
        let asked = (random >> 48) as u16;
        let is_of =
            |(length, bits): (u32, u16)| u32::from(asked ^ bits) & !(0xffff_u32 >> length) & 0xffff == 0;
        let wanted = all.iter().rev().find(|&(&prefix, _)| is_of(prefix)).map(|(_, &step)| step);
        let key = [&16u32.to_le_bytes()[..], &asked.to_be_bytes()].concat();
        let got = trie.get(&key, 0).map(|value| u32::from_le_bytes(value.try_into().unwrap()));
        assert_eq!(got, wanted, "step {step}");
    }
}

#[test]
fn device_maps_lead_to_ports() {
    let ports = map(MapKind::DevMap, 4, 4, 4, 1);
    assert_eq!(ports.target(2), None);
    ports.set(&key(2), 0, &key(17), 0).unwrap();
    let to = |first, exit| Some(Target { first, exit });
    assert_eq!((ports.target(2), ports.target(3), ports.target(4)), (to(17, 0), None, None));
    assert_eq!(ports.set(&key(4), 0, &key(1), 0), Err(Refusal::TooBig));
    let ports = map(MapKind::DevMapHash, 4, 8, 4, 1);
    ports.set(&key(0xdead_beef), 0, &[3, 0, 0, 0, 0, 0, 0, 0], 0).unwrap();
    assert_eq!(ports.target(0xdead_beef), to(3, 0));
}

#[test]
fn entries_name_programs_that_they_may() {
    let mut spec = map(MapKind::DevMap, 4, 8, 4, 1).spec().clone();
    spec.exits = ["stamp".into(), "".into(), "last".into()].into();
    let maps = Maps::new(&[spec], 1, 0).unwrap();
    let ports = maps.named("m").unwrap();
    let set = |program: i32| ports.set(&key(0), 0, &[[3, 0, 0, 0], program.to_le_bytes()].concat(), 0);
    // The second of these three runs elsewhere; 0 and negative numbers are none, as in the kernel.
    for (program, exit) in [(1, 1), (3, 3), (0, 0), (-1, 0), (i32::MIN, 0)] {
        assert_eq!(set(program), Ok(()));
        assert_eq!(ports.target(0), Some(Target { first: 3, exit }));
    }
    for program in [2, 4, i32::MAX] {
        assert_eq!(set(program), Err(Refusal::NoExit));
    }
    assert_eq!(ports.target(0), Some(Target { first: 3, exit: 0 }));
}

#[test]
fn data_sections_begin_with_their_bytes() {
    let mut spec = map(MapKind::Array, 4, 12, 1, 1).spec().clone();
    spec.initial = (1..=12).collect();
    let maps = Maps::new(&[spec], 1, 0).unwrap();
    assert_eq!(maps.named("m").unwrap().get(&key(0), 0).unwrap(), (1..=12).collect::<Vec<u8>>());
    assert!(maps.named("n").is_none() && maps.at(1).is_none());
}

#[test]
fn too_much_memory_is_refused() {
    let spec = MapSpec::new("big", MapKind::PerCpuArray, 4, 1 << 20, 200);
    assert!(Maps::new(std::slice::from_ref(&spec), 1, 0).is_ok());
    let error = Maps::new(&[spec], 2, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "map big: with the maps before it, it takes 419430400 bytes for 2 workers; the limit is 268435456"
    );
}

/// A writer changes values of 64 equal bytes, and replaces keys, until both readers have read enough; they
/// never read a mixture.
#[test]
fn values_are_never_torn() {
    const ENOUGH: u32 = 20_000;
    let hash = map(MapKind::Hash, 4, 64, 4, 1);
    let reading = AtomicU32::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let values = (0..8).cycle().filter_map(|k| Some((k, hash.get(&key(k), 0)?)));
                let torn = values.take(ENOUGH as usize).find(|(k, value)| {
                    value.iter().any(|&byte| byte != value[0] || u32::from(byte % 8) != *k)
                });
                // Before a possible panic, so that the writer does not continue forever.
                reading.fetch_sub(1, Ordering::Relaxed);
                assert_eq!(torn, None);
            });
        }
        for round in 0u32.. {
            if reading.load(Ordering::Relaxed) == 0 {
                break;
            }
            let k = round % 8;
            let value = [(k + round / 8 % 31 * 8) as u8; 64];
            // Either may find a reader's turn.
            hash.update(&key(k), 0, 0, |at, piece| piece.copy_from_slice(&value[at..at + piece.len()])).ok();
            hash.delete(&key((k + 5) % 8)).ok();
        }
    });
}
