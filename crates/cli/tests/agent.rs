//! `longwire serve --agent`: scenarios that clients send, over its API.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use support::service::{ROUTED, Service, TWO_PORTS};
use support::{Folder, longwire, row, stderr};

/// Time limit for events that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent on loopback, and tokens for it.
struct Agent {
    service: Service,
    address: String,
    folder: Folder,
}

impl Agent {
    fn start(what: &str) -> Self {
        let folder = Folder::new(what);
        let tokens = format!("read {}\nsteer {}\ninstall {}\n", token('r'), token('s'), token('i'));
        let tokens = folder.write("tokens", tokens);
        std::fs::set_permissions(&tokens, Permissions::from_mode(0o600)).unwrap();
        let parts = folder.text("parts");
        let args = ["--agent", &parts, "--listen", "127.0.0.1:0", "--tokens", &tokens];
        let service = Service::begin_at(&folder, &args);
        let address = service.event("ready")["address"].as_str().unwrap().to_owned();
        Self { service, address, folder }
    }

    /// Status and body of an answer to the bearer of a scope.
    fn ask(&self, scope: char, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\
             Authorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            token(scope),
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let text = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(text).unwrap_or_default())
    }

    fn get(&self, path: &str) -> (u16, Value) {
        self.ask('r', "GET", path, &Value::Null)
    }

    fn start_part(&self, name: &str, body: &Value) -> (u16, Value) {
        self.ask('i', "PUT", &format!("/v1/agent/parts/{name}"), body)
    }

    fn end_part(&self, name: &str) -> (u16, Value) {
        self.ask('i', "DELETE", &format!("/v1/agent/parts/{name}"), &Value::Null)
    }

    /// The part, once it is in this condition.
    fn await_part(&self, name: &str, condition: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let (_, part) = self.get(&format!("/v1/agent/parts/{name}"));
            if part["condition"] == condition {
                return part;
            }
            assert!(Instant::now() < end, "it does not become {condition}: {part}");
        }
    }
}

fn token(scope: char) -> String {
    scope.to_string().repeat(32)
}

fn part(run: &str, toml: &str) -> Value {
    json!({ "run": run, "toml": toml })
}

#[test]
fn an_agent_runs_what_it_is_sent() {
    let agent = Agent::start("agent");
    let (status, state) = agent.get("/v1/agent");
    assert_eq!((status, &state["parts"]), (200, &json!([])));
    assert_eq!(state["version"], env!("CARGO_PKG_VERSION"));
    assert!(state["pid"].is_u64() && state["started_ns"].as_u64() > Some(1_700_000_000_000_000_000));

    assert_eq!(agent.start_part("net", &part("7f", ROUTED)).0, 202);
    let running = agent.await_part("net", "running");
    assert_eq!((&running["name"], &running["run"]), (&"net".into(), &"7f".into()));
    // Its whole API is there, with its own scopes, and it is an instance of this machine, too.
    let (status, link) = agent.get("/parts/net/v1/links/up");
    assert_eq!((status, &link["settings"]["delay"]), (200, &"10 ms".into()));
    let delay = json!({ "delay": "40 ms" });
    assert_eq!(agent.ask('r', "PATCH", "/parts/net/v1/links/up", &delay).0, 403);
    let (status, link) = agent.ask('s', "PATCH", "/parts/net/v1/links/up", &delay);
    assert_eq!((status, &link["settings"]["delay"]), (200, &"40 ms".into()));
    let (status, page) = agent.get("/parts/net/v1/links?name=u*&count=1");
    assert_eq!((status, &page["total"]), (200, &1.into()), "with its query");
    assert_eq!(agent.get("/parts/net/v1/nothing").0, 404);
    assert_eq!(agent.get("/parts/other/v1/links").0, 404);
    assert!(agent.service.ctl(&["stats", "net"]).status.success());

    // The same run goes on, another one is refused.
    assert_eq!(agent.start_part("net", &part("7f", ROUTED)).0, 202);
    assert_eq!(agent.get("/parts/net/v1/links/up").1["settings"]["delay"], "40 ms");
    let (status, problem) = agent.start_part("net", &part("80", ROUTED));
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("of run 7f"), "{problem}");

    // A second part, whose load its sender has said, and which its own API ends.
    let body = json!({ "run": "7f", "toml": TWO_PORTS, "load_ppm": 350_000 });
    assert_eq!(agent.start_part("two", &body).0, 202);
    assert_eq!(agent.await_part("two", "running")["load_ppm"], 350_000);
    let state = agent.get("/v1/agent").1;
    let loads = state["parts"].as_array().unwrap().iter().map(|part| part["load_ppm"].as_u64());
    assert_eq!(loads.collect::<Vec<_>>(), [None, Some(350_000)]);
    assert_eq!(agent.ask('i', "DELETE", "/parts/two/v1/instance", &Value::Null).0, 202);
    agent.await_part("two", "ended");

    assert_eq!(agent.end_part("net").0, 202);
    let ended = agent.await_part("net", "ended");
    assert_eq!(ended["report"]["command"], "run");
    assert_eq!(row(&ended["report"], "packets accounted for")["pass"], true);
    assert_eq!(row(&ended["report"], "link up")["settings"]["delay"], "40 ms");
    assert_eq!(agent.get("/parts/net/v1/links").0, 404);
    // Asked to end what has ended, it forgets that.
    assert_eq!(agent.end_part("net").1["report"]["command"], "run");
    assert_eq!(agent.end_part("net").0, 404);
    assert_eq!(agent.service.end(), Some(0));
    drop(agent.folder);
}

