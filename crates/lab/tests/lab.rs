//! Labs made of real namespaces.
#![allow(unsafe_code)]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use longwire_lab::{HostSpec, Lab, LabError, Mac, Namespace, Route, Wiring, sweep};
use support::{Wire, machine_state, may_run, output, unique};

/// Makes a copy of this test program the process that creates a lab and is killed.
const MAKE_AND_WAIT: &str = "LONGWIRE_TEST_LAB";

fn two_hosts() -> [HostSpec; 2] {
    let host = |name, v4: &str, v6: &str| {
        let mut spec = HostSpec::new(name, v4.parse().unwrap());
        spec.addresses.push(v6.parse().unwrap());
        spec.wiring = Wiring::Veth { offload: false };
        spec
    };
    [host("a", "10.9.0.1/24", "fd09::1/64"), host("b", "10.9.0.2/24", "fd09::2/64")]
}

fn wired(lab: &Lab) -> Wire {
    let port = |name| lab.host(name).unwrap().port().unwrap();
    Wire::between(lab.core(), port("a"), port("b"))
}

#[test]
fn what_a_process_left_that_was_killed_at_its_first_write_is_swept() {
    if !may_run("what_a_process_left_that_was_killed_at_its_first_write_is_swept") {
        return;
    }
    // World-readable before the first lab is created, as an earlier version left it.
    let root = Path::new("/run/longwire");
    longwire_rundir::prepare(root).unwrap();
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    let folder = root.join(unique("begun"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("state.new"), "{").unwrap();
    let other = root.join(unique("other"));
    fs::create_dir(&other).unwrap();
    fs::write(other.join("notes"), "not ours").unwrap();
    sweep().unwrap();
    assert!(!folder.exists() && other.exists());
    assert_eq!(fs::metadata(root).unwrap().permissions().mode() & 0o7777, 0o700);
    fs::remove_dir_all(other).unwrap();
}

#[test]
fn hosts_reach_each_other_by_address_and_name() {
    if !may_run("hosts_reach_each_other_by_address_and_name") {
        return;
    }
    let lab = Lab::create(&unique("ping"), &two_hosts()).unwrap();
    let wire = wired(&lab);
    let a = lab.host("a").unwrap();
    for to in ["10.9.0.2", "b", "fd09::2", "a", "127.0.0.1", "::1"] {
        let text = output(a.command("ping").unwrap().args(["-c", "1", "-W", "5", to]));
        assert!(text.contains(" 0% packet loss"), "{text}");
    }
    // The host completes checksums: TCP works through a wire that can't complete them.
    let listener = lab.host("b").unwrap().run(|| TcpListener::bind("10.9.0.2:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let client = a.run(|| TcpStream::connect(address).unwrap()).unwrap();
    let (mut server, from) = listener.accept().unwrap();
    assert_eq!(from.ip(), a.spec().addresses[0].address);
    std::io::Write::write_all(&mut &client, &vec![7; 200_000]).unwrap();
    drop(client);
    let mut received = Vec::new();
    server.read_to_end(&mut received).unwrap();
    assert_eq!(received, vec![7; 200_000]);
    drop(wire);
}

#[test]
fn a_host_is_set_up_as_asked() {
    if !may_run("a_host_is_set_up_as_asked") {
        return;
    }
    let spec = HostSpec {
        mac: Some(Mac([2, 0, 0, 0, 0, 9])),
        mtu: 1400,
        gateways: vec!["10.9.0.254".parse().unwrap()],
        routes: vec![
            Route { to: "10.10.0.1/16".parse().unwrap(), via: Some("10.9.0.253".parse().unwrap()) },
            Route { to: "10.11.0.0/16".parse().unwrap(), via: None },
        ],
        ..HostSpec::new("only", "10.9.0.1/24".parse().unwrap())
    };
    let lab = Lab::create(&unique("setup"), &[spec]).unwrap();
    let host = lab.host("only").unwrap();
    let link = output(host.command("ip").unwrap().args(["link", "show", "eth0"]));
    assert!(link.contains("mtu 1400") && link.contains("02:00:00:00:00:09"), "{link}");
    let routes = output(host.command("ip").unwrap().arg("route"));
    for expected in
        ["default via 10.9.0.254 dev eth0", "10.10.0.0/16 via 10.9.0.253 dev eth0", "10.11.0.0/16 dev eth0 "]
    {
        assert!(routes.contains(expected), "{routes}");
    }
    // Only the lab's wires are in the core, without addresses.
    let core = lab.in_core(|| output(Command::new("ip").args(["-brief", "address"]))).unwrap();
    let lines: Vec<_> = core.lines().collect();
    assert_eq!(lines.len(), 2, "{core}");
    assert!(lines[1].starts_with("port0@") && lines[1].trim_end().ends_with("UP"), "{core}");
    assert!(matches!(lab.host("other"), Err(LabError::UnknownHost { .. })));
    let again = Lab::create(lab.instance(), &[]).unwrap_err().to_string();
    assert!(again.contains("is up already"), "{again}");
}

#[test]
fn an_interface_made_in_a_host_becomes_its_own() {
    if !may_run("an_interface_made_in_a_host_becomes_its_own") {
        return;
    }
    let spec = HostSpec { wiring: Wiring::Tap, ..HostSpec::new("x", "10.9.0.1/24".parse().unwrap()) };
    let lab = Lab::create(&unique("made"), &[spec]).unwrap();
    let missing = lab.configure("x").unwrap_err().to_string();
    assert!(missing.contains("host x: finding interface eth0"), "{missing}");
    let host = lab.host("x").unwrap();
    host.run(|| output(Command::new("ip").args(["tuntap", "add", "eth0", "mode", "tap"]))).unwrap();
    lab.configure("x").unwrap();
    let address = output(host.command("ip").unwrap().args(["-brief", "address", "show", "eth0"]));
    assert!(address.contains("10.9.0.1/24"), "{address}");
}

#[test]
fn an_added_host_has_a_hardware_address_of_its_own() {
    if !may_run("an_added_host_has_a_hardware_address_of_its_own") {
        return;
    }
    let tap = |name| HostSpec { wiring: Wiring::Tap, ..HostSpec::new(name, "10.9.0.1/24".parse().unwrap()) };
    let mut lab = Lab::create(&unique("macs"), &["a", "b", "c"].map(tap)).unwrap();
    lab.remove("a").unwrap();
    lab.add(&tap("d")).unwrap();
    let mut macs: Vec<_> = lab.hosts().iter().map(|host| host.spec().mac.unwrap().to_string()).collect();
    macs.sort_unstable();
    macs.dedup();
    assert_eq!(macs.len(), 3, "{macs:?}");
}

#[test]
fn a_host_that_is_being_added_or_removed_keeps_nobody_from_the_others() {
    if !may_run("a_host_that_is_being_added_or_removed_keeps_nobody_from_the_others") {
        return;
    }
    let lab = Lab::create(&unique("half"), &two_hosts()).unwrap();
    // Its state is written before its namespace is made, and after that is removed.
    Namespace::remove(&format!("lw-{}-b", lab.instance())).unwrap();
    let opened = Lab::open(lab.instance()).unwrap();
    output(&mut opened.host("a").unwrap().command("true").unwrap());
    assert!(matches!(opened.host("b"), Err(LabError::UnknownHost { .. })));
    lab.down().unwrap();
}

#[test]
fn nothing_remains_after_a_lab() {
    if !may_run("nothing_remains_after_a_lab") {
        return;
    }
    let name = unique("gone");
    let before = machine_state().into_iter().filter(|l| l.contains(&name)).count();
    assert_eq!(before, 0);
    let lab = Lab::create(&name, &two_hosts()).unwrap();
    // A program still running inside ends with the lab, even one that ignores SIGTERM.
    let mut stubborn = lab.host("a").unwrap().command("sh").unwrap();
    stubborn.args(["-c", "trap '' TERM; echo ready; while :; do sleep 60; done"]);
    let mut child = stubborn.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(
        machine_state().iter().filter(|l| l.contains(&name)).count(),
        4,
        "three namespaces and a state"
    );
    drop(lab);
    assert!(!child.wait().unwrap().success());
    let after: Vec<_> = machine_state().into_iter().filter(|l| l.contains(&name)).collect();
    assert!(after.is_empty(), "{after:?}");
}

#[test]
fn what_a_program_starts_when_it_is_asked_to_end_does_not_remain() {
    if !may_run("what_a_program_starts_when_it_is_asked_to_end_does_not_remain") {
        return;
    }
    let lab = Lab::create(&unique("again"), &two_hosts()).unwrap();
    // SIGTERM ends the sleeping child only: the shell starts the next one.
    let mut shell = lab.host("a").unwrap().command("sh").unwrap();
    shell.args(["-c", "trap : TERM; echo ready; while :; do sleep 3600; done"]);
    let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    drop(lab);
    assert!(!child.wait().unwrap().success());
    // The pipe ends when nobody holds it any more.
    let mut output = output.into_inner();
    rustix::io::ioctl_fionbio(&output, true).unwrap();
    assert_eq!(output.read(&mut [0]).unwrap(), 0, "a child is left");
}

#[test]
fn a_lab_that_cannot_be_made_leaves_nothing() {
    if !may_run("a_lab_that_cannot_be_made_leaves_nothing") {
        return;
    }
    let name = unique("fails");
    let mut hosts = two_hosts();
    let address = hosts[1].addresses[0];
    hosts[1].addresses.push(address);
    let error = Lab::create(&name, &hosts).unwrap_err().to_string();
    assert!(error.starts_with("host b: giving it address 10.9.0.2/24"), "{error}");
    assert!(machine_state().iter().all(|l| !l.contains(&name)));

    // Another program's namespace is neither used nor removed.
    let other = format!("lw-{name}-b");
    Namespace::create(&other).unwrap();
    let error = Lab::create(&name, &two_hosts()).unwrap_err().to_string();
    assert!(error.contains(&other), "{error}");
    assert!(Namespace::exists(&other));
    Namespace::remove(&other).unwrap();
    hosts[1].name = "a".to_owned();
    assert!(matches!(Lab::create(&name, &hosts), Err(LabError::Host { field: "name", .. })));
}

/// Not a test: the process that the next test kills.
#[test]
fn make_a_lab_and_wait() {
    let Ok(name) = std::env::var(MAKE_AND_WAIT) else { return };
    let lab = Lab::create(&name, &two_hosts()).unwrap();
    println!("up {}", lab.instance());
    // Ends when the parent closes its end of the pipe, if it isn't killed before.
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn leftovers_of_a_killed_process_are_swept_and_no_others() {
    if !may_run("leftovers_of_a_killed_process_are_swept_and_no_others") {
        return;
    }
    let (killed, persisted, live) = (unique("killed"), unique("kept"), unique("live"));
    let start = |name: &str| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "make_a_lab_and_wait", "--nocapture"])
            .env(MAKE_AND_WAIT, name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Kept so that the pipe stays open: the child still writes to it.
        let mut lines = lines;
        assert!(lines.any(|l| l.unwrap().contains(&format!("up {name}"))));
        (child, lines)
    };
    let (mut child, _lines) = start(&killed);
    let (mut other, _other_lines) = start(&live);
    Lab::create(&persisted, &two_hosts()).unwrap().persist().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // Another program's sweep may be first, with the same result.
    let swept = sweep().unwrap();
    assert!(!swept.contains(&live) && !swept.contains(&persisted), "{swept:?}");
    assert!(machine_state().iter().all(|l| !l.contains(&killed)));
    for up in [&live, &persisted] {
        let lab = Lab::open(up).unwrap();
        output(lab.host("a").unwrap().command("ping").unwrap().args(["-c", "1", "a"]));
    }
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    Lab::open(&persisted).unwrap().down().unwrap();
    let left: Vec<_> =
        machine_state().into_iter().filter(|l| l.contains(&live) || l.contains(&persisted)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(matches!(Lab::open(&persisted), Err(LabError::UnknownLab(_))));
}
