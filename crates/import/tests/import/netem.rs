//! netem: its options, commands of tc, and output of tc.

use crate::{from, has, plan, refused, silent, tells, way};
use longwire_import::Format;

/// Options, and the resulting line. tc-netem(8); percentages may lack their sign (parse_percent of tc).
pub const NETEM: [(&str, &str); 36] = [
    ("delay 100ms", "delay = \"100 ms\""),
    ("latency 1.5s", "delay = \"1.5 s\""),
    ("delay 250", "delay = \"250 us\""),
    (
        "delay 100ms 20ms",
        "delay = { kind = \"jitter\", delay = \"100 ms\", jitter = \"20 ms\", distribution = \"uniform\", \
         order = \"reorder\" }",
    ),
    (
        "delay 100ms 20ms 25% distribution paretonormal",
        "delay = { kind = \"jitter\", delay = \"100 ms\", jitter = \"20 ms\", distribution = \
         \"pareto-normal\", correlation = \"25 %\", order = \"reorder\" }",
    ),
    (
        "delay 100ms 20ms distribution mine",
        "delay = { kind = \"jitter\", delay = \"100 ms\", jitter = \"20 ms\", distribution = \"mine.dist\", \
         order = \"reorder\" }",
    ),
    ("loss 0.1%", "loss = \"0.1 %\""),
    ("loss random 1", "loss = \"1 %\""),
    ("drop 1% 25%", "loss = { kind = \"correlated\", probability = \"1 %\", correlation = \"25 %\" }"),
    ("loss 1% ecn", "loss = { kind = \"independent\", probability = \"1 %\", ecn = \"yes\" }"),
    (
        "loss gemodel 1% 25%",
        "loss = { kind = \"gilbert-elliott\", p = \"1 %\", r = \"25 %\", h = \"0 %\", k = \"100 %\" }",
    ),
    (
        "loss gemodel 1%",
        "loss = { kind = \"gilbert-elliott\", p = \"1 %\", r = \"99 %\", h = \"0 %\", k = \"100 %\" }",
    ),
    (
        "loss gemodel 1% 10% 70% 0.1%",
        "loss = { kind = \"gilbert-elliott\", p = \"1 %\", r = \"10 %\", h = \"30 %\", k = \"99.9 %\" }",
    ),
    (
        "loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%",
        "loss = { kind = \"gilbert-elliott\", p = \"1 %\", r = \"10 %\", h = \"30 %\", k = \"99.9 %\" }",
    ),
    (
        "loss state 2%",
        "loss = { kind = \"markov\", p13 = \"2 %\", p31 = \"98 %\", p32 = \"0 %\", p23 = \"100 %\", p14 = \
         \"0 %\" }",
    ),
    (
        "loss state 2% 50% 5% 40% 1% ecn",
        "loss = { kind = \"markov\", p13 = \"2 %\", p31 = \"50 %\", p32 = \"5 %\", p23 = \"40 %\", p14 = \"1 \
         %\", ecn = \"yes\" }",
    ),
    ("corrupt 0.2%", "bit-error = { kind = \"per-packet\", probability = \"0.2 %\" }"),
    (
        "duplicate 1% 10%",
        "duplicate = { kind = \"independent\", probability = \"1 %\", correlation = \"10 %\", where = \
         \"queue\" }",
    ),
    (
        "delay 10ms reorder 25% 50% gap 5",
        "reorder = { kind = \"independent\", probability = \"25 %\", correlation = \"50 %\", gap = \"5\" }",
    ),
    ("dup 5%", "duplicate = { kind = \"independent\", probability = \"5 %\", where = \"queue\" }"),
    ("delay 10ms gap 5", "reorder = { kind = \"independent\", probability = \"100 %\", gap = \"5\" }"),
    ("rate 1mbit", "rate = \"1 Mbit/s\""),
    ("rate 100kbps", "rate = \"800 kbit/s\""),
    ("rate 1mbit limit 50", "queue = \"50 packets\""),
    // tc counts the Ethernet header, and the overhead on top of it.
    ("rate 1mbit 20", "overhead = \"34\""),
    ("rate 1mbit packetoverhead -14", "overhead = \"0\""),
    ("rate 1mbit 10 48 5", "framing = \"atm\""),
    // Here the trailer of 8 bytes is added: ⌈(packet + 14 + 10) / 48⌉ cells.
    ("rate 1mbit 10 48 5", "overhead = \"16\""),
    // tc reads a limit as a size, and a seed in any base.
    ("rate 1mbit limit 10k", "queue = \"10240 packets\""),
    ("delay 1ms seed 0x2a", "seed = 42"),
    ("delay 1ms seed 0xffffffffffffffff", "seed = 9223372036854775807"),
    ("delay 1ms seed 052", "seed = 42"),
    (
        "slot 10ms 20ms packets 5",
        "rate = { kind = \"slotted\", rate = \"unlimited\", min = \"10 ms\", max = \"20 ms\", packets = \
         \"5\" }",
    ),
    // More than 31 bits of nanoseconds, which kernels without the fixes of 2026 do not store.
    (
        "slot 3s 5s packets 5",
        "rate = { kind = \"slotted\", rate = \"unlimited\", min = \"3 s\", max = \"5 s\", packets = \"5\" }",
    ),
    (
        "slot 800us bytes 3000 rate 1mbit",
        "rate = { kind = \"slotted\", rate = \"1 Mbit/s\", min = \"800 us\", max = \"800 us\", bytes = \
         \"3000\" }",
    ),
    ("delay 1ms seed 42", "seed = 42"),
];

