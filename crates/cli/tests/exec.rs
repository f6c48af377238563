//! `longwire exec`, on the test's own machine: host a of a lab, connected to host b.

mod support;

use longwire_lab::{Lab, Namespace, abilities};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::{Folder, longwire, row, stderr, stdout};

const LONGWIRE: &str = env!("CARGO_BIN_EXE_longwire");
const NOBODY: u32 = 65_534;

/// Two directly connected hosts.
const SCENARIO: &str = "\
[[host]]
name = \"a\"
address = \"10.77.0.1/24\"

[[host]]
name = \"b\"
address = \"10.77.0.2/24\"
";

/// A lab that exists until dropped; its host a is the machine that `exec` changes and restores.
struct Machine {
    name: String,
    _folder: Folder,
}

impl Machine {
    /// Skips the test with a message if labs are impossible.
    fn new(test: &str) -> Option<Self> {
        let can = abilities();
        for ability in [&can.root, &can.namespaces, &can.nft] {
            if !ability.available {
                println!("skipped {test}: {}", ability.reason);
                return None;
            }
        }
        let folder = Folder::new("exec");
        let scenario = folder.write("machine.toml", SCENARIO);
        let name = format!("t{}-{test}", std::process::id());
        let up = longwire(&["lab", "up", &scenario, "--name", &name]);
        assert!(up.status.success(), "{}", stderr(&up));
        Some(Self { name, _folder: folder })
    }

    /// Runs a shell script on it.
    fn sh(&self, script: &str) -> Output {
        longwire(&["lab", "exec", &self.name, "a", "--", "sh", "-c", script])
    }

    /// Runs a shell script on it, with mounts of its own.
    fn sh_alone(&self, script: &str) -> Output {
        longwire(&["lab", "exec", &self.name, "a", "--", "unshare", "-m", "sh", "-c", script])
    }

    /// Runs `longwire exec` on it.
    fn exec(&self, args: &[&str]) -> Output {
        longwire(&[&["lab", "exec", &self.name, "a", "--", LONGWIRE, "exec"], args].concat())
    }

    /// Everything that `exec` may change.
    fn settings(&self) -> String {
        let script = "ip -brief link; ip route; ip -6 route; cat /proc/sys/net/ipv4/ip_forward
            nft list ruleset; cd /proc/sys/net
            for f in ipv?/conf/*/forwarding ipv6/conf/*/accept_ra; do echo $f $(cat $f); done";
        stdout(&self.sh(script))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let down = longwire(&["lab", "down", &self.name]);
        if !std::thread::panicking() {
            assert!(down.status.success(), "{}", stderr(&down));
        }
    }
}

/// The shortest round trip, in ms, of a ping's summary.
fn least_rtt(text: &str) -> f64 {
    let times = text.split("min/avg/max/mdev = ").nth(1).unwrap_or_else(|| panic!("no round trip in {text}"));
    times.split('/').next().unwrap().parse().unwrap()
}

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
    assert!(report["fidelity"]["faithful"].is_boolean());
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
    let names = ["run.pcapng", "run.log", "run.json", "old.json"];
    let [record, log, json, old] = names.map(|name| folder.text(name));
    std::fs::write(&old, "").unwrap();
    let run = |json: &str| {
        let options = format!("--record {record} --messages {log} --json={json} -- true");
        machine.sh(&format!("SUDO_UID={NOBODY} SUDO_GID={NOBODY} {LONGWIRE} exec {options}"))
    };
    for json in [&json, &old] {
        let ran = run(json);
        assert!(ran.status.success(), "{}", stderr(&ran));
        assert!(std::fs::read_to_string(json).unwrap().contains("\"exec\""));
    }
    let owners = names.map(|name| std::fs::metadata(folder.path(name)).unwrap().uid());
    assert_eq!(owners, [NOBODY, NOBODY, NOBODY, 0]);
}

