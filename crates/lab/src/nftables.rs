//! The kernel's packet filter, nf_tables, over netlink: tables, chains and the few kinds of rules a lab needs
//! (linux/netfilter/nf_tables.h). Numbers in its messages are big-endian.

use std::io;
use std::net::IpAddr;

use longwire_netlink::{Message, Socket, attribute, attribute_text};

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;

const NEW_TABLE: u16 = 0;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const GET_CHAIN: u16 = 4;
const NEW_RULE: u16 = 6;
const GET_RULE: u16 = 7;
const DELETE_RULE: u16 = 8;

const TABLE_NAME: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_HANDLE: u16 = 3;
const RULE_EXPRESSIONS: u16 = 4;
const RULE_USER_DATA: u16 = 7;
pub(crate) const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
pub(crate) const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;

const LOOKUP_SET: u16 = 1;
const LOOKUP_KEY: u16 = 2;
const LOOKUP_VALUE: u16 = 3;

const REGISTER: u32 = 1;
/// The register of a packet's new port.
const PORT_REGISTER: u32 = 2;
const VERDICT_REGISTER: u32 = 0;
/// The interfaces by which a packet came and goes.
const META_IIFNAME: u32 = 6;
const META_OIFNAME: u32 = 7;
/// Verdicts.
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const NETWORK_HEADER: u32 = 1;

/// `NFPROTO_IPV4`.
pub const IPV4: u8 = 2;
/// `NFPROTO_IPV6`.
pub const IPV6: u8 = 10;
/// `NFPROTO_INET`: both families.
pub const INET: u8 = 1;

/// Hooks of chains, with the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    Input = 1,
    Forward = 2,
    Output = 3,
    PostRouting = 4,
}

/// A chain of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub family: u8,
    pub table: String,
    pub name: String,
    /// `filter`, `nat` or `route`.
    pub kind: String,
    /// The kernel's number of its hook; `None` if only other chains call it.
    pub hook: Option<u32>,
}

impl Chain {
    /// A chain at a hook.
    pub fn new(family: u8, table: &str, name: &str, kind: &str, hook: Hook) -> Self {
        let [table, name, kind] = [table, name, kind].map(str::to_owned);
        Self { family, table, name, kind, hook: Some(hook as u32) }
    }
}

/// Runs requests as a transaction: all take effect or none.
pub fn apply(requests: Vec<Message>) -> io::Result<()> {
    let mark = |kind| {
        let mut m = Message::new(kind, 0);
        m.bytes(&[0, 0]);
        m.bytes(&SUBSYSTEM.to_be_bytes());
        m
    };
    Socket::netfilter()?.batch(mark(BATCH_BEGIN), requests, mark(BATCH_END))
}

/// Creates a table of a family, or keeps the one of this name.
pub fn new_table(family: u8, name: &str) -> Message {
    let mut m = request(NEW_TABLE, family, libc::NLM_F_CREATE);
    m.string(TABLE_NAME, name);
    m
}

/// Removes a table with its contents.
pub fn delete_table(family: u8, name: &str) -> Message {
    let mut m = request(DELETE_TABLE, family, 0);
    m.string(TABLE_NAME, name);
    m
}

/// Creates a chain that translates addresses: of sources after routing, of destinations before.
pub fn new_nat_chain(chain: &Chain, hook: Hook) -> Message {
    // `NF_IP_PRI_NAT_SRC` or `NF_IP_PRI_NAT_DST`.
    new_chain(chain, hook, if matches!(hook, Hook::PostRouting | Hook::Input) { 100 } else { -100 })
}

/// Creates a chain for packets to this namespace itself.
pub fn new_input_chain(chain: &Chain) -> Message {
    new_chain(chain, Hook::Input, 0)
}

