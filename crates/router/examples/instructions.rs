//! Runs a router with a program for a number of batches, under an instruction counter. The difference between
//! two numbers of batches is the cost of their packets.
//!
//! `valgrind --tool=callgrind target/release/examples/instructions sixty 1000`

use longwire_block::{Node, Outbox};
use longwire_packet::{BATCH, Batch, Pool};
use longwire_program::map::{MapKind, MapSpec};
use longwire_program::{Object, Program, ShippedForwarder, assemble};
use longwire_router::{
    FlowKey, Forwarder, Installation, InterfaceAddress, Key, NextHop, Router, RouterConfig, RouterPort,
    RouterPrices,
};
use longwire_wire::{Ipv4Header, ethernet_header, ethertype};
use std::error::Error;
use std::net::Ipv4Addr;

type Failure = Box<dyn Error>;

const FRAME: usize = 60;
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0xff, 0], [2, 0, 0, 0, 0, 9]];

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (what, batches) = (arguments.next().ok_or("what?")?, arguments.next().ok_or("how often?")?.parse()?);
    let mut router = router()?;
    let copies = match &*what {
        "three" => 3,
        "none" | "wide" => 0,
        _ => 1,
    };
    if what == "wide" {
        // A network of the router's own, as of a loopback interface.
        router.add_route_v4("172.16.0.0/24".parse()?, NextHop::Local)?;
    }
    for _ in 0..copies {
        install(&mut router, &what)?;
    }
    let (mut pool, mut outbox) = (Pool::new(1 << 20).map_err(|error| error.to_string())?, Outbox::default());
    let (frame, mut forwarded) = (frame(), 0);
    for round in 0..batches {
        let mut batch = Batch::new();
        for _ in 0..BATCH {
            let handle = pool.insert(&frame).ok_or("no room")?;
            pool.meta_mut(handle).arrival = round;
            batch.push(handle);
        }
        router.forward(&mut pool, &batch, &mut outbox);
        for &handle in batch.as_slice() {
            forwarded += u64::from(pool.meta(handle).out_port == 1);
            pool.free(handle);
        }
    }
    println!("{what}: {forwarded} packets forwarded");
    Ok(())
}

fn router() -> Result<Router, Failure> {
    let port = |place: u16| RouterPort {
        place,
        mac: [2, 0, 0, 0, 0xff, place as u8],
        mtu: 1500,
        v4: vec![InterfaceAddress { address: Ipv4Addr::new(10, 0, place as u8, 1).into(), len: 24 }],
        v6: vec![],
    };
    let ports = (0..8).map(port).collect();
    let mut router = Router::new(RouterConfig { ports, seed: 1, ..RouterConfig::default() })?;
    router.set_neighbour(1, Ipv4Addr::new(10, 0, 1, 9).into(), [2, 0, 0, 0, 1, 9]);
    Ok(router)
}

fn install(router: &mut Router, what: &str) -> Result<(), Failure> {
    let key = if what == "flow" {
        Key::Flow(FlowKey { destination_port: Some(53), ..FlowKey::default() })
    } else {
        Key::All
    };
    let installation = Installation { name: what.into(), key, ..Installation::default() };
    let forwarder = Forwarder::prepare(program(what)?, installation, &RouterPrices::default(), 1)?;
    router.install(forwarder)?;
    Ok(())
}

fn program(what: &str) -> Result<Program, Failure> {
    if let Some(shipped) = ShippedForwarder::named(what) {
        return Ok(Object::parse(shipped.object)?.program(shipped.function)?);
    }
    let lookup = "r1 = 0\n *(u32 *)(r10 - 4) = r1\n r2 = r10\n r2 += -4\n r1 = map[0] ll\n call 1";
    let (body, kind) = match what {
        "empty" | "flow" | "three" => (String::new(), None),
        "sixty" => (sixty(), None),
        "time" => ("call 5".into(), None),
        "random" => ("call 7".into(), None),
        "state" => ("r1 = 8\n call 65536\n r1 = 1\n lock *(u64 *)(r0 + 0) += r1".into(), None),
        "store" => (
            "r2 = *(u32 *)(r1 + 0)\n r3 = *(u32 *)(r1 + 4)\n r4 = r2\n r4 += 16\n if r4 > r3 goto \
         out\n r5 = 0\n *(u8 *)(r2 + 15) = r5\n out:"
                .into(),
            None,
        ),
        "array" => (lookup.into(), Some(MapKind::Array)),
        "hash" => (lookup.into(), Some(MapKind::Hash)),
        _ => return Err(format!("{what}?").into()),
    };
    let map = |kind| MapSpec::new("m", kind, 4, 8, 16);
    let maps: Vec<MapSpec> = kind.map(map).into_iter().collect();
    Ok(Program::new(what, assemble(&format!("{body}\n r0 = 2\n exit"))?, maps))
}

/// The first 58 of 60 instructions.
fn sixty() -> String {
    let sums = ["r7 += r8\n", "r8 ^= r7\n"].repeat(27).concat();
    format!(
        "r7 = *(u32 *)(r1 + 12)\n r8 = *(u32 *)(r1 + 16)\n\
         {sums} r7 ^= r8\n if r7 != 0x12345677 goto out\n out:"
    )
}

/// UDP from the host behind port 0 to the one behind port 1.
fn frame() -> [u8; FRAME] {
    let header = Ipv4Header {
        source: Ipv4Addr::new(10, 0, 0, 9).into(),
        destination: Ipv4Addr::new(10, 0, 1, 9).into(),
        protocol: 17,
        ttl: 64,
        traffic_class: 0,
        id: 0,
        payload_len: (FRAME - 34) as u16,
    };
    let mut frame = [0; FRAME];
    frame[..14].copy_from_slice(&ethernet_header(MACS[0], MACS[1], ethertype::IPV4));
    frame[14..34].copy_from_slice(&header.bytes());
    frame[34..40].copy_from_slice(&[4, 0, 0, 53, 0, 26]);
    frame
}
