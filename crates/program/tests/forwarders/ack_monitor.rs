//! ACK monitor.

use super::bench::InstalledForwarder;
use super::frames::*;
use etherparse::TcpHeader;
use longwire_program::Verdict;

/// Initial state.
pub fn ready() -> InstalledForwarder {
    InstalledForwarder::new("ack_monitor", 12)
}

fn acknowledges(number: u32) -> impl Fn(&mut TcpHeader) {
    move |header| (header.ack, header.acknowledgment_number) = (true, number)
}

#[test]
fn repeated_acknowledgements_are_counted() {
    let mut monitor = ready();
    let fin = |header: &mut TcpHeader| {
        acknowledges(900)(header);
        header.fin = true;
    };
    // Packets, then: last number, its repetitions, all repetitions.
    for (sent, state) in [
        (tcp_with(v4(CLIENT, SERVER), [1, 2], &[], acknowledges(500)), [500, 0, 0]),
        (tcp_with(v4(CLIENT, SERVER), [1, 2], &[], acknowledges(500)), [500, 1, 1]),
        (tcp_with(v4_options(), [1, 2], &[], acknowledges(500)), [500, 2, 2]),
        (tcp_with(v4(CLIENT, SERVER), [1, 2], b"data", acknowledges(500)), [500, 2, 2]),
        (tcp_with(v4(CLIENT, SERVER), [1, 2], b"data", acknowledges(900)), [900, 0, 2]),
        (tcp_with(v4(CLIENT, SERVER), [1, 2], &[], fin), [900, 0, 2]),
        (tcp_with(v6(), [1, 2], &[], acknowledges(900)), [900, 1, 3]),
        (udp(v4(CLIENT, SERVER), [1, 2], &[0; 40]), [900, 1, 3]),
    ] {
        let ran = monitor.send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &sent));
        assert_eq!([0, 4, 8].map(|place| monitor.word(place)), state);
    }
    // TCP options are not data.
    let options = |header: &mut TcpHeader| {
        acknowledges(900)(header);
        header.set_options_raw(&[1; 8]).unwrap();
    };
    monitor.send(&tcp_with(v4(CLIENT, SERVER), [1, 2], &[], options));
    assert_eq!(monitor.word(8), 4);
    // Nor is padding of a short frame.
    let mut padded = tcp_with(v4(CLIENT, SERVER), [1, 2], &[], acknowledges(900));
    padded.resize(60, 0);
    monitor.send(&padded);
    assert_eq!(monitor.word(8), 5);
}
