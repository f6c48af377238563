//! Programs on routers from the user's view: costs, a lab with real traffic, and refusals.

mod support;

use longwire_lab::abilities;
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Folder, json, longwire, repository, row, stderr, stdout};

#[test]
fn what_a_program_costs_is_reported_without_a_run() {
    let cost = longwire(&["forwarder", "cost", "syn-monitor"]);
    assert!(cost.status.success(), "{}", stderr(&cost));
    let text = stdout(&cost);
    for part in [
        "syn_monitor: ",
        "4 bytes of state, compiled",
        "longest path",
        "vrp: fits: ",
        "line-rate 1 Gbit/s: fits",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let heavy = longwire(&["forwarder", "cost", "nat44"]);
    assert!(
        stdout(&heavy).contains("refused: the budget per packet does not suffice: classifier"),
        "{}",
        stdout(&heavy)
    );
    let none = longwire(&["forwarder", "cost", "firewall"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("or one of ack-monitor, balancer, detector"), "{}", stderr(&none));
}

#[test]
fn what_a_program_costs_is_there_as_json() {
    let cost = json(&longwire(&["forwarder", "cost", "port-filter", "--path", "--json"]), 0);
    assert_eq!((&cost["program"], &cost["state"]), (&"port_filter".into(), &20.into()), "{cost:#}");
    let items = cost["rows"].as_array().unwrap();
    let item = |name: &str| items.iter().find(|item| item["name"] == name).unwrap();
    let sum: u64 = items.iter().map(|item| item["measured"].as_u64().unwrap()).sum();
    assert_eq!(cost["longest_path_ps"].as_u64(), Some(sum), "{cost:#}");
    let path = cost["path"].as_array().unwrap().len() as u64;
    assert_eq!(item("instruction")["times"].as_u64(), Some(path), "{cost:#}");
    let budgets = cost["budgets"].as_array().unwrap();
    assert_eq!(budgets[0]["name"], "vrp");
    // Classifier 56, minimal IP 32. The path with most cycles, 45, is not the slowest: that one reads the
    // ports.
    assert_eq!(budgets[0]["need"]["cycles"].as_u64(), Some(56 + 45 + 32), "{cost:#}");
    let heavy = json(&longwire(&["forwarder", "cost", "nat44", "--json"]), 0);
    assert_eq!(heavy["budgets"][0]["fits"], false);
    assert!(heavy["budgets"][0]["refused"].as_str().unwrap().contains("classifier"), "{heavy:#}");
    // A program that chooses links needs none for this. Time set aside for other levels is not available to
    // programs: nine tenths of 240 cycles and of 672 ns.
    let aside = json(&longwire(&["forwarder", "cost", "port-filter", "--set-aside", "10 %", "--json"]), 0);
    let budgets = aside["budgets"].as_array().unwrap();
    assert_eq!(budgets[0]["name"], "vrp, 10 % set aside");
    assert_eq!((&budgets[0]["budget"]["cycles"], &budgets[0]["need"]["cycles"]), (&216.into(), &133.into()));
    assert_eq!(budgets[1]["budget"]["picoseconds"], 604_800);
    let links = json(&longwire(&["forwarder", "cost", "balancer", "--json"]), 0);
    assert_eq!(links["budgets"][1]["fits"], true, "{links:#}");
    for (rate, why) in [
        ("0", "promises nothing"),
        ("unlimited", "promises nothing"),
        ("fast", "does not begin with a number"),
    ] {
        let none = longwire(&["forwarder", "cost", "nat44", "--line-rate", rate]);
        assert!(none.status.code() == Some(2) && stderr(&none).contains(why), "{rate}: {}", stderr(&none));
    }
}

#[test]
fn a_budget_that_does_not_suffice_is_a_mistake_of_the_scenario() {
    let text = std::fs::read_to_string(repository("scenarios/programs.toml")).unwrap();
    let folder = Folder::new("programs");
    let vrp = text.replace("line-rate = \"100 Mbit/s\"", "profile = \"vrp\"");
    let fits = longwire(&["check", &folder.write("fits.toml", &vrp)]);
    assert!(fits.status.success(), "{}{}", stdout(&fits), stderr(&fits));
    // One more, which reads and writes 136 bytes of state.
    let tight = vrp + "\n[[forwarder]]\nrouter = \"r1\"\nprogram = \"policer\"\n";
    let tight = folder.write("tight.toml", tight);
    let check = longwire(&["check", &tight]);
    let told = stdout(&check) + &stderr(&check);
    assert!(!check.status.success() && told.contains("bytes of state, 96 allowed"), "{told}");
}

#[test]
fn prices_are_measured_and_used() {
    let folder = Folder::new("prices");
    let prices = folder.text("prices");
    let report = json(&longwire(&["calibrate", "--quick", "--json", "--output", &prices]), 0);
    let rows = report["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["name"] == "state-line" && row["picoseconds"].as_u64() > Some(0)),
        "{rows:?}"
    );
    assert!(report["file"] == prices.as_str());
    // A measured instruction is expensive enough on any machine to be distinguished from the assumption.
    let text = std::fs::read_to_string(&prices).unwrap();
    let line = text.lines().find(|line| line.starts_with("instruction = ")).unwrap();
    folder.write("heavy", text.replace(line, "instruction = 90000000"));
    let scenario = |prices: &str| {
        let text = std::fs::read_to_string(repository("scenarios/programs.toml")).unwrap();
        let line = "line-rate = \"100 Mbit/s\"";
        assert!(text.contains(line));
        folder.write("routers.toml", text.replace(line, &format!("{line}\nprices = \"{prices}\"")))
    };
    let told = |prices: &str| {
        let check = longwire(&["check", &scenario(prices)]);
        (check.status.code(), stdout(&check) + &stderr(&check))
    };
    let (_, assumed) = told("assumed");
    assert!(!assumed.contains("picoseconds"), "{assumed}");
    // The scenario names the prices of its routers; engine costs come from the file named here.
    let check = longwire(&["check", &scenario("prices"), "--prices", &prices]);
    let measured = stdout(&check) + &stderr(&check);
    assert!(!measured.contains("no list") && !measured.contains("assumed prices"), "{measured}");
    assert!(measured.contains("worker 0, load"), "{measured}");
    let (code, heavy) = told("heavy");
    assert!(code == Some(2) && heavy.contains("picoseconds, 6720000 allowed"), "{heavy}");
    let (code, none) = told("none");
    assert!(code == Some(2) && none.contains("none: ") && none.contains("longwire calibrate"), "{none}");
    let cost = longwire(&["forwarder", "cost", "syn-monitor", "--prices", &folder.text("heavy")]);
    assert!(stdout(&cost).contains("line-rate 1 Gbit/s: refused"), "{}{}", stdout(&cost), stderr(&cost));
}

/// A lab that is taken down when dropped.
struct Up {
    name: String,
}

impl Up {
    /// Skips the test with a message if labs are impossible.
    fn new(test: &str, scenario: &str) -> Option<Self> {
        Self::of(test, &std::fs::read_to_string(repository(scenario)).unwrap())
    }

    /// A lab with this scenario.
    fn of(test: &str, text: &str) -> Option<Self> {
        let can = abilities();
        for ability in [&can.root, &can.namespaces] {
            if !ability.available {
                println!("skipped {test}: {}", ability.reason);
                return None;
            }
        }
        let name = format!("t{}-{test}", std::process::id());
        let folder = Folder::new("programs-lab");
        let scenario = folder.write("programs.toml", text.split("[[source]]").next().unwrap());
        let up = longwire(&["lab", "up", &scenario, "--name", &name]);
        assert!(up.status.success(), "{}", stderr(&up));
        Some(Self { name })
    }

    fn sh(&self, host: &str, script: &str) -> Output {
        longwire(&["lab", "exec", &self.name, host, "--", "bash", "-c", script])
    }

    /// The message of a refusal.
    fn refused(&self, args: &[&str]) -> String {
        let done = longwire(&[&["forwarder"], args, &["--instance", &self.name]].concat());
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", stdout(&done));
        stderr(&done)
    }

    /// Waits until at least `packets` packets arrived at a link, and returns the numbers for each link in
    /// `asked`. Counters are slightly older than the request.
    fn entered<const N: usize>(&self, link: &str, packets: u64, asked: [&str; N]) -> [u64; N] {
        let begin = Instant::now();
        loop {
            let stats = json(&longwire(&["ctl", "stats", &self.name, "--json"]), 0);
            let of = |link: &str| row(&stats, &format!("link {link}"))["in_packets"].as_u64().unwrap();
            if of(link) >= packets {
                return asked.map(of);
            }
            assert!(begin.elapsed() < PATIENCE, "{stats:#}");
        }
    }

    fn forwarder(&self, args: &[&str]) -> String {
        let done = longwire(&[&["forwarder"], args, &["--instance", &self.name]].concat());
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
        stdout(&done).trim().to_owned()
    }

    /// The attachment of a level with this name.
    fn attachment(&self, level: &str, name: &str) -> Value {
        let levels = self.forwarder(&["levels", "r1", "--json"]);
        let levels: Value = serde_json::from_str(&levels).unwrap();
        let mut attachments = levels["rows"].as_array().into_iter().flatten();
        let attachment =
            attachments.find(|attachment| attachment["level"] == level && attachment["who"] == name);
        attachment.unwrap_or_else(|| panic!("no {level} {name} in {levels}")).clone()
    }

    /// Waits until the counters of an attachment are as wanted.
    fn until(&self, level: &str, name: &str, wanted: impl Fn(&Value) -> bool) {
        let begin = Instant::now();
        while !wanted(&self.attachment(level, name)) {
            assert!(begin.elapsed() < PATIENCE, "{:#}", self.attachment(level, name));
        }
    }

    /// Sends a word until it comes back: on a busy machine a verdict may be late, and the packet is
    /// forwarded.
    fn answered(&self, port: u16, word: &str) {
        let begin = Instant::now();
        while self.echo(port, word, "1") != word {
            assert!(begin.elapsed() < PATIENCE, "{word} to {port} is not answered");
        }
    }

    /// The reply to a word sent to a UDP port of b's; empty after a timeout.
    fn echo(&self, port: u16, word: &str, seconds: &str) -> String {
        let script =
            format!("exec 3<>/dev/udp/10.0.2.9/{port}; echo {word} >&3; timeout {seconds} head -1 <&3");
        stdout(&self.sh("a", &script)).trim().to_owned()
    }

    /// Waits until a program has counted this many: it may run after its packet's sender has ended.
    fn until_counted(&self, place: usize, what: &str, wanted: u64) {
        let begin = Instant::now();
        while self.counted(place, what) != wanted {
            assert!(begin.elapsed() < PATIENCE, "{} {what}, not {wanted}", self.counted(place, what));
        }
    }

    /// The count of the program with this index in the list.
    fn counted(&self, place: usize, what: &str) -> u64 {
        let list = json(&longwire(&["forwarder", "list", "r1", "--json", "--instance", &self.name]), 0);
        let one: &Value = &list["rows"][place];
        one[what].as_u64().unwrap_or_else(|| panic!("{what} in {list}"))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        longwire(&["lab", "down", &self.name]);
    }
}

/// A bound on operations that should take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is killed when dropped.
struct Beside(Child);

impl Beside {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    /// Starts the binary with these arguments.
    fn longwire(args: &[&str]) -> Self {
        Self::start(Command::new(env!("CARGO_BIN_EXE_longwire")).args(args))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn services_and_processes_above_a_router_answer_real_packets() {
    let Some(lab) = Up::new("levels", "scenarios/levels.toml") else { return };
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
    let stats = json(&longwire(&["ctl", "stats", &lab.name, "--json"]), 0);
    assert_eq!(row(&stats, "level r1 slow-path echo")["pass"], true, "{stats:#}");
    assert_eq!(row(&stats, "level r1 control echo")["pass"], true, "{stats:#}");
    assert_eq!(row(&stats, "packets accounted for")["pass"], true, "{stats:#}");
}

fn processes_come_and_go(lab: &Up) {
    let socket = lab.forwarder(&["levels", "r1", "--socket"]);
    let script = repository("crates/punt/examples/control.py");
    let mut processes = vec![("native", vec!["control", "echo", "r1", "--instance", lab.name.as_str()])];
    if Command::new("python3").arg("--version").output().is_ok() {
        processes.push(("python", vec![]));
    }
    for (round, (kind, args)) in processes.into_iter().enumerate() {
        let process = match kind {
            "python" => Beside::start(Command::new("python3").arg(&script).args([&*socket, "echo"])),
            _ => Beside::longwire(&args),
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

fn who_misbehaves_is_cut_off(lab: &Up) {
    // One that stops answering, and one that sends more than allowed: its flows are forwarded from then on.
    let stalled = Beside::longwire(&["control", "echo", "r1", "--instance", &lab.name]);
    lab.until("control", "echo", |attachment| attachment["there"] == true);
    lab.answered(9, "one");
    assert!(Command::new("kill").args(["-STOP", &stalled.0.id().to_string()]).status().unwrap().success());
    assert_eq!(lab.echo(9, "nine", "1"), "");
    lab.until("control", "echo", |attachment| attachment["last_cut"] == "stalled");
    drop(stalled);
    if Command::new("python3").arg("--version").output().is_ok() {
        let flood = "import sys; sys.path.insert(0, sys.argv[1]); from control import *; c = \
            Control(sys.argv[2], 'echo')\nwhile True: c.send(0, bytes(60)); c.flush()";
        let folder = repository("crates/punt/examples");
        let socket = lab.forwarder(&["levels", "r1", "--socket"]);
        let _flooding =
            Beside::start(Command::new("python3").args(["-B", "-c", flood]).arg(folder).arg(&socket));
        lab.until("control", "echo", |attachment| {
            attachment["last_cut"] == "flood" && attachment["there"] == false
        });
        lab.answered(7, "seven");
    }
}

fn promises_are_kept(lab: &Up) {
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

#[test]
fn programs_act_on_real_traffic() {
    let Some(lab) = Up::new("programs", "scenarios/programs.toml") else { return };
    let ping = lab.sh("a", "ping -c 3 -i 0.2 -W 2 10.0.2.9");
    assert!(ping.status.success(), "{}", stdout(&ping));
    // Two connections that pass and are refused by the host; one that is dropped silently on the way.
    for _ in 0..2 {
        assert!(!lab.sh("a", "echo > /dev/tcp/10.0.2.9/80").status.success());
    }
    assert!(!lab.sh("a", "timeout 0.5 bash -c 'echo > /dev/tcp/10.0.2.9/23'").status.success());
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "03000000", "three SYNs");
    let state: Value = serde_json::from_str(&lab.forwarder(&["get", "r1", "1", "--json"])).unwrap();
    let state = &state["rows"][0];
    assert_eq!(state["data"].as_str().map(|data| &data[..8]), Some("03000000"), "{state}");
    assert_eq!(lab.counted(1, "dropped"), 1);
    for _ in 0..4 {
        assert!(lab.sh("a", "echo > /dev/udp/10.0.2.9/5001; echo > /dev/udp/10.0.2.9/5002").status.success());
    }
    assert_eq!(lab.counted(2, "packets"), 4, "only what goes to its port");
    assert_eq!(&lab.forwarder(&["get", "r1", "3"])[16..18], "04", "all of them changed");

    // Telnet passes again, and then nothing at all.
    lab.forwarder(&["remove", "r1", "2"]);
    assert!(!lab.sh("a", "timeout 5 bash -c 'echo > /dev/tcp/10.0.2.9/23'").status.success());
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "04000000");
    let all = lab.forwarder(&[
        "install",
        "r1",
        "port-filter",
        "--data",
        "ffff0000 00000000 00000000 00000000 00000000",
    ]);
    assert_eq!(all, "4");
    assert!(!lab.sh("a", "timeout 0.5 bash -c 'echo > /dev/tcp/10.0.2.9/80'").status.success());
    assert!(lab.counted(2, "dropped") >= 1);
    lab.forwarder(&["set", "r1", "4", "00000000 00000000 00000000 00000000 00000000"]);
    let refused = lab.sh("a", "timeout 5 bash -c 'echo > /dev/tcp/10.0.2.9/80'");
    assert!(stderr(&refused).contains("refused"), "{}", stderr(&refused));
    assert!(lab.sh("a", "ping -c 1 -W 2 10.0.2.9").status.success());

    // Of two networks, a is in the second.
    let counts = ["10.0.1.0/29", "10.0.0.0/8"]
        .map(|from| lab.forwarder(&["install", "r1", "syn-monitor", "--source", from]));
    assert!(!lab.sh("a", "echo > /dev/tcp/10.0.2.9/80").status.success());
    let counted = counts.each_ref().map(|fid| lab.forwarder(&["get", "r1", fid])[..8].to_owned());
    assert_eq!(counted, ["00000000", "01000000"]);
    a_program_takes_the_place_of_another(&lab, &counts[1]);
}

fn a_program_takes_the_place_of_another(lab: &Up, fid: &str) {
    let asked = |args: &[&str]| -> Value { serde_json::from_str(&lab.forwarder(args)).unwrap() };
    let kept = asked(&["replace", "r1", fid, "syn-monitor", "--json"])["rows"][0].clone();
    assert_eq!((&kept["state"], kept["fid"].to_string()), (&"kept".into(), fid.to_owned()), "{kept:#}");
    // Verified and compiled beside the router, which waited for the exchange only.
    assert!(kept["prepare_ns"].as_u64() > kept["pause_ns"].as_u64(), "{kept:#}");
    assert!(!lab.sh("a", "echo > /dev/tcp/10.0.2.9/80").status.success());
    assert_eq!(&lab.forwarder(&["get", "r1", fid])[..8], "02000000", "it went on counting");
    // Its key is kept, and a program with other maps reports so.
    let other = lab.forwarder(&["replace", "r1", fid, "performance-monitor"]);
    assert!(other.contains("maps new: ") && !other.contains("maps kept"), "{other}");
    let again = asked(&["replace", "r1", fid, "performance-monitor", "--json"])["rows"][0].clone();
    assert_eq!(again["maps"]["new"], serde_json::json!([]), "{again:#}");
    assert!(again["maps"]["kept"].as_array().is_some_and(|maps| !maps.is_empty()), "{again:#}");
    let listed = asked(&["list", "r1", "--json"]);
    let number: u64 = fid.parse().unwrap();
    let one = listed["rows"].as_array().unwrap().iter().find(|one| one["fid"] == number).unwrap();
    assert_eq!((&one["key"], &one["program"]), (&"10.0.0.0/8 > *".into(), &"syn-monitor".into()), "{one:#}");
    assert!(one["cost"]["worst_case_ns"].as_f64() > Some(0.0), "{one:#}");
    let refused = lab.refused(&["replace", "r1", "99", "syn-monitor"]);
    assert!(refused.contains("no program 99"), "{refused}");
    let installed = asked(&["install", "r1", "syn-monitor", "--json"])["rows"][0].clone();
    assert!(installed["prepare_ns"].as_u64() > Some(0) && installed["pause_ns"].is_u64(), "{installed:#}");
}

#[test]
fn programs_act_on_real_traffic_on_processors_that_are_threads() {
    let text = std::fs::read_to_string(repository("scenarios/programs.toml")).unwrap();
    let line = "line-rate = \"100 Mbit/s\"";
    assert!(text.contains(line));
    let shared = format!("{line}\nscheduler = \"gmr3\"\nprocessors = 2\nrings = {{ requests = 4 }}");
    let Some(lab) = Up::of("threads", &text.replace(line, &shared)) else { return };
    let ping = lab.sh("a", "ping -c 3 -i 0.2 -W 10 10.0.2.9");
    assert!(ping.status.success(), "{}", stdout(&ping));
    assert!(!lab.sh("a", "echo > /dev/tcp/10.0.2.9/80").status.success());
    assert!(!lab.sh("a", "timeout 0.5 bash -c 'echo > /dev/tcp/10.0.2.9/23'").status.success());
    lab.until_counted(1, "dropped", 1);
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "02000000", "two SYNs");
    for _ in 0..4 {
        assert!(lab.sh("a", "echo > /dev/udp/10.0.2.9/5001; echo > /dev/udp/10.0.2.9/5002").status.success());
    }
    lab.until_counted(2, "packets", 4);

    // Under load, programs are installed and removed, and a state is written.
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| lab.sh("a", "ping -f -q -s 1000 -c 2000 -w 100 10.0.2.9"));
        while !flood.is_finished() {
            let fid = lab.forwarder(&["install", "r1", "ack-monitor"]);
            lab.forwarder(&["set", "r1", "1", "00000000"]);
            lab.forwarder(&["remove", "r1", &fid]);
        }
        let flooded = flood.join().unwrap();
        assert!(flooded.status.success(), "{}", stdout(&flooded));
    });
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "00000000");
    let stats = json(&longwire(&["ctl", "stats", &lab.name, "--json"]), 0);
    let router = row(&stats, "router r1");
    let processors = &router["processors"];
    assert_eq!((&processors["processors"], &processors["measured"]), (&2.into(), &true.into()), "{router:#}");
    assert!(processors["all"]["out_packets"].as_u64() >= Some(4000), "{router:#}");
    assert!(processors["all"]["processor_ns"].as_u64() > Some(0), "{router:#}");
    assert_eq!(
        (&router["pass"], &row(&stats, "packets accounted for")["pass"]),
        (&true.into(), &true.into())
    );
}

/// A router with its own worker, and two links that it can send packets into.
const CHOOSING: &str = r#"
[engine]
workers = 3

[[host]]
name = "a"
address = "10.0.1.9/24"

[[host]]
name = "b"
address = "10.0.2.9/24"

[[router]]
name = "r1"
ports = [
    { port = "a", addresses = "10.0.1.1/24" },
    { port = "east", addresses = "10.0.2.1/24" },
]

[[link]]
name = "cable"
between = ["east", "b"]
rate = "200 Mbit/s"
delay = "5 ms"

[[link]]
name = "satellite"
from = "east"
to = "b"
rate = "50 Mbit/s"
delay = "40 ms"
only = "programs"
"#;

#[test]
fn links_are_chosen_while_real_traffic_passes() {
    let Some(lab) = Up::of("chosen", CHOOSING) else { return };
    let pinged = |count: &str| {
        let ping = lab.sh("a", &format!("ping -q -c {count} -i 0.05 -W 10 10.0.2.9"));
        assert!(ping.status.success(), "{}", stdout(&ping));
    };
    pinged("3");
    assert_eq!(lab.entered("cable.forward", 3, ["satellite"]), [0]);
    // Over one link, the first that is named.
    let over_one = "01000000 00000000 0000000000000000";
    let install = |link: &str, data: &str| {
        lab.forwarder(&["install", "r1", "balancer", "--link", link, "--data", data])
    };
    let fid = install("satellite", over_one);
    pinged("3");
    let [over_satellite, over_cable] = lab.entered("satellite", 3, ["satellite", "cable.forward"]);
    assert_eq!(over_satellite, 3);
    lab.forwarder(&["remove", "r1", &fid]);
    pinged("3");
    let again = lab.entered("cable.forward", over_cable + 3, ["satellite"]);
    assert_eq!(again, [3], "the usual link is taken again");

    // Programs are installed and removed while packets are in flight over both.
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| lab.sh("a", "ping -q -s 1000 -c 200 -i 0.002 -W 20 10.0.2.9"));
        while !flood.is_finished() {
            let fid = install("satellite", over_one);
            lab.forwarder(&["remove", "r1", &fid]);
        }
        let flooded = flood.join().unwrap();
        assert!(stdout(&flooded).contains(" 0% packet loss"), "{}", stdout(&flooded));
    });
    // All came back.
    lab.entered("cable.backward", 209, []);
    let stats = json(&longwire(&["ctl", "stats", &lab.name, "--json"]), 0);
    for name in ["router r1", "packets accounted for"] {
        assert_eq!(row(&stats, name)["pass"], true, "{stats:#}");
    }

    let none = lab.refused(&["install", "r1", "balancer", "--link", "nolink"]);
    assert!(none.contains("there are cable.forward, satellite"), "{none}");
    let elsewhere = lab.refused(&["install", "r1", "balancer", "--link", "cable.backward"]);
    assert!(elsewhere.contains("no link \"cable.backward\" that programs may name begins"), "{elsewhere}");
    what_is_installed_is_listed(&lab);
    maps_say_what_is_wrong(&lab);
    constants_are_set_and_listed(&lab);
    state_is_written_and_shown_by_its_fields(&lab);
    entries_name_programs(&lab);
}

