//! TCP splicer.

use super::bench::InstalledForwarder;
use super::frames::*;
use etherparse::TcpHeader;
use longwire_program::Verdict;

/// Addresses of the proxy: towards the client, and towards the server.
const NEAR: [u8; 4] = [10, 0, 0, 254];
const FAR: [u8; 4] = [198, 51, 100, 7];

/// Initial sequence numbers: of the client, of the proxy towards it; of the proxy towards the server, of the
/// server.
const C: u32 = 1_000;
const P: u32 = 0xffff_ff00;
const Q: u32 = 0x8000_0000;
const S: u32 = 77;
/// Bytes that the proxy has read from the client (a request) and written to it (a greeting); and has written
/// to the server and read from it.
const READ: u32 = 300;
const WRITTEN: u32 = 20;
const PASSED_ON: u32 = 250;
const ANSWERED: u32 = 10;

/// Address and port of an end.
type End = ([u8; 4], u16);

/// The proxy's ends: towards the client, and towards the server.
const NEAR_END: End = (NEAR, 8080);
const FAR_END: End = (FAR, 40000);
const CLIENT_END: End = (CLIENT, 1024);
const SERVER_END: End = (SERVER, 80);

/// State that rewrites segments between the old ends to the new ones.
fn state(old: [End; 2], new: [End; 2], sequence: u32, acknowledgement: u32) -> Vec<u8> {
    let addresses = |ends: [End; 2]| ends.map(|(address, _)| address).concat();
    let ports = |ends: [End; 2]| ends.map(|(_, port)| port.to_be_bytes()).concat();
    let sum = |bytes: &[u8]| -> i64 {
        bytes.chunks(2).map(|word| i64::from(u16::from_be_bytes([word[0], word[1]]))).sum()
    };
    // 1 to 65535: see the program.
    let change = |by: i64| ((by + 0xffff * 100 - 1) % 0xffff + 1) as u16;
    let header = sum(&addresses(new)) - sum(&addresses(old));
    let numbers = sum(&sequence.to_be_bytes()) + sum(&acknowledgement.to_be_bytes());
    let segment = header + sum(&ports(new)) - sum(&ports(old)) + numbers;
    [
        addresses(new),
        ports(new),
        sequence.to_le_bytes().to_vec(),
        acknowledgement.to_le_bytes().to_vec(),
        [change(segment), change(header)].map(u16::to_be_bytes).concat(),
        vec![0; 4],
    ]
    .concat()
}

/// Shifts of the numbers of the client's bytes, and of the server's.
fn shifts() -> (u32, u32) {
    let client = (Q + PASSED_ON).wrapping_sub(C + READ);
    let server = P.wrapping_add(WRITTEN).wrapping_sub(S + ANSWERED);
    (client, server)
}

/// State from the client to the server, with these shifts.
fn there(sequence: u32, acknowledgement: u32) -> Vec<u8> {
    state([CLIENT_END, NEAR_END], [FAR_END, SERVER_END], sequence, acknowledgement)
}

/// From the client to the server.
pub fn ready() -> InstalledForwarder {
    let (client, server) = shifts();
    let state = there(client, server.wrapping_neg());
    InstalledForwarder::with("tcp_splicer", &state)
}

/// As [`ready`], with window units four times as large.
pub fn scaled() -> InstalledForwarder {
    let (client, server) = shifts();
    let mut state = there(client, server.wrapping_neg());
    state[26] = 2;
    InstalledForwarder::with("tcp_splicer_scaled", &state)
}

fn back() -> InstalledForwarder {
    let (client, server) = shifts();
    let state = state([SERVER_END, FAR_END], [NEAR_END, CLIENT_END], server, client.wrapping_neg());
    InstalledForwarder::with("tcp_splicer", &state)
}

fn numbers(sequence: u32, acknowledgement: u32) -> impl Fn(&mut TcpHeader) {
    move |header| {
        header.ack = true;
        header.sequence_number = sequence;
        header.acknowledgment_number = acknowledgement;
    }
}