#[test]
fn netem_options_one_by_one() {
    for (options, line) in NETEM {
        for command in [
            options.to_owned(),
            format!("netem {options}"),
            format!("tc qdisc add dev eth0 root netem {options}"),
        ] {
            has(&from(Format::Netem, &command), &[line]);
        }
    }
}

#[test]
fn netem_delays_before_it_sends() {
    let imported =
        from(Format::Netem, "sudo tc qdisc add dev eth1 root handle 1: netem delay 30ms rate 2mbit limit 20");
    has(
        &imported,
        &[
            "name = \"wire\"",
            "delay = \"30 ms\"",
            "rate = \"2 Mbit/s\"",
            "framing = \"ip\"",
            "overhead = \"14\"",
        ],
    );
    tells(&imported, &["limit 20: it counts packets on their way"]);
    let plan = plan(&imported);
    assert_eq!(way(&plan, 0, 1), ["eth1-1", "eth1-2"]);
    assert!(way(&plan, 1, 0).is_empty(), "tc shapes what leaves an interface");
    assert!(plan.notes.is_empty(), "{}", plan.notes[0]);
}

#[test]
fn a_script_of_tc() {
    let script = "#!/bin/sh\nset -e\n\
        tc qdisc del dev eth0 root\n\
        tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 32kbit latency 400ms\n\
        tc qdisc add dev eth0 parent 1:1 handle 10: netem delay 20ms loss 1%\n\
        tc qdisc add dev eth1 root netem delay 5ms limit 10\n\
        tc class add dev eth0 parent 1: classid 1:12 htb rate 1mbit\n\
        tc filter add dev eth0 parent 1: u32 match ip dst 10.0.0.1\n\
        tc qdisc add dev eth2 root netem delay 1ms\n\
        tc qdisc add dev eth3 root fq_codel\n";
    let imported = from(Format::Netem, script);
    // 1 Mbit/s · 400 ms + 4096 B = 54096 B may wait.
    has(
        &imported,
        &[
            "rate = { kind = \"token-bucket\", rate = \"1 Mbit/s\", burst = \"4 KiB\" }",
            "queue = \"54.096 kB\"",
        ],
    );
    tells(&imported, &["line 6: limit 10", "line 7: tc class", "line 8: tc filter", "dev eth2", "fq_codel"]);
}

#[test]
fn what_tc_shows() {
    let shown = "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 100ms  20ms loss 1% 25% rate \
        1Mbit seed 7\n\
                 qdisc noqueue 0: dev lo root refcnt 2\n";
    let imported = from(Format::Netem, shown);
    has(
        &imported,
        &[
            "rate = \"1 Mbit/s\"",
            "seed = 7",
            "loss = { kind = \"correlated\", probability = \"1 %\", correlation = \"25 %\" }",
        ],
    );
    tells(&imported, &["line 2: qdisc noqueue", "seed"]);
}

