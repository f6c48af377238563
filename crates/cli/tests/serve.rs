//! `longwire serve`: scenarios as a service.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use support::lab::can_make_labs;
use support::service::{ROUTED, Service, TWO_PORTS};
use support::{Folder, json, longwire, row, stderr, stdout};

#[test]
fn a_service_runs_scenarios_and_tells_its_manager() {
    let folder = Folder::new("serve");
    let [one, two] = ["one.toml", "two.toml"].map(|name| folder.write(name, TWO_PORTS));
    let (command, manager) = managed("tells");
    let heard = || heard_by(&manager);
    let service = Service::begin(command, &folder, &[&one, &format!("second={two}")]);
    let ready = service.event("ready");
    assert_eq!((&ready["scenarios"], &ready["level"]), (&2.into(), &"info".into()));
    let (time, nanos) = (ready["time"].as_str().unwrap(), ready["time_ns"].as_u64().unwrap());
    assert!(time.starts_with("20") && time.ends_with('Z') && nanos > 1_700_000_000_000_000_000, "{ready}");
    assert_eq!(heard(), "READY=1\nSTATUS=running one, second");

    let list = json(&service.ctl(&["list", "--json"]), 0);
    assert_eq!((&row(&list, "one")["measured"], &row(&list, "second")["measured"]), (&2.into(), &2.into()));
    service.signal("HUP");
    assert!(heard().starts_with("RELOADING=1"));
    assert!(heard().starts_with("READY=1"));
    service.ctl(&["stop", "one"]);
    assert_eq!(service.event("stopped")["scenario"], "one");
    assert_eq!(heard(), "READY=1\nSTATUS=running second");
    assert_eq!(json(&service.ctl(&["list", "--json"]), 0)["rows"].as_array().unwrap().len(), 1);
    service.signal("TERM");
    assert_eq!(service.event("stopped")["scenario"], "second");
    assert_eq!(heard(), "STOPPING=1");
    assert_eq!(service.wait(), Some(0));
    assert_eq!(std::fs::read_dir(folder.path("run")).unwrap().count(), 0, "its sockets");
}

/// The program, and the socket by which its service manager hears from it.
fn managed(what: &str) -> (Command, UnixDatagram) {
    let name = format!("longwire-{what}-{}", std::process::id());
    let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.env("NOTIFY_SOCKET", format!("@{name}"));
    (command, manager)
}

fn heard_by(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 200];
    let length = manager.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[test]
fn a_watchdog_hears_from_a_service_again_and_again() {
    let folder = Folder::new("serve-watchdog");
    let (mut command, manager) = managed("watchdog");
    command.env("WATCHDOG_USEC", "200000");
    let service = Service::begin(command, &folder, &[&folder.write("one.toml", TWO_PORTS)]);
    assert_eq!(heard_by(&manager), "READY=1\nSTATUS=running one");
    assert_eq!([heard_by(&manager), heard_by(&manager)], ["WATCHDOG=1", "WATCHDOG=1"]);
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
}

/// Of what a systemd does not know, it says that it is ignored.
#[test]
fn its_unit_has_what_this_systemd_knows() {
    let unit = include_str!("../../../packaging/longwire.service");
    let folder = Folder::new("serve-unit");
    let here = unit.replace("/usr/bin/longwire", env!("CARGO_BIN_EXE_longwire"));
    let file = folder.write("longwire.service", here);
    let Ok(output) = Command::new("systemd-analyze").args(["verify", "--man=no", &file]).output() else {
        println!("skipped: there is no systemd-analyze");
        return;
    };
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    for needed in ["Type=notify\n", "\nExecReload=", "\nWatchdogSec=", "CAP_NET_BIND_SERVICE"] {
        assert!(unit.contains(needed), "{needed}");
    }
}

#[test]
fn a_scenario_that_is_wrong_is_no_service() {
    let folder = Folder::new("serve-wrong");
    let right = folder.write("right.toml", TWO_PORTS);
    let wrong = folder.write("wrong.toml", TWO_PORTS.replace("10 ms", "soon"));
    let output = longwire(&["serve", &right, &wrong]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("\"soon\""), "{}", stderr(&output));
    let output = longwire(&["serve", &right, &right]);
    assert!(stderr(&output).contains("give one another name"), "{}", stderr(&output));
    let output = longwire(&["serve", &right, "--group", "nobody-has-this"]);
    assert!(stderr(&output).contains("there is no group \"nobody-has-this\""), "{}", stderr(&output));
}

