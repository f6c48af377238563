//! Scripts of ns, and of testbeds.

use crate::{from, has, lines, plan, refused, silent, tells, way};
use longwire_import::{Format, ImportedScenario};
use longwire_scenario::plan_of;
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
    // Braces keep Tcl from replacing $core, which is only resolved at its time.
    let script = script.replace("{$core up}", "\"$core up\"");
    let imported = from(Format::Ns, &script);
    has(
        &imported,
        &[
            "name = \"node-0\"",
            "between = [\"node-0\", \"router\"]",
            "between = [\"node-1\", \"lan\"]",
            "name = \"core\"",
            "forward = { state = \"up\", rate = \"10 Mbit/s\", delay = \"5 ms\", loss = \"5 %\", queue = { \
             kind = \"red\", limit = \"100 packets\", min = \"10\", max = \"30\", max-p = \"2 %\", weight = \
             \"0.002\", gentle = \"yes\", mean-packet = \"500 B\" } }",
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
                $ns duplex-link $a $b 1Mb 1ms DropTail\n$ns duplex-link $b $c 1Mb 1ms DropTail\n\
                $ns duplex-link $c $a 1Mb 5ms DropTail";
    let imported = from(Format::Ns, ring);
    has(&imported, &["routing = \"shortest-delay\"", "name = \"a-host\"", "bridge = \"a\""]);
    tells(&imported, &["routing", "too few have one link"]);
    let plan = plan(&imported);
    assert_eq!(way(&plan, 0, 2), ["a-b.forward", "b-c.forward"]);

    let pair =
        "set ns [new simulator]\nset a [$ns node]\nset b [$ns node]\n$ns simplex-link $a $b 1Mb 1ms DropTail";
    let alone = from(Format::Ns, pair);
    has(&alone, &["from = \"a\"", "to = \"b\"", "name = \"a-b\""]);
    plan_of(&alone.scenario);
}

/// Emulab passes a limit on as bytes (delaysetup), ns-2 multiplies it by mean_pktsize_ (drop-tail.cc,
/// red.cc).
#[test]
fn queues_in_bytes() {
    let script = |first: &str, kind: &str, more: &str| {
        format!(
            "{first}\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
             $ns simplex-link $a $b 8Mb 10ms {kind}\n\
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
    // RED's defaults: bytes, gentle, thresholds 5 and 15 up to 2000 packets/s, a weight of 1 - e^(-1/2000).
    let red = "queue = { kind = \"red\", limit = \"37.5 kB\", min = \"5\", max = \"15\", max-p = \"10 %\", \
        weight = \"0.0005\", gentle = \"yes\", mean-packet = \"500 B\", unit = \"bytes\" }";
    has(&from(Format::Ns, &script("", "RED", "")), &[red]);
}

#[test]
fn classes_and_error_models_of_ns2() {
    let script = "Queue set limit_ 20\nQueue/RED set thresh_ 10\nQueue/RED set setbit_ true\n\
        Queue/RED set foo_ 1\nset ns [new Simulator]\n\
                  set a [$ns node]\nset b [$ns node]\nset c [$ns node]\n\
                  $ns duplex-link $a $b 1Mb 10ms DropTail\n\
                  $ns duplex-link $b $c 1Mb 10ms RED\nset em [new ErrorModel]\n$em set rate_ 0.02\n\
                  $em unit pkt\n\
                  $em ranvar [new RandomVariable/Uniform]\n$em drop-target [new Agent/Null]\n\
                  $ns link-lossmodel $em $a $b\n\
                  $ns lossmodel $em $c $b\n$ns delay $b $c 30ms duplex\n$ns bandwidth $a $b 2Mb\n";
    let imported = from(Format::Ns, script);
    has(
        &imported,
        &[
            "forward = { rate = \"2 Mbit/s\", delay = \"10 ms\", loss = { kind = \"independent\", \
             probability = \"2 %\", where = \"wire\" }, queue = \"20 packets\" }",
            "backward = { rate = \"1 Mbit/s\", delay = \"10 ms\", queue = \"20 packets\" }",
        ],
    );
    let red = lines(&imported).into_iter().filter(|line| line.contains("min = \"10\", max = \"30\"")).count();
    assert_eq!(red, 2, "{}", imported.scenario);
    assert!(imported.scenario.contains("ecn = \"yes\"") && imported.scenario.contains("loss = \"2 %\""));
    tells(&imported, &["Queue/RED set foo_ 1", "ranvar"]);
    plan(&imported);
}

/// The `[[at]]` entries, each in a line.
pub fn events(imported: &ImportedScenario) -> Vec<String> {
    let text = lines(imported).join("\n");
    let entries = text.split("[[at]]\n").skip(1).map(|entry| entry.split("\n[[").next().unwrap_or(entry));
    entries.map(|entry| entry.trim_end().replace('\n', ", ")).collect()
}

/// Three nodes in a row, a and b with a duplex link of 10 Mbit/s and 10 ms, b and c with a simplex one.
pub fn row(first: &str, more: &str) -> ImportedScenario {
    let imported = from(
        Format::Ns,
        &format!(
            "{first}\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\nset c [$ns node]\n\
             set l [$ns duplex-link $a $b 10Mb 10ms DropTail]\n$ns simplex-link $b $c 1Mb 5ms DropTail\n\
             {more}\n$ns run\n"
        ),
    );
    plan(&imported);
    imported
}

/// Effects of `$ns at` on links of ns-2 (ns-lib.tcl: `bandwidth` and `delay` apply to one direction unless
/// `duplex` is added).
#[test]
fn changes_of_ns2_during_the_run() {
    let imported = row(
        "",
        r#"
        $ns at 1.0 "$ns bandwidth $a $b 3Mb"
        $ns at 2.0 "$ns delay $b $a 30ms"
        $ns at 2.5 "$ns bandwidth $a $b 1.5Mb duplex"
        set d [$ns link $a $b]
        $ns at 3.0 "[$d link] set bandwidth_ 5Mb"
        $ns at 4.0 "[[$ns link $b $a] link] set delay_ 0.04"
        $ns at 5.0 { [[$ns link $b $c] link] set bandwidth_ 500kb }
        $ns at 6.0 "[[$ns link $b $a] queue] set limit_ 20"
        $ns at 7.0 "$ns queue-limit $a $b 7; $d down"
        $ns at 0.5 "$ns rtmodel-at 8.5 up $b $c"
        [[$ns link $b $a] queue] set limit_ 9
        [[$ns link $b $c] link] set delay_ 6ms
        $ns at 9.0 "finish"
        "#,
    );
    let expected = [
        "time = \"1 s\", link = \"l.forward\", rate = \"3 Mbit/s\"",
        "time = \"2 s\", link = \"l.backward\", delay = \"30 ms\"",
        "time = \"2.5 s\", link = \"l.forward\", rate = \"1.5 Mbit/s\"",
        "time = \"2.5 s\", link = \"l.backward\", rate = \"1.5 Mbit/s\"",
        "time = \"3 s\", link = \"l.forward\", rate = \"5 Mbit/s\"",
        "time = \"4 s\", link = \"l.backward\", delay = \"40 ms\"",
        "time = \"5 s\", link = \"b-c\", rate = \"500 kbit/s\"",
        "time = \"6 s\", link = \"l.backward\", queue = \"20 packets\"",
        "time = \"7 s\", link = \"l.forward\", queue = \"7 packets\", state = \"down\"",
        "time = \"8.5 s\", link = \"b-c\", state = \"up\"",
    ];
    assert_eq!(events(&imported), expected, "{}", imported.scenario);
    has(
        &imported,
        &[
            "forward = { state = \"up\", rate = \"10 Mbit/s\", delay = \"10 ms\", queue = \"50 packets\" }",
            "backward = { state = \"up\", rate = \"10 Mbit/s\", delay = \"10 ms\", queue = \"9 packets\" }",
            "delay = \"6 ms\"",
            "for = \"14 s\"",
        ],
    );
    tells(
        &imported,
        &["at 9 s: finish: the command is not known", "a delay without unit is taken as seconds"],
    );
}

/// Up from 0.5 s for 2 s, then down for 1 s, up for 2 s, …; nothing happens after the finish, except that the
/// link is up.
#[test]
fn route_models_switch_links() {
    let down = |time: &str, more: &str| format!("time = \"{time}\", link = \"b-c\", {more}state = \"down\"");
    let up = |time: &str, more: &str| format!("time = \"{time}\", link = \"b-c\", {more}state = \"up\"");
    let of =
        |parameters: &str| events(&row("", &format!("$ns rtmodel Deterministic {{{parameters}}} $b $c")));
    assert_eq!(of(""), [down("2.5 s", "every = \"3 s\", "), up("3.5 s", "every = \"3 s\", ")]);
    assert_eq!(of("4 1"), [down("4.5 s", "every = \"5 s\", "), up("5.5 s", "every = \"5 s\", ")]);
    assert_eq!(of("1 - 2"), [down("3 s", "every = \"4 s\", "), up("5 s", "every = \"4 s\", ")]);
    // Down at 3, 6, 9; up at 4, 7 and, because it is the end, at 9.5.
    let ended = [
        down("3 s", "every = \"3 s\", times = 3, "),
        up("4 s", "every = \"3 s\", times = 2, "),
        up("9.5 s", ""),
    ];
    assert_eq!(of("1 2 1 9.5"), ended);
    assert_eq!(of("1 2 1 2.9"), Vec::<String>::new());
    let drawn = row("", "$ns rtmodel Exponential {0.5 10 1} $b $c\n$ns rtmodel Manual {down 3.0} $c");
    assert_eq!(events(&drawn)[0], down("3 s", ""));
    tells(&drawn, &["exactly their means"]);
    refused(
        Format::Ns,
        "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 1ms DropTail\n\
         $ns rtmodel Deterministic {1 0 0} $a $b",
        "no time",
    );
}

/// Emulab's delay agent reads whole kbit/s and milliseconds (event/delay-agent/callback.c).
#[test]
fn events_of_emulab() {
    let imported = row(
        "source tb_compat.tcl",
        r#"
        $ns at 1.0 "$l modify BANDWIDTH=1000 DELAY=10 PLR=0.05"
        $ns at 2.0 "$l modify bandwidth=20000 delay=15ms"
        $ns at 3.0 "$l delay 25"
        $ns at 4.0 "$l bandwidth 2Mb duplex; $l plr 0.1"
        $ns at 5.0 "$l modify DELAY=1s LIMIT=75"
        set both [new EventGroup $ns]
        $both add $l
        $ns at 6.0 "$both down"
        set again [$ns event-group [list $l]]
        $ns at 7.0 "$again up"
        "#,
    );
    let forward: Vec<_> = events(&imported).into_iter().filter(|event| event.contains("l.forward")).collect();
    let expected = [
        "time = \"1 s\", link = \"l.forward\", rate = \"1 Mbit/s\", delay = \"10 ms\", loss = \"5 %\"",
        "time = \"2 s\", link = \"l.forward\", rate = \"20 Mbit/s\", delay = \"15 ms\"",
        "time = \"3 s\", link = \"l.forward\", delay = \"25 ms\"",
        "time = \"4 s\", link = \"l.forward\", rate = \"2 Mbit/s\", loss = \"10 %\"",
        "time = \"5 s\", link = \"l.forward\", delay = \"1 ms\", queue = \"75 packets\"",
        "time = \"6 s\", link = \"l.forward\", state = \"down\"",
        "time = \"7 s\", link = \"l.forward\", state = \"up\"",
    ];
    assert_eq!(forward, expected, "{}", imported.scenario);
    assert_eq!(events(&imported).len(), 14);
    tells(&imported, &["DELAY=1s: Emulab's delay agent reads whole milliseconds"]);
}

#[test]
fn queues_that_are_here_are_carried_over() {
    let of = |settings: &str, kind: &str| {
        let script = format!(
            "{settings}\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
             $ns simplex-link $a $b 8Mb 10ms {kind}\n"
        );
        let imported = from(Format::Ns, &script);
        plan(&imported);
        imported
    };
    // In and Out, with the thresholds and the 1/50 and 1/5 of ns-default.tcl.
    let rio = of("Queue/RED/RIO set in_thresh_ 20", "RED/RIO");
    has(
        &rio,
        &["queue = { kind = \"rio\", limit = \"50 packets\", in-min = \"20\", in-max = \"30\", in-max-p = \
             \"2 %\", out-min = \"5\", out-max = \"15\", out-max-p = \"20 %\", weight = \"0.002\", \
             mean-packet = \"500 B\" }"],
    );
    tells(&rio, &["packets are In by their DSCP here"]);
    let packets = of("Queue/RED set bytes_ false\nQueue/RED set queue_in_bytes_ false", "RED");
    assert!(packets.scenario.contains("limit = \"50 packets\"") && !packets.scenario.contains("unit"));
    assert!(packets.notes.is_empty(), "{:?}", packets.notes);
    let mixed = of("Queue/RED set bytes_ false", "RED");
    assert!(mixed.scenario.contains("limit = \"25 kB\"") && !mixed.scenario.contains("unit = \"bytes\" }"));
    tells(&mixed, &["queue_in_bytes_ true, bytes_ false"]);
    has(
        &of("Queue/CoDel set target_ 10ms\nQueue/CoDel set interval_ 0.2", "CoDel"),
        &["queue = { kind = \"codel\", limit = \"50 packets\", target = \"10 ms\", interval = \"200 ms\" }"],
    );
    let adaptive =
        of("Queue/RED set adaptive_ 1\nQueue/RED set queue_in_bytes_ false\nQueue/RED set bytes_ 0", "RED");
    has(
        &adaptive,
        &["queue = { kind = \"ared\", limit = \"50 packets\", min = \"5\", max = \"15\", max-p = \"10 %\" }"],
    );
}

/// The loss of an error model can be set before and during the run, wherever it was attached before.
#[test]
fn error_models_change() {
    let imported = row(
        "",
        "set em [new ErrorModel]\n$ns lossmodel $em $b $c\n$em set rate_ 0.01\n\
         $ns at 2.0 \"$em set rate_ 0.5\"",
    );
    has(&imported, &["loss = \"1 %\""]);
    assert_eq!(events(&imported), ["time = \"2 s\", link = \"b-c\", loss = \"50 %\""]);
}

/// Procedures make links, change them, and may fail at an unknown command; their earlier effects remain.
#[test]
fn procedures() {
    let script = r#"
        proc wire {from to {rate 1Mb}} {
            global ns
            $ns duplex-link $from $to $rate 10ms DropTail
            return [$ns link $from $to]
        }
        set d [$ns node]
        set e [wire $c $d 2Mb]
        [$e link] set delay_ 3ms
        proc slower {rate} { global ns a b; $ns bandwidth $a $b $rate }
        proc record {} {
            global ns sink
            set now [$ns now]
            set bytes [$sink set bytes_]
            puts "$now [expr $bytes / 2]"
            $ns at [expr $now + 0.5] "record"
        }
        set sink [new Agent/LossMonitor]
        $ns at 1.0 "slower 500kb"
        $ns at 2.0 "record"
        set group [$ns newLan "$a $d" 10Mb 4ms LL Queue/DropTail Mac/802_3 Channel]
    "#;
    let imported = row("", script);
    has(
        &imported,
        &[
            "between = [\"c\", \"d\"]",
            "forward = { rate = \"2 Mbit/s\", delay = \"3 ms\", queue = \"50 packets\" }",
            "between = [\"a\", \"group\"]",
        ],
    );
    assert_eq!(events(&imported), ["time = \"1 s\", link = \"l.forward\", rate = \"500 kbit/s\""]);
    tells(&imported, &["at 2 s: record: the procedure is executed up to here only", "set bytes_"]);
}

/// Traffic is shown between hosts that links join; two simplex links make one pair.
#[test]
fn networks_without_bridges() {
    let of = |links: &str| {
        let imported = from(
            Format::Ns,
            &format!("set ns [new Simulator]\nforeach n {{a b c d}} {{ set $n [$ns node] }}\n{links}"),
        );
        plan(&imported);
        imported
    };
    const ONE: &str = "$ns simplex-link $a $b 1Mb 1ms DropTail\n$ns simplex-link $b $a 2Mb 2ms DropTail\n";
    let pair = of(ONE);
    assert!(!pair.scenario.contains("[[bridge]]"), "{}", pair.scenario);
    let routes = plan(&pair);
    assert_eq!([way(&routes, 0, 1), way(&routes, 1, 0)], [["a-b"], ["b-a"]]);
    for first in [ONE, "$ns duplex-link $a $b 1Mb 1ms DropTail\n"] {
        let separate = of(&format!("{first}$ns duplex-link $c $d 1Mb 1ms DropTail"));
        has(&separate, &["from = \"a\"", "to = \"b\"", "bridge = \"a-b-net\"", "bridge = \"c-d-net\""]);
        assert_eq!(lines(&separate).iter().filter(|line| **line == "[[bridge]]").count(), 2);
    }
}

#[test]
fn parameters_of_one_direction_have_their_node() {
    let script = |link: &str| {
        format!(
            "set ns [new Simulator]\nforeach n {{a b c}} {{ set $n [$ns node] }}\n\
             set l [$ns duplex-link $a $b 1Mb 1ms DropTail]\n\
             set s [$ns simplex-link $b $c 1Mb 1ms DropTail]\n\
             tb-set-link-simplex-params {link} 7ms 2Mb 0.1"
        )
    };
    let set = "{ rate = \"2 Mbit/s\", delay = \"7 ms\", loss = \"10 %\", queue = \"50 packets\" }";
    for (link, way) in [("$l $a", "forward"), ("$l $b", "backward")] {
        has(&from(Format::Ns, &script(link)), &[&format!("{way} = {set}")]);
    }
    has(&from(Format::Ns, &script("$s $b")), &["delay = \"7 ms\""]);
    for link in ["$l $c", "$s $c", "$s $a"] {
        refused(Format::Ns, &script(link), "line 5: the link does not begin at this node");
    }
}

/// `newLan` of ns-2 names its layers in order, or by options.
#[test]
fn queues_of_lans() {
    let of = |layers: &str| {
        let imported = from(
            Format::Ns,
            &format!(
                "set ns [new Simulator]\nforeach n {{a b c}} {{ set $n [$ns node] }}\n\
                 set lan [$ns newLan \"$a $b $c\" 0.5Mb 40ms {layers}]"
            ),
        );
        plan(&imported);
        imported
    };
    for layers in ["LL Queue/RED MAC/Csma/Cd Channel", "-llType LL -macType MAC/Csma/Cd -ifqType Queue/RED"] {
        let red = of(layers);
        let queues =
            lines(&red).into_iter().filter(|line| line.starts_with("queue = { kind = \"red\"")).count();
        assert_eq!(queues, 3, "{layers}\n{}", red.scenario);
        has(&red, &["between = [\"a\", \"lan\"]", "delay = \"20 ms\""]);
        tells(&red, &["MAC/Csma/Cd"]);
    }
    let tail = of("");
    has(&tail, &["queue = \"50 packets\""]);
    silent(&tail, &["of a LAN"]);
    tells(
        &of("LL Queue/FQ Mac"),
        &["FQ: there is no such queue here", "LL Mac: of a LAN its rate, delay and"],
    );
}
