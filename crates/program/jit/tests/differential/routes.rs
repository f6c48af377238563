//! `fib_lookup`: compiled programs against the interpreter, and both against the kernel in a network
//! namespace with the same routes and neighbours.
#![allow(unsafe_code)]

use crate::bench::Bench;
use crate::kernel;
use longwire_jit::{compile, compile_unverified};
use longwire_program::{Hop, Maps, Program, RouteAnswer, RouteQuery, assemble, verify};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::sync::Arc;

/// Bytes of `struct bpf_fib_lookup` at the start of a packet; 4 bytes of flags follow.
const PARAMETERS: usize = 64;

/// Two ports with these numbers, and their neighbours.
const SETUP: &str = "
    ip link set lo up
    ip link add d5 index 5 address 02:00:00:00:00:05 mtu 1500 type veth peer name e5 index 15
    ip link add d6 index 6 address 02:00:00:00:00:06 mtu 1400 type veth peer name e6 index 16
    ip addr add 10.0.1.1/24 dev d5
    ip addr add 10.0.2.1/24 dev d6
    ip link set e5 up
    ip link set e6 up
    ip link set d5 up
    ip link set d6 up
    ip addr add fd01::1/64 dev d5 nodad
    echo 1 > /proc/sys/net/ipv4/conf/all/forwarding
    echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
    ip route add 10.1.0.0/16 via 10.0.1.9
    ip route add 10.1.2.0/24 via 10.0.2.9
    ip route add blackhole 10.2.0.0/16
    ip route add 10.3.0.0/16 via 10.0.1.77
    ip -6 route add 2001:db8:1::/48 via fd01::9
    ip neigh add 10.0.1.9 lladdr 02:00:00:00:01:09 dev d5
    ip neigh add 10.0.1.10 lladdr 02:00:00:00:01:0a dev d5
    ip neigh add 10.0.2.9 lladdr 02:00:00:00:02:09 dev d6
    ip neigh add fd01::9 lladdr 02:00:00:00:01:19 dev d5
";

/// Answers of a router with these routes.
fn route(query: &RouteQuery<'_>) -> RouteAnswer {
    if !matches!(query.ingress, 5 | 6) {
        return RouteAnswer::NoPort;
    }
    let gateway = |a: [u8; 4]| IpAddr::from(a);
    let fd01 = |last| IpAddr::V6(Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, last));
    let (port, neighbour) = match query.destination {
        IpAddr::V4(to) => match to.octets() {
            [10, 0, 1, 1 | 255] | [10, 0, 2, 1 | 255] => return RouteAnswer::NotForwarded,
            [10, 0, 1, _] => (5, IpAddr::from(to)),
            [10, 0, 2, _] => (6, IpAddr::from(to)),
            [10, 1, 2, _] => (6, gateway([10, 0, 2, 9])),
            [10, 1, ..] => (5, gateway([10, 0, 1, 9])),
            [10, 2, ..] => return RouteAnswer::Discarded,
            [10, 3, ..] => (5, gateway([10, 0, 1, 77])),
            _ => return RouteAnswer::NotForwarded,
        },
        IpAddr::V6(to) => match to.segments() {
            [0xfd01, 0, 0, 0, 0, 0, 0, 1] => return RouteAnswer::NotForwarded,
            [0xfd01, 0, 0, 0, ..] => (5, IpAddr::from(to)),
            [0x2001, 0xdb8, 1, ..] => (5, fd01(9)),
            _ => return RouteAnswer::NotForwarded,
        },
    };
    let mac = [2, 0, 0, 0, 0, port];
    let hop = Hop { port: port.into(), mtu: if port == 5 { 1500 } else { 1400 }, neighbour, mac };
    if u32::from(query.length) > hop.mtu {
        return RouteAnswer::TooLong(hop);
    }
    if query.skips_neighbour {
        return RouteAnswer::Forward(hop, None);
    }
    let known = [
        (gateway([10, 0, 1, 9]), [2, 0, 0, 0, 1, 9]),
        (gateway([10, 0, 1, 10]), [2, 0, 0, 0, 1, 10]),
        (gateway([10, 0, 2, 9]), [2, 0, 0, 0, 2, 9]),
        (fd01(9), [2, 0, 0, 0, 1, 0x19]),
    ];
    match known.iter().find(|(address, _)| *address == neighbour) {
        Some(&(_, mac)) => RouteAnswer::Forward(hop, Some(mac)),
        None => RouteAnswer::NoNeighbour(hop),
    }
}

/// Looks up what its packet specifies, and writes the answer there.
fn program() -> Program {
    let copy = |from: &str, to: &str| -> String {
        (0..PARAMETERS / 8)
            .map(|word| {
                format!("r3 = *(u64 *)({from} {})\n *(u64 *)({to} {}) = r3\n", at(from, word), at(to, word))
            })
            .collect()
    };
    let text = format!(
        "r6 = *(u32 *)(r1 + 0)\n r2 = *(u32 *)(r1 + 4)\n r3 = r6\n r3 += 68\n r0 = 99\n if r3 > r2 goto \
         out\n {}\
         r2 = r10\n r2 += -64\n r3 = 64\n r4 = *(u32 *)(r6 + 64)\n call fib_lookup\n r7 = r0\n {}r0 = r7\n \
         out: exit",
        copy("r6", "r10"),
        copy("r10", "r6")
    );
    Program::new("routes", assemble(&text).unwrap(), [])
}

/// Location of a parameter word: in the packet, or at the stack's end.
fn at(base: &str, word: usize) -> String {
    if base == "r6" { format!("+ {}", word * 8) } else { format!("- {}", PARAMETERS - word * 8) }
}