#[test]
fn one_connection_goes_on_in_the_other() {
    // The client's next byte, after SYN and the request, is the server's next. The client has received all
    // data.
    let sent = tcp(v4(CLIENT, NEAR), [1024, 8080], numbers(C + 1 + READ, P.wrapping_add(1 + WRITTEN)));
    let wanted = tcp(v4(FAR, SERVER), [40000, 80], numbers(Q + 1 + PASSED_ON, S + 1 + ANSWERED));
    let mut there = ready();
    let ran = there.send(&sent);
    assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &wanted));
    assert_checksums(&ran.packet);

    // The server answers with 4 bytes, and has received the client's.
    let sent = tcp(v4(SERVER, FAR), [80, 40000], numbers(S + 1 + ANSWERED, Q + 1 + PASSED_ON + 4));
    let wanted = tcp(v4(NEAR, CLIENT), [8080, 1024], numbers(P.wrapping_add(1 + WRITTEN), C + 1 + READ + 4));
    let ran = back().send(&sent);
    assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &wanted));
    assert_checksums(&ran.packet);
    assert_eq!(there.word(24), 0);
}

#[test]
fn numbers_wrap_and_checksums_follow() {
    let mut splicer = ready();
    let (client, server) = shifts();
    for high in 0..=255u32 {
        let (sequence, acknowledgement) = (high << 24 | 0x00ff_ff00, (255 - high) << 24 | 0x0100);
        let sent = tcp(v4(CLIENT, NEAR), [1024, 8080], numbers(sequence, acknowledgement));
        let moved = numbers(sequence.wrapping_add(client), acknowledgement.wrapping_sub(server));
        assert_eq!(splicer.send(&sent).packet, tcp(v4(FAR, SERVER), [40000, 80], moved));
    }
}

/// All kinds of sums, with each number wrapping or not: as if the checksum were computed anew.
#[test]
fn checksums_are_those_of_the_new_segment() {
    let edges = [0, 1, 0xff, 0xffff, 0x1_0000, 0x7fff_ffff, 0xfffe_0001, 0xffff_0000, 0xffff_ffff];
    for added in edges {
        for number in edges {
            for step in 0..40 {
                let mut splicer = InstalledForwarder::with("tcp_splicer", &there(added, !added));
                let set = |sequence: u32, acknowledgement: u32| {
                    move |header: &mut TcpHeader| {
                        numbers(sequence, acknowledgement)(header);
                        header.urgent_pointer = step * 1637;
                    }
                };
                let sent = tcp(v4(CLIENT, NEAR), [1024, 8080], set(number, number ^ 0x5555));
                let moved = set(number.wrapping_add(added), (number ^ 0x5555).wrapping_add(!added));
                assert_eq!(splicer.send(&sent).packet, tcp(v4(FAR, SERVER), [40000, 80], moved));
            }
        }
    }
}

/// A checksum over zeros becomes 0, not 65535, as if computed anew.
#[test]
fn checksums_of_nothing_are_zero() {
    for (number, added) in [(1000, 500), (0xffff_ffff, 500), (0xffff_ff00, 0xffff_ff00)] {
        let shifted = u32::wrapping_add(number, added);
        let new = |urgent: u16| {
            tcp(v4(FAR, SERVER), [40000, 80], move |header: &mut TcpHeader| {
                numbers(shifted, 0)(header);
                header.urgent_pointer = urgent;
            })
        };
        // With the checksum itself as urgent pointer, the rest sums to zero.
        let plain = new(0);
        let urgent = u16::from_be_bytes([plain[50], plain[51]]);
        assert_eq!(new(urgent)[50..52], [0, 0]);
        let sent = tcp(v4(CLIENT, NEAR), [1024, 8080], move |header: &mut TcpHeader| {
            numbers(number, 0)(header);
            header.urgent_pointer = urgent;
        });
        let mut splicer = InstalledForwarder::with("tcp_splicer", &there(added, 0));
        assert_eq!(splicer.send(&sent).packet, new(urgent));
    }
}

