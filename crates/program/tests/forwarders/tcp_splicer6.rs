//! TCP splicer for IPv6.

use super::bench::InstalledForwarder;
use super::frames::*;
use etherparse::{PacketBuilder, PacketBuilderStep, TcpHeader};
use longwire_program::Verdict;

/// Addresses of the proxy: towards the client, and towards the server.
const NEAR6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
const FAR6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1];

fn from(source: [u8; 16], destination: [u8; 16]) -> PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ethernet2(MACS[1], MACS[0]).ipv6(source, destination, 64)
}

/// From the client to the server: sequence numbers plus 500, acknowledgements minus 7, window units four
/// times as large.
fn state() -> Vec<u8> {
    let ports = [40000u16.to_be_bytes(), 80u16.to_be_bytes()];
    let numbers = [500u32.to_le_bytes(), 7u32.wrapping_neg().to_le_bytes()];
    [&FAR6[..], &SERVER6, ports.as_flattened(), numbers.as_flattened(), &[0, 0, 2, 0]].concat()
}

pub fn ready() -> InstalledForwarder {
    InstalledForwarder::with("tcp_splicer6", &state())
}

#[test]
fn one_connection_goes_on_in_the_other() {
    for high in 0..=255u32 {
        let numbers = |sequence: u32, acknowledgement: u32, window| {
            move |header: &mut TcpHeader| {
                header.ack = true;
                (header.sequence_number, header.acknowledgment_number) = (sequence, acknowledgement);
                header.window_size = window;
            }
        };
        let (sequence, acknowledgement) = (high << 24 | 0x00ff_ff00, (255 - high) << 24);
        let sent = tcp(from(CLIENT6, NEAR6), [1024, 8080], numbers(sequence, acknowledgement, 1000));
        let moved = numbers(sequence.wrapping_add(500), acknowledgement.wrapping_sub(7), 4000);
        let ran = ready().send(&sent);
        assert_eq!(
            (ran.verdict, &ran.packet),
            (Verdict::Pass, &tcp(from(FAR6, SERVER6), [40000, 80], moved))
        );
        assert_checksums(&ran.packet);
    }
}

#[test]
fn data_is_held_back_before_it_is_spliced_and_ends_are_seen() {
    let mut held = [0; 48];
    held[32] = 1;
    let mut splicer = InstalledForwarder::with("tcp_splicer6", &held);
    let ends = |header: &mut TcpHeader| (header.ack, header.fin) = (true, true);
    let client = || from(CLIENT6, NEAR6);
    for (what, sent, verdict) in [
        ("acknowledgement", tcp_with(client(), [1024, 8080], &[], ack), Verdict::Pass),
        ("data", tcp_with(client(), [1024, 8080], &[7], ack), Verdict::Drop(Some(0))),
        ("FIN", tcp_with(client(), [1024, 8080], &[], ends), Verdict::Drop(Some(0))),
        ("SYN", tcp_with(client(), [1024, 8080], &[], syn), Verdict::Pass),
    ] {
        let ran = splicer.send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (verdict, &sent), "{what}");
    }
    let mut splicer = ready();
    splicer.send(&tcp(client(), [1024, 8080], ends));
    assert_eq!(splicer.word(44), 1 | 2 << 16);
}

#[test]
fn what_cannot_be_spliced_goes_to_the_proxy() {
    let plain = tcp(from(CLIENT6, NEAR6), [1024, 8080], ack);
    for (what, sent) in [
        ("SYN", tcp(from(CLIENT6, NEAR6), [1024, 8080], syn)),
        ("UDP", udp(from(CLIENT6, NEAR6), [1024, 8080], &[0; 40])),
        ("extension header", patched(&plain, 20, &[43])),
        ("IPv4", tcp(v4(CLIENT, SERVER), [1024, 8080], ack)),
    ] {
        let ran = ready().send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &sent), "{what}");
    }
    let ran = InstalledForwarder::new("tcp_splicer6", 48).send(&plain);
    assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &plain), "nothing set");
}
