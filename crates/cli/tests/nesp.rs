//! `longwire nesp` from hosts of a lab: settings by frames, and refusals. Needs root; skipped with a message
//! otherwise.

mod support;

use longwire_lab::Lab;
use longwire_nesp::{
    Client, ETHERTYPE, GROUP_ADDRESS, Item, Key, Kind, MessageEnds, MessageKind, Operation, Request, Tags,
    Welcome, seal, wrap,
};
use longwire_port::raw::RawSocket;
use serde_json::Value;
use std::fs::File;
use std::ops::Deref;
use std::process::{Command, Output};
use std::time::Duration;
use support::lab::RunningLab;
use support::{Folder, json, longwire, row, stderr, stdout};

const SCENARIO: &str = r#"
[nesp]
key-file = "nesp.key"
ports = ["a"]
udp = "10.0.0.254"
udp6 = "fd00::fe"

[[host]]
name = "a"
address = ["10.0.0.1/24", "fd00::1/64"]
[[host]]
name = "b"
address = "10.0.0.2/24"
[[link]]
name = "up"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "5 ms"
"#;

/// A lab with a folder for its key.
struct KeyedLab {
    running: RunningLab,
    folder: Folder,
}

impl Deref for KeyedLab {
    type Target = RunningLab;

    fn deref(&self) -> &RunningLab {
        &self.running
    }
}

impl KeyedLab {
    /// Skips the test with a message if labs are impossible.
    fn new(test: &str, scenario: &str) -> Option<Self> {
        let folder = Folder::new(test);
        assert_eq!(longwire(&["nesp", "key", &folder.text("nesp.key")]).status.code(), Some(0));
        let running = RunningLab::of_file(test, &folder.write("s.toml", scenario))?;
        Some(Self { running, folder })
    }

    /// Runs `longwire nesp` in a host with these words and this way of reaching the emulator.
    fn nesp(&self, host: &str, words: &[&str], reach: &[&str]) -> Output {
        let (program, key) = (env!("CARGO_BIN_EXE_longwire"), self.folder.text("nesp.key"));
        self.exec(host, &[&[program, "nesp"], words, reach, &["--key-file", &key]].concat())
    }

    /// Standard error of `longwire nesp` in host a, which must exit with `code`.
    fn said(&self, words: &[&str], code: i32) -> String {
        let output = self.nesp("a", words, ETHERNET);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}{}", stdout(&output), stderr(&output));
        stderr(&output)
    }

    /// The settings of an object, by NESP.
    fn settings(&self, object: &str) -> Value {
        let got = json(&self.nesp("a", &["get", object, "--json"], ETHERNET), 0);
        got["rows"][0]["settings"].clone()
    }

    /// A setting of a link, from the control socket.
    fn setting(&self, link: &str, name: &str) -> String {
        let link = json(&longwire(&["ctl", "get", link, "--instance", &self.name, "--json"]), 0);
        fn find<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
            match value {
                Value::Object(fields) => fields
                    .get(name)
                    .and_then(Value::as_str)
                    .or_else(|| fields.values().find_map(|field| find(field, name))),
                Value::Array(list) => list.iter().find_map(|field| find(field, name)),
                _ => None,
            }
        }
        find(&link, name).unwrap_or_else(|| panic!("no {name} in {link:#}")).to_owned()
    }
}

const ETHERNET: &[&str] = &["--interface", "eth0"];
const UDP: &[&str] = &["--udp", "10.0.0.254"];
const UDP6: &[&str] = &["--udp", "fd00::fe"];

