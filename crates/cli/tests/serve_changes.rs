//! Changes of what `longwire serve` runs: what was answered is there after any end of the process, and what
//! looks like a mistake is said.

mod support;

use std::fs::read_to_string;
use std::io::{Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use support::service::{ROUTED, Service, TWO_PORTS};
use support::{Folder, json, longwire, row, stderr};

/// Links whose delays change, each by a client of its own.
const CHANGED: [&str; 3] = ["one", "two", "three"];

/// Answered changes after which the service is killed, while others are under way.
const KILLED_AFTER: [usize; 8] = [1, 40, 7, 23, 2, 90, 11, 3];

/// The packets of a link with this number, of which there may be many between the same ports.
fn packets(number: u64) -> String {
    format!("[{{ source = \"10.2.{}.{}\", destination = \"10.3.0.1\" }}]", number / 256, number % 256)
}

/// Sends a request; false if there is no answer.
fn ask(socket: &str, request: &str, body: &str) -> bool {
    let answer = || {
        let mut stream = UnixStream::connect(socket)?;
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        // Of an answer that is cut off, the beginning is an answer.
        let _ = stream.read_to_string(&mut answer);
        std::io::Result::Ok(answer)
    };
    let answer = answer().unwrap_or_default();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 20"), "{request} {body}: {answer}");
    !answer.is_empty()
}

/// Changes the delay of a link until there is no answer, from this number of milliseconds on. The result is
/// what it may be then: the last that was answered, or the one after that.
fn change(socket: &str, link: &str, from: u64, answered: &Sender<()>) -> RangeInclusive<u64> {
    let mut next = from;
    while ask(socket, &format!("PATCH /v1/links/{link}"), &format!("{{\"delay\": \"{next} ms\"}}")) {
        next += 1;
        // The one who counts has seen enough.
        let _ = answered.send(());
    }
    next - 1..=next
}

/// Adds links until there is no answer, from this number on; the first number that was not answered.
fn add(socket: &str, from: u64, answered: &Sender<()>) -> u64 {
    let mut next = from;
    let body = |number| {
        let packets = packets(number).replace('"', "\\\"");
        format!("{{\"name\": \"more{number}\", \"from\": \"a\", \"to\": \"b\", \"match\": \"{packets}\"}}")
    };
    while ask(socket, "POST /v1/links", &body(next)) {
        next += 1;
        let _ = answered.send(());
    }
    next
}

/// The delays of the changed links, in ms, and how many links there are.
fn links(service: &Service) -> ([u64; CHANGED.len()], u64) {
    let links = json(&service.ctl(&["get", "*", "--kind", "link", "--json"]), 0);
    let delays = CHANGED.map(|name| {
        let delay = row(&links, &format!("link {name}"))["settings"]["delay"].as_str().unwrap();
        delay.strip_suffix(" ms").unwrap_or_else(|| panic!("{delay}")).parse().unwrap()
    });
    (delays, links["rows"].as_array().unwrap().len() as u64)
}

#[test]
fn every_answered_change_survives_a_kill_at_any_moment() {
    let folder = Folder::new("serve-kill");
    let ports = TWO_PORTS.split("[[link]]").next().unwrap();
    let link = |(name, number)| {
        let packets = packets(number);
        format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\nmatch = {packets}\ndelay = \"1 ms\"\n"
        )
    };
    let changed: String = CHANGED.into_iter().zip(0..).map(link).collect();
    let file = folder.write("net.toml", format!("{ports}{changed}"));
    let args = [&*file, "--state", &folder.text("state")];
    let mut is = ([1; CHANGED.len()], CHANGED.len() as u64);
    for (round, after) in KILLED_AFTER.into_iter().enumerate() {
        let mut service = Service::start(&folder, &args);
        let socket = service.started["socket"].as_str().unwrap().to_owned();
        let (answered, answers) = channel();
        let (delays, count) = std::thread::scope(|scope| {
            let of_each = |(link, from): (_, u64)| {
                let (socket, answered) = (&socket, answered.clone());
                scope.spawn(move || change(socket, link, from + 1, &answered))
            };
            let changing: Vec<_> = CHANGED.into_iter().zip(is.0).map(of_each).collect();
            let (socket, from) = (&socket, is.1);
            let adding = scope.spawn(move || add(socket, from, &answered));
            answers.iter().take(after).for_each(drop);
            service.child.kill().unwrap();
            service.child.wait().unwrap();
            let delays: Vec<_> = changing.into_iter().map(|thread| thread.join().unwrap()).collect();
            (delays, adding.join().unwrap())
        });
        let service = Service::start(&folder, &args);
        is = links(&service);
        for ((link, may_be), is) in CHANGED.iter().zip(&delays).zip(is.0) {
            assert!(may_be.contains(&is), "round {round}, {link}: {is} ms, and not {may_be:?}");
        }
        assert!((count..=count + 1).contains(&is.1), "round {round}: {} links, and not {count}", is.1);
        assert_eq!(service.end(), Some(0));
    }
}