fn what_is_installed_is_listed(lab: &Up) {
    let args =
        ["install", "r1", "syn-monitor", "--port", "east", "--via", "10.0.2.9", "--queue", "0", "--lease"];
    let done = longwire(&[&["forwarder"], &args[..], &["600 s", "--instance", &lab.name]].concat());
    assert!(stderr(&done).contains("has more than one queue"), "{}", stderr(&done));
    let fid: u64 = stdout(&done).trim().parse().unwrap();
    let listed: Value = serde_json::from_str(&lab.forwarder(&["list", "r1", "--json"])).unwrap();
    let one = listed["rows"].as_array().unwrap().iter().find(|one| one["fid"] == fid).unwrap();
    assert_eq!((&one["port"], &one["via"]), (&"east".into(), &"10.0.2.9".into()), "{one:#}");
    assert_eq!((&one["queue"], &one["lease_ns"]), (&0.into(), &600_000_000_000_u64.into()), "{one:#}");
    assert!(one["lease_left_ns"].as_u64() <= Some(600_000_000_000), "{one:#}");
    let text = lab.forwarder(&["list", "r1"]);
    assert!(text.contains("out of east  via 10.0.2.9  queue 0  lease of 600 s, "), "{text}");
    for name in ["", "a\nb", "\u{1b}[2J", &"x".repeat(65)] {
        let refused = lab.refused(&["install", "r1", "syn-monitor", "--name", name]);
        assert!(refused.contains("can't be a name"), "{refused}");
    }
    let near = lab.refused(&["install", "r1", "syn_montor"]);
    assert!(near.contains("did you mean \"syn-monitor\"?"), "{near}");
}

