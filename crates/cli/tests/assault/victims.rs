//! Victims: every subcommand of the command line, with what each needs to have something to do.

use super::support::started::Started;
use super::support::{Folder, Frame, ended_by_all, frame, longwire, pcap, repository, stderr, stdout};
use clap::CommandFactory;
use longwire_cli::Cli;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Two hosts, for commands that make their own hosts.
pub const SCENARIO: &str = "\
[[host]]
name = \"a\"
address = \"10.66.0.1/24\"
[[host]]
name = \"b\"
address = \"10.66.0.2/24\"
[[link]]
name = \"l\"
between = [\"a\", \"b\"]
delay = \"1 ms\"
";

/// A router with a control plane between a and b, one whose flows share its processors between c and d, and
/// two hosts that may change settings by frames.
const LAB: &str = r#"
[nesp]
key-file = "nesp.key"
ports = ["e"]
udp = "10.0.5.254"

[[host]]
name = "a"
address = "10.0.1.9/24"
[[host]]
name = "b"
address = "10.0.2.9/24"
[[host]]
name = "c"
address = "10.0.3.9/24"
[[host]]
name = "d"
address = "10.0.4.9/24"
[[host]]
name = "e"
address = "10.0.5.1/24"
[[host]]
name = "f"
address = "10.0.5.2/24"

[[router]]
name = "r1"
control-plane = "netns"
ports = [{ port = "a", addresses = "10.0.1.1/24" }, { port = "b", addresses = "10.0.2.1/24" }]
[[router]]
name = "r2"
scheduler = "gmr3"
ports = [{ port = "c", addresses = "10.0.3.1/24" }, { port = "d", addresses = "10.0.4.1/24" }]
flows = [{ name = "voice", key = { protocol = "udp" } }]

[[link]]
name = "video"
from = "a"
to = "b"
rate = "10 Mbit/s"
[[link]]
name = "l"
between = ["e", "f"]
rate = "10 Mbit/s"
delay = "1 ms"
"#;

/// A command that is killed. Words in capitals are replaced in each round: see [`Round`].
#[derive(Debug, Clone, Copy)]
pub struct Victim {
    /// The command line, without `longwire`.
    pub line: &'static str,
    /// Arguments of `longwire` before each round, undisturbed; empty if none.
    pub before: &'static str,
    /// Whether it runs until it is ended.
    pub endless: bool,
    /// The host of the lab in whose network it runs; empty for the machine's.
    host: &'static str,
}

impl Victim {
    const fn of(line: &'static str) -> Self {
        Self { line, before: "", endless: false, host: "" }
    }

    const fn after(self, before: &'static str) -> Self {
        Self { before, ..self }
    }

    const fn endless(self) -> Self {
        Self { endless: true, ..self }
    }

    const fn within(self, host: &'static str) -> Self {
        Self { host, ..self }
    }

    /// Whether it contains a word in capitals.
    fn uses(&self, word: &str) -> bool {
        [self.line, self.before].iter().any(|line| line.split(' ').any(|one| one == word))
    }

    /// Whether it makes or ends its own lab, which is removed on request.
    pub fn has_own_lab(&self) -> bool {
        self.uses("NAME") || self.uses("NAMED")
    }

    /// Whether it needs the lab that all its rounds share.
    pub fn needs_lab(&self) -> bool {
        self.uses("LAB") || self.uses("SPACE") || !self.host.is_empty()
    }
}

const INSTALL: &str = "forwarder install r1 syn-monitor --lease 10s --instance LAB";
const LAB_UP: &str = "lab up FILE --name NAME";

/// All commands. A new command must be added: [`each_command_is_killed`] compares the list with the command
/// line's.
pub const VICTIMS: &[Victim] = &[
    Victim::of("exec -q --private --delay 1ms -- sleep 0.5"),
    Victim::of("exec -q --private --serve SERVICE -- sleep 0.5"),
    Victim::of("demo"),
    Victim::of("run FILE --name NAME --for 1s"),
    Victim::of("run FILE --virtual --for 30s"),
    Victim::of("sweep plan SWEEP"),
    Victim::of("sweep run SWEEP --output OUT"),
    Victim::of("sweep table ROWS --csv").after("sweep run SWEEP --task 0,12 --output ROWS"),
    Victim::of("sweep plot ROWS --x bottleneck.rate --y dropped --output OUT")
        .after("sweep run SWEEP --task 0,12 --output ROWS"),
    Victim::of("serve NAMED --state STATE").endless(),
    Victim::of("serve --agent STATE --listen 127.0.0.1:0 --tokens TOKENS").endless(),
    Victim::of("log LOG --csv").after("run FILE --virtual --for 1s --log LOG"),
    Victim::of("attach --netns SPACE --delay 1ms").endless(),
    Victim::of("proxy --listen 127.0.0.1:0 --to localhost:9 --delay 1ms").endless(),
    Victim::of("check FILE"),
    Victim::of("partition FILE --machines MACHINES --write OUT"),
    Victim::of("import netem --output OUT delay 100ms 20ms loss 1%"),
    Victim::of(
        "constellation --walker delta:53:66/6/1:550km --station a:50:8 --station b:48:11 --output OUT",
    ),
    Victim::of("quic-interop run --print simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25"),
    Victim::of("quic-interop wait 127.0.0.1:9 --for 300ms"),
    Victim::of("distill SENT RECEIVED --output OUT"),
    Victim::of("ctl list"),
    Victim::of("ctl stats LAB"),
    Victim::of("ctl get l --instance LAB"),
    Victim::of("ctl set l rate=5mbit delay=9ms --ramp 200ms --instance LAB"),
    Victim::of("ctl add host c address=10.66.0.3/24 --link a --instance NAME").after(LAB_UP),
    Victim::of("ctl remove l --instance NAME").after(LAB_UP),
    Victim::of("ctl diff FILE LAB"),
    Victim::of("ctl apply FILE LAB"),
    Victim::of("ctl save LAB"),
    Victim::of("ctl route list r2 --instance LAB"),
    Victim::of("ctl route add r2 10.77.ROUND.0/24 via 10.0.4.9 --instance LAB"),
    Victim::of("ctl route remove r2 10.78.ROUND.0/24 --instance LAB")
        .after("ctl route add r2 10.78.ROUND.0/24 via 10.0.4.9 --instance LAB"),
    Victim::of("ctl weigh r2 voice 4 --instance LAB"),
    Victim::of("ctl stop NAME").after(LAB_UP),
    Victim::of("nesp key OUT"),
    Victim::of("tunnel key OUT"),
    Victim::of("nesp list --settings --udp 10.0.5.254 --key-file KEY").within("e"),
    Victim::of("nesp get l.forward --udp 10.0.5.254 --key-file KEY").within("e"),
    Victim::of("nesp set l.forward rate=5mbit --interface eth0 --key-file KEY").within("e"),
    Victim::of("nesp apply CHANGES --udp 10.0.5.254 --key-file KEY").within("e"),
    Victim::of("forwarder cost syn-monitor"),
    Victim::of("forwarder install r1 syn-monitor --lease 1s --instance LAB"),
    Victim::of("forwarder list r1 --instance LAB").after(INSTALL),
    Victim::of("forwarder levels r1 --instance LAB"),
    Victim::of("forwarder get r1 FID --instance LAB").after(INSTALL),
    Victim::of("forwarder set r1 FID 00000000 --instance LAB").after(INSTALL),
    Victim::of("forwarder events r1 FID --instance LAB")
        .after("forwarder install r1 OBJECT --function copied --lease 10s --instance LAB")
        .endless(),
    Victim::of("forwarder replace r1 FID syn-monitor --instance LAB").after(INSTALL),
    Victim::of("forwarder renew r1 FID --instance LAB").after(INSTALL),
    Victim::of("forwarder remove r1 FID --instance LAB").after(INSTALL),
    Victim::of("forwarder map r1 FID --instance LAB").after(INSTALL),
    Victim::of("control echo r1 --name echo-ROUND --instance LAB")
        .after(
            "forwarder install r1 --where control --name echo-ROUND --packets 1000 --cycles 5000 \
             --destination-port 9 --protocol udp --lease 10s --instance LAB",
        )
        .endless(),
    Victim::of("control syn-alarm r1 --lease 1s --instance LAB").endless(),
    Victim::of("control intrusion r1 --lease 1s --instance LAB").endless(),
    Victim::of("control splice r1 --listen 10.0.1.1:8080 --backend 10.0.2.9:80 --lease 1s --instance LAB")
        .endless(),
    Victim::of(
        "control wavelet r1 --link video --destination 10.0.2.9 --destination-port 5004 --lease 1s \
         --instance LAB",
    )
    .endless(),
    Victim::of("control monitor r1 --by protocol,flags --lease 1s --instance LAB").endless(),
    Victim::of("control nat44 r1 --inside 10.0.1.0/24 --external 10.0.2.1 --lease 1s --instance LAB")
        .endless(),
    Victim::of("control heavy-hitters r1 --top 5 --lease 1s --instance LAB").endless(),
    Victim::of(LAB_UP),
    Victim::of("lab exec LAB a -- sleep 0.3"),
    Victim::of("lab list"),
    Victim::of("lab down NAME").after(LAB_UP),
    Victim::of("lab hold FILE --name NAME").endless(),
    Victim::of("traffic receive").within("a").endless(),
    Victim::of("traffic send udp 10.0.2.9 --for 300ms --wait 100ms").within("a"),
    Victim::of("traffic send tcp 10.0.2.9 --for 300ms").within("a"),
    Victim::of("traffic send request 10.0.2.9 --count 100").within("a"),
    Victim::of("traffic send ping 10.0.2.9 --count 5 --interval 50ms --timeout 100ms").within("a"),
    Victim::of("bench delay --quick"),
    Victim::of("calibrate --quick --output OUT"),
    Victim::of("validate linkem --quick"),
    Victim::of("schema"),
    Victim::of("blocks"),
    Victim::of("profiles"),
    Victim::of("profiles show lte"),
    Victim::of("completions bash"),
    Victim::of("man OUT"),
];

/// Values of the words in capitals.
pub struct Round<'s> {
    pub scene: &'s Scene,
    /// NAME: the round's own. NAMED is the scenario of this name.
    pub name: String,
    /// ROUND: its number.
    pub number: u64,
    /// FID: output of the previous command.
    pub fid: String,
}

