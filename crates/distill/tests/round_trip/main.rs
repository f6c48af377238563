//! A known path is emulated in virtual time and distilled: each parameter is within its stated interval.
//!
//! Single paths are distilled at 99.99 %, so that a correct interval fails once in ten thousand; how often
//! intervals fail at 95 % is counted over many seeds.
#![forbid(unsafe_code)]

mod coverage;
mod path;
mod two_clocks;

use longwire_distill::{
    DelayFinding, Distilled, Distribution, Early, Estimate, Order, Process, QueueFinding, QueueUnit,
    RateFinding, scenario,
};
use path::{captures, distilled};

const MS: f64 = 1e6;
/// 7.9 Mbit/s with the check sequence.
const POISSON: &str = "size = \"996 B\"\nmodel = \"poisson\"\nrate = \"7.9 Mbit/s\"\npackets = 5000";
/// Packets that never meet.
const SPARSE: &str = "size = \"200 B\"\ninterval = \"50 ms\"\npackets = 4000";

fn run(link: &str, sources: &[&str]) -> Distilled {
    distilled(&captures(link, sources, 7), 0.9999)
}

fn constant(found: &Distilled) -> (Estimate, Option<Early>) {
    match &found.delay {
        Some(DelayFinding::Constant { delay_ns, early }) => (*delay_ns, *early),
        other => panic!("{other:?}"),
    }
}

fn varying(found: &Distilled) -> &Distribution {
    match &found.delay {
        Some(DelayFinding::Varying(varying)) => varying,
        other => panic!("{other:?}"),
    }
}

fn assert_lossless(found: &Distilled) {
    assert_eq!((found.loss.process, found.copies.copied), (Process::None, 0));
    assert!(found.loss.share.contains(0.0) && found.loss.share.high < 0.005);
}

#[test]
fn delay() {
    let found = run("delay = \"20 ms\"", &[POISSON]);
    let (delay, early) = constant(&found);
    assert!(delay.contains(20.0 * MS) && delay.high - delay.low < 10.0, "{delay:?}");
    assert!(early.is_none() && found.reordered == 0);
    assert!(matches!(found.rate, RateFinding::Unknown { waited: 0, .. }) && found.queue.is_none());
    assert_lossless(&found);
    let text = scenario(&found, "sent", "received");
    assert!(text.contains("\ndelay = \"20 ms\"\n") && text.contains("# No rate"), "{text}");
}

#[test]
fn delay_and_rate() {
    for (rate, bits) in [("10 Mbit/s", 1e7), ("33.333 Mbit/s", 33_333_000.0), ("8 Mbit/s", 8e6)] {
        let found = run(&format!("delay = \"5 ms\"\nrate = \"{rate}\"\nqueue = \"unlimited\""), &[POISSON]);
        let (delay, estimate) = (constant(&found).0, found.rate.estimate().unwrap());
        assert!(delay.contains(5.0 * MS) && delay.high - delay.low < 100.0, "{rate}: {delay:?}");
        assert!(estimate.contains(bits) && estimate.high / estimate.low < 1.0001, "{rate}: {estimate:?}");
        assert!(matches!(found.queue, Some(QueueFinding::AtLeast(2..))), "{:?}", found.queue);
        assert_lossless(&found);
        let text = scenario(&found, "sent", "received");
        assert!(text.contains("\ndelay = \"5 ms\"\n"), "{text}");
        assert!(text.contains(&format!("\nrate = \"{rate}\"\n")), "{text}");
    }
}

#[test]
fn a_rate_behind_jitter() {
    let delay =
        "delay = { delay = \"30 ms\", jitter = \"4 ms\", distribution = \"normal\", order = \"reorder\" }";
    let found = run(
        &format!("rate = \"10 Mbit/s\"\nqueue = \"unlimited\"\n{delay}"),
        &["size = \"996 B\"\nmodel = \"poisson\"\nrate = \"8 Mbit/s\"\npackets = 20000"],
    );
    let estimate = found.rate.estimate().unwrap();
    assert!(estimate.contains(1e7) && estimate.high / estimate.low < 1.4, "{estimate:?}");
    assert_normal(varying(&found));
    assert_eq!(varying(&found).order, Order::Changed);
}

#[test]
fn a_queue_limit_in_packets() {
    let overload = "size = \"996 B\"\nmodel = \"poisson\"\nrate = \"12 Mbit/s\"\npackets = 5000";
    for limit in [2, 20] {
        let link = format!("delay = \"5 ms\"\nrate = \"10 Mbit/s\"\nqueue = \"{limit} packets\"");
        let found = run(&link, &[overload]);
        let Some(QueueFinding::Full { limit: estimate, unit, .. }) = found.queue else { panic!("{found:?}") };
        assert!(unit == QueueUnit::Packets && estimate.contains(f64::from(limit)), "{estimate:?}");
        assert!(constant(&found).0.contains(5.0 * MS));
        assert_lossless(&found);
    }
}

#[test]
fn a_queue_limit_in_bytes_beside_other_losses() {
    let sources = [
        "size = \"1496 B\"\nmodel = \"poisson\"\nrate = \"9 Mbit/s\"\npackets = 3000",
        "size = \"296 B\"\nmodel = \"poisson\"\nrate = \"3 Mbit/s\"\npackets = 5000",
    ];
    let link = "delay = \"5 ms\"\nrate = \"10 Mbit/s\"\nqueue = \"20 kB\"\nloss = \"2 %\"";
    let found = run(link, &sources);
    let Some(QueueFinding::Full { limit, unit, is_either: false, .. }) = found.queue else {
        panic!("{found:?}")
    };
    assert!(unit == QueueUnit::Bytes && limit.contains(20_000.0), "{limit:?}");
    assert!(found.rate.estimate().unwrap().contains(1e7));
    assert!(
        found.loss.process == Process::Independent && found.loss.share.contains(0.02),
        "{:?}",
        found.loss
    );
}

