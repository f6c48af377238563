mod jumbo;
mod rig;

use super::*;
use crate::interface::{Feature, OpenError};
use longwire_packet::{Checksum, Gso};
use rig::{DrivenPort, Far, PATIENCE, frame, frames, in_namespace, ip, veth};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Instant;

fn has_program(name: &str) -> bool {
    let output = Command::new("ip").args(["-d", "link", "show", name]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("prog/xdp")
}

#[test]
fn frames_cross_a_veth_pair_both_ways_and_nothing_is_left() {
    in_namespace(|| {
        veth("near", "far", 1);
        let other = Interface::open("far").unwrap();
        assert!(other.features().unwrap().is_on(Feature::TxChecksum));
        let far = Far::on("far");
        let mut near = DrivenPort::open(AfXdpPlan::on("near"));
        let description = near.port.describe();
        assert_eq!(
            description.split(": Operation").next(),
            Some("af_xdp on near, native, copy (no zero-copy: near")
        );
        assert!(description.ends_with("not supported (os error 95)), 1 queue"), "{description}");
        assert!(!other.features().unwrap().is_on(Feature::TxChecksum));
        assert!(has_program("near"));

        let sent = frames(500);
        for chunk in sent.chunks(100) {
            assert!(chunk.iter().all(|frame| far.send(frame)));
            let came = near.receive(100);
            assert_eq!(came, chunk);
            near.send(&came).unwrap();
            assert!(chunk.iter().all(|frame| far.receive() == *frame));
        }
        let bytes = sent.iter().map(|frame| frame.len() as u64).sum::<u64>();
        let stats = near.port.stats();
        assert_eq!((stats.out_frames, stats.out_bytes, stats.out_full, stats.in_missed), (500, bytes, 0, 0));
        assert!(stats.in_frames >= 500 && stats.in_bytes >= bytes);

        drop(near);
        // A process that another test is starting may hold a copy of the link until it runs its command.
        let deadline = Instant::now() + PATIENCE;
        while has_program("near") {
            assert!(Instant::now() < deadline);
        }
        assert!(other.features().unwrap().is_on(Feature::TxChecksum));
        // The kernel's own stack has the interface again.
        let again = Far::on("near");
        far.send(&frame(7));
        assert_eq!(again.receive(), frame(7));
    });
}

#[test]
fn two_ports_share_their_memory_and_forward() {
    in_namespace(|| {
        veth("near0", "far0", 1);
        veth("near1", "far1", 1);
        let (left, right) = (Far::on("far0"), Far::on("far1"));
        let plans = vec![AfXdpPlan::on("near0"), AfXdpPlan::on("near1")];
        let mut ports: Vec<_> =
            AfXdpPort::open_all(plans).unwrap().into_iter().map(DrivenPort::from).collect();
        assert!(Arc::ptr_eq(&ports[0].port.umem, &ports[1].port.umem));
        for chunk in frames(300).chunks(50) {
            for (from, to, at, out) in [(&left, &right, 0, 1), (&right, &left, 1, 0)] {
                assert!(chunk.iter().all(|frame| from.send(frame)));
                let came = ports[at].receive(50);
                ports[out].send(&came).unwrap();
                assert!(chunk.iter().all(|frame| to.receive() == *frame));
            }
        }
        // One may go before the other.
        ports.remove(0);
        right.send(&frame(1));
        assert_eq!(ports[0].receive(1), [frame(1)]);
    });
}

/// A datagram of a separate flow, as a device that spreads flows over queues sees it.
fn datagram(flow: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&(1000 + flow).to_be_bytes());
    frame[38..40].copy_from_slice(&26u16.to_be_bytes());
    frame
}

#[test]
fn every_queue_has_its_socket() {
    in_namespace(|| {
        veth("near", "far", 2);
        let far = Far::on("far");
        let mut near = DrivenPort::open(AfXdpPlan::on("near"));
        assert!(near.port.describe().ends_with(", 2 queues"), "{}", near.port.describe());
        let mut wanted: Vec<_> = (0..200).map(datagram).collect();
        assert!(wanted.iter().all(|frame| far.send(frame)));
        let mut came = near.receive(200);
        came.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(came, wanted);
        near.send(&wanted).unwrap();
        // One socket sends, so order is kept.
        assert!(wanted.iter().all(|frame| far.receive() == *frame));
    });
}

#[test]
fn waiting_frames_make_the_descriptor_readable() {
    in_namespace(|| {
        veth("near", "far", 2);
        let far = Far::on("far");
        let mut near = DrivenPort::open(AfXdpPlan::on("near"));
        let fd = near.port.readable_fd().unwrap();
        let readable = |patience| {
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one pollfd.
            unsafe { libc::poll(&raw mut poll, 1, patience) == 1 }
        };
        assert!(!readable(0));
        far.send(&frame(3));
        assert!(readable(5000));
        assert_eq!(near.receive(1), [frame(3)]);
        assert!(!readable(0));
    });
}

