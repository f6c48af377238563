//! Links that release packets ahead of time, for simulated runs with several workers.

use longwire_block::Values;
use longwire_link::{Fifo, Lead, LinkConfig, Links, registry};
use longwire_packet::Pool;
use longwire_units::Nanos;

const LEAD: Nanos = Nanos::from_millis(5);

/// A block: key, kind, parameters.
type More<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// A packet of 1000 bytes is sent in 1 ms and travels 5 ms; further blocks may be added.
fn link(more: &[More<'_>]) -> Links {
    let keys = [("rate", "8 Mbit/s"), ("delay", "5 ms"), ("queue", "1 packets")];
    let with = |config: LinkConfig, (key, text): &(&str, &str)| config.with_text(key, text).unwrap();
    let mut config = keys.iter().fold(LinkConfig::default(), with);
    for (key, kind, given) in more {
        let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (*key, *kind)).unwrap();
        config = config.with(spec, Values::read(spec, given).unwrap());
    }
    let mut links = Links::with_capacity(1, 1, Nanos::ZERO);
    links.add(0, "test", &config);
    links
}

/// Departures of packets that come at these times, served at every deadline, and the number of drops.
fn leaving(links: &mut Links, times: &[u64], until: Nanos) -> (Vec<(u64, u64)>, u64) {
    let mut pool = Pool::new(1 << 20).unwrap();
    let lead = Lead { by: LEAD, until };
    let (mut left, mut out) = (Vec::new(), Fifo::EMPTY);
    for &time in times.iter().chain(&[u64::MAX - 1]) {
        while links.deadline_ahead(0, lead) <= Nanos(time) {
            let now = links.deadline_ahead(0, lead);
            links.expire_ahead(&mut pool, 0, now, lead, &mut out);
            while let Some(handle) = out.pop(&pool) {
                left.push((now.0 / 1000, pool.meta(handle).leave() / 1000));
                pool.free(handle);
            }
        }
        if time < u64::MAX - 1 {
            let handle = pool.insert(&[0; 996]).unwrap();
            pool.meta_mut(handle).arrival = time;
            links.arrive_and_leave(&mut pool, 0, handle, &mut out);
        }
    }
    (left, links.stats(&mut pool, 0, Nanos(times[times.len() - 1])).dropped())
}

/// The second packet comes during the first transmission, and finds no room; the third finds room at the
/// moment at which the first is complete. They are released exactly 5 ms ahead.
#[test]
fn what_is_not_yet_sent_stays_in_the_queue() {
    let rare: &[(&str, &str)] = &[("rate", "300 bit/s"), ("size", "996 B")];
    let background = |kind| ("background", kind, rare);
    let never: &[(&str, &str)] = &[("probability", "0 %"), ("where", "wire")];
    let classes: &[(&str, &str)] = &[("classes", "a ls 1 Mbit/s limit 1 packets")];
    for (what, mut links) in [
        ("nothing more", link(&[])),
        ("background traffic", link(&[background("poisson")])),
        ("loss on the wire", link(&[("loss", "independent", never)])),
        ("classes", link(&[("queue", "hfsc", classes)])),
    ] {
        let (left, dropped) = leaving(&mut links, &[0, 500_000, 1_000_000], Nanos(u64::MAX - 1));
        assert_eq!((left, dropped), (vec![(1000, 6000), (2000, 7000)], 1), "{what}");
    }
}

#[test]
fn nothing_goes_beyond_the_end() {
    let (left, _) = leaving(&mut link(&[]), &[0, 1_000_000, 2_000_000], Nanos(7_000_000));
    assert_eq!(left, [(1000, 6000), (2000, 7000)]);
}
