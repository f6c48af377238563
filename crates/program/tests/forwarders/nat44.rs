//! NAT44.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

const PUBLIC: [u8; 4] = [203, 0, 113, 1];
/// Another inside host.
const PEER: [u8; 4] = [10, 0, 0, 2];
const MARK: u32 = 0x4e41_5434;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

fn bind(nat: &InstalledForwarder, protocol: u8, inside: ([u8; 4], u16), outside: ([u8; 4], u16)) {
    for (side, from, to) in [(0, inside, outside), (1, outside, inside)] {
        let end = |(address, port): ([u8; 4], u16)| [&address[..], &port.to_be_bytes()].concat();
        let value = [end(to), vec![0; 18]].concat();
        nat.put("bindings", &[end(from), vec![protocol, side]].concat(), &value);
    }
}

/// The state: the mark, the external address, and the client's network inside.
pub fn state(mark: u32) -> Vec<u8> {
    let words = [mark.to_le_bytes(), [0; 4], PUBLIC, [255; 4], [10, 0, 0, 0], [255, 0, 0, 0]];
    [words.as_flattened(), &[0; 24]].concat()
}

/// The client's port 5000 is 40001 outside, for TCP and UDP, and its echo identifier 5000 too; the peer's
/// 6000 is 40002.
pub fn ready() -> InstalledForwarder {
    let nat = InstalledForwarder::with("nat44", &state(MARK));
    for protocol in [ICMP, TCP, UDP] {
        bind(&nat, protocol, (CLIENT, 5000), (PUBLIC, 40001));
        bind(&nat, protocol, (PEER, 6000), (PUBLIC, 40002));
    }
    nat
}

#[test]
fn both_directions_are_translated() {
    let mut nat = ready();
    for (what, sent, wanted) in [
        ("TCP out", tcp(v4(CLIENT, SERVER), [5000, 80], ack), tcp(v4(PUBLIC, SERVER), [40001, 80], ack)),
        ("TCP in", tcp(v4(SERVER, PUBLIC), [80, 40001], ack), tcp(v4(SERVER, CLIENT), [80, 5000], ack)),
        ("UDP out", udp(v4(CLIENT, SERVER), [5000, 53], b"a"), udp(v4(PUBLIC, SERVER), [40001, 53], b"a")),
        ("UDP in", udp(v4(SERVER, PUBLIC), [53, 40001], b"b"), udp(v4(SERVER, CLIENT), [53, 5000], b"b")),
        ("ping", echo(v4(CLIENT, SERVER), true, 5000), echo(v4(PUBLIC, SERVER), true, 40001)),
        ("pong", echo(v4(SERVER, PUBLIC), false, 40001), echo(v4(SERVER, CLIENT), false, 5000)),
        ("hairpin", udp(v4(CLIENT, PUBLIC), [5000, 40002], b"c"), udp(v4(PUBLIC, PEER), [40001, 6000], b"c")),
    ] {
        let ran = nat.send(&sent);
        assert_eq!((ran.verdict, ran.effects.mark, &ran.packet), (Verdict::Pass, None, &wanted), "{what}");
        assert_checksums(&ran.packet);
    }
    // Two packets by the UDP source binding, at the bench's time.
    let key = [&CLIENT[..], &5000u16.to_be_bytes(), &[UDP, 0]].concat();
    assert_eq!(nat.entry("bindings", &key)[1..], [2, nat.bench.context.now]);
    // TCP flags: an ACK each way; after a SYN, only its own and later flags.
    let flags = |nat: &InstalledForwarder, address: [u8; 4], port: u16, side| {
        let key = [&address[..], &port.to_be_bytes(), &[TCP, side]].concat();
        nat.entry("bindings", &key)[0] >> 48
    };
    assert_eq!((flags(&nat, CLIENT, 5000, 0), flags(&nat, PUBLIC, 40001, 1)), (0x10, 0x10));
    let ends = |header: &mut etherparse::TcpHeader| (header.ack, header.fin) = (true, true);
    nat.send(&tcp(v4(CLIENT, SERVER), [5000, 80], ends));
    assert_eq!(flags(&nat, CLIENT, 5000, 0), 0x11);
    nat.send(&tcp(v4(CLIENT, SERVER), [5000, 80], syn));
    assert_eq!(flags(&nat, CLIENT, 5000, 0), 0x218 << 5 | 0x02);
}

