//! Test vectors of the specification: `PROTOCOL.md` is read, and every byte compared.

mod page;

use longwire_nesp::{
    Answer, Client, ErrorCode, GROUP_ADDRESS, Item, Key, Kind, MessageEnds, Operation, Outcome, Request,
    Server, Status, Tags, UdpEnds, Welcome, resolution_answer, unwrap, wrap,
};
use page::vectors;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe);

fn hex(bytes: &[u8]) -> String {
    Key::text_of(bytes).trim_end().to_owned()
}

/// Messages of both sides in the page's example, by the vectors' names.
fn spoken() -> BTreeMap<&'static str, Vec<u8>> {
    let key = Key::read("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f").unwrap();
    let (nonce, instance) =
        (std::array::from_fn(|at| 0xa0 + at as u8), std::array::from_fn(|at| 0xc0 + at as u8));
    let mut client = Client::new(key.clone(), nonce);
    let mut server = Server::new(key, instance);
    let mut said = BTreeMap::new();
    let hello = client.hello();
    let Outcome::Reply(welcome) = server.receive(&hello, 1_500_000_000) else { panic!("no welcome") };
    assert_eq!(client.take_welcome(&welcome).unwrap(), Welcome { nonce, instance, time: 1_500_000_000 });
    said.extend([("hello", hello), ("welcome", welcome)]);

    let up = || Item::Object(Kind::Link, "up".into());
    let setting = |name: &'static str, value: &'static str| Item::Setting(name.into(), value.into());
    let get = Request {
        group: 1,
        part: 0,
        parts: 1,
        operation: Operation::Get,
        time: 0,
        items: vec![up(), Item::Name("rate".into())],
    };
    let items = vec![up(), setting("rate", "2 Mbit/s"), setting("delay", "30 ms")];
    let set = Request { group: 2, operation: Operation::Set, time: 5_000_000_000, items, ..get.clone() };
    let wrong = Request { group: 3, items: vec![up(), setting("rate", "fast")], time: 0, ..set.clone() };
    let west = || Item::Object(Kind::Router, "west".into());
    let voice = Item::Object(Kind::Flow, "west/voice".into());
    let router = vec![west(), setting("route.10.8.0.0/16", "via 10.0.2.9"), voice, setting("weight", "4")];
    let router = Request { group: 4, items: router, ..wrong.clone() };
    let seen = Item::Object(Kind::Forwarder, "west/seen".into());
    let program = vec![seen, setting("program", "syn-monitor"), setting("key.protocol", "tcp")];
    let program = Request { group: 5, items: program, ..wrong.clone() };
    let page = Request { group: 6, items: vec![Item::Next(0), west()], ..get.clone() };
    let paged = vec![west(), setting("route.10.0.1.0/24", "dev a"), Item::Next(1)];
    let refusal = vec![Item::Error(ErrorCode::BadValue, "rate: \"fast\" is no rate".into())];
    let exchanges = [
        ("get", get, ("get-answer", Status::Done, 1_600_000_000, vec![up(), setting("rate", "10 Mbit/s")])),
        ("set", set, ("set-answer", Status::Done, 5_000_000_000, Vec::new())),
        ("wrong", wrong, ("wrong-answer", Status::Refused, 1_700_000_000, refusal)),
        ("router", router, ("router-answer", Status::Done, 1_800_000_000, Vec::new())),
        ("program", program, ("program-answer", Status::Done, 1_900_000_000, Vec::new())),
        ("page", page, ("page-answer", Status::Done, 2_000_000_000, paged)),
    ];
    for (name, request, (answer_name, status, time, items)) in exchanges {
        let sealed = client.request(&request).unwrap();
        let Outcome::Work(job) = server.receive(&sealed, time) else { panic!("{name}: no job") };
        assert_eq!((job.operation, job.time, &job.items), (request.operation, request.time, &request.items));
        let answer = Answer { status, time, items };
        let reply = server.finish(&job, &answer).unwrap();
        assert_eq!(client.take_answer(&reply).unwrap(), answer);
        said.extend([(name, sealed), (answer_name, reply)]);
    }
    let group = MessageEnds::ethernet(HOST, GROUP_ADDRESS);
    let tagged = MessageEnds { tags: Tags::read(&[0x81, 0, 0, 5]).unwrap(), ..group };
    let host = MessageEnds::ethernet(HOST, [2, 0x4e, 0x45, 0x53, 0x50, 1]);
    let v4 = UdpEnds::V4 { from: (Ipv4Addr::new(10, 0, 0, 1), 40_000), to: (SERVER, 8805) };
    let v6 = UdpEnds::V6 { from: ("fd00::1".parse().unwrap(), 40_000), to: (SERVER6, 8805) };
    let (udp, udp6) = (MessageEnds { udp: Some(v4), ..host }, MessageEnds { udp: Some(v6), ..host });
    for (name, ends) in [("ethernet", group), ("vlan", tagged), ("udp", udp), ("udp6", udp6)] {
        said.insert(name, wrap(&ends, &said["hello"]));
    }
    said
}

#[test]
fn the_page_s_vectors_are_what_both_sides_say() {
    let (page, said) = (vectors(), spoken());
    let missing: String = said
        .iter()
        .filter(|(name, _)| !page.contains_key(*name))
        .map(|(name, bytes)| format!("{name}: {}\n", hex(bytes)))
        .collect();
    assert!(missing.is_empty(), "the page lacks\n{missing}");
    for (name, bytes) in &page {
        assert_eq!(hex(bytes), hex(&said[name]), "{name}");
    }
}

#[test]
fn the_page_s_frames_carry_its_messages() {
    let page = vectors();
    let wanted = longwire_nesp::ListenAddresses { udp: Some((SERVER, 8805)), udp6: Some((SERVER6, 8805)) };
    for name in ["ethernet", "vlan", "udp", "udp6"] {
        let (_, message) = unwrap(&page[name], &wanted).unwrap();
        assert!(message.starts_with(&page["hello"]), "{name}");
        assert!(resolution_answer(&page[name], &wanted).is_none());
    }
}
