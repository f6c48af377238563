//! A client of the API that violates every rule, while other clients must be served.

use super::support::lab::can_make_labs;
use super::support::{Folder, longwire, stderr};
use super::{Dice, PATIENCE, times, until, wait};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const SCENARIO: &str = "\
[[host]]
name = \"a\"
address = \"10.68.0.1/24\"
[[host]]
name = \"b\"
address = \"10.68.0.2/24\"
[[link]]
name = \"l\"
between = [\"a\", \"b\"]
";

/// Requests that are wrong, truncated, or endless.
fn requests(dice: &mut Dice) -> Vec<Vec<u8>> {
    let mut all = vec![
        Vec::new(),
        b"GET".to_vec(),
        b"GET /v1/stats HTTP/1.1\r\n".to_vec(),
        [b"GET /".to_vec(), vec![b'a'; 100_000], b" HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()].concat(),
        b"PATCH /v1/links/l HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n".to_vec(),
        b"PATCH /v1/links/l HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"
            .to_vec(),
        [b"POST /v1/stop HTTP/1.1\r\nHost: x\r\n".to_vec(), b"X: y\r\n".repeat(10_000)].concat(),
        "GET /v1/links/\u{1b}[2J HTTP/1.1\r\nHost: x\r\n\r\n".into(),
    ];
    all.push((0..10_000).map(|_| dice.next() as u8).collect());
    all
}

#[test]
fn nonsense_keeps_nobody_else_waiting() {
    if !can_make_labs("nonsense_keeps_nobody_else_waiting") {
        return;
    }
    let mut dice = Dice::new("nonsense_keeps_nobody_else_waiting");
    let folder = Folder::new("pokes");
    let name = format!("poke{}", std::process::id());
    let mut run = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["run", &folder.write("s.toml", SCENARIO), "--name", &name])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let get = || longwire(&["ctl", "get", "l", "--instance", &name]);
    assert!(until(PATIENCE, || get().status.success().then_some(())).is_some(), "not up");
    let socket = PathBuf::from(format!("/run/longwire/{name}-{}.sock", run.id()));
    for _ in 0..times(2, 100) {
        let open = requests(&mut dice).into_iter().filter_map(|bytes| {
            let mut stream = UnixStream::connect(&socket).ok()?;
            stream.set_nonblocking(true).ok()?;
            let _ = stream.write(&bytes);
            Some(stream)
        });
        // All of them stay open, and none is read.
        let mut open: Vec<_> = open.collect();
        assert!(!open.is_empty());
        let served = get();
        assert!(served.status.success(), "{}", stderr(&served));
        for stream in &mut open {
            let _ = stream.read(&mut [0; 4096]);
        }
    }
    assert!(longwire(&["ctl", "stop", &name]).status.success());
    let status = wait(&mut run, PATIENCE).expect("it ends when it is asked to");
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
}
