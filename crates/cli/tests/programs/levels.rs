//! Services and control processes above a router.

use crate::ProgramLab;
use crate::support::guarded::Guarded;
use crate::support::{Folder, json, longwire, repository, row, stderr, stdout};
use std::process::{Command, Stdio};

/// Starts a process beside the router.
fn beside(command: &mut Command) -> Guarded {
    Guarded::killed(command.stdout(Stdio::null()).spawn().unwrap())
}

/// Starts the binary with these arguments.
fn longwire_beside(args: &[&str]) -> Guarded {
    beside(Command::new(env!("CARGO_BIN_EXE_longwire")).args(args))
}

#[test]
fn services_and_processes_above_a_router_answer_real_packets() {
    let Some(lab) = ProgramLab::new("levels", "scenarios/levels.toml") else { return };
    // The service is attached from the start; port 7 of b is closed.
    lab.until("slow-path", "echo", |attachment| attachment["there"] == true);
    lab.answered(7, "seven");
    assert!(lab.attachment("slow-path", "echo")["verdicts"].as_u64() >= Some(1));
    // The process is not attached: its packets are forwarded, and b reports a closed port.
    assert_eq!(lab.echo(9, "nine", "1"), "");
    assert_eq!(lab.attachment("control", "echo")["absent"], 1);
    processes_come_and_go(&lab);
    who_misbehaves_is_cut_off(&lab);
    promises_are_kept(&lab);
    let stats = lab.stats();
    assert_eq!(row(&stats, "level r1 slow-path echo")["pass"], true, "{stats:#}");
    assert_eq!(row(&stats, "level r1 control echo")["pass"], true, "{stats:#}");
    assert_eq!(row(&stats, "packets accounted for")["pass"], true, "{stats:#}");
}

fn processes_come_and_go(lab: &ProgramLab) {
    let socket = lab.forwarder(&["levels", "r1", "--socket"]);
    let script = repository("crates/punt/examples/control.py");
    let mut processes = vec![("native", vec!["control", "echo", "r1", "--instance", lab.name.as_str()])];
    if Command::new("python3").arg("--version").output().is_ok() {
        processes.push(("python", vec![]));
    }
    for (round, (kind, args)) in processes.into_iter().enumerate() {
        let process = match kind {
            "python" => beside(Command::new("python3").arg(&script).args([&*socket, "echo"])),
            _ => longwire_beside(&args),
        };
        lab.until("control", "echo", |attachment| attachment["there"] == true);
        for word in ["one", "two", "three"] {
            lab.answered(9, word);
        }
        // Killed while active: its packets are forwarded again.
        drop(process);
        lab.until("control", "echo", |attachment| {
            attachment["there"] == false && attachment["cut"] == round as u64 + 1
        });
        assert_eq!(lab.attachment("control", "echo")["last_cut"], "left", "{kind}");
        assert_eq!(lab.echo(9, "nine", "1"), "");
    }
    let attachment = lab.attachment("control", "echo");
    assert!(attachment["verdicts"].as_u64() >= Some(3) && attachment["kept"] == 0, "{attachment:#}");
}

fn who_misbehaves_is_cut_off(lab: &ProgramLab) {
    // One that stops answering, and one that sends more than allowed: its flows are forwarded from then on.
    let stalled = longwire_beside(&["control", "echo", "r1", "--instance", &lab.name]);
    lab.until("control", "echo", |attachment| attachment["there"] == true);
    lab.answered(9, "one");
    assert!(Command::new("kill").args(["-STOP", &stalled.id().to_string()]).status().unwrap().success());
    assert_eq!(lab.echo(9, "nine", "1"), "");
    lab.until("control", "echo", |attachment| attachment["last_cut"] == "stalled");
    drop(stalled);
    if Command::new("python3").arg("--version").output().is_ok() {
        let flood = "import sys; sys.path.insert(0, sys.argv[1]); from control import *; c = \
            Control(sys.argv[2], 'echo')\nwhile True: c.send(0, bytes(60)); c.flush()";
        let folder = repository("crates/punt/examples");
        let socket = lab.forwarder(&["levels", "r1", "--socket"]);
        let _flooding = beside(Command::new("python3").args(["-B", "-c", flood]).arg(folder).arg(&socket));
        lab.until("control", "echo", |attachment| {
            attachment["last_cut"] == "flood" && attachment["there"] == false
        });
        lab.answered(7, "seven");
    }
}

