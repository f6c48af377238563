//! TCP and UDP between kernel sockets in two namespaces, across two ports: trains and open checksums, with
//! and without VLAN tags, on each driver.

use crate::net::{Net, now};
use longwire_block::Port;
use longwire_packet::{Batch, Pool};
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions, Header};
use longwire_port::driver::tap::{Tap, TapOptions};
use longwire_port::{Feature, Interface, OffloadGuard};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BYTES: usize = 32 << 20;
/// After this long without progress a test fails.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

/// Packets from one port to the other, and their segments.
#[derive(Debug, Default)]
struct Crossed {
    packets: u64,
    segments: u64,
}

/// Moves packets between two ports until `stop` is set.
fn forward(ports: &mut [Box<dyn Port>; 2], stop: &AtomicBool) -> Crossed {
    let mut pool = Pool::new(32 << 20).unwrap();
    let mut crossed = Crossed::default();
    while !stop.load(Ordering::Relaxed) {
        for from in 0..2 {
            let mut batch = Batch::new();
            ports[from].receive(&mut pool, now(), &mut batch).unwrap();
            for &handle in batch.as_slice() {
                crossed.packets += 1;
                crossed.segments += u64::from(pool.meta(handle).segments);
            }
            ports[1 - from].transmit(&mut pool, &batch).unwrap();
        }
    }
    assert_eq!(pool.live(), 0);
    crossed
}

/// Sends bytes from one host to the other through the ports, and checks each.
fn bulk(hosts: [&Net; 2], address: &'static str, ports: &mut [Box<dyn Port>; 2]) -> Crossed {
    let listener = hosts[1].run(move || TcpListener::bind((address, 0)).unwrap());
    let port = listener.local_addr().unwrap().port();
    let stop = AtomicBool::new(false);
    let crossed = std::thread::scope(|scope| {
        let engine = scope.spawn(|| forward(ports, &stop));
        let receiver = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(PATIENCE).unwrap();
            let mut bytes = Vec::with_capacity(BYTES);
            stream.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let mut stream = hosts[0].run(move || TcpStream::connect((address, port)).unwrap());
        stream.set_write_timeout(PATIENCE).unwrap();
        let sent: Vec<u8> = (0..BYTES).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect();
        stream.write_all(&sent).unwrap();
        drop(stream);
        assert!(receiver.join().unwrap() == sent, "the bytes arrive as they were sent");
        stop.store(true, Ordering::Relaxed);
        engine.join().unwrap()
    });
    for host in hosts {
        assert_eq!(host.checksum_errors(), 0);
    }
    for port in ports {
        let stats = port.stats();
        let lost = [stats.in_bad, stats.in_pool_full, stats.out_oversize, stats.out_down];
        assert_eq!(lost, [0; 4], "{stats:?}");
    }
    crossed
}

fn af_packet(net: &Net, interface: &'static str, header: Header) -> Box<dyn Port> {
    let options = AfPacketOptions { header, ..Default::default() };
    Box::new(net.run(move || AfPacket::open(interface, interface, &options)).unwrap())
}

fn hosts(middle: &Net) -> [Net; 2] {
    [middle.host("p1", "10.66.0.1"), middle.host("p2", "10.66.0.2")]
}

#[test]
fn trains_stay_whole_with_the_header() {
    let Some(middle) = Net::new() else { return };
    let [one, two] = hosts(&middle);
    let mut ports = [af_packet(&middle, "p1", Header::Auto), af_packet(&middle, "p2", Header::Auto)];
    let crossed = bulk([&one, &two], "10.66.0.2", &mut ports);
    assert!(crossed.segments > 2 * crossed.packets, "{crossed:?}");
}

#[test]
fn trains_are_split_and_checksums_filled_in_without_the_header() {
    let Some(middle) = Net::new() else { return };
    let [one, two] = hosts(&middle);
    // Trains from the second host would be too long for its port: the fix in the manual.
    let _off = two.run(|| {
        let eth0 = Interface::open("eth0").unwrap();
        OffloadGuard::turn_off(&eth0, &[Feature::Tso, Feature::Gso]).unwrap()
    });
    let mut ports = [af_packet(&middle, "p1", Header::On), af_packet(&middle, "p2", Header::Off)];
    let crossed = bulk([&one, &two], "10.66.0.2", &mut ports);
    assert!(crossed.segments > 2 * crossed.packets, "{crossed:?}");
    // And in the other direction: checksums that only the kernel's flag marks as partial.
    let crossed = bulk(
        [&two, &one],
        "10.66.0.1",
        &mut ports.into_iter().rev().collect::<Vec<_>>().try_into().ok().unwrap(),
    );
    assert!(crossed.packets as usize > BYTES / 1500);
}