#[test]
fn members_of_its_group_use_a_service() {
    let folder = Folder::new("serve-group");
    if std::fs::metadata(folder.path("")).unwrap().uid() != 0 {
        println!("members_of_its_group_use_a_service: skipped: only root gives files to any group");
        return;
    }
    let file = folder.write("net.toml", TWO_PORTS);
    let service = Service::start(&folder, &[&file, "--group", "4242"]);
    let as_user = |groups: &str, args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "4343", "--regid", "4343", "--groups", groups]);
        command.env("LONGWIRE_RUN_DIR", folder.text("run")).arg(env!("CARGO_BIN_EXE_longwire")).args(args);
        command.output().unwrap()
    };
    let set = json(&as_user("4242", &["ctl", "set", "up", "delay=40ms", "--json"]), 0);
    assert_eq!(row(&set, "link up.forward")["settings"]["delay"], "40 ms");
    let stranger = as_user("4244", &["ctl", "get", "up"]);
    assert!(stderr(&stranger).contains("no instance"), "{}", stderr(&stranger));
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_changed_file_is_applied_and_nothing_else() {
    let folder = Folder::new("serve-apply");
    let file = folder.write("net.toml", ROUTED);
    let service = Service::start(&folder, &[&file]);
    let diff = || json(&service.ctl(&["diff", &file, "--json"]), 0);
    assert_eq!(diff()["rows"].as_array().unwrap().len(), 0);
    let edited = ROUTED
        .replace("10 ms", "25 ms")
        .replace("rate = \"10 Mbit/s\" # to", "rate = \"10 Mbit/s\"\nqueue = \"codel\"\nloss = \"1 %\" # to")
        .replace("\"1 Mbit/s\"", "\"3 Mbit/s\"")
        .replace("10.7.0.0/16", "10.8.0.0/16");
    folder.write("net.toml", &edited);
    let output = service.ctl(&["diff", &file]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("link up: delay 10 ms -> 25 ms, ") && text.contains("loss none -> 1 %"), "{text}");
    assert!(text.contains("source video: rate 1 Mbit/s -> 3 Mbit/s"), "{text}");
    assert!(text.contains("router r: route.10.7.0.0/16 via 10.0.2.9 dev b -> none, route.10.8"), "{text}");
    assert!(!text.contains("down"), "{text}");

    service.signal("HUP");
    assert_eq!(service.event("reloaded")["changed"], 3);
    assert_eq!(diff()["rows"].as_array().unwrap().len(), 0);
    let get = json(&service.ctl(&["get", "up", "--json"]), 0);
    assert_eq!(row(&get, "link up")["settings"]["queue.kind"], "codel");
    let routes = stdout(&service.ctl(&["route", "list", "r"]));
    assert!(routes.contains("10.8.0.0/16") && !routes.contains("10.7.0.0/16"), "{routes}");

    // A file with other objects is refused, and the rest of it is made only if that is wanted.
    let third = "\n[[port]]\nname = \"c\"\ndriver = \"source\"\naddresses = \"10.0.3.9/24\"\n";
    let third_at_router = "{ port = \"c\", addresses = \"10.0.3.1/24\" },\n]\nroutes";
    let other = folder.write(
        "other.toml",
        edited.replace("20 Mbit/s", "30 Mbit/s").replace("]\nroutes", third_at_router) + third,
    );
    let refused = service.ctl(&["apply", &other]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("router \"r\": its addresses"), "{}", stderr(&refused));
    let rate = || json(&service.ctl(&["get", "down", "--json"]), 0)["rows"][0]["settings"]["rate"].clone();
    assert_eq!(rate(), "20 Mbit/s");
    let partial = json(&service.ctl(&["apply", &other, "--partial", "--json"]), 1);
    assert_eq!(row(&partial, "port \"c\"")["kind"], "refused");
    assert_eq!(rate(), "30 Mbit/s");
    let wrong = folder.write("wrong.toml", edited.replace("25 ms", "soon"));
    for command in ["apply", "diff"] {
        let output = service.ctl(&[command, &wrong, "--json"]);
        assert!(stderr(&output).starts_with(&format!("error: {wrong}:")), "{}", stderr(&output));
        let (told, checked) = (json(&output, 2), json(&longwire(&["check", &wrong, "--json"]), 2));
        assert_eq!(told["file"], wrong.as_str());
        assert_eq!(told, checked);
    }
    std::fs::copy(folder.path("wrong.toml"), folder.path("net.toml")).unwrap();
    service.signal("HUP");
    let error = service.event("not-reloaded")["error"].as_str().unwrap().to_owned();
    assert!(error.contains("net.toml:") && error.contains("soon"), "{error}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn what_runs_is_saved_as_a_scenario() {
    let folder = Folder::new("serve-save");
    let file = folder.write("net.toml", ROUTED);
    let service = Service::start(&folder, &[&file]);
    assert_eq!(stdout(&service.ctl(&["save"])).trim(), ROUTED.trim());
    for change in [
        &["set", "up", "queue.kind=red", "queue=200 packets", "max-p=5%", "loss=2%", "delay=0ms"][..],
        &["set", "up", "jitter=3ms", "loss="],
        &["set", "down", "filter=drop if udp", "mtu=1400"],
        &["set", "video", "model=cbr", "rate=2mbit", "packets=9000"],
        &["set", "r", "route.10.9.0.0/16=blackhole", "route.10.7.0.0/16=none"],
    ] {
        let output = service.ctl(change);
        assert!(output.status.success(), "{change:?}: {}", stderr(&output));
    }
    let saved = folder.text("saved.toml");
    for _ in 0..2 {
        assert!(service.ctl(&["save", "--output", &saved]).status.success());
        let text = std::fs::read_to_string(&saved).unwrap();
        assert!(text.contains("# to the street"), "comments stay: {text}");
        assert_eq!(text.matches("Changes made while it ran").count(), 1, "{text}");
        let check = longwire(&["check", &saved]);
        assert_ne!(check.status.code(), Some(2), "{}\n{text}", stderr(&check));
        let diff = service.ctl(&["diff", &saved]);
        assert!(diff.status.success(), "{}{}\n{text}", stdout(&diff), stderr(&diff));
        // Applied, it is what is saved the next time.
        assert!(service.ctl(&["apply", &saved]).status.success());
    }
    assert_eq!(service.end(), Some(0));
    let again = Service::start(&folder, &[&saved]);
    let diff = again.ctl(&["diff", &saved]);
    assert!(diff.status.success(), "{}{}", stdout(&diff), stderr(&diff));
    assert_eq!(again.end(), Some(0));
}

/// Where files may have 0 bytes, as on a full disk.
#[test]
fn what_was_saved_stays_if_there_is_no_room() {
    let folder = Folder::new("serve-room");
    let file = folder.write("net.toml", ROUTED);
    let service = Service::start(&folder, &[&file]);
    let saved = folder.write("saved.toml", "old\n");
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$@\"";
    let save = ["ctl", "save", "--output", &saved];
    let mut full = Command::new("sh");
    full.args(["-c", script, "sh", env!("CARGO_BIN_EXE_longwire")]).args(save);
    let output = full.env("LONGWIRE_RUN_DIR", folder.path("run")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("can't write {saved}: File too large")), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&saved).unwrap(), "old\n");
    assert!(service.ctl(&save[1..]).status.success());
    assert_eq!(std::fs::read_to_string(&saved).unwrap().trim(), ROUTED.trim());
    // The folder has the two files and the run directory.
    assert_eq!(std::fs::read_dir(folder.path(".")).unwrap().count(), 3);
    assert_eq!(service.end(), Some(0));
}

