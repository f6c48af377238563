//! Rebind.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;
use std::collections::HashSet;

const FIRST: u64 = 1_000_000_000;
const AGAIN: u64 = 5_000_000_000;

/// At an end, with this time between rebindings and so many other addresses.
fn end(at_client: u8, again: u64, addresses: u32) -> InstalledForwarder {
    let times = [FIRST, again].map(u64::to_le_bytes);
    let rest = [CLIENT, addresses.to_le_bytes(), [at_client, 0, 0, 0], [0; 4]];
    InstalledForwarder::with("rebind", &[times.as_flattened(), rest.as_flattened()].concat())
}

/// At the client's end, whose port 5000 has sent something.
pub fn ready() -> InstalledForwarder {
    let mut end = end(1, AGAIN, 0);
    end.send(&udp(v4(CLIENT, SERVER), [5000, 443], b"a"));
    end
}

/// The source that the server sees.
fn seen(server_end: &mut InstalledForwarder, now: u64) -> ([u8; 4], u16) {
    server_end.bench.context.now = now;
    let ran = server_end.send(&udp(v4(CLIENT, SERVER), [5000, 443], b"a"));
    assert_eq!(ran.verdict, Verdict::Pass);
    assert_checksums(&ran.packet);
    let found = |place: usize| &ran.packet[place..];
    let port = u16::from_be_bytes([found(TRANSPORT)[0], found(TRANSPORT)[1]]);
    (found(26)[..4].try_into().unwrap(), port)
}

/// What the client gets of an answer to this address and port.
fn answered(client_end: &mut InstalledForwarder, now: u64, (address, port): ([u8; 4], u16)) -> Verdict {
    client_end.bench.context.now = now;
    let ran = client_end.send(&udp(v4(SERVER, address), [443, port], b"b"));
    if ran.verdict == Verdict::Pass {
        assert_eq!(ran.packet, udp(v4(SERVER, CLIENT), [443, 5000], b"b"));
    }
    ran.verdict
}

#[test]
fn each_rebinding_is_another_port_and_ends_the_one_before() {
    let (mut at_server, mut at_client) = (end(0, AGAIN, 0), ready());
    assert_eq!(seen(&mut at_server, FIRST - 1), (CLIENT, 5000), "nothing before the first");
    let mut ports = HashSet::new();
    let mut before = None;
    for count in 0..500 {
        // From a nanosecond before one rebinding to a nanosecond before the next it is the same.
        let (begin, end) = (FIRST + count * AGAIN, FIRST + (count + 1) * AGAIN - 1);
        let now = seen(&mut at_server, begin);
        assert_eq!((now.0, seen(&mut at_server, end)), (CLIENT, now));
        assert!(now.1 != 5000 && ports.insert(now.1), "port {} comes again", now.1);
        assert_eq!(answered(&mut at_client, end, now), Verdict::Pass);
        if let Some(before) = before.replace(now) {
            assert_eq!(answered(&mut at_client, begin, before), Verdict::Drop(Some(0)));
        }
    }
    let unused = (CLIENT, before.unwrap().1 - 1);
    assert_eq!(answered(&mut at_client, FIRST + 499 * AGAIN, unused), Verdict::Drop(Some(0)), "never sent");
}

#[test]
fn a_single_rebinding_stays() {
    let mut at_server = end(0, 0, 0);
    let after = seen(&mut at_server, FIRST);
    assert_ne!(after, (CLIENT, 5000));
    assert_eq!(seen(&mut at_server, u64::MAX), after);
}

#[test]
fn addresses_change_as_well() {
    let (mut at_server, mut at_client) = (end(0, AGAIN, 150), end(1, AGAIN, 150));
    at_client.send(&udp(v4(CLIENT, SERVER), [5000, 443], b"a"));
    assert_eq!(seen(&mut at_server, 0), (CLIENT, 5000));
    let mut before = (CLIENT, 5000);
    for count in 0..300 {
        let time = FIRST + count * AGAIN;
        let now = seen(&mut at_server, time);
        let last = now.0[3] - CLIENT[3];
        assert!(now.0[..3] == CLIENT[..3] && (1..=150).contains(&last) && now.0 != before.0, "{now:?}");
        assert_eq!(answered(&mut at_client, time, now), Verdict::Pass);
        assert_eq!(answered(&mut at_client, time, before), Verdict::Drop(Some(0)));
        assert_eq!(answered(&mut at_client, time, (before.0, now.1)), Verdict::Drop(Some(0)));
        before = now;
    }
}

#[test]
fn what_is_not_the_clients_udp_passes_unchanged() {
    for at_client in [0, 1] {
        let mut end = end(at_client, AGAIN, 0);
        end.bench.context.now = FIRST;
        let other = [10, 0, 0, 2];
        for sent in [
            tcp(v4(CLIENT, SERVER), [5000, 443], ack),
            tcp(v4(SERVER, CLIENT), [443, 5000], ack),
            udp(v4(other, SERVER), [5000, 443], b"a"),
            udp(v4(SERVER, other), [443, 5000], b"a"),
            udp(v6(), [5000, 443], b"a"),
            echo(v4(CLIENT, SERVER), true, 5000),
        ] {
            let ran = end.send(&sent);
            assert_eq!((ran.verdict, ran.packet), (Verdict::Pass, sent));
        }
    }
    // No checksum stays no checksum.
    let mut at_server = end(0, AGAIN, 0);
    at_server.bench.context.now = FIRST;
    let sent = patched(&udp(v4(CLIENT, SERVER), [5000, 53], b"a"), TRANSPORT + 6, &[0, 0]);
    assert_eq!(at_server.send(&sent).packet[TRANSPORT + 6..TRANSPORT + 8], [0, 0]);
}