/// Creates a chain that drops forwarded packets unless a rule accepts them.
pub fn new_forward_chain(chain: &Chain) -> Message {
    // Before other chains, which may accept what this one drops.
    const PRIORITY: i32 = -10;
    let mut m = new_chain(chain, Hook::Forward, PRIORITY);
    number(&mut m, CHAIN_POLICY, NF_DROP);
    m
}

fn new_chain(chain: &Chain, hook: Hook, priority: i32) -> Message {
    let mut m = request(NEW_CHAIN, chain.family, libc::NLM_F_CREATE);
    m.string(CHAIN_TABLE, &chain.table);
    m.string(CHAIN_NAME, &chain.name);
    m.nested(CHAIN_HOOK, |m| {
        number(m, HOOK_NUMBER, hook as u32);
        number(m, HOOK_PRIORITY, priority.cast_unsigned());
    });
    m.string(CHAIN_TYPE, &chain.kind);
    m
}

/// Inserts a rule at the head of a chain; `nft list ruleset` shows its comment.
pub fn insert_rule(chain: &Chain, rule: &Rule, comment: &str) -> Message {
    let mut m = request(NEW_RULE, chain.family, libc::NLM_F_CREATE);
    m.string(RULE_TABLE, &chain.table);
    m.string(RULE_CHAIN, &chain.name);
    m.attribute(RULE_USER_DATA, &user_data(comment));
    m.nested(RULE_EXPRESSIONS, |m| m.bytes(&rule.expressions));
    m
}

/// Removes a rule.
pub fn delete_rule(chain: &Chain, handle: u64) -> Message {
    let mut m = request(DELETE_RULE, chain.family, 0);
    m.string(RULE_TABLE, &chain.table);
    m.string(RULE_CHAIN, &chain.name);
    m.attribute(RULE_HANDLE, &handle.to_be_bytes());
    m
}

/// Every chain of every table.
pub fn chains() -> io::Result<Vec<Chain>> {
    let socket = Socket::netfilter()?;
    whole_list(|found| {
        let listing = request(GET_CHAIN, libc::AF_UNSPEC as u8, 0);
        socket.dump(listing, |_, body| found.extend(read_chain(body)))
    })
}

/// A list that `dump` reads, which returns whether it is consistent. Where others change the packet filter
/// meanwhile, entries may be missing, so that it is read again.
fn whole_list<T>(mut dump: impl FnMut(&mut Vec<T>) -> io::Result<bool>) -> io::Result<Vec<T>> {
    const TIMES: usize = 20;
    for _ in 0..TIMES {
        let mut found = Vec::new();
        if dump(&mut found)? {
            return Ok(found);
        }
    }
    Err(io::Error::other("other programs change the packet filter all the time"))
}

/// The handles of a chain's rules that have this comment.
pub fn rules_with_comment(chain: &Chain, comment: &str) -> io::Result<Vec<u64>> {
    let (socket, wanted) = (Socket::netfilter()?, user_data(comment));
    let handle_of = |body: &[u8]| {
        let body = body.get(4..)?;
        // Older kernels don't filter by chain.
        let here = attribute_text(body, RULE_CHAIN) == Some(&chain.name)
            && attribute_text(body, RULE_TABLE) == Some(&chain.table);
        let handle = u64::from_be_bytes(attribute(body, RULE_HANDLE)?.try_into().ok()?);
        (here && attribute(body, RULE_USER_DATA) == Some(&wanted[..])).then_some(handle)
    };
    whole_list(|found| {
        let mut listing = request(GET_RULE, chain.family, 0);
        listing.string(RULE_TABLE, &chain.table);
        listing.string(RULE_CHAIN, &chain.name);
        socket.dump(listing, |_, body| found.extend(handle_of(body)))
    })
}

/// A rule: a list of the kernel's expressions.
#[derive(Default)]
pub struct Rule {
    expressions: Vec<u8>,
}

impl Rule {
    /// Matches packets that arrived by an interface.
    pub fn came_by(self, interface: &str) -> Self {
        self.meta(META_IIFNAME).compare(EQUAL, &padded(interface))
    }

