//! `longwire lab`: hosts and links that stay up in the background.

mod support;

use longwire_lab::abilities;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::guarded::Guarded;
use support::lab::{RunningLab, are_available, can_make_labs};
use support::{Folder, json, longwire, repository, row, stderr, stdout};

/// A lab, and what `lab up` reported.
struct ReportedLab {
    running: RunningLab,
    report: Value,
}

impl ReportedLab {
    /// Skips the test with a message if labs are impossible.
    fn new(test: &str, scenario: &str) -> Option<Self> {
        Self::with_input(test, scenario, "")
    }

    /// As [`ReportedLab::new`], with a text on standard input.
    fn with_input(test: &str, scenario: &str, input: &str) -> Option<Self> {
        let up = |name: &str| fed(&["lab", "up", scenario, "--name", name, "--json"], input);
        let (running, up) = RunningLab::by(test, up)?;
        Some(Self { running, report: json(&up, 0) })
    }

    /// Everything on the machine with this lab's name.
    fn traces(&self) -> Vec<String> {
        let names = ["/run/netns", "/run/longwire"].into_iter().flat_map(|folder| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries.map(|entry| entry.unwrap().path().display().to_string())
        });
        names.filter(|path| path.contains(&self.name)).collect()
    }
}

impl Deref for ReportedLab {
    type Target = RunningLab;

    fn deref(&self) -> &RunningLab {
        &self.running
    }
}

