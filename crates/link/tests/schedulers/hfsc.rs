//! HFSC: guarantees, sharing and limits, and the paper's purpose.

use super::bench::{BYTE, Bench, LONGEST, MS, SECOND};
use longwire_block::Dice;

fn bench(classes: &str) -> Bench {
    Bench::new("hfsc", &[("classes", classes)], "")
}

/// Longest wait of a flow's packets.
fn longest_wait(bench: &Bench, flow: u16) -> u64 {
    bench.left.iter().filter(|left| left.flow == flow).map(|left| left.leave - left.arrival).max().unwrap()
}

/// The paper's example: audio of 64 kbit/s in packets of 160 bytes. With a straight curve it waits 20 ms, the
/// time of a packet at its rate; with 256 kbit/s for 5 ms it waits at most 5 ms and one longest packet, at
/// the same long-term rate.
#[test]
fn delay_and_rate_are_decoupled() {
    let classes = |audio: &str, data: &str| {
        format!("audio rt {audio} ls 8 kbit/s if udp src port 1\ndata rt {data} ls 8 Mbit/s limit unlimited")
    };
    let run = |classes: &str| {
        let mut bench = bench(classes);
        for _ in 0..3500 {
            bench.arrive(0, 2, LONGEST);
        }
        for n in 0..200 {
            bench.arrive(n * 20 * MS + 3 * MS, 1, 160);
        }
        bench.advance(5 * SECOND);
        longest_wait(&bench, 1)
    };
    let straight = run(&classes("64 kbit/s", "7936 kbit/s"));
    assert!((15 * MS..=20 * MS + LONGEST * BYTE).contains(&straight), "{straight}");
    let concave = run(&classes("256 kbit/s 5 ms 64 kbit/s", "7744 kbit/s 5 ms 7936 kbit/s"));
    assert!(concave <= 5 * MS + LONGEST * BYTE, "{concave}");
}

/// The paper's guarantee: no packet leaves later than its deadline plus the time of one longest packet. The
/// curves, in bytes and microseconds of a class that is backlogged from 0 on, add up to the rate at every
/// time.
#[test]
fn guarantees_are_kept() {
    // (slope 1 in kbit/s, ms, slope 2).
    let curves: [(u64, u64, u64); 4] = [(4000, 10, 1000), (1000, 10, 3000), (3000, 10, 3000), (0, 10, 1000)];
    let class = |(n, (m1, d, m2))| {
        let m1 = if m1 == 0 { "0".into() } else { format!("{m1} kbit/s") };
        // Shared bandwidth goes to others first.
        format!("c{n} rt {m1} {d} ms {m2} kbit/s ls 1 kbit/s limit unlimited if udp src port {n}\n")
    };
    let classes: String = curves.into_iter().enumerate().map(class).collect();
    let mut bench = bench(&format!("{classes}rest ls 8 Mbit/s limit unlimited"));
    let mut dice = Dice::named(1, "guarantees");
    bench.fill(0, &[9, 0, 1, 2, 3], 2500, &mut dice);
    bench.advance(3 * SECOND);
    let mut served = [0u64; 4];
    for left in bench.left.iter().filter(|left| left.flow < 4) {
        let (m1, d, m2) = curves[usize::from(left.flow)];
        let served = &mut served[usize::from(left.flow)];
        *served += left.bytes;
        // 1 kbit/s for 1 ms is a bit; a byte at m kbit/s takes 8·10⁶/m ns.
        let by_knee = m1 * d / 8;
        let due = match *served <= by_knee {
            true => *served * 8 * MS / m1,
            false => d * MS + (*served - by_knee) * 8 * MS / m2,
        };
        assert!(left.leave <= due + LONGEST * BYTE, "{left:?}: due at {due}");
    }
    assert!(served.iter().all(|&bytes| bytes > 350_000), "{served:?}");
}

/// A class whose packets come and go is served by its curve anew each time, unless it still has a debt.
#[test]
fn guarantees_hold_beside_bursts() {
    let text = "voice rt 2 Mbit/s 10 ms 400 kbit/s ls 8 kbit/s if udp src port 1\n\
                rest rt 6 Mbit/s ls 8 Mbit/s limit unlimited";
    let mut bench = bench(text);
    let mut dice = Dice::named(2, "bursts");
    for _ in 0..6000 {
        bench.arrive(0, 2, 700 + dice.below(LONGEST - 699));
    }
    // Every 50 ms 2500 bytes, as the curve allows: 2500 in 10 ms, and 2500 each 50 ms.
    for n in 0..100 {
        for _ in 0..5 {
            bench.arrive(n * 50 * MS + dice.below(MS), 1, 500);
        }
    }
    bench.advance(5 * SECOND);
    let most = longest_wait(&bench, 1);
    assert!(most <= 10 * MS + MS + LONGEST * BYTE, "{most}");
}

