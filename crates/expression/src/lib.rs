//! pcap-filter expressions: read from text, compiled, evaluated on frames.
//!
//! The language is that of pcap-filter(7), as tcpdump takes it, for Ethernet frames; an expression means here what
//! libpcap 1.10 compiles it to. `and` and `or` bind equally, from the left; `not` binds tightest.
//!
//! - `[ether|ip|ip6|arp|rarp] [src|dst|src or dst|src and dst] host ADDRESS`; without `host` behind `src` or `dst` too
//! - `[ip|ip6|arp|rarp] [src|dst|…] net PREFIX[/LENGTH | mask MASK]`
//! - `[tcp|udp|sctp] [src|dst|…] port N`, `portrange A-B`
//! - `ip`, `ip6`, `arp`, `rarp`, `tcp`, `udp`, `sctp`, `icmp`, `icmp6`, `igmp`, `esp`, `ah`, `pim`, `vrrp`;
//!   `[ip|ip6] proto N`, `ether proto N`
//! - `[ether] broadcast`, `[ether|ip|ip6] multicast`, `vlan [ID]`, `less N`, `greater N`
//! - relations such as `tcp[tcpflags] & (tcp-syn|tcp-fin) != 0`, `ip[2:2] > 576`, `len <= 128`: unsigned, modulo 2³²
//! - a value alone repeats the qualifiers before it: `tcp port 80 or 443`, `host (10.0.0.1 or 10.0.0.2)`
//! - and, of Longwire's own: `dscp 46|ef|af11|cs6`, `ecn 3|ce`, `tos 0xb8`, for IPv4 and IPv6; `mark 5`, `mark 0x10/0xf0` (a value under a
//!   mask, as iptables has it), and `mark` in relations: the number that programs have given the packet, whatever its bytes
//!
//! What is worth knowing, most of it as in libpcap:
//!
//! - Ports and bytes of a transport header are those of first fragments. In IPv6 a transport header is looked for right
//!   behind the fixed header: behind extension headers no port is found; `tcp` alone looks past one fragment header.
//!   `tcp[…]` and the like are IPv4's, `icmp6[…]` is IPv6's.
//! - Behind `vlan` everything that is written further right looks four bytes further, whatever joins it. `ip` does not
//!   match a tagged frame.
//! - A test whose bytes are not all in the frame is false, and so is one that divides by zero; `not` of it is true.
//!   (libpcap refuses such a frame altogether; here `not` is always the complement.)
//! - `%` binds like `*` and `^` between `&` and `|`, as in C; libpcap 1.10 gives them no rank.
//! - Names of hosts and networks are not looked up; names of ports are a fixed list.
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
use question::Known;
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
    /// Reads and compiles `text`. Without a word in it, it matches every frame.
    ///
    /// # Errors
    /// Names the column, what was found there, why it won't do, and the fix. Texts above 16 KiB, more than 64
    /// parentheses or brackets in each other and more than 49 152 tests are refused.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        Ok(Self { text: text.trim().into(), program: parse::program(text)? })
    }

    /// Whether `frame` matches: its bytes from the destination address on, without FCS, as far as there are any.
    /// `wire_len` is its whole length in bytes without FCS, for `len`, `less` and `greater`.
    ///
    /// Allocates nothing, and ends after at most as many tests as the expression has, whatever the bytes.
    #[inline]
    pub fn matches(&self, frame: &[u8], wire_len: u32) -> bool {
        self.matches_marked(frame, wire_len, 0)
    }

    /// The same for a frame with a mark: the number that programs have given the packet, 0 if none has.
    #[inline]
    pub fn matches_marked(&self, frame: &[u8], wire_len: u32, mark: u32) -> bool {
        self.program.matches(frame, Known { wire_len, mark })
    }

    /// Whether it asks for the mark: without that, any will do.
    pub fn reads_mark(&self) -> bool {
        self.program.reads_mark()
    }

    /// The text it was read from.
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