/// An ordinary user on a machine that lets users make TAP devices reaches the outside by pasta.
#[test]
fn without_root_packets_leave_by_a_network_of_the_user_s() {
    let test = "without_root_packets_leave_by_a_network_of_the_user_s";
    let missing = ["pasta", "setpriv", "mknod", "pgrep"].into_iter().find(|program| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        !found.is_ok_and(|found| found.status.success())
    });
    if let Some(program) = missing {
        return println!("skipped {test}: there is no {program}");
    }
    let Some(machine) = Machine::new("pasta") else { return };
    let folder = Folder::new("pasta");
    let (program, device) = (folder.text("longwire"), folder.text("tun"));
    std::fs::copy(LONGWIRE, &program).unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(folder.path("run")).unwrap();
    chown(folder.path("run"), Some(NOBODY), Some(NOBODY)).unwrap();
    let run_dir = folder.text("run");
    let mut server = Command::new(LONGWIRE)
        .args(["lab", "exec", &machine.name, "b", "--", LONGWIRE, "traffic", "receive", "--count", "1"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("listening on "), "{line}");
    let inner = format!(
        "id -u; id -g; : > mine; ping -q -c 3 -i 0.2 10.77.0.2
        {program} traffic send tcp 10.77.0.2 --bytes 100kB >/dev/null && echo carried"
    );
    let script = format!(
        "ip route add default via 10.77.0.2; mknod {device} c 10 200; chmod 666 {device}
        mount --bind {device} /dev/net/tun; cd {run_dir}; export LONGWIRE_RUN_DIR={run_dir}
        setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups \\
            {program} exec --delay 15ms -- sh -c '{inner}' & run=$!
        wait $run; echo ended $?; pgrep -af \"[/]proc/$run/ns/net\"; true"
    );
    let ran = machine.sh_alone(&script);
    let (said, noted) = (stdout(&ran), stderr(&ran));
    assert!(said.starts_with("65534\n65534\n"), "{said}{noted}");
    assert!((30.0..90.0).contains(&least_rtt(&said)), "{said}{noted}");
    // None of its processes is left.
    assert!(said.ends_with("carried\nended 0\n"), "{said}{noted}");
    assert!(server.wait().unwrap().success());
    let mine = std::fs::metadata(folder.path("run").join("mine")).unwrap();
    assert_eq!((mine.uid(), mine.gid()), (NOBODY, NOBODY));
}

/// The machine's default gateway is host b, over a link with an MTU of 1400.
#[test]
fn packets_are_as_long_as_the_way_out_lets_through() {
    let Some(machine) = Machine::new("mtu") else { return };
    let way_out = machine.sh("ip link set eth0 mtu 1400 && ip route add default via 10.77.0.2");
    assert!(way_out.status.success(), "{}", stderr(&way_out));
    let shown = machine.exec(&["-q", "--", "cat", "/sys/class/net/eth0/mtu"]);
    assert_eq!(stdout(&shown).trim(), "1400", "{}", stderr(&shown));
    let shown = machine.exec(&["-q", "--mtu", "1300", "--", "cat", "/sys/class/net/eth0/mtu"]);
    assert_eq!(stdout(&shown).trim(), "1300", "{}", stderr(&shown));
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
    let exec = |script: &str| {
        let options =
            ["--delay", "200ms", "--require-faithful", &log_to, &record_to, "--", "sh", "-c", script];
        machine.exec(&options)
    };
    let output = exec(script);
    let said = std::fs::read_to_string(&log).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}{}", stderr(&output));
    assert!(said.contains("not faithful: interface down ("), "{said}");
    assert_eq!(stderr(&output), "", "what is said goes to the log");
    // A failing command's own code is kept.
    let output = exec(&script.replace("exit 0", "exit 9"));
    assert_eq!(output.status.code(), Some(9));
    // A section header block, and more than that (pcapng).
    let bytes = std::fs::read(&capture).unwrap();
    assert!(bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && bytes.len() > 1000, "{} bytes", bytes.len());
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

/// A daemon left by a service, in its own session, neither outlives the run nor listens on addresses of the
/// machine other than the far end's.
#[test]
fn services_are_reached_through_the_link_only_and_end_with_the_run() {
    let Some(machine) = Machine::new("serve") else { return };
    let serve = format!("(setsid {LONGWIRE} traffic receive --port 7001 &)");
    let send = |to: &str| format!("{LONGWIRE} traffic send tcp {to} --port 7001 --bytes 1kB >&2");
    // 10.77.0.1 is the machine's address on its other network.
    let script = format!("{} && echo far; {} && echo machine", send("$LONGWIRE_FAR"), send("10.77.0.1"));
    let output = machine.exec(&["-q", "--serve", &serve, "--", "sh", "-c", &script]);
    assert_eq!(stdout(&output), "far\n", "{}", stderr(&output));
    assert_eq!(stdout(&machine.sh("ss -Hltn")), "");
}

