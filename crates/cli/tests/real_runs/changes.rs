//! Changes while it runs.

use crate::support::guarded::Guarded;
use crate::support::lab::{Echoes, can_make_labs};
use crate::support::{Folder, json, longwire, row, stderr, stdout};
use crate::{Running, TWO_HOSTS, assert_nothing_left};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Pings that go on until dropped.
struct Pings {
    _child: Guarded,
    times: Receiver<f64>,
}

impl Pings {
    fn start(run: &Running, from: &str, to: &str) -> Self {
        let mut command = run.lab().host(from).unwrap().command("ping").unwrap();
        command.args(["-n", "-i", "0.02", to]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, times) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        std::thread::spawn(move || {
            let time = |line: String| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
            lines.filter_map(time).map_while(|time| sender.send(time).ok()).for_each(drop);
        });
        Self { _child: Guarded::killed(child), times }
    }

    /// The next round trip, in ms.
    fn next(&self) -> f64 {
        self.times.recv_timeout(Duration::from_secs(60)).expect("an answer")
    }
}

/// Pings continue while a link between their hosts is added and removed again: each is answered, and its
/// round trip shows the path it took.
#[test]
fn links_are_added_and_removed_while_it_runs() {
    if !can_make_labs("links_are_added_and_removed_while_it_runs") {
        return;
    }
    let folder = Folder::new("add");
    let hosts = TWO_HOSTS.split("[[link]]").next().unwrap();
    let run = Running::start(&folder.write("s.toml", hosts), "add", &[]);
    let name = run.name.as_str();
    let ctl = |words: &[&str]| run.ctl(&[words, &["--instance", name, "--json"]].concat());
    let pings = Pings::start(&run, "a", "10.0.0.2");
    assert!(pings.next() > 0.0);

    let added = json(&ctl(&["add", "link", "slow", "between=a,b", "delay=30ms", "queue=200"]), 0);
    assert_eq!(row(&added, "link slow.forward")["done"], "added");
    let get = json(&ctl(&["get", "slow"]), 0);
    assert_eq!(row(&get, "link slow.backward")["settings"]["delay"], "30 ms");
    while pings.next() < 60.0 {}
    assert!(ctl(&["set", "slow", "delay=50ms"]).status.success());
    while pings.next() < 100.0 {}
    for (words, wrong) in [
        (&["add", "link", "slow.forward", "from=a", "to=b"][..], "there are two links named"),
        (&["add", "link", "c", "from=a", "to=bb"], "did you mean \"b\"?"),
        (&["add", "link", "c", "from=a", "to=b", "rat=1mbit"], "rat"),
        (&["remove", "slow.forward"], "remove \"slow\""),
        (&["remove", "slaw"], "there is no link or other object \"slaw\"; did you mean the link \"slow\"?"),
    ] {
        let output = ctl(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(wrong), "{words:?}: {}", stderr(&output));
    }
    let file = folder.write("more.toml", "[fidelity]\nwithin = \"1 ms\"\n");
    assert!(stderr(&ctl(&["add", "-f", &file])).contains("fidelity differs"));
    let link = "[[link]]\nname = \"c\"\nbetween = [\"a\", \"b\"]\n";
    for (text, place) in
        [("[[link\n", "1:7: not TOML"), (&format!("{link}rate = 1\n"), "4:8: link \"c\", rate")]
    {
        let file = folder.write("wrong.toml", text);
        let said = stderr(&ctl(&["add", "-f", &file]));
        assert!(said.contains(&format!("error: nothing was added: {file}:{place}")), "{said}");
    }
    let removed = json(&ctl(&["remove", "slow"]), 0);
    assert_eq!(row(&removed, "link slow.backward")["done"], "removed");
    while pings.next() > 60.0 {}
    drop(pings);
    let gone = run.ctl(&["get", "slow", "--instance", name]);
    assert!(stderr(&gone).contains("there is no link or other object"), "{}", stderr(&gone));
    run.signal("INT");
    let (code, report) = run.end();
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(row(&report, "packets accounted for")["pass"], true);
}

