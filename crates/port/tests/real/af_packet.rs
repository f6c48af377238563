//! Packet sockets over veth.

use crate::flows;
use crate::net::{Net, frame, now, receive, send, until};
use longwire_block::{Port, PortError, Stamp};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions, Header};
use longwire_port::driver::reopening::Reopening;
use longwire_port::{Interface, OpenError};
use std::process::Command;

fn open(net: &Net, interface: &'static str, header: Header) -> AfPacket {
    let options = AfPacketOptions { header, slots: Some(512), ..Default::default() };
    net.run(move || AfPacket::open(interface, interface, &options)).unwrap()
}

fn pool() -> Pool {
    Pool::new(8 << 20).unwrap()
}

#[test]
fn queues_share_flows() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    let options = AfPacketOptions { slots: Some(512), ..Default::default() };
    let mut queues = net.run(move || AfPacket::open_queues("left", "left", &options, 2)).unwrap();
    assert!(queues[0].describe().contains("2 queues"), "{}", queues[0].describe());
    let mut host = open(&net, "right", Header::Auto);
    flows::are_shared(&mut host, &mut queues, &mut pool());
}

#[test]
fn frames_cross_whole_in_order_and_stamped() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    for header in [Header::Auto, Header::Off] {
        let (mut a, mut b) = (open(&net, "left", header), open(&net, "right", header));
        let mut pool = pool();
        assert_eq!(a.stamp(), Stamp::Kernel);
        assert_eq!(a.describe().contains("with the"), header == Header::Auto, "{}", a.describe());
        // More than a ring, so that it wraps; fewer at a time than its capacity.
        for round in 0..9u8 {
            let frames: Vec<_> = (0..200).map(|i| frame(14 + (i * 37 + 5) % 1501, round ^ i as u8)).collect();
            let sent_at = now();
            send(&mut a, &mut pool, &frames).unwrap();
            let got = receive(&mut b, &mut pool, frames.len());
            assert_eq!(
                got.iter().map(|(bytes, _)| bytes).collect::<Vec<_>>(),
                frames.iter().collect::<Vec<_>>()
            );
            // 50 µs for the error of the clock mapping on a busy machine.
            let window = sent_at.0 - 50_000..=now().0;
            assert!(got.iter().all(|(_, arrival)| window.contains(arrival)), "{window:?} {:?}", got[0].1);
            assert!(got.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        }
        let (sent, taken) = (a.stats(), b.stats());
        assert_eq!((sent.out_frames, taken.in_frames), (1800, 1800));
        assert_eq!(sent.out_bytes, taken.in_bytes);
        assert_eq!((sent.in_frames, taken.in_missed, taken.in_bad, pool.live()), (0, 0, 0, 0));
    }
}

#[test]
fn what_cannot_be_kept_or_sent_is_counted() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    let (mut a, mut b) = (open(&net, "left", Header::Auto), open(&net, "right", Header::Auto));
    let mut pool = pool();
    // One byte above the MTU, one tag above it, and one byte more.
    let mut tagged = vec![frame(1518, 0), frame(1519, 0)];
    tagged.iter_mut().for_each(|frame| frame[12..16].copy_from_slice(&[0x81, 0, 0, 5]));
    send(&mut a, &mut pool, &[frame(1515, 0), tagged.remove(0), tagged.remove(0)]).unwrap();
    assert_eq!((a.stats().out_oversize, a.stats().out_frames), (2, 1));
    assert_eq!(receive(&mut b, &mut pool, 1)[0].0[12..16], [0x81, 0, 0, 5]);

    // 512 slots are requested and a few more allocated: the rest of 2000 frames are lost.
    send(&mut a, &mut pool, &vec![frame(60, 1); 2000]).unwrap();
    let (sent, slots) = (a.stats().out_frames - 1, 512);
    let mut small = Pool::new(1 << 20).unwrap();
    let held: Vec<_> = std::iter::from_fn(|| small.alloc(60)).skip(8).collect();
    assert!(!held.is_empty());
    let mut kept = 0;
    until("the ring to empty", || {
        let mut batch = Batch::new();
        b.receive(&mut small, now(), &mut batch).unwrap();
        kept += batch.len() as u64;
        let stats = b.stats();
        (stats.in_frames - 1 + stats.in_pool_full + stats.in_missed == sent).then_some(())
    });
    let stats = b.stats();
    assert!(stats.in_missed > 0 && stats.in_missed <= sent - slots, "{stats:?}");
    assert_eq!((kept, stats.in_frames), (0, 1), "the pool was full");
}