/// In any interval, a class gets at most its upper limit, its credit of 10 ms, and a packet; alone, it gets
/// the limit.
#[test]
fn upper_limits_are_kept() {
    let text = "a ls 1 Mbit/s ul 2 Mbit/s limit unlimited if udp src port 1\nb ls 1 Mbit/s limit unlimited";
    let mut bench = bench(text);
    let mut dice = Dice::named(3, "limits");
    bench.fill(0, &[1], 1200, &mut dice);
    // The other comes and goes.
    for n in 1..=3 {
        bench.fill(n * 500 * MS, &[2], 100, &mut dice);
    }
    bench.advance(1900 * MS);
    let own: Vec<_> = bench.left.iter().filter(|left| left.flow == 1).collect();
    for (n, first) in own.iter().enumerate() {
        let mut bytes = 0;
        for last in &own[n..] {
            bytes += last.bytes;
            // 2 Mbit/s is a byte each 4 µs; the first began when its first bit was sent.
            let time = last.leave - (first.leave - first.bytes * BYTE);
            assert!(bytes * 4 * BYTE <= time + 10 * MS + LONGEST * 4 * BYTE, "{first:?} {last:?} {bytes}");
        }
    }
    let alone = bench.bytes(1, 0, 500 * MS);
    assert!(alone.abs_diff(125_000) <= LONGEST, "{alone}");
}

/// The whole link's limit, and a packet that arrives while the link is idle.
#[test]
fn the_link_rests_and_wakes() {
    let mut bench = bench("root ul 1 Mbit/s\na ls 1 Mbit/s");
    for at in [0, 0, 3 * MS, 40 * MS] {
        bench.arrive(at, 1, 1000);
    }
    bench.advance(SECOND);
    let leaves: Vec<u64> = bench.left.iter().map(|left| left.leave).collect();
    // A packet every 8 ms, each taking one.
    assert_eq!(leaves, [MS, 9 * MS, 17 * MS, 41 * MS]);
}

/// A class without `ls` gets its guarantee and no more, even on an idle link.
#[test]
fn a_guarantee_alone_is_no_share() {
    let mut bench = bench("a rt 1 Mbit/s limit unlimited if udp src port 1\nb ls 1 Mbit/s");
    for _ in 0..200 {
        bench.arrive(0, 1, 1000);
    }
    bench.advance(SECOND);
    assert!(bench.bytes(1, 0, SECOND).abs_diff(125_000) <= 1000);
}

/// Phases of a second: which flows are backlogged, and the share of each, in thousands of bytes.
fn check_shares(classes: &str, phases: &[(&[u16], &[u64])]) {
    for (flows, wanted) in phases {
        let mut bench = bench(classes);
        let mut dice = Dice::named(4, "shares");
        bench.fill(0, flows, 1500, &mut dice);
        bench.advance(SECOND);
        let got: Vec<u64> = flows.iter().map(|&flow| bench.bytes(flow, 0, SECOND)).collect();
        for (bytes, thousands) in got.iter().zip(*wanted) {
            // Tolerance: a packet for each level and sibling that a class shares with, and the one being
            // sent.
            assert!(bytes.abs_diff(thousands * 1000) <= 2 * LONGEST, "{flows:?}: {got:?}, not {wanted:?}");
        }
        assert!(got.iter().sum::<u64>() + LONGEST > 1_000_000, "{flows:?}: the link rested");
    }
}

/// Bandwidth unused by siblings goes to siblings first, then up the tree.
#[test]
fn excess_is_shared_by_the_tree() {
    let text = "a ls 6 Mbit/s\na.x ls 1 Mbit/s limit unlimited if udp src port 1\n\
                a.y ls 2 Mbit/s limit unlimited if udp src port 2\nb ls 2 Mbit/s limit unlimited";
    check_shares(
        text,
        &[
            (&[1, 2, 3], &[250, 500, 250]),
            (&[2, 3], &[750, 250]),
            (&[1, 3], &[750, 250]),
            (&[1, 2], &[333, 667]),
            (&[3], &[1000]),
        ],
    );
}

/// A guarantee beyond a class's share is taken from all; the rest is shared by the curves.
#[test]
fn guarantees_go_before_shares() {
    let text = "a rt 5 Mbit/s ls 100 kbit/s limit unlimited if udp src port 1\n\
                b ls 1 Mbit/s limit unlimited if udp src port 2\nc ls 2 Mbit/s limit unlimited";
    check_shares(text, &[(&[1, 2, 3], &[625, 125, 250])]);
}

