//! `longwire ctl apply` and SIGHUP, where files add and remove links, hosts, ports and routers.

mod support;

use longwire_lab::Lab;
use serde_json::Value;
use support::lab::{Echoes, are_available, can_make_labs};
use support::service::Service;
use support::{Folder, json, row, stderr, stdout};

const SOURCES: &str = "\
    [[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n\n\
    [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"10.0.1.2\"\n\n\
    [[port]]\nname = \"c\"\ndriver = \"source\"\naddresses = \"10.0.1.3\"\n\n\
    [[source]]\nname = \"video\"\nfrom = \"a\"\nto = \"b\"\nmodel = \"cbr\"\nrate = \"1 Mbit/s\"\n";

fn link(name: &str, ends: [&str; 2], keys: &str) -> String {
    format!("\n[[link]]\nname = \"{name}\"\nfrom = \"{}\"\nto = \"{}\"\n{keys}\n", ends[0], ends[1])
}

fn settings(service: &Service, link: &str) -> Value {
    let get = json(&service.ctl(&["get", link, "--json"]), 0);
    row(&get, &format!("link {link}"))["settings"].clone()
}

#[test]
fn files_add_and_remove_links_among_other_changes() {
    let folder = Folder::new("apply-links");
    let up = |delay: &str| link("up", ["a", "b"], &format!("delay = \"{delay}\""));
    let before = format!("{SOURCES}{}{}", up("10 ms"), link("old", ["b", "c"], ""));
    let after = format!("{SOURCES}{}{}", up("25 ms"), link("new", ["c", "b"], "rate = \"5 Mbit/s\""));
    let after = after.replace("\"1 Mbit/s\"", "\"2 Mbit/s\"");
    let (file, state) = (folder.write("net.toml", &before), folder.text("state"));
    let mut service = Service::start(&folder, &[&file, "--state", &state]);
    let edited = folder.write("edited.toml", &after);
    let diff = |service: &Service, file: &str| stdout(&service.ctl(&["diff", file]));
    let text = diff(&service, &edited);
    for line in
        ["link up: delay 10 ms -> 25 ms", "source video: rate", "link old: removed", "link new: added"]
    {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    assert_eq!(text.lines().count(), 4, "{text}");

    // One part is refused: no other is made, and with --partial the settings only.
    let refused = folder.write("refused.toml", format!("seed = 9\n{after}"));
    let output = service.ctl(&["apply", &refused]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("seed: it is fixed"), "{}", stderr(&output));
    assert_eq!(diff(&service, &edited), text);
    let wrong = folder.write("wrong.toml", after.replace("5 Mbit/s", "fast"));
    assert!(stderr(&service.ctl(&["apply", &wrong])).contains("\"fast\""));
    let partial = json(&service.ctl(&["apply", &refused, "--partial", "--json"]), 1);
    assert_eq!(partial["pass"], false, "{partial:#}");
    assert_eq!(row(&partial, "link \"new\"")["kind"], "refused");
    assert_eq!(row(&partial, "up")["settings"][0]["wanted"], "25 ms");
    assert_eq!(diff(&service, &edited).lines().count(), 2);

    folder.write("net.toml", &after);
    service.signal("HUP");
    assert_eq!(service.event("reloaded")["changed"], 2);
    assert!(service.ctl(&["diff", &file]).status.success(), "{}", diff(&service, &file));
    assert_eq!(settings(&service, "new")["rate"], "5 Mbit/s");
    assert!(stderr(&service.ctl(&["get", "old"])).contains("no link or other object \"old\""));
    // What a link that joined is set to is kept, too, and applied where it is not there yet.
    assert!(service.ctl(&["set", "new", "loss=3%"]).status.success());
    let saved = folder.text("saved.toml");
    assert!(service.ctl(&["save", "--output", &saved]).status.success());
    assert!(service.ctl(&["apply", &folder.write("before.toml", &before)]).status.success());
    let text = diff(&service, &saved);
    assert!(text.contains("link new: added") && text.contains("link old: removed"), "{text}");
    assert!(service.ctl(&["apply", &saved]).status.success());
    assert!(service.ctl(&["diff", &saved]).status.success(), "{}", diff(&service, &saved));
    assert_eq!(settings(&service, "new")["loss"], "3 %");

    // What is added behind written changes, and changed then, is saved with them.
    assert!(service.ctl(&["add", "link", "more", "from=c", "to=a", "delay=4ms"]).status.success());
    assert!(service.ctl(&["set", "new", "delay=6ms"]).status.success());
    assert_eq!(settings(&service, "new")["loss"], "3 %");
    assert!(service.ctl(&["save", "--output", &saved]).status.success());
    assert!(service.ctl(&["apply", &saved]).status.success());

    service.child.kill().unwrap();
    service.child.wait().unwrap();
    let service = Service::begin_at(&folder, &[&file, "--state", &state]);
    assert_eq!(service.event("restored")["scenario"], "net");
    service.event("ready");
    assert!(service.ctl(&["diff", &saved]).status.success(), "{}", diff(&service, &saved));
    assert_eq!(
        (&settings(&service, "new")["loss"], &settings(&service, "new")["delay"]),
        (&"3 %".into(), &"6 ms".into())
    );
    assert_eq!(settings(&service, "more")["delay"], "4 ms");
    assert!(!service.ctl(&["get", "old"]).status.success());
    assert_eq!(service.end(), Some(0));
}

/// What an event has added is saved and restored, and a file that has the event is the same.
#[test]
fn what_events_have_added_is_saved_and_restored() {
    let folder = Folder::new("apply-stage");
    let event = "[[at]]\ntime = \"50 ms\"\nremove = \"up\"\n[at.add.link]\nname = \"late\"\nfrom = \"b\"\n\
        to = \"c\"\nrate = \"3 Mbit/s\"\n";
    let file = folder.write("net.toml", format!("{SOURCES}{}\n{event}", link("up", ["a", "b"], "")));
    let state = folder.text("state");
    let mut service = Service::start(&folder, &[&file, "--state", &state]);
    while !service.ctl(&["get", "late"]).status.success() {}
    let diff = service.ctl(&["diff", &file]);
    assert!(diff.status.success(), "{}", stdout(&diff));
    assert!(service.ctl(&["set", "late", "loss=2%"]).status.success());
    let saved = folder.text("saved.toml");
    assert!(service.ctl(&["save", "--output", &saved]).status.success());
    let check = support::longwire(&["check", &saved]);
    assert_ne!(check.status.code(), Some(2), "{}", stderr(&check));
    let diff = stdout(&service.ctl(&["diff", &file]));
    assert!(diff.starts_with("link late: loss 2 % -> none") && diff.lines().count() == 1, "{diff}");
    // Another event can't be planned now.
    let other = folder.write("other.toml", std::fs::read_to_string(&file).unwrap().replace("50 ms", "900 s"));
    let text = stdout(&service.ctl(&["diff", &other]));
    assert!(text.contains("[[at]], add and remove: it is planned"), "{text}");
    // Applying is answered when the state is kept.
    assert!(service.ctl(&["apply", &saved]).status.success());
    service.child.kill().unwrap();
    service.child.wait().unwrap();
    let service = Service::begin_at(&folder, &[&file, "--state", &state]);
    service.event("restored");
    service.event("ready");
    let get = json(&service.ctl(&["get", "late", "--json"]), 0);
    assert_eq!(row(&get, "link late")["settings"]["loss"], "2 %");
    assert!(!service.ctl(&["get", "up"]).status.success());
    assert_eq!(service.end(), Some(0));
}

/// What joins after the edited file was applied by a request is restored, too.
#[test]
fn what_joins_after_an_edited_file_was_applied_is_restored() {
    let folder = Folder::new("apply-edited");
    let text = |delay| format!("{SOURCES}{}", link("up", ["a", "b"], &format!("delay = \"{delay}\"")));
    let (file, state) = (folder.write("net.toml", text("10 ms")), folder.text("state"));
    let mut service = Service::start(&folder, &[&file, "--state", &state]);
    folder.write("net.toml", text("25 ms"));
    assert!(service.ctl(&["apply", &file]).status.success());
    assert!(service.ctl(&["add", "link", "late", "from=b", "to=c"]).status.success());
    service.child.kill().unwrap();
    service.child.wait().unwrap();
    let service = Service::begin_at(&folder, &[&file, "--state", &state]);
    service.event("restored");
    service.event("ready");
    assert_eq!(settings(&service, "up")["delay"], "25 ms");
    assert!(service.ctl(&["get", "late"]).status.success());
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_link_with_other_ends_is_another_link_and_other_paths_are_taken() {
    let folder = Folder::new("apply-ends");
    let text = |ends, keys: &str| format!("{SOURCES}{}", link("up", ends, keys));
    let file = folder.write("net.toml", text(["a", "b"], "delay = \"1 s\""));
    let service = Service::start(&folder, &[&file]);
    let moved = folder.write("moved.toml", text(["c", "b"], "delay = \"2 s\""));
    let diff = stdout(&service.ctl(&["diff", &moved]));
    assert_eq!(diff.trim(), "link up: removed\nlink up: added");
    assert!(service.ctl(&["apply", &moved]).status.success());
    let matched = "delay = \"2 s\"\nmatch = [{ source = \"10.0.1.3\", destination = \"10.0.1.2\" }]";
    let matched = folder.write("matched.toml", text(["c", "b"], matched));
    let diff = stdout(&service.ctl(&["diff", &matched]));
    assert_eq!(diff.trim(), "paths: packets take other ones");
    assert!(service.ctl(&["apply", &matched]).status.success());
    assert!(service.ctl(&["diff", &matched]).status.success());
    assert_eq!(service.end(), Some(0));
}

#[test]
fn nothing_is_lost_elsewhere_while_files_come_and_go() {
    if !can_make_labs("nothing_is_lost_elsewhere_while_files_come_and_go") {
        return;
    }
    let folder = Folder::new("apply-hosts");
    let name = format!("ta{}", std::process::id());
    let host =
        |name: &str, last: u32| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{last}/24\"\n");
    let four: String = ["a", "b", "c", "d"].iter().zip(1..).map(|(name, last)| host(name, last)).collect();
    let steady = "[[link]]\nname = \"steady\"\nbetween = [\"a\", \"b\"]\ndelay = \"5 ms\"\n";
    let other =
        |delay: u32| format!("[[link]]\nname = \"cd\"\nbetween = [\"c\", \"d\"]\ndelay = \"{delay} ms\"\n");
    let more = "[[link]]\nname = \"ac\"\nbetween = [\"a\", \"c\"]\ndelay = \"3 ms\"\n";
    let with_e = host("e", 5) + "[[link]]\nname = \"ea\"\nbetween = [\"e\", \"a\"]\ndelay = \"7 ms\"\n";
    let versions = [
        format!("{four}{steady}{}", other(1)),
        format!("{four}{steady}{}{more}", other(20)),
        format!("{four}{with_e}{steady}{}", other(2)),
        format!("{four}{steady}{more}"),
    ];
    let file = folder.write("net.toml", &versions[0]);
    let mut service = Service::start(&folder, &[&format!("{name}={file}"), "--state", &folder.text("state")]);
    let beside = Echoes::start(&name, "a", "10.0.0.2", 400);
    for round in 0..12 {
        folder.write("net.toml", &versions[round % 4]);
        if round % 2 == 0 {
            service.signal("HUP");
            service.event("reloaded");
        } else {
            let output = service.ctl(&["apply", &file, &name]);
            assert!(output.status.success(), "{}", stderr(&output));
        }
        assert!(service.ctl(&["diff", &file, &name]).status.success());
        if round % 4 == 2 {
            Echoes::start(&name, "e", "10.0.0.1", 3).lost_nothing();
        }
    }
    beside.lost_nothing();
    // Killed with a host that a file has added, it has that host again.
    std::fs::write(folder.path("net.toml"), &versions[2]).unwrap();
    service.signal("HUP");
    service.event("reloaded");
    service.child.kill().unwrap();
    service.child.wait().unwrap();
    let service = Service::start(&folder, &[&format!("{name}={file}"), "--state", &folder.text("state")]);
    Echoes::start(&name, "e", "10.0.0.1", 3).lost_nothing();
    let stats = json(&service.ctl(&["stats", &name, "--json"]), 0);
    assert_eq!(row(&stats, "packets accounted for")["pass"], Value::Bool(true));
    assert_eq!(service.end(), Some(0));
    assert!(!Lab::list().unwrap().iter().any(|lab| lab.instance == name));
}

/// Hosts and a bridge come and go beside a router, and one leaves from the middle.
#[test]
fn hosts_and_bridges_come_and_go_beside_a_router() {
    if !can_make_labs("hosts_and_bridges_come_and_go_beside_a_router") {
        return;
    }
    let folder = Folder::new("apply-router");
    let name = format!("tr{}", std::process::id());
    let host = |name: &str, address: &str, gateway: &str, keys: &str| {
        format!("[[host]]\nname = \"{name}\"\naddress = \"{address}/24\"\ngateway = \"{gateway}\"\n{keys}\n")
    };
    let text = [
        "[[bridge]]\nname = \"x\"\n".to_owned(),
        host("a", "10.0.1.2", "10.0.1.1", "bridge = \"x\""),
        host("b", "10.0.1.3", "10.0.1.1", "bridge = \"x\""),
        host("w", "10.0.2.2", "10.0.2.1", ""),
        "[[router]]\nname = \"r\"\nports = [\n\
         { port = \"lan\", bridge = \"x\", addresses = \"10.0.1.1/24\" },\n\
         { port = \"w\", addresses = \"10.0.2.1/24\" },\n]\n"
            .to_owned(),
    ];
    let scenario = format!("{name}={}", folder.write("net.toml", text.concat()));
    let service = Service::start(&folder, &[&scenario]);
    let beside = Echoes::start(&name, "b", "10.0.2.2", 300);
    let ctl = |words: &[&str]| {
        let output = service.ctl(&[words, &["--instance", &name]].concat());
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    };
    let more = [
        "[[bridge]]\nname = \"y\"\n".to_owned(),
        host("d", "10.0.1.5", "10.0.1.1", "bridge = \"y\""),
        "[[link]]\nname = \"xy\"\nbetween = [\"x\", \"y\"]\ndelay = \"2 ms\"\n".to_owned(),
    ];
    let more = folder.write("more.toml", more.concat());
    for _ in 0..2 {
        ctl(&["add", "host", "c", "address=10.0.1.4/24", "gateway=10.0.1.1", "bridge=x"]);
        Echoes::start(&name, "c", "10.0.2.2", 3).lost_nothing();
        ctl(&["add", "-f", &more]);
        Echoes::start(&name, "d", "10.0.2.2", 3).lost_nothing();
        Echoes::start(&name, "d", "10.0.1.4", 3).lost_nothing();
        ctl(&["remove", "a"]);
        Echoes::start(&name, "c", "10.0.1.5", 3).lost_nothing();
        ctl(&["remove", "d", "y"]);
        ctl(&["remove", "c"]);
        ctl(&["add", "host", "a", "address=10.0.1.2/24", "gateway=10.0.1.1", "bridge=x"]);
        Echoes::start(&name, "a", "10.0.1.3", 3).lost_nothing();
    }
    beside.lost_nothing();
    let stats = json(&service.ctl(&["stats", &name, "--json"]), 0);
    assert_eq!(row(&stats, "packets accounted for")["pass"], Value::Bool(true));
    assert_eq!(service.end(), Some(0));
}

/// Routers come and go by command and by file, one with a control plane, and nothing is lost beside them.
#[test]
fn routers_come_and_go_and_nothing_is_lost_beside_them() {
    let can = longwire_lab::abilities();
    let needed = [&can.root, &can.namespaces, &can.tap];
    if !are_available("routers_come_and_go_and_nothing_is_lost_beside_them", &needed) {
        return;
    }
    let folder = Folder::new("apply-routers");
    let name = format!("tq{}", std::process::id());
    let host = |name: &str, net: u32, last: u32, bridge: &str| {
        format!(
            "[[host]]\nname = \"{name}\"\naddress = \"10.0.{net}.{last}/24\"\ngateway = \"10.0.{net}.1\"\n\
             bridge = \"{bridge}\"\n\n"
        )
    };
    let base = "[[bridge]]\nname = \"x\"\n\n[[bridge]]\nname = \"y\"\n\n".to_owned()
        + &host("a", 1, 2, "x")
        + &host("b", 1, 3, "x")
        + &host("c", 2, 2, "y");
    let ports = "[{ port = \"rx\", bridge = \"x\", addresses = \"10.0.1.1/24\" }, \
        { port = \"ry\", bridge = \"y\", addresses = \"10.0.2.1/24\" }]";
    let file = folder.write("net.toml", &base);
    let service = Service::start(&folder, &[&format!("{name}={file}")]);
    let beside = Echoes::start(&name, "a", "10.0.1.3", 400);
    let ctl = |words: &[&str]| {
        let output = service.ctl(&[words, &["--instance", &name]].concat());
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    for _ in 0..2 {
        assert_eq!(ctl(&["add", "router", "r", &format!("ports={ports}")]).trim(), "added router r");
        Echoes::start(&name, "a", "10.0.2.2", 3).lost_nothing();
        assert!(ctl(&["route", "list", "r"]).contains("10.0.2.0/24"));
        ctl(&["set", "r", "route.10.8.0.0/16=via 10.0.2.2"]);
        assert_eq!(ctl(&["remove", "r"]).trim(), "removed router r");
        assert!(!service.ctl(&["route", "list", "r", "--instance", &name]).status.success());
    }
    // What a program names by number, and what a router is made of, stays.
    let router = format!("[[router]]\nname = \"r\"\ncontrol-plane = \"netns\"\nports = {ports}\n");
    let with = folder.write("with.toml", format!("{base}{router}"));
    let apply = |file: &str| {
        let output = service.ctl(&["apply", file, &name]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(service.ctl(&["diff", file, &name]).status.success());
    };
    for _ in 0..2 {
        apply(&with);
        Echoes::start(&name, "b", "10.0.2.2", 3).lost_nothing();
        // Routes of its namespace are the router's.
        let lab = Lab::open(&name).unwrap();
        let mut add = lab.host("r").unwrap().command("ip").unwrap();
        let added = add.args(["route", "add", "10.7.0.0/16", "via", "10.0.2.2"]).status().unwrap();
        assert!(added.success());
        while !ctl(&["route", "list", "r"]).contains("10.7.0.0/16") {}
        let other = folder.write("other.toml", format!("{base}{}", router.replace("10.0.2.1", "10.0.2.9")));
        let refused = stderr(&service.ctl(&["apply", &other, &name]));
        assert!(refused.contains("router \"r\": its addresses or other fixed settings differ"), "{refused}");
        apply(&file);
        assert!(Lab::open(&name).unwrap().host("r").is_err());
    }
    beside.lost_nothing();
    let stats = json(&service.ctl(&["stats", &name, "--json"]), 0);
    assert_eq!(row(&stats, "packets accounted for")["pass"], Value::Bool(true));
    assert_eq!(service.end(), Some(0));
    assert!(!Lab::list().unwrap().iter().any(|lab| lab.instance == name));
}

/// A host that a file replaces by a port of its name is another attachment, in the running net too.
#[test]
fn a_host_becomes_a_port_of_its_name_and_a_host_again() {
    let can = longwire_lab::abilities();
    let needed = [&can.root, &can.namespaces, &can.tap];
    if !are_available("a_host_becomes_a_port_of_its_name_and_a_host_again", &needed) {
        return;
    }
    let folder = Folder::new("apply-kinds");
    let (name, tap) = (format!("tk{}", std::process::id()), format!("lwk{}", std::process::id()));
    let host =
        |name: &str, last: u32| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{last}/24\"\n\n");
    let rest = host("a", 1) + "[[link]]\nname = \"ac\"\nbetween = [\"a\", \"c\"]\ndelay = \"1 ms\"\n\n";
    let hosts = folder.write("hosts.toml", format!("{rest}{}", host("c", 3)));
    let port = format!("{rest}[[port]]\nname = \"c\"\ndriver = \"tap\"\ninterface = \"{tap}\"\n");
    let port = folder.write("port.toml", port);
    let service = Service::start(&folder, &[&format!("{name}={hosts}")]);
    let there = || {
        let has_tap = std::path::Path::new("/sys/class/net").join(&tap).exists();
        (Lab::open(&name).unwrap().host("c").is_ok(), has_tap)
    };
    for _ in 0..2 {
        Echoes::start(&name, "a", "10.0.0.3", 3).lost_nothing();
        assert_eq!(there(), (true, false));
        let diff = stdout(&service.ctl(&["diff", &port, &name]));
        assert_eq!(diff.trim(), "host c: removed\nport c: added");
        for (file, wanted) in [(&port, (false, true)), (&hosts, (true, false))] {
            let output = service.ctl(&["apply", file, &name]);
            assert!(output.status.success(), "{}", stderr(&output));
            assert!(service.ctl(&["diff", file, &name]).status.success());
            assert_eq!(there(), wanted);
        }
    }
    Echoes::start(&name, "a", "10.0.0.3", 3).lost_nothing();
    let stats = json(&service.ctl(&["stats", &name, "--json"]), 0);
    assert_eq!(row(&stats, "packets accounted for")["pass"], Value::Bool(true));
    assert_eq!(service.end(), Some(0));
}

/// A port that records is added and removed: its capture is complete then, and another port replays it.
#[test]
fn ports_that_record_and_replay_come_and_go() {
    let folder = Folder::new("apply-captures");
    let service = Service::start(&folder, &[&folder.write("net.toml", SOURCES)]);
    let (file, unknown) = (folder.text("seen.pcap"), folder.text("missing.pcap"));
    let ctl = |words: &[&str]| {
        let output = service.ctl(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    };
    let frames = |port: &str, field: &str| {
        let stats = json(&service.ctl(&["stats", "--json"]), 0);
        row(&stats, port)[field].as_u64().unwrap_or_default()
    };
    ctl(&["add", "port", "record", "driver=pcap", &format!("output={file}")]);
    // The source's frames go there from now on.
    ctl(&["set", "video", "to=record", "destination=10.0.1.9"]);
    while frames("record", "out_frames") < 20 {}
    ctl(&["set", "video", "to=b", "destination=10.0.1.2"]);
    ctl(&["remove", "record"]);
    let recorded = std::fs::read(&file).unwrap();
    assert!(recorded.len() > 20 * 60, "{} bytes", recorded.len());
    let refused = service.ctl(&["add", "port", "replay", "driver=pcap", &format!("input={unknown}")]);
    assert!(stderr(&refused).contains("missing.pcap"), "{}", stderr(&refused));
    ctl(&["add", "port", "replay", "driver=pcap", &format!("input={file}")]);
    while frames("replay", "in_frames") < 20 {}
    let stats = json(&service.ctl(&["stats", "--json"]), 0);
    assert_eq!(row(&stats, "packets accounted for")["pass"], Value::Bool(true));
    assert_eq!(service.end(), Some(0));
}

/// Sources are added and removed by requests and files, also with their ports, and are measured on one clock.
#[test]
fn sources_come_and_go() {
    let folder = Folder::new("apply-sources");
    let file = folder.write("net.toml", format!("{SOURCES}{}", link("up", ["a", "b"], "delay = \"10 ms\"")));
    let service = Service::start(&folder, &[&file]);
    let ctl = |words: &[&str]| {
        let output = service.ctl(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    let once_measured = |name: &str| loop {
        let stats = json(&service.ctl(&["stats", "--json"]), 0);
        let source = row(&stats, &format!("source {name}")).clone();
        if source["measured"].as_u64() > Some(4) {
            return source;
        }
    };
    ctl(&["add", "source", "extra", "from=a", "to=b", "model=cbr", "rate=1mbit"]);
    assert_eq!(once_measured("extra")["delay_ns_min"], 10_000_000);
    ctl(&["set", "extra", "rate=2mbit"]);
    let more = "[[port]]\nname = \"d\"\ndriver = \"source\"\naddresses = \"10.0.1.4\"\n\n\
        [[source]]\nname = \"with-port\"\nfrom = \"d\"\nto = \"b\"\nmodel = \"cbr\"\nrate = \"1 Mbit/s\"\n";
    let more = format!("{more}{}", link("side", ["d", "b"], "delay = \"5 ms\""));
    ctl(&["add", "-f", &folder.write("more.toml", more)]);
    assert_eq!(once_measured("with-port")["delay_ns_min"], 5_000_000);
    // What was set before stays, as does what goes on.
    let get = json(&service.ctl(&["get", "extra", "--json"]), 0);
    assert!(row(&get, "source extra")["settings"]["rate"].as_str().is_some_and(|rate| rate.contains('2')));
    assert_eq!(once_measured("video")["delay_ns_min"], 10_000_000);

    assert_eq!(ctl(&["remove", "extra"]), "removed source extra\n");
    assert!(!service.ctl(&["get", "extra"]).status.success());
    let diff = stdout(&service.ctl(&["diff", &file]));
    for line in ["source with-port: removed", "port d: removed", "link side: removed"] {
        assert!(diff.contains(line), "{line}:\n{diff}");
    }
    // A source goes with its port.
    assert!(ctl(&["remove", "d"]).contains("removed source with-port"));
    assert!(service.ctl(&["diff", &file]).status.success());
    // One of the same name begins anew.
    ctl(&["add", "source", "extra", "from=c", "to=b", "model=cbr", "rate=1mbit", "packets=5"]);
    assert_eq!(once_measured("extra")["expected"], 5);
    let stats = json(&service.ctl(&["stats", "--json"]), 0);
    assert_eq!(row(&stats, "packets accounted for")["pass"], Value::Bool(true));
    assert_eq!(service.end(), Some(0));
}

/// What events add in virtual time sends from then on, and no longer than it is there.
#[test]
fn sources_of_events_send_in_their_time() {
    let folder = Folder::new("stage-sources");
    let source = |name: &str, from: &str| {
        format!(
            "[at.add.source]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"b\"\nmodel = \"cbr\"\n\
             size = \"1000 B\"\nrate = \"8 Mbit/s\"\n"
        )
    };
    let (ports, _) = SOURCES.split_once("[[source]]").unwrap();
    let text = format!(
        "{ports}{}[[at]]\ntime = \"1 s\"\n{}start = \"5 ms\"\nfor = \"50 ms\"\n\
         [[at]]\ntime = \"2 s\"\n[at.add.port]\nname = \"d\"\ndriver = \"source\"\n\
         addresses = \"10.0.1.4\"\n{}[[at]]\ntime = \"2100 ms\"\nremove = \"short\"\n",
        link("up", ["a", "b"], "delay = \"10 ms\""),
        source("late", "a"),
        source("short", "d"),
    );
    let run = support::longwire(&["run", &folder.write("s.toml", text), "--virtual", "--json"]);
    let report = json(&run, 0);
    let late = row(&report, "source late");
    assert_eq!((&late["expected"], &late["measured"]), (&50.into(), &50.into()));
    assert_eq!((&late["delay_ns_min"], &late["delay_ns_max"]), (&10_000_000.into(), &10_000_000.into()));
    // One each millisecond, from 2 s on and before 2.1 s.
    assert_eq!(row(&report, "port d")["in_frames"], 100);
    assert_eq!(row(&report, "port b")["out_frames"], 150);
    assert_eq!(row(&report, "packets accounted for")["pass"], Value::Bool(true));
}
