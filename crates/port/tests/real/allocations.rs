//! The packet path allocates nothing.
#![allow(unsafe_code)]

use crate::net::{Net, frame, now, until};
use longwire_block::Port;
use longwire_packet::{Batch, Pool};
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions, Header};
use longwire_port::driver::tap::{Tap, TapOptions};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts each thread's allocations.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises; all memory comes from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Sends batches from one port to the other and back; returns the number of allocations.
fn allocations(ports: &mut [Box<dyn Port>; 2]) -> u64 {
    let mut pool = Pool::new(4 << 20).unwrap();
    let bytes = frame(1000, 1);
    let start = now();
    let before = ALLOCATIONS.get();
    for round in 0..50 {
        let (from, to) = (round % 2, 1 - round % 2);
        let mut batch = Batch::new();
        while !batch.is_full() {
            batch.push(pool.insert(&bytes).unwrap());
        }
        ports[from].transmit(&mut pool, &batch).unwrap();
        let mut left = batch.len();
        until("frames to arrive", || {
            let mut batch = Batch::new();
            // Every check of state and clocks becomes due once.
            let late = now().0 + if round == 25 { 2_000_000_000 } else { 0 };
            ports[to].receive(&mut pool, longwire_units::Nanos(late), &mut batch).unwrap();
            left -= batch.len();
            batch.as_slice().iter().for_each(|&handle| pool.free(handle));
            (left == 0).then_some(())
        });
        ports[to].stats();
    }
    assert!(now() > start);
    ALLOCATIONS.get() - before
}

#[test]
fn none_on_the_packet_path() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    for header in [Header::On, Header::Off] {
        let open = |interface: &'static str| -> Box<dyn Port> {
            let options = AfPacketOptions { header, slots: Some(256), ..Default::default() };
            Box::new(net.run(move || AfPacket::open(interface, interface, &options)).unwrap())
        };
        assert_eq!(allocations(&mut [open("left"), open("right")]), 0, "{header:?}");
    }
    let options = TapOptions { up: true, ..Default::default() };
    let tap: Box<dyn Port> = Box::new(net.run(move || Tap::create("t0", "t0", &options)).unwrap());
    let options = AfPacketOptions { slots: Some(256), ..Default::default() };
    let host: Box<dyn Port> = Box::new(net.run(move || AfPacket::open("t0", "t0", &options)).unwrap());
    assert_eq!(allocations(&mut [tap, host]), 0);
}

/// An error allocates its two names; reading that of the interface would allocate more.
#[test]
fn a_tap_that_is_down_reads_its_name_once() {
    let Some(net) = Net::new() else { return };
    let options = TapOptions { up: true, ..Default::default() };
    let mut tap = net.run(move || Tap::create("t0", "t0", &options)).unwrap();
    net.ip("link set t0 down");
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut poll = || tap.receive(&mut pool, now(), &mut Batch::new());
    until("the port to notice", || poll().err());
    let before = ALLOCATIONS.get();
    (0..100).for_each(|_| assert!(poll().is_err()));
    assert!(ALLOCATIONS.get() - before <= 200, "{}", ALLOCATIONS.get() - before);
}