impl Round<'_> {
    fn word(&self, word: &str) -> String {
        let scene = self.scene;
        match word {
            "FILE" => scene.file.clone(),
            "KEY" => scene.folder.text("nesp.key"),
            "CHANGES" => scene.folder.text("changes.txt"),
            "SENT" => scene.folder.text("sent.pcap"),
            "RECEIVED" => scene.folder.text("received.pcap"),
            "MACHINES" => scene.folder.text("machines.toml"),
            "OUT" => scene.folder.text(&format!("out-{}", self.name)),
            "OBJECT" => repository("crates/program/tests/objects/events.o").display().to_string(),
            // Besides a listening process, one that leaves its session.
            "SERVICE" => format!("setsid sleep 30 & exec {} traffic receive", env!("CARGO_BIN_EXE_longwire")),
            "LAB" => scene.name.clone(),
            "NAME" => self.name.clone(),
            "NAMED" => format!("{}={}", self.name, scene.file),
            "SWEEP" => repository("scenarios/sweeps/dumbbell.toml").display().to_string(),
            "ROWS" => scene.folder.text("rows.jsonl"),
            "LOG" => scene.folder.text("run.lwlog"),
            // Where somebody else's program runs.
            "SPACE" => format!("lw-{}-f", scene.name),
            "STATE" => scene.folder.text("state"),
            "TOKENS" => scene.folder.text("tokens"),
            "FID" => self.fid.clone(),
            word => word.replace("ROUND", &self.number.to_string()),
        }
    }

    /// The words of a line with all values inserted.
    pub fn words(&self, line: &str) -> Vec<String> {
        line.split_whitespace().map(|word| self.word(word)).collect()
    }

    /// The command for a process in its host's network.
    pub fn command(&self, victim: &Victim) -> Command {
        let mut command = ended_by_all();
        if !victim.host.is_empty() {
            command.args(["nsenter", &format!("--net=/run/netns/lw-{}-{}", self.scene.name, victim.host)]);
        }
        command.arg(env!("CARGO_BIN_EXE_longwire")).args(self.words(victim.line));
        command
    }
}