fn constants_are_set_and_listed(lab: &Up) {
    let object = repository("crates/program/tests/objects/constants.o").display().to_string();
    let with = |constant| ["install", "r1", &object, "--function", "counted", "--constant", constant];
    let fid = &*lab.forwarder(&with("chosen=2"));
    assert_eq!(&lab.forwarder(&["map", "r1", fid, ".rodata", "00000000", "--hex"])[..8], "02000000");
    // Lists show installation parameters, for arrays all numbers.
    let several = &*lab.forwarder(&with("steps=7,-8,9"));
    let list: Value = serde_json::from_str(&lab.forwarder(&["list", "r1", "--json"])).unwrap();
    let of = |fid: &str| {
        let list = list["rows"].as_array().unwrap();
        list.iter().find(|one| one["fid"].as_u64() == fid.parse().ok()).unwrap()["constants"].clone()
    };
    assert_eq!(of(fid), serde_json::json!({ "before": -2, "beyond": 0, "chosen": 2, "steps": [1, -2, 3] }));
    assert_eq!(of(several)["steps"], serde_json::json!([7, -8, 9]));
    let text = lab.forwarder(&["list", "r1"]);
    assert!(text.contains("before=-2  beyond=0  chosen=5  steps=7,-8,9"), "{text}");
    let told = lab.refused(&with("steps=7,8"));
    assert!(told.contains("constant steps is 3 whole numbers, not 2"), "{told}");
    let told = lab.refused(&with("pair=7,8"));
    assert!(
        told.contains("a whole number or an array of up to 256); there are before, beyond, chosen, steps"),
        "{told}"
    );
    let told = lab.refused(&with("chosen=8"));
    assert!(told.contains("of a value of map .bss, which has 0 to 63"), "{told}");
}

