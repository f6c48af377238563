//! Objects compiled by clang: compiled and interpreted on sequences of packets with the same maps.

use crate::bench::{Bench, Left};
use crate::kernel;
use longwire_jit::{compile, compile_unverified};
use longwire_program::{MapKind, Maps, Object, Program, verify};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::sync::Arc;

const OBJECTS: &[(&str, &[u8])] = &[
    ("constants", include_bytes!("../../../tests/objects/constants.o")),
    ("counter", include_bytes!("../../../tests/objects/counter.o")),
    ("events", include_bytes!("../../../tests/objects/events.o")),
    ("globals", include_bytes!("../../../tests/objects/globals.o")),
    ("longwire", include_bytes!("../../../tests/objects/longwire.o")),
    ("modern", include_bytes!("../../../tests/objects/modern.o")),
    ("relocated", include_bytes!("../../../tests/objects/relocated.o")),
    ("filter.v3", include_bytes!("../../../tests/xdp/filter.v3.o")),
    ("filter.v4", include_bytes!("../../../tests/xdp/filter.v4.o")),
    ("headers.v3", include_bytes!("../../../tests/xdp/headers.v3.o")),
    ("headers.v4", include_bytes!("../../../tests/xdp/headers.v4.o")),
    ("limits.v3", include_bytes!("../../../tests/xdp/limits.v3.o")),
    ("limits.v4", include_bytes!("../../../tests/xdp/limits.v4.o")),
    ("options.v3", include_bytes!("../../../tests/xdp/options.v3.o")),
    ("options.v4", include_bytes!("../../../tests/xdp/options.v4.o")),
    ("loops", include_bytes!("../../../tests/xdp/loops.o")),
    ("repeated", include_bytes!("../../../tests/xdp/repeated.o")),
    ("inner", include_bytes!("../../../tests/xdp/inner.o")),
    ("locked", include_bytes!("../../../tests/xdp/locked.o")),
    ("chain", include_bytes!("../../../tests/xdp/chain.o")),
    ("prefixes", include_bytes!("../../../tests/xdp/prefixes.o")),
    ("rewrite.v3", include_bytes!("../../../tests/xdp/rewrite.v3.o")),
    ("rewrite.v4", include_bytes!("../../../tests/xdp/rewrite.v4.o")),
    ("tunnel.v3", include_bytes!("../../../tests/xdp/tunnel.v3.o")),
    ("tunnel.v4", include_bytes!("../../../tests/xdp/tunnel.v4.o")),
];

fn programs() -> Vec<(String, Program)> {
    let mut all = Vec::new();
    for (name, bytes) in OBJECTS {
        let object = Object::parse(bytes).unwrap();
        for (program, _) in object.programs() {
            if let Ok(loaded) = object.program(program) {
                all.push((format!("{name} {program}"), loaded));
            }
        }
    }
    all
}

/// An IPv4 or IPv6 header with ports, in a frame with or without tags, with random changes.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let parts = (0..5u8, any::<[u8; 4]>(), 0..3usize, 14..120usize);
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (parts, damage).prop_map(|((kind, [protocol, low, port, flags], tags, length), damage)| {
        let mut frame = vec![2; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 7]));
        let protocol = if protocol < 128 { [6, 17, 1, 58, 4][usize::from(kind)] } else { protocol };
        if kind < 3 {
            frame.extend([8, 0, 0x45, 0, 0, 80, 0, 1, 0, 0, 64, protocol, 0x12, 0x34]);
            frame.extend([10, 0, 0, low % 4, 10, 0, 0, 9]);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, protocol, 64]);
            frame.extend([0xfe; 15].iter().chain(&[low % 4]).chain(&[0xfd; 16]));
        }
        frame.extend([0, port % 100, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        frame.resize(length.max(20), 0x33);
        frame.truncate(length);
        for (place, value) in damage {
            let place = place.index(frame.len());
            frame[place] = value;
        }
        frame
    })
}

