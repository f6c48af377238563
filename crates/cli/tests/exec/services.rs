//! Services of the machine and of the command.

use crate::support::{Folder, stderr, stdout};
use crate::{LONGWIRE, Machine, NOBODY};
use longwire_lab::{BindGuard, Lab, Namespace};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A daemon left by a service, in its own session, neither outlives the run nor listens on addresses of the
/// machine other than the far end's.
#[test]
fn services_are_reached_through_the_link_only_and_end_with_the_run() {
    let Some(machine) = Machine::new("serve") else { return };
    let serve = format!("(setsid {LONGWIRE} traffic receive --port 7001 &)");
    let send = |to: &str| format!("{LONGWIRE} traffic send tcp {to} --port 7001 --bytes 1kB >&2");
    // 10.77.0.1 is the machine's address on its other network.
    let script =
        format!("{} && echo far; timeout 5 {} && echo machine", send("$LONGWIRE_FAR"), send("10.77.0.1"));
    let output = machine.exec(&["-q", "--serve", &serve, "--", "sh", "-c", &script]);
    assert_eq!(stdout(&output), "far\n", "{}", stderr(&output));
    assert_eq!(stdout(&machine.sh("ss -Hltn")), "");
    // It may also run as another user, and can't hinder its end then.
    let folder = Folder::new("serve");
    chown(folder.path("."), Some(NOBODY), Some(NOBODY)).unwrap();
    let file = folder.text("by");
    let program = folder.text("longwire");
    std::fs::copy(LONGWIRE, &program).unwrap();
    let serve = format!(
        "id -u > {file}; grep CapEff /proc/self/status >> {file}; exec {program} traffic receive --port 7002"
    );
    let options = ["-q", "--serve-user", "nobody", "--serve", &serve, "--", "cat", &file];
    let output = machine.exec(&options);
    assert_eq!(stdout(&output), "65534\nCapEff:\t0000000000000000\n", "{}", stderr(&output));
    assert_eq!(stdout(&machine.sh("ss -Hltn")), "");
}

/// A socket can't be bound to two addresses.
#[test]
fn a_service_of_both_versions_is_reached_by_both_through_the_link_only() {
    let Some(machine) = Machine::new("versions") else { return };
    let serve = format!("exec {LONGWIRE} traffic receive --port 7011 --bind ::");
    let send = |kind: &str, to: &str| format!("{LONGWIRE} traffic send {kind} {to} --port 7011 >&2");
    let far = ["$LONGWIRE_FAR", "$LONGWIRE_FAR_IPV6"];
    let each = far.map(|to| {
        let [tcp, udp] = [send("tcp --bytes 1kB", to), send("udp --count 3", to)];
        format!("{tcp} && {udp} && echo {}", &to[1..])
    });
    // 10.77.0.1 is the machine's address on its other network.
    let others = ["a", "b"].map(|host| {
        let enter = format!("nsenter --net=/run/netns/lw-{}-{host}", machine.name);
        let tried = send("tcp --bytes 1kB", "10.77.0.1");
        format!("{enter} ip -o address | grep -o 10.77.0.[12]/; {enter} timeout 5 {tried} && echo {host}")
    });
    let script = [each, others].concat().join("; ");
    let output = machine.exec(&["-q", "--serve", &serve, "--", "bash", "-c", &script]);
    let expected = "LONGWIRE_FAR\nLONGWIRE_FAR_IPV6\n10.77.0.1/\n10.77.0.2/\n";
    assert_eq!(stdout(&output), expected, "{}", stderr(&output));
    assert_eq!(stdout(&machine.sh("ss -Hltn")), "");
}

