//! Dummynet: rules and pipes of ipfw.

use crate::{from, has, lines, plan, refused, silent, tells};
use longwire_import::Format;

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
        &["queue = { kind = \"red\", limit = \"100 packets\", min = \"10\", max = \"30\", max-p = \"10 \
             %\", weight = \"0.002\", gentle = \"yes\", mean-packet = \"512 B\" }"],
    );
    has(
        &one("queue 100 red 0.002/5/15/0.1 ecn"),
        &["queue = { kind = \"red\", limit = \"100 packets\", min = \"5\", max = \"15\", max-p = \"10 %\", \
             weight = \"0.002\", gentle = \"no\", mean-packet = \"512 B\", ecn = \"yes\" }"],
    );
    tells(&one("ecn"), &["it is carried over behind red"]);
    has(
        &one("codel target 5ms interval 100 ecn"),
        &["queue = { kind = \"codel\", limit = \"50 packets\", target = \"5 ms\", interval = \"100 ms\", \
             ecn = \"yes\" }"],
    );
    has(
        &one("pie target 20ms tupdate 15ms alpha 0.125 beta 1.25 max_burst 150ms noecn"),
        &["queue = { kind = \"pie\", limit = \"50 packets\", target = \"20 ms\", update = \"15 ms\", alpha \
             = \"0.125\", beta = \"1.25\", burst = \"150 ms\", ecn = \"no\" }"],
    );
    let fair = "pipe 1 config bw 1Mbit/s\n\
        sched 2 config pipe 1 type fq_codel target 5ms quantum 300 flows 64\n\
                queue 3 config sched 2 weight 10\nadd queue 3 ip from any to any";
    let imported = from(Format::Ipfw, fair);
    has(
        &imported,
        &["queue = { kind = \"fq-codel\", target = \"5 ms\", quantum = \"300 B\", flows = \"64\", ecn = \
             \"yes\" }"],
    );
    tells(
        &imported,
        &["weight 10", "with the queue's length, loss and discipline", "both directions share the pipe"],
    );
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

/// ipfw's defaults: marks in fq_codel and fq_pie, none in codel and pie (sbin/ipfw/dummynet.c).
#[test]
fn marks_are_those_of_dummynet() {
    let table = [
        ("codel", "queue = { kind = \"codel\", limit = \"50 packets\" }"),
        ("pie noecn", "queue = { kind = \"pie\", limit = \"50 packets\", ecn = \"no\" }"),
        ("fq_codel", "queue = { kind = \"fq-codel\", ecn = \"yes\" }"),
        ("fq_pie", "queue = { kind = \"fq-pie\", ecn = \"yes\" }"),
        ("type fq_pie noecn target 10ms", "queue = { kind = \"fq-pie\", ecn = \"no\", target = \"10 ms\" }"),
    ];
    for (kind, line) in table {
        has(&from(Format::Ipfw, &format!("dnctl pipe 1 config bw 1Mbit/s {kind}")), &[line]);
    }
}

/// A scheduler without a pipe uses the pipe with its own number; a queue has its own length and discipline.
#[test]
fn schedulers_and_queues_lead_to_pipes() {
    let script = "sudo /usr/sbin/dnctl pipe 1 config bw 10Mbit/s\n\
        dnctl -q sched 1 config type fq_pie target 15ms quantum 300\n\
                  ipfw queue 1 config sched 1\nipfw queue 2 config pipe 2 queue 20 pie target 5ms plr 0.1\n\
                  ipfw pipe config 2 bw 1Mbit/s\nipfw add queue 1 ip from any to any out\n\
                  ipfw add queue 2 ip from any to any in";
    let imported = from(Format::Ipfw, script);
    has(
        &imported,
        &[
            "queue = { kind = \"fq-pie\", target = \"15 ms\", quantum = \"300 B\", ecn = \"yes\" }",
            "queue = { kind = \"pie\", limit = \"20 packets\", target = \"5 ms\" }",
            "loss = \"10 %\"",
        ],
    );
    tells(&imported, &["line 4: plr: ipfw looks for options of pie only behind it"]);
    let direct =
        from(Format::Ipfw, "ipfw pipe 1 config bw 1Mbit/s fq_codel\nipfw add pipe 1 ip from any to any out");
    tells(&direct, &["into the pipe itself dummynet leads packets first in, first out"]);
    let lost = from(
        Format::Ipfw,
        "pipe 1 config bw 1Mbit/s\nsched 7 config type fq_codel\n\
         queue 3 config pipe 9\npipe 1 config delay 5",
    );
    tells(
        &lost,
        &[
            "sched 7: there is no pipe for it",
            "queue 3: no rule",
            "line 4: pipe 1 config delay 5: it is taken in place of line 1",
        ],
    );
    refused(Format::Ipfw, "pipe 1 config codel limit 100", "codel has no option \"limit\"");
    // The pipe's own length and loss are for packets without a queue.
    let own = "pipe 1 config bw 1Mbit/s queue 100 plr 0.1\nqueue 1 config pipe 1\n\
         add queue 1 ip from any to any out";
    let imported = from(Format::Ipfw, own);
    has(&imported, &["queue = \"50 packets\""]);
    assert!(!imported.scenario.contains("\nloss"), "{}", imported.scenario);
}