#[test]
fn a_port_that_goes_down_comes_back_and_one_that_vanishes_stays_away() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    let (mut a, mut b) = (open(&net, "left", Header::Auto), open(&net, "right", Header::Auto));
    let mut pool = pool();
    let mut batch = Batch::new();

    net.ip("link set left down");
    let down = until("the port to notice", || a.receive(&mut pool, now(), &mut batch).err());
    assert_eq!(down, PortError::down("left", "left"));
    assert!(matches!(send(&mut a, &mut pool, &vec![frame(60, 1); 3]), Err(PortError::Down { .. })));
    assert_eq!((a.stats().out_down, pool.live()), (3, 0));
    // The other end has lost its carrier, which is not a failure.
    assert!(matches!(send(&mut b, &mut pool, &vec![frame(60, 1); 3]), Err(PortError::Down { .. })));
    assert_eq!((b.stats().out_down, b.stats().out_full), (3, 0));

    net.ip("link set left up");
    until("the port to come back", || a.receive(&mut pool, now(), &mut batch).ok());
    send(&mut a, &mut pool, &[frame(60, 2)]).unwrap();
    assert_eq!(receive(&mut b, &mut pool, 1)[0].0, frame(60, 2));
    send(&mut b, &mut pool, &[frame(60, 3)]).unwrap();
    assert_eq!(receive(&mut a, &mut pool, 1)[0].0, frame(60, 3));

    net.ip("link del left");
    for port in [&mut a, &mut b] {
        let gone = until("the port to notice", || port.receive(&mut pool, now(), &mut batch).err());
        assert!(matches!(gone, PortError::Vanished { .. }), "{gone}");
        assert!(matches!(send(port, &mut pool, &[frame(60, 1)]), Err(PortError::Vanished { .. })));
        assert_eq!((port.stats().out_down, pool.live()), (4, 0));
    }
}

/// An interface that is deleted and recreated is reopened by its name; packets sent meanwhile are counted.
#[test]
fn a_port_is_opened_again_when_its_interface_is_back() {
    let Some(net) = Net::new() else { return };
    // All on the namespace's thread: the port is reopened on one of its children.
    net.run(|| {
        let ip = |arguments: &str| {
            let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
            assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        };
        let veth = || {
            ip("link add left type veth peer name right");
            ip("link set left up");
            ip("link set right up");
        };
        let open = |name| AfPacket::open(name, name, &AfPacketOptions::default());
        veth();
        let mut port =
            Reopening::new(Box::new(open("left").unwrap()), move || Some(Box::new(open("left").ok()?)));
        let (mut pool, mut batch) = (pool(), Batch::new());
        send(&mut port, &mut pool, &[frame(60, 1)]).unwrap();
        ip("link del left");
        let gone = until("the port to notice", || port.receive(&mut pool, now(), &mut batch).err());
        assert!(matches!(gone, PortError::Vanished { .. }), "{gone}");
        assert!(send(&mut port, &mut pool, &[frame(60, 2), frame(60, 3)]).is_err());
        veth();
        until("the port to come back", || port.receive(&mut pool, now(), &mut batch).ok());
        let mut far = open("right").unwrap();
        send(&mut port, &mut pool, &[frame(60, 4)]).unwrap();
        assert_eq!(receive(&mut far, &mut pool, 1)[0].0, frame(60, 4));
        send(&mut far, &mut pool, &[frame(60, 5)]).unwrap();
        assert_eq!(receive(&mut port, &mut pool, 1)[0].0, frame(60, 5));
        assert_eq!((port.stats().out_frames, port.stats().out_down), (2, 2));
        assert!(port.describe().contains("opened again once"), "{}", port.describe());
    });
}

