//! DSCP marker.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

fn marks(dscp: u8) -> InstalledForwarder {
    InstalledForwarder::with("dscp_marker", &[dscp, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// Expedited forwarding.
pub fn ready() -> InstalledForwarder {
    marks(46)
}

#[test]
fn code_points_are_written_and_ecn_stays() {
    let plain = udp(v4(CLIENT, SERVER), [1, 2], b"data");
    let options = tcp(v4_options(), [1, 2], ack);
    for dscp in 0..64 {
        let mut marker = marks(dscp);
        for ecn in 0..4 {
            for sent in [&plain, &options] {
                let sent = patched(sent, 15, &[ecn]);
                let ran = marker.send(&sent);
                let fixed = ran.packet[CHECK..CHECK + 2].to_vec();
                assert_eq!(ran.packet, patched(&patched(&sent, 15, &[dscp << 2 | ecn]), CHECK, &fixed));
                // The packet's own checksum is right for a type of service of 0.
                if ecn == 0 {
                    assert_checksums(&ran.packet);
                }
            }
        }
    }
}

#[test]
fn code_points_of_ipv6() {
    // Traffic class 0xb9, of which ECN is 1, and flow label 0xabcde; afterwards class 0x2d for AF11 (10) and
    // ECN 1.
    let sent = patched(&udp(v6(), [1, 2], b"data"), 14, &[0x6b, 0x9a, 0xbc, 0xde]);
    let ran = marks(10).send(&sent);
    assert_eq!((ran.verdict, ran.packet), (Verdict::Pass, patched(&sent, 14, &[0x62, 0x9a, 0xbc, 0xde])));
}

#[test]
fn what_changes_is_counted() {
    let mut marker = ready();
    let sent = udp(v4(CLIENT, SERVER), [1, 2], b"data");
    let marked = marker.send(&sent).packet;
    assert_eq!((marked[15], marker.double(8)), (46 << 2, 1));
    assert_eq!((marker.send(&marked).packet, marker.double(8)), (marked, 1));
    let arp = patched(&sent, 12, &[8, 6]);
    assert_eq!((marker.send(&arp).packet, marker.double(8)), (arp, 1));
    assert_eq!(InstalledForwarder::new("dscp_marker", 16).send(&sent).packet, sent, "not on");
    assert_eq!(marks(46 | 0xc0).send(&sent).packet[15], 46 << 2, "six bits");
}
