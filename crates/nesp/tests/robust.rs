//! Authentic messages are executed once, whatever the network does to them; replayed and changed ones never.

use longwire_nesp::{
    Answer, Client, ErrorCode, Item, Key, Kind, Message, MessageKind, Operation, Outcome, Request, Server,
    Status, seal,
};
use proptest::prelude::*;
use std::borrow::Cow;

const INSTANCE: [u8; 16] = [3; 16];

fn key() -> Key {
    Key::read(&"a5".repeat(32)).unwrap()
}

/// A server and `sessions` clients with a session.
fn welcomed(sessions: usize) -> (Server, Vec<Client>) {
    let mut server = Server::new(key(), INSTANCE);
    let clients = (0..sessions).map(|number| {
        let mut client = Client::new(key(), [number as u8; 16]);
        let Outcome::Reply(welcome) = server.receive(&client.hello(), 0) else { panic!("no welcome") };
        assert_eq!(client.take_welcome(&welcome).unwrap().instance, INSTANCE);
        client
    });
    let clients = clients.collect();
    (server, clients)
}

fn set(group: u32, part: u8, parts: u8, value: &str) -> Request<'_> {
    let items = vec![Item::Object(Kind::Link, "up".into()), Item::Setting("rate".into(), value.into())];
    Request { group, part, parts, operation: Operation::Set, time: 0, items }
}

/// Executes the job of a message, and answers.
fn work(server: &mut Server, sealed: &[u8], now: u64) -> (usize, Option<Vec<u8>>) {
    match server.receive(sealed, now) {
        Outcome::Nothing => (0, None),
        Outcome::Reply(reply) => (0, Some(reply)),
        Outcome::Work(job) => {
            let answer = Answer { status: Status::Done, time: now, items: Vec::new() };
            (job.items.len(), server.finish(&job, &answer))
        }
    }
}

#[test]
fn a_retransmission_is_answered_as_before_and_carried_out_once() {
    let (mut server, mut clients) = welcomed(1);
    let request = clients[0].request(&set(1, 0, 1, "1 Mbit/s")).unwrap();
    let (done, answer) = work(&mut server, &request, 5);
    assert_eq!(done, 2);
    assert_eq!(work(&mut server, &request, 9), (0, answer.clone()));
    assert_eq!(clients[0].take_answer(&answer.clone().unwrap()).unwrap().time, 5);
    // Sixteen answers are stored: an older request is a replay, and not answered.
    for number in 2..=18 {
        let request = clients[0].request(&set(number, 0, 1, "1 Mbit/s")).unwrap();
        assert_eq!(work(&mut server, &request, 10).0, 2);
    }
    assert_eq!(work(&mut server, &request, 11), (0, None));
    assert!(clients[0].take_answer(&answer.unwrap()).is_none(), "it is of an earlier request");
    let counters = server.counters();
    assert_eq!((counters.requests, counters.repeated, counters.replayed), (18, 1, 1));
}

#[test]
fn what_was_recorded_is_worth_nothing_in_another_session_or_after_a_restart() {
    let (mut server, mut clients) = welcomed(1);
    let hello = clients[0].hello();
    let request = clients[0].request(&set(1, 0, 1, "1 Mbit/s")).unwrap();
    let mut restarted = Server::new(key(), [4; 16]);
    assert_eq!(restarted.receive(&request, 0), Outcome::Nothing);
    assert_eq!(restarted.counters().unknown_session, 1);
    // A replayed hello offers a session with the same number, but other keys.
    assert!(matches!(restarted.receive(&hello, 0), Outcome::Reply(_)));
    assert_eq!(restarted.receive(&request, 0), Outcome::Nothing);
    assert_eq!(restarted.counters().bad_authenticator, 1);
    // However many sessions the replays of a hello are offered, the open one continues.
    assert_eq!(work(&mut server, &request, 1).0, 2);
    for _ in 0..100 {
        assert!(matches!(server.receive(&hello, 2), Outcome::Reply(_)));
    }
    let next = clients[0].request(&set(2, 0, 1, "1 Mbit/s")).unwrap();
    assert_eq!(work(&mut server, &next, 3).0, 2);
}

#[test]
fn a_session_that_made_room_does_not_begin_again() {
    let (mut server, mut clients) = welcomed(33);
    let first: Vec<_> =
        clients.iter_mut().map(|client| client.request(&set(1, 0, 1, "1kbit")).unwrap()).collect();
    for request in &first {
        assert_eq!(work(&mut server, request, 1).0, 2);
    }
    assert_eq!(server.receive(&first[0], 2), Outcome::Nothing);
    assert_eq!(server.counters().unknown_session, 1);
    let later = clients[0].request(&set(2, 0, 1, "1kbit")).unwrap();
    assert_eq!(server.receive(&later, 2), Outcome::Nothing, "its number has ended");
    let second = clients[1].request(&set(2, 0, 1, "1kbit")).unwrap();
    assert_eq!(work(&mut server, &second, 3).0, 2);
}

