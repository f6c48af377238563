//! Expressions on handmade frames, and error messages.

use longwire_expression::{Expression, Fault};

/// 10.0.0.1 port 80 to 10.0.0.2 port 8080: TCP with SYN and ACK, DSCP EF, congestion experienced.
const TCP: &str = "020000000002 020000000001 0800 45bb0028 00010000 40060000 0a000001 0a000002 \
                   0050 1f90 00000000 00000000 5012 0000 00000000";
/// fe80::1 to ff02::1: ICMPv6 echo request, traffic class 0xb8.
const ICMP6: &str = "333300000001 020000000001 86dd 6b801234 0008 3aff fe800000000000000000000000000001 \
                     ff020000000000000000000000000001 8000 0000 00000000";

fn frame(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn is(text: &str, frame: &[u8]) -> bool {
    let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    expression.matches(frame, frame.len() as u32)
}

#[test]
fn nothing_matches_everything() {
    assert!(is("", &[]) && is("  ", &frame(TCP)));
}

#[test]
fn and_and_or_bind_equally_from_the_left() {
    let tcp = frame(TCP);
    assert!(!is("ip or arp and udp", &tcp));
    assert!(is("ip or (arp and udp)", &tcp));
    assert!(is("not udp and tcp", &tcp), "not binds tighter");
}

#[test]
fn code_points_and_congestion_bits_are_those_of_both_families() {
    let (tcp, icmp6) = (frame(TCP), frame(ICMP6));
    let table = [
        ("dscp ef", true, true),
        ("dscp 46", true, true),
        ("dscp 0x2e", true, true),
        ("dscp cs6 or dscp af11 or dscp 0", false, false),
        ("ecn ce", true, false),
        ("ecn 0", false, true),
        ("ecn not-ect", false, true),
        ("ecn 1 or ecn ect0", false, false),
        ("tos 0xbb", true, false),
        ("tos 184", false, true),
        ("tcp and dscp ef and ecn 3", true, false),
        ("not dscp ef", false, false),
    ];
    for (text, of_tcp, of_icmp6) in table {
        assert_eq!((is(text, &tcp), is(text, &icmp6)), (of_tcp, of_icmp6), "{text}");
    }
}

/// pcap-filter(7) names all types up to 153 but 150.
#[test]
fn types_of_icmpv6_have_names() {
    for (name, number) in [
        ("redirect", 137),
        ("routerrenum", 138),
        ("multicastlistenerreportv2", 143),
        ("certpathadvert", 149),
        ("multicastrouteradvert", 151),
        ("multicastrouterterm", 153),
    ] {
        let mut icmp6 = frame(ICMP6);
        icmp6[54] = number;
        assert!(is(&format!("icmp6[icmp6type] = icmp6-{name}"), &icmp6), "{name}");
    }
}

#[test]
fn marks_are_the_packets_and_not_the_frames() {
    let table: [(&str, &[u32]); 13] = [
        ("mark 5", &[5]),
        ("mark 0x25", &[0x25]),
        ("mark 5 or mark 0x25", &[5, 0x25]),
        ("not mark 0", &[5, 0x25, u32::MAX]),
        ("mark != 0", &[5, 0x25, u32::MAX]),
        ("mark 0x5/0xf", &[5, 0x25]),
        ("mark 0/1", &[0]),
        ("mark & 0xf == 5", &[5, 0x25]),
        ("mark / 2 = 2", &[5]),
        ("mark > 5 and mark < len", &[0x25]),
        ("(mark & 1) = 1 and tcp", &[5, 0x25, u32::MAX]),
        ("5 = mark", &[5]),
        ("vlan or mark 5", &[5]),
    ];
    let tcp = frame(TCP);
    for (text, wanted) in table {
        let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let found: Vec<u32> = [0, 5, 0x25, u32::MAX]
            .into_iter()
            .filter(|&mark| expression.matches_marked(&tcp, 54, mark))
            .collect();
        assert_eq!(found, wanted, "{text}");
        assert_eq!(expression.matches(&tcp, 54), wanted.contains(&0), "{text}: no mark is 0");
    }
    for (text, column, wanted) in [
        ("mark", 5, "write a mark such as 5"),
        ("mark and tcp", 6, "write a mark such as 5"),
        ("mark ef", 6, "write a mark such as 5"),
        ("mark 4294967296", 6, "write a mark such as 5"),
        ("mark 5/", 8, "write a mask"),
        ("mark 0x10/0x0f", 11, "no packet matches"),
        ("marc 5", 1, "did you mean \"mark\"?"),
        ("tcp mark 5", 5, "\"and\" before a primitive"),
    ] {
        let error = Expression::parse(text).unwrap_err();
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.to_string().contains(wanted), "{text}: {error}");
    }
}