/// More than are shown at once.
#[test]
fn what_is_saved_has_all_routes_of_a_router() {
    let folder = Folder::new("serve-routes");
    let route = |n: u32| format!("{{ to = \"10.{}.{}.0/24\", via = \"10.0.2.9\" }}", 100 + n / 256, n % 256);
    let routes: Vec<String> = (0..2500).map(route).collect();
    let own = "routes = [{ to = \"10.7.0.0/16\", via = \"10.0.2.9\" }]";
    let text = ROUTED.replace(own, &format!("routes = [{}]", routes.join(", ")));
    let file = folder.write("net.toml", &text);
    let service = Service::start(&folder, &[&file]);
    assert_eq!(stdout(&service.ctl(&["save"])).trim(), text.trim());
    assert!(service.ctl(&["set", "r", "route.10.9.0.0/16=blackhole"]).status.success());
    let saved = stdout(&service.ctl(&["save"]));
    let changes = saved.split_once(text.trim()).unwrap().1;
    assert!(changes.contains("add-route = [\"blackhole 10.9.0.0/16\"]"), "{changes}");
    assert!(!changes.contains("remove-route"), "{changes}");
    let diff = stdout(&service.ctl(&["diff", &file]));
    assert!(diff.starts_with("router r: route.10.9.0.0/16 ") && diff.lines().count() == 1, "{diff}");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_killed_service_starts_from_what_ran_last() {
    let folder = Folder::new("serve-state");
    let file = folder.write("net.toml", ROUTED);
    let state = folder.text("state");
    let start = || Service::start(&folder, &[&file, "--state", &state]);
    let mut service = start();
    let second = longwire(&["serve", &file, "--state", &state]);
    assert!(stderr(&second).contains("another service keeps the state of \"net\""), "{}", stderr(&second));
    let edited = folder.write("edited.toml", ROUTED.replace("10 ms", "25 ms"));
    assert!(service.ctl(&["apply", &edited]).status.success());
    // Acknowledged changes are kept, even if the end follows at once.
    service.child.kill().unwrap();
    service.child.wait().unwrap();

    let service = Service::begin_at(&folder, &[&file, "--state", &state]);
    assert_eq!(service.event("restored")["scenario"], "net");
    service.event("ready");
    assert!(service.ctl(&["diff", &edited]).status.success());
    assert!(service.ctl(&["set", "down", "loss=3%"]).status.success());
    assert_eq!(service.event("changed")["settings"]["loss"], "3%");
    assert_eq!(service.end(), Some(0));

    let service = start();
    let text = stdout(&service.ctl(&["diff", &edited]));
    assert!(text.starts_with("link down: loss 3 % -> none,") && text.lines().count() == 1, "{text}");
    assert_eq!(service.end(), Some(0));
    // A file edited meanwhile takes precedence.
    folder.write("net.toml", ROUTED.replace("10 ms", "40 ms"));
    let service = start();
    assert!(service.ctl(&["diff", &file]).status.success());
    assert_eq!(service.end(), Some(0));
}

/// What was restored is saved again though nobody looked at it, what events remove stays away, and a file
/// that was broken meanwhile stops nothing.
#[test]
fn what_is_restored_is_kept_by_every_later_start() {
    let folder = Folder::new("serve-again");
    let text = "[[port]]\nname = \"x\"\ndriver = \"source\"\naddresses = \"10.0.0.1\"\n\
        [[port]]\nname = \"y\"\ndriver = \"source\"\naddresses = \"10.0.0.2\"\n\
        [[link]]\nname = \"l\"\nbetween = [\"x\", \"y\"]\n\
        [[link]]\nname = \"side\"\nfrom = \"x\"\nto = \"y\"\n\
        match = [{ source = \"10.0.0.9\", destination = \"10.9.0.1\" }]\n\
        [[source]]\nname = \"video\"\nfrom = \"x\"\nto = \"y\"\nrate = \"3 Mbit/s\"\n\
        [[at]]\ntime = \"100 ms\"\nremove = \"side\"\n";
    let (file, state) = (folder.write("net.toml", text), folder.text("state"));
    let start = || Service::begin_at(&folder, &[&file, "--state", &state]);
    let mut service = start();
    assert_eq!(service.event("applied")["changed"], 1, "the link that an event removes");
    assert!(service.ctl(&["set", "l", "loss=1%"]).status.success());
    assert!(service.ctl(&["set", "--kind", "source", "video", "rate=1mbit"]).status.success());
    for _ in 0..2 {
        service.child.kill().unwrap();
        service.child.wait().unwrap();
        service = start();
        service.event("restored");
        service.event("ready");
    }
    assert_eq!(service.end(), Some(0));
    folder.write("net.toml", "[[port]\n");
    let service = start();
    assert!(service.event("not-read")["error"].as_str().unwrap().contains("net.toml:1"));
    service.event("ready");
    let get = |words: &[&str]| stdout(&service.ctl(&[&["get"], words].concat()));
    assert!(get(&["l"]).contains("loss=1 %"), "{}", get(&["l"]));
    assert!(get(&["--kind", "source", "video"]).contains("rate=1 Mbit/s"));
    assert!(!service.ctl(&["get", "side"]).status.success());
    assert_eq!(service.end(), Some(0));
}

#[test]
fn what_a_killed_service_leaves_is_removed_by_the_next() {
    if !can_make_labs("what_a_killed_service_leaves_is_removed_by_the_next") {
        return;
    }
    let folder = Folder::new("serve-killed");
    let name = format!("tk{}", std::process::id());
    let hosts = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
        address = \"10.0.0.2/24\"\n[[link]]\nname = \"up\"\nbetween = [\"a\", \"b\"]\ndelay = \"5 ms\"\n";
    let scenario = format!("{name}={}", folder.write("hosts.toml", hosts));
    let namespaces = || {
        let all = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let own = all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("lw-{name}-")));
        own.count()
    };
    let mut service = Service::start(&folder, &[&scenario]);
    assert!(namespaces() >= 2);
    service.child.kill().unwrap();
    service.child.wait().unwrap();
    // They remain until the next start: of this service, or of a test beside this one.
    let service = Service::start(&folder, &[&scenario]);
    let lab = longwire_lab::Lab::open(&name).unwrap();
    let mut ping = lab.host("a").unwrap().command("ping").unwrap();
    let ping = ping.args(["-n", "-c", "2", "-i", "0.05", "10.0.0.2"]).output().unwrap();
    assert!(ping.status.success(), "{}", stdout(&ping));
    let list = json(&service.ctl(&["list", "--json"]), 0);
    assert_eq!(list["rows"].as_array().unwrap().len(), 1, "the killed one's socket is gone: {list}");
    assert_eq!(service.end(), Some(0));
    assert_eq!(namespaces(), 0);
}