fn state_is_written_and_shown_by_its_fields(lab: &Up) {
    let fid = &*lab.forwarder(&["install", "r1", "balancer", "--link", "satellite"]);
    lab.forwarder(&["set", "r1", fid, "{\"links\": 1, \"spread\": 7}", "--type", "state"]);
    // An omitted field is 0.
    let fields = serde_json::json!({ "links": 1, "seed": 0, "spread": 7 });
    let shown = lab.forwarder(&["get", "r1", fid, "--type", "state"]);
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), fields);
    assert_eq!(lab.forwarder(&["get", "r1", fid]), "01000000000000000700000000000000");
    let answer: Value =
        serde_json::from_str(&lab.forwarder(&["get", "r1", fid, "--type", "state", "--json"])).unwrap();
    let answer = &answer["rows"][0];
    assert_eq!((&answer["fields"], &answer["data"]), (&fields, &"01000000000000000700000000000000".into()));
    for (args, why) in [
        (&["set", "r1", fid, "{\"link\": 1}", "--type", "state"][..], "there is no field \"link\""),
        (&["set", "r1", fid, "{\"links\": -1}", "--type", "state"], "links"),
        (&["get", "r1", fid, "--type", "stat"], "stat"),
    ] {
        let told = lab.refused(args);
        assert!(told.contains(why), "{args:?}: {told}");
    }
    // A refused write has changed nothing.
    assert_eq!(lab.forwarder(&["get", "r1", fid]), "01000000000000000700000000000000");
    lab.forwarder(&["remove", "r1", fid]);
}

