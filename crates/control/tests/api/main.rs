//! The API and its client, over sockets in a temporary directory.

#[path = "../fake/mod.rs"]
mod fake;
#[path = "../scratch/mod.rs"]
mod scratch;

mod description;
mod requests;
mod sockets;

use fake::Fake;
use longwire_control::{
    Client, ClientError, Entries, Kind, MapChange, NewForwarder, NewState, ObjectQuery, Problem,
    ProgramRequest, Rings, RowFilter, ScenarioRequest, Server, TypeQuery,
};
use scratch::Scratch;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
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
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n{body}",
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
    assert_eq!(client.stats(&RowFilter::default()).unwrap(), json!({"in": 10, "out": 9, "dropped": 1}));
    assert_eq!(client.object(Some(Kind::Link), "up").unwrap().settings["rate"], "10 Mbit/s");
    assert_eq!(client.object(None, "dsl/17 ä?").unwrap().name, "dsl/17 ä?");
    let of = |from, count| ObjectQuery { from, count, ..ObjectQuery::default() };
    let page = client.page(Kind::Link, &of(1, 1)).unwrap();
    assert_eq!((page.total, page.from, page.objects.len()), (5, 1, 1));
    assert_eq!(page.objects[0].name, "down");
    assert!(client.page(Kind::Link, &of(5, 10)).unwrap().objects.is_empty());
}

#[test]
fn objects_are_found_by_a_pattern_page_by_page() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let get = |path: &str| request(server.path(), "GET", path, "", "");
    let (_, page) = get("/v1/links?name=wan.*&count=1");
    assert_eq!((&page["total"], &page["objects"][0]["name"]), (&json!(2), &json!("wan.forward")));
    let (_, page) = get("/v1/links?name=wan.*&from=1");
    assert_eq!(page["objects"].as_array().unwrap().len(), 1);
    assert_eq!(get("/v1/links?name=nothing*").1["total"], 0);
    let (status, problem) = get("/v1/sources?sort=dropped");
    assert_eq!((status, &problem["key"]), (422, &json!("sort")));
    assert_eq!(get("/v1/links?sort=colour").0, 400);
}

#[test]
fn totals_graph_and_events_are_shown() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let get = |path: &str| request(server.path(), "GET", path, "", "");
    let (status, summary) = get("/v1/summary");
    assert_eq!(
        (status, &summary["objects"]["links"], &summary["dropped"]["loss"]),
        (200, &json!(5), &json!(1))
    );
    let (_, graph) = get("/v1/topology");
    assert_eq!(graph["links"], json!([{"name": "up", "from": "a", "to": "b"}]));
    assert_eq!(get("/v1/topology?name=up&count=10").0, 200);
    assert_eq!(get("/v1/topology?count=10001").1["key"], "count");
    assert_eq!(get("/v1/events?planned=maybe").0, 400);
    let (_, events) = get("/v1/events?after=1&planned=false");
    assert_eq!((events["log"].as_array().unwrap().len(), &events["last"]), (2, &json!(3)));
    assert_eq!(get("/v1/events?after=x").0, 400);
    let (_, document) = get("/v1/openapi.json");
    let properties = &document["components"]["schemas"]["LinkSettings"]["properties"];
    assert_eq!(
        (&properties["delay"]["format"], &properties["rate"]["format"]),
        (&json!("time"), &Value::Null)
    );
    let range = (&properties["delay"]["x-least"], &properties["delay"]["x-most"]);
    assert_eq!(range, (&Value::Null, &json!(1_000_000_000)));
    assert_eq!(properties["rate"]["x-takes"], "a text");
}

