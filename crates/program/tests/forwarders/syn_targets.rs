//! SYN targets.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

pub fn ready() -> InstalledForwarder {
    InstalledForwarder::new("syn_targets", 0)
}

#[test]
fn syns_are_counted_by_address_and_port() {
    let mut targets = ready();
    let both = |header: &mut etherparse::TcpHeader| (header.syn, header.ack) = (true, true);
    for sent in [
        tcp(v4(CLIENT, SERVER), [1024, 80], syn),
        tcp(v4([10, 0, 0, 7], SERVER), [1, 80], syn),
        tcp(v4(CLIENT, SERVER), [1024, 443], syn),
        tcp(v6(), [1024, 80], syn),
        tcp(v4(CLIENT, SERVER), [1024, 80], both),
        tcp(v4(CLIENT, SERVER), [1024, 80], ack),
        udp(v4(CLIENT, SERVER), [1024, 80], &[2; 20]),
    ] {
        let ran = targets.send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &sent));
    }
    let key = |address: &[u8], port: u32| [address, &port.to_le_bytes()].concat();
    assert_eq!(targets.entry("targets", &key(&mapped(SERVER), 80)), [2]);
    assert_eq!(targets.entry("targets", &key(&mapped(SERVER), 443)), [1]);
    assert_eq!(targets.entry("targets", &key(&SERVER6, 80)), [1]);
    assert_eq!(targets.bench.maps.named("targets").unwrap().len(), 3);
}