#[test]
fn units_are_those_of_ipfw() {
    let one = |config: &str| from(Format::Ipfw, &format!("ipfw pipe 1 config {config}"));
    has(&one("delay 20"), &["delay = \"20 ms\""]);
    has(&one("delay 2s"), &["delay = \"2 ms\""]);
    tells(&one("delay 2s"), &["delay 2s: ipfw reads whole milliseconds and no unit: it is 2 ms there"]);
    refused(Format::Ipfw, "ipfw pipe 1 config delay .5", "delay: \".5\"");
    // A queue in bytes has thresholds in bytes: 50 KiB of 512 bytes are 100 packets.
    let red = one("bw 1Mbit/s queue 500KB red 0.002/50K/150K/0.1");
    has(
        &red,
        &["queue = { kind = \"red\", limit = \"500 KiB\", min = \"100\", max = \"300\", max-p = \"10 %\", \
             weight = \"0.002\", gentle = \"no\", mean-packet = \"512 B\", unit = \"bytes\" }"],
    );
    tells(&red, &["min 51200 B is 100, max 153600 B is 300"]);
}

#[test]
fn ipfw_mistakes() {
    refused(Format::Ipfw, "ipfw pipe 0 config bw 1Mbit/s", "\"0\" is not a number of a pipe");
    refused(Format::Ipfw, "\nipfw pipe 1 config bw 1Xbit/s", "line 2: bw: \"1Xbit/s\" is not a bandwidth");
    let decimal = "bw: \"1.5Mbit/s\" is not a bandwidth; ipfw reads whole numbers: write bw 1500Kbit/s";
    refused(Format::Ipfw, "ipfw pipe 1 config bw 1.5Mbit/s", decimal);
    refused(Format::Ipfw, "ipfw pipe 1 config delay soon", "delay: \"soon\"");
    refused(Format::Ipfw, "ipfw pipe 1 config colour red", "no option \"colour\"");
    refused(Format::Ipfw, "ipfw add pipe 1 ip to any", "no from");
    refused(Format::Ipfw, "ipfw add allow ip from any to any", "no pipe is configured");
}

/// Two pipes, and a rule for each.
const PIPES: &str = "ipfw pipe 1 config bw 1Mbit/s\nipfw pipe 2 config bw 2Mbit/s\n\
    ipfw add 100 pipe 1 ip from any to any out\nipfw add 200 pipe 2 ip from any to any in\n";
