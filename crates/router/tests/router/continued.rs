//! Tail calls and callbacks on the path of packets.

use crate::programs::prepared;
use crate::rig::{Rig, SECOND, Seen, udp};
use longwire_program::{MapKind, MapSpec, Program, assemble};
use longwire_router::{Installation, RouterPrices};

/// A program with a tail call to entry 0, which drops packets; it passes them if the entry is empty.
fn dropping(entry: u32) -> Program {
    let first = "r2 = map[0] ll\n r3 = 0\n call tail_call\n r0 = 2\n exit";
    let start = assemble(first).unwrap().len();
    let code = assemble(&format!("{first}\n r0 = 1\n exit")).unwrap().with_programs([(1, start)]);
    let jumps =
        MapSpec { initial: entry.to_le_bytes().into(), ..MapSpec::new("jumps", MapKind::ProgArray, 4, 4, 2) };
    Program::new("dropping", code, [jumps])
}

#[test]
fn another_entry_is_another_program_in_its_place() {
    let mut rig = Rig::new();
    let fid = rig.router.install(prepared(dropping(1), Installation::default())).unwrap();
    let passes = |rig: &mut Rig| matches!(rig.send(SECOND, 1, &udp()).first(), Some(Seen::Out(2, _)));
    assert!(!passes(&mut rig));
    let before = rig.router.forwarders().forwarder(fid).unwrap().clone();
    assert_eq!((before.stats().packets, before.stats().dropped), (1, 1));
    let table = rig.router.forwarders();
    let prices = RouterPrices::default();
    let made = before.prepare_instead(dropping(0), Installation::default(), &prices, 1).unwrap();
    let next = table.replacing(fid, made).unwrap().unwrap();
    assert!(rig.router.replace_forwarders(&table, next).is_ok());
    assert!(passes(&mut rig));
}

#[test]
fn functions_are_called_again_and_again() {
    let mut rig = Rig::new();
    // Counts five times in the state.
    let text = "r1 = 5\n r2 = pc f ll\n r3 = 0\n r4 = 0\n call loop\n r0 = 2\n exit
         f: r1 = 8\n call lw_flow_state\n r1 = *(u64 *)(r0 + 0)\n r1 += 1\n *(u64 *)(r0 + 0) = r1\n r0 = 0\n \
         exit";
    let program = Program::new("counts", assemble(text).unwrap(), []);
    let fid = rig.router.install(prepared(program, Installation::default())).unwrap();
    for _ in 0..3 {
        assert!(matches!(rig.send(SECOND, 1, &udp())[0], Seen::Out(2, _)));
    }
    assert_eq!(rig.router.data(fid).unwrap(), 15_u64.to_le_bytes());
}
