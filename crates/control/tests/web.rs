//! The API on a TCP address: access control and headers.

mod fake;

use fake::Fake;
use longwire_control::{WebAddress, WebError, WebServer};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

const FREE: &str = "127.0.0.1:0";
const JSON: &str = "Content-Type: application/json\r\n";

fn start() -> (WebServer, std::sync::Arc<Fake>) {
    let fake = Fake::named("demo");
    let address: WebAddress = FREE.parse().unwrap();
    (WebServer::start(address.into(), fake.clone()).unwrap(), fake)
}

/// The whole answer to a request with these headers.
fn ask(server: &WebServer, line: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let length = body.len();
    let text =
        format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn only_requests_that_name_this_machine_pass() {
    let (server, _) = start();
    let host = format!("Host: {}\r\n", server.address());
    let answer = ask(&server, "GET /v1/instance", &host, "");
    assert!(status(&answer) == 200 && answer.contains("\"name\":\"demo\""), "{answer}");
    assert_eq!(status(&ask(&server, "GET /v1/instance", "Host: localhost:9\r\n", "")), 200);
    for host in ["Host: rebound.example\r\n", "", "Host: localhost\r\nHost: rebound.example\r\n"] {
        let answer = ask(&server, "GET /v1/instance", host, "");
        assert!([400, 403].contains(&status(&answer)), "{answer}");
    }
}

#[test]
fn changes_come_from_the_same_origin_as_json() {
    let (server, fake) = start();
    let own = format!("Host: {0}\r\nOrigin: http://{0}\r\n", server.address());
    let host = format!("Host: {}\r\n", server.address());
    let change =
        |headers: &str| status(&ask(&server, "PATCH /v1/links/up", headers, "{\"delay\": \"7 ms\"}"));
    assert_eq!(change(&format!("{own}{JSON}")), 200);
    assert_eq!(change(&format!("{host}{JSON}")), 200, "a program sends no origin");
    assert_eq!(change(&host), 415);
    assert_eq!(change(&format!("{host}Content-Type: text/plain\r\n")), 415);
    assert_eq!(change(&format!("{host}{JSON}Origin: http://elsewhere.example\r\n")), 403);
    assert_eq!(change(&format!("{host}{JSON}Origin: null\r\n")), 403);
    assert_eq!(change(&format!("{host}{JSON}Sec-Fetch-Site: same-site\r\n")), 403);
    let stop = |headers: &str| status(&ask(&server, "DELETE /v1/instance", headers, ""));
    assert_eq!(stop("Host: example.org\r\n"), 403);
    assert_eq!(stop(&format!("{host}Origin: http://elsewhere.example\r\n")), 403);
    assert_eq!(status(&ask(&server, "TRACE /v1/instance", &host, "")), 405);
    assert!(!fake.stopped.load(Ordering::SeqCst));
    assert_eq!(stop(&own), 202);
    assert!(fake.stopped.load(Ordering::SeqCst));
}

#[test]
fn every_answer_forbids_foreign_content() {
    let (server, _) = start();
    let host = format!("Host: {}\r\n", server.address());
    for line in ["GET /", "GET /v1/links", "GET /nothing", "POST /"] {
        let answer = ask(&server, line, &host, "").to_lowercase();
        assert!(
            answer.contains("content-security-policy: default-src 'none'; script-src 'self'"),
            "{answer}"
        );
        assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
        assert!(!answer.contains("access-control-"), "{answer}");
    }
    let page = ask(&server, "GET /", &host, "");
    assert!(page.contains("content-type: text/html") && page.contains("<title>Longwire"), "{page}");
}

#[test]
fn all_files_of_the_dashboard_are_served() {
    let (server, _) = start();
    let host = format!("Host: {}\r\n", server.address());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dashboard");
    let files = |folder: &str| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut names = Vec::new();
    for entry in files(folder) {
        let name = entry.file_name().into_string().unwrap();
        match name.as_str() {
            "index.html" => names.push(String::new()),
            "vendor" => names.extend(
                files(&format!("{folder}/vendor"))
                    .map(|entry| format!("vendor/{}", entry.file_name().into_string().unwrap())),
            ),
            _ => names.push(name),
        }
    }
    assert!(names.len() > 10);
    for name in names {
        let answer = ask(&server, &format!("GET /{name}"), &host, "");
        assert_eq!(status(&answer), 200, "{name}");
        let kind = if name.ends_with(".js") { "text/javascript" } else { "content-type" };
        assert!(answer.contains(kind), "{name}");
    }
}

#[test]
fn addresses_that_others_reach_are_refused() {
    let start = |address| WebServer::start(WebAddress::At(address).into(), Fake::named("demo"));
    assert!(matches!(start("0.0.0.0:0".parse().unwrap()), Err(WebError::Reachable(_))));
    let (server, _) = self::start();
    let taken = start(server.address()).unwrap_err();
    assert!(taken.to_string().contains("can't listen on 127.0.0.1:"), "{taken}");
}

#[test]
fn without_an_address_two_servers_find_ports() {
    let start = || WebServer::start(WebAddress::Usual.into(), Fake::named("demo")).unwrap();
    let (one, other) = (start(), start());
    assert_ne!(one.address(), other.address());
    assert!(one.address().ip().is_loopback() && other.address().ip().is_loopback());
}
