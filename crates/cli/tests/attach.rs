//! `longwire attach`, on namespaces that `ip` made.

mod support;

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use support::lab::can_make_labs;
use support::started::{Ended, Started};
use support::{Folder, ended_by_all, has_verdict, json, longwire, row, stderr, stdout};

const LONGWIRE: &str = env!("CARGO_BIN_EXE_longwire");

/// Two namespaces joined by a veth pair: `inside`, the one with 10.78.0.1, and `outside`, with 10.78.0.2.
struct Pair {
    inside: String,
    outside: String,
}

impl Pair {
    /// Skips the test with a message if namespaces are impossible.
    fn new(test: &str) -> Option<Self> {
        if !can_make_labs(test) {
            return None;
        }
        let name = |end: &str| format!("t{}-{test}-{end}", std::process::id());
        let pair = Self { inside: name("in"), outside: name("out") };
        let (inside, outside) = (&pair.inside, &pair.outside);
        let script = format!(
            "set -e; ip netns add {inside}; ip netns add {outside}
            ip link add eth0 netns {inside} mtu 1400 type veth peer name eth0 netns {outside} mtu 1400
            for end in '{inside} 1' '{outside} 2'; do
                set -- $end
                ip -n $1 addr add 10.78.0.$2/24 dev eth0
                ip -n $1 link set lo up; ip -n $1 link set eth0 up
            done
            ip -n {inside} route add default via 10.78.0.2"
        );
        let made = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        Some(pair)
    }

    fn within(namespace: &str, command: &[&str]) -> Output {
        Command::new("ip").args(["netns", "exec", namespace]).args(command).output().unwrap()
    }

    /// The shortest round trip between the two, in ms.
    fn round_trip(&self) -> f64 {
        let pinged = Self::within(&self.inside, &["ping", "-q", "-c", "3", "-i", "0.2", "10.78.0.2"]);
        least(&stdout(&pinged))
    }

    /// The user's view of the interface, and of others beside it.
    fn settings(&self) -> String {
        let script = "ip -d addr; ip route; nft list ruleset; ls /sys/class/net";
        let text = stdout(&Self::within(&self.inside, &["sh", "-c", script]));
        // Duplicate address detection ends at its own pace.
        text.replace(" tentative", "")
    }

