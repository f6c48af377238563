//! Names for numbers, and words of pcap-filter that Longwire does not support.

use crate::primitive::Protocol::{self, *};

/// A table of names, each with its value.
macro_rules! table {
    ($($name:literal $value:expr,)+) => { &[$(($name, $value)),+] };
}

/// Protocols by their pcap-filter names.
pub(crate) const PROTOCOLS: &[(&str, Protocol)] = table! {
    "ether" Ether, "link" Ether, "ip" Ip, "ip6" Ip6,
    "arp" Arp, "rarp" Rarp, "icmp" Icmp, "icmp6" Icmp6,
    "igmp" Igmp, "tcp" Tcp, "udp" Udp, "sctp" Sctp,
    "esp" Esp, "ah" Ah, "pim" Pim, "vrrp" Vrrp,
};

/// Words that begin a primitive and are not protocols, or occur inside one.
pub(crate) const WORDS: &str = "\
    and or not src dst host net mask port portrange proto less greater len broadcast multicast vlan dscp \
    ecn tos mark";

/// EtherTypes allowed after `ether proto`.
pub(crate) const ETHERTYPES: &[(&str, u32)] =
    &[("ip", 0x0800), ("arp", 0x0806), ("rarp", 0x8035), ("ip6", 0x86dd)];

/// Protocol numbers allowed after `proto` (IANA "Assigned Internet Protocol Numbers").
pub(crate) const PROTOCOL_NUMBERS: &[(&str, u32)] = table! {
    "icmp" 1, "igmp" 2, "tcp" 6, "udp" 17, "gre" 47, "esp" 50, "ah" 51, "icmp6" 58, "ospf" 89, "pim" 103,
    "vrrp" 112, "sctp" 132,
};

/// Ports (IANA "Service Name and Transport Protocol Port Number Registry").
pub(crate) const PORTS: &[(&str, u32)] = table! {
    "ftp-data" 20, "ftp" 21, "ssh" 22, "telnet" 23, "smtp" 25, "domain" 53, "bootps" 67, "bootpc" 68,
    "tftp" 69, "http" 80, "kerberos" 88, "pop3" 110, "sunrpc" 111, "ntp" 123, "imap2" 143, "snmp" 161,
    "bgp" 179, "ldap" 389, "https" 443, "syslog" 514, "submission" 587, "ldaps" 636, "imaps" 993,
    "pop3s" 995, "nfs" 2049, "mysql" 3306, "postgresql" 5432, "sip" 5060, "mdns" 5353,
};

/// Numbers in arithmetic, as pcap-filter(7) names them: offsets of fields, ICMP types (RFC 792; IANA "ICMPv6
/// Parameters"), TCP flags.
pub(crate) const CONSTANTS: &[(&str, u32)] = table! {
    "icmptype" 0, "icmpcode" 1, "icmp6type" 0, "icmp6code" 1, "tcpflags" 13, "icmp-echoreply" 0,
    "icmp-unreach" 3, "icmp-sourcequench" 4, "icmp-redirect" 5, "icmp-echo" 8, "icmp-routeradvert" 9,
    "icmp-routersolicit" 10, "icmp-timxceed" 11, "icmp-paramprob" 12, "icmp-tstamp" 13,
    "icmp-tstampreply" 14, "icmp-ireq" 15, "icmp-ireqreply" 16, "icmp-maskreq" 17, "icmp-maskreply" 18,
    "icmp6-destinationunreach" 1, "icmp6-packettoobig" 2, "icmp6-timeexceeded" 3,
    "icmp6-parameterproblem" 4, "icmp6-echo" 128, "icmp6-echoreply" 129, "icmp6-multicastlistenerquery" 130,
    "icmp6-multicastlistenerreportv1" 131, "icmp6-multicastlistenerdone" 132, "icmp6-routersolicit" 133,
    "icmp6-routeradvert" 134, "icmp6-neighborsolicit" 135, "icmp6-neighboradvert" 136, "icmp6-redirect" 137,
    "icmp6-routerrenum" 138, "icmp6-nodeinformationquery" 139, "icmp6-nodeinformationresponse" 140,
    "icmp6-ineighbordiscoverysolicit" 141, "icmp6-ineighbordiscoveryadvert" 142,
    "icmp6-multicastlistenerreportv2" 143, "icmp6-homeagentdiscoveryrequest" 144,
    "icmp6-homeagentdiscoveryreply" 145, "icmp6-mobileprefixsolicit" 146, "icmp6-mobileprefixadvert" 147,
    "icmp6-certpathsolicit" 148, "icmp6-certpathadvert" 149, "icmp6-multicastrouteradvert" 151,
    "icmp6-multicastroutersolicit" 152, "icmp6-multicastrouterterm" 153, "tcp-fin" 0x01, "tcp-syn" 0x02,
    "tcp-rst" 0x04, "tcp-push" 0x08, "tcp-ack" 0x10, "tcp-urg" 0x20, "tcp-ece" 0x40, "tcp-cwr" 0x80,
};