/// A service on the loopback of a lab's host a, over TCP and UDP on one port: it answers with the client's
/// address.
struct Loopback {
    port: u16,
    udp: UdpSocket,
    threads: [JoinHandle<()>; 2],
}

impl Loopback {
    fn start(machine: &Machine) -> Self {
        let lab = Lab::open(&machine.name).unwrap();
        let host = lab.host("a").unwrap();
        let bound = host.run(|| {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            let udp = UdpSocket::bind(tcp.local_addr().unwrap()).unwrap();
            (tcp, udp)
        });
        let (tcp, udp) = bound.unwrap();
        let (port, own) = (tcp.local_addr().unwrap().port(), udp.try_clone().unwrap());
        let streams = std::thread::spawn(move || {
            let (mut stream, from) = tcp.accept().unwrap();
            let mut question = String::new();
            BufReader::new(&stream).read_line(&mut question).unwrap();
            write!(stream, "{} asked {question}", from.ip()).unwrap();
        });
        let datagrams = std::thread::spawn(move || {
            let mut buffer = [0; 100];
            let (length, from) = udp.recv_from(&mut buffer).unwrap();
            let text = format!("{} asked {}", from.ip(), String::from_utf8_lossy(&buffer[..length]));
            udp.send_to(text.as_bytes(), from).unwrap();
        });
        Self { port, udp: own, threads: [streams, datagrams] }
    }

    fn join(self) {
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(self.udp);
    }
}

/// A bash script that queries by TCP and UDP and prints the duration of both in ms. bash's own `read` takes a
/// byte at a time, and would lose the rest of a datagram.
fn asking(port: u16) -> String {
    format!(
        "for kind in tcp udp; do
            begin=$(date +%s%N)
            exec 3<>/dev/$kind/127.0.0.1/{port}; echo by $kind >&3; line=$(head -n 1 <&3)
            echo \"$line, after $(( ($(date +%s%N) - begin) / 1000000 ))\"
        done"
    )
}

/// Checks the answers, and that both crossed the link: a connection takes a round trip more than a datagram.
fn assert_asked(text: &str, least: [u32; 2]) {
    let lines: Vec<_> = text.lines().collect();
    for ((line, kind), least) in lines.iter().zip(["tcp", "udp"]).zip(least) {
        let took = line.strip_prefix(&format!("127.0.0.1 asked by {kind}, after "));
        let took: u32 = took.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
        assert!(took >= least, "{text}");
    }
    assert_eq!(lines.len(), 2, "{text}");
}

