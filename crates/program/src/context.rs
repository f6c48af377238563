//! The context that programs get in `r1`: `struct xdp_md` of linux/bpf.h.

/// A field of the context. Each is 32 bits wide; a load of one of the first three gives a whole address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextField {
    /// The address of the packet's first byte.
    Data,
    /// The address just beyond its last byte.
    DataEnd,
    /// The address of metadata in front of the packet: there is none, so it equals `data`.
    DataMeta,
    /// The number of the port that it came in by.
    Ingress,
    /// The receive queue there.
    Queue,
    /// The port that it goes out by, for a program at a port's exit; 0 for others, which run before that is
    /// known.
    Egress,
}

impl ContextField {
    /// Bytes of the context.
    pub const TOTAL: usize = 24;
    /// Every field, in order of its place.
    pub const ALL: &'static [Self] =
        &[Self::Data, Self::DataEnd, Self::DataMeta, Self::Ingress, Self::Queue, Self::Egress];

    /// The field that a load of 4 bytes at this place reads.
    pub const fn at(offset: i64) -> Option<Self> {
        match offset {
            0 => Some(Self::Data),
            4 => Some(Self::DataEnd),
            8 => Some(Self::DataMeta),
            12 => Some(Self::Ingress),
            16 => Some(Self::Queue),
            20 => Some(Self::Egress),
            _ => None,
        }
    }

    /// Its name in C.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::DataEnd => "data_end",
            Self::DataMeta => "data_meta",
            Self::Ingress => "ingress_ifindex",
            Self::Queue => "rx_queue_index",
            Self::Egress => "egress_ifindex",
        }
    }
}

/// What a program is told about a packet besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// The number of the port that it came in by.
    pub ingress: u32,
    /// The receive queue there.
    pub queue: u32,
    /// The number of the port that it goes out by, as far as that is known.
    pub egress: u32,
    /// Its time, in nanoseconds: what `ktime_get_ns` gives.
    pub now: u64,
    /// The number of the worker that runs the program, from 0: what `get_smp_processor_id` gives, and which
    /// copy of a per-CPU map's values is meant.
    pub worker: u32,
    /// Its mark, as programs before have set it: what `lw_read_mark` gives.
    pub mark: u32,
}