/// Results for all packets, with the same maps throughout.
fn interpreted(bench: &mut Bench, packets: &[Vec<u8>]) -> Vec<Left> {
    let maps = bench.maps();
    packets
        .iter()
        .map(|packet| {
            bench.packet.clone_from(packet);
            bench.interpreted_with(&maps)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn objects_do_what_the_interpreter_does(packets in prop::collection::vec(frame(), 30)) {
        for (name, program) in programs() {
            let mut bench = Bench::new(program.clone(), &[]);
            let wanted = interpreted(&mut bench, &packets);
            let maps = bench.maps();
            let compiled = compile_unverified(&program, &[], Arc::clone(&maps)).unwrap();
            for (packet, wanted) in packets.iter().zip(&wanted) {
                bench.packet.clone_from(packet);
                prop_assert_eq!(&bench.run(&compiled, &maps), wanted, "{}", name);
            }
            let Ok(verified) = verify(program) else { continue };
            let maps = bench.maps();
            let compiled = compile(&verified, Arc::clone(&maps)).unwrap();
            for (packet, wanted) in packets.iter().zip(&wanted) {
                bench.packet.clone_from(packet);
                prop_assert_eq!(&bench.run(&compiled, &maps), wanted, "{}", name);
            }
        }
    }
}

#[test]
fn most_objects_are_verified() {
    let (mut let_in, mut all) = (0, 0);
    for (name, program) in programs() {
        all += 1;
        match verify(program) {
            Ok(verified) => {
                let maps = Arc::new(Maps::new(&verified.program().maps, 1, 0).unwrap());
                let compiled = compile(&verified, maps).unwrap();
                println!("{name}: {} instructions, {} bytes", verified.facts().len(), compiled.code_size());
                let_in += 1;
            }
            Err(rejected) => println!("{name}: {rejected}"),
        }
    }
    assert!(let_in * 10 >= all * 9, "{let_in} of {all}");
}

/// Records in a ringbuf equal the kernel's, in the same order.
#[test]
fn records_are_those_of_the_kernel() {
    if let Some(reason) = kernel::refusal() {
        println!("skipped: {reason}");
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let packets = prop::collection::vec(frame(), 800).new_tree(&mut runner).unwrap().current();
    // Room for all: record headers are longer here than in the kernel.
    let mut object = Object::parse(include_bytes!("../../../tests/objects/events.o")).unwrap();
    object.set_entries("records", 1 << 17).unwrap();
    for name in ["reserved", "copied"] {
        let program = object.program(name).unwrap();
        let place = program.maps.iter().position(|map| &*map.name == "records").unwrap();
        let mut bench = Bench::new(program, &[]);
        (bench.context.ingress, bench.context.queue) = kernel::INGRESS_AND_QUEUE;
        let maps = bench.maps();
        let in_kernel = kernel::InKernel::new(&bench.program, &maps).unwrap();
        let verified = verify(bench.program.clone()).unwrap_or_else(|rejected| panic!("{rejected}"));
        let compiled = compile(&verified, Arc::clone(&maps)).unwrap();
        for packet in &packets {
            bench.packet.clone_from(packet);
            let (returned, _) = in_kernel.run(packet).unwrap();
            assert_eq!(bench.run(&compiled, &maps).result.unwrap() as u32, returned, "{name}");
        }
        let ours = maps.all()[place].take(usize::MAX, usize::MAX).into_iter().map(|record| record.data);
        let theirs = in_kernel.records(place, 1 << 17).unwrap();
        assert!(theirs.len() > 20, "{name}: {} records", theirs.len());
        assert_eq!(ours.collect::<Vec<_>>(), theirs, "{name}");
        println!("{name}: {} records", theirs.len());
    }
}

/// The kernel's verdicts, packets and arrays, if permitted and the kernel has everything an object uses.
#[test]
fn objects_do_what_the_kernel_does() {
    if let Some(reason) = kernel::refusal() {
        println!("skipped: {reason}");
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let packets = prop::collection::vec(frame(), 400).new_tree(&mut runner).unwrap().current();
    let mut compared = 0;
    for (name, program) in programs() {
        if !kernel::knows(&program) || program.maps.iter().any(|map| map.kind.is_ring()) {
            println!("{name}: the kernel has not all that it uses");
            continue;
        }
        let mut bench = Bench::new(program, &[]);
        (bench.context.ingress, bench.context.queue) = kernel::INGRESS_AND_QUEUE;
        let maps = bench.maps();
        let in_kernel = match kernel::InKernel::new(&bench.program, &maps) {
            Ok(in_kernel) => in_kernel,
            Err(error) => {
                println!("{name}: the kernel refuses it: {error}");
                continue;
            }
        };
        let compiled = match verify(bench.program.clone()) {
            Ok(verified) => compile(&verified, Arc::clone(&maps)).unwrap(),
            Err(_) => compile_unverified(&bench.program, &[], Arc::clone(&maps)).unwrap(),
        };
        for packet in &packets {
            bench.packet.clone_from(packet);
            let left = bench.run(&compiled, &maps);
            let (returned, after) = in_kernel.run(packet).unwrap();
            assert_eq!(left.result.unwrap() as u32, returned, "{name}");
            assert_eq!(left.buffer[left.packet.clone()], after, "{name}");
        }
        for (index, map) in maps.all().iter().enumerate().filter(|(_, map)| map.spec().kind == MapKind::Array)
        {
            let mut ours = vec![0; map.values().len()];
            map.values().read(0, &mut ours);
            assert_eq!(ours, in_kernel.array(index, map).unwrap(), "{name}");
        }
        println!("{name}: the same on {} packets", packets.len());
        compared += 1;
    }
    assert!(compared > 0);
}
