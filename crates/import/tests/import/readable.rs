//! Written scenarios are valid.

use crate::netem::NETEM;
use crate::{command, file, from, plan};
use longwire_import::{Format, Source, import};
use longwire_scenario::parse;
use std::path::Path;

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

/// Every option of every format, with existing files: the written scenario is valid.
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
    let line = |format, text: &str| read(format, &[command(text)]);
    for (options, _) in NETEM {
        line(Format::Netem, options);
    }
    line(Format::Netem, "tc qdisc add dev eth0 root netem delay 0ms");
    line(
        Format::Netem,
        "delay 100ms 20ms 25% distribution normal loss gemodel 1% 25% 70% 0.1% ecn corrupt 0.1% 5% duplicate \
         1% 10% reorder 25% 50% gap 3 rate 10mbit 5 slot 1ms 2ms packets 10 bytes 20000 limit 500 seed 7",
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
    for how in ["cont HOLD seed 3", "cont CLEAR overhead 4 byteqlen", "cont LOOP stage RUN"] {
        let options = format!("tc qdisc change dev eth0 root theaterq {how}");
        let sources = [file("simple.csv", simple), file("extended.csv", extended)];
        read(Format::Theaterq, &[&sources[..], &[command(&options)]].concat());
    }
}