/// Waits until a file is there and has these words.
fn wait_for(file: &std::path::Path, words: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    while !read_to_string(file).is_ok_and(|text| text.contains(words)) {
        assert!(Instant::now() < until, "{words:?} is not in {}", file.display());
    }
}

#[test]
fn the_end_of_a_ramp_survives_a_kill_and_a_power_cut() {
    let folder = Folder::new("serve-ramp");
    let file = folder.write("net.toml", TWO_PORTS);
    let args = [&*file, "--state", &folder.text("state")];
    let mut service = Service::start(&folder, &args);
    assert!(service.ctl(&["set", "up", "delay=70ms", "--ramp", "1500ms"]).status.success());
    wait_for(&folder.path("state/net.changes"), "70 ms");
    service.child.kill().unwrap();
    service.child.wait().unwrap();
    // What has not been written to the disk may be gone.
    for lost in [false, true] {
        if lost {
            folder.write("state/net.now", "");
        }
        let service = Service::start(&folder, &args);
        let get = json(&service.ctl(&["get", "up.forward", "--json"]), 0);
        assert_eq!(row(&get, "link up.forward")["settings"]["delay"], "70 ms", "{lost}");
        assert_eq!(service.end(), Some(0));
    }
}

#[test]
fn what_can_not_be_saved_is_not_answered_as_if_it_were() {
    let folder = Folder::new("serve-unsaved");
    let file = folder.write("net.toml", TWO_PORTS);
    let service = Service::start(&folder, &[&file, "--state", &folder.text("state")]);
    // A folder in the place of the temporary file.
    std::fs::create_dir(folder.path("state/net.new")).unwrap();
    let more = format!("match={}", packets(1));
    for (change, file) in [
        (&["set", "up", "delay=40ms"][..], "net.now"),
        (&["add", "link", "more", "from=b", "to=a", &more], "net.json"),
    ] {
        let output = service.ctl(change);
        assert_eq!(output.status.code(), Some(2), "{change:?}");
        let said = stderr(&output);
        assert!(said.contains("a restart will not restore that: can't write "), "{change:?}: {said}");
        // The save for the disk, a second later, fails too.
        while !service.event("not-saved")["error"].as_str().unwrap().contains(file) {}
    }
    std::fs::remove_dir(folder.path("state/net.new")).unwrap();
    assert!(service.ctl(&["set", "up", "loss=1%"]).status.success());
    let saved = read_to_string(folder.path("state/net.json")).unwrap();
    assert!(saved.contains("40 ms") && saved.contains("more") && saved.contains("loss"), "{saved}");
    assert_eq!(service.end(), Some(0));
}