#[test]
fn windows_are_scaled() {
    let (client, server) = shifts();
    for (left, right, sent, wanted) in [
        (0, 0, 1000, 1000),
        (3, 0, 1000, 8000),
        (7, 0, 511, 65_408),
        // Beyond the maximum.
        (7, 0, 512, 65_535),
        (14, 0, 65_535, 65_535),
        (0, 3, 1007, 125),
        (0, 14, 16_383, 0),
        (0, 14, 65_535, 3),
    ] {
        let mut state = there(client, server.wrapping_neg());
        (state[26], state[27]) = (left, right);
        let window = |window| move |header: &mut TcpHeader| (header.ack, header.window_size) = (true, window);
        let ran = InstalledForwarder::with("tcp_splicer_scaled", &state).send(&tcp(
            v4(CLIENT, NEAR),
            [1024, 8080],
            window(sent),
        ));
        assert_eq!(
            u16::from_be_bytes([ran.packet[48], ran.packet[49]]),
            wanted,
            "{sent} << {left} >> {right}"
        );
        assert_checksums(&ran.packet);
    }
}

#[test]
fn ends_are_seen() {
    let mut splicer = ready();
    let fin = |header: &mut TcpHeader| (header.ack, header.fin) = (true, true);
    splicer.send(&tcp(v4(CLIENT, NEAR), [1024, 8080], fin));
    assert_eq!(splicer.word(24), 1);
    let rst = |header: &mut TcpHeader| (header.ack, header.rst) = (true, true);
    splicer.send(&tcp(v4(CLIENT, NEAR), [1024, 8080], rst));
    assert_eq!(splicer.word(24), 4);
    splicer.send(&tcp(v4(CLIENT, NEAR), [1024, 8080], ack));
    assert_eq!(splicer.word(24), 4);
}

#[test]
fn data_is_held_back_before_it_is_spliced() {
    let mut held = [0; 28];
    held[3] = 1;
    let mut splicer = InstalledForwarder::with("tcp_splicer", &held);
    let ends = |header: &mut TcpHeader| (header.ack, header.fin) = (true, true);
    let resets = |header: &mut TcpHeader| (header.ack, header.rst) = (true, true);
    let data = tcp_with(v4(CLIENT, NEAR), [1024, 8080], &[7; 3], ack);
    for (what, sent, verdict) in [
        ("acknowledgement", tcp_with(v4(CLIENT, NEAR), [1024, 8080], &[], ack), Verdict::Pass),
        ("data", data.clone(), Verdict::Drop(Some(0))),
        ("FIN", tcp_with(v4(CLIENT, NEAR), [1024, 8080], &[], ends), Verdict::Drop(Some(0))),
        ("RST", tcp_with(v4(CLIENT, NEAR), [1024, 8080], &[], resets), Verdict::Pass),
        ("SYN", tcp_with(v4(CLIENT, NEAR), [1024, 8080], &[], syn), Verdict::Pass),
    ] {
        let ran = splicer.send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (verdict, &sent), "{what}");
    }
    // And is repeated.
    let (client, server) = shifts();
    splicer.set(&there(client, server.wrapping_neg()));
    assert_eq!(splicer.send(&data).verdict, Verdict::Pass);
}

#[test]
fn what_cannot_be_spliced_goes_to_the_proxy() {
    let plain = tcp(v4(CLIENT, NEAR), [1024, 8080], ack);
    for (what, sent) in [
        ("SYN", tcp(v4(CLIENT, NEAR), [1024, 8080], syn)),
        ("UDP", udp(v4(CLIENT, NEAR), [1024, 8080], &[0; 40])),
        ("options", tcp(v4_options(), [1024, 8080], ack)),
        ("first fragment", patched(&plain, 20, &[0x20, 0])),
        ("other fragment", patched(&plain, 20, &[0, 3])),
        ("IPv6", tcp(v6(), [1024, 8080], ack)),
    ] {
        let ran = ready().send(&sent);
        assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &sent), "{what}");
    }
    let ran = InstalledForwarder::new("tcp_splicer", 28).send(&plain);
    assert_eq!((ran.verdict, &ran.packet), (Verdict::Pass, &plain), "nothing set");
}