    /// Matches packets that leave by an interface.
    pub fn goes_by(self, interface: &str) -> Self {
        self.meta(META_OIFNAME).compare(EQUAL, &padded(interface))
    }

    /// Matches packets that leave by any other interface.
    pub fn goes_not_by(self, interface: &str) -> Self {
        self.meta(META_OIFNAME).compare(NOT_EQUAL, &padded(interface))
    }

    /// Matches packets of a family, [`IPV4`] or [`IPV6`].
    pub fn of_family(self, family: u8) -> Self {
        const META_NFPROTO: u32 = 15;
        self.meta(META_NFPROTO).compare(EQUAL, &[family])
    }

    /// Matches packets from a network.
    pub fn sent_from(self, network: IpAddr, prefix: u8) -> Self {
        let address = octets(network);
        let length = address.len();
        let loaded = self.network_field(network, [12, 8]);
        let mask: Vec<u8> = (0..length).map(|byte| leading_ones(prefix, byte)).collect();
        let masked: Vec<u8> = address.iter().zip(&mask).map(|(byte, mask)| byte & mask).collect();
        loaded.mask(&mask).compare(EQUAL, &masked)
    }

    /// Matches packets to an address.
    pub fn sent_to(self, address: IpAddr) -> Self {
        self.network_field(address, [16, 24]).compare(EQUAL, &octets(address))
    }

    /// Loads an address of packets of this address's family, by its offsets in headers of IPv4 and IPv6.
    fn network_field(self, address: IpAddr, [v4, v6]: [u32; 2]) -> Self {
        let offset = if address.is_ipv4() { v4 } else { v6 };
        let length = octets(address).len() as u32;
        self.of_family(family_of(address)).payload(NETWORK_HEADER, offset, length)
    }

    /// Matches packets of a transport protocol to the ports of a map, see [`port_map`](crate::port_map).
    pub fn at_ports(self, protocol: u8, map: &str) -> Self {
        const META_L4PROTO: u32 = 16;
        const TRANSPORT_HEADER: u32 = 2;
        const DESTINATION_OFFSET: u32 = 2;
        self.meta(META_L4PROTO)
            .compare(EQUAL, &[protocol])
            .payload(TRANSPORT_HEADER, DESTINATION_OFFSET, 2)
            .expression("lookup", |m| {
                m.string(LOOKUP_SET, map);
                number(m, LOOKUP_KEY, REGISTER);
                number(m, LOOKUP_VALUE, PORT_REGISTER);
            })
    }

    /// Changes the destination of the packet and all further ones of its connection: to an address, and the
    /// port that the map has.
    pub fn redirect_to(self, address: IpAddr) -> Self {
        const DESTINATION: u32 = 1;
        self.load(REGISTER, &octets(address)).expression("nat", |m| {
            number(m, 1, DESTINATION);
            number(m, 2, u32::from(family_of(address)));
            number(m, 3, REGISTER);
            number(m, 5, PORT_REGISTER);
        })
    }

    /// Matches packets of established connections and related ones.
    pub fn answers(self) -> Self {
        // NF_CT_STATE_BIT of IP_CT_ESTABLISHED and IP_CT_RELATED.
        self.in_state(1 << 1 | 1 << 2)
    }

    /// Matches packets that belong to no valid connection.
    pub fn stray(self) -> Self {
        // NF_CT_STATE_INVALID_BIT.
        self.in_state(1)
    }

    /// Matches packets whose connection is in a state of the mask.
    fn in_state(self, states: u32) -> Self {
        const CT_STATE: u32 = 0;
        let loaded = self.expression("ct", |m| {
            number(m, 1, REGISTER);
            number(m, 2, CT_STATE);
        });
        // In the machine's own byte order.
        loaded.mask(&states.to_ne_bytes()).compare(NOT_EQUAL, &[0; 4])
    }

