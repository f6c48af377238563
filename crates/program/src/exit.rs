//! Programs named by entries of maps: they run on packets redirected by such an entry (struct bpf_devmap_val
//! and struct bpf_cpumap_val of linux/bpf.h).
//!
//! A value of 8 bytes has the port, or a queue size that is ignored here, in its first four, and the program
//! in its last four: in the kernel a file descriptor, here the index of the program, from 1, among those
//! listed at installation.

use crate::MapKind;

/// Where such a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitKind {
    /// At a port's exit: `SEC("xdp/devmap")`. It passes (XDP_PASS) or drops the packet.
    Port,
    /// On the processor to which a packet was redirected: `SEC("xdp/cpumap")`. It may redirect the packet
    /// once more.
    Processor,
}

impl ExitKind {
    /// The kind of a section's programs; none for ordinary ones.
    pub fn of_section(section: &str) -> Option<Self> {
        let rest = section.strip_prefix("xdp")?;
        let rest = rest.strip_prefix(".frags").unwrap_or(rest).strip_prefix(['/', '_'])?;
        match rest.split('/').next()? {
            "devmap" => Some(Self::Port),
            "cpumap" => Some(Self::Processor),
            _ => None,
        }
    }

    /// The kind of programs that entries of this map may name; none if they can't.
    pub const fn of_map(kind: MapKind) -> Option<Self> {
        match kind {
            MapKind::DevMap | MapKind::DevMapHash => Some(Self::Port),
            MapKind::CpuMap => Some(Self::Processor),
            _ => None,
        }
    }

    /// Its place, for messages.
    pub const fn place(self) -> &'static str {
        match self {
            Self::Port => "where a packet leaves that was redirected through a devmap",
            Self::Processor => "on the processor that a cpumap has led a packet to",
        }
    }

    /// The maps whose entries name it, for messages.
    pub const fn map(self) -> &'static str {
        match self {
            Self::Port => "devmap",
            Self::Processor => "cpumap",
        }
    }
}

/// Most programs that entries may name.
pub const MAX_EXITS: usize = 64;
