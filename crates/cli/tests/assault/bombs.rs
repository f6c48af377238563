//! Hostile scenarios: deep, long, huge, circular, or invalid files.

use super::Ran;
use super::support::Folder;
use std::process::Command;

const HOSTS: &str =
    "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\naddress = \"10.0.0.2/24\"\n";

/// Two hosts and a link with these lines.
fn link(lines: &str) -> Vec<u8> {
    format!("{HOSTS}[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n{lines}\n").into_bytes()
}

/// Two hosts with so many addresses each, and more lines.
fn hosts_of(addresses: u32, more: &str) -> Vec<u8> {
    let host = |name: &str, net: u32| {
        let all: Vec<_> =
            (1..=addresses).map(|n| format!("\"10.{net}.{}.{}/8\"", n / 256, n % 256)).collect();
        format!("[[host]]\nname = \"{name}\"\naddress = [{}]\n", all.join(", "))
    };
    (host("a", 1) + &host("b", 2) + more).into_bytes()
}

/// Whether the scenario must be refused, or only has to end in order.
enum Due {
    Refused,
    Orderly,
}
use Due::{Orderly, Refused};

fn syntax() -> Vec<(&'static str, Vec<u8>, Due)> {
    vec![
        ("nothing", Vec::new(), Orderly),
        ("a byte order mark only", vec![0xef, 0xbb, 0xbf], Orderly),
        ("zero bytes", vec![0; 10_000], Refused),
        ("no UTF-8", vec![0xff; 10_000], Refused),
        ("deep arrays", format!("x = {}", "[".repeat(200_000)).into_bytes(), Refused),
        ("deep closed arrays", format!("x = {}{}", "[".repeat(5000), "]".repeat(5000)).into_bytes(), Refused),
        ("deep inline tables", format!("x = {}", "{a=".repeat(100_000)).into_bytes(), Refused),
        ("a deep dotted key", format!("{}x = 1", "a.".repeat(100_000)).into_bytes(), Refused),
        ("a long key", format!("{} = 1", "k".repeat(10_000_000)).into_bytes(), Refused),
        ("a long string", format!("seed = \"{}\"", "s".repeat(10_000_000)).into_bytes(), Refused),
        ("an open string", b"seed = \"".to_vec(), Refused),
        (
            "an open multi-line string",
            format!("seed = \"\"\"{}", "\n".repeat(1_000_000)).into_bytes(),
            Refused,
        ),
        ("many keys", (0..300_000).map(|n| format!("k{n} = 1\n")).collect::<String>().into_bytes(), Refused),
        ("many tables", "[[host]]\n".repeat(200_000).into_bytes(), Refused),
        ("the same key often", "seed = 1\n".repeat(100_000).into_bytes(), Refused),
        ("a number beyond 64 bits", b"seed = 99999999999999999999999999".to_vec(), Refused),
        ("a negative number", b"seed = -1".to_vec(), Refused),
        ("infinity", b"seed = inf".to_vec(), Refused),
        ("not a number", b"seed = nan".to_vec(), Refused),
        ("a date", b"seed = 1979-05-27T07:32:00Z".to_vec(), Refused),
        ("control characters in a name", HOSTS.replace("\"a\"", "\"\\u001b[2Ja\"").into_bytes(), Refused),
        ("a path as a name", HOSTS.replace("\"a\"", "\"../../etc\"").into_bytes(), Refused),
        (
            "a long name",
            HOSTS.replace("\"a\"", &format!("\"{}\"", "a".repeat(100_000))).into_bytes(),
            Refused,
        ),
        ("the same host twice", format!("{HOSTS}{HOSTS}").into_bytes(), Refused),
    ]
}

fn amounts() -> Vec<(&'static str, Vec<u8>, Due)> {
    vec![
        (
            "fewer links than none, and many",
            format!(
                "{HOSTS}[[link]]\nname = \"n{{n}}\"\nbetween = [\"a\", \"b\"]\ncount = -99999999999\n{}",
                "[[link]]\nname = \"l{n}\"\nbetween = [\"a\", \"b\"]\ncount = 16000000\n".repeat(9)
            )
            .into_bytes(),
            Refused,
        ),
        (
            "16 million sources",
            format!(
                "{HOSTS}[[source]]\nname = \"s{{n}}\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n\
                 count = 16000000\n"
            )
            .into_bytes(),
            Refused,
        ),
        (
            "16 million paths",
            format!(
                "{HOSTS}[[path]]\nfrom = \"a\"\nto = \"b\"\nlinks = []\ncount = 16000000\n\
                 match = [{{ source = \"{{10.0.0.0 + n}}\", destination = \"10.0.0.2\" }}, \
                 {{ source = \"{{11.0.0.0 + n}}\", destination = \"10.0.0.2\" }}]\n"
            )
            .into_bytes(),
            Refused,
        ),
        ("a link for 25 million pairs", hosts_of(5000, "[[link]]\nbetween = [\"a\", \"b\"]\n"), Refused),
        (
            "60000 addresses beside 60000 paths",
            hosts_of(
                30_000,
                "[[host]]\nname = \"c\"\naddress = \"10.3.0.1/8\"\n[[bridge]]\nname = \"x\"\n[[link]]\n\
                 between = [\"c\", \"x\"]\n[[path]]\nfrom = \"a\"\nto = \"b\"\nlinks = []\n\
                 count = 60000\nmatch = [{ source = \"{11.0.0.0 + n}\", destination = \"12.0.0.1\" }]\n",
            ),
            Orderly,
        ),
    ]
}