/// A class that comes back is not delayed by a sibling that is ahead by its guarantee alone, nor does it get
/// what it missed.
#[test]
fn who_comes_back_gets_its_share_from_then_on() {
    let text = "a rt 5 Mbit/s ls 8 kbit/s limit unlimited if udp src port 1\n\
                b ls 1 Mbit/s limit unlimited if udp src port 2\nc ls 1 Mbit/s limit unlimited";
    let mut bench = bench(text);
    let mut dice = Dice::named(5, "back");
    bench.fill(0, &[1, 2], 2000, &mut dice);
    bench.advance(SECOND);
    bench.fill(SECOND, &[3], 500, &mut dice);
    bench.advance(2 * SECOND);
    for (from, to) in [(1000, 1100), (1000, 2000)] {
        let (b, c) = (bench.bytes(2, from * MS, to * MS), bench.bytes(3, from * MS, to * MS));
        assert!(b.abs_diff(c) <= 2 * LONGEST, "{from} to {to}: {b} {c}");
    }
}

/// Link sharing as intended by class-based queueing: agencies with 50, 40 and 10 % of a link, each with its
/// own classes; a class borrows from its agency first, and an agency from the others.
#[test]
fn class_based_queueing() {
    let text = "a ls 4 Mbit/s\na.interactive ls 1600 kbit/s limit unlimited if udp src port 1\n\
                a.bulk ls 2400 kbit/s limit unlimited if udp src port 2\n\
                b ls 3200 kbit/s\nb.interactive ls 800 kbit/s limit unlimited if udp src port 3\n\
                b.bulk ls 2400 kbit/s limit unlimited if udp src port 4\nc ls 800 kbit/s limit unlimited";
    check_shares(
        text,
        &[
            (&[1, 2, 3, 4, 5], &[200, 300, 100, 300, 100]),
            (&[2, 3, 4, 5], &[500, 100, 300, 100]),
            (&[3, 4, 5], &[200, 600, 200]),
            (&[1, 2, 4], &[222, 333, 444]),
        ],
    );
}

/// Random trees, curves and traffic: all packets leave, and without limits the link is never idle while a
/// packet waits.
#[test]
fn any_tree_conserves_work() {
    for seed in 0..60 {
        let mut dice = Dice::named(seed, "trees");
        let limited = seed % 3 == 0;
        let rate = |dice: &mut Dice| format!("{} kbit/s", 1 + dice.below(9000));
        let curve = |dice: &mut Dice| match dice.below(2) {
            0 => rate(dice),
            _ => format!("{} {} us {}", rate(dice), dice.below(20_000), rate(dice)),
        };
        let (mut text, mut paths) = (String::new(), Vec::new());
        for flow in 0..8 {
            // Leaves below the link, below the first inner class, and below the second, which is within the
            // first.
            let path = ["", "n.", "n.m."][dice.below(3) as usize];
            let rt = if dice.below(2) == 0 { format!("rt {}", curve(&mut dice)) } else { String::new() };
            let ul = if limited && dice.below(2) == 0 {
                format!("ul {}", curve(&mut dice))
            } else {
                String::new()
            };
            let ls = curve(&mut dice);
            paths.push(format!("{path}c{flow} {rt} ls {ls} {ul} limit unlimited if udp src port {flow}\n"));
        }
        let (n, m) = (curve(&mut dice), curve(&mut dice));
        text +=
            &format!("n ls {n}\nn.m ls {m}\nn.m.other ls 1 Mbit/s\nn.other ls 1 Mbit/s\n{}", paths.concat());
        let mut bench = bench(&text);
        let (mut at, mut arrivals) = (0, Vec::new());
        for _ in 0..1500 {
            arrivals.push(at);
            bench.arrive(at, dice.below(9) as u16, 64 + dice.below(LONGEST - 63));
            at += if dice.below(3) == 0 { dice.below(2 * MS) } else { dice.below(MS / 2) };
        }
        bench.advance(u64::MAX - 1);
        assert_eq!(bench.left.len(), arrivals.len(), "seed {seed}\n{text}");
        let mut waiting = arrivals;
        let mut before = 0;
        for left in &bench.left {
            let begin = left.leave - left.bytes * BYTE;
            // Packets are removed by their arrival, so the first remaining one has waited longest.
            let first = waiting[0];
            assert!(begin >= before, "seed {seed}: two at once");
            assert!(
                limited || begin == before.max(first),
                "seed {seed}: rests from {before} to {begin}\n{text}"
            );
            waiting.remove(waiting.binary_search(&left.arrival).unwrap());
            before = left.leave;
        }
    }
}
