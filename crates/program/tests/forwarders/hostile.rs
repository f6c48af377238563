//! Truncated and random packets: no forwarder faults, and none changes what it must not.

use super::bench::{InstalledForwarder, OBJECTS};
use super::frames::*;
use longwire_program::{Item, Verdict, verify};
use proptest::prelude::*;
use std::ops::Range;

/// A forwarder as it is tested.
struct Case {
    ready: fn() -> InstalledForwarder,
    /// Bytes of a frame that it may change.
    changes: &'static [Range<usize>],
    /// Bytes of its state that only the control half writes.
    kept: Range<usize>,
    verdicts: fn(Verdict) -> bool,
}

fn passes(verdict: Verdict) -> bool {
    verdict == Verdict::Pass
}

fn passes_or_drops(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Drop(Some(_)))
}

fn passes_or_redirects(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Redirect(_))
}

/// Addresses of Ethernet, hop limit, TTL, checksum.
const MINIMAL: &[Range<usize>] = &[0..12, HOP_LIMIT..22, TTL..23, CHECK..26];
/// Type of service, checksum.
const DSCP: &[Range<usize>] = &[14..16, CHECK..26];
/// Checksum, addresses, ports and numbers; TCP's window and checksum.
const SPLICER: &[Range<usize>] = &[CHECK..46, 48..52];
/// Addresses, ports and numbers; TCP's window and checksum.
const SPLICER6: &[Range<usize>] = &[22..TRANSPORT6 + 12, TRANSPORT6 + 14..TRANSPORT6 + 18];
/// Checksum, addresses, ports or what ICMP has there; checksums of UDP and TCP.
const NAT: &[Range<usize>] = &[CHECK..40, 40..42, 50..52];

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { ready: super::ack_monitor::ready, changes: &[], kept: 0..0, verdicts: passes },
    Case { ready: super::balancer::ready, changes: &[], kept: 0..8, verdicts: passes },
    Case { ready: super::detector::ready, changes: &[], kept: 0..0, verdicts: passes_or_drops },
    Case { ready: super::dscp_marker::ready, changes: DSCP, kept: 0..8, verdicts: passes },
    Case { ready: super::heavy_hitters::ready, changes: &[], kept: 0..16, verdicts: passes },
    Case { ready: super::minimal_ip::ready, changes: MINIMAL, kept: 0..16, verdicts: passes_or_redirects },
    Case { ready: super::nat44::ready, changes: NAT, kept: 0..48, verdicts: passes },
    Case { ready: super::performance_monitor::ready, changes: &[], kept: 0..4, verdicts: passes },
    Case { ready: super::policer::ready, changes: &[], kept: 0..24, verdicts: passes_or_drops },
    Case { ready: super::port_filter::ready, changes: &[], kept: 0..20, verdicts: passes_or_drops },
    Case { ready: super::rebind::ready, changes: NAT, kept: 0..32, verdicts: passes_or_drops },
    Case { ready: super::syn_filter::ready, changes: &[], kept: 0..8, verdicts: passes_or_drops },
    Case { ready: super::syn_monitor::ready, changes: &[], kept: 0..0, verdicts: passes },
    Case { ready: super::syn_targets::ready, changes: &[], kept: 0..0, verdicts: passes },
    Case { ready: super::tcp_splicer::ready, changes: SPLICER, kept: 0..24, verdicts: passes },
    Case { ready: super::tcp_splicer6::ready, changes: SPLICER6, kept: 0..44, verdicts: passes },
    Case { ready: super::tcp_splicer::scaled, changes: SPLICER, kept: 0..24, verdicts: passes },
    Case { ready: super::wavelet::ready, changes: &[], kept: 0..4, verdicts: passes_or_drops },
];

