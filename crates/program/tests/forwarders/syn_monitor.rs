//! SYN monitor.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

pub fn ready() -> InstalledForwarder {
    InstalledForwarder::new("syn_monitor", 4)
}

#[test]
fn syns_are_counted() {
    let mut monitor = ready();
    let both = |header: &mut etherparse::TcpHeader| (header.syn, header.ack) = (true, true);
    for (sent, syns) in [
        (tcp(v4(CLIENT, SERVER), [1024, 80], syn), 1),
        (tcp(v4(CLIENT, SERVER), [1024, 80], both), 1),
        (tcp(v4(CLIENT, SERVER), [1024, 80], ack), 1),
        (udp(v4(CLIENT, SERVER), [1024, 80], &[2; 20]), 1),
        (tcp(v6(), [1024, 80], syn), 2),
        (tcp(v4_options(), [1024, 80], syn), 3),
        (tcp(v4(CLIENT, SERVER), [1024, 80], syn), 4),
    ] {
        let ran = monitor.send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &sent));
        assert_eq!(monitor.word(0), syns);
    }
    // The next interval.
    monitor.set(&[0; 4]);
    monitor.send(&tcp(v4(CLIENT, SERVER), [1024, 80], syn));
    assert_eq!(monitor.word(0), 1);
}

#[test]
fn syns_behind_extension_headers_are_counted() {
    let mut monitor = ready();
    let sent = tcp(v6(), [1024, 80], syn);
    for (chain, syns) in [(&[OPTIONS6][..], 1), (&[OPTIONS6, FIRST6], 2), (&[LATER6], 2), (&[OPTIONS6; 9], 2)]
    {
        monitor.send(&extended(&sent, chain));
        assert_eq!(monitor.word(0), syns, "{chain:?}");
    }
}