    /// Drops the packet.
    pub fn discard(self) -> Self {
        self.verdict(NF_DROP)
    }

    /// Accepts the packet.
    pub fn accept(self) -> Self {
        self.verdict(NF_ACCEPT)
    }

    fn verdict(self, code: u32) -> Self {
        self.expression("immediate", |m| {
            number(m, 1, VERDICT_REGISTER);
            m.nested(2, |m| m.nested(DATA_VERDICT, |m| number(m, VERDICT_CODE, code)));
        })
    }

    /// Changes the packet's source address to that of its output interface.
    pub fn masquerade(self) -> Self {
        self.expression("masq", |_| {})
    }

    fn load(self, register: u32, value: &[u8]) -> Self {
        self.expression("immediate", |m| {
            number(m, 1, register);
            m.nested(2, |m| m.attribute(DATA_VALUE, value));
        })
    }

    fn meta(self, key: u32) -> Self {
        self.expression("meta", |m| {
            number(m, 1, REGISTER);
            number(m, 2, key);
        })
    }

    fn payload(self, header: u32, offset: u32, length: u32) -> Self {
        self.expression("payload", |m| {
            number(m, 1, REGISTER);
            number(m, 2, header);
            number(m, 3, offset);
            number(m, 4, length);
        })
    }

    fn mask(self, mask: &[u8]) -> Self {
        self.expression("bitwise", |m| {
            number(m, 1, REGISTER);
            number(m, 2, REGISTER);
            number(m, 3, mask.len() as u32);
            m.nested(4, |m| m.attribute(DATA_VALUE, mask));
            m.nested(5, |m| m.attribute(DATA_VALUE, &[0; 16][..mask.len()]));
        })
    }

    fn compare(self, operator: u32, value: &[u8]) -> Self {
        self.expression("cmp", |m| {
            number(m, 1, REGISTER);
            number(m, 2, operator);
            m.nested(3, |m| m.attribute(DATA_VALUE, value));
        })
    }

    fn expression(mut self, name: &str, data: impl FnOnce(&mut Message)) -> Self {
        let mut m = Message::part();
        m.nested(LIST_ELEMENT, |m| {
            m.string(EXPRESSION_NAME, name);
            m.nested(EXPRESSION_DATA, data);
        });
        self.expressions.extend(m.into_bytes());
        self
    }
}

pub(crate) fn request(kind: u16, family: u8, flags: libc::c_int) -> Message {
    let mut m = Message::new(SUBSYSTEM << 8 | kind, flags);
    // `struct nfgenmsg`
    m.bytes(&[family, 0, 0, 0]);
    m
}

