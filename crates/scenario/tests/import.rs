//! What other tools' users have becomes scenarios that are read, and that mean the same.

use longwire_scenario::import::{Format, Imported, Source, import};
use longwire_scenario::{Plan, parse};
use std::path::Path;

fn from(format: Format, text: &str) -> Imported {
    let source = Source { file: None, text: text.into() };
    import(format, &[source]).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The lines of the scenario that are no comments.
fn lines(imported: &Imported) -> Vec<&str> {
    imported.scenario.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect()
}

fn plan(imported: &Imported) -> Plan {
    parse("imported.toml", &imported.scenario)
        .unwrap_or_else(|error| panic!("{error}\nin\n{}", imported.scenario))
}

fn has(imported: &Imported, wanted: &[&str]) {
    for wanted in wanted {
        assert!(lines(imported).contains(wanted), "no line {wanted} in\n{}", imported.scenario);
    }
}

fn tells(imported: &Imported, wanted: &[&str]) {
    for wanted in wanted {
        let told = imported.notes.iter().any(|note| note.to_string().contains(wanted));
        assert!(told, "nothing about {wanted} in {:#?}", imported.notes);
        assert!(imported.scenario.contains(&format!("# - {}", imported.notes[0])), "{}", imported.scenario);
    }
}

fn refused(format: Format, text: &str, wanted: &str) {
    let source = Source { file: None, text: text.into() };
    let error = import(format, &[source]).unwrap_err().to_string();
    assert!(error.contains(wanted), "{text}: {error}");
}

/// Packets take these links from host to host, by the order of the hosts in the file.
fn way(plan: &Plan, from: u16, to: u16) -> Vec<&str> {
    let links = plan.pair_route(from, to).unwrap();
    links.iter().map(|link| &*plan.links[*link as usize].name).collect()
}

/// Options, and the line they make. tc-netem(8); percentages may lack their sign (parse_percent of tc).
const NETEM: [(&str, &str); 29] = [
    ("delay 100ms", "delay = \"100 ms\""),
    ("latency 1.5s", "delay = \"1.5 s\""),
    ("delay 250", "delay = \"250 us\""),
    (
        "delay 100ms 20ms",
        "delay = { kind = \"jitter\", delay = \"100 ms\", jitter = \"20 ms\", distribution = \"uniform\", order = \"reorder\" }",
    ),
    (
        "delay 100ms 20ms 25% distribution paretonormal",
        "delay = { kind = \"jitter\", delay = \"100 ms\", jitter = \"20 ms\", distribution = \"pareto-normal\", correlation = \"25 %\", order = \"reorder\" }",
    ),
    (
        "delay 100ms 20ms distribution mine",
        "delay = { kind = \"jitter\", delay = \"100 ms\", jitter = \"20 ms\", distribution = \"mine.dist\", order = \"reorder\" }",
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
        "loss = { kind = \"markov\", p13 = \"2 %\", p31 = \"98 %\", p32 = \"0 %\", p23 = \"100 %\", p14 = \"0 %\" }",
    ),
    (
        "loss state 2% 50% 5% 40% 1% ecn",
        "loss = { kind = \"markov\", p13 = \"2 %\", p31 = \"50 %\", p32 = \"5 %\", p23 = \"40 %\", p14 = \"1 %\", ecn = \"yes\" }",
    ),
    ("corrupt 0.2%", "bit-error = { kind = \"per-packet\", probability = \"0.2 %\" }"),
    (
        "duplicate 1% 10%",
        "duplicate = { kind = \"independent\", probability = \"1 %\", correlation = \"10 %\", where = \"queue\" }",
    ),
    (
        "delay 10ms reorder 25% 50% gap 5",
        "reorder = { kind = \"independent\", probability = \"25 %\", correlation = \"50 %\", gap = \"5\" }",
    ),
    ("delay 10ms gap 5", "reorder = { kind = \"independent\", probability = \"100 %\", gap = \"5\" }"),
    ("rate 1mbit", "rate = \"1 Mbit/s\""),
    ("rate 100kbps", "rate = \"800 kbit/s\""),
    ("rate 1mbit limit 50", "queue = \"50 packets\""),
    // tc counts the Ethernet header, and the overhead on top of it.
    ("rate 1mbit 20", "overhead = \"34\""),
    ("rate 1mbit packetoverhead -14", "overhead = \"0\""),
    ("rate 1mbit 10 48 5", "framing = \"atm\""),
    (
        "slot 10ms 20ms packets 5",
        "rate = { kind = \"slotted\", rate = \"unlimited\", min = \"10 ms\", max = \"20 ms\", packets = \"5\" }",
    ),
    (
        "slot 800us bytes 3000 rate 1mbit",
        "rate = { kind = \"slotted\", rate = \"1 Mbit/s\", min = \"800 us\", max = \"800 us\", bytes = \"3000\" }",
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
    tells(
        &imported,
        &[
            "line 2: set -e",
            "line 6: limit 10",
            "line 7: tc class",
            "line 8: tc filter",
            "dev eth2",
            "fq_codel",
        ],
    );
}

#[test]
fn what_tc_shows() {
    let shown = "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 100ms  20ms loss 1% 25% rate 1Mbit seed 7\n\
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
    ] {
        refused(Format::Netem, &format!("tc qdisc add dev eth0 root netem {options}"), wanted);
    }
    refused(Format::Netem, "tc qdisc add root netem delay 1ms", "names no interface");
    refused(Format::Netem, "tc qdisc add dev eth0 root tbf rate 1mbit", "tbf needs a burst");
    refused(Format::Netem, "echo hello", "there is no netem");
    refused(Format::Netem, "a\ntc qdisc add dev eth0 root netem delay x", "line 2: delay");
}

#[test]
fn ipfw_two_hosts() {
    let script = "ipfw -q -f flush\n\
        ipfw add 100 pipe 1 ip from any to any out via em0\n\
        ipfw add 200 pipe 2 tcp from any to any in\n\
        ipfw add allow ip from any to any\n\
        ipfw pipe 1 config bw 1Mbit/s delay 20ms queue 30KBytes plr 0.02 mask src-ip 0xffffffff buckets 64\n\
        $cmd pipe 2 config bw 500KByte/s delay 5 queue 60 burst 64k\n";
    let imported = from(Format::Ipfw, script);
    has(
        &imported,
        &[
            "loss = \"2 %\"",
            "queue = \"30 KiB\"",
            "rate = \"1 Mbit/s\"",
            "framing = \"ip\"",
            "delay = \"20 ms\"",
            "rate = { kind = \"token-bucket\", rate = \"4 Mbit/s\", burst = \"64 KiB\" }",
            "queue = \"60 packets\"",
        ],
    );
    tells(
        &imported,
        &[
            "via em0",
            "line 3: tcp",
            "line 4: ipfw add allow",
            "mask src-ip 0xffffffff: each flow",
            "buckets 64",
        ],
    );
}

#[test]
fn ipfw_pairs_of_addresses() {
    let script = "pipe 1 config bw 2Mbit/s\npipe 2 config delay 10 queue 50\n\
                  add pipe 1 ip from 10.1.0.1 to 10.1.0.2\nadd pipe 2 ip from 10.1.0.2 to 10.1.0.1/32\n\
                  add pipe 1 ip from 10.1.0.3 to 10.1.0.1\nadd pipe 2 ip from 192.168.0.0/16 to any\n";
    let imported = from(Format::Ipfw, script);
    has(
        &imported,
        &[
            "match = [{ source = \"10.1.0.1\", destination = \"10.1.0.2\" }]",
            "match = [{ source = \"10.1.0.2\", destination = \"10.1.0.1\" }]",
            "address = \"10.1.0.1/24\"",
            "name = \"pipe1-2\"",
        ],
    );
    tells(&imported, &["several rules share the pipe", "192.168.0.0/16", "this one is for more"]);
    let plan = plan(&imported);
    assert_eq!((plan.hosts.len(), plan.links.len()), (3, 3));
    let routes: Vec<_> = plan
        .address_rules
        .iter()
        .map(|rule| {
            let links = plan.routes.links(&rule.route).iter().map(|l| &*plan.links[*l as usize].name);
            format!("{} {} {}", rule.source, rule.destination, links.collect::<Vec<_>>().join(","))
        })
        .collect();
    for wanted in ["10.1.0.1 10.1.0.2 pipe1", "10.1.0.2 10.1.0.1 pipe2", "10.1.0.3 10.1.0.1 pipe1-2"] {
        assert!(routes.contains(&wanted.to_owned()), "{routes:?}");
    }
}

#[test]
fn ipfw_queues_that_drop_early() {
    let one = |config: &str| from(Format::Ipfw, &format!("ipfw pipe 1 config bw 1Mbit/s {config}"));
    has(
        &one("queue 100 gred 0.002/10/30/0.1"),
        &[
            "queue = { kind = \"red\", limit = \"100 packets\", min = \"10\", max = \"30\", max-p = \"10 %\", weight = \"0.002\", gentle = \"yes\", mean-packet = \"512 B\" }",
        ],
    );
    has(
        &one("queue 100 red 0.002/5/15/0.1 ecn"),
        &[
            "queue = { kind = \"red\", limit = \"100 packets\", min = \"5\", max = \"15\", max-p = \"10 %\", weight = \"0.002\", gentle = \"no\", mean-packet = \"512 B\", ecn = \"yes\" }",
        ],
    );
    tells(&one("ecn"), &["it is carried over behind red"]);
    has(
        &one("codel target 5ms interval 100 ecn"),
        &[
            "queue = { kind = \"codel\", limit = \"50 packets\", target = \"5 ms\", interval = \"100 ms\", ecn = \"yes\" }",
        ],
    );
    has(
        &one("pie target 20ms tupdate 15ms alpha 0.125 beta 1.25 max_burst 150ms noecn"),
        &[
            "queue = { kind = \"pie\", limit = \"50 packets\", target = \"20 ms\", update = \"15 ms\", alpha = \"0.125\", beta = \"1.25\", burst = \"150 ms\", ecn = \"no\" }",
        ],
    );
    let fair = "pipe 1 config bw 1Mbit/s\nsched 2 config pipe 1 type fq_codel target 5ms quantum 300 flows 64\n\
                queue 3 config sched 2 weight 10\nadd queue 3 ip from any to any";
    let imported = from(Format::Ipfw, fair);
    has(
        &imported,
        &["queue = { kind = \"fq-codel\", target = \"5 ms\", quantum = \"300 B\", flows = \"64\" }"],
    );
    tells(&imported, &["weight 10", "without a queue of their own", "both directions share the pipe"]);
    let profile = one("delay 30 profile wifi.profile");
    has(
        &profile,
        &[
            "delay = { kind = \"distribution\", distribution = \"wifi.profile\", order = \"keep\" }",
            "delay = \"30 ms\"",
        ],
    );
    tells(&profile, &["profile wifi.profile", "no rule leads into a pipe"]);
}

#[test]
fn ipfw_mistakes() {
    refused(Format::Ipfw, "ipfw pipe 0 config bw 1Mbit/s", "\"0\" is no number of a pipe");
    refused(Format::Ipfw, "\nipfw pipe 1 config bw 1Xbit/s", "line 2: bw: \"1Xbit/s\" is no bandwidth");
    refused(Format::Ipfw, "ipfw pipe 1 config delay soon", "delay: \"soon\"");
    refused(Format::Ipfw, "ipfw pipe 1 config colour red", "no option \"colour\"");
    refused(Format::Ipfw, "ipfw add pipe 1 ip to any", "no from");
    refused(Format::Ipfw, "ipfw add allow ip from any to any", "no pipe is configured");
}

#[test]
fn mahimahi_shells() {
    let command = "mm-delay 20 mm-loss uplink 0.01 mm-link up.trace down.trace --uplink-queue=droptail \
                   --uplink-queue-args=\"packets=100\" --downlink-queue=codel --downlink-queue-args=\"packets=200, target=5, interval=100\" \
                   --meter-all -- curl example.org";
    let imported = from(Format::Mahimahi, command);
    // Out: trace, loss, delay. In: delay, trace.
    has(
        &imported,
        &[
            "rate = { kind = \"trace\", file = \"up.trace\", end = \"loop\", framing = \"ip\" }",
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
        "mm-onoff uplink 1.5 0.5 -- mm-link --once a b --downlink-queue pie --downlink-queue-args qdelay_ref=20,max_burst=100,bytes=30000",
    );
    has(
        &imported,
        &[
            "state = { kind = \"flap\", up = \"1.5 s\", down = \"500 ms\" }",
            "rate = { kind = \"trace\", file = \"a\", end = \"clear\", framing = \"ip\" }",
            "queue = { kind = \"pie\", limit = \"30 kB\", update = \"30 ms\", target = \"20 ms\", burst = \"100 ms\" }",
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
        ("ls", "there is no shell of mahimahi"),
    ] {
        refused(Format::Mahimahi, text, wanted);
    }
}

#[test]
fn traces() {
    let file = |name: &str, text: &str| Source { file: Some(name.into()), text: text.into() };
    let imported = import(Format::Mahimahi, &[file("up", "0\n5\n5\n"), file("down", "1\n")]).unwrap();
    has(&imported, &["rate = { kind = \"trace\", file = \"down\", end = \"loop\", framing = \"ip\" }"]);
    assert!(imported.notes.is_empty());

    let trace = file("t.csv", "# KEEP\n1000,20000000,1000000,0,50\n2000,10000000,2000000,42949672,60\n");
    let options =
        "tc qdisc change dev eth0 root handle 1 theaterq stage RUN cont HOLD seed 3 overhead 4 byteqlen";
    let imported =
        import(Format::Theaterq, &[trace.clone(), Source { file: None, text: options.into() }]).unwrap();
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
    let extended = file("x.csv", "1000,5,7,100,0,10,3,4,2\n");
    tells(&import(Format::Theaterq, &[extended]).unwrap(), &["JITTER", "DUP_PROB", "ROUTE_ID", "cont LOOP"]);
    let error = import(Format::Theaterq, &[file("y.csv", "1,2,3,4,5\n1,2,3\n")]).unwrap_err().to_string();
    assert!(error.contains("line 2: this is no line of a TheaterQ trace"), "{error}");
    refused(Format::Theaterq, "tc qdisc add dev eth0 root theaterq", "there is no trace");
}

/// Figure 2.1 of the LinkEM thesis.
const FIGURE: &str = include_str!("figure-2-1.ns");

#[test]
fn the_thesis_script() {
    let imported = from(Format::Ns, FIGURE);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/emulab-figure-2-1.toml");
    assert_eq!(imported.scenario, std::fs::read_to_string(file).unwrap());
    let plan = plan(&imported);
    assert_eq!((plan.hosts.len(), plan.bridges.len(), plan.links.len()), (4, 2, 10));
    assert_eq!(way(&plan, 0, 3), ["n0-r0.forward", "r0-r1.forward", "n3-r1.backward"]);
    assert_eq!(way(&plan, 1, 0), ["n1-r0.forward", "n0-r0.backward"]);
    assert!(plan.notes.is_empty(), "{}", plan.notes[0]);
}

#[test]
fn ns_scripts() {
    let script = r#"
        source tb_compat.tcl
        set ns [new Simulator]
        for {set i 0} {$i < 3} {incr i} {
            set node($i) [$ns node]
            tb-set-node-os $node($i) FBSD-STD
        }
        set router [$ns node]
        set core [$ns duplex-link $node(0) $router 10Mb 5ms GRED]
        set q [[$ns link $node(0) $router] queue]
        $q set limit_ 100
        $q set thresh_ 10
        $q set maxthresh_ 30
        $q set linterm_ 50
        $q set queue-in-bytes_ 0
        tb-set-link-loss $core 0.05
        tb-set-link-simplex-params $core $router 7ms 2Mb 0.1
        set lan [$ns make-lan "$node(1) $node(2) $router" 100Mb 4ms]
        tb-set-lan-simplex-params $lan $node(1) 1ms 10Mb 0 2ms 20Mb 0.01
        $ns at 10.5 "$core down"
        $ns at 12 {$core up}
        $ns at 20.0 "$core bandwidth 5Mb duplex"
        $ns rtproto Static
        $ns run
    "#;
    // Braces keep Tcl from replacing $core: what is meant is known only when the time has come.
    let script = script.replace("{$core up}", "\"$core up\"");
    let imported = from(Format::Ns, &script);
    has(
        &imported,
        &[
            "name = \"node-0\"",
            "between = [\"node-0\", \"router\"]",
            "between = [\"node-1\", \"lan\"]",
            "name = \"core\"",
            "forward = { state = \"up\", rate = \"10 Mbit/s\", delay = \"5 ms\", loss = \"5 %\", queue = { kind = \"red\", limit = \"100 packets\", min = \"10\", max = \"30\", max-p = \"2 %\", weight = \"0.002\", gentle = \"yes\", mean-packet = \"500 B\" } }",
            "forward = { rate = \"10 Mbit/s\", delay = \"1 ms\", queue = \"50 packets\" }",
            "backward = { rate = \"20 Mbit/s\", delay = \"2 ms\", loss = \"1 %\", queue = \"50 packets\" }",
            "delay = \"2 ms\"",
            "time = \"10.5 s\"",
            "link = \"core.backward\"",
            "state = \"down\"",
            "rate = \"5 Mbit/s\"",
        ],
    );
    tells(&imported, &["tb-set-node-os", "nodes with several links are bridges"]);
    assert_eq!(lines(&imported).iter().filter(|line| **line == "[[at]]").count(), 6);
    for (script, wanted) in [
        (
            "set ns [new simulator]\n$ns duplex-link $a $b 1Mb 1ms DropTail",
            "line 2: there is no variable \"a\"",
        ),
        ("set ns [new simulator]\nset a [$ns node]\n$ns duplex-link $a $a 1Mb 1ms RED", "same node"),
        (
            "set ns [new simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b fast 1ms RED",
            "line 4: the link's rate: \"fast\"",
        ),
        ("puts hello", "the script makes no link"),
    ] {
        refused(Format::Ns, script, wanted);
    }
}

#[test]
fn networks_without_leaves_and_with_loops() {
    let ring = "set ns [new simulator]\nforeach n {a b c} { set $n [$ns node] }\n\
                $ns duplex-link $a $b 1Mb 1ms DropTail\n$ns duplex-link $b $c 1Mb 1ms DropTail\n$ns duplex-link $c $a 1Mb 5ms DropTail";
    let imported = from(Format::Ns, ring);
    has(&imported, &["routing = \"shortest-delay\"", "name = \"a-host\"", "bridge = \"a\""]);
    tells(&imported, &["routing", "too few have one link"]);
    let plan = plan(&imported);
    assert_eq!(way(&plan, 0, 2), ["a-b.forward", "b-c.forward"]);

    let pair =
        "set ns [new simulator]\nset a [$ns node]\nset b [$ns node]\n$ns simplex-link $a $b 1Mb 1ms DropTail";
    let alone = from(Format::Ns, pair);
    has(&alone, &["from = \"a\"", "to = \"b\"", "name = \"a-b\""]);
    parse("pair.toml", &alone.scenario).unwrap();
}

#[test]
fn what_exists_is_read() {
    for (format, text) in [
        (Format::Netem, "delay 100ms loss 1%"),
        (Format::Netem, "delay 100ms rate 1mbit loss 0.1%"),
        (Format::Ipfw, "pipe 1 config bw 1Mbit/s delay 10 plr 0.01 queue 20\npipe 2 config bw 2Mbit/s"),
        (Format::Mahimahi, "mm-delay 20 mm-loss uplink 0.1 mm-loss downlink 0.2"),
    ] {
        let plan = plan(&from(format, text));
        assert!(plan.notes.is_empty(), "{text}: {}", plan.notes[0]);
    }
}

/// Every option of every format, with files that are there: what is written can be read.
#[test]
fn every_option_is_read() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("every-option");
    std::fs::create_dir_all(&folder).unwrap();
    let profile = "name wifi\nsamples 100\nprob delay\n0.0 200\n0.5 300\n1.0 1300\n";
    let normal = "-32768 -16384 -8192 0 8192 16384 32767\n";
    for (name, text) in
        [("up.trace", "0\n5\n5\n"), ("down.trace", "1\n"), ("wifi.profile", profile), ("mine.dist", normal)]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let simple = "# KEEP\n1000,20000000,1000000,0,50\n2000,10000000,2000000,42949672,60\n";
    let extended = "1000,5,7,100000,0,10,3,4,2\n";
    std::fs::write(folder.join("simple.csv"), simple).unwrap();
    std::fs::write(folder.join("extended.csv"), extended).unwrap();
    let read = |format, sources: &[Source]| {
        let imported = import(format, sources).unwrap_or_else(|error| panic!("{sources:?}: {error}"));
        let name = folder.join("imported.toml");
        parse(name.to_str().unwrap(), &imported.scenario)
            .unwrap_or_else(|error| panic!("{error}\nin\n{}", imported.scenario));
    };
    let line = |format, text: &str| read(format, &[Source { file: None, text: text.into() }]);
    let file = |name: &str, text: &str| Source { file: Some(name.into()), text: text.into() };
    for (options, _) in NETEM {
        line(Format::Netem, options);
    }
    line(Format::Netem, "tc qdisc add dev eth0 root netem delay 0ms");
    line(
        Format::Netem,
        "delay 100ms 20ms 25% distribution normal loss gemodel 1% 25% 70% 0.1% ecn corrupt 0.1% 5% duplicate 1% 10% \
         reorder 25% 50% gap 3 rate 10mbit 5 slot 1ms 2ms packets 10 bytes 20000 limit 500 seed 7",
    );
    for queue in [
        "red 0.002/5/15/0.1",
        "queue 100 gred 0.002/10/30/0.1 ecn",
        "queue 50KBytes red 0.002/5/15/0.1",
        "codel target 5ms interval 100ms ecn target 6ms",
        "pie target 20ms tupdate 15ms alpha 0.125 beta 1.25 max_burst 150ms max_ecnth 0.1 ecn capdrop dre",
        "delay 30 profile wifi.profile",
        "plr 1 burst 64k queue 20",
    ] {
        line(Format::Ipfw, &format!("ipfw pipe 1 config bw 1Mbit/s {queue}"));
    }
    for kind in
        ["fq_codel target 5ms quantum 300 flows 64 limit 1000 ecn", "fq_pie target 15ms limit 500", "wf2q+"]
    {
        let script = "queue 3 config sched 2 weight 10\nadd queue 3 ip from any to any";
        line(Format::Ipfw, &format!("pipe 1 config bw 1Mbit/s\nsched 2 config pipe 1 type {kind}\n{script}"));
    }
    for queue in [
        "infinite",
        "droptail --uplink-queue-args=packets=10",
        "drophead --uplink-queue-args=bytes=10000",
        "codel --uplink-queue-args=packets=100,target=5,interval=100",
        "pie --uplink-queue-args=bytes=30000,qdelay_ref=20,max_burst=100",
    ] {
        let link = format!("mm-link up.trace down.trace --once --uplink-queue={queue}");
        line(
            Format::Mahimahi,
            &format!("mm-onoff uplink 1.5 0.5 mm-loss downlink 0.1 mm-delay 5 {link} -- ls"),
        );
    }
    read(Format::Mahimahi, &[file("up.trace", "0\n5\n5\n"), file("down.trace", "1\n")]);
    for options in ["cont HOLD seed 3", "cont CLEAR overhead 4 byteqlen", "cont LOOP stage RUN"] {
        let command = format!("tc qdisc change dev eth0 root theaterq {options}");
        let sources = [file("simple.csv", simple), file("extended.csv", extended)];
        read(Format::Theaterq, &[&sources[..], &[Source { file: None, text: command }]].concat());
    }
}