#[test]
fn metrics_are_what_prometheus_reads() {
    let folder = Folder::new("serve-metrics");
    let file = folder.write("net.toml", ROUTED);
    let service = Service::start(&folder, &[&file]);
    let socket = service.started["socket"].as_str().unwrap().to_owned();
    let get = |path: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let text = get("/metrics?links=u*");
    assert!(text.contains("longwire_links{scenario=\"net\"} 2.0\n"), "{text}");
    assert!(text.contains("longwire_link_in_packets_total{scenario=\"net\",link=\"up\"}"), "{text}");
    assert!(!text.contains("link=\"down\""), "{text}");
    // A scrape goes on when the last of the links has been removed.
    let none = get("/metrics?links=nothing*");
    assert!(none.contains("longwire_links{scenario=\"net\"} 2.0\n") && !none.contains("link=\""), "{none}");
    let mut check = match Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Ok(check) => check,
        Err(error) => return println!("metrics_are_what_prometheus_reads: half skipped: promtool: {error}"),
    };
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = check.wait_with_output().unwrap();
    // Its linter reads the older format, in which the help of a counter is that of its series.
    let faults = stderr(&output).lines().filter(|line| !line.ends_with("no help text")).count();
    assert_eq!(faults, 0, "{}{}\n{text}", stdout(&output), stderr(&output));
    assert_eq!(service.end(), Some(0));
}