#[test]
fn tags_that_the_kernel_takes_out_are_put_back() {
    let Some(middle) = Net::new() else { return };
    if !middle.run(knows_vlan) {
        println!("skipped: this kernel has no VLAN interfaces (8021q)");
        return;
    }
    let [one, two] = hosts(&middle);
    for (host, address) in [(&one, "10.67.0.1"), (&two, "10.67.0.2")] {
        host.ip("link add link eth0 name eth0.5 type vlan id 5");
        host.ip(&format!("addr add {address}/24 dev eth0.5"));
        host.ip("link set eth0.5 up");
    }
    let mut ports = [af_packet(&middle, "p1", Header::Auto), af_packet(&middle, "p2", Header::Auto)];
    let crossed = bulk([&one, &two], "10.67.0.2", &mut ports);
    assert!(crossed.segments > 2 * crossed.packets, "{crossed:?}");
}

/// Whether the kernel supports VLAN interfaces.
fn knows_vlan() -> bool {
    let ip =
        |arguments: &str| Command::new("ip").args(arguments.split(' ')).output().unwrap().status.success();
    ip("link add lw-parent type veth peer name lw-peer")
        && ip("link add link lw-parent name lw-vlan type vlan id 5")
        && ip("link del lw-parent")
}

fn tap(middle: &Net, host: &Net, name: &'static str, addresses: [&str; 2]) -> Box<dyn Port> {
    let options = TapOptions::default();
    let tap = middle.run(move || Tap::create(name, name, &options)).unwrap();
    middle.ip(&format!("link set {name} netns {}", host.tid()));
    host.run(move || {
        std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "0").unwrap();
        std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/accept_dad"), "0").unwrap();
    });
    host.ip(&format!("addr add {}/24 dev {name}", addresses[0]));
    host.ip(&format!("link set {name} up"));
    host.ip(&format!("addr add {}/64 dev {name} nodad", addresses[1]));
    Box::new(tap)
}

#[test]
fn taps_carry_trains_over_both_versions_of_ip() {
    let (Some(middle), Some(one), Some(two)) = (Net::new(), Net::new(), Net::new()) else { return };
    let mut ports = [
        tap(&middle, &one, "t1", ["10.68.0.1", "fd00::1"]),
        tap(&middle, &two, "t2", ["10.68.0.2", "fd00::2"]),
    ];
    for address in ["10.68.0.2", "fd00::2"] {
        let crossed = bulk([&one, &two], address, &mut ports);
        assert!(crossed.segments > 2 * crossed.packets, "{address} {crossed:?}");
    }
}

#[test]
#[allow(unsafe_code)]
fn udp_trains_cross() {
    let Some(middle) = Net::new() else { return };
    let [one, two] = hosts(&middle);
    let mut ports = [af_packet(&middle, "p1", Header::On), af_packet(&middle, "p2", Header::On)];
    let receiver = two.run(|| UdpSocket::bind("10.66.0.2:4000").unwrap());
    receiver.set_read_timeout(PATIENCE).unwrap();
    let sender = one.run(|| UdpSocket::bind("10.66.0.1:0").unwrap());
    use std::os::fd::AsRawFd;
    let size = 1000i32;
    // SAFETY: UDP_SEGMENT reads an int.
    let result = unsafe {
        libc::setsockopt(sender.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const size).cast(), 4)
    };
    assert_eq!(result, 0);
    let stop = AtomicBool::new(false);
    let crossed = std::thread::scope(|scope| {
        let engine = scope.spawn(|| forward(&mut ports, &stop));
        let sent: Vec<u8> = (0..20_500usize).map(|i| (i ^ (i >> 8)) as u8).collect();
        sender.send_to(&sent, "10.66.0.2:4000").unwrap();
        let mut buffer = [0; 2000];
        for datagram in sent.chunks(1000) {
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], datagram);
        }
        stop.store(true, Ordering::Relaxed);
        engine.join().unwrap()
    });
    assert!(crossed.segments >= crossed.packets + 20, "{crossed:?}");
    assert_eq!(two.checksum_errors(), 0);
}