#[test]
fn a_host_reads_and_changes_settings_over_ethernet_and_udp() {
    let Some(lab) = KeyedLab::new("nesp-set", SCENARIO) else { return };
    let listed = json(&lab.nesp("a", &["list", "--settings", "--json"], ETHERNET), 0);
    assert_eq!(listed["rows"][0]["name"], "up.forward");
    assert_eq!(listed["rows"][1]["settings"]["delay"], "5 ms", "{listed:#}");
    for (reach, rate) in [(ETHERNET, "2 Mbit/s"), (UDP6, "7 Mbit/s"), (UDP, "3 Mbit/s")] {
        let set = lab.nesp("a", &["set", "up.forward", &format!("rate={rate}")], reach);
        assert_eq!(set.status.code(), Some(0), "{}", stderr(&set));
        assert!(stdout(&set).starts_with("made at "), "{}", stdout(&set));
        assert_eq!(lab.setting("up.forward", "rate"), rate);
        let got = json(&lab.nesp("a", &["get", "up.forward", "rate", "--json"], reach), 0);
        assert_eq!(got["rows"][0]["settings"], serde_json::json!({ "rate": rate }));
    }
    // A group is applied as a whole, or not at all.
    let changes = |second: &str| format!("up.forward rate=4mbit  # both\nup.backward {second}\n");
    let file = lab.folder.write("wrong", changes("delay=never"));
    let refused = lab.nesp("a", &["apply", &file], ETHERNET);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("delay") && stderr(&refused).contains("(bad-value)"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(lab.setting("up.forward", "rate"), "3 Mbit/s");
    let file = lab.folder.write("right", changes("delay=9ms"));
    assert_eq!(lab.nesp("a", &["apply", &file], ETHERNET).status.code(), Some(0));
    assert_eq!(
        (&*lab.setting("up.forward", "rate"), &*lab.setting("up.backward", "delay")),
        ("4 Mbit/s", "9 ms")
    );
    // Times: one in the past, and one in the future.
    let past = lab.nesp("a", &["set", "up.forward", "rate=1mbit", "--at", "1ns"], ETHERNET);
    assert!(stderr(&past).contains("(bad-time)"), "{}", stderr(&past));
    let later =
        json(&lab.nesp("a", &["set", "up.forward", "rate=1mbit", "--at", "10000s", "--json"], ETHERNET), 0);
    assert_eq!(later["time_ns"], 10_000_000_000_000u64);
    assert_eq!(lab.setting("up.forward", "rate"), "4 Mbit/s");
    let counted = lab.stats();
    assert_eq!(row(&counted, "packets accounted for")["pass"], true, "{counted:#}");
    assert_eq!(row(&counted, "nesp")["measured"], 15, "{counted:#}");
    // The text shows it, too.
    let text = stdout(&longwire(&["ctl", "stats", &lab.name]));
    let line = text.lines().find(|line| line.starts_with("nesp: ")).unwrap_or_else(|| panic!("{text}"));
    // On a busy machine a client may retransmit.
    assert!(line.contains(" hellos, 15 requests, ") && line.ends_with("not answered: -"), "{line}");
}

const ROUTER: &str = r#"
[nesp]
key-file = "nesp.key"
ports = ["a"]

[[host]]
name = "a"
address = "10.0.1.9/24"
[[host]]
name = "b"
address = "10.0.2.9/24"
[[router]]
name = "west"
scheduler = "gmr3"
ports = [{ port = "a", addresses = "10.0.1.1/24" }, { port = "b", addresses = "10.0.2.1/24" }]
routes = [{ to = "10.8.0.0/16", via = "10.0.2.9" }]
flows = [{ name = "voice", key = { protocol = "udp" } }]
"#;

/// Files that a scenario from standard input names are looked for where the command was started.
#[test]
fn the_key_of_a_piped_scenario_is_in_the_current_directory() {
    let folder = Folder::new("nesp-piped");
    assert_eq!(longwire(&["nesp", "key", &folder.text("nesp.key")]).status.code(), Some(0));
    let scenario = folder.write("s.toml", SCENARIO);
    let up = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["lab", "up", "-", "--name", name]).current_dir(folder.path(""));
        command.stdin(File::open(&scenario).unwrap()).output().unwrap()
    };
    let Some((_lab, up)) = RunningLab::by("nesp-piped", up) else { return };
    assert!(up.status.success(), "{}", stderr(&up));
}