/// A host joins two others that ping each other, and leaves again: no reply between them is lost.
#[test]
fn hosts_are_added_and_removed_while_it_runs() {
    if !can_make_labs("hosts_are_added_and_removed_while_it_runs") {
        return;
    }
    let folder = Folder::new("host");
    let run = Running::start(&folder.write("s.toml", TWO_HOSTS), "host", &[]);
    let name = run.name.as_str();
    let ctl = |words: &[&str]| run.ctl(&[words, &["--instance", name, "--json"]].concat());
    let namespace = format!("/run/netns/lw-{name}-c");
    let others = Echoes::start(name, "b", "10.0.0.1", 200);
    for round in 0..2 {
        let words = ["add", "host", "c", "address=10.0.0.3/24", "--link", "a", "link.delay=20ms"];
        let added = json(&ctl(&words), 0);
        assert_eq!(row(&added, "host c")["done"], "added", "round {round}");
        assert_eq!(row(&added, "link c-a.forward")["done"], "added");
        let (text, least) = run.ping("a", "10.0.0.3", &["-c", "3", "-i", "0.05"]);
        assert!(least.is_some_and(|ms| (40.0..80.0).contains(&ms)), "{text}");
        let (text, least) = run.ping("c", "10.0.0.2", &["-c", "3", "-i", "0.05"]);
        assert!(least.is_some_and(|ms| ms < 40.0), "{text}");
        assert!(std::path::Path::new(&namespace).exists());
        let twice = ctl(&words);
        assert!(stderr(&twice).contains("there are two nodes named \"c\""), "{}", stderr(&twice));
        let removed = json(&ctl(&["remove", "c"]), 0);
        assert_eq!(row(&removed, "host c")["done"], "removed", "round {round}");
        assert_eq!(row(&removed, "link c-a.backward")["done"], "removed");
        assert!(!std::path::Path::new(&namespace).exists());
    }
    others.lost_nothing();
    // One that remains at the end is removed with the run.
    assert!(ctl(&["add", "host", "c", "address=10.0.0.3/24"]).status.success());
    run.signal("INT");
    let name = run.name.clone();
    let (code, report) = run.end();
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(row(&report, "packets accounted for")["pass"], true);
    assert_nothing_left(&name);
}

#[test]
fn links_are_changed_while_it_runs_and_a_signal_ends_it() {
    if !can_make_labs("links_are_changed_while_it_runs_and_a_signal_ends_it") {
        return;
    }
    let folder = Folder::new("change");
    let run = Running::start(&folder.write("s.toml", TWO_HOSTS), "change", &[]);
    let name = run.name.as_str();
    let list = json(&run.ctl(&["list", "--json"]), 0);
    assert_eq!(row(&list, name)["measured"], 2);

    let (text, least) = run.ping("a", "10.0.0.2", &["-c", "5", "-i", "0.05"]);
    assert!(least.is_some_and(|ms| (20.0..40.0).contains(&ms)), "{text}");
    // One impossible setting: no part of the change is made.
    let refused = run.ctl(&["set", "up.forward", "rate=5mbit", "delay=soon", "--instance", name]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("delay: \"soon\""), "{}", stderr(&refused));
    let unknown = run.ctl(&["set", "up", "dealy=5ms", "--instance", name]);
    assert!(stderr(&unknown).contains("did you mean \"delay\"?"), "{}", stderr(&unknown));
    let several = run.ctl(&["set", "up", "dealy=5ms", "rate=9", "loss=200%", "--instance", name]);
    let lines: Vec<_> = stderr(&several).lines().map(String::from).collect();
    assert!(lines[0].contains("\"dealy\"") && lines[1].starts_with("rate: \"9\""), "{lines:?}");
    assert!(lines.len() == 3 && lines[2].starts_with("loss: \"200%\""), "{lines:?}");
    let settings = |set: &[&str]| {
        let words: Vec<&str> = [&["set", "up.forward"], set, &["--instance", name, "--json"]].concat();
        json(&run.ctl(&words), 0)["rows"][0]["settings"].clone()
    };
    assert_eq!(settings(&["loss=3%", "duplicate=1%", "mtu=1400"])["loss"], "3 %");
    let without = settings(&["loss=", "duplicate=none", "mtu="]);
    assert!(["loss", "duplicate", "mtu"].iter().all(|key| without[key].is_null()), "{without}");
    let nowhere = run.ctl(&["set", "upp", "delay=5ms", "--instance", name]);
    assert!(stderr(&nowhere).contains("there is no link or other object \"upp\""), "{}", stderr(&nowhere));
    let get = json(&run.ctl(&["get", "up.forward", "--instance", name, "--json"]), 0);
    assert_eq!(row(&get, "link up.forward")["settings"]["rate"], "10 Mbit/s");

    let set = json(&run.ctl(&["set", "up", "delay=40ms", "overhead=8", "--instance", name, "--json"]), 0);
    let settings = &row(&set, "link up.backward")["settings"];
    assert_eq!((&settings["delay"], &settings["rate"]), (&"40 ms".into(), &"10 Mbit/s".into()));
    assert_eq!(settings["overhead"], "8");
    let (text, least) = run.ping("a", "10.0.0.2", &["-c", "5", "-i", "0.05"]);
    assert!(least.is_some_and(|ms| (80.0..100.0).contains(&ms)), "{text}");

    let stats = json(&run.ctl(&["stats", name, "--json"]), 0);
    assert!(row(&stats, "link up.forward")["in_packets"].as_u64().unwrap() >= 10);
    assert!(stdout(&run.ctl(&["stats", name])).contains("up.backward"));
    run.signal("INT");
    let name = run.name.clone();
    let (status, report) = run.end();
    assert_eq!(status, Some(0), "{report:#}");
    assert_eq!(report["mode"], "real");
    assert_eq!(row(&report, "packets accounted for")["pass"], true);
    assert_eq!(row(&report, "link up.forward")["settings"]["delay"], "40 ms");
    assert!(report["fidelity"]["faithful"].is_boolean());
    assert_nothing_left(&name);
}

