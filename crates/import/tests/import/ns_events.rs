//! Effects of Emulab's events on pipes (event/delay-agent/callback.c), and bandwidths of 0.

use crate::ns::{events, row};
use crate::{from, has, lines, plan, silent, tells};
use longwire_import::{Format, ImportedScenario};

const FORWARD: &str = "time = \"1 s\", link = \"l.forward\", ";
const BACKWARD: &str = "time = \"1 s\", link = \"l.backward\", ";

/// An event of Emulab's at 1 s for the link l of 10 Mbit/s, after this set-up.
fn event(before: &str, what: &str) -> ImportedScenario {
    row("source tb_compat.tcl", &format!("{before}\n$ns at 1.0 \"{what}\""))
}

/// A LIMIT clears the flag for bytes of pipe0; with both pipes it then gets the flags of pipe1.
#[test]
fn a_limit_counts_packets() {
    const THERE: &str = "[[$ns link $a $b] queue] set queue-in-bytes_ 1";
    const BACK: &str = "[[$ns link $b $a] queue] set queue-in-bytes_ 1";
    let both = format!("{THERE}\n{BACK}");
    let table: [(&str, &str, [&str; 2], &str); 9] = [
        ("", "$l modify LIMIT=75", ["75 packets", "75 packets"], ""),
        (
            THERE,
            "$l modify LIMIT=75",
            ["75 packets", "75 packets"],
            "LIMIT for packets, whatever queue-in-bytes_",
        ),
        (
            THERE,
            "$l modify LIMIT=75 PIPE=pipe0",
            ["75 packets", ""],
            "LIMIT for packets, whatever queue-in-bytes_",
        ),
        (THERE, "$l modify PIPE=pipe1 LIMIT=75", ["", "75 packets"], ""),
        (
            &both,
            "$l modify LIMIT=7500",
            ["7.5 kB", "7.5 kB"],
            "goes on with the flags of pipe1: drop-tail, in bytes",
        ),
        (
            &both,
            "$l modify PIPE=pipe1 LIMIT=75",
            ["", "75 packets"],
            "LIMIT for packets, whatever queue-in-bytes_",
        ),
        ("", "$l modify LIMIT=7500 QUEUE-IN-BYTES=1", ["7.5 kB", "7.5 kB"], "Emulab takes limit_ for bytes"),
        (
            "set q [[$ns link $a $b] queue]\n$q set queue-in-bytes_ 1",
            "$q set limit_ 75",
            ["75 packets", ""],
            "LIMIT for packets",
        ),
        (
            BACK,
            "[[$ns link $a $b] queue] set queue-in-bytes_ 1",
            ["50 B", ""],
            "Emulab takes limit_ for bytes",
        ),
    ];
    for (before, what, [there, back], told) in table {
        let imported = event(before, what);
        let mut wanted = Vec::new();
        for (event, limit) in
            [(FORWARD, there), (BACKWARD, back)].into_iter().filter(|(_, limit)| !limit.is_empty())
        {
            wanted.push(format!("{event}queue = \"{limit}\""));
        }
        assert_eq!(events(&imported), wanted, "{before}\n{what}");
        if told.is_empty() {
            silent(&imported, &["LIMIT="]);
        } else {
            tells(&imported, &[told]);
        }
        if there == "75 packets" {
            silent(&imported, &["limit_ 75:"]);
        }
    }
}

/// If the queue is in bytes so are dummynet's thresholds, until a LIMIT comes.
#[test]
fn thresholds_in_bytes() {
    let set_up = "set r [$ns duplex-link $a $c 1Mb 1ms RED]\nset q [[$ns link $a $c] queue]\n\
        $q set queue-in-bytes_ 1\n$q set gentle_ 1\n\
                  $q set limit_ 60000\n$q set thresh_ 10000\n$q set maxthresh_ 30250";
    let imported = event(set_up, "$r modify LIMIT=60 THRESH=5 MAXTHRESH=20");
    let made = "forward = \
        { rate = \"1 Mbit/s\", delay = \"1 ms\", queue = { kind = \"red\", limit = \"60 kB\", min = \"20\", \
        max = \"61\", max-p = \"10 %\", weight = \"0.002\", gentle = \"yes\", mean-packet = \"500 B\", unit \
        = \"bytes\" } }";
    has(&imported, &[made]);
    tells(
        &imported,
        &[
            "thresh_ 10000, maxthresh_ 30250: with a queue in bytes so are Emulab's thresholds; here they \
             are packets of 500 B: 20 and 61",
            "LIMIT=60: Emulab's delay agent takes a LIMIT for packets, but for both pipes goes on with the \
             flags of pipe1: RED, in packets",
        ],
    );
    let after = "queue = \
        { kind = \"red\", limit = \"60 packets\", min = \"5\", max = \"20\", max-p = \"10 %\", weight = \
        \"0.002\", gentle = \"no\", mean-packet = \"500 B\" }";
    let each = ["forward", "backward"].map(|way| format!("time = \"1 s\", link = \"r.{way}\", {after}"));
    assert_eq!(events(&imported), each);
}

