//! SYN filter.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

/// Passes a SYN every 100 ns.
pub fn ready() -> InstalledForwarder {
    InstalledForwarder::with("syn_filter", &[&100u64.to_le_bytes()[..], &[0; 16]].concat())
}

#[test]
fn connections_that_are_there_go_on() {
    let mut filter = InstalledForwarder::new("syn_filter", 24);
    let both = |header: &mut etherparse::TcpHeader| (header.syn, header.ack) = (true, true);
    for (sent, verdict) in [
        (tcp(v4(CLIENT, SERVER), [1024, 80], ack), Verdict::Pass),
        (tcp(v4(CLIENT, SERVER), [1024, 80], both), Verdict::Pass),
        (tcp(v4(CLIENT, SERVER), [1024, 80], syn), Verdict::Drop(Some(0))),
        (tcp(v6(), [1024, 80], syn), Verdict::Drop(Some(0))),
        (tcp(v4_options(), [1024, 80], syn), Verdict::Drop(Some(0))),
        (extended(&tcp(v6(), [1024, 80], syn), &[OPTIONS6]), Verdict::Drop(Some(0))),
        (udp(v4(CLIENT, SERVER), [1024, 80], &[2; 20]), Verdict::Pass),
    ] {
        let ran = filter.send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (verdict, &sent));
    }
    assert_eq!((filter.word(16), filter.word(20)), (4, 4));
}

#[test]
fn one_passes_in_each_interval() {
    let mut filter = ready();
    let drop = Verdict::Drop(Some(0));
    for (now, verdict) in [
        (1000, Verdict::Pass),
        (1000, drop),
        (1099, drop),
        (1100, Verdict::Pass),
        (1350, Verdict::Pass),
        (1449, drop),
    ] {
        filter.bench.context.now = now;
        assert_eq!(filter.send(&tcp(v4(CLIENT, SERVER), [1024, 80], syn)).verdict, verdict, "{now}");
    }
    assert_eq!((filter.word(16), filter.word(20)), (6, 3));
}
