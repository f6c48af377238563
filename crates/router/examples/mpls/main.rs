//! A label switching router between two ports: `cargo run -p longwire-router --example mpls`.
//!
//! Two labelled packets and an IP packet enter at port 1; the outcome of each is printed.

mod labels;

use labels::{Labels, MPLS, swap};
use longwire_block::{Node, Outbox, refusal};
use longwire_packet::{Batch, Pool};
use longwire_router::{InterfaceAddress, NextHop, Router, RouterConfig, RouterPort};
use std::net::Ipv4Addr;

const ROUTER: [u8; 6] = [2, 0, 0, 0, 0xff, 1];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = |place: u16| RouterPort {
        place,
        mac: [2, 0, 0, 0, 0xff, place as u8],
        mtu: 1500,
        v4: vec![InterfaceAddress { address: Ipv4Addr::new(10, 0, place as u8, 1).into(), len: 24 }],
        v6: vec![],
    };
    let config = RouterConfig { ports: vec![port(1), port(2)], ..RouterConfig::default() };
    let mut router = Router::with_classifier(config, Labels::default())?;
    let next = Ipv4Addr::new(10, 0, 2, 9);
    router.set_neighbour(2, next.into(), [2, 0, 0, 0, 0, 2]);
    swap(&mut router, 100, 200, NextHop::via(2, next.into()))?;

    let labelled = |label: u32| {
        let entry = (label << 12 | 0x100 | 64).to_be_bytes();
        [&ROUTER[..], &HOST, &MPLS, &entry, &[0; 42]].concat()
    };
    let mut ip = longwire_wire::ethernet_header(ROUTER, HOST, 0x0800).to_vec();
    let (source, destination) = (Ipv4Addr::new(10, 0, 1, 9).into(), next.into());
    let (protocol, ttl, traffic_class, id, payload_len) = (17, 64, 0, 0, 0);
    let header =
        longwire_wire::Ipv4Header { source, destination, protocol, ttl, traffic_class, id, payload_len };
    ip.extend(header.bytes());

    let (mut pool, mut batch) = (Pool::new(1 << 20)?, Batch::new());
    for frame in [labelled(100), labelled(101), ip] {
        let handle = pool.insert(&frame).ok_or("the pool is full")?;
        pool.meta_mut(handle).in_port = 1;
        batch.push(handle);
    }
    router.forward(&mut pool, &batch, &mut Outbox::default());
    for (&handle, what) in batch.as_slice().iter().zip(["label 100", "label 101", "IP"]) {
        match refusal(pool.meta(handle)) {
            Some(reason) => println!("{what}: dropped, {}", reason.name()),
            None => println!(
                "{what}: out of port {}, {:02x?}",
                pool.meta(handle).out_port,
                &pool.data(handle)[12..22]
            ),
        }
    }
    Ok(())
}
