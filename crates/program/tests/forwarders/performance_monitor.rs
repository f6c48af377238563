//! Performance monitor.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

fn key(address: [u8; 4], side: u8) -> Vec<u8> {
    [&mapped(address)[..], &[side, 0, 0, 0]].concat()
}

/// All properties are counted; of addresses only the client's as source and the server's as destination, in
/// IPv4 and IPv6.
pub fn ready() -> InstalledForwarder {
    let monitor = InstalledForwarder::with("performance_monitor", &[31, 0, 0, 0]);
    monitor.put("addresses", &key(CLIENT, 0), &[0; 16]);
    monitor.put("addresses", &key(SERVER, 1), &[0; 16]);
    monitor.put("addresses", &[&CLIENT6[..], &[0; 4]].concat(), &[0; 16]);
    monitor
}

#[test]
fn packets_and_bytes_are_counted_by_property() {
    let mut monitor = ready();
    let request = tcp(v4(CLIENT, SERVER), [1024, 80], syn);
    let longer = udp(v4(CLIENT, SERVER), [1024, 53], &[0; 100]);
    let answer = tcp(v4(SERVER, CLIENT), [80, 1024], ack);
    let six = tcp(v6(), [1024, 80], syn);
    let other = vec![0xff; 60];
    // Ports 3 and 67, which is 3 modulo 64; and 4.
    for (sent, port) in [(&request, 3), (&longer, 67), (&answer, 4), (&six, 4), (&other, 4)] {
        monitor.bench.context.ingress = port;
        let ran = monitor.send(sent);
        assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, sent));
    }
    // 14 + 20 + 20 + 4 bytes; 14 + 20 + 8 + 100; 14 + 40 + 20 + 4.
    for (map, key, counted) in [
        ("ports", vec![3, 0, 0, 0], vec![2, 58 + 142]),
        ("ports", vec![4, 0, 0, 0], vec![3, 58 + 78 + 60]),
        ("protocols", vec![6, 0, 0, 0], vec![3, 58 + 58 + 78]),
        ("protocols", vec![17, 0, 0, 0], vec![1, 142]),
        ("flags", vec![0x02, 0, 0, 0], vec![2, 58 + 78]),
        ("flags", vec![0x10, 0, 0, 0], vec![1, 58]),
        ("addresses", key(CLIENT, 0), vec![2, 58 + 142]),
        ("addresses", key(SERVER, 1), vec![2, 58 + 142]),
        ("addresses", [&CLIENT6[..], &[0; 4]].concat(), vec![1, 78]),
        // Not configured.
        ("addresses", key(CLIENT, 1), vec![]),
    ] {
        assert_eq!(monitor.entry(map, &key), counted, "{map} {key:?}");
    }
}

#[test]
fn later_fragments_are_counted_without_flags() {
    let (four, six) = (tcp(v4(CLIENT, SERVER), [1024, 80], ack), tcp(v6(), [1024, 80], ack));
    // First and later fragments, and too many headers, the last of which says TCP.
    let sent = [
        patched(&four, 20, &[0x20, 0]),
        patched(&four, 20, &[0, 9]),
        extended(&six, &[FIRST6]),
        extended(&six, &[LATER6]),
        extended(&six, &[OPTIONS6; 9]),
    ];
    let mut monitor = ready();
    for frame in &sent {
        assert_eq!(monitor.send(frame).verdict, Verdict::Pass);
    }
    let bytes = |sent: &[Vec<u8>]| sent.iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!(monitor.entry("protocols", &[6, 0, 0, 0]), [5, bytes(&sent)]);
    assert_eq!(monitor.entry("addresses", &key(CLIENT, 0)), [2, bytes(&sent[..2])]);
    assert_eq!(monitor.entry("addresses", &[&CLIENT6[..], &[0; 4]].concat()), [3, bytes(&sent[2..])]);
    assert_eq!(monitor.entry("flags", &[0x10, 0, 0, 0])[0], 2);
}

#[test]
fn what_is_not_asked_for_is_not_counted() {
    let sent = tcp(v4(CLIENT, SERVER), [1024, 80], syn);
    for (properties, counted) in [
        (0, [0, 0, 0, 0, 0]),
        (1, [1, 0, 0, 0, 0]),
        (2, [0, 1, 0, 0, 0]),
        (4, [0, 0, 1, 0, 0]),
        (8, [0, 0, 0, 1, 0]),
        (16, [0, 0, 0, 0, 1]),
    ] {
        let mut monitor = ready();
        monitor.set(&[properties, 0, 0, 0]);
        monitor.send(&sent);
        let packets = [
            ("ports", vec![3, 0, 0, 0]),
            ("protocols", vec![6, 0, 0, 0]),
            ("flags", vec![2, 0, 0, 0]),
            ("addresses", key(CLIENT, 0)),
            ("addresses", key(SERVER, 1)),
        ]
        .map(|(map, key)| monitor.entry(map, &key)[0]);
        assert_eq!(packets, counted, "{properties}");
    }
}
