//! SYN monitor.

use super::bench::Installed;
use super::frames::*;
use longwire_program::Verdict;

/// Three SYNs raise the alarm.
pub fn ready() -> Installed {
    Installed::with("syn_monitor", &[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0])
}

#[test]
fn syns_are_counted() {
    let mut monitor = ready();
    let both = |header: &mut etherparse::TcpHeader| (header.syn, header.ack) = (true, true);
    for (sent, syns, alarm) in [
        (tcp(v4(CLIENT, SERVER), [1024, 80], syn), 1, 0),
        (tcp(v4(CLIENT, SERVER), [1024, 80], both), 1, 0),
        (tcp(v4(CLIENT, SERVER), [1024, 80], ack), 1, 0),
        (udp(v4(CLIENT, SERVER), [1024, 80], &[2; 20]), 1, 0),
        (tcp(v6(), [1024, 80], syn), 2, 0),
        (tcp(v4_options(), [1024, 80], syn), 3, 1),
        (tcp(v4(CLIENT, SERVER), [1024, 80], syn), 4, 1),
    ] {
        let ran = monitor.send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &sent));
        assert_eq!((monitor.word(0), monitor.word(8)), (syns, alarm));
    }
    // The next interval.
    monitor.set(&[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    monitor.send(&tcp(v4(CLIENT, SERVER), [1024, 80], syn));
    assert_eq!((monitor.word(0), monitor.word(8)), (1, 0));
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

#[test]
fn without_a_limit_there_is_no_alarm() {
    let mut monitor = Installed::new("syn_monitor", 12);
    for _ in 0..10 {
        monitor.send(&tcp(v4(CLIENT, SERVER), [1024, 80], syn));
    }
    assert_eq!((monitor.word(0), monitor.word(8)), (10, 0));
}