#[test]
fn a_group_is_carried_out_when_its_last_part_comes() {
    let (mut server, mut clients) = welcomed(1);
    let status = |clients: &[Client], reply: Option<Vec<u8>>| {
        let reply = reply.unwrap();
        clients[0].take_answer(&reply).unwrap().status
    };
    for (part, expected) in [(2, (0, Status::Partial)), (0, (0, Status::Partial)), (1, (6, Status::Done))] {
        let request = clients[0].request(&set(7, part, 3, "1kbit")).unwrap();
        let (done, reply) = work(&mut server, &request, 1);
        assert_eq!((done, status(&clients, reply)), expected);
    }
    // Inconsistent parts; another group in between; late parts.
    let request = clients[0].request(&set(8, 0, 2, "1kbit")).unwrap();
    assert_eq!(status(&clients, work(&mut server, &request, 1).1), Status::Partial);
    let request = clients[0].request(&Request { time: 5, ..set(8, 1, 2, "1kbit") }).unwrap();
    let refused = work(&mut server, &request, 1).1.unwrap();
    assert_eq!(clients[0].take_answer(&refused).unwrap().refusal().unwrap().code, ErrorCode::BadRequest);
    for (group, part, now) in [(9, 0, 1), (10, 0, 1), (9, 1, 2), (11, 0, 3), (11, 1, 31_000_000_000)] {
        let request = clients[0].request(&set(group, part, 2, "1kbit")).unwrap();
        let (done, reply) = work(&mut server, &request, now);
        assert_eq!((done, status(&clients, reply)), (0, Status::Partial), "part {part} of group {group}");
    }
}

#[test]
fn an_authentic_request_that_breaks_the_rules_is_told_so() {
    let (mut server, clients) = welcomed(1);
    let requests = key().of_requests(&INSTANCE, 1);
    let bodies: [&[u8]; 5] = [
        &[],
        &[0; 16],
        &[0, 0, 0, 1, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 1],
        b"\0\0\0\x01\0\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x02a\x1b",
    ];
    for (number, body) in (1..).zip(bodies) {
        let sealed = seal(MessageKind::Request, 1, number, body, &requests).unwrap();
        let Outcome::Reply(reply) = server.receive(&sealed, 0) else { panic!("body {number}: no answer") };
        let message = Message::open(&reply, MessageKind::Answer, &key().of_answers(&INSTANCE, 1)).unwrap();
        assert_eq!(message.sequence, number);
        assert_eq!(Answer::read(message.body).unwrap().status, Status::Refused);
    }
    assert_eq!((server.counters().malformed, server.counters().requests), (5, 0));
    drop(clients);
}

fn items() -> impl Strategy<Value = Vec<Item<'static>>> {
    let name = || "[ -~ä]{1,40}".prop_map(Cow::Owned);
    let item = prop_oneof![
        (prop::sample::select(&Kind::ALL[..]), name()).prop_map(|(kind, name)| Item::Object(kind, name)),
        (name(), "[ -~]{0,60}").prop_map(|(name, value)| Item::Setting(name, value.into())),
        name().prop_map(Item::Name),
        any::<u32>().prop_map(Item::Next),
    ];
    prop::collection::vec(item, 0..10)
}

proptest! {
    #[test]
    fn what_is_written_is_read(group in any::<u32>(), time in any::<u64>(), part in 0u8..16,
        items in items()) {
        let request = Request { group, part, parts: 16, operation: Operation::Get, time,
            items: items.clone() };
        let body = request.write();
        prop_assert_eq!(Request::read(&body).unwrap(), request);
        let answer = Answer { status: Status::Done, time, items };
        let body = answer.write();
        prop_assert_eq!(Answer::read(&body).unwrap(), answer);
    }

    /// With any bit changed, no message is executed or answered.
    #[test]
    fn a_changed_bit_is_refused(at in any::<prop::sample::Index>(), bit in 0u8..8, cut in any::<bool>()) {
        let (mut server, mut clients) = welcomed(1);
        let hello = clients[0].hello();
        let request = clients[0].request(&set(1, 0, 1, "1kbit")).unwrap();
        for mut sealed in [hello, request.clone()] {
            let at = at.index(sealed.len());
            if cut { sealed.truncate(at) } else { sealed[at] ^= 1 << bit }
            prop_assert_eq!(server.receive(&sealed, 0), Outcome::Nothing);
        }
        prop_assert_eq!(work(&mut server, &request, 0).0, 2);
    }

    /// Lost, repeated and reordered requests are executed once each, if they come within the window.
    #[test]
    fn the_network_changes_nothing(order in prop::collection::vec(0usize..40, 0..120)) {
        let (mut server, mut clients) = welcomed(1);
        let requests: Vec<_> = (0..40).map(|n| clients[0].request(&set(n, 0, 1, "1kbit")).unwrap()).collect();
        let mut done = [0; 40];
        for &at in &order {
            done[at] += work(&mut server, &requests[at], 0).0 / 2;
        }
        for (at, done) in done.into_iter().enumerate() {
            prop_assert_eq!(done, usize::from(order.contains(&at)));
        }
    }
}