#[test]
fn a_train_leaves_as_whole_segments() {
    in_namespace(|| {
        veth("near", "far", 1);
        let far = Far::on("far");
        let mut near = DrivenPort::open(AfXdpPlan::on("near"));
        let mut bytes = vec![0x55; 54 + 2500];
        bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        bytes[12..14].copy_from_slice(&[8, 0]);
        bytes[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6]);
        bytes[16..18].copy_from_slice(&2540u16.to_be_bytes());
        bytes[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        bytes[46] = 0x50;
        let handle = near.pool.insert(&bytes).unwrap();
        let (meta, data) = near.pool.parts_mut(handle);
        meta.checksum = Checksum::Partial as u8;
        longwire_wire::validate_train(meta, data, (Gso::TcpV4 as u8, 1000)).unwrap();
        near.send_packets(&[handle]).unwrap();
        for payload in [1000, 1000, 500] {
            let segment = far.receive();
            assert_eq!(segment.len(), 54 + payload);
            let sum = longwire_wire::checksum::pseudo_v4(0x0a00_0001, 0x0a00_0002, 6, (20 + payload) as u16);
            assert_eq!(sum.bytes(&segment[34..]).checksum(), 0);
        }
        assert_eq!(near.port.stats().out_frames, 3);
    });
}

#[test]
fn frames_that_cannot_be_kept_or_sent_are_counted() {
    in_namespace(|| {
        veth("near", "far", 1);
        let far = Far::on("far");
        let mut near = DrivenPort::open(AfXdpPlan { ring: 64, ..AfXdpPlan::on("near") });
        // More than ring and device queue hold, while nobody receives.
        let small = &frame(0)[..60];
        (0..2000).for_each(|_| {
            far.send(small);
        });
        let came = near.receive(64).len() as u64;
        let deadline = Instant::now() + PATIENCE;
        let mut came = came;
        while came + near.port.stats().in_missed < 2000 {
            assert!(Instant::now() < deadline, "{came} came, {:?}", near.port.stats());
            came += near.poll().unwrap().len() as u64;
        }
        assert_eq!(came + near.port.stats().in_missed, 2000);

        let mut long = frame(0);
        long.resize(1515, 0);
        near.send(&[long]).unwrap();
        assert_eq!(near.port.stats().out_oversize, 1);
        near.send(&vec![small.to_vec(); 3000]).unwrap();
        let stats = near.port.stats();
        assert_eq!(stats.out_frames + stats.out_full, 3000);
        assert_eq!(stats.out_bytes, stats.out_frames * 60);
    });
}

#[test]
fn down_and_gone_are_told_and_up_again_fixes() {
    in_namespace(|| {
        veth("near", "far", 1);
        let far = Far::on("far");
        let mut near = DrivenPort::open(AfXdpPlan::on("near"));
        let until = |near: &mut DrivenPort, wanted: fn(&PortError) -> bool| {
            let deadline = Instant::now() + PATIENCE;
            while !near.poll().is_err_and(|error| wanted(&error)) {
                assert!(Instant::now() < deadline);
            }
        };
        ip("link set near down");
        until(&mut near, |error| matches!(error, PortError::Down { .. }));
        assert!(matches!(near.send(&frames(3)), Err(PortError::Down { .. })));
        assert_eq!(near.port.stats().out_down, 3);
        ip("link set near up");
        let deadline = Instant::now() + PATIENCE;
        while near.poll().is_err() {
            assert!(Instant::now() < deadline);
        }
        // The far end learns of the carrier a little later, and drops frames until then.
        let deadline = Instant::now() + PATIENCE;
        let came = loop {
            assert!(Instant::now() < deadline);
            far.send(&frame(9));
            match near.poll().unwrap() {
                came if came.is_empty() => {}
                came => break came,
            }
        };
        assert_eq!(came[0], frame(9));
        near.send(&[frame(8)]).unwrap();
        assert_eq!(far.receive(), frame(8));
        ip("link del near");
        until(&mut near, |error| matches!(error, PortError::Vanished { .. }));
        assert!(matches!(near.send(&frames(2)), Err(PortError::Vanished { .. })));
        assert_eq!(near.port.stats().out_down, 5);
    });
}