/// Two ports without interfaces, and links of which events have changed what they are made of at the start.
fn changed_by_events(workers: &str) -> String {
    let port = |name: &str, address: &str| {
        format!("[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"{address}\"\n")
    };
    let link = |name: &str, source: &str| {
        let between = "between = [\"a\", \"b\"]\ndelay = \"1 ms\"";
        let addresses = format!("source = \"{source}\", destination = \"10.0.0.2\"");
        format!("[[link]]\nname = \"{name}\"\n{between}\nmatch = [{{ {addresses} }}]\n")
    };
    let event = |link: &str, change: &str| format!("[[at]]\ntime = \"1 us\"\nlink = \"{link}\"\n{change}\n");
    [
        format!("[engine]\nworkers = {workers}\n"),
        port("a", "10.0.0.1"),
        port("b", "10.0.0.2"),
        link("faster", "10.0.0.1"),
        link("lossy", "10.0.0.3"),
        event("faster", "rate = \"5 Mbit/s\""),
        event("lossy", "loss = { kind = \"burst\", loss = \"1 %\", burst = \"4\" }"),
    ]
    .concat()
}

/// A link is what events have made of it, whatever was known of it, and the answer to a change has all of it,
/// of directions at two workers, too.
#[test]
fn changes_and_their_answers_are_of_links_as_they_are() {
    let folder = Folder::new("events");
    for workers in ["1", "2"] {
        let scenario = folder.write("s.toml", changed_by_events(workers));
        let run = Running::start(&scenario, &format!("events{workers}"), &[]);
        let set = |link: &str, settings: &[&str]| {
            json(&run.ctl(&[&["set", link], settings, &["--instance", &run.name, "--json"]].concat()), 0)
        };
        let faster = set("faster", &["delay=7ms"]);
        let lossy = set("lossy", &["loss.burst=6"]);
        let again = set("lossy", &["loss.burst=8", "delay=2ms"]);
        for direction in ["forward", "backward"] {
            let settings = |of: &Value, link: &str, keys: [&str; 2]| {
                let settings = &row(of, &format!("link {link}.{direction}"))["settings"];
                keys.map(|key| settings[key].as_str().unwrap_or_default().to_owned())
            };
            assert_eq!(settings(&faster, "faster", ["rate", "delay"]), ["5 Mbit/s", "7 ms"], "{faster:#}");
            assert_eq!(settings(&lossy, "lossy", ["loss.burst", "delay"]), ["6", "1 ms"], "{lossy:#}");
            assert_eq!(settings(&again, "lossy", ["loss.burst", "delay"]), ["8", "2 ms"], "{again:#}");
        }
        run.signal("INT");
        let (status, report) = run.end();
        assert_eq!(status, Some(0), "{report:#}");
    }
}

