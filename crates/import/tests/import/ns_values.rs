//! Values that ns scripts read and set: of queues, links and error models.

use crate::ns::{events, row};
use crate::{from, has, lines, silent, tells};
use longwire_import::Format;

/// `set` with one argument reads without effect: the values set, or ns's defaults.
#[test]
fn reading_a_value() {
    let table = [
        ("set q [[$ns link $a $b] queue]\n$q set limit_ 33", "[$q set limit_]", "33"),
        ("", "[[[$ns link $a $b] queue] set limit_]", "50"),
        ("Queue set limit_ 20", "[Queue set limit_]", "20"),
        ("", "[Queue/RED set mean_pktsize_]", "500"),
        ("", "[Queue/RED set thresh_]", "0"),
        ("Queue/RED set maxthresh_ 30", "[Queue/RED set maxthresh_]", "30"),
        ("", "[expr [[$l link] set bandwidth_] / 1000000]", "10"),
        ("set em [new ErrorModel]\n$em set rate_ 0.25", "[expr [$em set rate_] * 100]", "25"),
        ("set bw [expr 1.5 * 2]", "[expr $bw / 2]", "1.5"),
        ("set small 1e-3", "[expr $small * 2000]", "2"),
        ("set q [[$ns link $a $b] queue]\n$q set limit_ [expr 5e1 / 2]", "[$q set limit_]", "25"),
    ];
    for (before, value, read) in table {
        let imported = row(
            "",
            &format!(
                "{before}\nset d [$ns node]\nset x {value}\n$ns simplex-link $c $d 1Mb ${{x}}ms DropTail"
            ),
        );
        has(&imported, &["name = \"c-d\""]);
        let at = lines(&imported).iter().position(|line| *line == "name = \"c-d\"").unwrap();
        let delay = lines(&imported)[at..].iter().take(6).find(|line| line.starts_with("delay")).copied();
        let wanted = format!("delay = \"{read} ms\"");
        assert_eq!(delay, Some(&*wanted).filter(|_| read != "0"), "{value}\n{}", imported.scenario);
        silent(&imported, &["set "]);
    }
    // During the run, values include the changes of events.
    let during = row(
        "",
        "set q [[$ns link $a $b] queue]\n$ns at 1.0 \"$q set limit_ 40; $ns bandwidth $a $b 2Mb\"\n\
         $ns at 2.0 {$q set limit_ [expr [$q set limit_] / 2]; $ns bandwidth $a $b [expr [[$l link] set \
         bandwidth_] / 2]}",
    );
    assert_eq!(
        events(&during)[1],
        "time = \"2 s\", link = \"l.forward\", queue = \"20 packets\", rate = \"1 Mbit/s\""
    );
    let unknown = row("", "puts [[[$ns link $a $b] queue] set curq_]");
    tells(&unknown, &["[[$ns link $a $b] queue] set curq_: the queues here have no such setting"]);
    silent(&row("", "set em [new ErrorModel]\n$ns lossmodel $em $a $b\nputs [$em set rate_]"), &["rate_"]);
}

/// The unit and the rate of an error model may be set in either order; the final values apply.
#[test]
fn units_of_error_models() {
    const MODEL: &str = "set em [new ErrorModel]\n$ns lossmodel $em $b $c\n";
    let table: [(&str, &[&str], &[&str]); 8] = [
        (
            "$em unit byte\n$em set rate_ 0.01",
            &[],
            &["line 10: $em unit byte: errors for each byte are not carried over"],
        ),
        ("$em set rate_ 0.01\n$em unit byte", &[], &["$em unit byte: errors for each byte"]),
        ("$em unit byte\n$em set rate_ 0.01\n$em unit pkt", &["loss = \"1 %\""], &[]),
        ("$em unit pkt\n$em set rate_ 0.01", &["loss = \"1 %\""], &[]),
        ("$em set rate_ 0.01\n$em set unit_ pkt", &["loss = \"1 %\""], &[]),
        (
            "$em set rate_ 0.01\n$em set unit_ byte",
            &["loss = \"1 %\""],
            &["$em set unit_ byte: ns-2 has no such variable"],
        ),
        ("$em unit time", &[], &["errors for each time"]),
        (
            "$em set rate_ 0.01\n$ns lossmodel $em $a $b\n\
             $ns link-lossmodel [new ErrorModel/Uniform 0.02 pkt] $b $c",
            &["loss = { kind = \"independent\", probability = \"2 %\", where = \"wire\" }"],
            &["takes the place of the one before"],
        ),
    ];
    for (more, wanted, told) in table {
        let imported = row("", &format!("{MODEL}{more}"));
        has(&imported, wanted);
        tells(&imported, told);
        if wanted.is_empty() {
            assert!(!imported.scenario.contains("\nloss = "), "{more}\n{}", imported.scenario);
        }
        if told.is_empty() {
            silent(&imported, &["$em"]);
        }
    }
    let changing = row(
        "",
        &format!(
            "{MODEL}$em set rate_ 0.01\n$ns at 1.0 \"$em unit byte\"\n$ns at 2.0 \"$em set rate_ 0.02\"\n\
             $ns at 3.0 \"$em unit pkt\""
        ),
    );
    let event = |time: u8, loss: &str| format!("time = \"{time} s\", link = \"b-c\", loss = \"{loss}\"");
    assert_eq!(events(&changing), [event(1, "0 %"), event(3, "2 %")]);
    tells(
        &changing,
        &["at 1 s: $em unit byte: errors for each byte", "at 2 s: $em set rate_ 0.02: errors for each byte"],
    );
}