/// Together, their bits would be found.
#[test]
fn values_outside_a_mask_are_never_found() {
    let tcp = frame(TCP);
    let table = [
        ("tcp[13] & 0x10 = 0x10 and tcp[13] & 2 = 2", true),
        ("tcp[13] & 0x10 = 0x12 and tcp[13] & 2 = 2", false),
        ("tcp[13] & 2 = 2 and tcp[13] & 0x10 = 0x12", false),
        ("tcp[13] & 0x10 >= 0x12 and tcp[13] & 0x10 <= 0x12 and tcp[13] & 2 = 2", false),
    ];
    for (text, wanted) in table {
        assert_eq!(is(text, &tcp), wanted, "{text}");
    }
}

#[test]
fn tests_beyond_the_end_are_false() {
    let tcp = frame(TCP);
    // Truncated after the source port.
    let cut = &tcp[..36];
    let table = [
        ("tcp", true),
        ("tcp src port 80", true),
        ("tcp dst port 8080", false),
        ("not tcp dst port 8080", true),
        ("tcp[2:2] = 8080", false),
        ("tcp[2:2] != 8080", false),
        ("not tcp[2:2] != 8080", true),
        ("tcp[2:2] = 8080 or ip", true),
        ("ip[0] / (ip[0] - 0x45) = 0", false),
        ("not ip[0] / (ip[0] - 0x45) = 0", true),
        ("len = 36", true),
        ("ether[4294967295] = 0", false),
    ];
    for (text, wanted) in table {
        assert_eq!(is(text, cut), wanted, "{text}");
    }
    for len in 0..tcp.len() {
        assert!(!is("tcp[13] & (tcp-syn|tcp-ack) = tcp-syn|tcp-ack", &tcp[..len]) || len > 47, "{len}");
    }
    assert!(is("tcp[13] & (tcp-syn|tcp-ack) = tcp-syn|tcp-ack", &tcp));
}

#[test]
fn the_length_is_the_one_on_the_wire() {
    let expression = Expression::parse("greater 1000 and len < 1002").unwrap();
    let matching: Vec<u32> = (998..1004).filter(|&len| expression.matches(&frame(TCP), len)).collect();
    assert_eq!(matching, [1000, 1001]);
}

#[test]
fn tags_move_what_is_written_behind_vlan() {
    let mut tagged = frame(TCP);
    tagged.splice(12..12, [0x81, 0x00, 0x20, 0x05]);
    let table = [
        ("ip", false),
        ("vlan", true),
        ("vlan 5 and ip", true),
        ("vlan 6 and ip", false),
        ("ip and vlan", false),
        ("vlan and tcp port 8080", true),
        ("vlan and tcp[0:2] = 80", true),
        ("vlan and dscp ef", true),
        ("vlan and ether[12:2] = 0x8100", true),
        ("vlan and vlan", false),
    ];
    for (text, wanted) in table {
        assert_eq!(is(text, &tagged), wanted, "{text}");
    }
}

#[test]
fn a_value_repeats_the_qualifiers_before_it() {
    let tcp = frame(TCP);
    let table = [
        ("tcp src port 22 or 80", true),
        ("tcp dst port 22 or 80", false),
        ("tcp port (22 or 80)", true),
        ("src host 10.0.0.2 or 10.0.0.1", true),
        ("src host 10.0.0.2 or (10.0.0.1 and tcp)", true),
        ("src net 192.168.0.0/16 or 10.0.0.0/8 or 172.16/12", true),
        ("tcp port 22 or 5 > 4", true),
        ("ip proto 17 or \\tcp", true),
    ];
    for (text, wanted) in table {
        assert_eq!(is(text, &tcp), wanted, "{text}");
    }
}