#[test]
fn blocks_are_replaced_ramped_and_refused_while_it_runs() {
    if !can_make_labs("blocks_are_replaced_ramped_and_refused_while_it_runs") {
        return;
    }
    let folder = Folder::new("blocks");
    let run = Running::start(&folder.write("s.toml", TWO_HOSTS), "blocks", &[]);
    let name = run.name.clone();
    let set = |args: &[&str]| run.ctl(&[&["set"], args, &["--instance", &name, "--json"]].concat());
    let red = json(&set(&["up", "queue.kind=red", "queue=200 packets", "max-p=5%"]), 0);
    for link in ["link up.forward", "link up.backward"] {
        let settings = &row(&red, link)["settings"];
        assert_eq!((&settings["queue.kind"], &settings["queue"]), (&"red".into(), &"200 packets".into()));
    }
    // From 10 to 60 ms in two seconds, with continuous pings: values between, then the final one.
    let pings = Pings::start(&run, "a", "10.0.0.2");
    // The first ping includes address resolution.
    let first = pings.next();
    assert!((20.0..100.0).contains(&first), "{first}");
    json(&set(&["up", "delay=60ms", "--ramp", "2s", "--step", "10ms"]), 0);
    let (mut between, mut last) = (0, 0.0);
    while last < 120.0 {
        last = pings.next();
        between += u32::from((45.0..115.0).contains(&last));
    }
    assert!(between > 0, "no ping met the ramp on its way");
    drop(pings);
    // The hosts' own latency covers the last step, which may still be pending.
    let begin = Instant::now();
    let delay = || {
        let get = json(&run.ctl(&["get", "up.forward", "--instance", &name, "--json"]), 0);
        row(&get, "link up.forward")["settings"]["delay"].clone()
    };
    while delay() != "60 ms" {
        assert!(begin.elapsed() < Duration::from_secs(100), "the ramp ends at {}", delay());
    }

    let refused = |args: &[&str], why: &str| {
        let output = set(args);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    };
    refused(&["up.forward", "filter=steer up.backward if udp"], "paths are planned before the run");
    refused(&["up", "queue.kind=tail-drop", "--ramp", "1s"], "ramp: its values can't be interpolated");
    refused(&["up", "delay=1ms", "--ramp", "soon"], "ramp: ");
    assert_eq!(json(&set(&["up", "loss=1 %"]), 0)["pass"], true);
    refused(
        &["up", "loss=none", "--ramp", "1s"],
        "loss: a ramp can't take it away; ramp to a value, such as 0 %",
    );
    refused(&["up", "delay=1ms", "--ramp", "1s", "--step", "0s"], "ramp.step: it must be longer than 0");
    for (queue, kind) in [("codel", Some("codel")), ("tail-drop", None)] {
        let settings =
            json(&set(&["up.forward", &format!("queue={queue}")]), 0)["rows"][0]["settings"].clone();
        assert_eq!(settings.get("queue.kind").and_then(Value::as_str), kind, "{settings}");
    }
    refused(&["nothing", "rate=1mbit"], "there is no link or other object \"nothing\"");
    assert_eq!(json(&set(&["up.forward", "filter=drop if udp"]), 0)["pass"], true);
    for none in ["filter=", "filter=none"] {
        assert!(json(&set(&["up.forward", none]), 0)["rows"][0]["settings"]["filter"].is_null());
    }
    run.signal("INT");
    let (status, report) = run.end();
    assert_eq!(status, Some(0), "{report:#}");
    assert_eq!(row(&report, "packets accounted for")["pass"], true);
    assert_nothing_left(&name);
}