/// A save costs what has changed: the answers to changes wait for it however many links there are, and what
/// they say is restored.
#[test]
fn a_change_among_very_many_links_is_saved_before_it_is_answered() {
    let folder = Folder::new("serve-many");
    let many = "\n[[link]]\nname = \"m{n}\"\ncount = 50000\nfrom = \"a\"\nto = \"b\"\n\
        match = [{ source = \"{10.4.0.0 + n}\", destination = \"10.3.0.1\" }]\n";
    let file = folder.write("net.toml", format!("{TWO_PORTS}{many}"));
    let args = [&*file, "--state", &folder.text("state")];
    let mut service = Service::start(&folder, &args);
    let delay = |service: &Service, link: &str| {
        let get = json(&service.ctl(&["get", link, "--json"]), 0);
        row(&get, &format!("link {link}"))["settings"]["delay"].as_str().unwrap().to_owned()
    };
    let change = |service: &Service, link: &str, to: &str| {
        assert!(service.ctl(&["set", link, &format!("delay={to}")]).status.success());
        let saved = read_to_string(folder.path("state/net.now")).unwrap();
        assert!(saved.contains(&format!("\\\"{link}\\\"")) && saved.contains(to), "{saved}");
    };
    change(&service, "m3", "13 ms");
    std::fs::create_dir(folder.path("state/net.new")).unwrap();
    let refused = service.ctl(&["set", "m7", "delay=90ms"]);
    assert!(stderr(&refused).contains("a restart will not restore that"), "{}", stderr(&refused));
    std::fs::remove_dir(folder.path("state/net.new")).unwrap();
    change(&service, "m49999", "70 ms");
    service.child.kill().unwrap();
    service.child.wait().unwrap();
    let service = Service::start(&folder, &args);
    let delays = ["m3", "m7", "m49999", "m20"].map(|link| delay(&service, link));
    assert_eq!(delays, ["13 ms", "90 ms", "70 ms", "0 ms"]);
    // Those that a restart has restored are saved with what changes next.
    change(&service, "m20", "30 ms");
    let saved = read_to_string(folder.path("state/net.now")).unwrap();
    assert!(saved.contains("m3") && saved.contains("13 ms"), "{saved}");
    assert_eq!(service.end(), Some(0));
}

/// As `longwire check` says of a scenario with the same settings, or with an event that makes them.
#[test]
fn settings_that_contradict_each_other_are_named_wherever_they_come_from() {
    let folder = Folder::new("serve-contradiction");
    let red = TWO_PORTS.replace("delay =", "queue = { kind = \"red\", max = 15 }\ndelay =");
    let what = "its queue's max is not above its min: all is dropped or nothing";
    let note = format!("{what}; make max two or three times min");
    let service = Service::start(&folder, &[&folder.write("net.toml", &red)]);
    let set = |settings: &[&str]| service.ctl(&[&["set", "up.forward"], settings].concat());
    let output = set(&["queue.min=50"]);
    assert!(output.status.success());
    assert_eq!(stderr(&output).trim(), format!("note: link \"up.forward\": {note}"));
    let get = json(&service.ctl(&["get", "up.forward", "--json"]), 0);
    assert_eq!(row(&get, "link up.forward")["notes"], serde_json::json!([note]));
    assert_eq!(stderr(&set(&["queue.max=150"])), "");
    assert_eq!(service.end(), Some(0));

    let at = "\n[[at]]\ntime = \"2 s\"\nlink = \"up\"\nqueue = { min = 50 }\n";
    for (text, words) in [
        (red.replace("max = 15", "min = 50, max = 15"), what.to_owned()),
        (red.clone() + at, format!("the link from 2 s on: {what}")),
        (red + &at.replace("50", "5"), String::new()),
    ] {
        let said = stderr(&longwire(&["check", &folder.write("check.toml", text)]));
        assert_eq!(said.matches(what).count(), usize::from(!words.is_empty()), "{said}");
        assert!(said.contains(&words), "{said}");
    }
}

#[test]
fn programs_that_come_and_go_are_logged() {
    let folder = Folder::new("serve-programs");
    let service = Service::start(&folder, &[&folder.write("net.toml", ROUTED)]);
    let forwarder = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.env("LONGWIRE_RUN_DIR", folder.text("run")).arg("forwarder").args(args);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
    };
    forwarder(&["install", "r", "syn-monitor", "--lease", "1s"]);
    let installed = service.event("installed");
    for (field, value) in [("scenario", "net"), ("router", "r"), ("program", "syn-monitor"), ("lease", "1 s")]
    {
        assert_eq!(installed[field], value, "{installed:#}");
    }
    assert_eq!(service.event("lease-ended")["fid"], installed["fid"]);
    forwarder(&["install", "r", "syn-monitor"]);
    let fid = service.event("installed")["fid"].to_string();
    forwarder(&["remove", "r", &fid]);
    assert_eq!(service.event("removed")["fid"].to_string(), fid);
    assert_eq!(service.end(), Some(0));
}
