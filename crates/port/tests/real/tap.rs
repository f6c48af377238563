//! TAP interfaces, with a packet socket at the host's end.

use crate::flows;
use crate::net::{Net, frame, now, receive, send, until};
use longwire_block::{Port, PortError, Stamp};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions};
use longwire_port::driver::tap::{Tap, TapOptions};
use longwire_port::{Interface, OpenError};

fn pool() -> Pool {
    Pool::new(8 << 20).unwrap()
}

fn create(net: &Net, interface: &'static str, options: TapOptions) -> Tap {
    net.run(move || Tap::create(interface, interface, &options)).unwrap()
}

#[test]
fn frames_cross_both_ways() {
    let Some(net) = Net::new() else { return };
    let mac = Some([2, 0, 0, 0, 0, 7]);
    let mut tap = create(&net, "t1", TapOptions { mac, mtu: 2000, up: true, ..Default::default() });
    assert_eq!(tap.interface().unwrap().mac().unwrap(), [2, 0, 0, 0, 0, 7]);
    assert_eq!(tap.stamp(), Stamp::Poll);
    let options = AfPacketOptions { slots: Some(512), ..Default::default() };
    let mut host = net.run(move || AfPacket::open("host", "t1", &options)).unwrap();
    let mut pool = pool();
    let frames: Vec<_> = (0..200).map(|i| frame(14 + (i * 41) % 2001, i as u8)).collect();

    send(&mut tap, &mut pool, &frames).unwrap();
    let got: Vec<_> = receive(&mut host, &mut pool, frames.len()).into_iter().map(|(f, _)| f).collect();
    assert_eq!(got, frames);

    send(&mut host, &mut pool, &frames).unwrap();
    let got: Vec<_> = receive(&mut tap, &mut pool, frames.len()).into_iter().map(|(f, _)| f).collect();
    assert_eq!(got, frames);
    let stats = tap.stats();
    assert_eq!((stats.in_frames, stats.out_frames, stats.in_bytes), (200, 200, stats.out_bytes));

    send(&mut tap, &mut pool, &[frame(2015, 1)]).unwrap();
    assert_eq!((tap.stats().out_oversize, pool.live()), (1, 0));
    let mut tap = create(&net, "t2", TapOptions { mtu: 2001, up: true, ..Default::default() });
    let options = AfPacketOptions { slots: Some(64), ..Default::default() };
    let mut host = net.run(move || AfPacket::open("host", "t2", &options)).unwrap();
    send(&mut tap, &mut pool, &[frame(2015, 1)]).unwrap();
    assert_eq!(receive(&mut host, &mut pool, 1)[0].0, frame(2015, 1));
}

#[test]
fn readable_when_a_frame_waits() {
    let Some(net) = Net::new() else { return };
    let mut tap = create(&net, "t0", TapOptions { up: true, ..Default::default() });
    let options = AfPacketOptions { slots: Some(64), ..Default::default() };
    let mut host = net.run(move || AfPacket::open("host", "t0", &options)).unwrap();
    let mut pool = pool();
    assert!(!readable(&tap));
    for seed in 0..5 {
        send(&mut host, &mut pool, &[frame(60, seed)]).unwrap();
        until("the descriptor to be readable", || readable(&tap).then_some(()));
        assert_eq!(receive(&mut tap, &mut pool, 1)[0].0, frame(60, seed));
        assert!(!readable(&tap));
    }
}

/// Both directions of a flow are received by one queue, whichever queue sends replies.
#[test]
fn queues_share_flows() {
    let Some(net) = Net::new() else { return };
    let options = TapOptions { up: true, ..Default::default() };
    let mut queues = net.run(move || Tap::create_queues("t0", "t0", &options, 2)).unwrap();
    assert!(queues[1].describe().contains("2 queues"), "{}", queues[1].describe());
    let options = AfPacketOptions { slots: Some(512), ..Default::default() };
    let mut host = net.run(move || AfPacket::open("host", "t0", &options)).unwrap();
    let mut pool = pool();
    flows::are_shared(&mut host, &mut queues, &mut pool);
}

