//! The API and its client, over sockets in a temporary directory.

mod fake;

use fake::{Fake, Scratch};
use longwire_control::{
    ChangeRoute, Client, ClientError, ForwarderAsk, Instance, Problem, Server, StartError, WeighFlow, list,
    openapi,
};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Sends bytes, ends the sending side, and returns the complete answer.
fn raw(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends a request and returns its status and JSON.
fn request(socket: &Path, method: &str, path: &str, kind: &str, body: &str) -> (u16, Value) {
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw(socket, text.as_bytes());
    let status = answer.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or_else(|| panic!("{answer}"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    if status >= 400 {
        assert!(head.contains("application/problem+json"), "{head}");
    }
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn patch(socket: &Path, path: &str, body: &str) -> (u16, Value) {
    request(socket, "PATCH", path, "application/json", body)
}

fn refused(result: Result<impl std::fmt::Debug, ClientError>) -> Problem {
    match result {
        Err(ClientError::Refused(problem)) => *problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_client_reads_what_the_instance_says() {
    let scratch = Scratch::new();
    let _server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    let info = client.instance().unwrap();
    assert_eq!((info.name.as_str(), info.pid, info.links), ("demo", std::process::id(), 5));
    assert_eq!(client.stats().unwrap(), json!({"in": 10, "out": 9, "dropped": 1}));
    assert_eq!(client.link("up").unwrap().links()[0].settings["rate"], "10 Mbit/s");
    assert_eq!(client.link("dsl/17 ä?").unwrap().links()[0].name, "dsl/17 ä?");
    let page = client.links(1, 1).unwrap();
    assert_eq!((page.total, page.from, page.links.len()), (5, 1, 1));
    assert_eq!(page.links[0].name, "down");
    assert!(client.links(5, 10).unwrap().links.is_empty());
}

#[test]
fn a_change_is_made_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let _server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), Some("demo")).unwrap();
    let set = |link: &str, changes: &[(&str, &str)]| {
        let changes: Vec<_> = changes.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        client.set(link, &changes)
    };
    let changed = set("up", &[("rate", "5mbit"), ("delay", "40ms")]).unwrap().links()[0].clone();
    assert_eq!((changed.settings["rate"].as_str(), changed.settings["delay"].as_str()), ("5mbit", "40ms"));
    assert_eq!(changed.settings["loss"], "2 %", "what is not named is kept");

    let problem = refused(set("up", &[("rate", "1mbit"), ("dealy", "1ms")]));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (422, Some("delay")));
    let problem = refused(set("up", &[("rate", "1mbit"), ("delay", "quick")]));
    assert_eq!((problem.status, problem.key.as_deref()), (422, Some("delay")));
    let problem = refused(set("upp", &[("rate", "1mbit")]));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("up")));
    assert_eq!(problem.to_string(), "there is no link \"upp\"; did you mean \"up\"?");
    let problem = refused(set("up", &[("rate", "1mbit"), ("rate", "2mbit")]));
    assert!(problem.status == 400 && problem.detail.contains("given twice"), "{problem:?}");
    assert_eq!(client.link("up").unwrap().links()[0].settings["rate"], "5mbit");
    assert_eq!(refused(client.link("dwn")).suggestion.as_deref(), Some("down"));
}

#[test]
fn the_name_of_a_duplex_link_means_both_directions() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let (status, answer) = patch(server.path(), "/v1/links/wan", r#"{"rate": "5mbit"}"#);
    let directions = answer["directions"].as_array().unwrap();
    assert_eq!((status, answer["name"].as_str(), directions.len()), (200, Some("wan"), 2));
    for (direction, name) in directions.iter().zip(["wan.forward", "wan.backward"]) {
        assert_eq!(
            (direction["name"].as_str(), direction["settings"]["rate"].as_str()),
            (Some(name), Some("5mbit"))
        );
    }
    let client = Client::connect(scratch.path(), None).unwrap();
    assert_eq!(serde_json::to_value(client.link("wan").unwrap()).unwrap(), answer);
    assert_eq!(client.link("wan.forward").unwrap().links().len(), 1);
}

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
        ("GET", "/v1/nothing", json, 404),
        ("GET", "/", json, 404),
        ("DELETE", "/v1/links/up", json, 405),
        ("GET", "/v1/stop", json, 405),
    ];
    for (method, path, kind, expected) in cases {
        let (status, problem) = request(socket, method, path, kind, "{}");
        assert_eq!((status, &problem["status"]), (expected, &json!(expected)), "{method} {path}: {problem}");
    }
}