#[test]
fn a_driver_that_refuses_native_xdp_gets_the_generic_one() {
    in_namespace(|| {
        // A veth device needs as many receive queues as its other end has transmit queues.
        ip("link add near numrxqueues 1 numtxqueues 1 type veth peer name far numrxqueues 1 numtxqueues 2");
        for name in ["near", "far"] {
            ip(&format!("link set {name} addrgenmode none"));
            ip(&format!("link set {name} up"));
        }
        let far = Far::on("far");
        let own = Interface::open("near").unwrap();
        let had_gro = own.features().unwrap().is_on(Feature::Gro);
        let mut near = DrivenPort::open(AfXdpPlan::on("near"));
        let description = near.port.describe();
        assert!(description.starts_with("af_xdp on near, generic (no native XDP: No space"), "{description}");
        assert!(description.contains("copy (no zero-copy: near: "), "{description}");
        assert!(!own.features().unwrap().is_on(Feature::Gro));
        let sent = frames(100);
        assert!(sent.iter().all(|frame| far.send(frame)));
        assert_eq!(near.receive(100), sent);
        near.send(&sent).unwrap();
        assert!(sent.iter().all(|frame| far.receive() == *frame));
        drop(near);
        assert_eq!(own.features().unwrap().is_on(Feature::Gro), had_gro);
    });
}

#[test]
fn what_cannot_be_is_refused_with_the_fix() {
    in_namespace(|| {
        veth("near", "far", 1);
        let error = |plan| AfXdpPort::open(plan).err().expect("it was opened").to_string();
        let ring = error(AfXdpPlan { ring: 100, ..AfXdpPlan::on("near") });
        assert!(ring.contains("power of two"), "{ring}");
        assert!(error(AfXdpPlan::on("none")).contains("ip link"));
        assert!(error(AfXdpPlan::on("lo")).contains("does not carry Ethernet"));

        ip("link set near mtu 65535");
        assert!(error(AfXdpPlan::on("near")).contains("ip link set near mtu 65521"));
        ip("link set near mtu 1500");
        ip("link set far mtu 9000");
        let far_mtu = error(AfXdpPlan::on("near"));
        assert!(far_mtu.contains("the MTU of its other end is above 3506"), "{far_mtu}");
        ip("link set far mtu 1500");

        let first = AfXdpPort::open(AfXdpPlan::on("near")).unwrap();
        let claimed = AfXdpPort::open(AfXdpPlan::on("near")).err().unwrap();
        assert!(matches!(claimed, AfXdpError::Interface(OpenError::Claimed { .. })), "{claimed}");
        drop(first);

        let near = Interface::open("near").unwrap();
        let socket =
            Socket::open(Some(&Umem::new(64).unwrap()), socket::RingSizes { receive: 64, transmit: None })
                .unwrap();
        let other = Redirect::attach(
            near.index(),
            &[socket.fd.as_fd()],
            program::Attach::Native,
            socket::Buffers::One,
        )
        .unwrap();
        assert!(error(AfXdpPlan::on("near")).contains("ip link set near xdp off"));
        drop(other);
        // The failures above have released everything, and a queue that is released late is waited for.
        for _ in 0..3 {
            AfXdpPort::open(AfXdpPlan::on("near")).unwrap();
        }
    });
}

#[test]
fn the_other_end_in_another_namespace_must_be_given_or_trusted() {
    in_namespace(|| {
        veth("near", "far", 1);
        // The open descriptor refers to this namespace while the far end is elsewhere.
        let here = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
        // SAFETY: unshare and setns take no pointers; they change this thread only.
        let there = unsafe {
            assert_eq!(libc::unshare(libc::CLONE_NEWNET), 0);
            let there = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
            assert_eq!(libc::setns(here.as_raw_fd(), libc::CLONE_NEWNET), 0);
            there
        };
        let path = format!("/proc/{}/fd/{}", std::process::id(), there.as_raw_fd());
        ip(&format!("link set far netns {path}"));
        let refused = AfXdpPort::open(AfXdpPlan::on("near")).err().unwrap();
        assert!(matches!(refused, AfXdpError::FarEnd { .. }), "{refused}");
        AfXdpPort::open(AfXdpPlan { far_end: FarEnd::Trusted, ..AfXdpPlan::on("near") }).unwrap();

        // SAFETY: as above.
        unsafe { assert_eq!(libc::setns(there.as_raw_fd(), libc::CLONE_NEWNET), 0) };
        let far = Interface::open("far").unwrap();
        ip("link set far up");
        // SAFETY: as above.
        unsafe { assert_eq!(libc::setns(here.as_raw_fd(), libc::CLONE_NEWNET), 0) };
        let far_end = FarEnd::Given(far.clone());
        let port = AfXdpPort::open(AfXdpPlan { far_end, ..AfXdpPlan::on("near") }).unwrap();
        assert!(!far.features().unwrap().is_on(Feature::TxChecksum));
        drop(port);
        assert!(far.features().unwrap().is_on(Feature::TxChecksum));
    });
}