#[test]
fn a_source_is_changed_while_it_sends() {
    let folder = Folder::new("set-source");
    let scenario = folder.write(
        "s.toml",
        "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n[[port]]\nname = \"b\"\n\
         driver = \"source\"\naddresses = \"10.0.1.2\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n\
         [[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nrate = \"800 bit/s\"\nsize = \"100 B\"\n\
         packets = 1000\n",
    );
    let directory = folder.path("run");
    let name = format!("t{}-set-source", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.env("LONGWIRE_RUN_DIR", &directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.args(["run", &scenario, "--name", &name, "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("running as")));
    std::thread::spawn(move || lines.for_each(drop));
    let ctl = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let command = command.env("LONGWIRE_RUN_DIR", &directory).arg("ctl").args(args);
        command.args(["--instance", &name, "--json"]).output().unwrap()
    };
    let settings = json(&ctl(&["get", "s"]), 0)["rows"][0]["settings"].clone();
    let wanted = serde_json::json!({
        "model": "cbr", "rate": "800 bit/s", "size": "100 B", "to": "b", "destination": "10.0.1.2",
        "packets": "1000 packets", "for": "unlimited", "state": "up"
    });
    assert_eq!(settings, wanted);
    let paused = json(&ctl(&["set", "s", "state=down", "interval=1s"]), 0);
    let settings = &row(&paused, "source s")["settings"];
    assert_eq!((&settings["state"], &settings["interval"]), (&"down".into(), &"1 s".into()));
    assert!(settings.get("rate").is_none(), "{settings}");
    let refused = ctl(&["set", "s", "on=1s"]);
    assert!(stderr(&refused).contains("the model cbr has no on"), "{}", stderr(&refused));
    // One packet a second would take a quarter of an hour; 10 000 a second take a tenth of a second.
    let set = json(&ctl(&["set", "s", "state=up", "rate=8mbit", "model=poisson"]), 0);
    assert_eq!(row(&set, "source s")["settings"]["model"], "poisson");
    let begin = Instant::now();
    loop {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let command = command.env("LONGWIRE_RUN_DIR", &directory).args(["ctl", "stats", &name, "--json"]);
        let stats = json(&command.output().unwrap(), 0);
        if row(&stats, "link l.forward")["out_packets"] == 1000 {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{stats:#}");
    }
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    let report: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(row(&report, "source s")["measured"], 1000);
}

#[test]
fn flows_are_weighed_while_they_share_processors() {
    let folder = Folder::new("weigh");
    let scenario = |more: &str| {
        let port = |name: &str, net: u8| {
            format!("[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"10.0.{net}.9\"\n")
        };
        let router = "[[router]]\nname = \"r\"\nscheduler = \"gmr3\"\n\
            ports = [{ port = \"a\", addresses = \"10.0.1.1/24\" }, \
            { port = \"b\", addresses = \"10.0.2.1/24\" }]\n\
            flows = [{ name = \"voice\", key = { protocol = \"udp\" } }]\n";
        folder.write("s.toml", format!("{}{}{router}{more}", port("a", 1), port("b", 2)))
    };
    let long = scenario("processors = 4\nrings = { requests = 200 }\n");
    for command in ["check", "run"] {
        let output = longwire(&[command, &long]);
        assert_eq!(output.status.success(), command == "check");
        assert!(
            stderr(&output).contains("s.toml:15:22: ") && stderr(&output).contains("give 127 or less"),
            "{output:?}"
        );
    }
    let source =
        "[[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nrate = \"800 kbit/s\"\nsize = \"100 B\"\n";
    let run = Running::start(&scenario(source), "weigh", &[]);
    let weigh = |flow: &str, weight: &str| run.ctl(&["weigh", "r", flow, weight, "--instance", &run.name]);
    let weights = || {
        let stats = json(&run.ctl(&["stats", &run.name, "--json"]), 0);
        let flows = row(&stats, "router r")["processors"]["flows"].as_array().cloned().unwrap_or_default();
        flows.iter().map(|flow| flow["weight"].clone()).collect::<Vec<_>>()
    };
    // A named flow is shown though no packet of it may have come.
    assert_eq!(weights(), [1]);
    assert_eq!(weigh("voice", "7").status.code(), Some(0));
    // The counters are slightly old.
    let begin = Instant::now();
    while weights() != [7] {
        assert!(begin.elapsed() < Duration::from_secs(30), "it still has {:?}", weights());
    }
    for (flow, weight, part) in [
        ("vioce", "7", "did you mean \"r/voice\"?"),
        ("voice", "-1", "1 to 65535"),
        ("voice", "1.5", "a weight is a whole number; give 1 to 65535"),
        ("voice", "two", "a weight is a whole number"),
    ] {
        let refused = weigh(flow, weight);
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
    }
    assert_eq!(weights(), [7]);
    run.signal("INT");
    run.end();
}
