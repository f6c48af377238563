//! Mahimahi: its shells, and its traces.

use crate::{command, file, from, has, refused, tells};
use longwire_import::{Format, import};

#[test]
fn mahimahi_shells() {
    let command = "mm-delay 20 mm-loss uplink 0.01 mm-link up.trace down.trace --uplink-queue=droptail \
                   --uplink-queue-args=\"packets=100\" --downlink-queue=codel \
                   --downlink-queue-args=\"packets=200, target=5, interval=100\" \
                   --meter-all -- curl example.org";
    let imported = from(Format::Mahimahi, command);
    // Out: trace, loss, delay. In: delay, trace.
    has(
        &imported,
        &[
            "rate = { kind = \"trace\", file = \"up.trace\", end = \"loop\" }",
            "queue = \"100 packets\"",
            "queue = { kind = \"codel\", limit = \"200 packets\", target = \"5 ms\", interval = \"100 ms\" }",
            "loss = \"1 %\"",
            "name = \"up-2\"",
            "name = \"down-2\"",
        ],
    );
    tells(&imported, &["--meter-all", "curl example.org"]);
    let imported = from(
        Format::Mahimahi,
        "mm-onoff uplink 1.5 0.5 -- mm-link --once a b --downlink-queue pie --downlink-queue-args \
         qdelay_ref=20,max_burst=100,bytes=30000",
    );
    has(
        &imported,
        &[
            "state = { kind = \"flap\", up = \"1.5 s\", down = \"500 ms\" }",
            "rate = { kind = \"trace\", file = \"a\", end = \"clear\" }",
            "queue = { kind = \"pie\", limit = \"30 kB\", update = \"30 ms\", target = \"20 ms\", burst = \
             \"100 ms\" }",
            "queue = \"unlimited\"",
        ],
    );
    tells(&imported, &["mm-onoff", "--once"]);
    for (text, wanted) in [
        ("mm-link up.trace", "mm-link needs two traces"),
        ("mm-loss sideways 0.1", "\"sideways\" can't be understood"),
        ("mm-loss uplink 2", "\"2\" can't be understood"),
        ("mm-link a b --uplink-queue=best", "no queue \"best\""),
        ("mm-link a b --uplink-queue=droptail --uplink-queue-args=x", "write packets=100"),
        ("ls -l /tmp", "there is no shell of mahimahi"),
        ("up.trace down.trace", "there is no file up.trace"),
        ("mm-unknown 5", "there is no shell of mahimahi"),
    ] {
        refused(Format::Mahimahi, text, wanted);
    }
}

#[test]
fn traces_of_mahimahi() {
    let imported = import(Format::Mahimahi, &[file("up", "0\n5\n5\n"), file("down", "1\n")]).unwrap();
    has(&imported, &["rate = { kind = \"trace\", file = \"down\", end = \"loop\" }"]);
    assert!(imported.notes.is_empty());
    // A trace that no link can play is refused with its line.
    for (text, wanted) in [("0\n0\n0\n", "up"), ("5\n3\n", "line 2")] {
        let error = import(Format::Mahimahi, &[file("up", text)]).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let sources = [file("up.trace", "0\n5\n"), command("down.trace")];
    let error = import(Format::Mahimahi, &sources).unwrap_err();
    assert!(error.to_string().contains("there is no file down.trace"), "{error}");
}