fn family_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { IPV4 } else { IPV6 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A byte of a network's mask.
fn leading_ones(prefix: u8, byte: usize) -> u8 {
    let bits = usize::from(prefix).saturating_sub(8 * byte).min(8);
    !(0xff_u8.checked_shr(bits as u32).unwrap_or(0))
}

pub(crate) fn number(m: &mut Message, kind: u16, value: u32) {
    m.attribute(kind, &value.to_be_bytes());
}

/// A padded name: all of IFNAMSIZ is compared, so that no longer name matches.
fn padded(interface: &str) -> [u8; libc::IFNAMSIZ] {
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(interface.bytes()) {
        *to = from;
    }
    name
}

/// A comment in the format of the `nft` program: type 0, length, zero-terminated text. Comments have at most
/// 127 bytes.
fn user_data(comment: &str) -> Vec<u8> {
    let mut data = vec![0, comment.len() as u8 + 1];
    data.extend_from_slice(comment.as_bytes());
    data.push(0);
    data
}

fn read_chain(body: &[u8]) -> Option<Chain> {
    let family = *body.first()?;
    let body = body.get(4..)?;
    let text = |kind| attribute_text(body, kind).map(str::to_owned);
    let hook = attribute(body, CHAIN_HOOK).and_then(|hook| attribute(hook, HOOK_NUMBER));
    Some(Chain {
        family,
        table: text(CHAIN_TABLE)?,
        name: text(CHAIN_NAME)?,
        kind: text(CHAIN_TYPE).unwrap_or_default(),
        hook: hook.and_then(|number| Some(u32::from_be_bytes(number.try_into().ok()?))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_read_whole_or_not_at_all() {
        let mut m = Message::part();
        m.bytes(&[IPV4, 0, 0, 0]);
        m.string(CHAIN_TABLE, "filter");
        m.string(CHAIN_NAME, "FORWARD");
        m.nested(CHAIN_HOOK, |m| number(m, HOOK_NUMBER, 2));
        m.string(CHAIN_TYPE, "filter");
        let bytes = m.into_bytes();
        let chain = read_chain(&bytes).unwrap();
        assert_eq!((chain.family, chain.table.as_str(), chain.name.as_str()), (IPV4, "filter", "FORWARD"));
        assert_eq!((chain.kind.as_str(), chain.hook), ("filter", Some(Hook::Forward as u32)));
        for length in 0..bytes.len() {
            if let Some(cut) = read_chain(&bytes[..length]) {
                assert_eq!(cut.name, "FORWARD");
            }
        }
    }

    #[test]
    fn a_list_during_which_something_changed_is_read_again() {
        let mut lists = [(vec![1], false), (vec![1, 2], true)].into_iter();
        let whole = whole_list(|found| {
            let (entries, is_whole) = lists.next().unwrap();
            found.extend(entries);
            Ok(is_whole)
        });
        assert_eq!(whole.unwrap(), [1, 2]);
        assert!(whole_list(|_: &mut Vec<u8>| Ok(false)).is_err(), "it never ends");
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        if !crate::abilities().nft.available {
            println!("skipped what_is_refused_changes_nothing: {}", crate::abilities().nft.reason);
            return;
        }
        let (error, after_error, after) = crate::abilities::in_a_new_namespace(|| {
            let chain = |name: &str| Chain::new(INET, "t", name, "nat", Hook::PostRouting);
            let rule = || Rule::default().goes_by("a").answers().accept();
            let new = || vec![new_table(INET, "t"), new_nat_chain(&chain("c"), Hook::PostRouting)];
            let mut requests = new();
            requests.push(insert_rule(&chain("other"), &rule(), "mark"));
            let error = apply(requests).unwrap_err().raw_os_error();
            let after_error = chains()?;
            let mut requests = new();
            requests.push(insert_rule(&chain("c"), &rule(), "mark"));
            apply(requests)?;
            assert_eq!(chains()?, [chain("c")]);
            assert!(rules_with_comment(&chain("c"), "mar")?.is_empty());
            let handles = rules_with_comment(&chain("c"), "mark")?;
            apply(handles.iter().map(|h| delete_rule(&chain("c"), *h)).collect())?;
            Ok((error, after_error, (handles.len(), rules_with_comment(&chain("c"), "mark")?.len())))
        })
        .unwrap();
        assert_eq!(error, Some(libc::ENOENT));
        assert_eq!(after_error, []);
        assert_eq!(after, (1, 0));
    }

    #[test]
    fn masks_have_the_prefix_s_bits() {
        let mask = |prefix| [0, 1, 2, 3].map(|byte| leading_ones(prefix, byte));
        assert_eq!(mask(0), [0; 4]);
        assert_eq!(mask(10), [255, 192, 0, 0]);
        assert_eq!(mask(30), [255, 255, 255, 252]);
        assert_eq!(mask(32), [255; 4]);
    }

    #[test]
    fn comments_and_names_have_the_kernels_form() {
        assert_eq!(user_data("ab"), [0, 3, b'a', b'b', 0]);
        assert_eq!(&padded("lw0")[..4], b"lw0\0");
    }
}
