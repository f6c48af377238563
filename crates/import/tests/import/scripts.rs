//! Realistic scripts: shells around the commands, tutorials, hand-written set-ups. The results are valid and
//! equivalent.

use crate::{file, from, has, plan, refused, tells};
use longwire_import::{Format, import};

/// A script, its resulting lines, and its notes.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

fn all(format: Format, cases: &[Case]) {
    for (script, wanted, told) in cases {
        let imported = from(format, script);
        has(&imported, wanted);
        tells(&imported, told);
        plan(&imported);
    }
}

const HALF: &str = "loss = \"0.5 %\"";

#[test]
fn scripts_of_tc() {
    let cases: &[Case] = &[
        // Variables, defaults, redirections, a cleanup that may fail.
        (
            "#!/usr/bin/env bash\nset -euo pipefail\nIF=\"${IFACE:-eth0}\"\nLAT=\"${LAT:-60ms}\"\n\
             JIT=\"${JIT:-10ms}\"\nLOSS=\"${LOSS:-0.5%}\"\n\
             tc qdisc del dev \"$IF\" root 2>/dev/null || true\n\
             tc qdisc add dev \"$IF\" root handle 1: tbf rate \"${RATE:-10mbit}\" burst 32kbit latency \
             400ms\n\
             tc qdisc add dev \"$IF\" parent 1: handle 10: netem \\\n  delay \"$LAT\" \"$JIT\" distribution \
             normal \\\n  loss \"$LOSS\"\n",
            &[HALF, "rate = { kind = \"token-bucket\", rate = \"10 Mbit/s\", burst = \"4 KiB\" }"],
            &[],
        ),
        // The command in a variable, numbers without units, ifb for incoming packets.
        (
            "TC=\"sudo tc\"\nDEV=enp3s0\nDELAY_MS=20\nmodprobe ifb\nip link set dev ifb0 up\n\
             $TC qdisc add dev $DEV ingress\n\
             $TC filter add dev $DEV parent ffff: \\\n   protocol ip u32 match u32 0 0 flowid 1:1 action \
             mirred egress redirect dev ifb0\n\
             $TC qdisc add dev ifb0 root netem delay ${DELAY_MS}ms\n\
             $TC qdisc add dev $DEV root netem delay $((DELAY_MS / 2))ms",
            &["name = \"ifb0\"", "delay = \"20 ms\"", "name = \"enp3s0\"", "delay = \"10 ms\""],
            &["ip link set dev ifb0 up", "incoming packets are shaped where they leave", "tc filter add"],
        ),
        // Both branches of an if, and a case.
        (
            "case \"$1\" in\n  start)\n    if [ -n \"$2\" ]; then\n      tc qdisc replace dev eth1 root \
             netem delay 200ms\n    fi\n    ;;\n\
             stop|down)\n    tc qdisc del dev eth1 root\n    ;;\nesac",
            &["delay = \"200 ms\""],
            &[
                "line 1: case $1 in: its contents",
                "line 3: if [ -n $2 ]",
                "line 8: tc qdisc del dev eth1 root: not carried over",
            ],
        ),
        // A loop over two interfaces of a box between networks.
        (
            "for dev in eth1 eth2; do\n  /sbin/tc qdisc add dev $dev root netem rate 5mbit delay 25ms limit \
             200\ndone",
            &["name = \"eth1-1\"", "name = \"eth2-2\"", "queue = \"200 packets\""],
            &["limit 200"],
        ),
    ];
    all(Format::Netem, cases);
}

