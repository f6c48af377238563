//! Random texts and bytes never cause a panic, and the laws of logic hold for valid expressions.

mod exercise;
mod frames;

use frames::{Draws, drawn};
use longwire_expression::{Expression, Fault};
use proptest::prelude::*;

/// Words and symbols of the language, so that random texts get past the first word.
const PIECES: &[&str] = &[
    "tcp",
    "udp",
    "ip",
    "ip6",
    "arp",
    "icmp",
    "ether",
    "src",
    "dst",
    "host",
    "net",
    "port",
    "portrange",
    "proto",
    "vlan",
    "less",
    "greater",
    "len",
    "and",
    "or",
    "not",
    "!",
    "&&",
    "||",
    "(",
    ")",
    "[",
    "]",
    ":",
    "/",
    "mask",
    "multicast",
    "broadcast",
    "dscp",
    "ef",
    "ecn",
    "tos",
    "10.0.0.1",
    "fe80::1",
    "2:0:0:0:0:1",
    "10",
    "80",
    "0x800",
    "8000-8999",
    "http",
    "tcpflags",
    "tcp-syn",
    "+",
    "-",
    "*",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "=",
    "!=",
    "<",
    ">=",
    "0",
    "4294967295",
];

fn texts() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..24);
    prop_oneof![any::<String>(), "[ -~]{0,60}", pieces.prop_map(|pieces| pieces.join(" "))]
}

/// Valid expressions, some of which read beyond the end of short frames.
fn primitives() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "tcp port 80",
        "udp",
        "ip",
        "icmp6",
        "host 10.0.0.1 or 10.0.0.2",
        "src net 192.168",
        "vlan 5",
        "ecn ce",
        "ip6 net fe80::/10",
        "len > 100",
        "tcp[13] & 2 != 0",
        "ip[8] / ip[1] = 1",
        "ether[200] = 0",
        "dscp ef",
        "ether[ip[2:2]] != 5",
        "not arp and ether multicast",
        "portrange 8000-8999",
        "ip[0] << ip[1] = 0x45",
    ])
}

/// A random frame of the tests' kind, or any bytes.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let cut = (1u64.., 0usize..150).prop_map(|(seed, len)| {
        let mut frame = drawn(&mut Draws::new(seed));
        frame.truncate(len);
        frame
    });
    prop_oneof![cut, prop::collection::vec(any::<u8>(), 0..200)]
}

fn parse(text: &str) -> Expression {
    Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_text_is_read_or_refused(text in texts(), frame in any_frame()) {
        exercise::expression::run(&[text.as_bytes(), &[0], &frame].concat());
    }

    #[test]
    fn logic_holds_on_any_frame(a in primitives(), b in primitives(), frame in any_frame()) {
        // Tags move what is written further right, so `vlan` must not be on the left.
        prop_assume!(!a.contains("vlan"));
        let is = |text: String| parse(&text).matches(&frame, frame.len() as u32);
        let (first, second) = (is(a.into()), is(b.into()));
        prop_assert_eq!(is(format!("not ({a})")), !first);
        prop_assert_eq!(is(format!("({a}) and ({b})")), first && second);
        prop_assert_eq!(is(format!("({a}) or ({b})")), first || second);
        prop_assert_eq!(is(format!("not (({a}) and ({b}))")), is(format!("not ({a}) or not ({b})")));
        prop_assert_eq!(is(format!("not (({a}) or ({b}))")), is(format!("not ({a}) and not ({b})")));
    }
}

#[test]
fn limits_hold_against_large_texts() {
    let fault = |text: String| Expression::parse(&text).unwrap_err().fault;
    assert_eq!(fault("(".repeat(16_000)), Fault::Limit);
    assert_eq!(fault(format!("ip[{}0]=0", "ip[".repeat(5000))), Fault::Limit);
    assert_eq!(fault(format!("{}1 = 1", "-".repeat(16_000))), Fault::Limit);
    assert_eq!(fault(format!("port 1{}", " or 1".repeat(3200))), Fault::Limit);
    assert_eq!(fault(format!("ip {}", "and ip ".repeat(4000))), Fault::Limit);
    // Seventeen values at once: ip[0] + (ip[0] + (…)).
    assert_eq!(fault(format!("{}1{} = 1", "ip[0] + (".repeat(16), ")".repeat(16))), Fault::Limit);
    let long = format!("{}ip", "not ".repeat(4000));
    assert!(parse(&long).matches(&[&[0; 12][..], &[8, 0]].concat(), 60));
    let long = format!("{}1 = 1", "ip[0] + ".repeat(2000));
    assert!(!parse(&long).matches(&[0; 60], 60));
}
