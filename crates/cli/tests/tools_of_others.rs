//! What other projects' tools say about a service: Schemathesis of its API, Prometheus of its metrics.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use support::guarded::Guarded;
use support::service::{ROUTED, Service};
use support::{Folder, stderr, stdout};

/// Names of what is there, which Schemathesis can't guess.
const NAMES: &str = r#"
[parameters]
router = "r"
fid = 1

[[operations]]
include-path-regex = "/links/"
parameters = { name = "up" }

[[operations]]
include-path-regex = "/sources/"
parameters = { name = "video" }

[[operations]]
include-path-regex = "/ports/"
parameters = { name = "a" }
"#;

#[test]
fn schemathesis_finds_the_api_as_described() {
    if let Err(error) = Command::new("st").arg("--version").output() {
        let how = "pip install schemathesis makes it";
        println!("schemathesis_finds_the_api_as_described: skipped: st: {error}; {how}");
        return;
    }
    let folder = Folder::new("schemathesis");
    let file = folder.write("net.toml", ROUTED);
    let service = Service::start(&folder, &[&file, "--listen", "127.0.0.1:0"]);
    let api = format!("http://{}/v1/openapi.json", service.started["address"].as_str().unwrap());
    folder.write("schemathesis.toml", NAMES);
    let mut command = Command::new("st");
    // Settings can exclude each other, and texts be no rates, which a schema can't say: not all that it
    // allows is accepted. The end of the instance is left out, and fuzzing without end.
    command.args(["run", &api, "--exclude-checks", "positive_data_acceptance"]);
    command.args(["--exclude-operation-id", "stop", "--max-examples", "5", "--seed", "1"]);
    command.args(["--continue-on-failure", "--no-shrink", "--no-color"]);
    let output = command.current_dir(folder.path("")).output().unwrap();
    let report = format!("{}{}", stdout(&output), stderr(&output));
    assert!(output.status.success(), "{report}");
    let cases = report.lines().find_map(|line| line.trim().split_once(" generated")?.0.parse::<u32>().ok());
    assert!(cases.is_some_and(|cases| cases > 1000), "{report}");
    assert!(service.ctl(&["stats"]).status.success(), "it still runs");
    assert_eq!(service.end(), Some(0));
}

/// The first value of a query, if there is one.
fn value(prometheus: &str, query: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(prometheus).unwrap();
    write!(stream, "GET /api/v1/query?query={query} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
    answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

#[test]
fn prometheus_scrapes_a_service() {
    let folder = Folder::new("prometheus");
    let file = folder.write("net.toml", ROUTED);
    let token = "a".repeat(32);
    let tokens = folder.write("tokens", format!("read {token}\n"));
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let service = Service::start(&folder, &[&file, "--listen", "127.0.0.1:0", "--tokens", &tokens]);
    let target = service.started["address"].as_str().unwrap();
    let config = folder.write(
        "prometheus.yml",
        format!(
            "global: {{ scrape_interval: 200ms, scrape_timeout: 200ms }}\nscrape_configs:\n  \
             - job_name: longwire\n    \
             authorization: {{ credentials: {token} }}\n    params: {{ links: [up] }}\n    \
             static_configs: [{{ targets: [\"{target}\"] }}]\n"
        ),
    );
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={config}")).arg("--web.listen-address=127.0.0.1:0");
    command.arg(format!("--storage.tsdb.path={}", folder.text("data")));
    let mut prometheus = match command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn() {
        Ok(child) => Guarded::killed(child),
        Err(error) => return println!("prometheus_scrapes_a_service: skipped: prometheus: {error}"),
    };
    let (sender, log) = channel();
    let lines = BufReader::new(prometheus.stderr.take().unwrap()).lines().map_while(Result::ok);
    std::thread::spawn(move || lines.map_while(|line| sender.send(line).ok()).for_each(drop));
    let deadline = Instant::now() + Duration::from_secs(60);
    let left = || deadline.saturating_duration_since(Instant::now());
    let address = loop {
        let line = log.recv_timeout(left()).expect("the address of Prometheus");
        if let Some((_, address)) = line.split_once("msg=\"Listening on\" address=") {
            break address.trim().to_owned();
        }
    };
    // Links have series of their own because the scrape asks for them.
    let queries = [
        "up",
        "longwire_received_packets_total{scenario=\"net\"}",
        "longwire_link_in_packets_total{link=\"up\"}",
        "longwire_links",
    ];
    for query in queries {
        while value(&address, query).is_none_or(|value| value == 0.0) {
            assert!(!left().is_zero(), "no {query} in {:?}", log.try_iter().collect::<Vec<_>>());
            // Between two looks, what it says: usually nothing.
            let _ = log.recv_timeout(Duration::from_millis(50));
        }
    }
    assert_eq!(value(&address, "up"), Some(1.0));
    assert_eq!(value(&address, "longwire_links"), Some(2.0));
    drop(prometheus);
    assert_eq!(service.end(), Some(0));
}