#[test]
fn bytes_that_are_no_request_do_no_harm() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let long_head = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(100_000));
    let many_heads = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(5_000));
    let noise: Vec<u8> = (0..10_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let cut = "PATCH /v1/links/up HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{";
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
    assert_eq!(client.link("up").unwrap().links()[0].settings["rate"], "10 Mbit/s");
}

#[test]
fn an_instance_that_panics_costs_one_answer() {
    let scratch = Scratch::new();
    let fake = Fake::named("demo");
    let _server = Server::start(scratch.path(), fake.clone()).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    fake.broken.store(true, Ordering::SeqCst);
    assert_eq!(refused(client.stats()).status, 500);
    fake.broken.store(false, Ordering::SeqCst);
    client.stats().unwrap();
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

#[test]
fn stop_reaches_the_instance() {
    let scratch = Scratch::new();
    let fake = Fake::named("demo");
    let server = Server::start(scratch.path(), fake.clone()).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    client.stop().unwrap();
    assert!(fake.stopped.load(Ordering::SeqCst));
    let path = server.path().to_path_buf();
    drop(server);
    assert!(!path.exists());
    assert!(matches!(client.stats(), Err(ClientError::Silent { .. })));
    assert!(matches!(Client::connect(scratch.path(), None), Err(ClientError::NoneRunning(_))));
}

#[test]
fn of_several_instances_one_is_chosen() {
    let scratch = Scratch::new();
    let _a = Server::start(scratch.path(), Fake::named("lab-a")).unwrap();
    let _b = Server::start(scratch.path(), Fake::named("lab-b")).unwrap();
    let pid = std::process::id();
    let all = format!("lab-a-{pid}, lab-b-{pid}");
    assert_eq!(list(scratch.path()).unwrap().len(), 2);
    let error = |wanted| Client::connect(scratch.path(), wanted).unwrap_err().to_string();
    assert_eq!(error(None), format!("which instance? There are {all}"));
    assert_eq!(error(Some("lab-c")), format!("no instance \"lab-c\" is running; there is {all}"));
    assert!(error(Some(&pid.to_string())).starts_with("which instance?"));
    for wanted in ["lab-b".to_string(), format!("lab-b-{pid}")] {
        let client = Client::connect(scratch.path(), Some(&wanted)).unwrap();
        assert_eq!(client.instance().unwrap().name, "lab-b");
    }
    let again = Server::start(scratch.path(), Fake::named("lab-a"));
    assert!(matches!(again, Err(StartError::Socket { .. })), "its socket is in use");
    assert_eq!(list(scratch.path()).unwrap().len(), 2);
}

#[test]
fn sockets_of_the_dead_are_removed_and_others_left() {
    let scratch = Scratch::new();
    assert!(list(scratch.path()).unwrap().is_empty(), "a missing directory has no instances");
    let server = Server::start(scratch.path(), Fake::named("alive")).unwrap();
    let dead = scratch.path().join("dead-1.sock");
    drop(UnixListener::bind(&dead).unwrap());
    let other = scratch.path().join("notes.txt");
    std::fs::write(&other, "not a socket").unwrap();
    let found = list(scratch.path()).unwrap();
    assert_eq!(found.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["alive"]);
    assert!(!dead.exists() && other.exists() && server.path().exists());
}

#[test]
fn only_the_user_can_open_sockets() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(server.path()), mode(scratch.path())), (0o600, 0o700));
    let link = scratch.path().join("link");
    symlink(scratch.path(), &link).unwrap();
    let error = Server::start(&link, Fake::named("demo")).unwrap_err().to_string();
    assert!(error.contains("LONGWIRE_RUN_DIR"), "{error}");
    // A directory that others may write to is neither used for serving nor trusted.
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for error in [
        Server::start(scratch.path(), Fake::named("other")).unwrap_err().to_string(),
        list(scratch.path()).unwrap_err().to_string(),
        Client::connect(scratch.path(), None).unwrap_err().to_string(),
    ] {
        assert!(error.contains("open to other users"), "{error}");
    }
    assert_eq!(mode(scratch.path()), 0o777, "its mode is not ours to change");
}

