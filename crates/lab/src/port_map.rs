//! Maps of ports in the kernel's packet filter (linux/netfilter/nf_tables.h): one rule with a map does what
//! many rules would, which don't fit a transaction.

use longwire_netlink::Message;

use crate::nftables::{DATA_VALUE, LIST_ELEMENT, number, request};

const NEW_SET: u16 = 9;
const NEW_ELEMENTS: u16 = 12;

const SET_TABLE: u16 = 1;
const SET_NAME: u16 = 2;
const SET_FLAGS: u16 = 3;
const SET_KEY_TYPE: u16 = 4;
const SET_KEY_LENGTH: u16 = 5;
const SET_VALUE_TYPE: u16 = 6;
const SET_VALUE_LENGTH: u16 = 7;
const SET_ID: u16 = 10;
const ELEMENTS_TABLE: u16 = 1;
const ELEMENTS_SET: u16 = 2;
const ELEMENTS_LIST: u16 = 3;
const ELEMENT_KEY: u16 = 1;
const ELEMENT_VALUE: u16 = 2;

/// `NFT_SET_MAP`.
const MAP: u32 = 8;
/// The type of ports in the `nft` program.
const PORT: u32 = 13;
const PORT_LENGTH: u32 = 2;
/// Elements of a message: their list is an attribute, of at most 64 KiB.
const TOGETHER: usize = 1024;

/// A map of a table.
#[derive(Clone, Copy, Debug)]
pub struct PortMap<'a> {
    pub family: u8,
    pub table: &'a str,
    pub name: &'a str,
    /// Its number in the transaction.
    pub id: u32,
}

impl PortMap<'_> {
    /// Creates the map with these ports, and those that they lead to.
    pub fn create(&self, ports: &[(u16, u16)]) -> Vec<Message> {
        let mut set = request(NEW_SET, self.family, libc::NLM_F_CREATE);
        set.string(SET_TABLE, self.table);
        set.string(SET_NAME, self.name);
        let words = [
            (SET_FLAGS, MAP),
            (SET_KEY_TYPE, PORT),
            (SET_KEY_LENGTH, PORT_LENGTH),
            (SET_VALUE_TYPE, PORT),
            (SET_VALUE_LENGTH, PORT_LENGTH),
            (SET_ID, self.id),
        ];
        words.iter().for_each(|(kind, value)| number(&mut set, *kind, *value));
        let elements = ports.chunks(TOGETHER).map(|chunk| self.elements(chunk));
        std::iter::once(set).chain(elements).collect()
    }

    fn elements(&self, ports: &[(u16, u16)]) -> Message {
        let mut m = request(NEW_ELEMENTS, self.family, libc::NLM_F_CREATE);
        m.string(ELEMENTS_TABLE, self.table);
        m.string(ELEMENTS_SET, self.name);
        m.nested(ELEMENTS_LIST, |m| {
            for (from, to) in ports {
                m.nested(LIST_ELEMENT, |m| {
                    let data = |m: &mut Message, port: &u16| m.attribute(DATA_VALUE, &port.to_be_bytes());
                    m.nested(ELEMENT_KEY, |m| data(m, from));
                    m.nested(ELEMENT_VALUE, |m| data(m, to));
                });
            }
        });
        m
    }
}