/// Files for the rounds of one victim and, if needed, a lab, which is taken down when dropped.
pub struct Scene {
    pub folder: Folder,
    name: String,
    file: String,
    /// The receiver in host b.
    receiver: Option<Started>,
    up: bool,
}

impl Scene {
    pub fn new(victim: &Victim, name: String) -> Self {
        let folder = Folder::new("kills");
        let file = folder.write("scenario.toml", SCENARIO);
        let machines = "latency = \"1 us\"\nclock-error = \"1 us\"\nkey = \"k\"\n\
            [[machine]]\nname = \"one\"\naddress = \"192.0.2.1\"\n\
            [[machine]]\nname = \"two\"\naddress = \"192.0.2.2\"\n";
        folder.write("machines.toml", machines);
        for (name, later) in [("sent.pcap", 0), ("received.pcap", 5_000_000)] {
            let frame = |mark: u8| Frame {
                time: u64::from(mark) * 1_000_000 + later,
                wire_len: 60,
                bytes: frame(1, 2, 60, mark),
            };
            folder.write(name, pcap(&(0..100).map(frame).collect::<Vec<_>>()));
        }
        let tokens = folder.write("tokens", format!("install {}\n", "t".repeat(32)));
        std::fs::set_permissions(&tokens, Permissions::from_mode(0o600)).unwrap();
        folder.write("changes.txt", "l.forward rate=5mbit delay=2ms\nl.backward delay=3ms\n");
        let made = longwire(&["nesp", "key", &folder.text("nesp.key")]);
        assert!(made.status.success(), "{}", stderr(&made));
        let mut scene = Self { folder, name, file, receiver: None, up: false };
        if victim.needs_lab() {
            let lab = scene.folder.write("lab.toml", LAB);
            scene.up = true;
            let up = longwire(&["lab", "up", &lab, "--name", &scene.name]);
            assert!(up.status.success(), "{}", stderr(&up));
        }
        if victim.line.starts_with("traffic send") {
            let network = format!("--net=/run/netns/lw-{}-b", scene.name);
            let mut receiver = Command::new("nsenter");
            receiver.args([&network, env!("CARGO_BIN_EXE_longwire"), "traffic", "receive"]);
            scene.receiver = Some(Started::ready(&mut receiver, "listening on ").0);
        }
        scene
    }