/// What many ask at one state of the counters is counted and written once.
#[test]
fn clients_with_one_question_share_the_answer() {
    let (scratch, fake) = (Scratch::new(), Fake::named("demo"));
    let server = Server::start(scratch.path(), fake.clone()).unwrap();
    let asked = || fake.asked.load(Ordering::SeqCst);
    let ask_often = |path: &str| {
        let first = request(server.path(), "GET", path, "", "");
        assert!(first.0 == 200 && first.1.is_object(), "{first:?}");
        (0..20).for_each(|_| assert_eq!(request(server.path(), "GET", path, "", ""), first));
    };
    for counted in 1..=3 {
        fake.counted.store(counted, Ordering::SeqCst);
        ask_often("/v1/summary");
        ask_often("/v1/links?count=2");
        ask_often("/v1/links?count=3");
        assert_eq!(asked(), counted * (1 + 2 + 3), "the totals, two links and three");
    }
    let before = asked();
    assert_eq!(request(server.path(), "GET", "/v1/links?count=10001", "", "").0, 422);
    fake.counted.store(0, Ordering::SeqCst);
    ask_often("/v1/summary");
    assert_eq!(asked(), before + 21, "nothing is kept without counters");
}

#[test]
fn a_change_is_made_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let _server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), Some("demo")).unwrap();
    let set = |link: &str, changes: &[(&str, &str)]| {
        let changes: Vec<_> = changes.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        client.set(Some(Kind::Link), link, &changes)
    };
    let changed = set("up", &[("rate", "5mbit"), ("delay", "40ms")]).unwrap();
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
    assert_eq!((problem.status, &*problem.detail), (400, "\"rate\" is given twice"));
    assert_eq!(client.object(Some(Kind::Link), "up").unwrap().settings["rate"], "5mbit");
    assert_eq!(refused(client.object(Some(Kind::Link), "dwn")).suggestion.as_deref(), Some("down"));
}

#[test]
fn scenarios_are_compared_and_applied() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    assert_eq!(client.scenario().unwrap(), "[[link]]\nname = \"up\"\n");
    let comparison = client.compare("seed = 1\n").unwrap();
    assert_eq!(comparison.changes[0].settings[0].wanted.as_deref(), Some("40 ms"));
    let wanted = |toml: &str, partial| ScenarioRequest { toml: toml.into(), partial };
    let problem = refused(client.apply(&wanted("seed = 1\n", false)));
    assert_eq!((problem.status, &*problem.detail), (409, "seed: it is fixed"));
    assert_eq!(client.apply(&wanted("seed = 1\n", true)).unwrap(), comparison);
    let problem = refused(client.compare("nonsense"));
    assert_eq!((problem.status, problem.key.as_deref()), (422, Some("toml")));
    // Scenarios may be longer than other bodies.
    let long = format!("{{\"toml\": \"#{}\"}}", "x".repeat(1 << 20));
    let (status, _) = request(server.path(), "POST", "/v1/scenario/differences", "application/json", &long);
    assert_eq!(status, 200);
}

#[test]
fn metrics_are_text_with_few_links() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let get = |path: &str| {
        raw(server.path(), format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
    };
    let answer = get("/metrics");
    assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0"), "{answer}");
    assert!(answer.ends_with("# limit 100\n# EOF\n"), "{answer}");
    assert!(get("/metrics?links=up&limit=1000").ends_with("# limit 1000\n# EOF\n"));
}

#[test]
fn the_name_of_a_duplex_link_means_both_directions() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let (status, answer) = patch(server.path(), "/v1/links/wan", r#"{"rate": "5mbit"}"#);
    let directions = answer["members"].as_array().unwrap();
    assert_eq!((status, answer["name"].as_str(), directions.len()), (200, Some("wan"), 2));
    for (direction, name) in directions.iter().zip(["wan.forward", "wan.backward"]) {
        assert_eq!(
            (direction["name"].as_str(), direction["settings"]["rate"].as_str()),
            (Some(name), Some("5mbit"))
        );
    }
    let client = Client::connect(scratch.path(), None).unwrap();
    assert_eq!(serde_json::to_value(client.object(None, "wan").unwrap()).unwrap(), answer);
    assert_eq!(answer["settings"]["rate"], "5mbit", "what both have alike");
    assert_eq!(client.object(None, "wan.forward").unwrap().each().len(), 1);
}

