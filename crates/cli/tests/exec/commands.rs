//! A command on a link: reach, rights, exit codes and reports.

use crate::support::{Folder, can_make_terminals, ended_by_all, longwire, row, stderr, stdout};
use crate::{LONGWIRE, Machine, NOBODY, least_rtt};
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

#[test]
fn a_command_reaches_outside_through_the_link() {
    let Some(machine) = Machine::new("outside") else { return };
    let before = machine.settings();
    let report = Folder::new("report");
    let file = report.text("exec.json");
    let json_to = format!("--json={file}");
    // Host b has no route to the command's address: replies only come through address translation.
    let ping = "ping -q -c 3 -i 0.2 10.77.0.2; cat /proc/sys/net/ipv4/ip_forward; exit 7";
    let output = machine.exec(&["--delay", "15ms", "--down", "delay=25ms", &json_to, "--", "sh", "-c", ping]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let rtt = least_rtt(&stdout(&output));
    assert!((40.0..60.0).contains(&rtt), "{rtt}");
    // Twice 98 bytes at any rate, and 15 and 25 ms; three questions and answers are too few to say that 99 %
    // are in time.
    let said = stderr(&output);
    let [round_trip, verdict] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert_eq!(round_trip, "longwire: round trip will be about 40.00 ms");
    assert!(
        verdict.contains("too few packets to judge (6)") || verdict.contains("not faithful: "),
        "{verdict}"
    );
    assert_eq!(machine.settings(), before);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!((&report["command"], &report["exit_code"]), (&"exec".into(), &7.into()));
    let fidelity = &report["fidelity"];
    assert!(fidelity["faithful"].is_boolean());
    assert_eq!(fidelity["judged"].as_bool(), Some(verdict.contains("not faithful: ")), "{fidelity:#}");
    // Three questions, and no ARP before them.
    assert_eq!(row(&report, "link up")["out_packets"].as_u64(), Some(3));
}

/// The machine's own end is reachable by IPv6 even without other IPv6, and only the command's packets cross
/// the link.
#[test]
fn the_machine_is_reached_by_ipv6_through_the_link() {
    let Some(machine) = Machine::new("ipv6") else { return };
    let before = machine.settings();
    let report = Folder::new("report6");
    let json_to = format!("--json={}", report.text("exec.json"));
    let ping = "ping -q -c 3 -i 0.2 $LONGWIRE_FAR_IPV6; ip -6 route show default";
    let output = machine.exec(&["-q", "--delay", "15ms", &json_to, "--", "sh", "-c", ping]);
    let said = stdout(&output);
    assert!((30.0..50.0).contains(&least_rtt(&said)), "{said}");
    assert!(!said.contains("default"), "there is no way out by IPv6: {said}");
    assert_eq!(machine.settings(), before);
    let report = std::fs::read(report.text("exec.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    for link in ["link up", "link down"] {
        assert_eq!(row(&report, link)["out_packets"].as_u64(), Some(3));
    }
}

#[test]
fn a_command_runs_as_another_user() {
    let Some(machine) = Machine::new("user") else { return };
    let folder = Folder::new("user");
    chown(folder.path("."), Some(NOBODY), Some(NOBODY)).unwrap();
    let file = folder.text("made");
    let script =
        format!("id -u; id -g; id -G; echo $USER $LOGNAME; grep CapEff /proc/self/status; : > {file}");
    let ran = machine.exec(&["-q", "--user", "nobody", "--", "sh", "-c", &script]);
    let said = stdout(&ran);
    let expected = ["65534", "65534", "65534", "nobody nobody", "CapEff:\t0000000000000000"];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{}", stderr(&ran));
    let made = std::fs::metadata(&file).unwrap();
    assert_eq!((made.uid(), made.gid()), (NOBODY, NOBODY));
    let unknown = machine.exec(&["--user", "no-such-user", "--", "true"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("there is no user \"no-such-user\""), "{}", stderr(&unknown));
}

#[test]
fn files_of_a_run_are_the_caller_s() {
    let Some(machine) = Machine::new("owner") else { return };
    let folder = Folder::new("owner");
    let names =
        ["run.pcapng", "run.log", "run.json", "run.csv", "packets.lwlog", "packets.1.lwlog", "old.json"];
    let [record, messages, json, series, log, _, old] = names.map(|name| folder.text(name));
    std::fs::write(&old, "").unwrap();
    let run = |json: &str| {
        // Enough packets for a second file of the log.
        let options = format!(
            "--record {record} --messages {messages} --json={json} --series {series} --log {log} \
             --file-size 64KiB -- sh -c 'ping -q -i 0.002 -c 1000 $LONGWIRE_FAR'"
        );
        machine.sh(&format!("SUDO_UID={NOBODY} SUDO_GID={NOBODY} {LONGWIRE} exec {options}"))
    };
    for json in [&json, &old] {
        let ran = run(json);
        assert!(ran.status.success(), "{}", stderr(&ran));
        assert!(std::fs::read_to_string(json).unwrap().contains("\"exec\""));
    }
    let owners = names.map(|name| std::fs::metadata(folder.path(name)).unwrap().uid());
    assert_eq!(owners, [NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, 0]);
}

/// Before anything is opened: what was in the files stays.
#[test]
fn files_that_are_named_twice_are_refused() {
    let folder = Folder::new("twice");
    let named = ["k.lwlog", "k.json", "k.csv", "k.trace"];
    let [log, json, series, trace] = named.map(|name| folder.write(name, "kept"));
    let refused = |first: String, second: String| {
        let ran = longwire(&["exec", &first, &second, "--", "echo", "ran"]);
        assert_eq!((ran.status.code(), stdout(&ran).as_str()), (Some(2), ""), "{first} {second}");
        assert!(stderr(&ran).contains("is named twice"), "{first} {second}: {}", stderr(&ran));
    };
    refused(format!("--json={log}"), format!("--log={log}"));
    refused(format!("--json={json}"), format!("--messages={json}"));
    refused(format!("--messages={series}"), format!("--series={series}"));
    refused(format!("--json={trace}"), format!("--trace={trace}"));
    // A report on standard error has the error, too.
    let (messages, series_to) = (format!("--messages={series}"), format!("--series={series}"));
    let said = stderr(&longwire(&["exec", "--json", &messages, &series_to, "--", "true"]));
    let report: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert!(report["error"].as_str().unwrap().contains("is named twice"), "{report:#}");
    for name in named {
        assert_eq!(std::fs::read_to_string(folder.path(name)).unwrap(), "kept", "{name}");
    }
}

/// execvp(3) says "permission denied" where a folder of PATH is closed to the user, whether the command is
/// elsewhere or nowhere.
#[test]
fn a_command_that_another_user_can_not_find_or_execute_ends_as_in_a_shell() {
    let Some(machine) = Machine::new("unfound") else { return };
    let (closed, open) = (Folder::new("closed"), Folder::new("open"));
    for (folder, mode) in [(&closed, 0o700), (&open, 0o755)] {
        std::fs::set_permissions(folder.path("."), Permissions::from_mode(mode)).unwrap();
    }
    closed.write("hidden", "");
    open.write("no-program", "");
    let path = format!("PATH={}:{}:$PATH", closed.text(""), open.text(""));
    for (command, code) in [
        ("longwire-no-such-program", 127),
        ("hidden", 127),
        ("no-program", 126),
        ("/nowhere/no-program", 127),
        (&closed.text("hidden"), 126),
        ("id", 0),
    ] {
        let ran = machine.sh(&format!("{path} {LONGWIRE} exec -q --user nobody -- {command}"));
        assert_eq!(ran.status.code(), Some(code), "{command}: {}", stderr(&ran));
        assert_eq!(stderr(&ran).contains("there is no such command"), code == 127, "{command}");
    }
}

/// Neither a link of the user's to a file of root's nor a folder of root's can be written through it.
#[test]
fn files_of_a_run_are_the_user_s() {
    let Some(machine) = Machine::new("owned") else { return };
    let (folder, root) = (Folder::new("owned"), Folder::new("roots"));
    chown(folder.path("."), Some(NOBODY), Some(NOBODY)).unwrap();
    let names = ["run.pcapng", "run.log", "run.json", "run.csv", "packets.lwlog", "packets.1.lwlog"];
    let [record, messages, json, series, log, _] = names.map(|name| folder.text(name));
    let ran = machine.sh(&format!(
        "SUDO_UID=0 SUDO_GID=0 {LONGWIRE} exec --user nobody --record {record} --messages {messages} \
         --json={json} --series {series} --log {log} --file-size 64KiB \
         -- sh -c 'ping -q -i 0.002 -c 1000 $LONGWIRE_FAR'"
    ));
    assert!(ran.status.success(), "{}", stderr(&ran));
    assert!(std::fs::read_to_string(json).unwrap().contains("\"exec\""));
    for name in names {
        let made = std::fs::metadata(folder.path(name)).unwrap();
        assert_eq!((made.uid(), made.gid()), (NOBODY, NOBODY), "{name}");
    }
    // What the shell has opened is the caller's.
    let ran = machine.exec(&["-q", "--user", "nobody", "--json=/dev/stderr", "--", "true"]);
    assert!(ran.status.success() && stderr(&ran).contains("\"exec\""), "{}", stderr(&ran));
    let refused = |options: &[&str]| {
        let ran = machine.exec(&[&["-q", "--user", "nobody"], options].concat());
        assert_eq!(
            (ran.status.code(), stdout(&ran).as_str()),
            (Some(2), ""),
            "{options:?}: {}",
            stderr(&ran)
        );
        assert!(stderr(&ran).contains("Permission denied"), "{options:?}: {}", stderr(&ran));
    };
    for (option, extension) in
        [("--json", "json"), ("--record", "pcapng"), ("--log", "lwlog"), ("--series", "csv")]
    {
        let kept = root.write(&format!("kept.{extension}"), "kept");
        let link = folder.text(&format!("link.{extension}"));
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        refused(&[&format!("{option}={link}"), "--", "echo", "ran"]);
        refused(&[&format!("{option}={}", root.text(&format!("new.{extension}"))), "--", "echo", "ran"]);
        // Neither by a wrong command line.
        machine.exec(&["--user", "nobody", &format!("--json={link}"), "--rate", "none", "--", "true"]);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept", "{option}");
    }
    let link = folder.text("link.json");
    let ran = machine.exec(&["--user", "nobody", "--messages", &link, "--", "echo", "ran"]);
    assert_eq!((ran.status.code(), stdout(&ran).as_str()), (Some(2), ""), "{}", stderr(&ran));
    assert_eq!(std::fs::read_to_string(root.path("kept.json")).unwrap(), "kept");
}

/// /dev/full is a full disk. The command ends when it has read the warnings.
#[test]
fn files_that_can_not_be_written_any_more_are_said_while_the_command_runs() {
    let Some(machine) = Machine::new("full") else { return };
    let folder = Folder::new("full");
    let of_file = |(option, name)| {
        std::os::unix::fs::symlink("/dev/full", folder.path(name)).unwrap();
        format!("{option}={}", folder.text(name))
    };
    let [log, series, record] =
        [("--log", "packets.lwlog"), ("--series", "rates.csv"), ("--record", "all.pcapng")].map(of_file);
    let messages = folder.text("messages");
    let script = format!(
        "until [ $(grep -c 'is incomplete: No space left' {messages}) = 3 ]; do
            ping -q -c 1 $LONGWIRE_FAR
        done"
    );
    let options = [&log, &series, "--every=1ms", &record, "--messages", &messages, "--"];
    let ran = machine.exec(&[&options[..], &["timeout", "60", "sh", "-c", &script]].concat());
    let said = std::fs::read_to_string(&messages).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{said}{}", stderr(&ran));
}

/// /dev/full is a full disk.
#[test]
fn messages_that_can_not_be_written_are_missed() {
    let Some(machine) = Machine::new("messages") else { return };
    let folder = Folder::new("messages");
    let json_to = format!("--json={}", folder.text("exec.json"));
    let ran = machine.exec(&["--messages", "/dev/full", &json_to, "--", "true"]);
    let said = stderr(&ran);
    assert_eq!(ran.status.code(), Some(0), "{said}");
    let fault = "the messages are incomplete: No space left on device";
    assert!(said.starts_with(&format!("longwire: warning: {fault}")) && said.lines().count() == 1, "{said}");
    let report = std::fs::read(folder.path("exec.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["pass"].as_bool(), Some(false));
    assert!(report["failures"][0].as_str().unwrap().starts_with(fault), "{report:#}");
    // A report on standard error is all that is there.
    let said = stderr(&machine.exec(&["--messages", "/dev/full", "--json", "--", "true"]));
    let report: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert!(report["failures"][0].as_str().unwrap().starts_with(fault), "{report:#}");
}

/// Answers on their way to an interface that is taken down are lost by the emulator, not by the link.
#[test]
fn what_is_not_faithful_fails_if_that_is_required() {
    let Some(machine) = Machine::new("required") else { return };
    let folder = Folder::new("required");
    let (log, capture) = (folder.text("exec.log"), folder.text("exec.pcapng"));
    let (log_to, record_to) = (format!("--messages={log}"), format!("--record={capture}"));
    let script =
        "(sleep 0.3; ip link set eth0 down) & ping -q -i 0.05 -c 20 -W 1 $LONGWIRE_FAR; wait; exit 0";
    let report = folder.text("exec.json");
    let json_to = format!("--json={report}");
    let exec = |script: &str| {
        let options = ["--delay", "200ms", "--require-faithful", &log_to, &record_to, &json_to, "--"];
        machine.exec(&[&options[..], &["sh", "-c", script]].concat())
    };
    let failures = || {
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        assert_eq!(report["pass"].as_bool(), Some(false), "{report:#}");
        report["failures"].to_string()
    };
    let output = exec(script);
    let said = std::fs::read_to_string(&log).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}{}", stderr(&output));
    assert!(said.contains("not faithful: interface down ("), "{said}");
    assert_eq!(stderr(&output), "", "what is said goes to the log");
    assert!(failures().contains("not faithful: interface down ("), "{}", failures());
    let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(told["exit_code"].as_u64(), Some(0), "the command's own");
    // A failing command's own code is kept.
    let output = exec(&script.replace("exit 0", "exit 9"));
    assert_eq!(output.status.code(), Some(9));
    // A section header block, and more than that (pcapng).
    let bytes = std::fs::read(&capture).unwrap();
    assert!(bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && bytes.len() > 1000, "{} bytes", bytes.len());
    let output = exec("true");
    let said = std::fs::read_to_string(&log).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(failures(), "[\"nothing crossed the link\"]");
    assert!(said.contains("nothing crossed the link"), "{said}");
    let said = stderr(&machine.exec(&["-v", "--delay", "20ms", "--down", "loss=1%", "--", "true"]));
    assert!(said.contains("up: ") && said.contains("delay 20 ms") && said.contains("loss 1 %"), "{said}");
    assert!(said.contains("nothing crossed the link"), "{said}");
}

/// No more is said of a link that is not made.
#[test]
fn records_that_can_not_be_made_are_refused_before_the_link_is_described() {
    let Some(machine) = Machine::new("records") else { return };
    let folder = Folder::new("records");
    let log_to = format!("--log={}", folder.text("x.lwlog"));
    let (series_to, nowhere) = (format!("--series={}", folder.text("x.txt")), folder.text("none/x.lwlog"));
    for options in [&[&*series_to][..], &["--log", &*nowhere], &[&*log_to, "--log-links=nosuch"]] {
        let ran = machine.exec(&[&["--delay", "5ms"], options, &["--", "true"]].concat());
        assert_eq!(ran.status.code(), Some(2), "{options:?}: {}", stderr(&ran));
        assert!(!stderr(&ran).contains("round trip"), "{options:?}: {}", stderr(&ran));
    }
}

#[test]
fn it_can_be_nested() {
    let Some(machine) = Machine::new("nested") else { return };
    let before = machine.settings();
    let inner = [
        "--",
        LONGWIRE,
        "exec",
        "-q",
        "--delay",
        "10ms",
        "--",
        "ping",
        "-q",
        "-c",
        "3",
        "-i",
        "0.2",
        "10.77.0.2",
    ];
    let output = machine.exec(&[&["-q", "--delay", "20ms"], &inner[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let rtt = least_rtt(&stdout(&output));
    assert!((60.0..90.0).contains(&rtt), "{rtt}");
    assert_eq!(stderr(&output), "");
    assert_eq!(machine.settings(), before);
}

#[test]
fn exit_codes_signals_and_streams_are_the_commands_own() {
    let Some(machine) = Machine::new("codes") else { return };
    let before = machine.settings();
    for (command, code) in [
        (&["sh", "-c", "exit 0"][..], 0),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["longwire-no-such-program"], 127),
        (&["/"], 126),
    ] {
        let output = machine.exec(&[&["-q", "--"], command].concat());
        assert_eq!(output.status.code(), Some(code), "{command:?}: {}", stderr(&output));
    }
    // SIGINT sent only to longwire is forwarded to the command; then everything is restored as usual. Shells
    // let their background jobs ignore it, and it stays ignored.
    let script = format!(
        "mkfifo $0; env --default-signal=INT \
         {LONGWIRE} exec -q -- sh -c 'trap \"echo got it; exit 3\" INT; echo > $0; while :; do sleep 0.05; \
         done' $0 &
         read line < $0; kill -INT $!; wait $!; echo code $?"
    );
    let folder = Folder::new("signal");
    let fifo = folder.text("ready");
    let output =
        longwire(&["lab", "exec", &machine.name, "a", "--", "timeout", "40", "sh", "-c", &script, &fifo]);
    assert_eq!(stdout(&output), "got it\ncode 3\n", "{}", stderr(&output));
    // Standard input passes through.
    let echoed = machine.sh(&format!("echo hello | {LONGWIRE} exec -q -- cat"));
    assert_eq!(stdout(&echoed), "hello\n");
    assert_eq!(machine.settings(), before);
}

/// The kernel tells the session's leader only, which longwire is behind `ssh -t` or in a terminal's window.
#[test]
fn the_command_is_ended_by_ctl_stop() {
    let Some(machine) = Machine::new("stop") else { return };
    // The parent of the shell is `longwire exec`.
    let script = format!("{LONGWIRE} ctl stop exec-$PPID & exec sleep 60");
    let ended = machine.exec(&["--", "sh", "-c", &script]);
    assert_eq!(ended.status.code(), Some(143), "{}", stderr(&ended));
}

#[test]
fn a_closed_terminal_ends_the_command() {
    if !can_make_terminals() {
        return;
    }
    let Some(machine) = Machine::new("hangup") else { return };
    let before = machine.settings();
    let folder = Folder::new("hangup");
    let pipe = folder.text("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Both keep the pipe open until they end.
    let exec =
        format!("exec 9> {pipe}; exec {LONGWIRE} exec -q -- sh -c 'echo $PPID $$ >&9; exec sleep 1000'");
    let mut terminal = ended_by_all();
    terminal.args([LONGWIRE, "lab", "exec", &machine.name, "a", "--"]);
    terminal.args(["script", "--quiet", "--flush", "--command", &exec, "/dev/null"]);
    terminal.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::null());
    let mut terminal = terminal.spawn().unwrap();
    let (sender, said) = channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(File::open(pipe).unwrap()).lines();
        lines.map_while(Result::ok).for_each(|line| _ = sender.send(line));
    });
    let patience = Duration::from_secs(60);
    let processes = said.recv_timeout(patience).unwrap();
    // The end of what holds a terminal closes it.
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    let ended = said.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected);
    if !ended {
        Command::new("kill").args(processes.split(' ')).status().unwrap();
    }
    assert!(ended, "they run on");
    assert_eq!(machine.settings(), before);
}

/// Relays need more files than their caller may open, also while a program is started.
#[test]
fn a_command_and_a_service_have_the_limit_of_open_files_of_their_caller() {
    let Some(machine) = Machine::new("limit") else { return };
    let folder = Folder::new("limit");
    let file = folder.text("service");
    let show = "echo $(ulimit -n) $(ulimit -Hn)";
    let ran = machine.sh(&format!(
        "ulimit -Sn 128; {show}
        {LONGWIRE} exec -q --publish 8300-8379 --localhost=8000 \
            --serve '{show} > {file}; exec {LONGWIRE} traffic receive --port 7012' \
            -- sh -c '{show}; cat {file}'"
    ));
    let said = stdout(&ran);
    let lines: Vec<_> = said.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("128 "), "{said}{}", stderr(&ran));
    assert!(lines.iter().all(|line| *line == lines[0]), "{said}");
}

#[test]
fn the_report_is_json_in_a_file_or_on_standard_error() {
    let Some(machine) = Machine::new("json") else { return };
    let folder = Folder::new("report");
    let file = folder.text("report.json");
    let to_file = machine.exec(&["-q", &format!("--json={file}"), "--", "echo", "said"]);
    assert_eq!((stdout(&to_file).as_str(), stderr(&to_file).as_str()), ("said\n", ""));
    let mut texts = vec![std::fs::read_to_string(&file).unwrap()];
    // The command is not a file name, with or without two hyphens before it.
    for command in [&["--", "echo", "said"][..], &["echo", "said"]] {
        let to_error = machine.exec(&[&["-q", "--json"], command].concat());
        assert_eq!(stdout(&to_error), "said\n", "{}", stderr(&to_error));
        texts.push(stderr(&to_error));
    }
    for text in texts {
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((report["command"].as_str(), report["exit_code"].as_u64()), (Some("exec"), Some(0)));
    }
    // One that can't be started fails, unlike one that exits with the same code.
    let messages = folder.text("messages");
    let exec = |command: &[&str]| {
        let options = [&format!("--json={file}"), "--messages", &messages, "--"];
        let ran = machine.exec(&[&options[..], command].concat());
        assert_eq!((ran.status.code(), stderr(&ran).as_str()), (Some(127), ""), "{command:?}");
        let report = std::fs::read_to_string(&file).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["exit_code"].as_u64(), Some(127));
        (
            report["pass"].as_bool(),
            report["failures"].to_string(),
            std::fs::read_to_string(&messages).unwrap(),
        )
    };
    let mistaken = |option: &str, value: &str| {
        let ran = machine.exec(&["-q", option, value, "--", "true"]);
        let meant = format!("did you mean {option}={value}?");
        assert!(ran.status.code() == Some(127) && stderr(&ran).contains(&meant), "{}", stderr(&ran));
    };
    mistaken("--localhost", "8000");
    mistaken("--json", "report.json");
    let (pass, failures, _) = exec(&["sh", "-c", "exit 127"]);
    assert_eq!((pass, failures.as_str()), (Some(true), "null"));
    let fault = "longwire-no-such-program: there is no such command";
    let (pass, failures, said) = exec(&["longwire-no-such-program"]);
    assert_eq!((pass, &failures), (Some(false), &format!("[\"{fault}\"]")));
    assert!(said.contains(fault), "{said}");
    let to_error = stderr(&machine.exec(&["-q", "--json", "--", "longwire-no-such-program"]));
    let report: serde_json::Value = serde_json::from_str(&to_error).unwrap();
    assert_eq!(report["failures"].to_string(), failures, "it is there once");
    let failed = machine.exec(&[&format!("--json={file}"), "--profile", "ltee", "--", "true"]);
    assert_eq!((failed.status.code(), stdout(&failed).as_str()), (Some(2), ""));
    let error: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(error["error"].as_str().unwrap().contains("ltee"), "{error:#}");
    // A file that can't be written is reported before the command runs.
    let missing = format!("--json={}", folder.text("missing/report.json"));
    let refused = machine.exec(&["-q", &missing, "--", "sh", "-c", "echo ran; exit 7"]);
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(2), ""), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("can't be written to"), "{}", stderr(&refused));
}

#[test]
fn wrong_options_are_reported_before_anything_is_made() {
    let error = |args: &[&str]| {
        let output = longwire(&[&["exec"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        stderr(&output)
    };
    assert!(error(&["--rate", "10 Mbitt", "--", "true"]).contains("Mbit/s"));
    assert!(error(&["--up", "rate=10Mbitt", "--", "true"]).contains("up"));
    assert!(error(&["--down", "dealy=1ms", "--", "true"]).contains("delay"));
    assert!(error(&["--record", "x.pcap", "--", "true"]).contains("name the capture .pcapng"));
    assert!(error(&["--queue", "many", "--", "true"]).contains("queue"));
    assert!(error(&["--localhost=http", "--", "true"]).contains("neither a port nor a range"));
    assert!(error(&["--publish", "1-2000", "--", "true"]).contains("1024"));
    assert!(error(&["--mtu", "10", "--", "true"]).contains("576"));
    for option in ["--trace", "--trace-up", "--trace-down", "--profile"] {
        let said = error(&[&format!("{option}="), "--", "true"]);
        assert!(said.contains(&format!("a value is required for '{option} <")), "{said}");
    }
    assert!(error(&["--jitter", "5ms", "--", "true"]).contains("--jitter"), "no command begins with a dash");
}