/// Passes these packets to a forwarder, and checks each result.
fn send_all(case: &Case, packets: impl IntoIterator<Item = Vec<u8>>) {
    let mut forwarder = (case.ready)();
    let name = forwarder.program.name.clone();
    let most = verify(forwarder.program.clone()).unwrap().most()[Item::Instruction];
    let settings = forwarder.bench.state.get()[case.kept.clone()].to_vec();
    for sent in packets {
        let ran = forwarder.send(&sent);
        assert!((case.verdicts)(ran.verdict), "{name}: {:?} of {sent:02x?}", ran.verdict);
        assert!(ran.instructions <= u64::from(most), "{name}: {} of {most}", ran.instructions);
        assert_eq!(ran.packet.len(), sent.len(), "{name}");
        for place in 0..sent.len() {
            let may = case.changes.iter().any(|range| range.contains(&place));
            assert!(may || ran.packet[place] == sent[place], "{name}: byte {place} of {sent:02x?}");
        }
        let around = forwarder.bench.buffer.iter().filter(|&&byte| byte == 0xee).count();
        let within = ran.packet.iter().filter(|&&byte| byte == 0xee).count();
        assert_eq!(around - within, 2 * crate::harness::ROOM, "{name}: room around {sent:02x?}");
        assert_eq!(forwarder.bench.state.get()[case.kept.clone()], settings, "{name}: {sent:02x?}");
    }
}

/// Packets with an effect in some forwarder.
fn packets() -> Vec<Vec<u8>> {
    vec![
        tcp(v4(CLIENT, SERVER), [5000, 8000], ack),
        tcp(v4(CLIENT, SERVER), [5000, 6000], syn),
        tcp(v4(SERVER, [203, 0, 113, 1]), [80, 40001], ack),
        tcp(v4_options(), [5000, 22], syn),
        tcp(v6(), [5000, 22], syn),
        udp(v4(CLIENT, SERVER), [5000, 1900], &[2; 20]),
        udp(v6(), [5000, 1900], &[2; 20]),
        echo(v4(CLIENT, SERVER), true, 5000),
    ]
}

#[test]
fn every_forwarder_has_its_case() {
    let names: Vec<_> = CASES.iter().map(|case| (case.ready)().program.name.to_string()).collect();
    assert_eq!(names, OBJECTS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn packets_may_end_anywhere() {
    for case in CASES {
        let cut = |packet: Vec<u8>| (0..=packet.len()).map(move |length| packet[..length].to_vec());
        send_all(case, packets().into_iter().flat_map(cut));
    }
}

#[test]
fn cut_packets_are_not_half_rewritten() {
    // Forwarders that update TCP or UDP checksums leave packets that end before them unchanged.
    for case in CASES.iter().filter(|case| case.changes.iter().any(|range| range.end > 34)) {
        for packet in packets() {
            let header = if packet[23] == 6 { 20 } else { 8 };
            for length in 0..TRANSPORT + header {
                let sent = &packet[..length.min(packet.len())];
                assert_eq!((case.ready)().send(sent).packet, sent);
            }
        }
    }
}

/// Unusual frames: random, but often with the fields that forwarders look for.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(vec![[8u8, 0], [0x86, 0xdd], [8, 6]]);
    let first = prop_oneof![Just(0x45u8), 0x40..0x50u8, Just(0x60), any::<u8>()];
    let protocol = prop::sample::select(vec![0u8, 1, 6, 17, 44, 255]);
    let fragment = prop_oneof![4 => Just([0u8, 0]), 1 => any::<[u8; 2]>()];
    let bytes = prop::collection::vec(any::<u8>(), 0..160);
    (bytes, kind, first, protocol, fragment).prop_map(|(mut bytes, kind, first, protocol, fragment)| {
        let mut set = |place: usize, value: u8| bytes.get_mut(place).into_iter().for_each(|b| *b = value);
        set(12, kind[0]);
        set(13, kind[1]);
        set(14, first);
        if kind[0] == 8 {
            set(20, fragment[0]);
            set(21, fragment[1]);
            set(23, protocol);
        } else {
            set(20, protocol);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn packets_may_be_anything(packets in prop::collection::vec(frames(), 1..8)) {
        for case in CASES {
            send_all(case, packets.clone());
        }
    }
}