    /// Asserts that the lab still answers: killing a process beside it does no harm.
    pub fn assert_well(&self, what: &str) {
        if self.up {
            let stats = longwire(&["ctl", "stats", &self.name]);
            assert!(stats.status.success(), "{what}: the instance: {}", stderr(&stats));
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Before its host goes.
        drop(self.receiver.take());
        if self.up {
            longwire(&["lab", "down", &self.name]);
        }
    }
}

/// Runs the preparation of a round, and keeps the last line of its output.
pub fn prepare(round: &mut Round, victim: &Victim, mark: (&str, &str)) {
    if victim.before.is_empty() {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    let done = command.args(round.words(victim.before)).env(mark.0, mark.1).output().unwrap();
    assert!(done.status.success(), "{}: {}", victim.before, stderr(&done));
    round.fid = stdout(&done).lines().last().unwrap_or_default().to_owned();
}

/// The commands below this one without subcommands, hidden ones included.
fn leaves(command: &clap::Command, name: &str) -> Vec<String> {
    let below: Vec<_> = command.get_subcommands().filter(|sub| sub.get_name() != "help").collect();
    let optional = !command.is_subcommand_required_set() && !command.is_arg_required_else_help_set();
    let own = (below.is_empty() || optional).then(|| name.to_owned());
    let path = |sub: &clap::Command| format!("{name} {}", sub.get_name()).trim().to_owned();
    own.into_iter().chain(below.iter().flat_map(|sub| leaves(sub, &path(sub)))).collect()
}

#[test]
fn each_command_is_killed() {
    let commands = leaves(&Cli::command(), "");
    assert!(commands.iter().any(|name| name == "ctl route add"), "{commands:?}");
    let is_of = |line: &str, name: &str| line == name || line.starts_with(&format!("{name} "));
    // The terminal view needs a terminal, on which crates/cli/tests/terminal.rs ends it.
    for name in commands.iter().filter(|name| *name != "top") {
        let attacked = VICTIMS.iter().any(|victim| is_of(victim.line, name));
        assert!(attacked, "`longwire {name}` is killed by no attack: add it to VICTIMS");
    }
}