/// Notes say what the script says.
#[test]
fn notes_have_the_names_of_the_script() {
    let imported = row(
        "",
        "set n(1) $a\nset em [new ErrorModel/Trace]\n$ns lossmodel $em $a $b\n$ns lossmodel [new Foo] $b $a\n\
         $ns color 1 Blue\n\
         [[$ns link $b $a] queue] set foo_ 1\n$ns duplex-link-op $a $b orient right\nset t [new Agent/TCP]\n\
         $ns attach-agent $a $t\n\
         $ns at 1.0 \"$t start\"\n$ns at 2.0 \"$l flash\"\n$ns at 3.0 \"$l queue set limit_ 5\"",
    );
    tells(
        &imported,
        &[
            "$ns lossmodel $em $a $b: of error models",
            "$ns lossmodel [new Foo] $b $a: of error models",
            "$ns color 1 Blue: ",
            "[[$ns link $b $a] queue] set foo_ 1: the queues here",
            "$ns duplex-link-op $a $b orient right: ",
            "$ns attach-agent $a $t: ",
            "at 1 s: $t start: ",
            "at 2 s: $l flash: ",
            "at 3 s: $l queue set limit_ 5: ",
            "new Agent/TCP: programs",
        ],
    );
    silent(&imported, &["…", "_o"]);
}

/// ns-2 derives thresholds from the rate: half of the arrivals in 5 ms. Here they are whole packets.
#[test]
fn thresholds_between_whole_packets() {
    let of = |rate: &str, before: &str| {
        let script = format!(
            "{before}\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
             $ns simplex-link $a $b {rate} 10ms RED\n"
        );
        from(Format::Ns, &script)
    };
    // 10 Mbit/s in packets of 500 bytes: 12.5 in 5 ms.
    let table = [
        (
            "10Mb",
            "",
            "min = \"6\", max = \"19\"",
            &["thresh_ (ns-2: 6.25): ", "it is 6", "maxthresh_ (ns-2: 18.75): ", "it is 19"][..],
        ),
        ("10Mb", "Queue/RED set thresh_ 6", "min = \"6\", max = \"18\"", &[]),
        ("16Mb", "", "min = \"10\", max = \"30\"", &[]),
        ("1Mb", "", "min = \"5\", max = \"15\"", &[]),
        ("10Mb", "source tb_compat.tcl", "min = \"5\", max = \"15\"", &[]),
    ];
    for (rate, before, wanted, told) in table {
        let imported = of(rate, before);
        assert!(imported.scenario.contains(wanted), "{rate} {before}\n{}", imported.scenario);
        tells(&imported, told);
        if told.is_empty() {
            silent(&imported, &["thresh_ (ns-2"]);
        }
    }
}

/// ns-2 fills in the upper threshold once, at the beginning of the run: three times the lower one at that
/// time.
#[test]
fn a_threshold_that_changes_leaves_the_other() {
    let imported = from(
        Format::Ns,
        "Queue/RED set thresh_ 5\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
         $ns simplex-link $a $b 10Mb 10ms RED\n\
         set q [[$ns link $a $b] queue]\n$ns at 3 \"$q set thresh_ 9\"\n$ns at 4 \"$q set maxthresh_ 40\"\n",
    );
    for wanted in ["min = \"5\", max = \"15\"", "min = \"9\", max = \"15\"", "min = \"9\", max = \"40\""] {
        assert!(imported.scenario.contains(wanted), "{wanted}\n{}", imported.scenario);
    }
}

