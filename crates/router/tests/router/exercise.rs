//! Invariants of a router for arbitrary frames; also the fuzz target `router`.

use longwire_block::{CONSUMED, KEPT, Node, Outbox, refusal};
use longwire_packet::{Batch, Pool};
use longwire_router::{InterfaceAddress, NextHop, Router, RouterConfig, RouterPort};
use longwire_units::Nanos;

/// A router with the ports 1 and 2, 10.0.N.1/24 and fd00:N::1/64, and a default route to a gateway that never
/// answers.
pub fn router() -> Router {
    let port = |place: u16| RouterPort {
        place,
        mac: [2, 0, 0, 0, 0xff, place as u8],
        mtu: 1280,
        v4: vec![InterfaceAddress { address: 0x0a00_0001 | u32::from(place) << 8, len: 24 }],
        v6: vec![InterfaceAddress { address: 0xfd00 << 112 | u128::from(place) << 96 | 1, len: 64 }],
    };
    let config = RouterConfig { ports: vec![port(1), port(2)], ..RouterConfig::default() };
    let mut router = Router::new(config).unwrap();
    let gateway = NextHop::via(2, std::net::IpAddr::from([10, 0, 2, 77]));
    router.add_route_v4("0.0.0.0/0".parse().unwrap(), gateway).unwrap();
    router.add_route_v6("::/0".parse().unwrap(), NextHop::Direct { port: 1 }).unwrap();
    router
}

/// Passes `frame` to both ports of a router, as it is and with the router's MAC address and a correct IPv4
/// checksum, then lets time pass. Nothing panics, and every packet is accounted for.
pub fn run(frame: &[u8]) {
    let (mut router, mut pool, mut out) = (router(), Pool::new(2 << 20).unwrap(), Outbox::default());
    let mut batch = Batch::new();
    for place in [1, 2] {
        let mut fixed = frame.to_vec();
        if let Some(destination) = fixed.first_chunk_mut::<6>() {
            *destination = [2, 0, 0, 0, 0xff, place as u8];
        }
        if fixed.len() >= 34 {
            let end = (14 + usize::from(fixed[14] & 15) * 4).clamp(34, fixed.len());
            fixed[24..26].fill(0);
            let checksum = longwire_wire::checksum::Sum::ZERO.bytes(&fixed[14..end]).checksum();
            fixed[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
        for bytes in [frame, &fixed] {
            let Some(handle) = pool.insert(bytes) else { continue };
            pool.meta_mut(handle).in_port = place;
            batch.push(handle);
        }
    }
    router.forward(&mut pool, &batch, &mut out);
    let mut seen: Vec<_> =
        batch.as_slice().iter().map(|&handle| (handle, pool.meta(handle).out_port)).collect();
    loop {
        seen.extend_from_slice(out.packets());
        out.clear();
        for (handle, out_port) in seen.drain(..) {
            if out_port == KEPT {
                continue;
            }
            let meta = pool.meta_mut(handle);
            meta.out_port = out_port;
            assert!([1, 2, CONSUMED].contains(&out_port) || refusal(meta).is_some(), "{out_port:x}");
            pool.free(handle);
        }
        let now = router.deadline();
        if now == Nanos::NEVER {
            break;
        }
        router.tick(&mut pool, now, &mut out);
    }
    let stats = router.stats();
    assert_eq!((pool.live(), stats.kept), (0, 0));
    assert_eq!(stats.received + stats.made, stats.forwarded + stats.consumed + stats.dropped);
}