fn entries_name_programs(lab: &Up) {
    let object = repository("crates/program/tests/objects/exits.o").display().to_string();
    let flow = ["--protocol", "udp", "--destination-port", "4000"];
    let exits = ["--exit", "stamp", "--exit", "refuse", "--map", "ports=1:stamp,0:"];
    let install = [&["install", "r1", &object, "--function", "redirect"], &exits[..], &flow[..]].concat();
    let fid = &*lab.forwarder(&install);
    let entry = |key: &str| lab.forwarder(&["map", "r1", fid, "ports", key, "--hex"]);
    assert_eq!([entry("00000000"), entry("01000000")], ["0100000001000000", "0000000000000000"]);
    lab.forwarder(&["map", "r1", fid, "ports", "01000000", "1:refuse"]);
    assert_eq!(entry("01000000"), "0100000002000000");
    lab.forwarder(&["map", "r1", fid, "ports", "00000000", "0:"]);
    assert_eq!(entry("00000000"), "0000000000000000");
    for (wrong, why) in [
        ("1:nothing", "map ports can't lead to program \"nothing\"; there are stamp, refuse"),
        ("1:let_pass", "map ports can't lead to program \"let_pass\""),
        ("1x:stamp", "\"1x\" is not a number"),
        ("one:stamp", "hexadecimal"),
    ] {
        let told = lab.refused(&["map", "r1", fid, "ports", "00000000", wrong]);
        assert!(told.contains(why), "{wrong}: {told}");
    }
    assert_eq!(entry("00000000"), "0000000000000000");
    lab.forwarder(&["remove", "r1", fid]);
}