/// Code points of differentiated services (RFC 2474, 2597, 3246, 5865, 8622).
pub(crate) const CODE_POINTS: &[(&str, u32)] = table! {
    "default" 0, "be" 0, "le" 1, "cs0" 0, "cs1" 8, "af11" 10, "af12" 12, "af13" 14, "cs2" 16, "af21" 18,
    "af22" 20, "af23" 22, "cs3" 24, "af31" 26, "af32" 28, "af33" 30, "cs4" 32, "af41" 34, "af42" 36,
    "af43" 38, "cs5" 40, "va" 44, "ef" 46, "cs6" 48, "cs7" 56,
};

/// Congestion bits (RFC 3168, RFC 9331).
pub(crate) const CONGESTION: &[(&str, u32)] = &[("not-ect", 0), ("ect1", 1), ("ect0", 2), ("ce", 3)];

/// Words of pcap-filter that Longwire refuses, and their replacements.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    ("gateway", "names are not looked up; write ether host ADDRESS and not host ADDRESS"),
    ("inbound", "a link is simplex: its direction is known; leave it out"),
    ("outbound", "a link is simplex: its direction is known; leave it out"),
    ("ifname", "a link has no interface; leave it out"),
    ("on", "a link has no interface; leave it out"),
    ("protochain", "chains of headers are not followed; write proto NUMBER"),
    ("mpls", "write ether proto 0x8847, and compare bytes"),
    ("pppoes", "write ether proto 0x8864, and compare bytes"),
    ("pppoed", "write ether proto 0x8863"),
    ("geneve", "write udp port 6081, and compare bytes"),
    ("vxlan", "write udp port 4789, and compare bytes"),
    ("stp", "compare bytes, as ether[14:2] = 0x4242"),
    ("wlan", "frames are Ethernet frames; write ether"),
    ("fddi", "frames are Ethernet frames; write ether"),
    ("tr", "frames are Ethernet frames; write ether"),
];

/// A code point of differentiated services: 0 to 63, or its name in either case, such as `ef`, `AF11`, `cs6`.
pub fn code_point(text: &str) -> Option<u8> {
    let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let point = number.or_else(|| named(CODE_POINTS, &text.to_ascii_lowercase()))?;
    if point < 64 { u8::try_from(point).ok() } else { None }
}

/// The value of a name.
pub(crate) fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// The known word most similar to `written`, if one is similar.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_ascii_lowercase();
    let distance = |word: &&str| strsim::damerau_levenshtein(&written, word);
    let near = known.into_iter().min_by_key(distance)?;
    (distance(&near) <= near.len() / 3).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_follow_their_rule() {
        for class in 0..8 {
            assert_eq!(named(CODE_POINTS, &format!("cs{class}")), Some(class * 8));
        }
        for (class, precedence) in
            (1..=4).flat_map(|class| (1..=3).map(move |precedence| (class, precedence)))
        {
            // RFC 2597: three bits of class, two of drop precedence, a zero.
            assert_eq!(
                named(CODE_POINTS, &format!("af{class}{precedence}")),
                Some(class << 3 | precedence << 1)
            );
        }
    }

    #[test]
    fn a_code_point_is_a_number_or_a_name() {
        let table = [
            ("0", Some(0)),
            ("63", Some(63)),
            ("ef", Some(46)),
            ("EF", Some(46)),
            ("Af43", Some(38)),
            ("64", None),
            ("+1", None),
            ("", None),
            ("af44", None),
        ];
        for (text, wanted) in table {
            assert_eq!(code_point(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_near_word_is_suggested() {
        let words = || WORDS.split(' ');
        assert_eq!(nearest("hsot", words()), Some("host"));
        assert_eq!(nearest("PORT", words()), Some("port"));
        assert_eq!(nearest("elephant", words()), None);
    }
}