#[test]
fn independent_losses() {
    let found = run("delay = \"5 ms\"\nloss = \"2 %\"", &[POISSON]);
    assert!(
        found.loss.process == Process::Independent && found.loss.share.contains(0.02),
        "{:?}",
        found.loss
    );
    assert!(found.loss.share.high < 0.035 && constant(&found).0.contains(5.0 * MS));
}

#[test]
fn losses_in_bursts() {
    let loss = "loss = { kind = \"gilbert-elliott\", p = \"1 %\", r = \"25 %\" }";
    let found = run(loss, &["size = \"200 B\"\ninterval = \"1 ms\"\npackets = 20000"]);
    let Process::Bursts { p, r, is_rejected } = found.loss.process else { panic!("{:?}", found.loss) };
    assert!(p.contains(0.01) && r.contains(0.25) && !is_rejected, "{p:?} {r:?}");
    assert!(found.loss.share.contains(0.01 / 0.26), "{:?}", found.loss.share);
    assert!(p.high - p.low < 0.01 && r.high - r.low < 0.2);
}

/// Quantiles of 30 ms and 4 ms, normal, at the shares that are reported.
fn assert_normal(found: &Distribution) {
    let deviations = [-2.3263, -1.6449, -0.6745, 0.0, 0.6745, 1.6449, 2.3263];
    for (deviation, estimate) in deviations.into_iter().zip(found.quantiles_ns) {
        let (estimate, wanted) = (estimate.unwrap(), (30.0 + 4.0 * deviation) * MS);
        assert!(estimate.contains(wanted), "{deviation}: {estimate:?}");
    }
    assert!(found.mean_ns.contains(30.0 * MS) && found.correlation.abs() < 0.1, "{found:?}");
}

#[test]
fn jitter() {
    let delay = "delay = { delay = \"30 ms\", jitter = \"4 ms\", distribution = \"normal\" }";
    let found = run(delay, &[SPARSE]);
    assert_normal(varying(&found));
    assert_eq!((varying(&found).order, found.reordered), (Order::Unknown, 0));
    let dense = "size = \"200 B\"\ninterval = \"1 ms\"\npackets = 4000";
    let found = run(&delay.replace(" }", ", order = \"reorder\" }"), &[dense]);
    assert_normal(varying(&found));
    assert!(varying(&found).order == Order::Changed && found.reordered > 100);
    assert!(scenario(&found, "sent", "received").contains("order = \"reorder\""));
    let kept = run(delay, &[dense]);
    assert!(varying(&kept).order == Order::Kept && varying(&kept).mean_ns.contains(30.0 * MS));
}

#[test]
fn reordering() {
    let link = "delay = \"20 ms\"\nreorder = { probability = \"5 %\", by = \"3 ms\" }";
    for rate in ["", "\nrate = \"10 Mbit/s\"\nqueue = \"unlimited\""] {
        let found = run(&format!("{link}{rate}"), &[POISSON]);
        let (delay, early) = constant(&found);
        let early = early.unwrap();
        assert!(
            delay.contains(20.0 * MS) && early.is_constant && early.by_ns.contains(3.0 * MS),
            "{early:?}"
        );
        assert!(early.share.contains(0.05) && early.share.high < 0.08, "{early:?}");
        assert_eq!(found.rate.estimate().is_some(), !rate.is_empty());
        assert!(found.reordered > 0);
    }
}

#[test]
fn duplicates() {
    for (delay, later) in [("", 0.0), (", delay = \"2 ms\"", 2.0 * MS)] {
        let link = format!("delay = \"5 ms\"\nduplicate = {{ probability = \"1 %\"{delay} }}");
        let found = run(&link, &[POISSON]);
        assert!(found.copies.share.contains(0.01) && found.copies.share.high < 0.02, "{:?}", found.copies);
        assert!(found.copies.later_ns.unwrap().contains(later), "{:?}", found.copies);
        assert!(constant(&found).0.contains(5.0 * MS) && found.reordered == 0);
    }
}

/// The scenario is emulated and distilled again: the constants are the same.
#[test]
fn a_distilled_path_distils_to_itself() {
    let link = "delay = \"12.5 ms\"\nrate = \"10 Mbit/s\"\nqueue = \"15 packets\"\nloss = \"1 %\"\n\
        duplicate = \"0.5 %\"";
    let traffic = "size = \"996 B\"\nmodel = \"poisson\"\nrate = \"9.9 Mbit/s\"\npackets = 8000";
    let text = scenario(&run(link, &[traffic]), "sent", "received");
    let again = text.split("to = \"b\"\n").nth(1).unwrap();
    for line in ["delay = \"12.5 ms\"", "rate = \"10 Mbit/s\"", "queue = \"15 packets\""] {
        assert!(again.lines().any(|found| found == line), "{line}: {text}");
    }
    let second = scenario(&run(again, &[traffic]), "sent", "received");
    for key in ["delay = ", "rate = ", "queue = "] {
        let value = |text: &str| text.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
        assert_eq!(value(&text), value(&second));
    }
}
