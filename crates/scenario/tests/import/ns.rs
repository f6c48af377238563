//! Scripts of ns, and of testbeds that read them.

use crate::{from, has, lines, plan, refused, tells, way};
use longwire_scenario::import::Format;
use longwire_scenario::parse;
use std::path::Path;

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

/// Emulab hands a limit on as bytes (delaysetup), ns-2 multiplies it by mean_pktsize_ (drop-tail.cc, red.cc).
#[test]
fn queues_in_bytes() {
    let script = |first: &str, kind: &str, more: &str| {
        format!(
            "{first}\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns simplex-link $a $b 8Mb 10ms {kind}\n\
             set q [[$ns link $a $b] queue]\n$q set limit_ 75\n$q set queue-in-bytes_ 1\n{more}"
        )
    };
    let ns2 = from(Format::Ns, &script("", "DropTail", ""));
    has(&ns2, &["queue = \"37.5 kB\""]);
    tells(&ns2, &["limit_ times mean_pktsize_, as ns-2 does, is 37.5 kB"]);
    has(&from(Format::Ns, &script("", "DropTail", "$q set mean_pktsize_ 1000")), &["queue = \"75 kB\""]);
    has(
        &from(Format::Ns, &script("", "DropTail", "$q set queue_in_bytes_ false")),
        &["queue = \"75 packets\""],
    );
    let emulab = from(Format::Ns, &script("source tb_compat.tcl", "DropTail", ""));
    has(&emulab, &["queue = \"75 B\""]);
    tells(&emulab, &["Emulab takes limit_ for bytes"]);
    // RED by itself: bytes, gentle, thresholds 5 and 15 up to 2000 packets/s, a weight of 1 - e^(-1/2000).
    let red = "queue = { kind = \"red\", limit = \"37.5 kB\", min = \"5\", max = \"15\", max-p = \"10 %\", weight = \"0.0005\", gentle = \"yes\", mean-packet = \"500 B\", unit = \"bytes\" }";
    has(&from(Format::Ns, &script("", "RED", "")), &[red]);
}

#[test]
fn classes_and_error_models_of_ns2() {
    let script = "Queue set limit_ 20\nQueue/RED set thresh_ 10\nQueue/RED set setbit_ true\nQueue/RED set foo_ 1\nset ns [new Simulator]\n\
                  set a [$ns node]\nset b [$ns node]\nset c [$ns node]\n$ns duplex-link $a $b 1Mb 10ms DropTail\n\
                  $ns duplex-link $b $c 1Mb 10ms RED\nset em [new ErrorModel]\n$em set rate_ 0.02\n$em unit pkt\n\
                  $em ranvar [new RandomVariable/Uniform]\n$em drop-target [new Agent/Null]\n$ns link-lossmodel $em $a $b\n\
                  $ns lossmodel $em $c $b\n$ns delay $b $c 30ms duplex\n$ns bandwidth $a $b 2Mb\n";
    let imported = from(Format::Ns, script);
    has(
        &imported,
        &[
            "forward = { rate = \"2 Mbit/s\", delay = \"10 ms\", loss = { kind = \"independent\", probability = \"2 %\", where = \"wire\" }, queue = \"20 packets\" }",
            "backward = { rate = \"1 Mbit/s\", delay = \"10 ms\", queue = \"20 packets\" }",
        ],
    );
    let red = lines(&imported).into_iter().filter(|line| line.contains("min = \"10\", max = \"30\"")).count();
    assert_eq!(red, 2, "{}", imported.scenario);
    assert!(imported.scenario.contains("ecn = \"yes\"") && imported.scenario.contains("loss = \"2 %\""));
    tells(&imported, &["Queue/RED set foo_ 1", "ranvar"]);
    plan(&imported);
}
