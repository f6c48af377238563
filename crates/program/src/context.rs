//! The context that programs receive in `r1`: `struct xdp_md` of linux/bpf.h.

/// A field of the context. Each is 32 bits wide; a load of one of the first three gives a whole address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextField {
    /// The address of the packet's first byte.
    Data,
    /// The address after its last byte.
    DataEnd,
    /// The address of metadata before the packet: there is none, so it equals `data`.
    DataMeta,
    /// The ingress port's number.
    Ingress,
    /// The receive queue there.
    Queue,
    /// The egress port, for a program at a port's exit; 0 for others, which run before it is known.
    Egress,
}

impl ContextField {
    /// Bytes of the context.
    pub const TOTAL: usize = 24;

    /// The field at this offset, for a 4-byte load.
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
}

/// Metadata of a packet for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// The ingress port's number.
    pub ingress: u32,
    /// The receive queue there.
    pub queue: u32,
    /// The egress port's number, if known.
    pub egress: u32,
    /// Arrival time in nanoseconds: `ktime_get_ns`.
    pub now: u64,
    /// Number of the worker that runs the program, from 0: `get_smp_processor_id`, and index of the values in
    /// per-CPU maps.
    pub worker: u32,
    /// Mark set by previous programs: `lw_read_mark`.
    pub mark: u32,
}
