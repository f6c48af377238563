//! Flows as scheduler keys, and their names.

use super::{FlowFields, NamedFlow};
use crate::forwarder::{FlowKey, Key, Space, Words, hash, words_key};

/// Bit set in the keys of unnamed flows.
const HASHED: u32 = 1 << 31;
/// Bit position of the port's number in a flow's words, above its ports and protocol.
const PORT_AT: u32 = 52;

/// Identification of flows. A flow consists of the packets to one port that match a key, or that have the
/// same values in the chosen fields.
#[derive(Debug)]
pub(super) struct Identity {
    space: Space,
    names: Box<[Box<str>]>,
    mask: Words,
    seed: u64,
    ports: u32,
    /// By the flow's index in the scheduler: its key, and its words if it has no name.
    seen: Vec<(u32, Words)>,
}

/// A packet's flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flow {
    pub key: u32,
    /// Index of its name, if any.
    pub named: Option<usize>,
}

impl Identity {
    pub fn new(named: &[NamedFlow], fields: FlowFields, ports: usize, flows: u32, seed: u64) -> Self {
        let keys: Vec<FlowKey> = named.iter().map(|flow| flow.key).collect();
        Self {
            space: Space::new(&keys, seed),
            names: named.iter().map(|flow| flow.name.clone()).collect(),
            mask: fields.mask(),
            seed,
            ports: ports as u32,
            seen: vec![(0, [0; 5]); flows as usize],
        }
    }

    /// The flow of these words to the port with this number. Two unnamed flows may collide, once in 2³¹
    /// pairs.
    #[inline]
    pub fn of(&self, words: &Words, port: u16) -> Flow {
        if let Some(named) = self.space.find(words) {
            return Flow { key: self.key_of(named, port), named: Some(named) };
        }
        let mut own = self.masked(words);
        own[0] ^= self.seed;
        own[4] |= u64::from(port) << PORT_AT;
        Flow { key: HASHED | (hash(&own) >> 33) as u32, named: None }
    }

    /// The key of a named flow to a port.
    pub fn key_of(&self, named: usize, port: u16) -> u32 {
        named as u32 * self.ports + u32::from(port)
    }

    /// Stores the fields of the flow at an index.
    #[inline]
    pub fn note(&mut self, place: usize, flow: Flow, words: &Words) {
        if self.seen[place].0 != flow.key {
            self.seen[place] = (flow.key, self.masked(words));
        }
    }

    /// The name of the flow with this key and index. The fields of a flow that lost its index while its
    /// packet was in the input ring, and got another one, are unknown until its next packet.
    pub fn name(&self, place: usize, key: u32) -> String {
        if key & HASHED == 0 {
            let named = (key / self.ports) as usize;
            return self.names.get(named).map_or_else(String::new, |name| name.to_string());
        }
        match &self.seen[place] {
            (seen, words) if *seen == key => Key::Flow(words_key(words, &self.mask)).to_string(),
            _ => "unknown".into(),
        }
    }

    #[inline]
    fn masked(&self, words: &Words) -> Words {
        std::array::from_fn(|at| words[at] & self.mask[at])
    }
}

impl FlowFields {
    /// All ones in the words of the distinguishing fields.
    fn mask(self) -> Words {
        let address = |is_told: bool| is_told.then_some([0, 0, 0, 0].into());
        FlowKey {
            source: address(self.source),
            source_port: self.source_port.then_some(0),
            destination: address(self.destination),
            destination_port: self.destination_port.then_some(0),
            protocol: self.protocol.then_some(0),
        }
        .mask()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarder::flow;
    use crate::support::frame_v4;
    use longwire_sched::Weight;

    /// UDP from port 1000 of host `host` to port 53.
    fn words(host: u8, destination_port: u8) -> Words {
        flow(&frame_v4([10, 0, 0, host], [10, 0, 1, 9], 64, &[3, 232, 0, destination_port, 0, 8, 0, 0]))
            .unwrap()
    }

    #[test]
    fn flows_are_told_apart_by_names_fields_and_ports() {
        let key = FlowKey { destination_port: Some(53), ..FlowKey::default() };
        let dns = NamedFlow { name: "dns".into(), key, weight: Weight::ONE, cycles: None };
        let only_source = FlowFields {
            source: true,
            source_port: false,
            destination: false,
            destination_port: false,
            protocol: false,
        };
        let mut identity = Identity::new(&[dns], only_source, 2, 8, 7);
        assert_eq!(identity.of(&words(1, 53), 1), Flow { key: 1, named: Some(0) });
        assert_eq!(identity.of(&words(2, 53), 0), Flow { key: 0, named: Some(0) });
        let flows = [(1, 80, 0), (1, 81, 0), (2, 80, 0), (1, 80, 1)];
        let [one, same, other, elsewhere] = flows.map(|(host, to, port)| identity.of(&words(host, to), port));
        assert!(one == same && one != other && one != elsewhere && one.named.is_none());
        identity.note(3, one, &words(1, 80));
        assert_eq!(identity.name(3, one.key), "10.0.0.1 > *");
        assert_eq!(identity.name(3, other.key), "unknown", "not the name of another");
        assert_eq!(identity.name(0, 1), "dns");
    }
}