/// Where somebody else's filter answers calls, as that of some containers, there can be no second one.
#[test]
fn a_service_that_can_not_be_restricted_is_not_started() {
    let Some(machine) = Machine::new("unrestricted") else { return };
    let serve = format!("exec {LONGWIRE} traffic receive --port 7005");
    let exec = |more: &[&str]| {
        let mut command = Command::new(LONGWIRE);
        command.args(["lab", "exec", &machine.name, "a", "--", LONGWIRE, "exec", "-q"]).args(more);
        command.args(["--serve", &serve, "--", "true"]).stderr(Stdio::piped());
        let other = BindGuard { v4: Ipv4Addr::LOCALHOST, v6: None }.restrict(&mut command).unwrap();
        let running = command.spawn().unwrap();
        other.started().unwrap();
        let output = running.wait_with_output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let (code, said) = exec(&[]);
    assert!(said.contains("was not started, since it can't be kept from listening on every"), "{said}");
    assert!(code == Some(2) && said.contains("--private"), "{said}");
    let (code, said) = exec(&["--private"]);
    assert_eq!(code, Some(0), "{said}");
}

/// A service of a lab's host a, over TCP and UDP on one port: it answers with the client's address.
pub struct Loopback {
    pub port: u16,
    pub udp: UdpSocket,
    pub threads: [JoinHandle<()>; 2],
}

impl Loopback {
    pub fn start(machine: &Machine) -> Self {
        Self::start_at(machine, "127.0.0.1:0")
    }

    fn start_at(machine: &Machine, at: &str) -> Self {
        let lab = Lab::open(&machine.name).unwrap();
        let host = lab.host("a").unwrap();
        let bound = host.run(|| {
            let tcp = TcpListener::bind(at).unwrap();
            let udp = UdpSocket::bind(tcp.local_addr().unwrap()).unwrap();
            (tcp, udp)
        });
        let (tcp, udp) = bound.unwrap();
        let (port, own) = (tcp.local_addr().unwrap().port(), udp.try_clone().unwrap());
        let streams = std::thread::spawn(move || {
            let (mut question, mut asked) = (String::new(), None);
            // Whoever only looks whether it is reached asks nothing.
            while question.is_empty() {
                let (stream, from) = asked.insert(tcp.accept().unwrap());
                BufReader::new(&*stream).read_line(&mut question).unwrap();
                write!(stream, "{} asked {question}", from.ip()).unwrap();
            }
        });
        let datagrams = std::thread::spawn(move || {
            let mut buffer = [0; 100];
            let (length, from) = udp.recv_from(&mut buffer).unwrap();
            let text = format!("{} asked {}", from.ip(), String::from_utf8_lossy(&buffer[..length]));
            udp.send_to(text.as_bytes(), from).unwrap();
        });
        Self { port, udp: own, threads: [streams, datagrams] }
    }

    pub fn join(self) {
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(self.udp);
    }
}

/// A bash script that queries by TCP and UDP and prints the duration of both in ms. bash's own `read` takes a
/// byte at a time, and would lose the rest of a datagram.
pub fn asking(host: &str, port: u16) -> String {
    format!(
        "for kind in tcp udp; do
            begin=$(date +%s%N)
            exec 3<>/dev/$kind/{host}/{port}; echo by $kind >&3; line=$(head -n 1 <&3)
            echo \"$line, after $(( ($(date +%s%N) - begin) / 1000000 ))\"
        done"
    )
}

/// Checks the answers, and that both crossed the link: a connection takes a round trip more than a datagram.
pub fn assert_asked(text: &str, least: [u32; 2]) {
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
    for (listed, host) in [(false, "127.0.0.1"), (true, "127.0.0.1"), (false, "::1"), (true, "::1")] {
        let service = Loopback::start(&machine);
        let option =
            if listed { format!("--localhost=9-10,{}", service.port) } else { "--localhost".to_owned() };
        // Connections of the machine's own programs do not come through the relay, nor do its neighbours'.
        let script = format!(
            "ip netns exec lw-{}-a bash -c \"exec 3<>/dev/tcp/$LONGWIRE_FAR/{}\" 2> /dev/null && echo in
            {}",
            machine.name,
            service.port,
            asking(host, service.port)
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

/// Each is waited for as long as it opens no port: many, so that the signal comes meanwhile also if this
/// machine is busy.
#[test]
fn a_signal_while_services_start_ends_the_run() {
    let Some(machine) = Machine::new("impatient") else { return };
    let folder = Folder::new("impatient");
    let (begun, last) = (folder.text("begun"), folder.text("last"));
    let waits = "--serve 'exec sleep 1000' ".repeat(10);
    let script = format!(
        "mkfifo {begun}
        {LONGWIRE} exec --delay 5ms --serve 'echo > {begun}; exec sleep 1000' {waits} \
            --serve 'echo > {last}' -- echo started & run=$!
        read line < {begun}; kill -TERM $run; echo signalled >&2
        wait $run; echo ended $?"
    );
    let ran = machine.sh_alone(&script);
    let said = stderr(&ran);
    assert_eq!(stdout(&ran), "ended 143\n", "{said}");
    assert!(!Path::new(&last).exists(), "{said}");
    let (_, afterwards) = said.split_once("signalled\n").unwrap_or_else(|| panic!("{said}"));
    assert!(!afterwards.contains("going on"), "{said}");
}

/// `longwire exec` of a bash script, which has said a line.
struct Begun {
    running: Child,
    output: BufReader<ChildStdout>,
    line: String,
}

/// Starts it.
fn begin(machine: &Machine, option: &str, script: &str) -> Begun {
    begin_by(Command::new(LONGWIRE), machine, option, script)
}

/// As [`begin`], by a command to which the arguments of `longwire` are added.
fn begin_by(mut command: Command, machine: &Machine, option: &str, script: &str) -> Begun {
    let mut running = command
        .args(["lab", "exec", &machine.name, "a", "--", LONGWIRE, "exec", "-q", "--delay", "20ms", option])
        .args(["--", "timeout", "60", "bash", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(running.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    Begun { running, output, line }
}

#[test]
fn services_that_start_later_listen_on_every_address_and_are_reached() {
    let Some(machine) = Machine::new("later") else { return };
    for option in ["--localhost=7006", "--localhost"] {
        let reached = "(exec 3<>/dev/tcp/127.0.0.1/7006) 2> /dev/null";
        let script =
            format!("echo; read; until {reached}; do sleep 0.05; done; {}", asking("127.0.0.1", 7006));
        let Begun { mut running, mut output, .. } = begin(&machine, option, &script);
        let service = Loopback::start_at(&machine, "0.0.0.0:7006");
        running.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert!(running.wait().unwrap().success(), "{text}");
        assert_asked(&text, [80, 40]);
        service.join();
    }
}

/// A relay has four descriptors for each connection.
#[test]
fn many_connections_do_not_exceed_the_limit_of_open_files() {
    const CONNECTIONS: usize = 120;
    let Some(machine) = Machine::new("connections") else { return };
    let lab = Lab::open(&machine.name).unwrap();
    let service = lab.host("a").unwrap().run(|| TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let at = service.local_addr().unwrap();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -Sn 300; exec \"$@\"", "sh", LONGWIRE]);
    let mut begun = begin_by(limited, &machine, &format!("--localhost={}", at.port()), "echo $$; read");
    let inside = Namespace::at(Path::new(&format!("/proc/{}/ns/net", begun.line.trim()))).unwrap();
    let connect = || (0..CONNECTIONS).map(|_| TcpStream::connect(at).unwrap()).collect::<Vec<_>>();
    let clients = inside.run(connect).unwrap();
    // All are open when the first is answered.
    let answering = std::thread::spawn(move || {
        let served: Vec<_> = (0..CONNECTIONS).map(|_| service.accept().unwrap().0).collect();
        served.iter().for_each(|mut stream| stream.write_all(b"answer").unwrap());
    });
    for mut client in &clients {
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut answer = [0; 6];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
    }
    answering.join().unwrap();
    begun.running.stdin.take().unwrap().write_all(b"end\n").unwrap();
    assert!(begun.running.wait().unwrap().success());
}

/// A port has two protocols, and each its own services.
#[test]
fn a_service_of_tcp_keeps_none_of_udp_from_its_port() {
    let Some(machine) = Machine::new("beside") else { return };
    let lab = Lab::open(&machine.name).unwrap();
    let host = lab.host("a").unwrap();
    let tcp = host.run(|| TcpListener::bind("127.0.0.1:7007").unwrap()).unwrap();
    let mut begun = begin(&machine, "--localhost", "echo; read");
    let udp = host.run(|| UdpSocket::bind("0.0.0.0:7007")).unwrap();
    assert!(udp.is_ok(), "{udp:?}");
    drop(tcp);
    begun.running.stdin.take().unwrap().write_all(b"end\n").unwrap();
    assert!(begun.running.wait().unwrap().success());
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
fn a_commands_server_may_listen_on_every_address_or_by_ipv6() {
    let Some(machine) = Machine::new("wildcard") else { return };
    let mut begun = begin(&machine, "--publish=7008", "echo $$; read");
    let inside = Namespace::at(Path::new(&format!("/proc/{}/ns/net", begun.line.trim()))).unwrap();
    let lab = Lab::open(&machine.name).unwrap();
    let host = lab.host("a").unwrap();
    let patience = Some(Duration::from_secs(20));
    for at in ["0.0.0.0:7008", "[::1]:7008"] {
        let (tcp, udp) =
            inside.run(|| (TcpListener::bind(at).unwrap(), UdpSocket::bind(at).unwrap())).unwrap();
        let (client, asking) = host
            .run(|| (TcpStream::connect("127.0.0.1:7008").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()))
            .unwrap();
        for socket in [&udp, &asking] {
            socket.set_read_timeout(patience).unwrap();
        }
        client.set_read_timeout(patience).unwrap();
        let (served, from) = tcp.accept().unwrap();
        assert!(from.ip().is_loopback(), "{from}");
        (&served).write_all(b"answer\n").unwrap();
        let mut line = String::new();
        BufReader::new(&client).read_line(&mut line).unwrap();
        assert_eq!(line, "answer\n", "{at}");
        let mut buffer = [0; 16];
        asking.send_to(b"question", "127.0.0.1:7008").unwrap();
        let (length, from) = udp.recv_from(&mut buffer).unwrap();
        udp.send_to(&buffer[..length], from).unwrap();
        assert_eq!((asking.recv(&mut buffer).unwrap(), from.ip().is_loopback()), (8, true), "{at}, {from}");
    }
    begun.running.stdin.take().unwrap().write_all(b"end\n").unwrap();
    assert!(begun.running.wait().unwrap().success());
}

/// The kernel has seen its flow before the redirection.
#[test]
fn who_asks_by_udp_before_a_service_listens_is_answered_later() {
    let Some(machine) = Machine::new("early") else { return };
    let mut begun = begin(&machine, "--localhost", "echo $$; read");
    let inside = Namespace::at(Path::new(&format!("/proc/{}/ns/net", begun.line.trim()))).unwrap();
    let lab = Lab::open(&machine.name).unwrap();
    let host = lab.host("a").unwrap();
    for (own, at) in [("127.0.0.1:0", "127.0.0.1:7009"), ("[::1]:0", "[::1]:7010")] {
        let early = inside.run(|| UdpSocket::bind(own).unwrap()).unwrap();
        early.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        early.send_to(b"early", at).unwrap();
        let service = host.run(|| UdpSocket::bind(at).unwrap()).unwrap();
        service.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let answering = std::thread::spawn(move || {
            let (_, from) = service.recv_from(&mut [0; 16])?;
            service.send_to(b"answer", from)
        });
        let answered = (0..200).any(|_| {
            early.send_to(b"question", at).unwrap();
            early.recv(&mut [0; 16]).is_ok()
        });
        assert!(answered, "{at}");
        answering.join().unwrap().unwrap();
    }
    begun.running.stdin.take().unwrap().write_all(b"end\n").unwrap();
    assert!(begun.running.wait().unwrap().success());
}