#[test]
fn scripts_of_tc_with_namespaces_batches_and_classes() {
    let cases: &[Case] = &[
        // Namespaces: two interfaces with the same name.
        (
            "ip netns add h1; ip netns add h2\nip netns exec h1 tc qdisc add dev veth0 root netem delay 5ms\n\
             tc -n h2 qdisc add dev veth0 root netem delay 7ms loss 0.5%\n",
            &["name = \"h1:veth0\"", "name = \"h2:veth0\"", "delay = \"7 ms\"", HALF],
            &["ip netns add h1"],
        ),
        // A batch file.
        (
            "qdisc add dev eth0 root handle 1: prio\n\
             qdisc add dev eth0 parent 1:3 handle 30: netem delay 200ms 10ms distribution normal\n\
             filter add dev eth0 protocol ip parent 1:0 prio 3 u32 match ip dst 65.172.181.4/32 flowid 1:3",
            &[],
            &["line 1: prio: of tc's qdiscs", "filter add dev eth0"],
        ),
        // Commands in words of others, switches of tc, abbreviations.
        (
            "docker exec -it web sh -c \"tc -s -d q r dev eth0 root netem d 30ms 5ms\" && echo ok\n\
             ssh gw 'sudo tc qdisc show dev eth0'",
            &["name = \"eth0\""],
            &["tc qdisc show dev eth0: it changes nothing"],
        ),
        // Class rates are noted, and so is a size table.
        (
            "tc qdisc add dev lo root handle 1: htb default 10\n\
             tc class add dev lo parent 1: classid 1:10 htb rate 100Mbit quantum 1500\n\
             tc qdisc add dev lo parent 1:10 stab overhead 4 linklayer atm handle 10: netem delay 50ms",
            &["name = \"lo\"", "name = \"lo-back\"", "delay = \"50 ms\""],
            &["tc class add dev lo", "stab overhead 4 linklayer atm"],
        ),
    ];
    all(Format::Netem, cases);
}

#[test]
fn scripts_of_ipfw_and_dnctl() {
    let cases: &[Case] = &[
        // Rules in a variable, as in FreeBSD's handbook.
        (
            "#!/bin/sh\nfwcmd=\"/sbin/ipfw -q\"\ncmd=\"ipfw -q add\"\npif=\"em0\"\n$fwcmd -f flush\n\
             $cmd 00005 allow all from any to any via lo0\n\
             $fwcmd pipe 1 config bw 300Kbit/s delay 50 plr 0.01\n\
             $cmd 00100 pipe 1 ip from any to any out via $pif\n\
             $fwcmd pipe 2 config bw 1Mbit/s queue 40\n$cmd 00110 pipe 2 ip from any to any in via $pif",
            &["rate = \"300 kbit/s\"", "delay = \"50 ms\"", "loss = \"1 %\"", "queue = \"40 packets\""],
            &["line 6: ipfw -q add 00005 allow", "via em0"],
        ),
        // macOS: rules of pf in an echo.
        (
            "sudo pfctl -E\nsudo dnctl -q flush\nsudo dnctl pipe 1 config bw 10Mbit/s delay 20 plr .05\n\
             sudo dnctl pipe 2 config delay 5ms noerror\n\
             echo \"dummynet out proto { udp tcp } from any to any port { 1234 1235 } pipe 1\" | sudo pfctl \
             -f -\n\
             (cat /etc/pf.conf && echo \"dummynet in all pipe 2\") | sudo pfctl -a custom -f -",
            &["name = \"pipe1\"", "loss = \"5 %\"", "delay = \"20 ms\"", "delay = \"5 ms\""],
            &["line 1: sudo pfctl -E", "protocols, ports and interfaces", "noerror"],
        ),
        // A box between two networks that cures bufferbloat.
        (
            "dnctl pipe 1 config bw 90Mbit/s\ndnctl sched 1 config pipe 1 type fq_codel target 5ms interval \
             100ms quantum 1514 limit 10240 flows 1024 ecn\n\
             dnctl queue 1 config sched 1\ndnctl pipe 2 config bw 9Mbit/s\n\
             dnctl sched 2 config pipe 2 type fq_pie\ndnctl queue 2 config sched 2\n",
            &[
                "queue = { kind = \"fq-codel\", target = \"5 ms\", interval = \"100 ms\", quantum = \"1.514 \
                 kB\", limit = \"10240 packets\", flows = \"1024\", ecn = \"yes\" }",
                "queue = { kind = \"fq-pie\", ecn = \"yes\" }",
            ],
            &["no rule leads into a pipe"],
        ),
        // One variable for all links, and a loop.
        (
            "delay='100ms'; plr='0.005'; bw='10Mbits/s'\nipfw flush\nipfw add pipe 100 in\n\
             ipfw add pipe 200 out\n\
             for p in 100 200; do ipfw pipe $p config delay $delay plr $plr bw $bw; done",
            &["name = \"pipe200\"", "name = \"pipe100\"", "rate = \"10 Mbit/s\"", "loss = \"0.5 %\""],
            &[],
        ),
        // pf of FreeBSD.
        (
            "dnctl pipe 1 config bw 1Mbit/s queue 60KBytes\nmatch out on em0 inet from any to any dnpipe 1",
            &["queue = \"60 KiB\"", "from = \"a\""],
            &["protocols, ports and interfaces"],
        ),
    ];
    all(Format::Ipfw, cases);
}

