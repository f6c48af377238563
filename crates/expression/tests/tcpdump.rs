//! Compares verdicts with tcpdump: its compiled programs are run by a small interpreter on the same frames.

mod frames;

use frames::{Draws, drawn};
use longwire_expression::Expression;
use std::process::Command;

const FRAMES: usize = 4000;

const EXPRESSIONS: &[&str] = &[
    "ip",
    "ip6",
    "arp",
    "rarp",
    "tcp",
    "udp",
    "sctp",
    "icmp",
    "icmp6",
    "igmp",
    "esp",
    "ah",
    "not ip",
    "!tcp && !udp",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "dst 10.0.0.2",
    "src or dst 10.0.0.1",
    "src and dst host 10.0.0.1",
    "ip host 10.0.0.1",
    "arp host 10.0.0.1",
    "rarp src 10.0.0.2",
    "host fe80::1",
    "ip6 src ::1",
    "dst host ff02::1",
    "net 10",
    "net 10.0.0.0/8",
    "src net 192.168",
    "dst net 224.0.0.0/3",
    "net 10.0.0.0 mask 255.0.0.0",
    "ip net 10.1.2.0/24",
    "net 0.0.0.0/0",
    "ip6 net fe80::/10",
    "net 2001:db8::/32",
    "src net ::/1",
    "port 80",
    "tcp port 80",
    "udp src port 53",
    "sctp dst port 443",
    "src and dst port 80",
    "tcp port http",
    "portrange 8000-8999",
    "tcp src portrange 8999-8000",
    "udp portrange 22-80",
    "port 80 or 443",
    "tcp port (80 or 443)",
    "tcp port not 80",
    "host 10.0.0.1 and not 10.0.0.2",
    "src 10.0.0.1 and dst 10.0.0.2 or 10.1.2.3",
    "host 10.0.0.1 and (port 80 or 443)",
    "ether host 2:0:0:0:0:1",
    "ether src 02-00-00-00-00-02",
    "ether dst 0100.5e00.0001",
    "ether broadcast",
    "broadcast",
    "multicast",
    "ether multicast",
    "ip multicast",
    "ip6 multicast",
    "ether proto 0x88cc",
    "ether proto \\ip6",
    "ether proto 2048 or 2054",
    "ip proto 47 or 6",
    "ip6 proto 17",
    "proto 132",
    "ip proto \\udp",
    "vlan",
    "vlan 5",
    "vlan 5 and ip",
    "vlan and vlan 7 and ip6",
    "not vlan and ip",
    "vlan or tcp port 80",
    "vlan and host 10.0.0.1",
    "vlan and tcp[0:2] = 80",
    "less 150",
    "greater 150",
    "len > 150 and len <= 160",
    "150 < len",
    "ip[0] & 0xf != 5",
    "ip[8] = 64",
    "ip[2:2] > 576",
    "ip[6:2] & 0x1fff = 0",
    "tcp[13] = 2",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "tcp[tcpflags] == tcp-syn|tcp-ack",
    "icmp[icmptype] = icmp-echo",
    "icmp[icmpcode] != 4",
    "icmp6[icmp6type] = icmp6-echo",
    "udp[4:2] - 8 >= 100",
    "not tcp[0:2] = 80",
    "ether[0] & 1 = 0 and ip[16] >= 224",
    "ip[12:4] = 0x0a000001",
    "ip6[6] == 6 or ip6[6] = 44",
    "ip[2:2] * 2 + 1 > 1000",
    "ip[2:2] - ((ip[0] & 0xf) << 2) = 20",
    "ip[((ip[0] & 15) << 2):2] = 80",
    "arp[6:2] = 1",
    "tcp[2:2] = tcp[0:2]",
    "(ip[2:2] | 1) & 0xff = 0x41",
    "ether[17] - 5 > -5",
    "tcp[-1] = 1",
    "ip[8] << 2 >> 1 = 0x80",
    "ip[2:2] / 2 = 20 or (ip and not icmp)",
    "len - 20 > 130",
    "ip or arp and udp",
    "ip and udp or arp",
    "not (ip or arp) and not (tcp or udp)",
    "(tcp[13] & 2 != 0 and dst port 443) or (udp and not net 10) or (icmp6 and greater 150)",
];

/// Verdict of a program on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Match,
    Miss,
    /// It read beyond the frame's end and gave up: ours intentionally differs there.
    Outside,
}

