//! Maps and state.

use super::*;

/// The rest of a map lookup of the word in `w0`.
const LOOKUP: &str = "*(u32 *)(r10 - 4) = r0
    r2 = r10
    r2 += -4
    r1 = map[0] ll
    call map_lookup_elem";

#[test]
fn state_stays_from_packet_to_packet() {
    let mut bench = plain();
    let text =
        "r1 = 16\n call lw_flow_state\n r2 = 1\n lock *(u64 *)(r0 + 8) += r2\n r0 = *(u64 *)(r0 + 8)\n exit";
    let counts: Vec<u64> = (0..3).map(|_| run(&mut bench, text).unwrap().returned).collect();
    assert_eq!(counts, [1, 2, 3]);
    assert_eq!(bench.state.get()[..16], [0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    let mut bytes = bench.state.get();
    bytes[8] = 41;
    assert!(bench.state.set(&bytes) && !bench.state.set(&bytes[1..]));
    assert_eq!(run(&mut bench, text).unwrap().returned, 42);
}

#[test]
fn maps_are_looked_up_updated_and_deleted() {
    let update = |flags: u64| {
        format!(
            "*(u32 *)(r10 - 4) = 7\n *(u64 *)(r10 - 16) = 99\n r1 = map[0] ll\n r2 = r10\n r2 += -4
             r3 = r10\n r3 += -16\n r4 = {flags}\n call map_update_elem\n exit"
        )
    };
    let delete = "*(u32 *)(r10 - 4) = 7\n r1 = map[0] ll\n r2 = r10\n r2 += -4\n call map_delete_elem\n exit";
    let lookup = format!("w0 = 7\n {LOOKUP}\n if r0 == 0 goto out\n r0 = *(u64 *)(r0 + 0)\n out: exit");
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::Hash, 4, 8, 4)]).unwrap();
    let mut returned = |text: &str| run(&mut bench, text).unwrap().returned as i64;
    assert_eq!((returned(&lookup), returned(delete)), (0, -2));
    assert_eq!(
        (returned(&update(2)), returned(&update(NO_EXIST)), returned(&update(1)), returned(&update(2))),
        (-2, 0, -17, 0)
    );
    assert_eq!((returned(&lookup), returned(&update(4))), (99, -22));
    assert_eq!((returned(delete), returned(&lookup)), (0, 0));

    // An array: indices beyond its end don't exist.
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::Array, 4, 8, 7)]).unwrap();
    let mut returned = |text: &str| run(&mut bench, text).unwrap().returned as i64;
    assert_eq!((returned(&lookup), returned(&update(0)), returned(delete)), (0, -7, -22));
}

#[test]
fn values_have_bounds_of_their_own() {
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::Array, 4, 12, 4)]).unwrap();
    let base = 0x100_0000_0000;
    for (access, wanted) in [
        ("*(u64 *)(r0 + 0) = 1", None),
        ("*(u32 *)(r0 + 8) = 1", None),
        ("*(u32 *)(r0 + 12) = 1", Some(Fault::OutOfBounds { address: base + 28, size: 4 })),
        ("*(u64 *)(r0 + 8) = 1", Some(Fault::OutOfBounds { address: base + 24, size: 8 })),
        ("*(u8 *)(r0 - 1) = 1", Some(Fault::OutOfBounds { address: base + 15, size: 1 })),
        ("*(u16 *)(r0 + 1) = 1", Some(Fault::Misaligned { address: base + 17, size: 2 })),
    ] {
        let text = format!("w0 = 1\n {LOOKUP}\n {access}\n r0 = 0\n exit");
        assert_eq!(run(&mut bench, &text).err().map(|stopped| stopped.fault), wanted, "{access}");
    }
}

#[test]
fn each_worker_has_its_own_value() {
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::PerCpuArray, 4, 8, 4)]).unwrap();
    let text =
        format!("w0 = 2\n {LOOKUP}\n r1 = 1\n lock *(u64 *)(r0 + 0) += r1\n r0 = *(u64 *)(r0 + 0)\n exit");
    let counts: Vec<u64> = [0, 3, 3, 0, 1]
        .map(|worker| {
            bench.context.worker = worker;
            run(&mut bench, &text).unwrap().returned
        })
        .to_vec();
    assert_eq!(counts, [1, 1, 2, 2, 1]);
    let values: Vec<u8> =
        (0..4).map(|worker| bench.maps.all()[0].get(&[2, 0, 0, 0], worker).unwrap()[0]).collect();
    assert_eq!(values, [2, 1, 0, 2]);
}

