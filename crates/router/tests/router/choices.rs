//! Programs that choose links and ask for routes.

use crate::programs::{general, install, prepared, program, send, udp};
use crate::rig::{Chosen, Rig, Seen, host_mac, router_mac};
use longwire_block::DropReason;
use longwire_packet::Meta;
use longwire_router::{Forwarder, InstallError, Installation, LinkChoice, PrepareError, RouterPrices};

/// A link with the number 40 that leaves by port 3, and begins at the ingress port `from`, if given.
fn with_link(from: Option<u16>) -> Installation {
    let link = LinkChoice { name: "spare".into(), number: 40, port: 3, from };
    Installation { links: [link].into(), ..general() }
}

#[test]
fn programs_choose_among_the_links_that_they_are_given() {
    let (choose, redirect) = ("call lw_choose_link\n r0 = 2\n exit", "call lw_redirect_link\n exit");
    // The action with link 0 or 1, from its beginning; the packet's output port, and its requested link.
    for (what, number, from, wanted) in [
        (choose, 0, None, Some((2, Some(40)))),
        (choose, 0, Some(1), Some((2, Some(40)))),
        (redirect, 0, None, Some((3, Some(40)))),
        (redirect, 0, Some(1), Some((3, Some(40)))),
        (redirect, 0, Some(2), None),
        // Numbers that depend on the mark.
        (choose, 1, None, Some((2, None))),
        (redirect, 1, None, None),
    ] {
        let case = format!("{what}, {number}, {from:?}");
        let mut rig = Rig::new();
        install(&mut rig, &format!("r1 = {number}\n call lw_mark\n r0 = 2\n exit"), general());
        let fid = install(&mut rig, &format!("call lw_read_mark\n r1 = r0\n {what}"), with_link(from));
        let frame = udp(53);
        let seen = send(&mut rig, &frame);
        let aborted = rig.router.forwarders().forwarder(fid).unwrap().stats().aborted;
        let Some((port, link)) = wanted else {
            assert_eq!((seen, aborted), (Seen::Dropped(DropReason::Aborted), 1), "{case}");
            continue;
        };
        assert_eq!((seen.out().0, aborted), (port, 0), "{case}");
        assert_eq!(seen == Seen::Out(3, frame), what == redirect, "past the routes it goes as it is: {case}");
        assert_eq!(rig.chosen, [Chosen { mark: number, link, queue: Meta::NO_BAND }], "{case}");
    }
}

/// However a program sends a packet there; this is no fault of the program.
#[test]
fn a_port_that_is_down_drops_what_programs_send_to_it() {
    let out_of_port = "r1 = 3\n r2 = 0\n call 23\n exit";
    let into_link = "r1 = 0\n call lw_redirect_link\n exit";
    for (code, installation) in [(out_of_port, general()), (into_link, with_link(None))] {
        let mut rig = Rig::new();
        let fid = install(&mut rig, code, installation);
        assert!(rig.router.set_up(3, false));
        assert_eq!(send(&mut rig, &udp(53)), Seen::Dropped(DropReason::PortDown), "{code}");
        let stats = rig.router.forwarders().forwarder(fid).unwrap().stats();
        assert_eq!((stats.redirected, stats.aborted), (1, 0), "{code}");
        assert!(rig.router.set_up(3, true));
        assert_eq!(send(&mut rig, &udp(53)), Seen::Out(3, udp(53)), "{code}");
    }
}

#[test]
fn links_that_a_program_needs_have_to_be_named() {
    let refused = |code: &str, installation| {
        Forwarder::prepare(program("test", code), installation, &RouterPrices::default(), 1).err()
    };
    let code = "r1 = 1\n call lw_redirect_link\n exit";
    let error = refused(code, with_link(None));
    assert!(matches!(error, Some(PrepareError::Links { named: 1, used: 2 })), "{error:?}");
    assert!(refused("r1 = 0\n call lw_redirect_link\n exit", with_link(None)).is_none());
    let mut installation = with_link(None);
    installation.links[0].port = 9;
    let foreign = prepared(program("test", "r0 = 2\n exit"), installation);
    let error = Rig::new().router.install(foreign).err();
    assert!(matches!(error, Some(InstallError::ForeignPort { port: 9 })), "{error:?}");
}