#[test]
fn scripts_of_ns2() {
    /// The usual beginning and end.
    const HEAD: &str = "set ns [new Simulator]\n$ns color 1 Blue\nset nf [open out.nam w]\n\
        $ns namtrace-all $nf\n\
        proc finish {} {\n  global ns nf\n  $ns flush-trace\n  close $nf\n\
        \x20 exec nam out.nam &\n  exit 0\n}\n";
    const TAIL: &str = "set tcp [new Agent/TCP]\n$tcp set class_ 2\n$ns attach-agent $n0 $tcp\n\
        set sink [new Agent/TCPSink]\n\
        $ns attach-agent $n3 $sink\n$ns connect $tcp $sink\nset ftp [new Application/FTP]\n\
        $ftp attach-agent $tcp\n\
        $ns at 1.0 \"$ftp start\"\n$ns at 5.0 \"finish\"\nputs \"done\"\n$ns run\n";
    let tutorial = "set n0 [$ns node]\nset n1 [$ns node]\nset n2 [$ns node]\nset n3 [$ns node]\n\
        $ns duplex-link $n0 $n2 2Mb 10ms DropTail\n\
        $ns duplex-link $n1 $n2 2Mb 10ms DropTail\n$ns duplex-link $n2 $n3 1.7Mb 20ms DropTail\n\
        $ns queue-limit $n2 $n3 10\n\
        $ns duplex-link-op $n0 $n2 orient right-down\n$ns duplex-link-op $n2 $n3 queuePos 0.5\n";
    let imported = from(Format::Ns, &format!("{HEAD}{tutorial}{TAIL}"));
    let bottleneck = "forward = { rate = \"1.7 Mbit/s\", delay = \"20 ms\", queue = \"10 packets\" }";
    has(&imported, &[bottleneck, "name = \"n0-n2\""]);
    tells(
        &imported,
        &["open out.nam w", "orient right-down", "exec nam", "nodes with several links are bridges"],
    );
    plan(&imported);
    let ring = "for {set i 0} {$i < 7} {incr i} { set n($i) [$ns node] }\nset n0 $n(0)\nset n3 $n(3)\n\
        for {set i 0} {$i < 7} {incr i} { $ns duplex-link $n($i) $n([expr ($i+1)%7]) 1Mb 10ms DropTail }\n\
        $ns rtproto DV\n$ns rtmodel-at 1.0 down $n(1) $n(2)\n$ns rtmodel-at 2.0 up $n(1) $n(2)\n";
    let imported = from(Format::Ns, &format!("{HEAD}{ring}{TAIL}"));
    has(&imported, &["routing = \"shortest-delay\"", "time = \"1 s\"", "state = \"down\""]);
    plan(&imported);
    let red = "Queue/RED set bytes_ false\nQueue/RED set queue_in_bytes_ false\nQueue/RED set thresh_ 5\n\
        Queue/RED set maxthresh_ 15\n\
        Queue/RED set q_weight_ 0.002\nset n0 [$ns node]\nset n3 [$ns node]\n\
        $ns duplex-link $n0 $n3 1.5Mb 20ms RED\n\
        $ns queue-limit $n0 $n3 25\nset redq [[$ns link $n0 $n3] queue]\n$redq trace curq_\n\
        $redq set linterm_ 50\n";
    let imported = from(Format::Ns, &format!("{HEAD}{red}{TAIL}"));
    let wanted = "limit = \"25 packets\", min = \"5\", max = \"15\", max-p = \"2 %\", weight = \"0.002\", \
        gentle = \"yes\", mean-packet = \"500 B\" }";
    assert!(imported.scenario.contains(wanted), "{}", imported.scenario);
    tells(&imported, &["trace curq_"]);
    assert!(!imported.notes.iter().any(|note| note.option.contains("bytes_")), "{:?}", imported.notes);
    plan(&imported);
    let list = "set n0 [$ns node]\nset n3 [$ns node]\nset rates [list 1Mb 2Mb]\n\
        $ns duplex-link $n0 $n3 [lindex $rates 1] 10ms SFQ\n";
    let imported = from(Format::Ns, &format!("{HEAD}{list}{TAIL}"));
    has(&imported, &["rate = \"2 Mbit/s\""]);
    tells(&imported, &["SFQ: there is no such queue here"]);
}

