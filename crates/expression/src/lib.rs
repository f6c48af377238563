//! pcap-filter expressions: read from text, compiled, evaluated on frames.
//!
//! The language is that of pcap-filter(7), as tcpdump takes it, for Ethernet frames; an expression means here
//! what libpcap 1.10 compiles it to. `and` and `or` bind equally, from the left; `not` binds tightest.
//!
//! - `[ether|ip|ip6|arp|rarp] [src|dst|src or dst|src and dst] host ADDRESS`; `host` is optional after `src`
//!   or `dst`
//! - `[ip|ip6|arp|rarp] [src|dst|…] net PREFIX[/LENGTH | mask MASK]`
//! - `[tcp|udp|sctp] [src|dst|…] port N`, `portrange A-B`
//! - `ip`, `ip6`, `arp`, `rarp`, `tcp`, `udp`, `sctp`, `icmp`, `icmp6`, `igmp`, `esp`, `ah`, `pim`, `vrrp`;
//!   `[ip|ip6] proto N`, `ether proto N`
//! - `[ether] broadcast`, `[ether|ip|ip6] multicast`, `vlan [ID]`, `less N`, `greater N`
//! - relations such as `tcp[tcpflags] & (tcp-syn|tcp-fin) != 0`, `ip[2:2] > 576`, `len <= 128`: unsigned,
//!   modulo 2³²
//! - a value alone repeats the qualifiers before it: `tcp port 80 or 443`, `host (10.0.0.1 or 10.0.0.2)`
//! - extensions of Longwire: `dscp 46|ef|af11|cs6`, `ecn 3|ce`, `tos 0xb8`, for IPv4 and IPv6; `mark 5`,
//!   `mark 0x10/0xf0` (a value under a mask, as in iptables), and `mark` in relations: the mark that programs
//!   have set on the packet, independent of its bytes
//!
//! Details, most of them as in libpcap:
//!
//! - Ports and bytes of a transport header are those of first fragments. In IPv6 a transport header is only
//!   found directly after the fixed header: after extension headers no port matches; `tcp` alone looks past
//!   one fragment header. `tcp[…]` and the like read IPv4 packets, `icmp6[…]` IPv6 packets.
//! - After `vlan` everything written further right reads four bytes further, whatever the operators. `ip`
//!   does not match a tagged frame.
//! - A test whose bytes are not all in the frame is false, and so is one that divides by zero; `not` of it is
//!   true. (libpcap rejects such a frame; here `not` is always the complement.)
//! - `%` binds like `*` and `^` between `&` and `|`, as in C; libpcap 1.10 defines no precedence for them.
//! - Names of hosts and networks are not resolved; names of ports are a fixed list.
#![forbid(unsafe_code)]

mod builder;
mod error;
mod names;
mod parse;
mod primitive;
mod program;
mod question;
mod token;
mod window;

pub use error::{ExpressionError, Fault, quoted};
pub use names::code_point;

use program::Program;
use question::PacketMetadata;
use std::fmt;
use std::str::FromStr;

/// A condition on frames.
///
/// ```
/// use longwire_expression::Expression;
///
/// let small = Expression::parse("arp and less 60").unwrap();
/// let mut frame = [0; 42];
/// frame[12..14].copy_from_slice(&[0x08, 0x06]);
/// assert!(small.matches(&frame, 42));
/// assert!(!small.matches(&frame, 64));
///
/// let error = Expression::parse("tcp prot 80").unwrap_err();
/// assert_eq!(error.column, 5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    text: Box<str>,
    program: Program,
}

impl Expression {
    /// Parses and compiles `text`. An empty text matches every frame.
    ///
    /// # Errors
    /// Names the column, the text found there, the kind of error, and the fix. Texts above 16 KiB, more than
    /// 64 nested parentheses or brackets and more than 49 152 tests are refused.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        Ok(Self { text: text.trim().into(), program: parse::program(text)? })
    }

    /// Whether `frame` matches: its bytes from the destination address on, without FCS, as far as present.
    /// `wire_len` is its whole length in bytes without FCS, for `len`, `less` and `greater`.
    ///
    /// Allocates nothing, and ends after at most as many tests as the expression has, whatever the bytes.
    #[inline]
    pub fn matches(&self, frame: &[u8], wire_len: u32) -> bool {
        self.matches_marked(frame, wire_len, 0)
    }

    /// Whether a frame with a mark matches; the mark is 0 if no program has set one.
    #[inline]
    pub fn matches_marked(&self, frame: &[u8], wire_len: u32, mark: u32) -> bool {
        self.program.matches(frame, PacketMetadata { wire_len, mark })
    }

    /// Whether a frame matches, if its bytes at fixed places decide that; none if more must be known, as for
    /// a length, a mark, or a header with options. Takes few instructions, and makes no calls.
    #[inline(always)]
    pub fn matches_at_once(&self, frame: &[u8]) -> Option<bool> {
        self.program.by_windows(frame)
    }

    /// Whether it reads the mark.
    pub fn reads_mark(&self) -> bool {
        self.program.reads_mark()
    }

    /// The source text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        Self::parse(text)
    }
}