/// pipe0 is the direction from the first node, pipe1 the reverse.
#[test]
fn an_event_for_one_pipe() {
    let table: [(&str, &[&str]); 5] = [
        ("PIPE=pipe0 DELAY=9", &["time = \"1 s\", link = \"l.forward\", delay = \"9 ms\""]),
        (
            "DELAY=9 PLR=0.1 PIPE=pipe1",
            &["time = \"1 s\", link = \"l.backward\", delay = \"9 ms\", loss = \"10 %\""],
        ),
        ("BANDWIDTH=500 PIPE=pipe1", &["time = \"1 s\", link = \"l.backward\", rate = \"500 kbit/s\""]),
        ("PIPE=130 DELAY=9", &[]),
        ("BWQUANTUM=5", &[]),
    ];
    for (parameters, wanted) in table {
        assert_eq!(events(&event("", &format!("$l modify {parameters}"))), wanted, "{parameters}");
    }
    tells(&event("", "$l modify PIPE=130 DELAY=9"), &["at 1 s: PIPE=130: which direction"]);
    tells(&event("", "$l modify BWQUANTUM=5"), &["BWQUANTUM=5: of an event's parameters"]);
}

/// All parameters of one event are one change for each direction.
#[test]
fn one_event_is_one_change() {
    let red = event("", "$l modify BANDWIDTH=2000 LIMIT=60 THRESH=10 MAXTHRESH=20 LINTERM=20 Q_WEIGHT=0.01");
    let wanted = "rate = \"2 Mbit/s\", queue = \"60 packets\"";
    assert_eq!(events(&red), [format!("{FORWARD}{wanted}"), format!("{BACKWARD}{wanted}")]);
    let red = event(
        "set r [$ns duplex-link $a $c 1Mb 1ms RED]",
        "$r modify LIMIT=60 THRESH=10 MAXTHRESH=20 LINTERM=20 Q_WEIGHT=0.01",
    );
    let block = "queue = \
        { kind = \"red\", limit = \"60 packets\", min = \"10\", max = \"20\", max-p = \"5 %\", weight = \
        \"0.01\", gentle = \"no\", mean-packet = \"500 B\" }";
    let each = ["forward", "backward"].map(|way| format!("time = \"1 s\", link = \"r.{way}\", {block}"));
    assert_eq!(events(&red), each);
    // Several commands at one time: the last one wins.
    let several = row(
        "",
        "$ns at 1.0 \"$ns bandwidth $a $b 3Mb; $ns delay $a $b 4ms\"\n$ns at 1.0 \"$ns bandwidth $a $b 5Mb\"",
    );
    assert_eq!(events(&several), [format!("{FORWARD}delay = \"4 ms\", rate = \"5 Mbit/s\"")]);
}

