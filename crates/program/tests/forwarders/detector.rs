//! Intrusion detector.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

fn signature(first: u16, count: u16, protocol: u8, mask: u8, flags: u8) -> [u8; 8] {
    let ([a, b], [c, d]) = (first.to_le_bytes(), count.to_le_bytes());
    [a, b, c, d, protocol, mask, flags, 0]
}

/// The last time noted for a probe.
fn probed(detector: &InstalledForwarder, host: &[u8], port: u16, protocol: u8) -> Vec<u64> {
    let key = [&mapped(CLIENT), host, &port.to_le_bytes(), &[protocol, 0]].concat();
    detector.entry("probes", &key)
}

#[test]
fn targets_are_noted_if_the_signature_says_so() {
    let mut detector = InstalledForwarder::new("detector", 0);
    let mut signatures = [signature(0, 0, 6, 0x12, 0x02), signature(0, 0, 17, 0, 0)].concat();
    signatures[7] = 1;
    signatures.resize(64, 0);
    detector.put(".bss", &[0; 4], &signatures);
    let other = [192, 0, 2, 81];
    for (now, sent) in [
        (10, tcp(v4(CLIENT, SERVER), [1, 22], syn)),
        (20, tcp(v4(CLIENT, SERVER), [1, 23], syn)),
        (30, tcp(v4(CLIENT, other), [1, 22], syn)),
        (40, tcp(v4(CLIENT, SERVER), [2, 22], syn)),
        (50, tcp(v4(CLIENT, SERVER), [1, 24], ack)),
        (60, udp(v4(CLIENT, SERVER), [1, 25], &[])),
    ] {
        detector.bench.context.now = now;
        assert_eq!(detector.send(&sent).verdict, Verdict::Pass);
    }
    let server = mapped(SERVER);
    assert_eq!(probed(&detector, &server, 22, 6), [40]);
    assert_eq!(probed(&detector, &server, 23, 6), [20]);
    assert_eq!(probed(&detector, &mapped(other), 22, 6), [30]);
    assert_eq!(detector.bench.maps.named("probes").unwrap().len(), 3);
    assert_eq!(detector.entry("events", &event(CLIENT, 0)), [4, 10, 40]);
}

fn event(source: [u8; 4], signature: u8) -> Vec<u8> {
    [&mapped(source)[..], &[signature, 0, 0, 0]].concat()
}

/// Reports TCP packets without any flag, with FIN, PSH and URG only, and SYNs to 6000 to 6063; UDP to 1900;
/// any ICMP.
pub fn ready() -> InstalledForwarder {
    let signatures = [
        signature(0, 0, 6, 0x3f, 0),
        signature(0, 0, 6, 0x3f, 0x29),
        signature(6000, 64, 6, 0x12, 0x02),
        signature(0, 0, 0, 0, 0),
        signature(1900, 1, 17, 0, 0),
        signature(0, 0, 1, 0, 0),
        signature(0, 0, 0, 0, 0),
        signature(0, 0, 0, 0, 0),
    ];
    let detector = InstalledForwarder::new("detector", 0);
    detector.put(".bss", &[0; 4], signatures.as_flattened());
    detector.put("filters", &mapped([10, 6, 6, 6]), &[0; 8]);
    detector
}

#[test]
fn what_matches_is_reported() {
    let mut detector = ready();
    let none = |_: &mut etherparse::TcpHeader| ();
    let tree = |h: &mut etherparse::TcpHeader| (h.fin, h.psh, h.urg) = (true, true, true);
    for (number, sent) in [
        (Some(0), tcp(v4(CLIENT, SERVER), [1, 80], none)),
        (Some(0), tcp(v4_options(), [1, 80], none)),
        (Some(1), tcp(v4(CLIENT, SERVER), [1, 80], tree)),
        (None, tcp(v4(CLIENT, SERVER), [1, 5999], syn)),
        (Some(2), tcp(v4(CLIENT, SERVER), [1, 6000], syn)),
        (Some(2), tcp(v4(CLIENT, SERVER), [1, 6063], syn)),
        (None, tcp(v4(CLIENT, SERVER), [1, 6064], syn)),
        (None, tcp(v4(CLIENT, SERVER), [1, 6000], |h| (h.syn, h.ack) = (true, true))),
        (Some(4), udp(v4(CLIENT, SERVER), [1, 1900], &[])),
        (None, udp(v4(CLIENT, SERVER), [1, 1901], &[])),
        (Some(5), echo(v4(CLIENT, SERVER), true, 9)),
    ] {
        let before = counted(&detector);
        let ran = detector.send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &sent));
        let mut wanted = before;
        number.into_iter().for_each(|number: usize| wanted[number] += 1);
        assert_eq!(counted(&detector), wanted);
    }
}

