//! The API and its client, over sockets in a temporary directory.

mod fake;
mod scratch;

use fake::Fake;
use longwire_control::{
    Client, ClientError, Entries, Instance, Kind, MapChange, NewForwarder, ObjectQuery, Problem,
    ProgramRequest, Rings, RowFilter, ScenarioRequest, Server, StartError, State, TypeQuery, list,
};
use scratch::Scratch;
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
    assert!(problem.status == 400 && problem.detail.contains("given twice"), "{problem:?}");
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
    assert_eq!((problem.status, &*problem.detail), (409, "router \"r\": it is new"));
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
        ("PATCH", "/v1/scenario?x", "text/plain", 415),
        ("PUT", "/v1/instance", json, 405),
        ("GET", "/v1/nothing/up", json, 404),
        ("PATCH", "/v1/nothing/up", json, 404),
        ("GET", "/metrics?links=upp", json, 404),
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
    assert!(matches!(client.stats(&RowFilter::default()), Err(ClientError::Silent { .. })));
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
fn every_endpoint_is_described_and_answers() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let (_, document) = request(server.path(), "GET", "/v1/openapi.json", "", "");
    let mut described = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            described += 1;
            let summary = operation["summary"].as_str().unwrap();
            assert!(!summary.is_empty() && !summary.contains('{'), "{method} {path}");
            assert!(!operation["responses"].as_object().unwrap().is_empty(), "{method} {path}");
            let body = match (method.as_str(), path.rsplit('/').next().unwrap()) {
                ("put" | "post", "forwarders" | "{fid}") => r#"{"forwarder": {}}"#,
                (_, "leases") => r#"{"fids": [1]}"#,
                ("put", "state") => r#"{"data": "00"}"#,
                ("put", "scenario") => r#"{"toml": "", "partial": true}"#,
                ("post", "differences") => r#"{"toml": ""}"#,
                (_, "values") => r#"{"keys": ["00"]}"#,
                _ => "{}",
            };
            let path = path.replace("{router}", "core").replace("{fid}", "1").replace("{map}", "m");
            let names = [
                ("links", "up"),
                ("sources", "video"),
                ("media", "cell"),
                ("routers", "core"),
                ("flows", "core%2Fvoice"),
            ];
            let name = names.iter().find(|(collection, _)| path.starts_with(&format!("/v1/{collection}/")));
            let path = path.replace("{name}", name.map_or("none", |(_, name)| name));
            let method = method.to_uppercase();
            let (status, _) = request(server.path(), &method, &path, "application/json", body);
            // The instance has no forwarders and no ports.
            let known = !path.ends_with("/none");
            assert_eq!((status < 300, status == 404), (known, !known), "{method} {path}: {status}");
        }
    }
    // Three for each kind's collection and object, two more for links, and those of the scenario, of routers
    // and of the instance.
    assert_eq!(described, 7 * 3 + 2 + 5 + 2 + 2 + 18);
    let schemas = &document["components"]["schemas"];
    for shape in
        ["Info", "MapChange", "NewForwarder", "Object", "ObjectPage", "Problem", "RoutePage", "Summary"]
    {
        assert!(schemas[shape].is_object(), "{shape}");
    }
    // The settings of a change come from the instance.
    let body = &document["paths"]["/v1/links/{name}"]["patch"]["requestBody"]["content"]["application/json"];
    assert_eq!(body["schema"]["$ref"], "#/components/schemas/LinkSettings");
    let keys: Vec<&String> = schemas["LinkSettings"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["delay", "ramp.step", "rate"]);
    assert_eq!(schemas["LinkSettings"]["properties"]["rate"]["description"], "a help: a text");
    assert!(schemas["RouterSettings"]["patternProperties"]["^route\\..+"].is_object());
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
        ProgramRequest::Set(3, State { data: "00ff".into(), kind: text("t") }),
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
    for body in [r#"{"forwarder": {}, "colour": 1}"#, r#"{"object": "00"}"#, "[]"] {
        let (status, _) =
            request(server.path(), "POST", "/v1/routers/core/forwarders", "application/json", body);
        assert_eq!(status, 400, "{body}");
    }
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