fn values() -> Vec<(&'static str, Vec<u8>, Due)> {
    let steers = "filter = { kind = \"rules\", rules = [\"steer to l.backward: ip\"] }";
    vec![
        ("a rate beyond all", link("rate = \"99999999999 Tbit/s\""), Refused),
        ("a negative rate", link("rate = \"-1 Mbit/s\""), Refused),
        ("a delay of ages", link("delay = \"99999999999 h\""), Refused),
        ("a delay of years", link("delay = \"584 d\"\nrate = \"400 Gbit/s\""), Orderly),
        ("more than all lost", link("loss = \"101 %\""), Refused),
        ("a queue beyond memory", link("queue = \"18446744073709551615 packets\""), Orderly),
        ("a queue of nothing", link("queue = \"\""), Refused),
        ("a tiny rate", link("rate = \"0.0000001 bit/s\""), Refused),
        ("16 million links", link("count = 16000000"), Refused),
        ("2^63 links", link("count = 9223372036854775807"), Refused),
        ("a pool beyond memory", format!("[engine]\npool = \"1 EB\"\n{HOSTS}").into_bytes(), Refused),
        ("a million workers", format!("[engine]\nworkers = 1000000\n{HOSTS}").into_bytes(), Refused),
        (
            "a link to itself",
            link("")
                .to_vec()
                .into_iter()
                .chain(*b"[[link]]\nname = \"s\"\nfrom = \"a\"\nto = \"a\"\n")
                .collect(),
            Orderly,
        ),
        ("a link to nowhere", b"[[link]]\nname = \"l\"\nbetween = [\"x\", \"y\"]\n".to_vec(), Refused),
        ("a filter that steers in a circle", link(steers), Refused),
        (
            "a deep expression",
            link(&format!(
                "filter = {{ kind = \"rules\", rules = [\"drop: {}ip{}\"] }}",
                "(".repeat(50_000),
                ")".repeat(50_000)
            )),
            Refused,
        ),
        (
            "a long expression",
            link(&format!(
                "filter = {{ kind = \"rules\", rules = [\"drop: {}ip\"] }}",
                "ip or ".repeat(200_000)
            )),
            Refused,
        ),
        ("all networks as one host", HOSTS.replace("10.0.0.1/24", "0.0.0.0/0").into_bytes(), Refused),
        (
            "an event before the beginning",
            link("").into_iter().chain(*b"[[at]]\ntime = \"-1 s\"\nlink = \"l\"\nrate = 0\n").collect(),
            Refused,
        ),
        (
            "an event in ages",
            link("")
                .into_iter()
                .chain(*b"[[at]]\ntime = \"9999999999 d\"\nlink = \"l\"\nrate = 0\n")
                .collect(),
            Refused,
        ),
    ]
}

/// Settings with unsuitable file names: endless devices, pipes without a writer, folders, the scenario
/// itself.
fn files(folder: &Folder) -> Vec<(&'static str, Vec<u8>, Due)> {
    let pipe = folder.text("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let trace = |file: &str| link(&format!("rate = {{ kind = \"trace\", file = \"{file}\" }}"));
    let router = |more: &str| {
        let ports = "ports = [{ port = \"a\", addresses = \"10.0.0.254/24\" }]";
        format!("{HOSTS}[[router]]\nname = \"r\"\n{ports}\n{more}\n").into_bytes()
    };
    vec![
        ("a trace from /dev/zero", trace("/dev/zero"), Refused),
        ("a trace from a pipe", trace(&pipe), Refused),
        ("a profile from a pipe", link(&format!("profile = \"{pipe}\"")), Refused),
        ("routes from a pipe", router(&format!("routes-file = \"{pipe}\"")), Refused),
        (
            "a program from a pipe",
            router(&format!("[[forwarder]]\nrouter = \"r\"\nprogram = \"{pipe}\"")),
            Refused,
        ),
        ("a trace from a folder", trace("/"), Refused),
        ("a trace from nowhere", trace("/no/such/file"), Refused),
        ("a trace from the scenario itself", trace("a trace from the scenario itself.toml"), Refused),
    ]
}

#[test]
fn no_scenario_hurts() {
    let folder = Folder::new("bombs");
    let bombs: Vec<_> = [syntax(), amounts(), values(), files(&folder)].into_iter().flatten().collect();
    assert_eq!(bombs.len(), 57);
    for (name, text, due) in &bombs {
        let file = folder.write(&format!("{}.toml", name.replace('/', "-")), text);
        for args in [&["check", &file][..], &["run", &file, "--virtual", "--for", "1ms"]] {
            let ran = Ran::bounded(args);
            ran.assert_orderly(&format!("{name}, {}", args[0]));
            let accepted = ran.status.is_some_and(|status| status.success());
            assert!(!(accepted && matches!(due, Refused)), "{name}: accepted by {}", args[0]);
        }
    }
}

#[test]
fn a_scenario_that_is_no_file_is_refused() {
    let folder = Folder::new("no-file");
    for path in ["/dev/zero", "/", "/no/such/file", &folder.text("missing")] {
        Ran::bounded(&["check", path]).assert_orderly(path);
    }
}
