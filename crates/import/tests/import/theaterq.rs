//! TheaterQ: its traces, and options of tc.

use crate::{command, file, has, refused, silent, tells};
use longwire_import::{Format, import};

#[test]
fn traces_of_theaterq() {
    let trace = file("t.csv", "# KEEP\n1000,20000000,1000000,0,50\n2000,10000000,2000000,42949672,60\n");
    let options =
        "tc qdisc change dev eth0 root handle 1 theaterq stage RUN cont HOLD seed 3 overhead 4 byteqlen";
    let imported = import(Format::Theaterq, &[trace.clone(), command(options)]).unwrap();
    has(
        &imported,
        &[
            "loss = { kind = \"trace\", file = \"t.csv\", end = \"hold\" }",
            "delay = { kind = \"trace\", file = \"t.csv\", end = \"hold\" }",
            "rate = { kind = \"trace\", file = \"t.csv\", end = \"hold\" }",
            "queue = \"60 B\"",
            "overhead = \"18\"",
            "seed = 3",
        ],
    );
    tells(&imported, &["t.csv: LIMIT", "stage RUN"]);
    let extended = file("x.csv", "1000,5,7,100000,0,10,3,4,2\n");
    tells(&import(Format::Theaterq, &[extended]).unwrap(), &["JITTER", "DUP_PROB", "ROUTE_ID", "cont LOOP"]);
    let error = import(Format::Theaterq, &[file("y.csv", "1,2,300,4,5\n1,2,3\n")]).unwrap_err().to_string();
    assert!(error.contains("line 2: 3 columns where there must be 5; correct y.csv"), "{error}");
    refused(Format::Theaterq, "tc qdisc add dev eth0 root theaterq", "there is no trace");
}

#[test]
fn options_of_theaterq() {
    let trace = file("t.csv", "1000,20000000,1000000,0,50\n");
    for (options, line) in [
        // The module's default; a scenario's seed has 63 bits.
        ("stage RUN", "rate = { kind = \"trace\", file = \"t.csv\", end = \"hold\" }"),
        ("cont CLEAN", "rate = { kind = \"trace\", file = \"t.csv\", end = \"clear\" }"),
        ("seed 18446744073709551615", "seed = 9223372036854775807"),
        ("seed 052", "seed = 52"),
    ] {
        let options = command(&format!("tc qdisc add dev eth0 root theaterq {options}"));
        has(&import(Format::Theaterq, &[trace.clone(), options]).unwrap(), &[line]);
    }
}

/// A limit of 0 is none, and greater than any other.
#[test]
fn no_limit_of_the_queue() {
    let queue = |text: &str| {
        let imported = import(Format::Theaterq, &[file("t.csv", text)]).unwrap();
        has(&imported, &["queue = \"unlimited\""]);
        imported
    };
    silent(&queue("10000,20000000,1000000,0,0\n"), &["LIMIT"]);
    tells(&queue("1000,0,1000000,0,0\n1000,0,1000000,0,100\n"), &["t.csv: LIMIT"]);
    tells(&queue("1000,0,1000000,0,100\n1000,0,1000000,0,0\n"), &["t.csv: LIMIT"]);
}

/// Routes and queues are later additions to the extended format.
#[test]
fn eight_columns() {
    let trace = file("x.csv", "1000,5,7,0,0,10,3,4\n");
    let imported = import(Format::Theaterq, &[trace]).unwrap();
    has(&imported, &["queue = \"10 packets\""]);
    tells(&imported, &["JITTER", "DUP_PROB", "x.csv: RATE"]);
    silent(&imported, &["ROUTE_ID", "QUEUE_ID"]);
}

/// A trace that a link can't play is refused with its line, and not only when the scenario is parsed.
#[test]
fn traces_that_can_not_be_played() {
    for (text, wanted) in [
        ("1000,0,1000000,0,10\n0,0,1000000,0,10\n", "line 2: KEEP is 0"),
        ("# KEEP,LATENCY\n1000,0,100,0,10\n", "line 2: RATE is 100"),
    ] {
        let error = import(Format::Theaterq, &[file("z.csv", text)]).unwrap_err().to_string();
        assert!(error.contains(wanted) && error.ends_with("correct z.csv"), "{error}");
    }
}

/// A packet waits, is transmitted, and is then delayed: one link does it in this order.
#[test]
fn the_delay_comes_after_the_rate() {
    let trace = file("t.csv", "1000,20000000,1000000,0,50\n");
    let imported = import(Format::Theaterq, &[trace]).unwrap();
    assert_eq!(imported.scenario.matches("[[link]]").count(), 1, "{}", imported.scenario);
    let link = imported.scenario.split("[[link]]").nth(1).unwrap();
    for key in ["loss = ", "rate = ", "queue = \"50 packets\"", "delay = "] {
        assert!(link.contains(key), "{key} in {link}");
    }
}
