//! `longwire run` in real time, on test hosts, and `longwire ctl` with it. Needs root; skipped with a message
//! otherwise.

mod support;

use longwire_lab::Lab;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::{Folder, Frame, frame, json, longwire, pcap, repository, row, stderr, stdout};

/// Whether namespaces are possible; prints why a test is skipped if not.
fn can_run(test: &str) -> bool {
    let ability = longwire_lab::abilities().namespaces;
    if !ability.available {
        println!("{test}: skipped: {}", ability.reason);
    }
    ability.available
}

/// A run with its own name.
struct Running {
    child: Option<Child>,
    name: String,
}

impl Running {
    /// Starts it and waits until its hosts are up and it answers.
    fn start(scenario: &str, what: &str, args: &[&str]) -> Self {
        let name = format!("t{}-{what}", std::process::id());
        let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
            .args(["run", scenario, "--name", &name, "--json"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let is_up = lines
            .by_ref()
            .map_while(Result::ok)
            .inspect(|line| said += line)
            .any(|l| l.starts_with("running as"));
        assert!(is_up, "{said}");
        // The rest is drained, because a full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child: Some(child), name }
    }

    fn lab(&self) -> Lab {
        Lab::open(&self.name).unwrap()
    }

    /// `ping` from one host to an address: lost packets and the lowest round trip in ms.
    fn ping(&self, from: &str, to: &str, args: &[&str]) -> (String, Option<f64>) {
        let mut command = self.lab().host(from).unwrap().command("ping").unwrap();
        let output = command.args(["-n", "-q"]).args(args).arg(to).output().unwrap();
        let text = stdout(&output);
        let least = text.split("min/avg/max/mdev = ").nth(1).and_then(|rest| rest.split('/').next());
        (text.clone(), least.and_then(|ms| ms.parse().ok()))
    }

    fn ctl(&self, args: &[&str]) -> Output {
        let output = longwire(&[&["ctl"], args].concat());
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        output
    }

    fn signal(&self, name: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for its end: exit status and report.
    fn end(mut self) -> (Option<i32>, Value) {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        let report =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stdout(&output)));
        (output.status.code(), report)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Left by a failed test: ended as it would end itself.
        if let Some(child) = &mut self.child {
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

/// Pings that go on until dropped.
struct Pings {
    child: Child,
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
        Self { child, times }
    }

    /// The next round trip, in ms.
    fn next(&self) -> f64 {
        self.times.recv_timeout(Duration::from_secs(60)).expect("an answer")
    }
}

impl Drop for Pings {
    fn drop(&mut self) {
        // The run may have removed the host and its processes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn assert_nothing_left(name: &str) {
    let namespaces = std::fs::read_dir("/run/netns").map(|dir| dir.flatten().collect::<Vec<_>>());
    let left = namespaces
        .unwrap_or_default()
        .into_iter()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("lw-{name}-")));
    assert_eq!(left.count(), 0, "namespaces");
    assert!(!Lab::list().unwrap().iter().any(|lab| lab.instance == name), "the lab's state");
    let list = json(&longwire(&["ctl", "list", "--json"]), 0);
    assert!(!list["rows"].as_array().unwrap().iter().any(|row| row["name"] == name), "the socket");
}

/// Two hosts, 10 ms apart, without loss.
const TWO_HOSTS: &str = r#"
[[host]]
name = "a"
address = "10.0.0.1/24"

[[host]]
name = "b"
address = "10.0.0.2/24"

[[link]]
name = "up"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "10 ms"
"#;

/// Pings continue while a link between their hosts is added and removed again: each is answered, and its
/// round trip shows the path it took.
#[test]
fn links_are_added_and_removed_while_it_runs() {
    if !can_run("links_are_added_and_removed_while_it_runs") {
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
        (&["remove", "fast"], "no [[link]], [[host]], [[port]] or [[bridge]] is called \"fast\""),
    ] {
        let output = ctl(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(wrong), "{words:?}: {}", stderr(&output));
    }
    let file = folder.write("more.toml", "[[router]]\nname = \"r\"\n");
    assert!(stderr(&ctl(&["add", "-f", &file])).contains("router differs"));
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
    if !can_run("hosts_are_added_and_removed_while_it_runs") {
        return;
    }
    let folder = Folder::new("host");
    let run = Running::start(&folder.write("s.toml", TWO_HOSTS), "host", &[]);
    let name = run.name.as_str();
    let ctl = |words: &[&str]| run.ctl(&[words, &["--instance", name, "--json"]].concat());
    let namespace = format!("/run/netns/lw-{name}-c");
    let mut others = run.lab().host("a").unwrap().command("ping").unwrap();
    others.args(["-n", "-q", "-c", "200", "-i", "0.01", "10.0.0.2"]).stdout(Stdio::piped());
    let others = others.spawn().unwrap();
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
    let text = stdout(&others.wait_with_output().unwrap());
    assert!(text.contains(" 0% packet loss"), "{text}");
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
    if !can_run("links_are_changed_while_it_runs_and_a_signal_ends_it") {
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

#[test]
fn blocks_are_replaced_ramped_and_refused_while_it_runs() {
    if !can_run("blocks_are_replaced_ramped_and_refused_while_it_runs") {
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
fn an_instance_that_is_stopped_is_listed_at_once() {
    let folder = Folder::new("stopped");
    let scenario = folder.write(
        "s.toml",
        "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n[[port]]\nname = \"b\"\n\
         driver = \"source\"\naddresses = \"10.0.1.2\"\n\
         [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n[[source]]\nname = \"s\"\nfrom = \"a\"\n\
         to = \"b\"\n\
         rate = \"800 bit/s\"\nsize = \"100 B\"\n",
    );
    let directory = folder.path("run");
    let longwire = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.env("LONGWIRE_RUN_DIR", &directory).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let list = |args: &[&str]| longwire(&[&["ctl", "list"], args].concat()).wait_with_output().unwrap();
    let empty = list(&[]);
    assert!(stderr(&empty).starts_with("nothing of yours is running (in "), "{}", stderr(&empty));
    let mut child = longwire(&["run", &scenario, "--name", "still", "--json"]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("running as")));
    std::thread::spawn(move || lines.for_each(drop));
    let signal = |name: &str| {
        assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
    };
    assert_eq!(row(&json(&list(&["--json"]), 0), "still")["answers"], true);
    signal("STOP");
    let begin = Instant::now();
    let listed = json(&list(&["--json"]), 0);
    // Two seconds for an answer instead of 15; the rest is for a busy machine.
    assert!(begin.elapsed() < Duration::from_secs(12), "{:?}", begin.elapsed());
    let still = row(&listed, "still");
    assert_eq!((&still["answers"], &still["pid"]), (&false.into(), &child.id().into()), "{listed:#}");
    assert!(stdout(&list(&[])).contains("does not answer (stopped or busy)"));
    signal("CONT");
    signal("INT");
    assert!(child.wait().unwrap().success());
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

/// A host's programs send its packets: a source there is not run, and every command says so.
#[test]
fn sources_at_hosts_are_named_not_to_run() {
    if !can_run("sources_at_hosts_are_named_not_to_run") {
        return;
    }
    let folder = Folder::new("silent");
    let source = "[[source]]\nname = \"video\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n";
    let scenario = folder.write("s.toml", format!("{TWO_HOSTS}{source}"));
    let why = "source \"video\" is not run in real time";
    assert!(stderr(&longwire(&["check", &scenario])).contains(why));
    let run = Running::start(&scenario, "silent", &[]);
    let refused = run.ctl(&["set", "video", "rate=2mbit", "--instance", &run.name]);
    assert!(stderr(&refused).contains(why) && !stderr(&refused).contains("over"), "{}", stderr(&refused));
    run.signal("INT");
    let (_, report) = run.end();
    assert!(
        row(&report, "source video")["notes"]
            .to_string()
            .contains("not run in real time: what comes in by host")
    );
}

#[test]
fn background_traffic_takes_its_share_of_a_real_link() {
    if !can_run("background_traffic_takes_its_share_of_a_real_link") {
        return;
    }
    let folder = Folder::new("background");
    // Packets of 1500 bytes use 9 of 10 Mbit/s: the transmission of each takes 1.2 ms.
    let busy = "background = { kind = \"cbr\", rate = \"9 Mbit/s\", size = \"1500 B\" }";
    let run = Running::start(&folder.write("s.toml", format!("{TWO_HOSTS}{busy}\n")), "background", &[]);
    let name = run.name.clone();
    let (text, _) = run.ping("a", "10.0.0.2", &["-c", "100", "-i", "0.01"]);
    assert!(text.contains("100 packets transmitted, 100 received"), "{text}");
    let mean: f64 =
        text.split("min/avg/max/mdev = ").nth(1).unwrap().split('/').nth(1).unwrap().parse().unwrap();
    // In both directions: the mean residual transmission time is 0.54 ms each way (0.9 of 1.2 ms / 2).
    assert!(mean > 20.6, "{text}");
    let stats = json(&run.ctl(&["stats", &name, "--json"]), 0);
    let link = row(&stats, "link up.forward");
    let number = |field: &str| link[field].as_u64().unwrap_or_else(|| panic!("{field} in {link:#}"));
    // 750 a second for at least a second.
    assert!(number("made_packets") > 700, "{link:#}");
    // Each was fully sent, waits, or was dropped; packets of the pings come and go.
    let dropped: u64 = link["dropped"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    let held = number("queued_packets") + number("travelling_packets");
    let gone = number("consumed_packets") + number("out_packets") + dropped + held;
    assert_eq!(number("in_packets") + number("made_packets"), gone, "{link:#}");
    assert_eq!(row(&stats, "packets accounted for")["pass"], true);
    run.signal("INT");
    let (status, report) = run.end();
    assert_eq!(status, Some(0), "{report:#}");
    assert_eq!(row(&report, "packets accounted for")["pass"], true);
    assert_nothing_left(&name);
}

#[test]
fn a_run_ends_when_asked_and_when_its_time_is_over() {
    if !can_run("a_run_ends_when_asked_and_when_its_time_is_over") {
        return;
    }
    let scenario = repository("scenarios/dumbbell.toml");
    let run = Running::start(scenario.to_str().unwrap(), "asked", &[]);
    assert_eq!(run.ctl(&["stop", &run.name]).status.code(), Some(0));
    let name = run.name.clone();
    assert_eq!(run.end().0, Some(0));
    assert_nothing_left(&name);
    let run = Running::start(scenario.to_str().unwrap(), "timed", &["--for", "300ms"]);
    let name = run.name.clone();
    let (status, report) = run.end();
    assert_eq!(status, Some(0));
    assert!((300_000_000..10_000_000_000).contains(&report["elapsed_ns"].as_u64().unwrap()));
    assert_nothing_left(&name);
}

/// Two links with default settings hold 60 MB at most, and most of that is the program itself.
#[test]
fn a_small_run_takes_little_memory() {
    if !can_run("a_small_run_takes_little_memory") {
        return;
    }
    let scenario = repository("scenarios/two-hosts.toml");
    let run = Running::start(scenario.to_str().unwrap(), "memory", &[]);
    run.ping("a", "10.0.0.2", &["-i", "0.02", "-c", "20", "-s", "1400"]);
    let pid = run.child.as_ref().unwrap().id();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kilobytes = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_matches([':', '\t', ' ']).trim_end_matches(" kB").trim().parse().unwrap()
    };
    assert!(kilobytes("VmRSS") < 60_000 && kilobytes("RssAnon") < 24_000, "{status}");
    run.signal("INT");
    run.end();
}

/// The last second has a verdict of its own, in `ctl stats`, in the report and in its text.
#[test]
fn the_last_window_of_a_run_has_its_own_verdict() {
    if !can_run("the_last_window_of_a_run_has_its_own_verdict") {
        return;
    }
    let folder = Folder::new("window");
    let text = std::fs::read_to_string(repository("scenarios/two-hosts.toml")).unwrap();
    let scenario = folder.write("window.toml", format!("{text}\n[fidelity]\nwindow = \"1 s\"\n"));
    let run = Running::start(&scenario, "window", &[]);
    run.ping("a", "10.0.0.2", &["-i", "0.02", "-c", "100", "-W", "1"]);
    let stats = json(&run.ctl(&["stats", &run.name, "--json"]), 0);
    let shown = stdout(&run.ctl(&["stats", &run.name]));
    assert!(shown.contains("the last 1 s: "), "{shown}");
    run.signal("INT");
    let (_, report) = run.end();
    for report in [&stats, &report] {
        let window = &report["window"];
        let count = |name: &str| window[name].as_u64().unwrap_or_else(|| panic!("{name}: {window}"));
        assert!(count("judged") >= 1 && count("faithful") <= count("judged"), "{window}");
        assert_eq!(count("length_ns"), 1_000_000_000);
        let last = &window["last"];
        let time = |name: &str| last[name].as_u64().unwrap();
        assert!(time("to_ns") - time("from_ns") >= 950_000_000 && last["fidelity"]["packets"].is_u64());
        // It has a part of the run's packets.
        assert!(last["fidelity"]["packets"].as_u64() < report["fidelity"]["packets"].as_u64(), "{report}");
    }
}

/// A chain of 40 links that duplicate makes as many copies of each packet as allowed: the run never finishes
/// the step, but still reacts to the first signal, and to the end of its time.
#[test]
fn links_that_duplicate_without_end_let_a_run_end() {
    let folder = Folder::new("duplicators");
    let port = |name: &str, bridge: u32, net: u8| {
        format!(
            "[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"10.0.1.{net}\"\n\
             bridge = \"x{bridge}\"\n"
        )
    };
    let bridges: String = (0..41).map(|n| format!("[[bridge]]\nname = \"x{n}\"\n")).collect();
    let step = |n: u32| {
        let (from, to) = (format!("x{n}"), format!("x{}", n + 1));
        format!("[[link]]\nname = \"l{n}\"\nfrom = \"{from}\"\nto = \"{to}\"\nduplicate = \"100 %\"\n")
    };
    let links: String = (0..40).map(step).collect();
    let source =
        "[[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\nsize = \"100 B\"\n";
    let scenario = format!("{}{}{bridges}{links}{source}", port("a", 0, 1), port("b", 40, 2));
    let scenario = folder.write("s.toml", scenario);
    for (what, args) in [("doubled", &[][..]), ("doubled-for", &["--for", "1s"])] {
        let mut run = Running::start(&scenario, what, args);
        if args.is_empty() {
            let begin = Instant::now();
            // Packets are dropped because they were copied too often.
            let dropped = || json(&run.ctl(&["stats", &run.name, "--json"]), 0)["dropped"]["loop"].as_u64();
            while dropped().is_none_or(|packets| packets == 0) {
                assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", dropped());
            }
            run.signal("INT");
        }
        let (begin, child) = (Instant::now(), run.child.as_mut().unwrap());
        while child.try_wait().unwrap().is_none() {
            if begin.elapsed() > Duration::from_secs(60) {
                child.kill().unwrap();
                panic!("{what}: it does not end");
            }
            std::thread::yield_now();
        }
        let (status, report) = run.end();
        assert!(matches!(status, Some(0 | 1)), "{what}: {status:?}");
        assert_eq!(row(&report, "packets accounted for")["pass"], true, "{what}: {report:#}");
    }
}

#[test]
fn a_port_that_vanishes_is_named_and_the_run_goes_on() {
    if !can_run("a_port_that_vanishes_is_named_and_the_run_goes_on") {
        return;
    }
    let folder = Folder::new("vanish");
    let third = "\n[[host]]\nname = \"c\"\naddress = \"10.0.0.3/24\"\ndriver = \"af_packet\"\n";
    let run = Running::start(&folder.write("s.toml", format!("{TWO_HOSTS}{third}")), "vanish", &[]);
    let (text, least) = run.ping("c", "10.0.0.2", &["-c", "2", "-i", "0.05"]);
    assert!(least.is_some(), "{text}");
    let lab = run.lab();
    let port = lab.host("c").unwrap().port().unwrap().to_owned();
    let delete = || Command::new("ip").args(["link", "del", &port]).status().unwrap();
    assert!(lab.in_core(delete).unwrap().success());
    let (text, least) = run.ping("a", "10.0.0.2", &["-c", "5", "-i", "0.05"]);
    assert!(least.is_some(), "{text}");
    // The worker checks by itself: until it notices, there is no report.
    let begin = Instant::now();
    while row(&json(&run.ctl(&["stats", &run.name, "--json"]), 0), "port c")["fault"].is_null() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it is not noticed");
    }
    run.signal("TERM");
    let name = run.name.clone();
    let (status, report) = run.end();
    assert_eq!(status, Some(1));
    assert!(report["failures"].to_string().contains("port c: the interface is gone"), "{report:#}");
    assert!(row(&report, "port c")["fault"].as_str().unwrap().contains("gone"));
    assert_eq!(row(&report, "packets accounted for")["pass"], true);
    assert_nothing_left(&name);
}

#[test]
fn what_was_recorded_meets_the_same_verdicts_in_virtual_time() {
    if !can_run("what_was_recorded_meets_the_same_verdicts_in_virtual_time") {
        return;
    }
    let folder = Folder::new("record");
    let lossy = TWO_HOSTS.replace("delay = \"10 ms\"", "delay = \"10 ms\"\nloss = \"20 %\"");
    let scenario = folder.write("s.toml", lossy);
    let recorded = folder.text("arrivals.pcapng");
    let run = Running::start(&scenario, "record", &["--record", &recorded]);
    // Unanswered pings are expected.
    run.ping("a", "10.0.0.2", &["-c", "200", "-i", "0.005", "-W", "1"]);
    run.signal("INT");
    let (status, real) = run.end();
    assert_eq!(status, Some(0), "{real:#}");
    let (a, b) = (format!("a={recorded}"), format!("b={recorded}"));
    let ran = longwire(&["run", &scenario, "--virtual", "--input", &a, "--input", &b, "--json"]);
    let replayed = json(&ran, 0);
    for link in ["link up.forward", "link up.backward"] {
        for field in ["in_packets", "in_bytes", "dropped", "out_packets"] {
            assert_eq!(row(&real, link)[field], row(&replayed, link)[field], "{link} {field}");
        }
        assert!(row(&real, link)["dropped"]["loss"].as_u64().unwrap() > 10);
    }
}

#[test]
fn two_runs_of_one_name_are_distinguished() {
    if !can_run("two_runs_of_one_name_are_distinguished") {
        return;
    }
    let folder = Folder::new("twice");
    let scenario = folder.write("s.toml", TWO_HOSTS);
    let run = Running::start(&scenario, "twice", &[]);
    let second = longwire(&["run", &scenario, "--name", &run.name, "--for", "1s"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains(&run.name), "{}", stderr(&second));
    let (text, least) = run.ping("a", "10.0.0.2", &["-c", "1"]);
    assert!(least.is_some(), "the first is unharmed: {text}");
    run.signal("INT");
    assert_eq!(run.end().0, Some(0));
}

#[test]
fn sources_and_captures_on_ports_of_their_own_run_in_real_time() {
    let folder = Folder::new("source");
    let frames: Vec<_> = (0..5u8)
        .map(|n| Frame { time: 1000 + u64::from(n) * 10_000_000, wire_len: 100, bytes: frame(1, 2, 100, n) })
        .collect();
    let capture = folder.write("in.pcap", pcap(&frames));
    let scenario = format!(
        "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n[[port]]\nname = \"b\"\n\
         driver = \"source\"\naddresses = \"10.0.1.2\"\n[[port]]\nname = \"c\"\ndriver = \"pcap\"\n\
         input = \"{capture}\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\ndelay = \"30 ms\"\n\
         [[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\ninterval = \"1 ms\"\npackets = 200\n"
    );
    let out = format!("c={}", folder.text("out.pcap"));
    let scenario = folder.write("s.toml", scenario);
    let name = format!("t{}-source", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    // Needs no privileges, and therefore does not use /run.
    command.env("LONGWIRE_RUN_DIR", folder.path("run"));
    command.args(["run", &scenario, "--name", &name, "--for", "1s", "--output", &out, "--quiet", "--json"]);
    let report = json(&command.output().unwrap(), 0);
    let source = row(&report, "source s");
    assert_eq!((&source["expected"], &source["measured"]), (&200.into(), &200.into()));
    let least = source["delay_ns_min"].as_u64().unwrap();
    assert!((30_000_000..40_000_000).contains(&least), "{least}");
    assert_eq!(row(&report, "port c")["in_frames"], 5);
}

#[test]
fn a_source_reaches_a_real_host() {
    if !can_run("a_source_reaches_a_real_host") {
        return;
    }
    let folder = Folder::new("to-host");
    let scenario = folder.write(
        "s.toml",
        "[[host]]\nname = \"h\"\naddress = \"10.0.0.1/24\"\n\
         [[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.0.2\"\n\
         [[link]]\nname = \"l\"\nbetween = [\"a\", \"h\"]\ndelay = \"5 ms\"\n\
         [[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"h\"\nmodel = \"on-off\"\nrate = \"16 Mbit/s\"\n\
         on = \"10 ms\"\noff = \"10 ms\"\npackets = 500\n",
    );
    let running = Running::start(&scenario, "to-host", &["--for", "60s"]);
    let lab = running.lab();
    let host = lab.host("h").unwrap();
    // The kernel counts a datagram for a closed port only after its checksums were verified.
    let mut counted = Vec::new();
    let begin = Instant::now();
    while counted.first() != Some(&500) && begin.elapsed() < Duration::from_secs(30) {
        let read = host.command("cat").unwrap().arg("/proc/net/snmp").output().unwrap();
        let text = stdout(&read);
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let columns = lines.next().unwrap().split(' ').zip(lines.next().unwrap().split(' '));
        let wanted = columns.filter(|(name, _)| ["NoPorts", "InErrors", "InCsumErrors"].contains(name));
        counted = wanted.map(|(_, number)| number.parse::<u64>().unwrap()).collect();
    }
    assert_eq!(counted, [500, 0, 0]);
    running.signal("INT");
    let (status, report) = running.end();
    assert_eq!((status, &row(&report, "source s")["expected"]), (Some(0), &500.into()));
    // 2000 a second half of the time: the last one comes after half a second on average.
    assert_eq!(row(&report, "link l.forward")["out_packets"], 500);
}

#[test]
fn without_root_hosts_are_made_in_a_user_namespace() {
    const NOBODY: u32 = 65_534;
    if !can_run("without_root_hosts_are_made_in_a_user_namespace") {
        return;
    }
    let folder = Folder::new("rootless");
    let scenario = folder.write("s.toml", TWO_HOSTS);
    // A place where the other user can read it.
    let binary = folder.path("longwire");
    std::fs::copy(env!("CARGO_BIN_EXE_longwire"), &binary).unwrap();
    let directory = folder.path("run");
    std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    std::os::unix::fs::chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(args).env("LONGWIRE_RUN_DIR", &directory).current_dir("/").uid(NOBODY).gid(NOBODY);
        command.output().unwrap()
    };
    let output = run(&["run", &scenario, "--for", "500ms", "--json"]);
    if stderr(&output).contains("test hosts can't be made here") {
        println!("without_root_hosts_are_made_in_a_user_namespace: skipped: {}", stderr(&output));
        return;
    }
    let report = json(&output, 0);
    assert_eq!((&report["mode"], report["rows"].as_array().unwrap().len()), (&"real".into(), 5));
}

#[test]
fn interfaces_that_cant_be_used_are_named() {
    let folder = Folder::new("interface");
    let ports = "[[port]]\nname = \"a\"\ndriver = \"af_packet\"\ninterface = \"lw-none0\"\n\
        [[port]]\nname = \"b\"\ndriver = \"source\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n";
    let output = longwire(&["run", &folder.write("s.toml", ports), "--for", "1s"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("interface lw-none0: "), "{}", stderr(&output));
    let hosts = folder.write("hosts.toml", TWO_HOSTS);
    // A capture without packets.
    let capture = folder.path("x.pcap");
    let head = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
    std::fs::write(&capture, head).unwrap();
    let input = format!("a={}", capture.display());
    let output = longwire(&["run", &hosts, "--for", "1s", "--input", &input]);
    assert!(stderr(&output).contains("add --virtual"), "{}", stderr(&output));
}
