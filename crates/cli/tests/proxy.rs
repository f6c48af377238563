//! `longwire proxy`, in front of services on this machine's loopback.

mod support;

use longwire_lab::abilities;
use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::process::Command;
use std::time::{Duration, Instant};
use support::started::{Ended, Started};
use support::{Folder, ended_by_all, json, longwire, row, stderr};

const LONGWIRE: &str = env!("CARGO_BIN_EXE_longwire");
const NOBODY: u32 = 65_534;

/// `longwire proxy`, running.
struct Proxy {
    running: Started,
    at: SocketAddr,
}

impl Proxy {
    /// Starts it by `command`, at a port that the system chooses.
    fn start(mut command: Command, to: impl Display, args: &[&str]) -> Self {
        command.args(["proxy", "--listen", "127.0.0.1:0", "--to", &to.to_string()]).args(args);
        let (running, line) = Started::ready(&mut command, " leads to ");
        let predictions = ["round trip will be about", "will be lost (loss 100 %)"];
        running.line("prediction", |line| predictions.iter().any(|text| line.contains(text)).then_some(()));
        let at = line.split(" leads to ").next().unwrap().rsplit(' ').next().unwrap();
        Self { at: at.parse().unwrap_or_else(|_| panic!("{line}")), running }
    }

    /// Its name for `longwire ctl`.
    fn name(&self) -> String {
        format!("proxy-{}", self.running.child.id())
    }
}

fn as_is() -> Command {
    let mut command = ended_by_all();
    command.arg(LONGWIRE);
    command
}

/// Whose TCP/IP can be tried here: that of the process anywhere.
fn stacks(test: &str) -> Vec<&'static str> {
    let can = abilities();
    if can.root.available && can.namespaces.available {
        return vec!["kernel", "process"];
    }
    println!("{test}: without the kernel's TCP/IP: {}; {}", can.root.reason, can.namespaces.reason);
    vec!["process"]
}

/// A request and its response over TCP, and their duration.
fn ask(service: &TcpListener, at: SocketAddr) -> Duration {
    let begin = Instant::now();
    let mut client = TcpStream::connect(at).unwrap();
    client.write_all(b"question").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let (mut served, from) = service.accept().unwrap();
    assert!(from.ip().is_loopback());
    let mut text = String::new();
    served.read_to_string(&mut text).unwrap();
    assert_eq!(text, "question");
    served.write_all(b"answer").unwrap();
    drop(served);
    text.clear();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "answer");
    begin.elapsed()
}

/// `localhost` is `::1` first on many systems.
#[test]
fn a_name_leads_to_whichever_address_accepts() {
    for stack in stacks("a_name_leads_to_whichever_address_accepts") {
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = format!("localhost:{}", service.local_addr().unwrap().port());
        let proxy = Proxy::start(as_is(), to, &["--stack", stack]);
        ask(&service, proxy.at);
        assert_eq!(proxy.running.end().code, Some(0));
    }
}

#[test]
fn connections_cross_the_link() {
    for stack in stacks("connections_cross_the_link") {
        connections_cross(stack);
    }
}

fn connections_cross(stack: &str) {
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let args = ["--stack", stack, "--delay", "20ms", "--json"];
    let proxy = Proxy::start(as_is(), service.local_addr().unwrap(), &args);
    // A round trip for the connection, and one for request and response.
    let took = ask(&service, proxy.at);
    assert!(took >= Duration::from_millis(80), "{took:?}");
    // A megabyte in each direction arrives unchanged.
    let sent: Vec<u8> = (0..1_000_000u32).map(|i| (i / 7) as u8).collect();
    let mut client = TcpStream::connect(proxy.at).unwrap();
    let (mut served, _) = service.accept().unwrap();
    std::thread::scope(|scope| {
        for end in [client.try_clone().unwrap(), served.try_clone().unwrap()] {
            let sent = &sent;
            scope.spawn(move || (&end).write_all(sent).unwrap());
        }
        for end in [&mut client, &mut served] {
            let mut received = vec![0; sent.len()];
            end.read_exact(&mut received).unwrap();
            assert!(received == sent);
        }
    });
    drop(service);
    let refused = TcpStream::connect(proxy.at).unwrap().read(&mut [0]).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionReset, "nobody is behind it any more");
    let at = proxy.at;
    let Ended { code, output, said } = proxy.running.end();
    assert_eq!(code, Some(0), "{said}");
    let report: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&report["command"], &report["listen"]), (&"proxy".into(), &at.to_string().into()));
    assert_eq!(report["stack"], stack);
    assert!(row(&report, "link up")["out_packets"].as_u64().unwrap() > 10, "{report:#}");
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0, "connections end with it");
}

