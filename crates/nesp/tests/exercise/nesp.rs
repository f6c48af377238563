//! Arbitrary bytes as messages for both sides: as they are, and with a valid authenticator.

use longwire_nesp::{
    Answer, Client, Key, ListenAddresses, MessageKind, Outcome, Request, Server, Status, Welcome,
    resolution_answer, seal, unwrap, wrap,
};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Treats `bytes` as a frame, as a message, and as a series of bodies of authentic requests: each begins with
/// its length, the increment of the sequence number, and the time until then.
pub fn run(bytes: &[u8]) {
    let six = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe);
    let wanted = ListenAddresses { udp: Some((Ipv4Addr::new(10, 0, 0, 254), 8805)), udp6: Some((six, 8805)) };
    let carried = unwrap(bytes, &wanted);
    assert!(carried.is_none() || resolution_answer(bytes, &wanted).is_none(), "it is one of the two");
    if let Some((ends, message)) = carried.filter(|(_, message)| message.len() <= 1400) {
        // The answer has the tags of its request, and goes to the sender.
        let answer = wrap(&ends, message);
        assert!(answer[..6] == bytes[6..12] && answer[12..].starts_with(ends.tags.as_slice()));
    }
    let key = Key::read("000102030405060708090a0b0c0d0e0f").expect("a key");
    let mut server = Server::new(key.clone(), [7; 16]);
    for message in [bytes, carried.map_or(&[], |(_, message)| message)] {
        let outcome = server.receive(message, 5);
        assert_eq!(outcome, Outcome::Nothing, "a stranger gets no answer");
    }
    let mut client = Client::new(key.clone(), [9; 16]);
    assert!(client.take_welcome(bytes).is_none() && client.take_answer(bytes).is_none());

    let Outcome::Reply(welcome) = server.receive(&client.hello(), 10) else { panic!("no welcome") };
    assert_eq!(client.take_welcome(&welcome).map(|welcome: Welcome| welcome.time), Some(10));
    let requests = key.of_requests(&[7; 16], 1);
    let (mut rest, mut sequence, mut now) = (bytes, 0u32, 10u64);
    while let Some((&[length, on, wait], behind)) = rest.split_first_chunk::<3>() {
        let (body, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        sequence = sequence.wrapping_add(u32::from(on));
        now += u64::from(wait) << 28;
        if let Ok(request) = Request::read(body) {
            let again = request.write();
            assert_eq!(Request::read(&again).as_ref(), Ok(&request));
        }
        let Some(sealed) = seal(MessageKind::Request, 1, sequence, body, &requests) else { continue };
        let first = server.receive(&sealed, now);
        let reply = match first {
            Outcome::Work(job) => {
                let answer = Answer { status: Status::Done, time: now, items: job.items.clone() };
                server.finish(&job, &answer)
            }
            Outcome::Reply(reply) => Some(reply),
            Outcome::Nothing => None,
        };
        if let Some(reply) = reply {
            // No request is executed twice: repeated ones get the stored answer.
            assert_eq!(server.receive(&sealed, now), Outcome::Reply(reply));
        }
    }
}