/// Abbreviations as in iproute2's `matches`: the first option with this beginning.
#[test]
fn abbreviations_are_those_of_tc() {
    let table = [
        ("d 10ms", "delay = \"10 ms\""),
        ("la 10ms", "delay = \"10 ms\""),
        ("lo 1%", "loss = \"1 %\""),
        ("dr 1%", "loss = \"1 %\""),
        ("dup 1%", "duplicate = { kind = \"independent\", probability = \"1 %\", where = \"queue\" }"),
        (
            "del 20ms 2ms dist normal",
            "delay = { kind = \"jitter\", delay = \"20 ms\", jitter = \"2 ms\", distribution = \"normal\", \
             order = \"reorder\" }",
        ),
        ("delay 10ms r 25%", "reorder = { kind = \"independent\", probability = \"25 %\" }"),
        ("ra 1mbit l 50", "queue = \"50 packets\""),
        ("co 1%", "bit-error = { kind = \"per-packet\", probability = \"1 %\" }"),
        ("delay 1ms s 7", "seed = 7"),
    ];
    for (options, line) in table {
        has(&from(Format::Netem, &format!("tc q a dev eth0 root netem {options}")), &[line]);
    }
    // A word that is no beginning of an option is refused.
    for wrong in ["dely 10ms", "losss 1%", "duplicates 1%", "j 10ms"] {
        refused(Format::Netem, &format!("tc qdisc add dev eth0 root netem {wrong}"), "netem has no option");
    }
    let bucket = "tc qdisc a dev eth0 root tbf rate 1mbit bu 32kbit lat 400ms";
    has(&from(Format::Netem, bucket), &["queue = \"54.096 kB\""]);
}

/// netem averages each draw with the last; with 1% 25% next to nothing is lost.
#[test]
fn correlations_are_reported() {
    let imported = from(
        Format::Netem,
        "delay 100ms 20ms 25% loss 1% 25% duplicate 2% 5% corrupt 1% 10% reorder 25% 50%",
    );
    tells(
        &imported,
        &[
            "loss 1% 25%: netem's correlation, which tc-netem(8) long called deprecated",
            "for bursts write loss gemodel",
            "duplicate 2% 5%: netem's",
            "corrupt 1% 10%: netem's",
            "reorder 25% 50%: netem's",
            "delay … 25%: netem's correlation narrows the jitter",
        ],
    );
    assert!(from(Format::Netem, "delay 10ms 1ms loss 1% duplicate 1%").notes.is_empty());
}

/// Of the commands for one interface the last is used, with what the kernel keeps of earlier ones.
#[test]
fn later_commands_for_one_interface() {
    let script = "tc qdisc add dev eth0 root netem rate 1mbit delay 10ms loss 1%\nsleep 10\n\
                  tc qdisc change dev eth0 root netem delay 50ms\ntc qdisc del dev eth0 root\n";
    let imported = from(Format::Netem, script);
    has(&imported, &["delay = \"50 ms\"", "rate = \"1 Mbit/s\""]);
    assert!(!imported.scenario.contains("\nloss"), "{}", imported.scenario);
    tells(
        &imported,
        &[
            "line 2: sleep 10: what follows it comes 10 s after the beginning there",
            "line 3: tc qdisc change dev eth0 root netem delay 50ms: it keeps these as set before, as in \
             the kernel: rate",
            "line 3: tc qdisc change dev eth0 root netem delay 50ms: it is taken in place of line 1",
            "an [[at]] event with time, link = \"eth0\"",
            "line 4: tc qdisc del dev eth0 root: not carried over: the link keeps what line 3 sets",
        ],
    );
    // A new qdisc keeps nothing, and an identical one needs no note.
    let anew = "tc qdisc add dev eth0 root netem rate 1mbit\ntc qdisc del dev eth0 root\n\
        tc qdisc add dev eth0 root netem delay 5ms";
    let imported = from(Format::Netem, anew);
    assert!(!imported.scenario.contains("\nrate = \"1 Mbit/s\"\nframing"), "{}", imported.scenario);
    tells(&imported, &["line 3", "in place of line 1"]);
    let same = "tc qdisc change dev eth0 root netem delay 5ms || tc qdisc add dev eth0 root netem delay 5ms";
    assert!(from(Format::Netem, same).notes.is_empty());
    let much = "tc qdisc replace dev eth0 root netem delay 1ms\n".repeat(5000);
    has(&from(Format::Netem, &much), &["delay = \"1 ms\""]);
}

