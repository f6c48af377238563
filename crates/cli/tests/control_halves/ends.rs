//! Halves that are killed, cut off or given impossible values.

use crate::support::halves::{PATIENCE, RouterLab};
use crate::support::{Folder, json, longwire, stderr};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};

#[test]
fn programs_of_a_half_that_is_killed_are_removed() {
    let Some(lab) = RouterLab::new("killed") else { return };
    let mut half = lab.half(&["monitor", "r1", "--interval", "100 ms", "--lease", "5 s"]);
    lab.until("it has installed its program", || lab.programs("performance-monitor").len() == 1);
    half.signal("-KILL");
    half.child.wait().unwrap();
    lab.until("its program is removed", || lab.programs("performance-monitor").is_empty());

    // The same commands by hand, beside a running one.
    let own = |args: &[&str]| longwire(&[&["forwarder"], args, &["--instance", &lab.name]].concat());
    let stays = own(&["install", "r1", "syn-monitor"]);
    let leased = own(&["install", "r1", "syn-filter", "--lease", "1 h"]);
    let fid = String::from_utf8(leased.stdout).unwrap();
    assert!(stays.status.success() && own(&["renew", "r1", fid.trim()]).status.success());
    let without = own(&["renew", "r1", String::from_utf8(stays.stdout).unwrap().trim()]);
    assert!(stderr(&without).contains("with a lease"), "{}", stderr(&without));
    let refused = own(&["install", "r1", "syn-monitor", "--lease", "2 h"]);
    assert!(stderr(&refused).contains("lease"), "{}", stderr(&refused));
    own(&["install", "r1", "wavelet", "--lease", "1 s"]);
    lab.until("its lease is over", || lab.programs("wavelet").is_empty());
    assert_eq!((lab.programs("syn-monitor").len(), lab.programs("syn-filter").len()), (1, 1));
}

#[test]
fn an_echo_that_is_cut_off_has_failed() {
    let Some(lab) = RouterLab::new("cut") else { return };
    let install = [
        "--where",
        "control",
        "--name",
        "echo",
        "--packets",
        "1000",
        "--cycles",
        "50000",
        // A packet is not taken back before a process has had a processor.
        "--within",
        "1 s",
        "--destination-port",
        "9",
        "--protocol",
        "udp",
        "--instance",
        &lab.name,
    ];
    let installed = longwire(&[&["forwarder", "install", "r1"], &install[..]].concat());
    assert!(installed.status.success(), "{}", stderr(&installed));
    let attachment = || {
        let levels = longwire(&["forwarder", "levels", "r1", "--json", "--instance", &lab.name]);
        json(&levels, 0)["rows"][0].clone()
    };
    let echo = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let child =
            command.args(["control", "echo", "r1", "--instance", &lab.name]).stderr(Stdio::piped()).spawn();
        lab.until("it has not come", || attachment()["there"] == true);
        child.unwrap()
    };
    let signal = |child: &Child, signal: &str| {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    };
    let socket = lab.at("a", || UdpSocket::bind("10.0.1.9:0").unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // A silent process is cut off, learns of it when it continues, and reports failure.
    let silent = echo();
    signal(&silent, "-STOP");
    socket.send_to(b"hello", "10.0.2.9:9").unwrap();
    lab.until("it is not cut off", || attachment()["last_cut"] == "stalled");
    signal(&silent, "-CONT");
    let ended = silent.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("cut off: stalled"), "{}", stderr(&ended));
    // A process whose forwarder is removed does not report failure.
    let stopped = echo();
    socket.send_to(b"again", "10.0.2.9:9").unwrap();
    let mut bytes = [0; 9];
    assert_eq!(socket.recv(&mut bytes).unwrap(), 5);
    let fid = lab.programs("echo")[0]["fid"].to_string();
    let removed = longwire(&["forwarder", "remove", "r1", &fid, "--instance", &lab.name]);
    assert!(removed.status.success(), "{}", stderr(&removed));
    let ended = stopped.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
}

#[test]
fn an_instance_that_is_killed_leaves_no_sockets_and_its_halves_end() {
    let Some(lab) = RouterLab::new("slain") else { return };
    let mut halves = ["8080", "8081"].map(|port| {
        let listen = format!("10.0.1.1:{port}");
        let half = lab.half(&["splice", "r1", "--listen", &listen, "--backend", "10.0.2.9:80"]);
        half.event("listening");
        half
    });
    let attachment = ["--where", "control", "--name", "nobody", "--packets", "10", "--cycles", "10"];
    let attachment =
        longwire(&[&["forwarder", "install", "r1", "--instance", &lab.name], &attachment[..]].concat());
    assert!(attachment.status.success(), "{}", stderr(&attachment));
    let levels = longwire(&["forwarder", "levels", "r1", "--json", "--instance", &lab.name]);
    let socket = json(&levels, 0)["socket"].as_str().unwrap().to_owned();
    let (instance, _) = socket.split_once(".r1.control").unwrap();
    let (_, pid) = instance.rsplit_once('-').unwrap();
    assert!(std::path::Path::new(&socket).exists());
    assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
    for half in &mut halves {
        assert!(half.child.wait().unwrap().success());
    }
    assert!(longwire(&["ctl", "list"]).status.success());
    assert!(
        !std::path::Path::new(&socket).exists()
            && !std::path::Path::new(&format!("{instance}.sock")).exists()
    );
}

#[test]
fn impossible_values_are_reported() {
    let folder = Folder::new("control-halves");
    let said = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let done = command.args(args).env("LONGWIRE_RUN_DIR", folder.path("none")).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        stderr(&done)
    };
    for (args, wanted) in [
        (&["control", "syn-alarm", "r1"][..], "no instance of this user is running"),
        (
            &["control", "syn-alarm", "r1", "--threshold", "5", "--clear", "9"],
            "--clear 9 is above the threshold, 5",
        ),
        (&["control", "intrusion", "r1", "--ports", "1"], "--ports and --hosts must be at least 2"),
        (&["control", "intrusion", "r1", "--within", "0s"], "--within must be more than 0"),
        (&["control", "wavelet", "r1", "--link", "x", "--layers", "1"], "--layers 1 is outside 2 to 256"),
        (
            &["control", "splice", "r1", "--listen", "10.0.0.1:1", "--backend", "b"],
            "\"b\" is not an address and port",
        ),
        (&["control", "monitor", "r1", "--by", "colour"], "write port, protocol, flags"),
        (&["control", "monitor", "r1", "--interval", "1 us"], "1 us is too short: the minimum is 10 ms"),
        (&["control", "syn-alarm", "r1", "--interval", "9 ms"], "9 ms is too short"),
        (&["control", "intrusion", "r1", "--interval", "9 ms"], "9 ms is too short"),
        (&["control", "wavelet", "r1", "--link", "x", "--interval", "9 ms"], "9 ms is too short"),
        (
            &[
                "control",
                "splice",
                "r1",
                "--listen",
                "10.0.0.1:1",
                "--backend",
                "1.2.3.4:5",
                "--interval",
                "0 s",
            ],
            "0 ms is too short",
        ),
    ] {
        assert!(said(args).contains(wanted), "{args:?}: {}", said(args));
    }
}
