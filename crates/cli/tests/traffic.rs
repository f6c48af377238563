//! `longwire traffic`, over the loopback.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdout, Command, Stdio};
use support::guarded::Guarded;
use support::{json, longwire, row, stderr};

/// A receiver that ends after `count` senders.
struct Receiver {
    child: Guarded,
    output: BufReader<ChildStdout>,
    port: String,
}

impl Receiver {
    fn start(senders: u32) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
            .args(["traffic", "receive", "--bind", "127.0.0.1", "--port", "0", "--json", "--count"])
            .arg(senders.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").and_then(|rest| rest.split(';').next());
        let port = address.and_then(|address| address.rsplit_once(':')).unwrap_or_else(|| panic!("{line}")).1;
        let (output, port) = (BufReader::new(child.stdout.take().unwrap()), port.to_owned());
        Self { child: Guarded::killed(child), output, port }
    }

    fn send(&self, what: &str, options: &[&str]) -> Value {
        let mut args = vec!["traffic", "send", what, "127.0.0.1", "--port", &self.port, "--json"];
        args.extend(options);
        json(&longwire(&args), 0)
    }

    /// Its output, a report for each sender.
    fn reports(mut self) -> Vec<Value> {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn both_sides_report_what_was_sent() {
    let receiver = Receiver::start(4);
    let udp = receiver
        .send("udp", &["--packets-per-second", "2000", "--size", "100B", "--count", "200", "--wait", "50ms"]);
    assert_eq!((&udp["command"], &row(&udp, "sent")["measured"]), (&"traffic send udp".into(), &200.into()));
    assert_eq!(row(&udp, "loss")["measured"], 0.0);
    assert!(row(&udp, "one-way delay")["measured"].as_f64().unwrap() > 0.0);
    let tcp = receiver.send("tcp", &["--bytes", "1 MB", "--parallel", "2", "--congestion", "reno"]);
    assert_eq!(row(&tcp, "goodput")["bytes"], 1_000_000);
    assert_eq!(row(&tcp, "goodput")["congestion_control"], "reno");
    let request = receiver.send("request", &["--over", "udp", "--response", "1000B", "--count", "50"]);
    assert_eq!(row(&request, "requests")["answered"], 50);
    let request = receiver.send("request", &["--count", "50", "--parallel", "4"]);
    assert_eq!(row(&request, "request loss")["measured"], 0.0);
    let reports = receiver.reports();
    assert_eq!(reports.len(), 4);
    assert_eq!(row(&reports[0], "received")["measured"], 200);
    assert_eq!(row(&reports[1], "received")["measured"], 1_000_000);
    assert!(reports.iter().all(|report| report["command"] == "traffic receive" && report["pass"] == true));
}

#[test]
fn pings_need_no_receiver() {
    let output =
        longwire(&["traffic", "send", "ping", "127.0.0.1", "--count", "5", "--interval", "1ms", "--json"]);
    if stderr(&output).contains("ping_group_range") {
        println!("skipped pings_need_no_receiver: {}", stderr(&output));
        return;
    }
    let report = json(&output, 0);
    assert_eq!(row(&report, "ping loss")["measured"], 0.0);
    assert!(row(&report, "ping rtt")["measured"].as_f64().unwrap() > 0.0);
}

#[test]
fn mistakes_are_reported_with_the_fix() {
    let error = |args: &[&str]| {
        let output = longwire(&[&["traffic", "send"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        stderr(&output)
    };
    // The discard port is closed on the loopback.
    assert!(error(&["tcp", "127.0.0.1", "--port", "9"]).contains("longwire traffic receive"));
    assert!(error(&["udp", "127.0.0.1", "-6"]).contains("no IPv6 address"));
    assert!(error(&["udp", "127.0.0.1", "--rate", "10 Mbitt"]).contains("Mbit/s"));
    assert!(error(&["udp", "127.0.0.1", "--rate", "0"]).contains("above 0"));
    assert!(error(&["ping", "127.0.0.1", "--count", "0"]).contains("count"));
    assert!(error(&["udp", "no.such.host.invalid"]).contains("check the name"));
}
