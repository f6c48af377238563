//! Minimal IP.

use super::bench::InstalledForwarder;
use super::frames::*;
use etherparse::PacketBuilder;
use longwire_program::{Redirect, Verdict};

const NEXT: [u8; 6] = [0xaa, 1, 2, 3, 4, 5];
const OWN: [u8; 6] = [0xbb, 1, 2, 3, 4, 6];

/// Routes to port 7, with its next hop.
pub fn ready() -> InstalledForwarder {
    let state = [&NEXT[..], &OWN, &[8, 0, 0, 0]].concat();
    InstalledForwarder::with("minimal_ip", &state)
}

#[test]
fn forwards() {
    let mut minimal = ready();
    for (sent, ttl, time_to_live) in
        [(tcp(v4(CLIENT, SERVER), [1024, 80], ack), TTL, 63), (udp(v6(), [5000, 53], b"name"), HOP_LIMIT, 63)]
    {
        let ran = minimal.send(&sent);
        assert_eq!(ran.verdict, Verdict::Redirect(Redirect::Port(7)));
        assert_eq!(ran.packet[..12], [NEXT, OWN].concat());
        assert_eq!(ran.packet[ttl], time_to_live);
        assert_checksums(&ran.packet);
        let mut others = ran.packet;
        others[..12].copy_from_slice(&sent[..12]);
        others[ttl] += 1;
        if sent[12..14] == [8, 0] {
            others[CHECK..CHECK + 2].copy_from_slice(&sent[CHECK..CHECK + 2]);
        }
        assert_eq!(others, sent);
    }
}

#[test]
fn every_checksum_is_followed() {
    // Identification numbers cover all checksums, and TTLs the carries.
    let mut minimal = ready();
    for ttl in [2, 3, 64, 128, 255] {
        for identification in (0..=u16::MAX).step_by(97) {
            let mut header =
                etherparse::Ipv4Header::new(8, ttl, etherparse::ip_number::UDP, CLIENT, SERVER).unwrap();
            header.identification = identification;
            let ip = PacketBuilder::ethernet2(MACS[1], MACS[0]);
            let sent = udp(ip.ip(etherparse::IpHeaders::Ipv4(header, Default::default())), [1, 2], &[]);
            let ran = minimal.send(&sent);
            assert_eq!(ran.packet[TTL], ttl - 1);
            assert_checksums(&ran.packet);
        }
    }
}

#[test]
fn leaves_alone_what_is_not_its_own() {
    let plain = tcp(v4(CLIENT, SERVER), [1024, 80], ack);
    let six = udp(v6(), [5000, 53], &[]);
    for (what, sent) in [
        ("TTL 1", patched(&plain, TTL, &[1])),
        ("TTL 0", patched(&plain, TTL, &[0])),
        ("options", tcp(v4_options(), [1024, 80], ack)),
        ("ARP", patched(&plain, 12, &[8, 6])),
        ("hop limit 1", patched(&six, HOP_LIMIT, &[1])),
    ] {
        let ran = ready().send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &sent), "{what}");
    }
    let ran = InstalledForwarder::new("minimal_ip", 16).send(&plain);
    assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &plain), "nothing set");
}