#[test]
fn every_route_is_described() {
    let document = serde_json::to_value(openapi()).unwrap();
    let routes = [
        ("/v1/instance", "get"),
        ("/v1/stats", "get"),
        ("/v1/links", "get"),
        ("/v1/links/{name}", "get"),
        ("/v1/links/{name}", "patch"),
        ("/v1/sources/{name}", "get"),
        ("/v1/sources/{name}", "patch"),
        ("/v1/routers/{name}/routes", "get"),
        ("/v1/routers/{name}/routes", "patch"),
        ("/v1/routers/{name}/flows", "patch"),
        ("/v1/routers/{name}/forwarders", "post"),
        ("/v1/media/{name}", "get"),
        ("/v1/media/{name}", "patch"),
        ("/v1/stop", "post"),
        ("/v1/openapi.json", "get"),
    ];
    let mut described = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(operation["summary"].as_str().is_some_and(|s| !s.is_empty()), "{method} {path}");
            assert!(!operation["responses"].as_object().unwrap().is_empty(), "{method} {path}");
            described.push((path.as_str(), method.as_str()));
        }
    }
    assert_eq!(described.len(), routes.len(), "{described:?}");
    assert!(routes.iter().all(|route| described.contains(route)), "{described:?}");
    for shape in
        ["ChangeRoute", "Duplex", "Info", "Link", "LinkPage", "Problem", "RoutePage", "Source", "WeighFlow"]
    {
        assert!(document["components"]["schemas"][shape].is_object(), "{shape}");
    }

    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    for (path, method) in routes {
        let (name, body) = match path {
            _ if path.contains("sources") => ("video", "{}"),
            _ if path.contains("media") => ("cell", "{}"),
            _ if path.contains("forwarders") => ("core", r#"{"action": "list"}"#),
            _ if path.contains("flows") => ("core", r#"{"flow": "voice", "weight": 4}"#),
            _ if path.contains("routers") => ("core", r#"{"add": "10.2.0.0/16 via 10.9.0.2"}"#),
            _ => ("up", "{}"),
        };
        let path = path.replace("{name}", name);
        let (status, _) = request(server.path(), &method.to_uppercase(), &path, "application/json", body);
        assert!(status < 300, "{method} {path}: {status}");
    }
    let (_, served) = request(server.path(), "GET", "/v1/openapi.json", "", "");
    assert_eq!(served, document);
}

/// The examples of docs/book/control.md: blocks marked `http` are requests, each with its answer in the
/// `json` block below it.
#[test]
fn the_book_shows_what_is_answered() {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/control.md");
    let book = std::fs::read_to_string(book).unwrap();
    let scratch = Scratch::new();
    let fake: Arc<dyn Instance> = Fake::named("demo");
    let server = Server::start(scratch.path(), fake).unwrap();
    let mut examples = 0;
    for part in book.split("```http\n").skip(1) {
        let (asked, rest) = part.split_once("```").unwrap();
        let (line, body) = asked.split_once('\n').unwrap();
        let (method, path) = line.split_once(' ').unwrap();
        let answer = rest.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
        let (_, answered) = request(server.path(), method, path.trim(), "application/json", body.trim());
        let expected = answer.replace("4242", &std::process::id().to_string());
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(answered, expected, "{line}");
        examples += 1;
    }
    assert!(examples >= 4, "the page has {examples} examples");
}

#[test]
fn sources_are_shown_and_changed() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    assert_eq!(client.source("video").unwrap().settings["rate"], "3 Mbit/s");
    let set = client.set_source("video", &[("rate".into(), "8 Mbit/s".into())]).unwrap();
    assert_eq!((set.name.as_str(), set.settings["rate"].as_str()), ("video", "8 Mbit/s"));
    let problem = refused(client.set_source("video", &[("on".into(), "1 s".into())]));
    assert_eq!((problem.status, problem.key.as_deref()), (422, Some("on")));
    let problem = refused(client.source("vidoe"));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("video")));
    let problem = refused(client.set_source("vidoe", &[]));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("video")));
    drop(server);
}