/// A LAN's cables have two pipes each; an event applies to both, but a queue's parameters only to the one
/// towards the LAN.
#[test]
fn events_of_lans() {
    let script = |what: &str| {
        let imported = from(
            Format::Ns,
            &format!(
                "source tb_compat.tcl\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
                 set lan [$ns make-lan \"$a $b\" 10Mb 8ms]\n$ns at 1.0 \"$lan {what}\"\n$ns run\n"
            ),
        );
        plan(&imported);
        imported
    };
    let of = |node: &str, way: &str, settings: &str| {
        format!("time = \"1 s\", link = \"{node}-lan.{way}\", {settings}")
    };
    let each = |settings: &str| {
        let nodes = ["a", "b"].map(|node| ["forward", "backward"].map(|way| of(node, way, settings)));
        nodes.concat()
    };
    let delayed = script("modify DELAY=20");
    assert_eq!(events(&delayed), each("delay = \"20 ms\""));
    assert_eq!(lines(&delayed).iter().filter(|line| **line == "delay = \"4 ms\"").count(), 2);
    tells(
        &delayed,
        &[
            "DELAY=20: Emulab's delay agent delays by all of it on each cable",
            "it is 40 ms from node to node",
        ],
    );
    tells(&script("delay 20"), &["it is 40 ms from node to node"]);
    let one = script("modify PIPE=pipe0 DELAY=20");
    assert_eq!(
        events(&one),
        [of("a", "forward", "delay = \"20 ms\""), of("b", "forward", "delay = \"20 ms\"")]
    );
    silent(&one, &["DELAY"]);
    let lossy = script("modify PLR=0.1");
    assert_eq!(events(&lossy), each("loss = \"10 %\""));
    tells(&lossy, &["PLR=0.1: Emulab's delay agent loses so many on each cable"]);
    let queued = script("modify LIMIT=75");
    assert_eq!(
        events(&queued),
        [of("a", "forward", "queue = \"75 packets\""), of("b", "forward", "queue = \"75 packets\"")]
    );
    tells(
        &queued,
        &["LIMIT=75: to a LAN Emulab's delay agent sets the queues of the cables on the way to it"],
    );
    let back = script("modify PIPE=pipe1 LIMIT=75 BANDWIDTH=500");
    assert_eq!(
        events(&back),
        ["a", "b"].map(|node| of(node, "backward", "rate = \"500 kbit/s\", queue = \"75 packets\""))
    );
}

/// dummynet treats 0 as no limit; in ns-2 a packet then takes for ever (delay.h).
#[test]
fn a_bandwidth_of_nothing() {
    let unlimited = event("", "$l modify BANDWIDTH=0");
    assert_eq!(events(&unlimited), [FORWARD, BACKWARD].map(|event| format!("{event}rate = \"unlimited\"")));
    tells(&unlimited, &["a bandwidth of 0: dummynet, and so Emulab, sends without a limit"]);
    let outage = row("", "$ns at 1.0 \"$ns bandwidth $a $b 0\"\n$ns at 2.0 \"$ns bandwidth $a $b 1Mb\"");
    assert_eq!(events(&outage)[0], format!("{FORWARD}rate = \"0\""));
    tells(&outage, &["a bandwidth of 0: in ns-2 the next packet takes for ever"]);
    let made = |first: &str, kind: &str| {
        let imported = from(
            Format::Ns,
            &format!(
                "{first}\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
                 $ns simplex-link $a $b 0 1ms {kind}\n"
            ),
        );
        plan(&imported);
        lines(&imported)
            .iter()
            .filter(|line| line.starts_with("rate ="))
            .map(|line| line.to_string())
            .collect::<Vec<_>>()
    };
    // The last one belongs to the traffic.
    assert_eq!(made("", "DropTail"), ["rate = \"0\"", "rate = \"1 Mbit/s\""]);
    assert_eq!(made("", "RED"), ["rate = \"0\"", "rate = \"1 Mbit/s\""]);
    assert_eq!(made("source tb_compat.tcl", "RED"), ["rate = \"1 Mbit/s\""]);
}

/// `rtmodel-at` is read while links are still being set up: what comes after it is part of the set-up.
#[test]
fn a_switch_leaves_the_set_up_open() {
    let lossy = row(
        "",
        "set em [new ErrorModel]\n$em set rate_ 0.01\n$ns lossmodel $em $a $b\n\
         $ns rtmodel-at 1.0 down $a $b\n$em set rate_ 0.5\n$ns at 3.0 \"$em set rate_ 0.01\"",
    );
    let (down, set) = ("state = \"down\"", "time = \"3 s\", link = \"l.forward\", loss = \"1 %\"");
    let expected = [format!("{FORWARD}{down}"), format!("{BACKWARD}{down}"), set.to_owned()];
    assert_eq!(events(&lossy), expected, "{}", lossy.scenario);
    let red = from(
        Format::Ns,
        "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns simplex-link $a $b 10Mb 10ms RED\n\
         set q [[$ns link $a $b] queue]\n$ns rtmodel-at 1.0 down $a $b\n$ns queue-limit $a $b 20\n\
         $ns at 5 \"$q set maxthresh_ 20\"\n",
    );
    let changed = events(&red).swap_remove(1);
    assert!(changed.contains("limit = \"10 kB\", min = \"6\", max = \"20\""), "{changed}");
}

/// Down at 2.5, 5.5 and 8.5 s, up at 3.5, 6.5 and 9.5 s.
#[test]
fn traffic_outlasts_repeated_events() {
    has(&row("", "$ns rtmodel Deterministic {0.5 2.0 1.0 9.5} $b $c"), &["times = 3", "for = \"15 s\""]);
}