/// Packets of the client reported under each signature.
fn counted(detector: &InstalledForwarder) -> [u64; 8] {
    [0, 1, 2, 3, 4, 5, 6, 7]
        .map(|number| detector.entry("events", &event(CLIENT, number)).first().copied().unwrap_or(0))
}

#[test]
fn reports_have_times_and_are_apart_by_source() {
    let mut detector = ready();
    for (now, source) in [(100, CLIENT), (250, SERVER), (300, CLIENT)] {
        detector.bench.context.now = now;
        detector.send(&udp(v4(source, [192, 0, 2, 9]), [1, 1900], &[]));
    }
    assert_eq!(detector.entry("events", &event(CLIENT, 4)), [2, 100, 300]);
    assert_eq!(detector.entry("events", &event(SERVER, 4)), [1, 250, 250]);
    detector.send(&udp(v6(), [1, 1900], &[]));
    assert_eq!(detector.entry("events", &[&CLIENT6[..], &[4, 0, 0, 0]].concat()), [1, 300, 300]);
}

#[test]
fn filtered_sources_are_dropped_and_not_reported() {
    let mut detector = ready();
    let source = [10, 6, 6, 6];
    for sent in [udp(v4(source, SERVER), [1, 1900], &[]), tcp(v4(source, SERVER), [1, 80], ack)] {
        assert_eq!(detector.send(&sent).verdict, Verdict::Drop(Some(0)));
    }
    assert_eq!(detector.entry("filters", &mapped(source)), [2]);
    assert_eq!(detector.entry("events", &event(source, 4)), []);
    // A filter of an IPv6 address, after its report.
    let sent = udp(v6(), [1, 1900], &[]);
    assert_eq!(detector.send(&sent).verdict, Verdict::Pass);
    detector.put("filters", &CLIENT6, &[0; 8]);
    assert_eq!(detector.send(&sent).verdict, Verdict::Drop(Some(0)));
    // Whatever they send.
    let later = patched(&udp(v4(source, SERVER), [1, 1900], &[]), 20, &[0, 1]);
    let others = [&[LATER6][..], &[OPTIONS6], &[OPTIONS6; 9]].map(|chain| extended(&sent, chain));
    for sent in others.iter().chain([&later]) {
        assert_eq!(detector.send(sent).verdict, Verdict::Drop(Some(0)));
    }
}

#[test]
fn extension_headers_hide_nothing() {
    let mut detector = ready();
    for chain in [&[OPTIONS6][..], &[FIRST6, OPTIONS6]] {
        detector.send(&extended(&udp(v6(), [1, 1900], &[]), chain));
    }
    assert_eq!(detector.entry("events", &[&CLIENT6[..], &[4, 0, 0, 0]].concat())[0], 2);
}

#[test]
fn without_signatures_nothing_is_reported() {
    let mut detector = InstalledForwarder::new("detector", 0);
    for sent in [udp(v4(CLIENT, SERVER), [0, 0], &[]), tcp(v4(CLIENT, SERVER), [0, 0], |_| ())] {
        assert_eq!(detector.send(&sent).verdict, Verdict::Pass);
        // IPv6 hop-by-hop options have protocol number 0, which an unused signature has, too.
        assert_eq!(detector.send(&patched(&sent, 23, &[0])).verdict, Verdict::Pass);
    }
    assert!(detector.bench.maps.named("events").unwrap().is_empty());
}