/// A lookup: family, length, port, destination, flags.
fn question(destination: IpAddr, (length, port, flags): (u16, u32, u32)) -> Vec<u8> {
    let mut packet = vec![0; 80];
    packet[6..8].copy_from_slice(&length.to_le_bytes());
    packet[8..12].copy_from_slice(&port.to_le_bytes());
    // Makes writes visible.
    packet[12..16].fill(0xaa);
    packet[48..64].fill(0xee);
    packet[64..68].copy_from_slice(&flags.to_le_bytes());
    match destination {
        IpAddr::V4(to) => {
            packet[0] = 2;
            packet[12] = 0;
            packet[32..36].copy_from_slice(&to.octets());
        }
        IpAddr::V6(to) => {
            packet[0] = 10;
            packet[32..48].copy_from_slice(&to.octets());
        }
    }
    packet
}

fn questions() -> Vec<Vec<u8>> {
    let v4 = [
        "10.0.1.9",
        "10.0.1.10",
        "10.0.1.50",
        "10.0.1.1",
        "10.0.2.9",
        "10.1.9.9",
        "10.1.2.3",
        "10.2.3.4",
        "10.3.0.1",
        "192.0.2.1",
    ];
    let v6 = ["fd01::9", "fd01::1", "fd01::50", "2001:db8:1::7", "2001:db8:2::7"];
    let v4 = v4.iter().map(|text| IpAddr::V4(text.parse::<Ipv4Addr>().unwrap()));
    let v6 = v6.iter().map(|text| IpAddr::V6(text.parse::<Ipv6Addr>().unwrap()));
    let mut all = Vec::new();
    for destination in v4.chain(v6) {
        for length in [0, 60, 1400, 1401, 1500, 1501] {
            for port in [5, 6, 99] {
                // None, BPF_FIB_LOOKUP_DIRECT, BPF_FIB_LOOKUP_SKIP_NEIGH, and an unknown flag.
                for flags in [0, 1, 4, 1 << 20] {
                    all.push(question(destination, (length, port, flags)));
                }
            }
        }
    }
    let mut other = all[0].clone();
    other[0] = 7;
    all.push(other);
    all
}

/// Both ways, with equal answers.
#[test]
fn compiled_programs_are_answered_as_interpreted_ones() {
    let mut codes = std::collections::BTreeSet::new();
    let maps = Arc::new(Maps::new(&[], 2, 1).unwrap());
    let verified = verify(program()).unwrap_or_else(|rejected| panic!("{rejected}"));
    let verified = compile(&verified, Arc::clone(&maps)).unwrap();
    let unverified = compile_unverified(&program(), &[], Arc::clone(&maps)).unwrap();
    for packet in questions() {
        let mut bench = Bench::new(program(), &packet);
        bench.route = route;
        let interpreted = bench.interpreted();
        assert_eq!(bench.run(&verified, &maps), interpreted, "{packet:02x?}");
        assert_eq!(bench.run(&unverified, &maps), interpreted, "{packet:02x?}");
        codes.insert(interpreted.result.unwrap() as i32);
    }
    // All possible answers, and both errors.
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), [-97, -22, -19, 0, 1, 4, 7, 8]);
}

/// The kernel's answers to the same lookups with the same routes, to the byte, except for the metric, which
/// routes here do not have.
#[test]
fn answers_are_those_of_the_kernel() {
    if let Some(reason) = kernel::refusal() {
        println!("skipped: {reason}");
        return;
    }
    // A separate thread: the namespace ends with it.
    let done = std::thread::spawn(|| {
        // SAFETY: it changes which network this thread sees, and nothing else.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err(format!("no namespace can be made: {}", std::io::Error::last_os_error()));
        }
        let setup = Command::new("sh").args(["-ec", SETUP]).output().map_err(|error| error.to_string())?;
        if !setup.status.success() {
            return Err(format!("the namespace can't be set up: {}", String::from_utf8_lossy(&setup.stderr)));
        }
        let verified = verify(program()).unwrap_or_else(|rejected| panic!("{rejected}"));
        let maps = Arc::new(Maps::new(&[], 1, 0).unwrap());
        let in_kernel = kernel::InKernel::new(&program(), &maps).unwrap();
        let compiled = compile(&verified, Arc::clone(&maps)).unwrap();
        let mut differ = Vec::new();
        // With BPF_FIB_LOOKUP_DIRECT the kernel skips the table of its own IPv6 addresses; here there is only
        // one table.
        let own = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1).octets();
        let compared = |packet: &Vec<u8>| packet[64] != 1 || packet[32..48] != own;
        for packet in questions().into_iter().filter(compared) {
            let mut bench = Bench::new(program(), &packet);
            bench.route = route;
            let left = bench.run(&compiled, &maps);
            let (returned, mut theirs) = in_kernel.run(&packet).unwrap();
            let mut ours = left.buffer[left.packet.clone()].to_vec();
            ours[12..16].fill(0);
            theirs[12..16].fill(0);
            if (left.result.unwrap() as u32, &ours) != (returned, &theirs) {
                differ.push(format!(
                    "{packet:02x?}\nours {:?} {ours:02x?}\nkernel {} {theirs:02x?}",
                    left.result, returned as i32
                ));
            }
        }
        assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
        Ok(questions().iter().filter(|packet| compared(packet)).count())
    });
    match done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
        Ok(compared) => println!("the same to {compared} questions"),
        Err(reason) => println!("skipped: {reason}"),
    }
}