#[test]
fn errors_name_column_finding_and_fix() {
    let table = [
        ("tcp prot 80", 5, "prot", Fault::Unknown, "did you mean \"port\"?"),
        ("tcp 80", 5, "80", Fault::Unexpected, "before a value"),
        ("TCP port 80", 1, "TCP", Fault::Unknown, "\"tcp\""),
        ("10.0.0.1", 1, "10.0.0.1", Fault::Unexpected, "host 10.0.0.1"),
        ("host example.org", 6, "example.org", Fault::Value, "not looked up"),
        ("host 10.0.0.256", 6, "10.0.0.256", Fault::Value, "IPv4 or IPv6 address"),
        ("host 10.0.0.0/8", 14, "/", Fault::Unexpected, "\"net\""),
        ("host 2:0:0:0:0:1", 6, "2:0:0:0:0:1", Fault::Value, "\"ether\""),
        ("net 10.0.0.1/8", 5, "10.0.0.1", Fault::Value, "10.0.0.0"),
        ("net fe80::1/64", 5, "fe80::1", Fault::Value, "fe80::"),
        ("net 10.0.0.0/33", 14, "33", Fault::Value, "0 to 32"),
        ("ip6 host 10.0.0.1", 10, "10.0.0.1", Fault::Value, "IPv6"),
        ("tcp host 10.0.0.1", 5, "host", Fault::Unexpected, "tcp and host"),
        ("ip port 80", 4, "port", Fault::Unexpected, "tcp, udp or sctp"),
        ("port 65536", 6, "65536", Fault::Value, "0 to 65535"),
        ("port htpt", 6, "htpt", Fault::Value, "\"http\""),
        ("portrange 8000-", 15, "-", Fault::Unexpected, "\"and\" or \"or\""),
        ("vlan 4096", 6, "4096", Fault::Value, "4095"),
        ("ether proto 64", 13, "64", Fault::Value, "EtherType"),
        ("ip proto 256", 10, "256", Fault::Value, "255"),
        ("dscp af44", 6, "af44", Fault::Value, "0 to 63"),
        ("ip broadcast", 4, "broadcast", Fault::Refused, "dst host"),
        ("gateway 10.0.0.1", 1, "gateway", Fault::Refused, "ether host"),
        ("tcp and", 8, "", Fault::Unexpected, "tcp port 80"),
        ("and tcp", 1, "and", Fault::Unexpected, "before it"),
        ("(tcp or udp", 12, "", Fault::Unexpected, "\")\""),
        ("tcp or udp)", 11, ")", Fault::Unexpected, "\"and\" or \"or\""),
        ("tcp udp", 5, "udp", Fault::Unexpected, "\"and\" before a primitive"),
        ("ip[0:3] = 1", 6, "3", Fault::Value, "1, 2 or 4"),
        ("ip[0 = 1", 6, "=", Fault::Unexpected, "\"]\""),
        ("ip[0] & 15", 11, "", Fault::Unexpected, "compare"),
        ("ip[0] / 0 = 1", 9, "0", Fault::Value, "zero"),
        ("ip[0] << 32 = 1", 10, "32", Fault::Value, "31"),
        ("tcp[tcpflag] = 2", 5, "tcpflag", Fault::Unknown, "\"tcpflags\""),
        ("ip and § udp", 8, "§", Fault::Unknown, "operators"),
    ];
    for (text, column, found, fault, fix) in table {
        let error = Expression::parse(text).expect_err(text);
        let found = if found.is_empty() { "the end".into() } else { format!("\"{found}\"") };
        assert_eq!((error.column, &error.found, error.fault), (column, &found, fault), "{text}: {error}");
        assert!(error.fix.contains(fix), "{text}: {error}");
    }
    let error = Expression::parse("tcp prot 80").unwrap_err().to_string();
    assert_eq!(error, "column 5: found \"prot\": no such word is known; did you mean \"port\"?");
}