fn promises_are_kept(lab: &ProgramLab) {
    // A guarantee beyond the limit is refused with the sum; a removal makes room.
    let install = |name: &str, packets: &str| {
        let args = [
            "--where",
            "control",
            "--name",
            name,
            "--packets",
            packets,
            "--cycles",
            "1000",
            "--destination-port",
            "11",
        ];
        longwire(&[&["forwarder", "install", "r1"], &args[..], &["--instance", &lab.name]].concat())
    };
    let refused = install("more", "500000");
    let sum = "500000 packets/s x 1000 cycles = 500000000 cycles/s, and 50000000 promised already, make \
        550000000 of 500000000";
    assert!(!refused.status.success() && stderr(&refused).contains(sum), "{}", stderr(&refused));
    let fid = stdout(&install("more", "400000")).trim().to_owned();
    assert!(stderr(&install("again", "400000")).contains("promised already"));
    lab.forwarder(&["remove", "r1", &fid]);
    assert!(install("again", "400000").status.success(), "there is room again");

    // A service that is added while packets flow, beside the other.
    let args = [
        "--where",
        "slow-path",
        "--service",
        "echo",
        "--name",
        "second",
        "--packets",
        "10",
        "--cycles",
        "1000",
    ];
    let fid = lab.forwarder(&[&["install", "r1"], &args[..], &["--destination-port", "13"]].concat());
    lab.until("slow-path", "second", |attachment| attachment["there"] == true);
    lab.answered(13, "thirteen");
    lab.forwarder(&["remove", "r1", &fid]);
    assert_eq!(lab.echo(13, "thirteen", "1"), "");
}

#[test]
fn services_run_in_virtual_time_and_processes_do_not() {
    let text = std::fs::read_to_string(repository("scenarios/levels.toml")).unwrap();
    let source = "[[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nsize = \"500 B\"\n\
        packets = 100\n";
    let folder = Folder::new("levels-virtual");
    let both = folder.write("both.toml", format!("{text}\n{source}"));
    let refused = longwire(&["run", "--virtual", &both]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("\"echo\" is a control process"), "{}", stderr(&refused));
    let check = longwire(&["check", &both]);
    assert!(stderr(&check).contains("in real time only"), "{}", stderr(&check));

    // Without it, and with all capacity for the service, which answers each packet after a microsecond.
    let service = text[..text.rfind("[[forwarder]]").unwrap()].replace("destination-port = 7, ", "");
    let service = folder.write("service.toml", format!("{service}\n{source}"));
    let ran = json(&longwire(&["run", "--virtual", &service, "--json"]), 0);
    let level = row(&ran, "level r1 slow-path echo");
    assert_eq!((&level["up"], &level["verdicts"], &level["pass"]), (&100.into(), &100.into(), &true.into()));
    let source = row(&ran, "source s");
    assert_eq!((&source["expected"], &source["measured"]), (&100.into(), &0.into()), "{source:#}");
    assert_eq!(row(&ran, "router r1")["forwarded"], 100);
}

#[test]
fn what_can_not_be_asked_for_above_is_a_mistake_of_the_scenario() {
    let text = std::fs::read_to_string(repository("scenarios/levels.toml")).unwrap();
    let folder = Folder::new("levels-wrong");
    for (from, to, wanted) in [
        (
            "packets = 1000\ncycles = 50_000",
            "packets = 1000\ncycles = 600_000",
            "make 600000000 of 500000000: 100000000 too many; ask for at most 833 packets/s",
        ),
        ("service = \"echo\"", "service = \"ecco\"", "there is no service \"ecco\"; there are echo, witness"),
        ("name = \"echo\"", "", "a control process attaches by its name"),
        (
            "where = \"control\"",
            "where = \"pentium\"",
            "\"pentium\" is not one of data-path, slow-path, control",
        ),
        ("where = \"control\"", "program = \"policer\"", "the data path has no such setting"),
        ("cycles = 50_000", "", "the number of cycles per packet is missing"),
    ] {
        let wrong = folder.write("wrong.toml", text.replacen(from, to, 1));
        let check = longwire(&["check", &wrong]);
        assert_eq!(check.status.code(), Some(2), "{to}");
        assert!(stderr(&check).contains(wanted), "{to}: {}", stderr(&check));
    }
}