const FIRST: &str = "rate = \"1 Mbit/s\"";
const SECOND: &str = "rate = \"2 Mbit/s\"";
const THIRD: &str = "rate = \"3 Mbit/s\"";
/// Commands after the pipes and rules, expected and unexpected lines, and notes.
type Taken = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);
const TAKEN: [Taken; 14] = [
    (
        "ipfw delete 100",
        &[SECOND],
        &[FIRST],
        &[
            "line 3: ipfw add 100 pipe 1 ip from any to any out: line 5 removes it again",
            "line 1: pipe 1: no rule",
        ],
    ),
    (
        "ipfw -q delete 100 200\nipfw add pipe 2 ip from any to any out",
        &[SECOND],
        &[FIRST],
        &["line 4: ipfw add 200", "line 1: pipe 1: no rule"],
    ),
    ("ipfw delete 150-250", &[FIRST], &[SECOND], &["line 4: ipfw add 200"]),
    ("ipfw delete 300", &[FIRST, SECOND], &[], &["ipfw delete 300: there is nothing with this number"]),
    ("ipfw delete set 3", &[FIRST, SECOND], &[], &["ipfw delete set 3: it is not executed"]),
    (
        "ipfw -f flush\nipfw add pipe 2 ip from any to any out",
        &[SECOND],
        &[FIRST],
        &["line 3: ipfw add 100", "line 4: ipfw add 200", "line 5 removes it"],
    ),
    (
        "ipfw pipe 1 delete",
        &[SECOND],
        &[FIRST],
        &["line 1: pipe 1: line 5 removes it again", "its pipe is not configured"],
    ),
    ("ipfw pipe delete 2", &[FIRST], &[SECOND], &["line 2: pipe 2: line 5 removes it again"]),
    (
        "ipfw pipe flush\nipfw pipe 1 config bw 3Mbit/s",
        &[THIRD],
        &[FIRST, SECOND],
        &["line 1: pipe 1: line 5", "line 2: pipe 2: line 5"],
    ),
    (
        "dnctl -q flush\ndnctl pipe 2 config bw 3Mbit/s",
        &[THIRD],
        &[FIRST, SECOND],
        &["line 1: pipe 1: line 5"],
    ),
    // Rules are evaluated by number.
    (
        "ipfw pipe 3 config bw 3Mbit/s\nipfw add 50 pipe 3 ip from any to any out",
        &[THIRD, SECOND],
        &[FIRST],
        &["ipfw add 100 pipe 1 ip from any to any out: another rule", "line 1: pipe 1: no rule"],
    ),
    // The last one is 300 here: the highest plus 100.
    (
        "ipfw add pipe 1 ip from any to any in\nipfw delete 300",
        &[FIRST, SECOND],
        &[],
        &["line 5: ipfw add pipe 1 ip from any to any in: line 6"],
    ),
    // At the end, and where execution is uncertain.
    (
        "ipfw show\nipfw -f flush\nipfw pipe flush",
        &[FIRST, SECOND],
        &[],
        &["line 6: ipfw -f flush: not carried over: it is at the end", "line 7: ipfw pipe flush"],
    ),
    (
        "if [ $1 = stop ]; then ipfw -f flush; ipfw pipe flush; exit; fi\nipfw add allow ip from any to any",
        &[FIRST, SECOND],
        &[],
        &["ipfw -f flush: it may not be executed"],
    ),
];

/// Deleted rules and pipes are gone, in the order of the script, each with a note.
#[test]
fn deletions_come_in_their_order() {
    for (more, wanted, unwanted, told) in TAKEN {
        let imported = from(Format::Ipfw, &format!("{PIPES}{more}"));
        has(&imported, wanted);
        // The last line with a rate belongs to the traffic.
        let rates: Vec<&str> = lines(&imported).into_iter().filter(|line| line.starts_with("rate")).collect();
        assert!(
            unwanted.iter().all(|line| !rates[..rates.len() - 1].contains(line)),
            "{more}\n{}",
            imported.scenario
        );
        tells(&imported, told);
        plan(&imported);
    }
    silent(&from(Format::Ipfw, &format!("ipfw -q -f flush\nipfw pipe flush\n{PIPES}")), &["flush", "again"]);
}

#[test]
fn pipes_that_nothing_leads_into() {
    let pairs = "pipe 1 config bw 1Mbit/s\npipe 2 config bw 2Mbit/s\n\
        add pipe 1 ip from 10.0.0.1 to 10.0.0.2\nadd pipe 1 ip from 10.0.0.2 to 10.0.0.1";
    tells(&from(Format::Ipfw, pairs), &["line 2: pipe 2: no rule that is carried over leads into it"]);
    silent(&from(Format::Ipfw, pairs), &["pipe 1: no rule"]);
}

/// A burst is in bytes, and k is 1024 (expand_number of libutil).
#[test]
fn bursts_are_bytes() {
    for (given, text) in [("10KBytes", "10 KiB"), ("64k", "64 KiB"), ("3000", "3 kB"), ("1M", "1 MiB")] {
        let line = format!("rate = {{ kind = \"token-bucket\", rate = \"1 Mbit/s\", burst = \"{text}\" }}");
        has(&from(Format::Ipfw, &format!("ipfw pipe 1 config bw 1Mbit/s burst {given}")), &[&line]);
    }
    refused(Format::Ipfw, "ipfw pipe 1 config bw 1Mbit/s burst 10Kbit", "burst: \"10Kbit\"");
}