#[test]
fn device_maps_redirect_and_nothing_else() {
    let mut bench = with_maps(&[MapSpec::new("ports", MapKind::DevMap, 4, 4, 4)]).unwrap();
    bench.maps.all()[0].set(&[2, 0, 0, 0], 0, &[6, 0, 0, 0], 0).unwrap();
    let mut redirect = |key: u32, flags: u32| {
        let text = format!("r1 = map[0] ll\n r2 = {key}\n r3 = {flags}\n call redirect_map\n exit");
        run(&mut bench, &text).unwrap().verdict
    };
    assert_eq!(redirect(2, 0), Verdict::Redirect(Redirect::Port(6)));
    assert_eq!(redirect(1, 2), Verdict::Pass);
    assert_eq!(redirect(9, 1), Verdict::Drop(None));
    assert_eq!(redirect(2, 8), Verdict::Aborted(Abort::Returned));
    // The upper half of a key does not count.
    let text = "r1 = map[0] ll\n r2 = 0x100000002 ll\n r3 = 0\n call redirect_map\n exit";
    assert_eq!(run(&mut bench, text).unwrap().verdict, Verdict::Redirect(Redirect::Port(6)));
    // An entry can be read, not written.
    let entry = |then: &str| format!("w0 = 2\n {LOOKUP}\n {then}\n exit");
    assert_eq!(run(&mut bench, &entry("r0 = *(u32 *)(r0 + 0)")).unwrap().returned, 6);
    let fault = run(&mut bench, &entry("*(u32 *)(r0 + 0) = 7")).unwrap_err().fault;
    assert!(matches!(fault, Fault::ReadOnly { size: 4, .. }), "{fault}");
    // The packet stays on its own processor.
    let mut bench = with_maps(&[MapSpec::new("cpus", MapKind::CpuMap, 4, 4, 4)]).unwrap();
    bench.maps.all()[0].set(&[2, 0, 0, 0], 0, &[192, 0, 0, 0], 0).unwrap();
    let mut redirect = |key: u32, flags: u32| {
        let text = format!("r1 = map[0] ll\n r2 = {key}\n r3 = {flags}\n call redirect_map\n exit");
        run(&mut bench, &text).unwrap()
    };
    let ran = redirect(2, 0);
    assert_eq!((ran.verdict, ran.effects.redirect), (Verdict::Pass, Some(Redirect::Processor(2))));
    assert_eq!((redirect(1, 1).verdict, redirect(7, 1).verdict), (Verdict::Drop(None), Verdict::Drop(None)));
    assert_eq!(run(&mut bench, &format!("w0 = 2\n {LOOKUP}\n exit")).unwrap_err().fault, Fault::Map);
    // There are no sockets: lookups fail, and so do writes.
    let mut bench = with_maps(&[MapSpec::new("sockets", MapKind::XskMap, 4, 4, 4)]).unwrap();
    assert_eq!(
        bench.maps.all()[0].set(&[0; 4], 0, &[1, 0, 0, 0], 0),
        Err(longwire_program::map::Refusal::Invalid)
    );
    assert_eq!(run(&mut bench, &format!("w0 = 0\n {LOOKUP}\n exit")).unwrap().returned, 0);
    let text = "r1 = map[0] ll\n r2 = 0\n r3 = 2\n call redirect_map\n exit";
    assert_eq!(run(&mut bench, text).unwrap().verdict, Verdict::Pass);
    // Other kinds of maps have no targets.
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::Array, 4, 4, 4)]).unwrap();
    let text = "r1 = map[0] ll\n r2 = 0\n r3 = 0\n call redirect_map\n exit";
    assert_eq!(run(&mut bench, text).unwrap_err().fault, Fault::Map);
}

#[test]
fn constants_cannot_be_written() {
    let mut spec = MapSpec::new(".rodata", MapKind::Array, 4, 8, 1);
    (spec.read_only, spec.initial) = (true, [1, 2, 3, 4, 5, 6, 7, 8].into());
    let mut bench = with_maps(&[spec]).unwrap();
    assert_eq!(
        run(&mut bench, "r1 = map[0][0]+4 ll\n r0 = *(u32 *)(r1 + 0)\n exit").unwrap().returned,
        0x0807_0605
    );
    let fault = run(&mut bench, "r1 = map[0][0]+4 ll\n *(u32 *)(r1 + 0) = 0\n exit").unwrap_err().fault;
    assert_eq!(fault, Fault::ReadOnly { address: 0x100_0000_0004, size: 4 });
    let update = "*(u32 *)(r10 - 4) = 0\n *(u64 *)(r10 - 16) = 99\n r1 = map[0] ll\n r2 = r10\n r2 += -4
             r3 = r10\n r3 += -16\n r4 = 0\n call map_update_elem\n exit";
    assert_eq!(run(&mut bench, update).unwrap_err().fault, Fault::Map);
}