#[test]
fn several_connections_of_a_port_are_noted() {
    let other = [198, 51, 100, 1];
    let fin = |header: &mut etherparse::TcpHeader| (header.ack, header.fin) = (true, true);
    let rst = |header: &mut etherparse::TcpHeader| header.rst = true;
    let syn_ack = |header: &mut etherparse::TcpHeader| (header.syn, header.ack) = (true, true);
    type Set = fn(&mut etherparse::TcpHeader);
    let out = |peer, set: Set| tcp(v4(CLIENT, peer), [5000, 80], set);
    let back = |peer, set: Set| tcp(v4(peer, PUBLIC), [80, 40001], set);
    let key = |address: [u8; 4], port: u16, side| [&address[..], &port.to_be_bytes(), &[TCP, side]].concat();
    // What is sent, and the lower bits of both sides' flags afterwards: FIN 1, SYN 2, RST 4, several 8, ACK
    // 16.
    for (what, sent, wanted) in [
        (
            "one, whose SYN is sent again",
            vec![out(SERVER, syn), out(SERVER, syn), out(SERVER, ack)],
            [0x12, 0],
        ),
        ("two at once", vec![out(SERVER, syn), out(other, syn)], [0x0a, 0]),
        (
            "two, of which one ends",
            vec![out(SERVER, syn), out(SERVER, ack), out(other, syn), out(other, ack), out(SERVER, fin)],
            [0x1b, 0],
        ),
        ("one after another", vec![out(SERVER, syn), out(SERVER, fin), out(other, syn)], [0x02, 0]),
        ("one after a reset", vec![out(SERVER, syn), out(SERVER, rst), out(other, syn)], [0x02, 0]),
        ("the same again", vec![out(SERVER, syn), out(SERVER, ack), out(SERVER, syn)], [0x02, 0]),
        ("two that are answered", vec![back(SERVER, syn_ack), back(other, syn_ack)], [0, 0x1a]),
        (
            "it is not forgotten",
            vec![out(SERVER, syn), out(other, syn), out(other, fin), out(other, syn)],
            [0x0a, 0],
        ),
    ] {
        let mut nat = ready();
        sent.iter().for_each(|sent| drop(nat.send(sent)));
        let noted = [key(CLIENT, 5000, 0), key(PUBLIC, 40001, 1)]
            .map(|key| nat.entry("bindings", &key)[0] >> 48 & 0x1f);
        assert_eq!(noted, wanted, "{what}");
    }
}

#[test]
fn checksums_of_udp_that_are_zero() {
    let mut nat = ready();
    // No checksum stays no checksum.
    let sent = patched(&udp(v4(CLIENT, SERVER), [5000, 53], b"a"), TRANSPORT + 6, &[0, 0]);
    let ran = nat.send(&sent);
    assert_eq!((&ran.packet[26..30], &ran.packet[TRANSPORT + 6..][..2]), (&PUBLIC[..], &[0, 0][..]));
    // A result of 0 is written as 0xffff. One of all two-byte payloads has it.
    let data = (0..=u16::MAX).map(u16::to_be_bytes).find(|data| {
        let wanted = udp(v4(PUBLIC, SERVER), [40001, 53], data);
        wanted[TRANSPORT + 6..][..2] == [0xff, 0xff]
    });
    let data = data.unwrap();
    let ran = nat.send(&udp(v4(CLIENT, SERVER), [5000, 53], &data));
    assert_eq!(ran.packet, udp(v4(PUBLIC, SERVER), [40001, 53], &data));
}

#[test]
fn what_is_not_for_it_is_left_alone() {
    let far = [198, 51, 100, 1];
    for (what, sent) in [
        ("from elsewhere to elsewhere", udp(v4(SERVER, far), [5000, 53], b"a")),
        ("from inside to inside", udp(v4(CLIENT, PEER), [5000, 53], b"a")),
        ("to the router itself", udp(v4(SERVER, PUBLIC), [53, 40009], b"a")),
        ("from inside to the router itself", udp(v4(CLIENT, PUBLIC), [5000, 53], b"a")),
        ("a ping of the router", echo(v4(SERVER, PUBLIC), true, 40001)),
        ("its last hop", patched(&udp(v4(CLIENT, SERVER), [5000, 53], b"a"), TTL, &[1])),
    ] {
        let ran = ready().send(&sent);
        assert_eq!((ran.verdict, ran.effects.mark, &ran.packet), (Verdict::Pass, None, &sent), "{what}");
    }
}

#[test]
fn what_has_no_binding_is_marked() {
    let plain = udp(v4(CLIENT, SERVER), [5000, 53], &[0; 40]);
    let ping = echo(v4(CLIENT, SERVER), true, 5000);
    for (what, sent) in [
        ("other port", udp(v4(CLIENT, SERVER), [5001, 53], b"a")),
        ("other protocol's", patched(&plain, 23, &[132])),
        ("first fragment", patched(&plain, 20, &[0x20, 0])),
        ("other fragment", patched(&plain, 20, &[0, 3])),
        ("options", tcp(v4_options(), [5000, 80], ack)),
        ("ICMP error", patched(&ping, TRANSPORT, &[3])),
        // Less than a UDP header: a last fragment, another protocol, a truncated packet.
        ("fragment of a byte", patched(&plain, 20, &[0, 3])[..TRANSPORT + 1].to_vec()),
        ("fragment of 7 bytes", patched(&plain, 20, &[0, 3])[..TRANSPORT + 7].to_vec()),
        ("other protocol of 4 bytes", patched(&plain, 23, &[253])[..TRANSPORT + 4].to_vec()),
        ("nothing behind the header", patched(&plain, 23, &[253])[..TRANSPORT].to_vec()),
        // A reply's identifier is its receiver's.
        ("the client's answer", echo(v4(CLIENT, SERVER), false, 5000)),
    ] {
        let ran = ready().send(&sent);
        assert_eq!(
            (ran.verdict, ran.effects.mark, &ran.packet),
            (Verdict::Pass, Some(MARK), &sent),
            "{what}"
        );
        let ran = InstalledForwarder::with("nat44", &state(0)).send(&sent);
        assert_eq!((ran.verdict, ran.effects.mark, &ran.packet), (Verdict::Pass, None, &sent), "{what}");
    }
    let to_external = patched(&echo(v4(SERVER, PUBLIC), true, 5000), TRANSPORT, &[3]);
    assert_eq!(ready().send(&to_external).effects.mark, Some(MARK));
    let six = udp(v6(), [5000, 53], b"a");
    assert_eq!(ready().send(&six).effects.mark, None);
}