/// Looks up the route to an IPv4 address given as a number in network order, appends code, port and addresses
/// to the state, and passes the packet.
fn asking(destination: [u8; 4], ingress: u32, flags: u32) -> String {
    let zeros: String = (0..8).map(|i| format!("*(u64 *)(r10 - {}) = 0\n", 64 - i * 8)).collect();
    let destination = i32::from_le_bytes(destination);
    format!(
        "r6 = r1\n {zeros}
        *(u8 *)(r10 - 64) = 2\n *(u16 *)(r10 - 58) = 100\n *(u32 *)(r10 - 56) = {ingress}
        *(u32 *)(r10 - 32) = {destination}
        r2 = r10\n r2 += -64\n r3 = 64\n r4 = {flags}\n call 69\n r7 = r0
        r1 = 72\n call 65536
        *(u64 *)(r0 + 64) = r7
        r1 = *(u64 *)(r10 - 64)\n *(u64 *)(r0 + 0) = r1
        r1 = *(u64 *)(r10 - 56)\n *(u64 *)(r0 + 8) = r1
        r1 = *(u64 *)(r10 - 32)\n *(u64 *)(r0 + 32) = r1
        r1 = *(u64 *)(r10 - 16)\n *(u64 *)(r0 + 48) = r1
        r1 = *(u64 *)(r10 - 8)\n *(u64 *)(r0 + 56) = r1
        r0 = 2\n exit"
    )
}

/// The router's answer: code, port, next hop, and the MAC addresses of port and neighbour.
fn answer(rig: &mut Rig, destination: [u8; 4], ingress: u32, flags: u32) -> (i64, u32, [u8; 4], Vec<u8>) {
    let fid = install(rig, &asking(destination, ingress, flags), general());
    send(rig, &udp(53));
    let state = rig.router.data(fid).unwrap();
    rig.router.remove(fid);
    let code = i64::from_le_bytes(state[64..].try_into().unwrap());
    let port = u32::from_le_bytes(state[8..12].try_into().unwrap());
    (code, port, state[32..36].try_into().unwrap(), state[52..64].to_vec())
}

#[test]
fn programs_ask_for_routes() {
    let mut rig = Rig::new();
    let (near, far) = ([10, 0, 2, 9], [203, 0, 113, 1]);
    let both = [router_mac(2), host_mac(2)].concat();
    let nothing = vec![0; 12];
    assert_eq!(answer(&mut rig, near, 1, 0), (0, 2, near, both.clone()));
    // BPF_FIB_LOOKUP_SKIP_NEIGH and BPF_FIB_LOOKUP_DIRECT; other flags are invalid.
    assert_eq!(answer(&mut rig, near, 1, 5), (0, 2, near, nothing.clone()), "addresses stay as they were");
    assert_eq!(answer(&mut rig, near, 1, 64).0, -22);
    // An unknown port, the router's own address, no route, and an unknown neighbour.
    assert_eq!(answer(&mut rig, near, 77, 0), (-19, 77, near, nothing.clone()));
    assert_eq!(answer(&mut rig, [10, 0, 2, 1], 1, 0), (4, 1, [10, 0, 2, 1], nothing.clone()));
    assert_eq!(answer(&mut rig, far, 1, 0), (4, 1, far, nothing.clone()));
    assert_eq!(answer(&mut rig, [10, 0, 2, 77], 1, 0), (7, 2, [10, 0, 2, 77], nothing));
}

#[test]
fn routes_are_asked_for_on_one_processor() {
    let installation = Installation { threads: 2, ..general() };
    let program = program("asks", &asking([10, 0, 2, 9], 1, 0));
    let refused = Forwarder::prepare(program, installation, &RouterPrices::default(), 1).unwrap_err();
    assert!(matches!(refused, PrepareError::Routes), "{refused}");
}