/// Without the header, slots are as long as the MTU at the opening needs.
#[test]
fn a_port_is_opened_again_when_its_mtu_is_raised() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    net.run(|| {
        let open = |name| {
            let options = AfPacketOptions { header: Header::Off, ..Default::default() };
            AfPacket::open(name, name, &options)
        };
        let mut port =
            Reopening::new(Box::new(open("left").unwrap()), move || Some(Box::new(open("left").ok()?)));
        for end in ["left", "right"] {
            Interface::open(end).unwrap().set_mtu(3000).unwrap();
        }
        let (mut pool, mut batch) = (pool(), Batch::new());
        let gone = until("the port to notice", || port.receive(&mut pool, now(), &mut batch).err());
        assert!(matches!(gone, PortError::Vanished { .. }), "{gone}");
        until("the port to come back", || port.receive(&mut pool, now(), &mut batch).ok());
        let mut far = open("right").unwrap();
        send(&mut far, &mut pool, &[frame(3014, 1)]).unwrap();
        assert_eq!(receive(&mut port, &mut pool, 1)[0].0, frame(3014, 1));
        assert_eq!(port.stats().in_bad, 0);
    });
}

#[test]
fn refuses_what_would_go_wrong() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    net.ip("addr add 10.77.0.1/24 dev left");
    net.run(|| {
        let strict = AfPacketOptions::default();
        let error = AfPacket::open("left", "left", &strict).err().unwrap();
        assert!(matches!(error, OpenError::HasAddress { .. }), "{error}");
        assert!(error.to_string().contains("10.77.0.1"), "{error}");
        // Its advice works: no scenario key permits addresses.
        assert!(error.to_string().contains("ip addr flush dev left"), "{error}");
        assert!(!error.to_string().contains("allow"), "{error}");
        let lax = AfPacketOptions { allow_addresses: true, slots: Some(64), ..strict.clone() };
        let held = AfPacket::open("left", "left", &lax).unwrap();
        match AfPacket::open("again", "left", &lax).err().unwrap() {
            OpenError::Claimed { pid, .. } => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other}"),
        }
        drop(held);
        AfPacket::open("again", "left", &lax).unwrap();
        let error = AfPacket::open("x", "lo", &strict).err().unwrap();
        assert!(matches!(error, OpenError::NotEthernet { .. }), "{error}");
        let few = AfPacketOptions { slots: Some(1), ..strict };
        assert!(matches!(
            AfPacket::open("x", "right", &few),
            Err(OpenError::BadOption { option: "slots", .. })
        ));
    });
}

/// Not a test: the process that [`a_killed_holder_leaves_nothing_behind`] kills.
#[test]
fn hold_an_interface_until_killed() {
    if std::env::var_os("LONGWIRE_TEST_HOLD").is_none() {
        return;
    }
    let _port = AfPacket::open("left", "left", &AfPacketOptions::default()).unwrap();
    println!("held");
    std::thread::park();
}

#[test]
fn a_killed_holder_leaves_nothing_behind() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    net.run(|| {
        use std::io::{BufRead, BufReader};
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["af_packet::hold_an_interface_until_killed", "--exact", "--nocapture"])
            .env("LONGWIRE_TEST_HOLD", "1")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(holder.stdout.take().unwrap());
        assert!(output.lines().any(|line| line.unwrap().contains("held")));
        let options = AfPacketOptions::default();
        match AfPacket::open("left", "left", &options).err().unwrap() {
            OpenError::Claimed { pid, .. } => assert_eq!(pid, Some(holder.id())),
            other => panic!("{other}"),
        }
        holder.kill().unwrap();
        holder.wait().unwrap();
        AfPacket::open("left", "left", &options).unwrap();
    });
}
