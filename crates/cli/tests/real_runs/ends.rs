//! How runs begin and end, and what they name.

use crate::support::lab::can_make_labs;
use crate::support::{Folder, json, longwire, repository, row, stderr, stdout};
use crate::{Running, TWO_HOSTS, assert_nothing_left};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

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
fn a_run_ends_when_asked_and_when_its_time_is_over() {
    if !can_make_labs("a_run_ends_when_asked_and_when_its_time_is_over") {
        return;
    }
    let scenario = repository("scenarios/dumbbell.toml");
    let run = Running::start(scenario.to_str().unwrap(), "asked", &[]);
    assert_eq!(run.ctl(&["stop", &run.name]).status.code(), Some(0));
    // Nobody has to wait before the next one of this name.
    assert_nothing_left(&run.name);
    assert_eq!(run.end().0, Some(0));
    let run = Running::start(scenario.to_str().unwrap(), "timed", &["--for", "300ms"]);
    let name = run.name.clone();
    let (status, report) = run.end();
    assert_eq!(status, Some(0));
    assert!((300_000_000..10_000_000_000).contains(&report["elapsed_ns"].as_u64().unwrap()));
    assert_nothing_left(&name);
}

/// Without the view and its lines, nothing is to be done but to wait: also after the first second.
#[test]
fn a_quiet_run_sleeps() {
    let folder = Folder::new("quiet");
    let ports = "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n\
        [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"10.0.1.2\"\n";
    let scenario =
        folder.write("s.toml", format!("{ports}[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.env("LONGWIRE_RUN_DIR", folder.path("run"));
    command.args(["run", &scenario, "--quiet", "--name", "still", "--for", "600s"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    // Of the main thread: how often it has slept, and its processor time in hundredths of a second.
    let task = format!("/proc/{0}/task/{0}", child.id());
    let slept_and_ran = || {
        let [status, stat] =
            ["status", "stat"].map(|of| std::fs::read_to_string(format!("{task}/{of}")).unwrap());
        let slept = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        let times = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
        (slept.trim().parse::<u64>().unwrap(), times.map(|time| time.parse::<u64>().unwrap()).sum::<u64>())
    };
    while !folder.path("run").is_dir() || std::fs::read_dir(folder.path("run")).unwrap().next().is_none() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    let (slept, ran) = slept_and_ran();
    // At twenty a second, three seconds.
    let deadline = Instant::now() + Duration::from_secs(60);
    let last = loop {
        std::thread::yield_now();
        assert!(Instant::now() < deadline, "it neither sleeps nor runs");
        let now = slept_and_ran();
        if now.0 >= slept + 60 || now.1 > ran + 50 {
            break now;
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(last.1 <= ran + 50, "{} sleeps in {} ms of processor time", last.0 - slept, 10 * (last.1 - ran));
}

/// A run ends with whoever was to read its report, as when the process that started it is killed.
#[test]
fn a_run_ends_with_the_reader_of_its_report() {
    if !can_make_labs("a_run_ends_with_the_reader_of_its_report") {
        return;
    }
    let name = format!("t{}-reader", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.arg("run").arg(repository("scenarios/two-hosts.toml")).args(["--name", &name, "--json"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(run.stderr.take().unwrap()).lines().map_while(Result::ok);
    let (sender, said) = channel();
    std::thread::spawn(move || lines.map_while(|line| sender.send(line).ok()).for_each(drop));
    let deadline = Instant::now() + Duration::from_secs(60);
    let next = || said.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    while !next().expect("a run").starts_with("running as") {}
    drop(run.stdout.take());
    // It says a line a second until it has ended.
    let goes_on = loop {
        match next() {
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => break false,
            Err(RecvTimeoutError::Timeout) => break true,
        }
    };
    if goes_on {
        run.kill().unwrap();
    }
    run.wait().unwrap();
    assert!(!goes_on, "it goes on without a reader");
    assert_nothing_left(&name);
}

/// Two links with default settings hold 60 MB at most, and most of that is the program itself.
#[test]
fn a_small_run_takes_little_memory() {
    if !can_make_labs("a_small_run_takes_little_memory") {
        return;
    }
    let scenario = repository("scenarios/two-hosts.toml");
    let run = Running::start(scenario.to_str().unwrap(), "memory", &[]);
    run.ping("a", "10.0.0.2", &["-i", "0.02", "-c", "20", "-s", "1400"]);
    let pid = run.running.child.id();
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
    if !can_make_labs("the_last_window_of_a_run_has_its_own_verdict") {
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
        let (begin, child) = (Instant::now(), &mut run.running.child);
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
    if !can_make_labs("a_port_that_vanishes_is_named_and_the_run_goes_on") {
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
fn two_runs_of_one_name_are_distinguished() {
    if !can_make_labs("two_runs_of_one_name_are_distinguished") {
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
fn without_root_hosts_are_made_in_a_user_namespace() {
    const NOBODY: u32 = 65_534;
    if !can_make_labs("without_root_hosts_are_made_in_a_user_namespace") {
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