#[allow(unsafe_code)]
fn readable(port: &dyn Port) -> bool {
    let mut ask = libc::pollfd { fd: port.readable_fd().unwrap(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, and a timeout of zero.
    unsafe { libc::poll(&raw mut ask, 1, 0) == 1 }
}

#[test]
fn moves_to_another_namespace_and_still_counts_what_is_lost() {
    let (Some(net), Some(other)) = (Net::new(), Net::new()) else { return };
    let mut tap = create(&net, "t0", TapOptions { queue_length: 100, ..Default::default() });
    net.ip(&format!("link set t0 netns {} name eth0", other.tid()));
    other.ip("link set eth0 up");
    assert_eq!(tap.interface().unwrap().name(), "eth0");
    let options = AfPacketOptions { slots: Some(64), ..Default::default() };
    let mut host = other.run(move || AfPacket::open("host", "eth0", &options)).unwrap();
    let mut pool = pool();
    send(&mut host, &mut pool, &vec![frame(60, 1); 300]).unwrap();
    receive(&mut tap, &mut pool, 100);
    assert!(host.stats().out_full > 0, "a queue of 100 does not hold 300");
    assert!(tap.stats().in_missed > 0, "{:?}", tap.stats());
}

#[test]
fn a_tap_that_goes_down_comes_back_and_one_that_vanishes_stays_away() {
    let Some(net) = Net::new() else { return };
    let make = || Tap::create("east", "t0", &TapOptions { up: true, ..Default::default() });
    let mut tap = net.run(make).unwrap();
    let mut pool = pool();
    let mut batch = Batch::new();
    net.ip("link set t0 down");
    let down = until("the port to notice", || tap.receive(&mut pool, now(), &mut batch).err());
    let advice = "port east: the interface is down; bring it up with: ip link set t0 up";
    assert_eq!(down.to_string(), advice);
    assert!(matches!(send(&mut tap, &mut pool, &[frame(60, 1)]), Err(PortError::Down { .. })));
    net.ip("link set t0 up");
    until("the port to come back", || tap.receive(&mut pool, now(), &mut batch).ok());
    send(&mut tap, &mut pool, &[frame(60, 1)]).unwrap();
    net.ip("link del t0");
    let gone = until("the port to notice", || tap.receive(&mut pool, now(), &mut batch).err());
    assert!(matches!(gone, PortError::Vanished { .. }), "{gone}");
    assert!(matches!(send(&mut tap, &mut pool, &[frame(60, 1)]), Err(PortError::Vanished { .. })));
    assert_eq!((tap.stats().out_down, tap.stats().out_frames, pool.live()), (2, 1, 0));
}

#[test]
fn a_tap_that_somebody_makes_again_is_taken() {
    let Some(net) = Net::new() else { return };
    let options = TapOptions { up: true, ..Default::default() };
    let mut tap = net
        .run(move || Tap::reopening("east", "t0", &longwire_drivers::Netns::Own, &options, 1))
        .unwrap()
        .remove(0);
    let mut pool = pool();
    send(&mut tap, &mut pool, &[frame(60, 1)]).unwrap();
    net.ip("link del t0");
    until("the port to notice", || tap.receive(&mut pool, now(), &mut Batch::new()).err());
    assert!(matches!(send(&mut tap, &mut pool, &[frame(60, 2)]), Err(PortError::Vanished { .. })));
    net.ip("tuntap add dev t0 mode tap");
    // Ports are reopened by threads in the worker's namespace, so every receive is run there.
    let tap = net.run(move || {
        until("the port to come back", || tap.receive(&mut pool, now(), &mut Batch::new()).ok());
        (tap, pool)
    });
    let (mut tap, mut pool) = tap;
    assert!(tap.describe().ends_with("opened again once"), "{}", tap.describe());
    let options = AfPacketOptions { slots: Some(64), ..Default::default() };
    let mut host = net.run(move || AfPacket::open("host", "t0", &options)).unwrap();
    send(&mut tap, &mut pool, &[frame(60, 3)]).unwrap();
    assert_eq!(receive(&mut host, &mut pool, 1)[0].0, frame(60, 3));
    send(&mut host, &mut pool, &[frame(60, 4)]).unwrap();
    assert_eq!(receive(&mut tap, &mut pool, 1)[0].0, frame(60, 4));
    assert_eq!((tap.stats().out_frames, tap.stats().out_down, pool.live()), (2, 1, 0));
}

#[test]
fn names_are_taken_once_and_patterns_filled_in() {
    let Some(net) = Net::new() else { return };
    let first = create(&net, "lw%d", TapOptions::default());
    let second = net.run(|| Tap::create_queues("lw%d", "lw%d", &TapOptions::default(), 2)).unwrap().remove(0);
    assert_eq!((first.interface_name(), second.interface_name()), ("lw0", "lw1"));
    net.run(|| {
        let options = TapOptions::default();
        assert!(matches!(Tap::create("x", "lw0", &options), Err(OpenError::Exists { .. })));
        assert!(matches!(Tap::create("x", "lo", &options), Err(OpenError::Exists { .. })));
        for bad in [
            TapOptions { mtu: 60, ..TapOptions::default() },
            TapOptions { queue_length: 0, ..TapOptions::default() },
        ] {
            assert!(matches!(Tap::create("x", "t9", &bad), Err(OpenError::BadOption { .. })));
        }
    });
    drop(first);
    until("the interface to vanish", || net.run(|| Interface::open("lw0").is_err()).then_some(()));
    create(&net, "lw0", TapOptions::default());
}