#[test]
fn the_worst_links_are_found() {
    let folder = Folder::new("serve-stats");
    let file = folder.write("net.toml", ROUTED);
    let service = Service::start(&folder, &[&file]);
    let worst = json(&service.ctl(&["stats", "*", "--kind", "link", "--sort", "in_packets", "--json"]), 0);
    assert_eq!(worst["rows"].as_array().unwrap().len(), 2, "{worst}");
    assert_eq!(worst["rows"][0]["name"], "up", "video takes it");
    let next = json(&service.ctl(&["stats", "*", "--kind", "link", "--after", "up", "--json"]), 0);
    assert_eq!((&next["rows"][0]["name"], &next["rows_left"]), (&"down".into(), &0.into()));
    let text = stdout(&service.ctl(&["stats", "*", "--kind", "link", "--limit", "1"]));
    assert!(text.contains("(1 more: --after link/up)") && !text.contains("accounted"), "{text}");
    let wrong = service.ctl(&["stats", "*", "--sort", "in_packet"]);
    assert!(stderr(&wrong).contains("did you mean \"in_packets\"?"), "{}", stderr(&wrong));
    assert_eq!(service.end(), Some(0));
}

/// Two links with names alike, and a third one. Only the first may steer packets to the third.
const ALIKE: &str = r#"
[[port]]
name = "a"
driver = "source"
addresses = "10.0.1.1"

