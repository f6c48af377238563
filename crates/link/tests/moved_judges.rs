//! A change of judges on the wire to judges before the queue, while packets in flight are out of order.

use longwire_block::Values;
use longwire_link::{Fifo, LinkConfig, Links, registry};
use longwire_packet::Pool;
use longwire_units::Nanos;

/// The packet of 0 ms leaves at once, its copy 10 ms later; that of 2 ms is no longer copied, and does not
/// wait for the copy.
#[test]
fn those_that_travel_keep_their_times() {
    let spec = registry().into_iter().find(|spec| spec.key == "duplicate").unwrap();
    let values = |given: &[(&str, &str)]| Values::read(spec, given).unwrap();
    let on_wire = values(&[("probability", "100 %"), ("delay", "10 ms"), ("where", "wire")]);
    let before = values(&[("probability", "0 %"), ("delay", "10 ms"), ("where", "queue")]);
    let mut links = Links::with_capacity(1, 1, Nanos::ZERO);
    links.add(0, "test", &LinkConfig::default().with(spec, on_wire));
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut out = Fifo::EMPTY;
    for time in [0, 2] {
        let handle = pool.insert(&[0; 100]).unwrap();
        pool.meta_mut(handle).arrival = time * 1_000_000;
        links.arrive_and_leave(&mut pool, 0, handle, &mut out);
        if time == 0 {
            links.change(&mut pool, 0, Nanos::from_millis(1), &[(spec, before.clone())]).unwrap();
        }
    }
    links.expire(&mut pool, 0, Nanos::from_millis(20), &mut out);
    let left = std::iter::from_fn(|| out.pop(&pool)).map(|handle| pool.meta(handle).leave() / 1_000_000);
    assert_eq!(left.collect::<Vec<_>>(), [0, 2, 10]);
}