fn maps_say_what_is_wrong(lab: &Up) {
    let fid = &*lab.forwarder(&["install", "r1", "performance-monitor"]);
    let maps: Value = serde_json::from_str(&lab.forwarder(&["map", "r1", fid, "--json"])).unwrap();
    assert!(maps["rows"].as_array().unwrap().iter().any(|map| map["name"] == "protocols"), "{maps:#}");
    let wrong = |args: &[&str]| lab.refused(&[&["map", "r1", fid], args].concat());
    for (args, why) in [
        (&["none"][..], "the program has no map \"none\"; it has "),
        (&["protocols", "six"], "\"six\" is not an integer from 0 to 4294967295"),
        (&["protocols", "00010000"], "it is number 256, and map protocols has 0 to 255"),
        (&["protocols", "06000000", "00"], "is not an object with packets, bytes"),
        (&["protocols", "6", "{\"packet\": 1}"], "there is no field \"packet\"; there are packets, bytes"),
        (&["protocols", "06000000", "--delete"], "protocols is an array, whose entries can't be removed"),
    ] {
        let told = wrong(args);
        assert!(told.contains(why), "{args:?}: {told}");
    }
    let object = repository("crates/program/tests/objects/constants.o");
    let object = object.display().to_string();
    let fid = &*lab.forwarder(&["install", "r1", &object, "--function", "counted"]);
    let told = lab.refused(&["map", "r1", fid, ".rodata", "00000000", "00000000000000"]);
    assert!(told.contains("holds constants"), "{told}");
    let told = lab.refused(&["map", "r1", fid, ".rodata", "--clear"]);
    assert!(told.contains("holds constants"), "{told}");
    for (args, why) in [
        (
            &[".bss", "0500"][..],
            "it is 2 bytes, and keys of map .bss are 4: the entry's number, lowest byte first",
        ),
        (&[".bss", "0000000000"], "it is 5 bytes, and keys of map .bss are 4"),
        (&[".bss", "01000000"], "it is number 1, and map .bss has 0 to 0"),
    ] {
        let told = lab.refused(&[&["map", "r1", fid], args].concat());
        assert!(told.contains(why), "{args:?}: {told}");
    }
    // Read by programs only, and written here.
    lab.forwarder(&["map", "r1", fid, "settings", "00000000", "07000000"]);
    assert_eq!(lab.forwarder(&["map", "r1", fid, "settings", "0"]), "7");
    lab.forwarder(&["map", "r1", fid, "settings", "--clear"]);
    assert_eq!(lab.forwarder(&["map", "r1", fid, "settings", "00000000", "--hex"]), "00000000");
    let told = lab.refused(&["install", "r1", &object, "--function", "set"]);
    assert!(told.contains("constants.o: program set, instruction "), "{told}");
}