    /// A process inside, which ends with its standard input.
    fn process(&self) -> Child {
        let mut process = Command::new("ip")
            .args(["netns", "exec", &self.inside, "sh", "-c", "echo; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // A line says that it has entered the namespace, as `ip` does before the shell runs.
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        lines.read_line(&mut String::new()).unwrap();
        process
    }

    fn attach(&self, args: &[&str]) -> Started {
        let mut command = ended_by_all();
        command.args([LONGWIRE, "attach", "--netns", &self.inside]).args(args);
        Started::ready(&mut command, "round trips grow by").0
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in [&self.inside, &self.outside] {
            // One may be gone already.
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// /dev/full is a full disk.
#[test]
fn a_file_that_can_not_be_written_any_more_is_said_at_once() {
    let Some(pair) = Pair::new("full") else { return };
    let folder = Folder::new("attach-full");
    let log = folder.text("packets.lwlog");
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    let attached = pair.attach(&["--delay", "1ms", "--log", &log]);
    pair.round_trip();
    let warning = format!("warning: the log {log} is incomplete: No space left on device");
    attached.line(&warning, |line| line.starts_with(&warning).then_some(()));
    pair.round_trip();
    assert_eq!(attached.end().code, Some(1));
}

/// A folder with a `podman` that knows two containers: web, whose main process is this, and idle, which is
/// stopped.
fn podman(main: u32) -> Folder {
    let folder = Folder::new("podman");
    let script = format!(
        "#!/bin/sh
        case \"$*\" in
        'container inspect --format {{{{.State.Pid}}}} web') echo {main} ;;
        'container inspect --format {{{{.State.Pid}}}} idle') echo 0 ;;
        *) echo \"Error: no such container $5\" >&2; exit 125 ;;
        esac\n"
    );
    folder.write("podman", script);
    std::fs::set_permissions(folder.path("podman"), Permissions::from_mode(0o755)).unwrap();
    folder
}

/// `longwire attach` with these programs only, so that no container manager of the machine is asked.
fn attach_among(programs: &Folder) -> Command {
    let mut command = ended_by_all();
    command.arg(format!("PATH={}", programs.text(""))).args([LONGWIRE, "attach"]);
    command
}

/// The shortest round trip, in ms, of a ping's summary.
fn least(text: &str) -> f64 {
    let times = text.split("min/avg/max/mdev = ").nth(1).unwrap_or_else(|| panic!("no round trip in {text}"));
    times.split('/').next().unwrap().parse().unwrap()
}

#[test]
fn round_trips_grow_in_both_directions_and_are_as_before_afterwards() {
    let Some(pair) = Pair::new("both") else { return };
    let usual = pair.round_trip();
    assert!(usual < 20.0, "{usual}");
    let before = pair.settings();
    let attached = pair.attach(&["--delay", "30ms", "--down", "delay=40ms"]);
    let from_inside = pair.round_trip();
    let ping = ["ping", "-q", "-c", "3", "-i", "0.2", "10.78.0.1"];
    let from_outside = least(&stdout(&Pair::within(&pair.outside, &ping)));
    for rtt in [from_inside, from_outside] {
        assert!((70.0..110.0).contains(&rtt), "{rtt}");
    }
    // Partial checksums, and segments larger than the MTU, cross too.
    let mut receiver = Command::new("ip")
        .args(["netns", "exec", &pair.outside, LONGWIRE, "traffic", "receive", "--count", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut heard = BufReader::new(receiver.stderr.take().unwrap());
    heard.read_line(&mut String::new()).unwrap();
    let send = [LONGWIRE, "traffic", "send", "tcp", "10.78.0.2", "--bytes", "300kB", "--json"];
    let sent = Pair::within(&pair.inside, &send);
    assert_eq!(row(&json(&sent, 0), "goodput")["bytes"], 300_000);
    assert!(receiver.wait().unwrap().success());
    attached.signal("INT");
    let Ended { code, said, .. } = attached.wait();
    assert_eq!(code, Some(0), "{said}");
    assert!(has_verdict(&said), "{said}");
    let after = pair.round_trip();
    assert!(after < 20.0, "{after}");
    assert_eq!(pair.settings(), before);
}

/// Pings are in flight when the link is removed; none is lost.
#[test]
fn putting_it_on_and_taking_it_off_loses_no_packet() {
    let Some(pair) = Pair::new("lossless") else { return };
    let mut ping = Command::new("ip")
        .args(["netns", "exec", &pair.inside, "ping", "-i", "0.02", "-c", "100", "10.78.0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(ping.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("icmp_seq=5 ") {
        assert!(lines.read_line(&mut text).unwrap() > 0, "{text}");
    }
    let attached = pair.attach(&["--delay", "50ms", "--for", "500ms"]);
    let Ended { code, said, .. } = attached.wait();
    assert_eq!(code, Some(0), "{said}");
    lines.read_to_string(&mut text).unwrap();
    assert!(ping.wait().unwrap().success());
    assert!(text.contains("100 received, 0% packet loss"), "{text}");
    let slow = text.lines().filter(|line| line.contains("time=1")).count();
    assert!(slow > 0, "some crossed the link: {text}");
}

#[test]
fn whatever_signal_ends_it_nothing_is_left() {
    for signal in ["TERM", "QUIT"] {
        let Some(pair) = Pair::new(&signal.to_lowercase()) else { return };
        // The interfaces are up then.
        pair.round_trip();
        let before = pair.settings();
        let attached = pair.attach(&["--delay", "1ms"]);
        assert_ne!(pair.settings(), before, "{signal}");
        attached.signal(signal);
        let Ended { code, said, .. } = attached.wait();
        assert_eq!(code, Some(0), "{signal}: {said}");
        assert_eq!(pair.settings(), before, "{signal}");
    }
}

#[test]
fn a_killed_one_is_off_at_once_and_the_next_start_removes_its_ends() {
    let Some(pair) = Pair::new("killed") else { return };
    let before = pair.settings();
    let attached = pair.attach(&["--delay", "100ms"]);
    assert!(pair.round_trip() > 190.0);
    attached.signal("KILL");
    attached.wait();
    let after = pair.round_trip();
    assert!(after < 20.0, "the kernel has taken it off: {after}");
    let next = pair.attach(&["--delay", "1ms", "--for", "10ms"]);
    assert_eq!(next.wait().code, Some(0));
    assert_eq!(pair.settings(), before);
}

/// Without a next start, by whoever looks after labs; a test beside this one may come first.
#[test]
fn what_a_killed_one_left_is_removed_with_labs() {
    let Some(pair) = Pair::new("down") else { return };
    let before = pair.settings();
    let attached = pair.attach(&["--delay", "1ms"]);
    attached.signal("KILL");
    attached.wait();
    // Its own directory of sockets, so that no lab of another test is taken down.
    let folder = Folder::new("attach");
    let mut down = Command::new(LONGWIRE);
    let down =
        down.args(["lab", "down", "--all"]).env("LONGWIRE_RUN_DIR", folder.path("run")).output().unwrap();
    assert!(down.status.success(), "{}", stderr(&down));
    assert_eq!(pair.settings(), before);
}

#[test]
fn it_ends_with_the_namespace() {
    let Some(pair) = Pair::new("ends") else { return };
    let attached = pair.attach(&["--delay", "10ms"]);
    let removed = Command::new("ip").args(["netns", "del", &pair.inside]).status().unwrap();
    assert!(removed.success());
    let said = attached.wait().said;
    assert!(said.contains(&format!("namespace {} has ended", pair.inside)), "{said}");
}

/// It fails if a time was asked for, and the report has the reason.
#[test]
fn an_interface_that_goes_ends_it() {
    for (test, options, code) in [("gone", &["--json"][..], 0), ("early", &["--json", "--for", "60s"], 1)] {
        let Some(pair) = Pair::new(test) else { return };
        let attached = pair.attach(&[&["--delay", "1ms"], options].concat());
        assert!(Pair::within(&pair.inside, &["ip", "link", "del", "eth0"]).status.success());
        let ended = attached.wait();
        let report: serde_json::Value = serde_json::from_str(&ended.output).unwrap();
        let why = format!("the interface of namespace {} is gone", pair.inside);
        assert_eq!((ended.code, &report["ended_because"]), (Some(code), &why.as_str().into()), "{report:#}");
        assert_eq!(report["failures"].to_string().contains(&why), code == 1, "{report:#}");
    }
}

#[test]
fn the_report_is_json_and_ctl_changes_the_link() {
    let Some(pair) = Pair::new("json") else { return };
    let folder = Folder::new("records");
    let series = folder.text("run.csv");
    let attached = pair.attach(&["--delay", "10ms", "--json", "--series", &series]);
    let instance = format!("attach-{}", attached.child.id());
    let set = longwire(&["ctl", "set", "up", "delay=70ms", "--instance", &instance]);
    assert!(set.status.success(), "{}", stderr(&set));
    let rtt = pair.round_trip();
    assert!((80.0..120.0).contains(&rtt), "{rtt}");
    let stopped = longwire(&["ctl", "stop", &instance]);
    assert!(stopped.status.success(), "{}", stderr(&stopped));
    let report: serde_json::Value = serde_json::from_str(&attached.wait().output).unwrap();
    assert_eq!((&report["command"], &report["interface"]), (&"attach".into(), &"eth0".into()));
    assert_eq!(report["series"]["file"].as_str(), Some(&*series), "as that of run: {report:#}");
    assert!(row(&report, "link up")["out_packets"].as_u64().unwrap() >= 3, "{report:#}");
}

#[test]
fn a_container_or_a_process_selects_its_namespace() {
    let Some(pair) = Pair::new("found") else { return };
    let mut process = pair.process();
    let pid = process.id().to_string();
    let programs = podman(process.id());
    let attach = |target: [&str; 2]| {
        let mut command = attach_among(&programs);
        Started::ready(command.args(target).args(["--delay", "30ms"]), "round trips grow by").0
    };
    for target in [["--container", "web"], ["--pid", &pid]] {
        let attached = attach(target);
        let rtt = pair.round_trip();
        assert!((60.0..100.0).contains(&rtt), "{target:?}: {rtt}");
        assert_eq!(attached.end().code, Some(0), "{target:?}");
    }
    // A container ends with its main process, even if its namespace stays.
    let attached = attach(["--container", "web"]);
    drop(process.stdin.take());
    assert!(process.wait().unwrap().success());
    let said = attached.wait().said;
    assert!(said.contains("container web has ended"), "{said}");
    let after = pair.round_trip();
    assert!(after < 20.0, "{after}");
}

/// A container manager of Debian.
#[derive(Clone, Copy)]
enum Manager {
    Podman,
    Docker,
}

/// A container of a real manager, from an image with a static busybox, on an interface that was put into it.
struct Container {
    /// With the manager's program, for which all that it stores is in this folder.
    folder: Folder,
    program: &'static str,
    outside: String,
    // Ends after the container.
    _daemon: Option<Started>,
}

/// Looks at control groups as those who have only version 2, whatever the machine has. Containers need none.
const ALONE: &str = "mount -t cgroup2 none /sys/fs/cgroup";

impl Container {
    /// Skips the test with a message where the manager is missing, or can't run a container.
    fn start(test: &str, manager: Manager) -> Option<Self> {
        let needed: &[&str] = match manager {
            Manager::Podman => &["/usr/bin/podman", "/usr/bin/crun", "/bin/busybox"],
            Manager::Docker => &["/usr/bin/docker", "/usr/sbin/dockerd", "/bin/busybox"],
        };
        if !can_make_labs(test) {
            return None;
        }
        if let Some(missing) = needed.iter().find(|program| !Path::new(program).exists()) {
            println!("skipped {test}: {missing} is missing");
            return None;
        }
        let folder = Folder::new(test);
        let (program, begin) = match manager {
            Manager::Podman => ("podman", "--cgroups disabled --cap-add net_raw localhost/box:1"),
            Manager::Docker => ("docker", "box:1"),
        };
        let options = match manager {
            Manager::Podman => format!(
                "--root {} --runroot {} --storage-driver vfs --cgroup-manager cgroupfs --runtime crun",
                folder.text("root"),
                folder.text("state")
            ),
            Manager::Docker => format!("--host unix://{}", folder.text("sock")),
        };
        folder.write(program, format!("#!/bin/sh\nexec {} {options} \"$@\"\n", needed[0]));
        std::fs::set_permissions(folder.path(program), Permissions::from_mode(0o755)).unwrap();
        let daemon = match manager {
            Manager::Podman => None,
            Manager::Docker => Some(daemon(test, &folder)?),
        };
        let outside = format!("t{}-{test}-out", std::process::id());
        let container = Self { folder, program, outside, _daemon: daemon };
        // Limits can't be raised everywhere.
        let started = container.sh(&format!(
            "mkdir -p image/bin && cp /bin/busybox image/bin && tar -C image -cf image.tar .
            ./{program} import image.tar box:1
            exec unshare -m sh -ec '{ALONE}; exec ./{program} run -d --name web --network none \
                --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 {begin} /bin/busybox sleep 100000'"
        ));
        if !started.status.success() {
            println!("skipped {test}: {program} can't run a container here: {}", stderr(&started));
            return None;
        }
        let wired = container.sh(&format!(
            "pid=$(./{program} container inspect --format '{{{{.State.Pid}}}}' web)
            ip netns add {outside}
            ip link add eth0 netns $pid type veth peer name eth0 netns {outside}
            ip -n {outside} addr add 10.79.0.2/24 dev eth0; ip -n {outside} link set eth0 up
            nsenter -t $pid -n sh -ec 'ip addr add 10.79.0.1/24 dev eth0; ip link set eth0 up'",
            outside = container.outside
        ));
        assert!(wired.status.success(), "{}", stderr(&wired));
        Some(container)
    }

    fn sh(&self, script: &str) -> Output {
        Command::new("sh").args(["-ec", script]).current_dir(self.folder.path("")).output().unwrap()
    }

    fn manage(&self, args: &[&str]) -> Output {
        Command::new(self.folder.path(self.program)).args(args).output().unwrap()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.manage(&["kill", "web"]);
        self.manage(&["rm", "-f", "web"]);
        // It may not have been made.
        let _ = Command::new("ip").args(["netns", "del", &self.outside]).output();
    }
}

/// Docker's daemon; none, with a message, if it does not start.
fn daemon(test: &str, folder: &Folder) -> Option<Started> {
    let start = format!(
        "{ALONE}; exec /usr/sbin/dockerd --data-root {} --exec-root {} --pidfile {} --host unix://{} \
            --storage-driver vfs --iptables=false --ip6tables=false --bridge none",
        folder.text("data"),
        folder.text("exec"),
        folder.text("pid"),
        folder.text("sock")
    );
    let daemon = Started::begin(Command::new("unshare").args(["-m", "sh", "-ec", &start]));
    let failed = |line: &str| line.contains("failed to") && line.contains("daemon");
    let ready = daemon.line("docker's daemon", |line| match line.contains("API listen on") {
        true => Some(Ok(())),
        false => failed(&line).then_some(Err(line)),
    });
    match ready {
        Ok(()) => Some(daemon),
        Err(line) => {
            println!("skipped {test}: {line}");
            None
        }
    }
}

fn a_container_gets_a_link(test: &str, manager: Manager) {
    let Some(container) = Container::start(test, manager) else { return };
    let mut command = attach_among(&container.folder);
    command.args(["--container", "web", "--delay", "30ms"]);
    let attached = Started::ready(&mut command, "round trips grow by").0;
    let ping = ["ping", "-q", "-c", "3", "-i", "0.2", "10.79.0.1"];
    let rtt = least(&stdout(&Pair::within(&container.outside, &ping)));
    assert!((60.0..100.0).contains(&rtt), "{rtt}");
    // From inside, by the container's own program.
    let inside = container.manage(&["exec", "web", "/bin/busybox", "ping", "-c", "3", "10.79.0.2"]);
    assert!(stdout(&inside).contains("3 packets received"), "{}{}", stdout(&inside), stderr(&inside));
    let stopped = container.manage(&["kill", "web"]);
    assert!(stopped.status.success(), "{}", stderr(&stopped));
    let said = attached.wait().said;
    assert!(said.contains("container web has ended"), "{said}");
}

#[test]
fn a_container_of_podman_gets_a_link_until_it_ends() {
    a_container_gets_a_link("podman", Manager::Podman);
}

#[test]
fn a_container_of_docker_gets_a_link_until_it_ends() {
    a_container_gets_a_link("docker", Manager::Docker);
}

#[test]
fn a_container_that_is_stopped_or_unknown_is_reported() {
    if !can_make_labs("a_container_that_is_stopped_or_unknown_is_reported") {
        return;
    }
    let programs = podman(std::process::id());
    let error = |container: &str| {
        let output = attach_among(&programs).args(["--container", container]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{container}: {}", stderr(&output));
        stderr(&output)
    };
    assert!(error("idle").contains("container idle does not run; start it first"));
    let unknown = error("gone");
    let why = "no container gone of this user is known (podman: Error: no such container gone; docker: ";
    assert!(unknown.contains(why) && unknown.contains("give --pid"), "{unknown}");
}

#[test]
fn impossible_requests_are_reported() {
    let Some(pair) = Pair::new("refused") else { return };
    let error = |args: &[&str]| {
        let output = longwire(&[&["attach"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        stderr(&output)
    };
    let inside = ["--netns", pair.inside.as_str()];
    assert!(error(&["--netns", "no-such", "--delay", "1ms"]).contains("there is no namespace no-such"));
    assert!(error(&["--netns", "/etc/passwd"]).contains("/etc/passwd"));
    assert!(error(&["--pid", "0"]).contains("there is no process 0"));
    assert!(error(&["--container", "--help"]).contains("--container"));
    assert!(error(&["--container", "a b"]).contains("is not a container's name"));
    let other = error(&[&inside[..], &["--interface", "eth7"]].concat());
    assert!(other.contains("interface eth7: there is none") && other.contains("lo, eth0"), "{other}");
    assert!(error(&[&inside[..], &["--interface", "lo"]].concat()).contains("no Ethernet"));
    assert!(error(&[&inside[..], &["--delay", "long"]].concat()).contains("delay"));
    assert!(error(&["--delay", "1ms"]).contains("--netns"));
    let attached = pair.attach(&["--delay", "1ms"]);
    let twice = error(&inside);
    assert!(twice.contains(&format!("attach-{}", attached.child.id())), "{twice}");
    assert_eq!(attached.end().code, Some(0));
}