/// /dev/full is a full disk.
#[test]
fn a_file_that_can_not_be_written_any_more_is_said_at_once() {
    let folder = Folder::new("proxy-full");
    let log = folder.text("packets.lwlog");
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let args = ["--stack", "process", "--delay", "1ms", "--log", &log];
    let proxy = Proxy::start(as_is(), service.local_addr().unwrap(), &args);
    ask(&service, proxy.at);
    let warning = format!("warning: the log {log} is incomplete: No space left on device");
    proxy.running.line(&warning, |line| line.starts_with(&warning).then_some(()));
    ask(&service, proxy.at);
    assert_eq!(proxy.running.end().code, Some(1));
}

#[test]
fn datagrams_cross_the_link_and_can_be_lost() {
    for stack in stacks("datagrams_cross_the_link_and_can_be_lost") {
        datagrams_cross(stack);
    }
}

fn datagrams_cross(stack: &str) {
    let service = UdpSocket::bind("127.0.0.1:0").unwrap();
    let args = ["--stack", stack, "--udp", "--delay", "20ms", "--up", "loss=100%"];
    let proxy = Proxy::start(as_is(), service.local_addr().unwrap(), &args);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.send_to(b"lost", proxy.at).unwrap();
    let name = proxy.name();
    loop {
        let stats = json(&longwire(&["ctl", "stats", &name, "--json"]), 0);
        if stats["dropped"]["loss"].as_u64() == Some(1) {
            break;
        }
    }
    let set = longwire(&["ctl", "set", "up", "loss=", "--instance", &name]);
    assert!(set.status.success(), "{}", stderr(&set));
    let begin = Instant::now();
    client.send_to(b"question", proxy.at).unwrap();
    let mut buffer = [0; 100];
    let (length, from) = service.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"question");
    service.send_to(b"answer", from).unwrap();
    let (length, from) = client.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], from), (&b"answer"[..], proxy.at));
    assert!(begin.elapsed() >= Duration::from_millis(40));
    assert_eq!(proxy.running.end().code, Some(0));
}