#[test]
fn routes_weights_and_programs_of_routers_are_changed() {
    let Some(lab) = KeyedLab::new("nesp-router", ROUTER) else { return };
    let said = |words: &[&str], code| lab.said(words, code);
    let settings = |object| lab.settings(object);
    let before = settings("router:west");
    assert_eq!(before["route.10.8.0.0/16"], "via 10.0.2.9 dev b", "{before:#}");
    assert_eq!(before["route.10.0.1.0/24"], "dev a");
    assert_eq!(settings("flow:west/voice")["weight"], "1");
    // All, or nothing.
    let wrong = ["set", "router:west", "route.10.8.0.0/16=none", "route.10.9.0.0/16=via 10.0.7.7"];
    assert!(said(&wrong, 2).contains("(bad-value)"));
    let file = lab.folder.write("wrong", "router:west route.10.8.0.0/16=none\nflow:west/noise weight=3\n");
    assert!(said(&["apply", &file], 2).contains("there is no flow \"west/noise\""));
    assert_eq!(settings("router:west"), before);
    said(&["set", "router:west", "route.10.8.0.0/16=", "route.10.9.0.0/16=via 10.0.2.9"], 0);
    said(&["set", "flow:west/voice", "weight=7"], 0);
    let after = settings("router:west");
    assert_eq!(
        (&after["route.10.8.0.0/16"], &settings("flow:west/voice")["weight"]),
        (&Value::Null, &"7".into())
    );
    assert_eq!(after["route.10.9.0.0/16"], "via 10.0.2.9 dev b");
    let listed = stdout(&longwire(&["ctl", "route", "list", "west", "--instance", &lab.name]));
    assert!(listed.contains("10.9.0.0/16 via 10.0.2.9 dev b") && !listed.contains("10.8.0.0"), "{listed}");
    // More routes than fit an answer are requested page by page.
    for block in 0..4 {
        let routes: Vec<_> =
            (0..40).map(|n| format!("route.10.{}.{n}.0/24=via 10.0.2.9", 20 + block)).collect();
        let words: Vec<&str> =
            ["set", "router:west"].into_iter().chain(routes.iter().map(|s| &**s)).collect();
        said(&words, 0);
    }
    let many = settings("router:west");
    assert_eq!(many.as_object().unwrap().len(), after.as_object().unwrap().len() + 160);

    programs_are_installed_and_removed(&lab);
    // Alone, and at once.
    let later = ["set", "flow:west/voice", "weight=2", "--at", "10000s"];
    assert!(said(&later, 2).contains("change at once: give no time"));
    let file = lab.folder.write("both", "flow:west/voice weight=2\nforwarder:west/mark data=00\n");
    assert!(said(&["apply", &file], 2).contains("others one by one"));
    assert_eq!(settings("flow:west/voice")["weight"], "7");
}