/// The kernel keeps correlations until a command has one, and does not reorder without `reorder`.
#[test]
fn a_change_keeps_what_the_kernel_keeps() {
    let script = |options: &[&str]| {
        let verbs = std::iter::once("add").chain(std::iter::repeat("change"));
        let line = |(verb, options)| format!("tc qdisc {verb} dev eth0 root netem {options}\n");
        from(Format::Netem, &verbs.zip(options).map(line).collect::<String>())
    };
    let kept = "loss = { kind = \"correlated\", probability = \"2 %\", correlation = \"25 %\" }";
    let imported = script(&["loss 1% 25%", "loss 2%"]);
    has(&imported, &[kept]);
    tells(&imported, &["line 2: tc qdisc change dev eth0 root netem loss 2%: it keeps", "correlation"]);
    has(&script(&["loss 1% 25%", "delay 10ms", "loss 2%"]), &[kept]);
    has(&script(&["loss 1% 25%", "loss 2% delay 10ms 1ms 5%"]), &["loss = \"2 %\""]);
    let imported = script(&["delay 10ms reorder 25%", "delay 20ms"]);
    has(&imported, &["delay = \"20 ms\""]);
    assert!(!imported.scenario.contains("\nreorder"), "{}", imported.scenario);
}

/// `adsl` is another word for `atm` (iproute2, `get_linklayer`).
#[test]
fn link_layers_of_tbf() {
    let bucket = "tc qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms linklayer";
    for (layer, framing) in [("atm", "atm"), ("adsl", "atm"), ("ethernet", "ip"), ("e", "ip")] {
        let imported = from(Format::Netem, &format!("{bucket} {layer}"));
        has(&imported, &[&*format!("framing = \"{framing}\"")]);
    }
    refused(Format::Netem, &format!("{bucket} token"), "linklayer: \"token\" can't be understood");
}

/// An `add` does not take the place of what is there; whether it is there, a branch leaves open.
#[test]
fn adds_that_tc_refuses_are_left_out() {
    let add = "tc qdisc add dev eth0 root netem";
    let imported = from(Format::Netem, &format!("{add} delay 10ms\n{add} delay 20ms\n"));
    has(&imported, &["delay = \"10 ms\""]);
    let refused = "tc refuses this (File exists), and line 1 stays: write replace";
    tells(&imported, &[&*format!("line 2: {add} delay 20ms: {refused}")]);
    // What the first one was changed to stays, too.
    let change = "tc qdisc change dev eth0 root netem delay 15ms";
    let imported = from(Format::Netem, &format!("{add} delay 10ms\n{change}\n{add} delay 20ms\n"));
    has(&imported, &["delay = \"15 ms\""]);
    assert!(from(Format::Netem, &format!("{add} delay 10ms\n{add} delay 10ms\n")).notes.is_empty());
    let parent = "tc qdisc add dev eth0 parent 1:1 handle 10: netem delay";
    let imported = from(
        Format::Netem,
        &format!(
            "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 32kbit latency 400ms\n\
             {parent} 10ms\n{parent} 20ms\n"
        ),
    );
    has(&imported, &["delay = \"10 ms\""]);
    tells(&imported, &["line 3: tc qdisc add dev eth0 parent 1:1", "line 2 stays"]);
    for taken in [
        format!("case $1 in\n a) {add} delay 10ms ;;\n b) {add} delay 20ms ;;\nesac\n"),
        format!("{add} delay 10ms\ntc qdisc replace dev eth0 root netem delay 20ms\n"),
        format!("tc qdisc change dev eth0 root netem delay 10ms\n{add} delay 20ms\n"),
        format!("{add} delay 10ms\ntc qdisc del dev eth0 root\n{add} delay 20ms\n"),
        "netem delay 10ms\nnetem delay 20ms\n".into(),
    ] {
        let imported = from(Format::Netem, &taken);
        has(&imported, &["delay = \"20 ms\""]);
        silent(&imported, &["File exists"]);
    }
}