/// Comparisons of texts, random numbers, and the channel of a procedure that records windows.
#[test]
fn what_scripts_of_ns2_compute_with() {
    let script = "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\nset rng [new RNG]\n\
        set kind RED\n\
        set W [open win.tr w]\n\
        proc plotWindow {source file} {\n global ns\n puts $file [$ns now]\n}\n\
        if {$kind == \"RED\"} { set bw 3Mb } else { set bw 1Mb }\n\
        if {$kind ne \"RED\"} { set bw 9Mb }\n\
        set d [expr 10 + [$rng uniform 0 5]]\n\
        $ns duplex-link $a $b $bw ${d}ms DropTail\n\
        $ns queue-limit $a $b [expr int(rand() * 100)]\n\
        $ns at 1.0 \"plotWindow $a $W\"\n";
    let imported = from(Format::Ns, script);
    let link = "forward = { rate = \"3 Mbit/s\", delay = \"12.5 ms\", queue = \"50 packets\" }";
    has(&imported, &[link]);
    tells(&imported, &["uniform 0 5: a random number there", "rand() * 100): a random number there"]);
}

/// Procedures that trace, as in ns-2's tutorials, call themselves again; they are executed once. So are those
/// that change something, with a note.
#[test]
fn procedures_that_come_again_end() {
    let trace = "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\nset tcp [new Agent/TCP]\n\
        set sink [new Agent/TCPSink]\n\
        set W [open win.tr w]\n$ns duplex-link $a $b 3Mb 10ms DropTail\n\
        proc plotWindow {source file} {\n global ns\n set now [$ns now]\n set cwnd [$source set cwnd_]\n\
        puts $file \"$now $cwnd\"\n $ns at [expr $now + 0.1] \"plotWindow $source $file\"\n}\n\
        proc record {} {\n global sink W ns\n set bw [$sink set bytes_]\n puts $W \"[$ns now] [expr $bw / \
        0.5]\"\n\
        $sink set bytes_ 0\n $ns at [expr [$ns now] + 0.5] \"record\"\n}\n\
        $ns at 0.1 \"plotWindow $tcp $W\"\n$ns at 0.0 \"record\"\n$ns run\n";
    let imported = from(Format::Ns, trace);
    has(&imported, &["rate = \"3 Mbit/s\"", "delay = \"10 ms\""]);
    assert!(!lines(&imported).contains(&"[[at]]"), "{}", imported.scenario);
    tells(&imported, &["plotWindow $tcp $W: it repeats to record something"]);
    let again = "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
        $ns duplex-link $a $b 3Mb 10ms DropTail\n\
        proc vary {} {\n global ns a b\n $ns bandwidth $a $b 1Mb\n $ns at [expr [$ns now] + 1] vary\n $ns at \
        9 other\n}\n\
        $ns at 2 vary\n";
    let imported = from(Format::Ns, again);
    let events = lines(&imported).iter().filter(|line| **line == "[[at]]").count();
    assert_eq!(events, 1, "{}", imported.scenario);
    tells(
        &imported,
        &["vary: it repeats, and its changes are carried over once", "other: commands that are created"],
    );
}

/// A random variable gives its mean, with ns-2's defaults and with explicit settings.
#[test]
fn random_variables_give_their_means() {
    for (variable, wanted) in [
        ("new RandomVariable/Uniform]\n$u set min_ 2\n$u set max_ 8\n$u use-rng $rng", "15 ms"),
        ("new RandomVariable/Uniform]", "10.5 ms"),
        ("new RandomVariable/Exponential]\n$u set avg_ 4", "14 ms"),
        ("new RandomVariable/Constant]\n$u set val_ 7\n$u set val_ [expr [$u set val_] + 1]", "18 ms"),
        ("new RandomVariable/Normal]", "10 ms"),
    ] {
        let script = format!(
            "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\nset rng [new RNG]\n\
             set u [{variable}\n\
             $ns duplex-link $a $b 3Mb [expr 10 + [$u value]]ms DropTail\n"
        );
        let imported = from(Format::Ns, &script);
        has(&imported, &[&format!("delay = \"{wanted}\"")]);
        let told =
            imported.notes.iter().any(|note| note.to_string().contains("$u value: a random number there"));
        assert_eq!(told, !variable.contains("Constant"), "{:?}", imported.notes);
    }
}

/// Random numbers of ns-2 are real, so that their half is exact, except for those of `integer`.
#[test]
fn means_are_real_numbers() {
    for (value, wanted) in [
        ("[$u value] / 2", "2.5 ms"),
        ("[$rng uniform 1 5] / 2", "1.5 ms"),
        ("[$rng exponential 5] / 2", "2.5 ms"),
        ("[$rng integer 11] / 2", "2 ms"),
    ] {
        let script = format!(
            "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\nset rng [new RNG]\n\
             set u [new RandomVariable/Uniform]\n$u set min_ 3\n$u set max_ 7\n\
             $ns duplex-link $a $b 3Mb [expr {value}]ms DropTail\n"
        );
        has(&from(Format::Ns, &script), &[&format!("delay = \"{wanted}\"")]);
    }
}
