//! Several changes at one instant, on the machine's clock: exact among arrivals, and all or none. The frames
//! have their own times, so that the output does not depend on the machine's speed.

use crate::support::TestBed;
use longwire_block::change::{Blocks, Edit, Ramp};
use longwire_block::path::LinkRef;
use longwire_block::{Port, Spec, Stamp, Values};
use longwire_clock::monotonic;
use longwire_engine::{Bases, Change, Changed, Remote, RemoteError, Report, Run, Target};
use longwire_link::MEDIA;
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_units::Nanos;
use std::sync::Arc;

const MS: u64 = 1_000_000;

fn bed(workers: u32) -> TestBed {
    const LINKS: &[crate::support::LinkSettings] = &[&[("delay", "3 ms")], &[("delay", "4 ms")]];
    const WAYS: &[crate::support::Route] = &[((0, 1), &[0]), ((1, 0), &[1])];
    TestBed { links: LINKS, routes: WAYS, workers, pool_bytes: 8 << 20, lead: Nanos::from_millis(1) }
}

fn start(workers: u32) -> (Run, Vec<FarEnd>) {
    let pair = |name| MemoryPort::pair(name, Stamp::Source, 512, 1 << 17);
    let (ports, ends): (Vec<_>, Vec<_>) = ["p0", "p1"].map(pair).into_iter().unzip();
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    (bed(workers).setup(ports).start(), ends)
}

fn spec(key: &str) -> &'static Spec {
    longwire_link::registry().into_iter().find(|spec| spec.key == key).unwrap()
}

fn change(workers: u32, link: u32, spec: &'static Spec, texts: &[(&str, &str)]) -> Change {
    let fresh = Values::read(spec, texts).unwrap();
    let given = fresh.as_slice().iter().cloned().enumerate().take(1).collect();
    let target = Target::Link(LinkRef::new(link % workers, link / workers));
    let delay =
        |text| vec![(self::spec("delay"), Values::read(self::spec("delay"), &[("delay", text)]).unwrap())];
    let base = Arc::new(if link == 0 { delay("3 ms") } else { delay("4 ms") });
    Change { target, base, edits: vec![Edit { spec, given, fresh: Some(fresh) }], ramp: None }
}

fn delay(workers: u32, link: u32, text: &str) -> Change {
    change(workers, link, spec("delay"), &[("delay", text)])
}

/// Departure times, by port, of frames that came to both ports at `times`.
fn left(mut ends: Vec<FarEnd>, run: Run, times: &[u64]) -> (Vec<Vec<u64>>, Report) {
    for (port, end) in (0u8..).zip(&mut ends) {
        let frame = [&[2, 0, 0, 0, 0, 1 - port, 2, 0, 0, 0, 0, port, 0x88, 0xb5][..], &[0; 46]].concat();
        for &time in times {
            assert!(end.push_at(Nanos(time), &frame));
        }
    }
    let mut left = vec![Vec::new(), Vec::new()];
    let end = monotonic() + Nanos::from_secs(20);
    while left.iter().any(|left| left.len() < times.len()) && monotonic() < end {
        for (to, end) in ends.iter_mut().enumerate() {
            while let Some(frame) = end.take() {
                left[1 - to].push(frame.facts.time.0);
            }
        }
        std::thread::yield_now();
    }
    (left, run.stop())
}

#[test]
fn they_are_made_at_their_time_exactly() {
    let (run, ends) = start(1);
    let time = monotonic() + Nanos::from_millis(300);
    let changes = vec![delay(1, 0, "30 ms"), delay(1, 1, "40 ms")];
    assert_eq!(run.remote().change(changes, Some(time), Bases::Current).unwrap().instant, Some(time));
    let times = [time.0 - 2 * MS, time.0 - 1, time.0, time.0 + MS];
    let (left, report) = left(ends, run, &times);
    let expected = |before, after| {
        vec![times[0] + before * MS, times[1] + before * MS, times[2] + after * MS, times[3] + after * MS]
    };
    assert_eq!(left, [expected(3, 30), expected(4, 40)]);
    assert!(report.errors.is_empty() && report.is_conserved(), "{report:?}");
}

/// With several workers a packet meets a link of another one when it has been handed over: later packets meet
/// the change.
#[test]
fn several_workers_change_together() {
    for at in [None, Some(Nanos::from_millis(300))] {
        let (run, ends) = start(2);
        let changes = vec![delay(2, 0, "30 ms"), delay(2, 1, "40 ms")];
        let time = at.map(|at| monotonic() + at);
        let time = run.remote().change(changes, time, Bases::Current).unwrap().instant.unwrap().0;
        let (left, report) = left(ends, run, &[time, time + MS]);
        for (left, delay) in left.iter().zip([30, 40]) {
            assert!(left[0] >= time + delay * MS && left[1] >= time + (delay + 1) * MS, "{left:?} at {time}");
        }
        assert!(report.errors.is_empty() && report.is_conserved(), "{report:?}");
    }
}