#[test]
fn what_is_sent_is_checked() {
    let agent = Agent::start("agent-checks");
    let right = part("7f", TWO_PORTS);
    for scope in ['r', 's'] {
        assert_eq!(agent.ask(scope, "PUT", "/v1/agent/parts/net", &right).0, 403);
        assert_eq!(agent.ask(scope, "DELETE", "/v1/agent/parts/net", &Value::Null).0, 403);
    }
    assert_eq!(agent.ask('x', "GET", "/v1/agent", &Value::Null).0, 401);
    assert_eq!(agent.ask('x', "GET", "/parts/net/v1/stats", &Value::Null).0, 401);
    let refused = |name: &str, body: &Value, key: &str| {
        let (status, problem) = agent.start_part(name, body);
        assert_eq!((status, &problem["key"]), (422, &key.into()), "{name}: {problem}");
        problem["detail"].as_str().unwrap().to_owned()
    };
    for name in ["-x", ".x", "a%2Fb", "..%2Fx", &"x".repeat(33)] {
        refused(name, &right, "name");
    }
    refused("net", &part("", TWO_PORTS), "run");
    refused("net", &part("a/b", TWO_PORTS), "run");
    let wrong = refused("net", &part("7f", &TWO_PORTS.replace("10 ms", "soon")), "toml");
    assert!(wrong.contains("\"soon\""), "{wrong}");
    let with = |files: &[(&str, &str)]| {
        let files: BTreeMap<_, _> = files.iter().copied().collect();
        json!({ "run": "7f", "toml": TWO_PORTS, "files": files })
    };
    for files in [
        &[("../x", "00")][..],
        &[("/etc/longwire", "00")],
        &[(".ssh/x", "00")],
        &[("scenario.toml", "00")],
        &[("x", "0")],
        &[("x", "no")],
        &[("a", "00"), ("a/b", "00")],
    ] {
        refused("net", &with(files), "files");
    }
    assert_eq!(agent.start_part("net", &json!({ "run": "7f" })).0, 400);
    assert_eq!(agent.start_part("net", &json!({ "run": "7f", "toml": "", "x": 1 })).0, 400);
    assert_eq!(agent.ask('i', "POST", "/v1/agent/parts/net", &right).0, 405);
    assert_eq!(agent.get("/v1/agent/parts/net").0, 404);
    assert_eq!(agent.get("/v1/agent").1["parts"], json!([]), "nothing is left of them");
    assert_eq!(std::fs::read_dir(agent.folder.path("parts/longwire-parts")).unwrap().count(), 0);
    assert_eq!(agent.service.end(), Some(0));
}

/// A part that names its files, and one that can't start.
#[test]
fn parts_have_their_files_and_their_failures() {
    let agent = Agent::start("agent-files");
    let rate = "rate = { kind = \"trace\", file = \"traces/rate.txt\" }";
    let traced = TWO_PORTS.replace("rate = \"10 Mbit/s\"", rate);
    let trace = "0 s 20 Mbit/s\n5 s 2 Mbit/s\n12 s end\n";
    let trace: String = trace.bytes().map(|byte| format!("{byte:02x}")).collect();
    let body = json!({ "run": "1", "toml": traced, "files": { "traces/rate.txt": trace } });
    let (status, answer) = agent.start_part("traced", &body);
    assert_eq!(status, 202, "{answer}");
    agent.await_part("traced", "running");
    let kept = agent.folder.path("parts/longwire-parts/traced/traces/rate.txt");
    assert!(kept.exists());
    assert_eq!(agent.end_part("traced").0, 202);
    agent.await_part("traced", "ended");
    assert!(!kept.exists(), "files go with their part");

    // Nothing listens at this address of the documentation (RFC 5737), and no key is there.
    let tunnel = "[[port]]\nname = \"far\"\ndriver = \"tunnel\"\nlisten = \"192.0.2.1:7000\"\n\
        peer = \"192.0.2.2:7000\"\nkey = \"tunnel.key\"\n[[port]]\nname = \"b\"\ndriver = \"source\"\n\
        addresses = \"10.0.1.2\"\n[[link]]\nfrom = \"far\"\nto = \"b\"\ndelay = \"1 ms\"\n";
    assert_eq!(agent.start_part("failing", &part("2", tunnel)).0, 202);
    let failed = agent.await_part("failing", "failed");
    assert!(failed["error"].as_str().unwrap().contains("tunnel.key"), "{failed}");
    // It may be started again.
    assert_eq!(agent.start_part("failing", &part("2", TWO_PORTS)).0, 202);
    agent.await_part("failing", "running");
    assert_eq!(agent.service.end(), Some(0));
}

#[test]
fn an_agent_needs_tokens_and_its_own_directory() {
    let agent = Agent::start("agent-own");
    let open = longwire(&["serve", "--agent", "x", "--listen", "127.0.0.1:0"]);
    assert!(open.status.code() == Some(2) && stderr(&open).contains("--tokens"), "{}", stderr(&open));
    let [parts, tokens] = ["parts", "tokens"].map(|name| agent.folder.text(name));
    let second = ["serve", "--agent", &parts, "--listen", "127.0.0.1:0", "--tokens", &tokens];
    let second = longwire(&second);
    assert!(stderr(&second).contains("another agent"), "{}", stderr(&second));
    let both = longwire(&["serve", "x.toml", "--agent", "x", "--listen", "8399", "--tokens", &tokens]);
    assert!(stderr(&both).contains("cannot be used with"), "{}", stderr(&both));
    assert_eq!(agent.service.end(), Some(0));
}