/// An instruction as `tcpdump -ddd` prints it: code, jumps, constant.
type Instruction = (u16, u8, u8, u32);

/// The program of an expression, compiled by tcpdump without optimization. None without tcpdump.
fn compiled(expression: &str) -> Option<Vec<Instruction>> {
    let output =
        Command::new("tcpdump").args(["-O", "-y", "EN10MB", "-ddd", "--", expression]).output().ok()?;
    assert!(output.status.success(), "{expression}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let numbers: Vec<u32> = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
        (numbers[0] as u16, numbers[1] as u8, numbers[2] as u8, numbers[3])
    };
    Some(text.lines().skip(1).map(line).collect())
}

/// Runs a program (McCanne & Jacobson, "The BSD Packet Filter", USENIX Winter 1993).
fn run(program: &[Instruction], frame: &[u8]) -> Verdict {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; 16]);
    let mut at = 0;
    loop {
        let (code, yes, no, k) = program[at];
        at += 1;
        let operand = if code & 8 == 0 { k } else { x };
        match code & 7 {
            0 | 1 => {
                let value = match code & 0xe0 {
                    0x00 => Some(k),
                    0x20 => read(frame, k, code),
                    0x40 => read(frame, x.wrapping_add(k), code),
                    0x60 => Some(memory[k as usize]),
                    0x80 => Some(frame.len() as u32),
                    _ => frame.get(k as usize).map(|&byte| u32::from(byte & 0xf) * 4),
                };
                let Some(value) = value else { return Verdict::Outside };
                if code & 7 == 0 { a = value } else { x = value }
            }
            2 => memory[k as usize] = a,
            3 => memory[k as usize] = x,
            4 => {
                a = match code & 0xf0 {
                    0x00 => a.wrapping_add(operand),
                    0x10 => a.wrapping_sub(operand),
                    0x20 => a.wrapping_mul(operand),
                    0x30 => a / operand,
                    0x40 => a | operand,
                    0x50 => a & operand,
                    0x60 => a << operand,
                    0x70 => a >> operand,
                    0x80 => a.wrapping_neg(),
                    0x90 => a % operand,
                    _ => a ^ operand,
                }
            }
            5 => {
                let jumps = match code & 0xf0 {
                    0x00 => {
                        at += k as usize;
                        continue;
                    }
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    _ => a & operand != 0,
                };
                at += usize::from(if jumps { yes } else { no });
            }
            6 => {
                let kept = if code & 0x18 == 0x10 { a } else { k };
                return if kept == 0 { Verdict::Miss } else { Verdict::Match };
            }
            _ => {
                if code & 0xf8 == 0 {
                    x = a;
                } else {
                    a = x;
                }
            }
        }
    }
}

fn read(frame: &[u8], at: u32, code: u16) -> Option<u32> {
    let bytes = frame.get(at as usize..)?;
    match code & 0x18 {
        0x00 => bytes.first_chunk().map(|&word| u32::from_be_bytes(word)),
        0x08 => bytes.first_chunk().map(|&half| u32::from(u16::from_be_bytes(half))),
        _ => bytes.first().map(|&byte| u32::from(byte)),
    }
}

#[test]
fn verdicts_are_those_of_tcpdump() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        println!("skipped: there is no tcpdump (apt-get install tcpdump)");
        return;
    }
    let mut draws = Draws::new(3);
    let frames: Vec<_> = (0..FRAMES).map(|_| drawn(&mut draws)).collect();
    for text in EXPRESSIONS {
        let theirs = compiled(text).expect("tcpdump was there a moment ago");
        let ours = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let (mut matched, mut missed, mut outside) = (0, 0, 0);
        for frame in &frames {
            match run(&theirs, frame) {
                Verdict::Outside => outside += 1,
                verdict => {
                    let wanted = verdict == Verdict::Match;
                    assert_eq!(ours.matches(frame, frame.len() as u32), wanted, "{text}: {frame:02x?}");
                    *if wanted { &mut matched } else { &mut missed } += 1;
                }
            }
        }
        // Frames are long enough and their fields are drawn from few values, so that every expression both
        // matches and fails.
        assert!(matched > 0 && missed > 0, "{text}: {matched} matched, {missed} missed");
        assert!(outside < FRAMES / 10, "{text}: {outside} outside");
    }
}