/// Waits for a line, and parses it as JSON.
fn next(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Value {
    serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
}

/// A lab, and an object whose programs write records.
struct Events {
    lab: Up,
    object: String,
}

impl Events {
    /// Installs one of its programs for UDP to a port.
    fn with(&self, function: &str, port: &str, more: &[&str]) -> String {
        let what = ["install", "r1", &self.object, "--function", function];
        let key = ["--destination-port", port, "--protocol", "udp"];
        self.lab.forwarder(&[&what[..], &key, more].concat())
    }

    fn send(&self, port: u16, times: u32) {
        let script = format!("for ((i = 0; i < {times}; i++)); do echo > /dev/udp/10.0.2.9/{port}; done");
        assert!(self.lab.sh("a", &script).status.success());
    }

    /// The records available now.
    fn asked(&self, args: &[&str]) -> Vec<Value> {
        let lines = self.lab.forwarder(&[&["events", "r1"], args, &["--once", "--json"]].concat());
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn records_of_programs_go_to_who_asks_for_them() {
    let Some(lab) = Up::new("events", "scenarios/programs.toml") else { return };
    let object = repository("crates/program/tests/objects/events.o").display().to_string();
    let events = Events { lab, object };
    let copied = records_come_by_their_fields(&events);
    records_without_room_are_lost(&events);

    // A program's two bytes, followed by the beginning of the packet.
    let sampled = events.with("sampled", "5005", &[]);
    events.lab.forwarder(&["map", "r1", &sampled, "kinds", "0", "OTHER"]);
    events.send(5005, 1);
    events.lab.until_counted(5, "packets", 1);
    let sample = &events.asked(&[&sampled, "samples"])[0];
    let data = sample["data"].as_str().unwrap();
    // 43 bytes of frame: Ethernet's 14, and 29.
    assert!(data.starts_with("2b00") && data.len() == 2 * (2 + 43) && data[28..32] == *"0800", "{sample:#}");
    assert_eq!(sample["worker"], 0, "{sample:#}");

    for (args, why) in [
        (&["1"][..], "the program has no ring"),
        (&[&copied, "last"], "last is not a ring but a hash: longwire forwarder map shows its entries"),
        (&[&copied, "none"], "the program has no map \"none\"; it has records, last, kinds, samples"),
        (&[&copied, "records", "--type", "happening"], "the object has no type \"happening\""),
    ] {
        let told = events.lab.refused(&[&["events", "r1"], args].concat());
        assert!(told.contains(why), "{args:?}: {told}");
    }
    let told = events.lab.refused(&["map", "r1", &copied, "records", "00"]);
    assert!(told.contains("records is a ring, which has no keys: longwire forwarder events"), "{told}");
    let told = events.lab.refused(&[
        "install",
        "r1",
        &repository("crates/program/tests/objects/forgetful.o").display().to_string(),
    ]);
    assert!(told.contains("ends here with a record of ring records"), "{told}");
}

/// Prints records as they arrive, by their fields; returns the program's number.
fn records_come_by_their_fields(events: &Events) -> String {
    let copied = events.with("copied", "5003", &[]);
    let mut reader = Command::new(env!("CARGO_BIN_EXE_longwire"));
    reader.args([
        "forwarder",
        "events",
        "r1",
        &copied,
        "records",
        "--type",
        "event",
        "--json",
        "--instance",
        &events.lab.name,
    ]);
    let mut reader = Beside(reader.stdout(Stdio::piped()).spawn().unwrap());
    events.send(5003, 1);
    let out = reader.0.stdout.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(out));
    let first = next(&mut lines);
    let fields = &first["fields"];
    assert_eq!((&first["event"], &first["map"]), (&"record".into(), &"records".into()), "{first:#}");
    let port = fields["ends"]["ports"][0].as_u64().unwrap();
    let ends = serde_json::json!({ "source": "10.0.1.9", "destination": "10.0.2.9", "ports": [port, 5003] });
    assert_eq!(
        (&fields["ends"], &fields["kind"], &fields["name"]),
        (&ends, &"DATAGRAM".into(), &"udp".into()),
        "{first:#}"
    );
    // 28 bytes of headers and a newline; a TTL of 64.
    assert_eq!([&fields["length"], &fields["ttl"], &fields["hops"]], [29, 0, 4], "{first:#}");
    events.send(5003, 2);
    let times = [
        first["time_ns"].as_u64(),
        next(&mut lines)["time_ns"].as_u64(),
        next(&mut lines)["time_ns"].as_u64(),
    ];
    assert!(times.is_sorted() && times[0] > Some(0), "{times:?}");
    drop(reader);
    entries_are_shown_and_written_by_fields(&events.lab, &copied, &ends);
    copied
}

fn records_without_room_are_lost(events: &Events) {
    // Each takes 36 bytes and 16 before, in words of 8: 73 fit 4096 bytes, and the others are lost.
    let reserved = events.with("reserved", "5004", &["--map", "records=4096"]);
    events.send(5004, 100);
    events.lab.until_counted(4, "packets", 100);
    assert_eq!(events.lab.counted(4, "dropped"), 27);
    let told = events.lab.forwarder(&["map", "r1", &reserved]);
    assert!(
        told.contains("records: ringbuf, 4088 of 4096 bytes wait, 0 records taken out, 27 lost"),
        "{told}"
    );
    let all = events.asked(&[&reserved, "records"]);
    let (lost, records) = all.split_last().unwrap();
    assert_eq!(*lost, serde_json::json!({ "event": "lost", "map": "records", "records": 27 }));
    assert!(
        records.len() == 73 && records.iter().all(|one| one["data"].as_str().unwrap().len() == 72),
        "{records:#?}"
    );
    events.send(5004, 1);
    events.lab.until_counted(4, "packets", 101);
    assert_eq!(events.asked(&[&reserved])[0]["fields"], Value::Null);
    let told = events.lab.forwarder(&["map", "r1", &reserved]);
    assert!(told.contains("records: ringbuf, 0 of 4096 bytes wait, 74 records taken out, 27 lost"), "{told}");
}

fn entries_are_shown_and_written_by_fields(lab: &Up, fid: &str, ends: &Value) {
    let asked = |args: &[&str]| -> Value {
        serde_json::from_str(&lab.forwarder(&[&["map", "r1", fid], args, &["--json"]].concat())).unwrap()
    };
    let all = asked(&["last"]);
    let entries = all["rows"].as_array().unwrap();
    let shown = entries.iter().find(|entry| entry["fields"]["key"] == *ends).unwrap();
    assert_eq!(shown["fields"]["value"]["kind"], "DATAGRAM", "{shown:#}");
    assert_eq!(shown["key"].as_str().map(|key| &key[..16]), Some("0a0001090a000209"), "{shown:#}");
    let one = asked(&["last", &ends.to_string()])["rows"][0].clone();
    assert_eq!(one["fields"]["value"], shown["fields"]["value"], "{one:#}");
    let variables = asked(&[".bss"])["rows"][0]["fields"]["value"].clone();
    assert_eq!(
        (&variables["seen"], &variables["latest"]["destination"]),
        (&3.into(), &"10.0.2.9".into()),
        "{variables:#}"
    );

    let key = r#"{"source": "192.0.2.1", "ports": [7, 65535]}"#;
    let value = concat!(
        r#"{"kind": "OTHER", "length": 9, "ttl": 15, "fragment": true, "name": "new", "#,
        r#""station": "02:00:00:00:00:01"}"#
    );
    lab.forwarder(&["map", "r1", fid, "last", key, value]);
    let hex = lab.forwarder(&["map", "r1", fid, "last", key, "--hex"]);
    assert_eq!(hex, "0000000000000000000000000400000009000f016e657700000000000200000000010000");
    let text = lab.forwarder(&["map", "r1", fid, "last", key]);
    assert!(text.contains(r#""station":"020000000001""#) && text.contains(r#""bytes":"0000""#), "{text}");
    lab.forwarder(&["map", "r1", fid, "last", key, "--delete"]);
    assert!(lab.refused(&["map", "r1", fid, "last", key]).contains("map last has no such key"));

    lab.forwarder(&["map", "r1", fid, "kinds", "2", "DATAGRAM"]);
    lab.forwarder(&["map", "r1", fid, "kinds", "03000000", "7"]);
    assert_eq!(
        lab.forwarder(&["map", "r1", fid, "kinds"]),
        "0 \"NOTHING\"\n1 \"NOTHING\"\n2 \"DATAGRAM\"\n3 7"
    );
    for (args, why) in [
        (&["kinds", "4", "OTHER"][..], "it is number 4, and map kinds has 0 to 3"),
        (&["kinds", "0", "ELSE"], "\"ELSE\" is none of NOTHING, DATAGRAM, OTHER, nor a number of 4 bytes"),
        (
            &["last", "{\"sources\": 1}"],
            "there is no field \"sources\"; there are source, destination, ports",
        ),
        (&["last", "{\"ports\": [1, 65536]}"], "ports[1]: 65536 is not an integer from 0 to 65535"),
        (&["last", "{\"ports\""], "it is not JSON"),
    ] {
        let told = lab.refused(&[&["map", "r1", fid], args].concat());
        assert!(told.contains(why), "{args:?}: {told}");
    }

    // State has the type that the caller names.
    let object = repository("crates/program/tests/objects/longwire.o").display().to_string();
    let spread = lab.refused(&["install", "r1", &object]);
    assert!(spread.contains("chooses among 3 links"), "{spread}");
    let state = lab.forwarder(&["install", "r1", "syn-monitor", "--state", "24 B"]);
    lab.forwarder(&["set", "r1", &state, "{\"ingress_ifindex\": 7}", "--type", "xdp_md"]);
    let told = lab.refused(&["set", "r1", &state, "{}", "--type", "states"]);
    assert!(told.contains("the object has no type \"states\""), "{told}");
    let fields: Value =
        serde_json::from_str(&lab.forwarder(&["get", "r1", &state, "--type", "xdp_md"])).unwrap();
    assert_eq!((&fields["ingress_ifindex"], &fields["egress_ifindex"]), (&7.into(), &0.into()), "{fields}");
    lab.forwarder(&["remove", "r1", &state]);
}

#[test]
fn maps_have_as_many_entries_as_an_installation_says() {
    let Some(lab) = Up::new("entries", "scenarios/programs.toml") else { return };
    let object = repository("crates/program/tests/objects/unsized.o").display().to_string();
    let only = ["--destination-port", "5006", "--protocol", "udp"];
    let install = |maps: &[&str]| {
        let args =
            [&["forwarder", "install", "r1", &object][..], &only, maps, &["--instance", &lab.name]].concat();
        longwire(&args)
    };
    let none = install(&["--map", "counts=64"]);
    assert_eq!(none.status.code(), Some(2));
    let why =
        "map cpus has no max_entries: say how many entries it has when it is installed, --map cpus=ENTRIES";
    assert!(stderr(&none).contains(why), "{}", stderr(&none));
    for (map, why) in [
        (
            "cpu=2",
            "there is no map cpu whose number of entries could be said; there are counts, cpus, others",
        ),
        ("cpus=many", "many"),
        ("cpus=134217729", "max_entries is 134217729"),
    ] {
        let refused = install(&["--map", "counts=64", "--map", map]);
        assert!(
            refused.status.code() == Some(2) && stderr(&refused).contains(why),
            "{map}: {}",
            stderr(&refused)
        );
    }
    let done = install(&["--map", "counts=64", "--map", "cpus=2"]);
    let note = "note: map cpus: a packet that is redirected to a processor stays on its own and passes";
    assert!(done.status.success() && stderr(&done).contains(note), "{}", stderr(&done));
    let fid = stdout(&done).trim().to_owned();
    let maps: Value = serde_json::from_str(&lab.forwarder(&["map", "r1", &fid, "--json"])).unwrap();
    let sizes: Vec<_> =
        maps["rows"].as_array().unwrap().iter().map(|map| (&map["name"], &map["max-entries"])).collect();
    let wanted: Vec<(Value, Value)> =
        vec![("counts".into(), 64.into()), ("cpus".into(), 2.into()), ("others".into(), 0.into())];
    assert_eq!(sizes, wanted.iter().map(|(name, size)| (name, size)).collect::<Vec<_>>(), "{maps:#}");

    // Without a processor in the map the packet is dropped; with one it passes, and is still counted here.
    let send = || assert!(lab.sh("a", "echo > /dev/udp/10.0.2.9/5006").status.success());
    send();
    lab.until_counted(3, "dropped", 1);
    for processor in ["00000000", "01000000"] {
        lab.forwarder(&["map", "r1", &fid, "cpus", processor, "0008000000000000"]);
    }
    send();
    lab.until_counted(3, "passed", 1);
    // It came in by a's port, the first.
    assert_eq!(lab.forwarder(&["map", "r1", &fid, "counts", "0"]), "2");
}
