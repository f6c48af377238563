//! Installed forwarders: objects of `forwarders/objects` with state and maps, for passing packets.

use crate::harness::{Bench, ROOM, Ran};
use longwire_program::{Maps, Object, Program, ProgramState};

macro_rules! objects {
    ($($name:literal)+) => {
        /// All forwarders, by their names in order, and their objects.
        pub const OBJECTS: &[(&str, &[u8])] = &[
            $(($name, include_bytes!(concat!("../../../../forwarders/objects/", $name, ".o")))),+
        ];
    };
}

objects! {
    "ack_monitor" "balancer" "detector" "dscp_marker" "heavy_hitters" "minimal_ip" "nat44" "performance_monit\
     or" "policer" "port_filter" "rebind"
    "syn_filter" "syn_monitor" "syn_targets" "tcp_splicer" "tcp_splicer6" "tcp_splicer_scaled" "wavelet"
}

/// The program of this name, which is also its function's.
pub fn program(name: &str) -> Program {
    let (_, object) = OBJECTS.iter().find(|(known, _)| *known == name).unwrap();
    Object::parse(object).unwrap().program(name).unwrap()
}

/// A forwarder with its state and maps.
pub struct InstalledForwarder {
    pub program: Program,
    pub bench: Bench,
}

impl InstalledForwarder {
    /// With a zeroed state of this many bytes, and empty maps.
    pub fn new(name: &str, state: u32) -> Self {
        let program = program(name);
        let mut bench = Bench::new(&[], Maps::new(&program.maps, 2, 1).unwrap());
        bench.state = ProgramState::new(state);
        Self { program, bench }
    }

    /// With this state.
    pub fn with(name: &str, state: &[u8]) -> Self {
        let new = Self::new(name, state.len() as u32);
        new.set(state);
        new
    }

    /// The result of a packet.
    pub fn send(&mut self, packet: &[u8]) -> Ran {
        self.bench.buffer = [&[0xee; ROOM], packet, &[0xee; ROOM]].concat();
        let ran = self.bench.run(&self.program.code);
        ran.unwrap_or_else(|stopped| panic!("{}, {stopped}, with {packet:02x?}", self.program.name))
    }

    /// Writes the state, as the control half does.
    pub fn set(&self, state: &[u8]) {
        assert!(self.bench.state.set(state));
    }

    /// Four bytes of the state as a number.
    pub fn word(&self, place: usize) -> u32 {
        u32::from_le_bytes(self.bench.state.get()[place..place + 4].try_into().unwrap())
    }

    /// Eight bytes of the state as a number.
    pub fn double(&self, place: usize) -> u64 {
        u64::from_le_bytes(self.bench.state.get()[place..place + 8].try_into().unwrap())
    }

    /// Writes a map's entry, as the control half does.
    pub fn put(&self, map: &str, key: &[u8], value: &[u8]) {
        self.bench.maps.named(map).unwrap().set(key, 0, value, 0).unwrap();
    }

    /// The 8-byte numbers of a map's entry, as seen by worker 1, which runs the programs; none if the key
    /// does not exist.
    pub fn entry(&self, map: &str, key: &[u8]) -> Vec<u64> {
        let value = self.bench.maps.named(map).unwrap().get(key, 1).unwrap_or_default();
        value.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect()
    }
}