/// Functions of a script get their arguments; uncalled ones are executed once.
#[test]
fn functions_of_scripts() {
    let script = "#!/bin/sh\nfw() { /sbin/ipfw -q \"$@\"; }\n\
        shape() {\n  local pipe=$1 rate=$2\n  fw pipe $pipe config bw ${rate}Mbit/s delay ${3:-5}\n}\n\
                  lead() { fw add $1 pipe $1 ip from any to any $2; }\nfw -f flush\nshape 10 3\n\
                  shape 20 8 40\nlead 10 out\nlead 20 in\n";
    let imported = from(Format::Ipfw, script);
    has(&imported, &["rate = \"3 Mbit/s\"", "delay = \"5 ms\"", "rate = \"8 Mbit/s\"", "delay = \"40 ms\""]);
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    plan(&imported);
    let rc = "#!/bin/sh\n. /etc/rc.subr\nname=shaper\nstart_cmd=\"${name}_start\"\n\
        stop_cmd=\"${name}_stop\"\n\
              shaper_start()\n{\n  ipfw pipe 1 config bw 5Mbit/s\n  ipfw add 100 pipe 1 ip from any to any \
              out\n}\n\
              shaper_stop()\n{\n  ipfw delete 100\n  ipfw pipe 1 delete\n}\nload_rc_config $name\n\
              run_rc_command \"$1\"\n";
    let imported = from(Format::Ipfw, rc);
    has(&imported, &["rate = \"5 Mbit/s\""]);
    tells(&imported, &["shaper_start(): nothing here calls it", "line 13: ipfw delete 100: "]);
    plan(&imported);
}

/// Branches of a case that start, stop, and both: repeated rules count once.
#[test]
fn starts_and_restarts() {
    let script = "start() \
        {\n  dnctl pipe 1 config bw 1Mbit/s delay 100\n  echo \"dummynet out from any to any pipe 1\" | \
        pfctl -f -\n}\n\
                  stop() { dnctl -q flush; }\ncase \"$1\" in\n  start) start ;;\n  stop) stop ;;\n  \
                  restart|reload) stop; start ;;\n  *) echo usage; exit 1 ;;\nesac\n";
    let imported = from(Format::Ipfw, script);
    has(&imported, &["rate = \"1 Mbit/s\"", "delay = \"100 ms\""]);
    tells(&imported, &["line 5: dnctl -q flush: it may not be executed"]);
    silent(&imported, &["in place of", "another rule", "usage", "exit"]);
    plan(&imported);
}

#[test]
fn sleeps_between_commands() {
    let script =
        "ipfw pipe 1 config bw 1Mbit/s\nsleep 30\nipfw pipe 1 config bw 2Mbit/s\nsleep 1m\nipfw -f flush";
    let imported = from(Format::Ipfw, script);
    tells(
        &imported,
        &[
            "line 2: sleep 30: what follows it comes 30 s after the beginning there",
            "line 3: ipfw pipe 1 config bw 2Mbit/s: it is taken in place of line 1",
            "line 4: sleep 1m: what follows it comes 90 s after the beginning there",
        ],
    );
}

/// Two rules for one pipe, one for each direction, share it as one rule for both does.
#[test]
fn one_pipe_for_both_directions_is_reported() {
    let script =
        "pipe 1 config bw 1Mbit/s\nadd pipe 1 ip from any to any out\nadd pipe 1 ip from any to any in";
    let imported = from(Format::Ipfw, script);
    tells(&imported, &["line 3: pipe 1: two rules lead both directions into one pipe"]);
    let apart = "pipe 1 config bw 1Mbit/s\npipe 2 config bw 1Mbit/s\nadd pipe 1 ip from any to any out\n\
                 add pipe 2 ip from any to any in";
    assert!(from(Format::Ipfw, apart).notes.is_empty());
}

/// Of pf's rules the last one that matches decides, unless an earlier one is quick.
#[test]
fn the_last_rule_of_pf_decides() {
    for (quick, is_second) in [("", true), ("quick ", false)] {
        let script = format!(
            "dnctl pipe 1 config bw 1Mbit/s\ndnctl pipe 2 config bw 2Mbit/s\n\
             match out {quick}from any to any dnpipe 1\nmatch out from any to any dnpipe 2"
        );
        let imported = from(Format::Ipfw, &script);
        assert_eq!(lines(&imported).contains(&SECOND), is_second, "{}", imported.scenario);
        tells(&imported, &["another rule has the packets of this direction"]);
    }
}