[[port]]
name = "b"
driver = "source"
addresses = "10.0.1.2"

[[link]]
name = "dsl1"
from = "a"
to = "b"
filter = "steer fast if udp"

[[link]]
name = "dsl2"
from = "b"
to = "a"

[[link]]
name = "fast"
from = "a"
to = "b"
"#;

#[test]
fn a_pattern_changes_all_links_that_match_or_none() {
    let folder = Folder::new("serve-pattern");
    let file = folder.write("net.toml", ALIKE);
    let service = Service::start(&folder, &[&file]);
    let settings = || {
        let links = json(&service.ctl(&["get", "*", "--kind", "link", "--json"]), 0);
        ["dsl1", "dsl2", "fast"].map(|name| row(&links, name)["settings"].clone())
    };
    let set = json(&service.ctl(&["set", "dsl*", "loss=1%", "--json"]), 0);
    assert_eq!(set["rows"].as_array().unwrap().len(), 2, "{set:#}");
    let before = settings();
    assert_eq!(before.each_ref().map(|link| link["loss"].as_str()), [Some("1 %"), Some("1 %"), None]);
    // The first value is wrong for any link, the second one for dsl2 only.
    for (wrong, why) in [("loss=200%", "out of range"), ("filter=steer fast if tcp", "steers to \"fast\"")] {
        let refused = service.ctl(&["set", "dsl?", "delay=5ms", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
        assert!(stderr(&refused).contains(why), "{wrong}: {}", stderr(&refused));
        assert_eq!(settings(), before, "{wrong}");
    }
    let unknown = service.ctl(&["set", "cable*", "loss=1%"]);
    assert!(stderr(&unknown).contains("there is no link or other object \"cable*\""), "{}", stderr(&unknown));
    assert_eq!(service.end(), Some(0));
}

#[test]
fn others_reach_a_service_by_tokens_only() {
    let folder = Folder::new("serve-tokens");
    let file = folder.write("net.toml", ROUTED);
    let open = longwire(&["serve", &file, "--listen", "0.0.0.0:0"]);
    assert!(stderr(&open).contains("not an address of this machine alone"), "{}", stderr(&open));
    let [read, steer, install] = ["a", "b", "c"].map(|letter| letter.repeat(32));
    let tokens = folder.write("tokens", format!("read {read}\nsteer {steer}\ninstall {install}\n"));
    let shared = longwire(&["serve", &file, "--listen", "0.0.0.0:0", "--tokens", &tokens]);
    assert!(stderr(&shared).contains("chmod 600"), "{}", stderr(&shared));
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let seen = longwire(&["serve", &file, "--listen", "192.0.2.1:0", "--tokens", &tokens]);
    assert!(stderr(&seen).contains("could be read on the way"), "{}", stderr(&seen));
    // Loopback, so that the test opens nothing to others.
    let service = Service::start(&folder, &[&file, "--listen", "127.0.0.1:0", "--tokens", &tokens]);
    let address = service.started["address"].as_str().unwrap().to_owned();
    let ask =
        |method: &str, path: &str, token: &str, body: &str| answer_of(&address, (method, path), token, body);
    let status = |method: &str, path: &str, token: &str, body: &str| {
        ask(method, path, token, body).split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status("GET", "/", "", ""), "200");
    assert_eq!(status("GET", "/v1/stats", "", ""), "401");
    assert_eq!(status("GET", "/metrics", &read, ""), "200");
    let delay = "{\"delay\": \"40 ms\"}";
    assert_eq!(status("PATCH", "/v1/links/up", &read, delay), "403");
    assert_eq!(status("PATCH", "/v1/links/up", &steer, delay), "200");
    assert_eq!(status("PUT", "/v1/scenario", &steer, "{\"toml\": \"\"}"), "403");
    // Who may read or steer may compare or set, but is not shown what this machine's files say.
    let compared = |token: &str, delay: &str| {
        let toml = ROUTED.replace("delay = \"10 ms\"", &format!("delay = {delay}"));
        let body = serde_json::json!({ "toml": toml }).to_string();
        ask("POST", "/v1/scenario/differences", token, &body)
    };
    assert!(compared(&read, "\"70 ms\"").contains("70 ms"));
    folder.write("secret", "0 s password\n");
    let of_file = "{ delay = \"10 ms\", jitter = \"1 ms\", distribution = \"secret\" }";
    let set = |token: &str, pairs: &[(&str, &str)]| {
        let body = serde_json::Value::from_iter(pairs.iter().copied()).to_string();
        ask("PATCH", "/v1/links/up", token, &body)
    };
    let shape = [("jitter", "1 ms"), ("distribution", "secret")];
    let answers = |token: &str| [compared(token, of_file), set(token, &shape)];
    for shown in answers(&install) {
        assert!(shown.contains(" 422 ") && shown.contains("password"), "{shown}");
    }
    for hidden in [&answers(&steer)[..], &[compared(&read, of_file)]].concat() {
        assert!(hidden.contains(" 422 ") && !hidden.contains("password"), "{hidden}");
    }
    files_elsewhere_are_refused(&folder, |file| {
        set(&steer, &[("delay.kind", "trace"), ("delay.file", file)])
    });
    assert!(set(&steer, &[("delay", "soon")]).contains("does not begin with a number"));
    assert_eq!(status("DELETE", "/v1/instance", &steer, ""), "403");
    assert_eq!(service.end(), Some(0));
}

#[test]
fn files_elsewhere_are_refused_by_an_agent_too() {
    let folder = Folder::new("serve-agent-files");
    let [steer, install] = ["b", "c"].map(|letter| letter.repeat(32));
    let tokens = folder.write("tokens", format!("steer {steer}\ninstall {install}\n"));
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let parts = folder.text("parts");
    let args = ["--agent", &parts, "--listen", "127.0.0.1:0", "--tokens", &tokens];
    let service = Service::begin_at(&folder, &args);
    let address = service.event("ready")["address"].as_str().unwrap().to_owned();
    let ask =
        |method: &str, path: &str, token: &str, body: &str| answer_of(&address, (method, path), token, body);
    let digits = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let files = serde_json::json!({ "secret": digits("0 s password\n"), "fine": digits("0 s 5 ms\n") });
    let part = serde_json::json!({ "run": "1", "toml": ROUTED, "files": files }).to_string();
    let started = ask("PUT", "/v1/agent/parts/net", &install, &part);
    assert!(started.contains(" 202 "), "{started}");
    service.event("started");
    // The agent notes that it runs right behind that.
    while !ask("GET", "/v1/agent/parts/net", &steer, "").contains("\"running\"") {
        std::thread::yield_now();
    }
    files_elsewhere_are_refused(&folder, |file| {
        let body = serde_json::json!({ "delay.kind": "trace", "delay.file": file }).to_string();
        ask("PATCH", "/parts/net/v1/links/up", &steer, &body)
    });
    assert_eq!(service.end(), Some(0));
}

/// The answer of a service on TCP to the bearer of a token, if there is one.
fn answer_of(address: &str, (method, path): (&str, &str), token: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let bears = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n{bears}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Who may not install sets files of the scenario's folder, without being shown them; others can't be used,
/// and are not said to exist.
fn files_elsewhere_are_refused(folder: &Folder, set_trace: impl Fn(&str) -> String) {
    let hidden = set_trace("secret");
    assert!(hidden.contains(" 422 ") && !hidden.contains("password"), "{hidden}");
    folder.write("fine", "0 s 5 ms\n");
    assert!(set_trace("fine").contains(" 200 "), "{}", set_trace("fine"));
    for elsewhere in [&*folder.text("secret"), &*folder.text("none"), "../fine"] {
        let refused = set_trace(elsewhere);
        assert!(refused.contains(" 403 ") && refused.contains("delay.file"), "{refused}");
    }
}

/// Runs OpenSSL as the book says.
fn openssl(folder: &Folder, args: &[&str]) {
    let output = Command::new("openssl").args(args).current_dir(folder.path("")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn ctl_reaches_a_service_by_certificates() {
    if let Err(error) = Command::new("openssl").arg("version").output() {
        return println!("ctl_reaches_a_service_by_certificates: skipped: openssl: {error}");
    }
    let folder = Folder::new("serve-tls");
    let file = folder.write("net.toml", ROUTED);
    let key = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    openssl(&folder, &[&key[..], &["-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem"]].concat());
    for (name, names) in [("lab", "subjectAltName=DNS:localhost"), ("me", "subjectAltName=DNS:me")] {
        let [own_key, own] = ["key", "pem"].map(|end| format!("{name}.{end}"));
        let signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-subj", "/CN=x", "-addext", names];
        let ends = ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", &own_key, "-out", &own];
        openssl(&folder, &[&key[..], &signed, &ends].concat());
    }
    let tokens = folder.write("tokens", "steer name:me\n");
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = |name: &str| folder.text(name);
    let [ca, lab, lab_key, me, me_key] = ["ca.pem", "lab.pem", "lab.key", "me.pem", "me.key"].map(text);
    let tls = ["--tls-cert", &lab, "--tls-key", &lab_key, "--tls-clients", &ca, "--tokens", &tokens];
    let service = Service::start(&folder, &[&[&*file, "--listen", "127.0.0.1:0"], &tls[..]].concat());
    let address = service.started["address"].as_str().unwrap();
    let url = address.replace("127.0.0.1", "https://localhost");
    let remote = |args: &[&str]| {
        let own = ["--remote", &url, "--ca", &ca, "--cert", &me, "--key", &me_key];
        longwire(&[&["ctl"], args, &own].concat())
    };
    let list = json(&remote(&["list", "--json"]), 0);
    assert_eq!(list["rows"][0]["name"], "net");
    let set = json(&remote(&["set", "up", "delay=40ms", "--json"]), 0);
    assert_eq!(row(&set, "link up")["settings"]["delay"], "40 ms");
    assert!(stdout(&remote(&["save"])).contains("delay = \"40 ms\""));
    assert!(remote(&["route", "list", "r"]).status.success());
    let programs = ["forwarder", "list", "r", "--json", "--remote", &url, "--ca", &ca, "--cert", &me];
    let programs = longwire(&[&programs[..], &["--key", &me_key]].concat());
    assert_eq!(json(&programs, 0)["router"], "r");
    let stop = remote(&["stop"]);
    assert!(stderr(&stop).contains("your scope is steer, and this needs install"), "{}", stderr(&stop));
    let named = remote(&["stats", "net"]);
    assert!(stderr(&named).contains("leave out \"net\""), "{}", stderr(&named));
    let lost = longwire(&["ctl", "list", "--ca", &ca]);
    assert!(stderr(&lost).contains("add --remote URL"), "{}", stderr(&lost));
    let bare = longwire(&["ctl", "stats", "--remote", &url, "--ca", &ca]);
    assert!(stderr(&bare).to_lowercase().contains("certificate"), "{}", stderr(&bare));
    // What the file says is true from the next request on.
    folder.write("tokens", "install name:me\n");
    service.signal("HUP");
    service.event("reloaded");
    assert!(remote(&["stop"]).status.success());
    service.event("stopped");
    assert_eq!(service.end(), Some(0));
}
