//! Programs that entries of maps name: they run on packets that are redirected by such an entry (struct
//! bpf_devmap_val and struct bpf_cpumap_val of linux/bpf.h).
//!
//! A value of 8 bytes has the port, or a size of no meaning here, in its first four, and the program in its
//! last four: in the kernel a file descriptor, here the program's place, from 1, among those that the program
//! was put together with.

use crate::MapKind;

/// Where such a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitKind {
    /// Where a packet leaves by a port: `SEC("xdp/devmap")`. It lets the packet go (XDP_PASS) or drops it.
    Port,
    /// On the processor that a packet was led to: `SEC("xdp/cpumap")`. It may redirect the packet once more.
    Processor,
}

impl ExitKind {
    /// That of the programs of a section; none if they see packets where these come in.
    pub fn of_section(section: &str) -> Option<Self> {
        let rest = section.strip_prefix("xdp")?;
        let rest = rest.strip_prefix(".frags").unwrap_or(rest).strip_prefix(['/', '_'])?;
        match rest.split('/').next()? {
            "devmap" => Some(Self::Port),
            "cpumap" => Some(Self::Processor),
            _ => None,
        }
    }

    /// That of the programs that entries of a map of this kind may name; none if they name none.
    pub const fn of_map(kind: MapKind) -> Option<Self> {
        match kind {
            MapKind::DevMap | MapKind::DevMapHash => Some(Self::Port),
            MapKind::CpuMap => Some(Self::Processor),
            _ => None,
        }
    }

    /// Where that is, for messages.
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

/// The most programs that entries may name.
pub const MAX_EXITS: usize = 64;
