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