#[test]
fn services_of_the_loopback_are_reached_through_the_link() {
    let Some(machine) = Machine::new("localhost") else { return };
    let before = machine.settings();
    for listed in [false, true] {
        let service = Loopback::start(&machine);
        let option =
            if listed { format!("--localhost=9-10,{}", service.port) } else { "--localhost".to_owned() };
        // Connections of the machine's own programs do not come through the relay, nor do its neighbours'.
        let script = format!(
            "ip netns exec lw-{}-a bash -c \"exec 3<>/dev/tcp/$LONGWIRE_FAR/{}\" 2> /dev/null && echo in
            {}",
            machine.name,
            service.port,
            asking(service.port)
        );
        let output = machine.exec(&["-q", "--delay", "20ms", &option, "--", "bash", "-c", &script]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_asked(&stdout(&output), [80, 40]);
        service.join();
    }
    // Without it, the command's loopback is its own.
    let script = "exec 3<>/dev/tcp/127.0.0.1/9";
    assert_ne!(machine.exec(&["-q", "--", "bash", "-c", script]).status.code(), Some(0));
    assert_eq!(machine.settings(), before);
}

#[test]
fn a_commands_server_is_reached_from_the_machine_through_the_link() {
    let Some(machine) = Machine::new("publish") else { return };
    let mut running = Command::new(LONGWIRE)
        .args(["lab", "exec", &machine.name, "a", "--", LONGWIRE, "exec", "-q", "--delay", "20ms"])
        .args(["--publish", "7003", "--", "sh", "-c", "echo $$; read end"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut command = String::new();
    BufReader::new(running.stdout.take().unwrap()).read_line(&mut command).unwrap();
    let inside = Namespace::at(Path::new(&format!("/proc/{}/ns/net", command.trim()))).unwrap();
    let server = inside.run(|| TcpListener::bind("127.0.0.1:7003").unwrap()).unwrap();
    let lab = Lab::open(&machine.name).unwrap();
    let begin = Instant::now();
    let client = lab.host("a").unwrap().run(|| TcpStream::connect("127.0.0.1:7003").unwrap()).unwrap();
    let (served, _) = server.accept().unwrap();
    (&client).write_all(b"question\n").unwrap();
    let mut line = String::new();
    BufReader::new(&served).read_line(&mut line).unwrap();
    assert_eq!(line, "question\n");
    (&served).write_all(b"answer\n").unwrap();
    line.clear();
    BufReader::new(&client).read_line(&mut line).unwrap();
    assert_eq!(line, "answer\n");
    // To the near end and back for the connection, there for the question, and back for the answer.
    assert!(begin.elapsed() >= Duration::from_millis(80));
    drop((client, served, running.stdin.take()));
    assert!(running.wait().is_ok());
    let taken = machine.sh(&format!(
        "{LONGWIRE} traffic receive --bind 127.0.0.1 --port 7004 & \
         while ! ss -Hltn | grep -q :7004; do :; done; \
         {LONGWIRE} exec -q --publish 7004 -- true; echo $?; kill $!"
    ));
    assert_eq!(stdout(&taken), "2\n", "a port that is taken is no one else's: {}", stderr(&taken));
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
    let failed = machine.exec(&[&format!("--json={file}"), "--profile", "ltee", "--", "true"]);
    assert_eq!((failed.status.code(), stdout(&failed).as_str()), (Some(2), ""));
    let error: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(error["error"].as_str().unwrap().contains("ltee"), "{error:#}");
}

#[test]
fn without_privileges_services_at_the_far_end_are_reached() {
    let test = "without_privileges_services_at_the_far_end_are_reached";
    let can = abilities();
    if !can.user_namespaces.available {
        return println!("skipped {test}: {}", can.user_namespaces.reason);
    }
    let folder = Folder::new("rootless");
    let program = folder.text("longwire");
    std::fs::copy(LONGWIRE, &program).unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(folder.path("run")).unwrap();
    let mut command = if can.root.available {
        chown(folder.path("run"), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &program]);
        command
    } else {
        Command::new(&program)
    };
    let serve = format!("exec {program} traffic receive");
    let script =
        format!("ping -q -c 2 far && exec {program} traffic send tcp $LONGWIRE_FAR --bytes 100kB --json");
    command.env("LONGWIRE_RUN_DIR", folder.path("run"));
    command
        .args(["exec", "--delay", "10ms", "--rate", "20mbit", "--serve", &serve, "--", "sh", "-c", &script]);
    let output = match command.current_dir("/").output() {
        Err(error) => return println!("skipped {test}: setpriv can't be run: {error}"),
        Ok(output) => output,
    };
    let (text, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{text}{said}");
    assert!((20.0..60.0).contains(&least_rtt(&text)), "{text}");
    let report: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    assert_eq!(row(&report, "goodput")["bytes"], 100_000);
    assert!(said.contains("too few packets") || said.contains("faithful"), "{said}");
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
    assert!(error(&["--queue", "many", "--", "true"]).contains("queue"));
    assert!(error(&["--localhost=http", "--", "true"]).contains("neither a port nor a range"));
    assert!(error(&["--publish", "1-2000", "--", "true"]).contains("1024"));
    assert!(error(&["--mtu", "10", "--", "true"]).contains("576"));
    assert!(error(&["--jitter", "5ms", "--", "true"]).contains("--jitter"), "no command begins with a dash");
}