#[test]
fn without_root_the_ends_are_in_a_user_namespace() {
    let test = "without_root_the_ends_are_in_a_user_namespace";
    let can = abilities();
    if !can.user_namespaces.available {
        return println!("skipped {test}: {}", can.user_namespaces.reason);
    }
    let folder = Folder::new("proxy");
    let program = folder.text("longwire");
    std::fs::copy(LONGWIRE, &program).unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(folder.path("run")).unwrap();
    let mut command = ended_by_all();
    if can.root.available {
        chown(folder.path("run"), Some(NOBODY), Some(NOBODY)).unwrap();
        command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    command.arg(&program).env("LONGWIRE_RUN_DIR", folder.path("run")).current_dir("/");
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(command, service.local_addr().unwrap(), &["--delay", "20ms"]);
    for _ in 0..3 {
        let took = ask(&service, proxy.at);
        assert!(took >= Duration::from_millis(80), "{took:?}");
    }
    let Ended { code, said, .. } = proxy.running.end();
    assert_eq!(code, Some(0), "{said}");
}

/// A loss is repaired by who has sent, a rate holds for all connections together, and a change takes effect.
#[test]
fn a_link_without_namespaces_is_a_link() {
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let args = ["--stack", "process", "--rate", "20mbit", "--loss", "1%", "--queue", "100 packets"];
    let proxy = Proxy::start(as_is(), service.local_addr().unwrap(), &args);
    let (clients, bytes) = (20, vec![7; 50_000]);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = TcpStream::connect(proxy.at).unwrap();
                client.write_all(&bytes).unwrap();
                client.shutdown(std::net::Shutdown::Write).unwrap();
                let mut back = Vec::new();
                client.read_to_end(&mut back).unwrap();
                assert_eq!(back.len(), bytes.len());
            });
            let (mut served, _) = service.accept().unwrap();
            scope.spawn(move || {
                let mut received = Vec::new();
                served.read_to_end(&mut received).unwrap();
                served.write_all(&received).unwrap();
            });
        }
    });
    // A megabyte at 20 Mbit/s, without headers.
    assert!(begin.elapsed() >= Duration::from_millis(400), "{:?}", begin.elapsed());
    let name = proxy.name();
    let stats = json(&longwire(&["ctl", "stats", &name, "--json"]), 0);
    assert!(stats["dropped"]["loss"].as_u64().unwrap() > 0, "{stats:#}");
    let set = longwire(&["ctl", "set", "up", "loss=", "delay=60ms", "--instance", &name]);
    assert!(set.status.success(), "{}", stderr(&set));
    let took = ask(&service, proxy.at);
    assert!(took >= Duration::from_millis(120), "{took:?}");
    assert_eq!(proxy.running.end().code, Some(0));
}

/// A user who may make no user namespaces: root of one that allows no more, without its rights.
#[test]
fn where_there_are_no_namespaces_packets_are_the_process_s() {
    let test = "where_there_are_no_namespaces_packets_are_the_process_s";
    let can = abilities();
    if !can.user_namespaces.available {
        return println!("skipped {test}: {}", can.user_namespaces.reason);
    }
    let alone = |args: &str| {
        let script = format!(
            "echo 0 > /proc/sys/user/max_user_namespaces
            exec setpriv --bounding-set=-all --inh-caps=-all {LONGWIRE} {args}"
        );
        let mut command = ended_by_all();
        command.args(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", &script]);
        command
    };
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = service.local_addr().unwrap();
    let refused = alone(&format!("proxy --listen 0 --to {at} --stack kernel")).output().unwrap();
    assert!(stderr(&refused).contains("--stack process needs none"), "{}", stderr(&refused));
    let folder = Folder::new("alone");
    let mut command = alone("\"$@\"");
    command.arg("sh").env("LONGWIRE_RUN_DIR", folder.path("run"));
    let proxy = Proxy::start(command, at, &["--delay", "20ms"]);
    let took = ask(&service, proxy.at);
    assert!(took >= Duration::from_millis(80), "{took:?}");
    assert_eq!(proxy.running.end().code, Some(0));
}

#[test]
fn unusable_input_is_reported() {
    let error = |args: &[&str]| {
        let output = longwire(&[&["proxy"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        stderr(&output)
    };
    assert!(error(&["--listen", "here", "--to", "127.0.0.1:1"]).contains("127.0.0.1:9000"));
    assert!(error(&["--listen", "0", "--to", "127.0.0.1"]).contains("--to 127.0.0.1 can't be found"));
    assert!(error(&["--listen", "0", "--to", "127.0.0.1:0"]).contains("port 0"));
    assert!(error(&["--listen", "0", "--to", "127.0.0.1:9", "--dealy", "1ms"]).contains("--delay"));
    // Itself, also by another of its addresses. The port was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for own in ["127.0.0.1", "0.0.0.0", "[::]"] {
        let said = error(&["--listen", &format!("{own}:{free}"), "--to", &format!("127.0.0.1:{free}")]);
        assert!(said.contains(&format!("--to 127.0.0.1:{free} is where the proxy itself listens")), "{said}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    assert!(error(&["--listen", &at, "--to", "127.0.0.1:9"]).contains(&format!("can't listen on {at}")));
}