/// What a script prints is not executed, and a message is not always a command.
#[test]
fn messages_are_no_commands() {
    let script = "echo \"tc qdisc add dev eth0 root netem delay 300ms\"\n\
        die() { logger \"tc qdisc add failed\"; exit 1; }\n\
        command -v tc || fail \"there isn't a tc\"\ntc qdisc add dev eth0 root netem delay 10ms || die\n";
    let imported = from(Format::Netem, script);
    has(&imported, &["delay = \"10 ms\""]);
    tells(&imported, &["line 1: echo tc qdisc add dev eth0 root netem delay 300ms: it is printed"]);
    silent(&imported, &["File exists"]);
}

#[test]
fn netem_refuses_what_tc_refuses() {
    for (options, wanted) in [
        ("delay", "delay has no value; write delay 100ms"),
        ("delay fast", "\"fast\" can't be understood"),
        ("delay 200s", "can't be understood"),
        ("loss 101%", "can't be understood"),
        ("reorder 25%", "reorder needs a delay"),
        ("delay 10ms distribution normal", "distribution needs a delay and a jitter"),
        ("delay 10ms dely 5ms", "netem has no option \"dely\""),
        ("rate 5%", "can't be understood"),
        ("rate 100bit", "no link can have a rate of 100 bit/s"),
        ("slot 20ms 10ms", "the longest is below the shortest"),
        ("loss 1% drop 2%", "netem takes one loss"),
        ("delay 1ms ecn", "ecn needs a loss"),
    ] {
        refused(Format::Netem, &format!("tc qdisc add dev eth0 root netem {options}"), wanted);
    }
    refused(Format::Netem, "tc qdisc add root netem delay 1ms", "names no interface");
    let bucket = "tc qdisc add dev eth0 root tbf rate 1mbit";
    refused(Format::Netem, bucket, "tbf needs a burst");
    refused(Format::Netem, &format!("{bucket} burst 32kbit"), "tbf needs a limit, or a latency");
    let far = format!("{bucket} burst 32kbit latency 1s overhead 9223372036854775807");
    tells(&from(Format::Netem, &far), &["overhead 9223372036854775807: a link adds 0 to 1000 bytes"]);
    refused(Format::Netem, "echo hello", "there is no netem");
    refused(Format::Netem, "a\ntc qdisc add dev eth0 root netem delay x", "line 2: delay");
}

/// netem sends an early packet without delay and rate: one link, whose delay precedes its queue.
#[test]
fn what_is_reordered_passes_by_the_rate() {
    let imported = from(Format::Netem, "delay 10ms reorder 25% gap 5 loss 1% rate 1mbit limit 200");
    has(
        &imported,
        &[
            "delay = { kind = \"constant\", delay = \"10 ms\", before = \"queue\" }",
            "reorder = { kind = \"independent\", probability = \"25 %\", gap = \"5\", past = \"link\" }",
            "queue = \"200 packets\"",
        ],
    );
    silent(&imported, &["reorder"]);
    assert_eq!(plan(&imported).links.len(), 1, "{}", imported.scenario);
    let imported = from(Format::Netem, "delay 10ms 1ms reorder 25% slot 5ms");
    has(
        &imported,
        &["delay = { kind = \"jitter\", delay = \"10 ms\", jitter = \"1 ms\", distribution = \"uniform\", \
             order = \"keep\", before = \"queue\" }"],
    );
    // Without a rate there is nothing to bypass, and without reordering no packet that does.
    let imported = from(Format::Netem, "delay 10ms reorder 25%");
    has(&imported, &["delay = \"10 ms\"", "reorder = { kind = \"independent\", probability = \"25 %\" }"]);
    let imported = from(Format::Netem, "delay 10ms rate 1mbit");
    has(&imported, &["delay = \"10 ms\""]);
    assert_eq!(plan(&imported).links.len(), 2, "{}", imported.scenario);
}
