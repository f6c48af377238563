//! Port filter.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

/// Ranges, as number of ports and first port: 20 to 23, 8000 to 8999, 65535 only, and an unused one; last, 0
/// only.
pub fn ready() -> InstalledForwarder {
    let ranges: [[u16; 2]; 5] = [[4, 20], [1000, 8000], [1, 65535], [0, 0], [1, 0]];
    let state: Vec<u8> = ranges.as_flattened().iter().flat_map(|number| number.to_le_bytes()).collect();
    InstalledForwarder::with("port_filter", &state)
}

#[test]
fn ranges_are_filtered() {
    let mut filter = ready();
    for (port, verdict) in [
        (19, Verdict::Pass),
        (20, Verdict::Drop(Some(0))),
        (23, Verdict::Drop(Some(0))),
        (24, Verdict::Pass),
        (7999, Verdict::Pass),
        (8000, Verdict::Drop(Some(1))),
        (8999, Verdict::Drop(Some(1))),
        (9000, Verdict::Pass),
        (65534, Verdict::Pass),
        (65535, Verdict::Drop(Some(2))),
        (0, Verdict::Drop(Some(4))),
        (1, Verdict::Pass),
    ] {
        // A source port in a range does not matter.
        for sent in [
            tcp(v4(CLIENT, SERVER), [20, port], syn),
            tcp(v4_options(), [20, port], syn),
            udp(v4(CLIENT, SERVER), [20, port], &[]),
            udp(v6(), [20, port], &[]),
        ] {
            let ran = filter.send(&sent);
            assert_eq!((ran.verdict, &ran.packet), (verdict, &sent), "{port}");
        }
    }
}

#[test]
fn ranges_may_be_as_long_as_can_be() {
    // 65535 ports from 1 are all but 0; 65535 ports from 2, wrapping around, are all but 1.
    for (first, spared) in [(1, 0), (2, 1)] {
        let mut filter =
            InstalledForwarder::with("port_filter", &[&[0xff, 0xff, first, 0][..], &[0; 16]].concat());
        for port in [0, 1, 2, 65534, 65535] {
            let verdict = if port == spared { Verdict::Pass } else { Verdict::Drop(Some(0)) };
            assert_eq!(
                filter.send(&udp(v4(CLIENT, SERVER), [9, port], &[])).verdict,
                verdict,
                "{first} {port}"
            );
        }
    }
}

#[test]
fn what_has_no_ports_passes() {
    let plain = udp(v4(CLIENT, SERVER), [20, 20], &[0, 20, 0, 20]);
    for (what, sent) in [
        ("second fragment", patched(&plain, 20, &[0, 1])),
        ("ICMP", patched(&plain, 23, &[1])),
        ("ARP", patched(&plain, 12, &[8, 6])),
    ] {
        assert_eq!(ready().send(&sent).verdict, Verdict::Pass, "{what}");
    }
    assert_eq!(
        ready().send(&patched(&plain, 20, &[0x20, 0])).verdict,
        Verdict::Drop(Some(0)),
        "first fragment"
    );
    assert_eq!(InstalledForwarder::new("port_filter", 20).send(&plain).verdict, Verdict::Pass, "nothing set");
}

#[test]
fn extension_headers_hide_no_port() {
    let (open, shut) = (udp(v6(), [9, 80], b"data"), udp(v6(), [9, 20], b"data"));
    let hop = (0, OPTIONS6.1);
    let chains: &[&[(u8, &[u8])]] = &[
        &[OPTIONS6],
        &[hop, OPTIONS6],
        &[FIRST6],
        &[FIRST6, OPTIONS6],
        &[hop, (43, &[0; 8]), FIRST6],
        &[OPTIONS6; 8],
    ];
    for chain in chains {
        assert_eq!(ready().send(&extended(&open, chain)).verdict, Verdict::Pass, "{chain:?}");
        assert_eq!(ready().send(&extended(&shut, chain)).verdict, Verdict::Drop(Some(0)), "{chain:?}");
    }
    // Packets without ports, and those whose ports can't be read.
    let hidden = Verdict::Drop(Some(5));
    let first = extended(&shut, &[FIRST6, OPTIONS6]);
    for (what, sent, verdict) in [
        ("second fragment", extended(&shut, &[LATER6]), Verdict::Pass),
        ("ICMP", extended(&patched(&shut, 20, &[58]), &[OPTIONS6]), Verdict::Pass),
        ("encrypted", patched(&shut, 20, &[50]), Verdict::Pass),
        ("nothing", patched(&shut, 20, &[59]), Verdict::Pass),
        ("nine headers", extended(&shut, &[OPTIONS6; 9]), hidden),
        ("nine headers, to a port that is not filtered", extended(&open, &[OPTIONS6; 9]), hidden),
        ("ends within the second header", first[..TRANSPORT6 + 9].to_vec(), hidden),
        (
            "ends before its ports, which are in the second fragment",
            first[..TRANSPORT6 + 16].to_vec(),
            hidden,
        ),
        ("UDP of IPv6 without ports", shut[..TRANSPORT6 + 3].to_vec(), hidden),
        (
            "UDP of IPv4 without ports",
            udp(v4(CLIENT, SERVER), [9, 80], &[])[..TRANSPORT + 3].to_vec(),
            hidden,
        ),
    ] {
        assert_eq!(ready().send(&sent).verdict, verdict, "{what}");
    }
}