#[test]
fn commands_of_mahimahi() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "mm-delay 40 mm-link /usr/share/mahimahi/traces/Verizon-LTE-short.up \
             /usr/share/mahimahi/traces/Verizon-LTE-short.down -- chromium",
            &["delay = \"40 ms\"", "queue = \"unlimited\""],
            &["chromium"],
        ),
        (
            "mm-link 12mbps.trace 12mbps.trace --uplink-log=up.log --downlink-log=down.log \
             --uplink-queue=droptail --uplink-queue-args=\"packets=100\" mm-delay 20 mm-loss uplink 0.1 \
             ./run.sh",
            &["queue = \"100 packets\"", "loss = \"10 %\"", "delay = \"20 ms\""],
            &["--uplink-log up.log", "./run.sh"],
        ),
        (
            "mm-loss downlink 0.02 mm-link --meter-all --downlink-queue=pie \
             --downlink-queue-args=\"packets=100, qdelay_ref=20, max_burst=150\" up down",
            &[
                "loss = \"2 %\"",
                "queue = { kind = \"pie\", limit = \"100 packets\", update = \"30 ms\", target = \"20 ms\", \
                 burst = \"150 ms\" }",
            ],
            &["--meter-all"],
        ),
        (
            "#!/bin/bash\nRTT=30\nmm-delay $((RTT / 2)) \\\n  mm-link up.trace down.trace \
             --uplink-queue=drophead --uplink-queue-args=bytes=30000 -- bash -c 'iperf3 -c $MAHIMAHI_BASE'",
            &["delay = \"15 ms\"", "queue = { kind = \"head-drop\", limit = \"30 kB\" }"],
            &["iperf3 -c $MAHIMAHI_BASE"],
        ),
        ("mm-webrecord rec mm-delay 10 mm-webreplay rec chromium", &["delay = \"10 ms\""], &["mm-webrecord"]),
    ];
    for (script, wanted, told) in cases {
        let imported = from(Format::Mahimahi, script);
        has(&imported, wanted);
        tells(&imported, told);
    }
}

#[test]
fn traces_of_theaterq_as_they_are_published() {
    // Ten fields: QUEUE_ID follows ROUTE_ID; a rate of -1 sends without limit.
    let ten = "KEEP,LATENCY,JITTER,RATE,LOSS,LIMIT,DUP_PROB,DUP_DELAY,ROUTE_ID,QUEUE_ID\n\
        1000,5000000,0,-1,0,100,0,0,1,1\n2000,5000000,0,1000000,0,100,0,0,1,2\n";
    let options =
        "sudo TC_LIB_DIR=tclib tc qdisc add dev eth0 root handle 1 theaterq ingest EXTENDED syncgroup 0";
    let sources = [file("t.csv", ten), crate::command(options)];
    let imported = import(Format::Theaterq, &sources).unwrap();
    has(&imported, &["rate = { kind = \"trace\", file = \"t.csv\", end = \"hold\" }"]);
    tells(&imported, &["t.csv: ROUTE_ID", "t.csv: QUEUE_ID", "syncgroup 0", "ingest EXTENDED"]);
}

/// Other commands around the relevant ones cause no notes; missing values are requested.
#[test]
fn shells_around_commands() {
    let script = "set -e\ntc qdisc del dev eth0 root || true\n\
        case \"$1\" in\n 3g) tc qdisc add dev eth0 root netem delay 150ms ;;\n *) echo usage; exit 1 ;;\n\
        esac\n";
    let imported = from(Format::Netem, script);
    has(&imported, &["delay = \"150 ms\""]);
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
    tells(&imported, &["case $1 in: its contents are treated as executed once"]);
    let slots = from(Format::Netem, "tc qdisc add dev eth0 root netem slot 800us 1ms packets 32 bytes 64k");
    assert!(slots.scenario.contains("packets = \"32\", bytes = \"65536\""), "{}", slots.scenario);
    refused(
        Format::Netem,
        "tc qdisc add dev eth0 root netem rate \"$2\"",
        "rate: \"$2\" has no value in this text; write its value in its place, as in: write rate 1mbit",
    );
    has(
        &from(Format::Netem, "f() { tc qdisc add dev \"$1\" root netem rate \"$2\"; }\nf eth0 5mbit"),
        &["name = \"eth0\"", "rate = \"5 Mbit/s\""],
    );
    let several = "for d in 10 20; do mm-delay $d ping x; done";
    let imported = from(Format::Mahimahi, several);
    has(&imported, &["delay = \"10 ms\""]);
    tells(&imported, &["mm-delay 20 ping x: it runs by itself there"]);
}