/// Runs longwire with a text on its standard input.
fn fed(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn two_hosts() -> String {
    repository("scenarios/two-hosts.toml").display().to_string()
}

#[test]
fn up_exec_list_down() {
    let Some(lab) = ReportedLab::new("life", &two_hosts()) else { return };
    assert_eq!(row(&lab.report, "host a")["measured"], "10.0.0.1/24, fd00::1/64");
    let again = longwire(&["lab", "up", &two_hosts(), "--name", &lab.name]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("is up already"), "{}", stderr(&again));
    // Packets flow as soon as it is up, names resolve, and exit codes are kept.
    let ping = lab.sh("a", "ping -4 -q -c 5 -i 0.1 -W 2 b | grep -c 'min/avg'; exit 5");
    assert_eq!((ping.status.code(), stdout(&ping).as_str()), (Some(5), "1\n"), "{}", stderr(&ping));
    let list = json(&longwire(&["lab", "list", "--json"]), 0);
    assert_eq!(row(&list, &lab.name)["hosts"], serde_json::json!(["a", "b"]));
    let unknown = longwire(&["lab", "exec", &lab.name, "c", "--", "true"]);
    assert!(stderr(&unknown).contains("it has a, b"), "{}", stderr(&unknown));
    // Its links can be changed while it is up.
    let set = longwire(&["ctl", "set", "up.forward", "delay=5ms", "--instance", &lab.name]);
    assert!(set.status.success(), "{}", stderr(&set));
    assert!(!lab.traces().is_empty());
    let down = longwire(&["lab", "down", &lab.name]);
    assert!(down.status.success(), "{}", stderr(&down));
    assert_eq!(lab.traces(), [""; 0]);
    assert!(stderr(&longwire(&["lab", "down", &lab.name])).contains("no lab"));
}

/// The command takes the place of `lab exec`: whoever started that signals the command, and sees its end.
#[test]
fn a_command_in_a_host_is_the_process_that_was_started() {
    let Some(lab) = ReportedLab::new("place", &two_hosts()) else { return };
    let command = ["lab", "exec", &lab.name, "a", "--", "sh", "-c", "echo $$"];
    let mut started = Command::new(env!("CARGO_BIN_EXE_longwire"));
    let started = started.args(command).stdout(Stdio::piped()).spawn().unwrap();
    let pid = started.id();
    assert_eq!(stdout(&started.wait_with_output().unwrap()), format!("{pid}\n"));
    assert_eq!(lab.sh("a", "kill -KILL $$").status.signal(), Some(9));
    let missing = longwire(&["lab", "exec", &lab.name, "a", "--", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(127), "{}", stderr(&missing));
    assert!(stderr(&missing).contains("no-such-program: there is no such command"), "{}", stderr(&missing));
}

#[test]
fn a_scenario_comes_from_standard_input() {
    let text = std::fs::read_to_string(two_hosts()).unwrap();
    let unnamed = fed(&["lab", "up", "-"], &text);
    assert_eq!(unnamed.status.code(), Some(2));
    assert!(stderr(&unnamed).contains("lab up - --name NAME"), "{}", stderr(&unnamed));
    let Some(lab) = ReportedLab::with_input("piped", "-", &text) else { return };
    let ping = lab.sh("a", "ping -4 -q -c 1 -W 2 b");
    assert!(ping.status.success(), "{}{}", stdout(&ping), stderr(&ping));
    let get = json(&longwire(&["ctl", "get", "up.forward", "--instance", &lab.name, "--json"]), 0);
    assert_eq!((&get["rows"][0]["name"], &get["rows"][0]["kind"]), (&"up.forward".into(), &"link".into()));
    assert!(get["rows"][0]["stats"]["max_late_ns"].is_u64(), "{get:#}");
    let down = json(&longwire(&["lab", "down", &lab.name, "--json"]), 0);
    let report = &row(&down, &lab.name)["report"];
    assert_eq!((&down["command"], &report["mode"]), (&"lab down".into(), &"real".into()), "{down:#}");
    assert!(row(report, "up.forward")["in_packets"].as_u64() > Some(0), "{report:#}");
    let gone = json(&longwire(&["lab", "down", &lab.name, "--json"]), 2);
    assert!(gone["error"].as_str().unwrap().contains("no lab"), "{gone:#}");
}

/// A lab's last words are in the run directory, and nothing else is taken for them.
#[test]
fn a_path_is_no_name_of_a_lab() {
    let folder = Folder::new("path");
    let log = folder.write("x.log", "mine\n");
    let down = longwire(&["lab", "down", &folder.text("x")]);
    assert_eq!(down.status.code(), Some(2), "{}", stdout(&down));
    assert!(stderr(&down).contains("no lab"), "{}", stderr(&down));
    assert_eq!(std::fs::read_to_string(log).unwrap(), "mine\n");
}

/// In mounts of its own, so that nobody else's labs are taken down. The first one has none of its namespaces.
#[test]
fn a_lab_that_can_not_be_taken_down_does_not_keep_others_up() {
    if !can_make_labs("a_lab_that_can_not_be_taken_down_does_not_keep_others_up") {
        return;
    }
    let folder = Folder::new("broken");
    let state = folder.write("state.json", PLANTED.replace("evil", "broken"));
    let script = format!(
        "mount -t tmpfs none /run || exit 1
        longwire=$0; $longwire lab up {} --name whole > /dev/null || exit 1
        mkdir /run/longwire/broken; cp {state} /run/longwire/broken/state.json
        for json in --json ''; do $longwire lab down --all $json; echo status $?; done
        $longwire lab list; $longwire lab down whole > /dev/null 2>&1",
        two_hosts()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_longwire")]);
    let output = command.env("LONGWIRE_RUN_DIR", folder.path("run")).output().unwrap();
    let (said, noted) = (stdout(&output), stderr(&output));
    let (report, rest) = said.split_once("status 2\n").unwrap_or_else(|| panic!("{said}{noted}"));
    let report: Value = serde_json::from_str(report).unwrap_or_else(|e| panic!("{e}: {said}{noted}"));
    assert!(row(&report, "whole")["report"].is_object(), "{report:#}");
    let failure = report["failures"][0].as_str().unwrap();
    assert!(failure.starts_with("can't take lab broken down: "), "{failure}");
    assert_eq!(noted.matches(&format!("error: {failure}\n")).count(), 2, "{noted}");
    assert!(rest.starts_with("status 2\n") && rest.contains("broken"), "{rest}");
    assert!(!rest.contains("whole"), "{rest}");
}

#[test]
fn what_a_killed_lab_left_is_found_and_removed() {
    let Some(lab) = ReportedLab::new("killed", &two_hosts()) else { return };
    let pid = lab.report["pid"].to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    // Until the system has removed the process, it is treated as up, and is told to end.
    let down = longwire(&["lab", "down", &lab.name]);
    assert!(down.status.success(), "{}", stderr(&down));
    assert_eq!(lab.traces(), [""; 0]);
}

#[test]
fn however_a_lab_is_ended_its_report_is_printed_and_nothing_remains() {
    for (test, end) in [("ended", &["lab", "down"]), ("stopped", &["ctl", "stop"])] {
        let Some(lab) = ReportedLab::new(test, &two_hosts()) else { return };
        assert!(lab.sh("a", "ping -4 -q -c 1 -W 2 b").status.success());
        let output = longwire(&[end[0], end[1], &lab.name]);
        assert!(output.status.success(), "{}", stderr(&output));
        let report = stdout(&output);
        assert!(report.contains("of real time") && report.contains("up.forward"), "{report}");
        assert!(report.ends_with(&format!("lab {} is down\n", lab.name)), "{report}");
        assert_eq!(lab.traces(), [""; 0]);
    }
}

#[test]
fn a_lab_that_nobody_waits_for_ends_by_itself() {
    if !can_make_labs("a_lab_that_nobody_waits_for_ends_by_itself") {
        return;
    }
    let name = format!("t{}-deserted", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    let mut up =
        command.args(["lab", "up", &two_hosts(), "--name", &name]).stdout(Stdio::null()).spawn().unwrap();
    let lab = ReportedLab { running: RunningLab { name }, report: Value::Null };
    // Killed while the process that keeps the lab up is working.
    while lab.traces().is_empty() {
        assert!(up.try_wait().unwrap().is_none());
    }
    up.kill().unwrap();
    up.wait().unwrap();
    let begin = Instant::now();
    while !lab.traces().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", lab.traces());
    }
}

#[test]
fn no_other_user_can_open_what_labs_lock() {
    let Some(lab) = ReportedLab::new("locks", &two_hosts()) else { return };
    for (path, mode) in [("/run/longwire", 0o700), ("/run/longwire/.lock", 0o600)] {
        assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o7777, mode, "{path}");
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "flock", "-n", path, "true"]);
        assert!(!nobody.output().unwrap().status.success(), "nobody could lock {path}");
    }
    assert!(longwire(&["lab", "down", &lab.name]).status.success());
}