#[test]
fn routes_are_listed_and_changed() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    let first = "10.1.0.0/16 via 10.9.0.2 dev east";
    let listed = || client.routes("core").unwrap().routes;
    assert_eq!(listed(), [first]);
    let second = "10.2.0.0/16 via 10.9.0.6";
    client.change_route("core", &ChangeRoute { add: Some(second.into()), remove: None }).unwrap();
    assert_eq!(listed(), [first, second]);
    let remove = ChangeRoute { add: None, remove: Some("10.1.0.0/16".into()) };
    client.change_route("core", &remove).unwrap();
    assert_eq!(listed(), [second]);
    let problem = refused(client.change_route("core", &remove));
    assert_eq!((problem.status, problem.key.as_deref()), (422, Some("route")));
    let problem = refused(client.routes("coer"));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("core")));
    // Neither field, or both, is not a change.
    for change in [ChangeRoute::default(), ChangeRoute { add: remove.remove.clone(), ..remove.clone() }] {
        assert_eq!(refused(client.change_route("core", &change)).status, 400);
    }
    drop(server);
}

#[test]
fn flows_are_weighed() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    let weigh = |router: &str, flow: &str, weight| {
        client.weigh_flow(router, &WeighFlow { flow: flow.into(), weight })
    };
    weigh("core", "voice", 4).unwrap();
    let problem = refused(weigh("core", "voice", 0));
    assert_eq!((problem.status, problem.key.as_deref()), (422, Some("weight")));
    let problem = refused(weigh("core", "video", 4));
    assert_eq!((problem.status, problem.key.as_deref()), (422, Some("flow")));
    let problem = refused(weigh("coer", "voice", 4));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("core")));
    for body in
        [r#"{"flow": "voice"}"#, r#"{"flow": "voice", "weight": 1.5}"#, r#"{"flow": "voice", "weight": "4"}"#]
    {
        assert_eq!(patch(server.path(), "/v1/routers/core/flows", body).0, 400, "{body}");
    }
}

#[test]
fn programs_of_routers_are_asked_for() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    let ask = ForwarderAsk::Set { fid: 3, data: "00ff".into(), kind: None };
    let answer = client.forwarders("core", &ask).unwrap();
    assert_eq!(answer["asked"], serde_json::json!({"action": "set", "fid": 3, "data": "00ff"}));
    let problem = refused(client.forwarders("coer", &ForwarderAsk::List {}));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("core")));
    let path = "/v1/routers/core/forwarders";
    for body in [r#"{"action": "run"}"#, r#"{"action": "get"}"#, r#"{"action": "list", "fid": 1}"#, "[]"] {
        let (status, _) = request(server.path(), "POST", path, "application/json", body);
        assert_eq!(status, 400, "{body}");
    }
    drop(server);
}

#[test]
fn media_are_shown_and_changed() {
    let scratch = Scratch::new();
    let _server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    assert_eq!(client.medium("cell").unwrap().settings["rate"], "11 Mbit/s");
    let set = client.set_medium("cell", &[("rate".into(), "2 Mbit/s".into())]).unwrap();
    assert_eq!(set.settings["rate"], "2 Mbit/s");
    let problem = refused(client.medium("cel"));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("cell")));
    assert_eq!(refused(client.set_medium("cel", &[])).status, 404);
}

#[test]
fn whether_an_instance_has_ended_is_said_at_once_even_if_it_hangs() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path()).unwrap();
    let socket = scratch.path().join("hung-7.sock");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // No connection is accepted, until the queue is full.
    let (listener, waiting) = runtime.block_on(async {
        let listener = tokio::net::UnixSocket::new_stream().unwrap();
        listener.bind(&socket).unwrap();
        let listener = listener.listen(1).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            match tokio::net::UnixStream::connect(&socket).await {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
        (listener, waiting)
    });
    let client = Client::connect(scratch.path(), None).unwrap();
    let (said, heard) = std::sync::mpsc::channel();
    // A client that waited for it would hang.
    std::thread::spawn(move || {
        let has_ended = client.has_ended();
        said.send((has_ended, client)).is_ok()
    });
    let (has_ended, client) = heard.recv_timeout(std::time::Duration::from_secs(100)).unwrap();
    assert!(!has_ended);
    drop((listener, waiting));
    assert!(client.has_ended(), "nobody listens");
    std::fs::remove_file(&socket).unwrap();
    assert!(client.has_ended(), "it is gone");
}