fn refused(remote: &Remote, changes: Vec<Change>, at: Option<Nanos>) -> String {
    match remote.change(changes, at, Bases::Any) {
        Err(RemoteError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn if_one_can_t_be_made_none_is() {
    let (run, ends) = start(1);
    let remote = run.remote();
    // No block of a link: the link itself refuses it, after the first has been changed.
    let none = change(1, 1, MEDIA[0], &[("rate", "1 Mbit/s")]);
    refused(&remote, vec![delay(1, 0, "30 ms"), none], None);
    // Nor a block with a missing parameter.
    let mut little = change(1, 1, spec("rate"), &[("rate", "1 Mbit/s")]);
    little.edits[0].fresh = None;
    little.edits[0].given.clear();
    refused(&remote, vec![delay(1, 0, "30 ms"), little], Some(monotonic() + Nanos::from_secs(3600)));
    assert_eq!(refused(&remote, vec![delay(1, 0, "30 ms")], Some(Nanos(1))), "its time is past");
    let made = remote.made_of(&[Target::Link(LinkRef::new(0, 0))]).unwrap().remove(0).unwrap();
    assert_eq!(made[0].1.at(0).print(spec("delay").params[0].kind), "3 ms");
    let time = monotonic().0 + 50 * MS;
    let (left, report) = left(ends, run, &[time]);
    assert_eq!(left, [[time + 3 * MS], [time + 4 * MS]]);
    assert!(report.errors.is_empty(), "{report:?}");
}

/// Whatever the order of the request, the ramp would begin when the delay is of another kind.
#[test]
fn a_ramp_of_a_block_that_is_replaced_is_refused_with_the_rest() {
    let (run, ends) = start(1);
    let remote = run.remote();
    let rows = longwire_link::registry();
    let jitter = rows.into_iter().find(|spec| (spec.key, spec.kind) == ("delay", "jitter")).unwrap();
    let ramp = || Change { ramp: Some(Ramp::new(Nanos::from_secs(1))), ..delay(1, 0, "30 ms") };
    let other = || change(1, 0, jitter, &[("delay", "20 ms"), ("jitter", "1 ms")]);
    for changes in [vec![ramp(), other()], vec![other(), ramp()]] {
        assert!(refused(&remote, changes, None).contains("can't be interpolated"));
        let made = remote.made_of(&[Target::Link(LinkRef::new(0, 0))]).unwrap().remove(0).unwrap();
        assert_eq!(made[0].0.kind, "constant");
    }
    let time = monotonic().0 + 50 * MS;
    let (left, report) = left(ends, run, &[time]);
    assert_eq!(left, [[time + 3 * MS], [time + 4 * MS]]);
    assert!(report.errors.is_empty(), "{report:?}");
}

#[test]
fn at_once_is_one_instant_and_waiting_is_bounded() {
    let (run, ends) = start(1);
    let remote = run.remote();
    let far = Some(monotonic() + Nanos::from_secs(3600));
    for _ in 0..256 {
        remote.change(vec![delay(1, 0, "1 ms")], far, Bases::Current).unwrap();
    }
    assert!(refused(&remote, vec![delay(1, 0, "1 ms")], far).contains("256 changes are pending"));
    let changes = vec![delay(1, 0, "30 ms"), delay(1, 1, "40 ms")];
    let changed = remote.change(changes, None, Bases::Current).unwrap();
    assert!(changed.instant.unwrap() <= monotonic());
    let time = monotonic().0 + 50 * MS;
    let (left, _) = left(ends, run, &[time]);
    assert_eq!(left, [[time + 30 * MS], [time + 40 * MS]]);
}

/// The delays, in the answer to a request.
fn delays(changed: &Changed) -> Vec<String> {
    let print = |blocks: &Arc<Blocks>| blocks[0].1.at(0).print(spec("delay").params[0].kind);
    changed.blocks.iter().map(print).collect()
}

#[test]
fn edits_for_other_blocks_are_made_only_where_they_may() {
    for workers in [1, 2] {
        let (run, _ends) = start(workers);
        let remote = run.remote();
        let both = || vec![delay(workers, 1, "40 ms"), delay(workers, 0, "30 ms")];
        let first = remote.change(vec![delay(workers, 0, "5 ms")], None, Bases::Current).unwrap();
        assert_eq!((first.instant.is_some(), delays(&first)), (true, vec!["5 ms".into()]));
        // The base of one has the delay of the start.
        let refused = remote.change(both(), None, Bases::Current).unwrap();
        assert_eq!((refused.instant, delays(&refused)), (None, vec!["4 ms".into(), "5 ms".into()]));
        let mut current = both();
        current.iter_mut().zip(refused.blocks).for_each(|(change, blocks)| change.base = blocks);
        let at = Some(monotonic() + Nanos::from_secs(3600));
        assert_eq!(remote.change(current, at, Bases::Current).unwrap().instant, at);
        assert!(remote.change(both(), None, Bases::Any).unwrap().instant.is_some());
        assert!(run.stop().errors.is_empty());
    }
}