#[test]
fn iperf_gets_what_the_link_carries() {
    if Command::new("iperf3").arg("--version").output().is_err() {
        return println!("skipped iperf_gets_what_the_link_carries: iperf3 is not installed");
    }
    let folder = Folder::new("iperf");
    // A short queue: the receiver also counts what waits when the sender's time is over.
    let scenario = folder.write(
        "iperf.toml",
        "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
         address = \"10.0.0.2/24\"\n\
         [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n\
         queue = \"20 packets\"\n",
    );
    let Some(lab) = ReportedLab::new("iperf", &scenario) else { return };
    let server = lab.sh(
        "b",
        "iperf3 -s -D --logfile /dev/null && timeout 60 sh -c 'until ss -Hltn | grep -q \
        5201; do sleep 0.1; done'",
    );
    assert!(server.status.success(), "{}", stderr(&server));
    let output = lab.sh("a", "iperf3 -c b -t 3 -O 1 -C cubic -J");
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
    let goodput =
        result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{result:#}"));
    // 1448 of 1518 bytes of each frame are payload.
    let expected = 20e6 * 1448.0 / 1518.0;
    assert!((0.9 * expected..1.02 * expected).contains(&goodput), "{goodput} instead of {expected}");
    let down = longwire(&["lab", "down", &lab.name]);
    assert!(down.status.success(), "{}", stderr(&down));
    assert_eq!(lab.traces(), [""; 0], "the server ends with its host");
}

#[test]
fn a_lab_that_cannot_be_made_says_why() {
    let folder = Folder::new("lab");
    let nothing = folder.write("nothing.toml", "[[bridge]]\nname = \"x\"\n");
    for (scenario, part) in [
        (nothing, "nothing can send"),
        (repository("scenarios/virtual-pcap.toml").display().to_string(), "no hosts"),
        (folder.write("wrong.toml", "[[host]]\nname = \"a\"\naddres = \"10.0.0.1/24\"\n"), "address"),
        (folder.text("missing.toml"), "missing.toml"),
    ] {
        let output = longwire(&["lab", "up", &scenario]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

/// A lab made up by an ordinary user: a user namespace with its own `/run`, in which every host is the
/// namespace of the process itself. `nobody` is that user, and its `sh` does what `longwire lab exec` should
/// run.
struct Planted(Child);

/// User ids that plant a lab.
const NOBODY: &str = "65534";
const ROOT: &str = "0";

impl Planted {
    /// `state` is written as that of the lab `evil`; `$pid` in it is replaced by the process's id.
    fn new(state: &str) -> Self {
        Self::of(NOBODY, "evil", state)
    }

    /// A planted lab of this user with this name and state.
    fn of(user: &str, name: &str, state: &str) -> Self {
        let script = "mount -t tmpfs none /run && mkdir -p /run/longwire/$2 /run/netns || exit 1\n\
             for name in core a; do touch /run/netns/lw-$2-$name; \
             mount --bind /proc/self/ns/net /run/netns/lw-$2-$name || exit 1; done\n\
             printf '%s' \"$1\" | sed \"s/[$]pid/$$/\" > /run/longwire/$2/state.json\n\
             echo planted; read end";
        Self::by(user, &[script, "sh", state, name])
    }

    /// Planted by a script, which confirms it and waits for the end of its standard input.
    fn by(user: &str, script: &[&str]) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", user, "--regid", user, "--clear-groups", "unshare", "-Urmn", "sh", "-c"]);
        let mut child = command.args(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "planted\n");
        Self(child)
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        // The end of its standard input ends it.
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

const PLANTED: &str = r#"{"instance":"evil","owner":null,"core":"lw-evil-core","hosts":[
    {"spec":{"name":"a","addresses":[],
    "mac":null,"mtu":1500,"gateways":[],"routes":[],"wiring":"Own"},
    "namespace":"lw-evil-a","interface":"eth0","port":null}],"forwarding":null}"#;

/// The planted lab's state with the planting process, or another, as the owner.
fn planted_by(owner: &str) -> String {
    let identity = |file: &str| {
        let meta = std::fs::metadata(file).unwrap();
        serde_json::json!({ "device": meta.dev(), "inode": meta.ino() })
    };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let owner = format!(
        r#"{{"pid":{owner},"started":1,"pid_namespace":{},"boot":"{}"}}"#,
        identity("/proc/self/ns/pid"),
        boot.trim()
    );
    PLANTED.replace("\"owner\":null", &format!("\"owner\":{owner}"))
}

#[test]
fn root_enters_signals_and_shows_no_lab_of_another_user() {
    let can = abilities();
    let test = "root_enters_signals_and_shows_no_lab_of_another_user";
    if !are_available(test, &[&can.root, &can.namespaces, &can.user_namespaces]) {
        return;
    }
    let mut victim = Command::new("sleep").arg("60").spawn().unwrap();
    let folder = Folder::new("planted");
    let marker = folder.text("ran-as-root");
    let states = [PLANTED.to_owned(), planted_by("$pid"), planted_by(&victim.id().to_string())];
    for state in states.iter().chain([&PLANTED.replace("\"name\":\"a\"", "\"name\":\"\\u001b[2Ja\"")]) {
        let mut planted = Planted::new(state);
        let list = json(&longwire(&["lab", "list", "--json"]), 0);
        assert!(list["rows"].as_array().unwrap().iter().all(|row| row["name"] != "evil"), "{list:#}");
        let exec = longwire(&["lab", "exec", "evil", "a", "--", "touch", &marker]);
        assert_eq!(exec.status.code(), Some(2), "{}", stdout(&exec));
        assert!(stderr(&exec).contains("no lab evil"), "{}", stderr(&exec));
        let down = longwire(&["lab", "down", "evil"]);
        assert_eq!(down.status.code(), Some(2), "{}", stdout(&down));
        assert!(planted.runs(), "root ended a process because another user's file asked for it");
    }
    assert!(!std::path::Path::new(&marker).exists(), "the planted lab's program ran with root's rights");
    assert!(victim.try_wait().unwrap().is_none(), "root signalled whatever the planted state named");
    victim.kill().unwrap();
    victim.wait().unwrap();
}

/// A lab without an owner in its own user namespace, with the name of a run of root's: root's own run is not
/// taken down for it, whoever planted it.
#[test]
fn a_planted_lab_without_an_owner_takes_no_run_down() {
    let can = abilities();
    let test = "a_planted_lab_without_an_owner_takes_no_run_down";
    if !are_available(test, &[&can.root, &can.namespaces, &can.user_namespaces]) {
        return;
    }
    let folder = Folder::new("ownerless");
    // A separate directory: other users' labs must not be affected.
    let directory = folder.path("run");
    let longwire = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.env("LONGWIRE_RUN_DIR", &directory).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let name = format!("t{}-own", std::process::id());
    let run = longwire(&["run", &two_hosts(), "--name", &name]).spawn().unwrap();
    let mut run = Guarded::killed(run);
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("running as")));
    std::thread::spawn(move || lines.for_each(drop));
    for user in [NOBODY, ROOT] {
        let mut planted = Planted::of(user, &name, &PLANTED.replace("evil", &name));
        let down = longwire(&["lab", "down", "--all"]).output().unwrap();
        assert_eq!(stdout(&down), "no lab is up\n", "{}", stderr(&down));
        assert!(down.status.success() && planted.runs(), "user {user}: {}", stderr(&down));
        assert!(run.try_wait().unwrap().is_none(), "user {user}: root's own run was ended");
        let host = longwire(&["lab", "exec", &name, "a", "--", "true"]).output().unwrap();
        assert!(host.status.success(), "user {user}: a host of root's own run is gone: {}", stderr(&host));
    }
    let stop = longwire(&["ctl", "stop", &name]).output().unwrap();
    assert!(stop.status.success(), "{}", stderr(&stop));
    assert!(run.wait().unwrap().success());
}

#[test]
fn a_planted_state_that_never_ends_holds_nobody_up() {
    let can = abilities();
    if !(can.root.available && can.user_namespaces.available) {
        return println!(
            "skipped a_planted_state_that_never_ends_holds_nobody_up: it takes root and user namespaces"
        );
    }
    for make in ["mkfifo", "ln -s /dev/zero"] {
        let script = format!(
            "mount -t tmpfs none /run && mkdir -p /run/longwire/endless && {make} \
             /run/longwire/endless/state.json && echo planted; read end"
        );
        let _planted = Planted::by(NOBODY, &[&script]);
        let list =
            Command::new("timeout").args(["20", env!("CARGO_BIN_EXE_longwire"), "lab", "list"]).output();
        assert!(list.unwrap().status.success(), "{make}");
    }
}