/// A program: installed by name, its state written, shown, removed.
fn programs_are_installed_and_removed(lab: &KeyedLab) {
    let said = |words: &[&str], code| lab.said(words, code);
    let settings = |object| lab.settings(object);
    let install = [
        "set",
        "forwarder:west/mark",
        "program=dscp-marker",
        "key.destination=10.0.2.9",
        "key.protocol=udp",
        "data=2e000000 01000000 0000000000000000",
    ];
    said(&install, 0);
    let program = settings("forwarder:west/mark");
    assert_eq!(
        (&program["key"], &program["data"], &program["state"]),
        (&"* > 10.0.2.9 udp".into(), &"2e000000010000000000000000000000".into(), &"16".into())
    );
    assert!(said(&install, 2).contains("there is already a program \"west/mark\""));
    let data = "0a000000010000000000000000000000";
    said(&["set", "forwarder:west/mark", &format!("data={data}")], 0);
    assert_eq!(settings("forwarder:west/mark")["data"], data);
    let listed = json(&lab.nesp("a", &["list", "--json"], ETHERNET), 0);
    let names: Vec<_> = listed["rows"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert!(names.contains(&&"west".into()) && names.contains(&&"west/mark".into()), "{names:?}");
    assert!(said(&["set", "forwarder:west/mark", "key.protocol=tcp"], 2).contains("only data can be set"));
    said(&["set", "forwarder:west/mark", "program=none"], 0);
    assert!(said(&["get", "forwarder:west/mark"], 2).contains("(unknown-object)"));
    assert!(said(&["set", "forwarder:west/mark", "program=none"], 2).contains("there is no program"));
}

/// A client in a host that can also send invalid messages.
struct Speaker {
    socket: RawSocket,
    client: Client,
    tags: Tags,
}

impl Speaker {
    fn send(&self, message: &[u8]) {
        let ends = MessageEnds { tags: self.tags, ..MessageEnds::ethernet(self.socket.mac(), GROUP_ADDRESS) };
        self.socket.send(&wrap(&ends, message)).unwrap();
    }

    fn hear(&self, wait: Duration) -> Option<Vec<u8>> {
        let mut buffer = [0; 1518];
        let got = self.socket.receive(&mut buffer, wait).unwrap()?;
        Some(buffer[14..got].to_vec())
    }

    /// The answer, which must exist.
    fn ask(&self, message: &[u8]) -> Vec<u8> {
        self.send(message);
        self.hear(Duration::from_secs(5)).expect("an answer")
    }

    /// Begins a session.
    fn welcomed(&mut self) -> Welcome {
        let welcome = self.ask(&self.client.hello());
        self.client.take_welcome(&welcome).expect("a welcome")
    }

    /// A new request.
    fn set(&mut self, rate: &'static str) -> Vec<u8> {
        let up = Item::Object(Kind::Link, "up.forward".into());
        let items = vec![up, Item::Setting("rate".into(), rate.into())];
        let request = Request { group: 1, part: 0, parts: 1, operation: Operation::Set, time: 0, items };
        self.client.request(&request).unwrap()
    }

    fn set_and_hear(&mut self, rate: &'static str) -> (Vec<u8>, Vec<u8>) {
        let request = self.set(rate);
        let answer = self.ask(&request);
        assert!(self.client.take_answer(&answer).is_some());
        (request, answer)
    }
}

/// Replays, forged requests and a flood, from a host with the key.
fn misbehave(key: Key) {
    let socket = RawSocket::open("eth0", ETHERTYPE).unwrap();
    let mut speaker = Speaker { socket, client: Client::new(key, [1; 16]), tags: Tags::default() };
    let welcome = speaker.welcomed();
    let (first, answer) = speaker.set_and_hear("1 Mbit/s");
    speaker.set_and_hear("2 Mbit/s");
    // A replay of the first: its answer is repeated, and the rate stays.
    assert_eq!(speaker.ask(&first), answer);
    // When the server has forgotten the answer, there is none.
    for _ in 0..16 {
        speaker.set_and_hear("2 Mbit/s");
    }
    speaker.send(&first);
    // Forged, in the right session and outside it; then a flood.
    let forged = Key::read(&"ab".repeat(32)).unwrap().of_requests(&welcome.instance, 1);
    let list =
        Request { group: 1, part: 0, parts: 1, operation: Operation::List, time: 0, items: Vec::new() };
    for session in [1, 99] {
        speaker.send(&seal(MessageKind::Request, session, 100, &list.write(), &forged).unwrap());
    }
    for _ in 0..3000 {
        speaker.send(b"NESP and nothing");
    }
    // The next request is answered eventually: the flood took this port's tokens for a moment.
    let last = speaker.set("2 Mbit/s");
    let answered = (0..50).any(|_| {
        speaker.send(&last);
        let heard = speaker.hear(Duration::from_millis(200));
        heard.is_some_and(|heard| speaker.client.take_answer(&heard).is_some_and(|a| a.refusal().is_none()))
    });
    assert!(answered);
}

#[test]
fn a_host_within_a_vlan_is_answered() {
    let Some(lab) = KeyedLab::new("nesp-vlan", SCENARIO) else { return };
    let key = Key::read(&std::fs::read_to_string(lab.folder.path("nesp.key")).unwrap()).unwrap();
    let open = Lab::open(&lab.name).unwrap();
    let speak = move || {
        let socket = RawSocket::open("eth0", ETHERTYPE).unwrap();
        let tags = Tags::read(&[0x81, 0, 0, 5]).unwrap();
        let mut speaker = Speaker { socket, client: Client::new(key, [1; 16]), tags };
        speaker.welcomed();
        speaker.set_and_hear("8 Mbit/s");
    };
    open.host("a").unwrap().run(speak).unwrap();
    assert_eq!(lab.setting("up.forward", "rate"), "8 Mbit/s");
    let counted = lab.stats();
    assert_eq!(row(&counted, "packets accounted for")["pass"], true, "{counted:#}");
}

#[test]
fn strangers_replays_and_floods_change_nothing() {
    let Some(lab) = KeyedLab::new("nesp-refused", SCENARIO) else { return };
    // From a port where it is not allowed.
    let stranger = lab.nesp("b", &["list", "--timeout", "300ms"], ETHERNET);
    assert_eq!(stranger.status.code(), Some(2));
    assert!(stderr(&stranger).contains("no answer from eth0 after 2 messages"), "{}", stderr(&stranger));
    let key = Key::read(&std::fs::read_to_string(lab.folder.path("nesp.key")).unwrap()).unwrap();
    let open = Lab::open(&lab.name).unwrap();
    open.host("a").unwrap().run(move || misbehave(key)).unwrap();
    assert_eq!(lab.setting("up.forward", "rate"), "2 Mbit/s");
    let counted = lab.stats();
    let nesp = row(&counted, "nesp");
    let count = |name: &str| nesp[name].as_u64().unwrap_or_else(|| panic!("no {name} in {nesp:#}"));
    assert_eq!(
        (count("replayed"), count("bad_authenticator"), count("unknown_session")),
        (1, 1, 1),
        "{nesp:#}"
    );
    assert!(count("repeated") >= 1 && count("malformed") > 0, "{nesp:#}");
    assert!(count("rate_limited") > 1000 && count("frames") + count("rate_limited") >= 3000, "{nesp:#}");
    assert_eq!(row(&counted, "packets accounted for")["pass"], true, "{counted:#}");
}

#[test]
fn what_is_wrong_with_the_key_or_the_section_is_reported() {
    let folder = Folder::new("nesp-check");
    let check = |what: &str, from: &str, to: &str| {
        let scenario = folder.write("s.toml", SCENARIO.replace(from, to));
        let output = longwire(&["check", &scenario]);
        assert_eq!(output.status.code(), Some(2), "{what}");
        assert!(stderr(&output).contains(what), "{what}: {}", stderr(&output));
    };
    check("can't read", "", "");
    let key = folder.write("nesp.key", "00".repeat(32));
    check("chmod 600", "", "");
    assert_eq!(Command::new("chmod").args(["600", &key]).status().unwrap().code(), Some(0));
    check("there is no host, port or bridge \"c\"", "\"a\"]", "\"c\"]");
    check("no port allows it", "[\"a\"]", "[]");
    check("is no IPv4 address of a host", "10.0.0.254", "224.0.0.1");
    check("is no IPv6 address of a host", "fd00::fe", "ff02::1");
    let scenario = folder.write("s.toml", SCENARIO);
    assert_eq!(longwire(&["check", &scenario]).status.code(), Some(0));
    folder.write("nesp.key", "0011");
    check("a key has 16 to 64 bytes, this one 2", "", "");
    let again = longwire(&["nesp", "key", &key]);
    assert_eq!(again.status.code(), Some(2));
}
