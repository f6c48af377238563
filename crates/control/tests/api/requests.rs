//! Requests that make no sense, and what else clients may send.

use crate::fake::Fake;
use crate::scratch::Scratch;
use crate::{patch, raw, refused, request};
use longwire_control::{Client, Kind, Problem, RowFilter, Server};
use serde_json::json;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;

#[test]
fn requests_that_make_no_sense_get_their_status() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let socket = server.path();
    let deep = "[".repeat(30_000);
    let large = format!("{{\"rate\": \"{}\"}}", "9".repeat(70_000));
    let bodies = [("{", 400), ("", 400), ("[]", 400), ("{\"rate\": 5}", 400), (&deep, 400), (&large, 413)];
    for (body, expected) in bodies {
        let (status, problem) = patch(socket, "/v1/links/up", body);
        assert_eq!(status, expected, "{problem}");
        assert_eq!(problem["status"], expected);
    }
    let json = "application/json";
    let cases = [
        ("PATCH", "/v1/links/up", "text/plain", 415),
        ("PATCH", "/v1/links/%ff", json, 400),
        ("GET", "/v1/links/%ff", json, 400),
        ("GET", "/v1/links?from=-1", json, 400),
        ("GET", "/v1/links?form=1", json, 400),
        ("GET", "/v1/links?count=10001", json, 422),
        ("GET", "/v1/nothing", json, 404),
        ("GET", "/", json, 404),
        ("DELETE", "/v1/ports/a", json, 405),
        ("POST", "/v1/sources", json, 405),
        ("DELETE", "/v1/links/up?drained=1", json, 400),
        ("DELETE", "/v1/links/nosuch", json, 404),
        ("PATCH", "/v1/scenario?x", "text/plain", 415),
        ("PUT", "/v1/instance", json, 405),
        ("GET", "/v1/nothing/up", json, 404),
        ("PATCH", "/v1/nothing/up", json, 404),
        ("GET", "/metrics?limit=-1", json, 400),
        ("GET", "/metrics?limit=1001", json, 422),
        ("PUT", "/v1/stats", "", 405),
        ("DELETE", "/v1/nothing", json, 404),
        ("GET", "/v1/stats?sorted=drops", json, 400),
        ("PUT", "/v1/scenario", json, 400),
        ("POST", "/v1/scenario", json, 405),
        ("GET", "/v1/routers/core/forwarders/x", json, 405),
        ("DELETE", "/v1/routers/core/forwarders/x", json, 400),
    ];
    for (method, path, kind, expected) in cases {
        let (status, problem) = request(socket, method, path, kind, "{}");
        assert_eq!((status, &problem["status"]), (expected, &json!(expected)), "{method} {path}: {problem}");
    }
    for (query, detail) in [
        ("lmit=5", "there is no parameter \"lmit\"; did you mean \"limit\"?"),
        ("colour=5", "there is no parameter \"colour\"; there are links, limit"),
        ("limit=many", "limit: write a whole number, such as 1"),
    ] {
        let (_, problem) = request(socket, "GET", &format!("/metrics?{query}"), json, "{}");
        assert_eq!(problem["detail"], detail);
    }
}

#[test]
fn a_method_that_is_not_taken_is_answered_with_those_that_are() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    for (line, allowed) in [
        ("PUT /v1/links", "GET, HEAD, POST"),
        ("POST /v1/ports", "GET, HEAD"),
        ("DELETE /v1/ports/a", "GET, HEAD, PATCH"),
        ("OPTIONS /v1/links/up", "DELETE, GET, HEAD, PATCH"),
        ("GET /v1/routers/core/leases", "PUT"),
        ("POST /metrics", "GET, HEAD"),
    ] {
        let answer =
            raw(server.path(), format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes());
        let (head, _) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 405"), "{line}: {answer}");
        let allow = head.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap();
        let mut methods: Vec<&str> = allow.split(", ").collect();
        methods.sort_unstable();
        assert_eq!(methods.join(", "), allowed, "{line}");
    }
}

#[test]
fn bytes_that_are_no_request_do_no_harm() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let long_head = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(100_000));
    let many_heads = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(5_000));
    let noise: Vec<u8> = (0..10_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let cut = "PATCH /v1/links/up HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
        Content-Length: 99\r\n\r\n{";
    let bad_length = "PATCH /v1/links/up HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}";
    let requests = [
        b"".as_slice(),
        b"\0\0\0",
        &noise,
        long_head.as_bytes(),
        many_heads.as_bytes(),
        cut.as_bytes(),
        bad_length.as_bytes(),
    ];
    for bytes in requests {
        let answer = raw(server.path(), bytes);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    let client = Client::connect(scratch.path(), None).unwrap();
    assert_eq!(client.object(Some(Kind::Link), "up").unwrap().settings["rate"], "10 Mbit/s");
}

/// The service is not asked for these.
#[test]
fn heads_that_can_not_be_read_are_answered_with_problems() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let (long, many) = (format!("X: {}", "y".repeat(17 * 1024)), ["X: y"; 100].join("\r\n"));
    for (headers, status, detail) in [
        (&*long, 431, "the head of a request has at most 16 KiB and 100 headers"),
        (&*many, 431, "the head of a request has at most 16 KiB and 100 headers"),
        ("Content-Length: abc", 400, "the head of the request can't be read"),
        ("no header", 400, "the head of the request can't be read"),
    ] {
        let request = format!("GET /v1/summary HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n");
        let answer = raw(server.path(), request.as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        for line in ["content-type: application/problem+json", "connection: close"] {
            assert!(head.lines().any(|known| known == line), "{line}: {answer}");
        }
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{answer}");
        let problem: Problem = serde_json::from_str(body).unwrap();
        assert_eq!((problem.status, &*problem.detail), (status, detail));
    }
}

#[test]
fn an_instance_that_panics_costs_one_answer() {
    let scratch = Scratch::new();
    let fake = Fake::named("demo");
    let _server = Server::start(scratch.path(), fake.clone()).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    fake.broken.store(true, Ordering::SeqCst);
    assert_eq!(refused(client.stats(&RowFilter::default())).status, 500);
    fake.broken.store(false, Ordering::SeqCst);
    client.stats(&RowFilter::default()).unwrap();
}

#[test]
fn more_connections_than_are_served_wait_their_turn() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let mut idle: Vec<_> = (0..40).map(|_| UnixStream::connect(server.path()).unwrap()).collect();
    let mut waiting = idle.pop().unwrap();
    waiting.write_all(b"GET /v1/instance HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    drop(idle);
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