#[test]
fn objects_of_all_kinds_are_found_by_name() {
    let scratch = Scratch::new();
    let _server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    let pair = |key: &str, text: &str| [(key.to_owned(), text.to_owned())];
    let one = ObjectQuery { count: 1, ..ObjectQuery::default() };
    for (name, kind, key, text) in [
        ("up", Kind::Link, "rate", "5 Mbit/s"),
        ("video", Kind::Source, "rate", "8 Mbit/s"),
        ("cell", Kind::Medium, "rate", "2 Mbit/s"),
        ("core", Kind::Router, "route.10.2.0.0/16", "via 10.9.0.6"),
        ("core/voice", Kind::Flow, "weight", "4"),
    ] {
        assert_eq!(client.object(None, name).unwrap().kind, kind);
        let set = client.set(None, name, &pair(key, text)).unwrap();
        assert_eq!((set.kind, set.name.as_str(), set.settings[key].as_str()), (kind, name, text));
        assert_eq!(client.object(Some(kind), name).unwrap(), set);
        assert_eq!(client.page(kind, &one).unwrap().total, if kind == Kind::Link { 5 } else { 1 });
    }
    assert_eq!(
        client.routes("core").unwrap().routes,
        ["10.1.0.0/16 via 10.9.0.2 dev east", "10.2.0.0/16 via 10.9.0.6"]
    );
    let problem = refused(client.set(None, "video", &pair("on", "1 s")));
    assert_eq!((problem.status, problem.key.as_deref()), (422, Some("on")));
    let problem = refused(client.object(Some(Kind::Source), "vidoe"));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("video")));
    let problem = refused(client.routes("coer"));
    assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("core")));
    let error = client.set(None, "vidoe", &[]).unwrap_err().to_string();
    assert_eq!(error, "there is no link or other object \"vidoe\"; did you mean the source \"video\"?");
    assert_eq!(
        client.object(None, "elsewhere").unwrap_err().to_string(),
        "there is no link or other object \"elsewhere\""
    );
}

/// The instance receives what the client sends, for all requests about a router's programs.
#[test]
fn programs_of_routers_are_asked_for() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    let text = |text: &str| Some(text.to_owned());
    let new = NewForwarder { forwarder: json!({"program": "x"}), object: text("00ff"), lease: text("30 s") };
    let map = || "a map/?".to_owned();
    for ask in [
        ProgramRequest::List,
        ProgramRequest::Levels,
        ProgramRequest::Install(new.clone()),
        ProgramRequest::Replace(3, NewForwarder { object: None, lease: None, ..new }),
        ProgramRequest::Renew(vec![1, 2]),
        ProgramRequest::Remove(3),
        ProgramRequest::Get(3, TypeQuery::default()),
        ProgramRequest::Get(3, TypeQuery { kind: text("a type&x=1") }),
        ProgramRequest::Set(3, NewState { data: "00ff".into(), kind: text("t") }),
        ProgramRequest::Events(3, Rings { map: Some(map()), kind: None }),
        ProgramRequest::Maps(3),
        ProgramRequest::Map(3, map(), Entries { key: text("{\"port\": 5}"), fields: true }),
        ProgramRequest::Map(3, map(), Entries::default()),
        ProgramRequest::Write(
            3,
            map(),
            MapChange { remove: vec!["00".into()], write: vec![("01".into(), "02".into())] },
        ),
        ProgramRequest::Values(3, map(), vec!["00".into(), "01".into()]),
        ProgramRequest::Clear(3, map()),
    ] {
        let answer = client.forwarders("core", &ask).unwrap();
        assert_eq!(answer["asked"], serde_json::to_value(&ask).unwrap());
        let problem = refused(client.forwarders("coer", &ask));
        assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("core")), "{ask:?}");
    }
    // A list is not read as the fields of an object, in their order.
    for body in [r#"{"forwarder": {}, "colour": 1}"#, r#"{"object": "00"}"#, "[]", r#" [{}, "00", null]"#] {
        let (status, _) =
            request(server.path(), "POST", "/v1/routers/core/forwarders", "application/json", body);
        assert_eq!(status, 400, "{body}");
    }
}
