//! Helpers that programs may call: the kernel's, with the kernel's numbers, and Longwire's own.
//!
//! The table is the only definition of a helper's arguments and result. The verifier checks calls against it,
//! prices follow from [`Item`], and [`Machine::call`](crate::Machine::call) implements it. To add a helper: a
//! row here, its arm in `perform.rs`, and its line in `include/longwire.h` if it is Longwire's own.

mod kernel;

pub use kernel::{instead, kernel_name};

use crate::Item;

/// First number of Longwire's own helpers; the kernel's are below 212, and no more will be added.
pub const OWN_BASE: u32 = 0x1_0000;

/// Type of a helper's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Argument {
    /// Any number. Not a pointer.
    Number,
    /// A number known at verification, at least 1 and at most the size of the flow's state in bytes.
    StateSize,
    /// The context, as passed to the program in `r1`.
    Context,
    /// A map, from a map load.
    Map,
    /// A function of the program, from a load of its address. The engine knows all of them.
    Function,
    /// An address in the stack, or 0; it is only passed on to a function.
    StackOrNull,
    /// The address of the lock in a map's value.
    Lock,
    /// The address of readable bytes, as many as the keys of the map argument have.
    Key,
    /// The address of readable bytes, as many as the values of the map argument have.
    Value,
    /// The address of readable bytes; their number is the next argument.
    Readable,
    /// As `Readable`, or 0 if the next argument can only be 0.
    ReadableOrNull,
    /// The address of writable bytes; their number is the next argument. They may be uninitialized.
    Writable,
    /// The address of bytes that are read and written; their number is the next argument.
    Changed,
    /// Number of bytes of the previous argument: 1 to [`MAX_SIZE`].
    Size,
    /// Number of bytes of the previous argument: 0 to [`MAX_SIZE`].
    SizeOrZero,
    /// The address of readable bytes that are copied into a ring; their number is the next argument.
    Payload,
    /// Number of bytes of the previous argument: 0 to 66,544, the maximum of a record.
    PayloadSize,
    /// Size of a record: 0 to 66,544, known at verification.
    RecordSize,
    /// The address of the first byte of a record that the program has reserved, and releases by this.
    Record,
}

/// Most bytes of a helper's argument: the size of a stack frame.
pub const MAX_SIZE: u32 = 512;

/// Return value of a helper, in `r0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Returns {
    /// A number.
    Number,
    /// The address of a value of the map in the first argument, or 0; for a map of maps, the map itself.
    MapValueOrNull,
    /// The address of the flow's state, with as many bytes as the first argument. Never 0.
    State,
    /// The address of a record, with as many bytes as the second argument, or 0. It must be released exactly
    /// once.
    RecordOrNull,
    /// Undefined.
    Nothing,
}

/// Arguments, result and cost of a helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Arguments in `r1`, `r2`, …
    pub arguments: &'static [Argument],
    /// Result in `r0`.
    pub returns: Returns,
    /// The operation that a call is counted as, besides its bytes: in maps without hashes that of arrays,
    /// and twice for a route lookup. Programs and functions that it runs are added.
    pub cost: Item,
    /// Whether it invalidates previous addresses in the packet.
    pub moves_packet: bool,
}

macro_rules! helpers {
    ($($variant:ident $number:literal $name:literal ($($argument:ident),*) -> $returns:ident, $cost:ident,
        $help:literal;)+) => {
        /// A function that programs may call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum Helper { $(#[doc = $help] $variant = $number),+ }

        impl Helper {
            /// Every helper, in order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The helper with this number.
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Its name in C, without `bpf_`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Description in one sentence.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help),+ }
            }

            /// Arguments, result and cost.
            pub const fn signature(self) -> Signature {
                match self {
                    $(Self::$variant => Signature {
                        arguments: &[$(Argument::$argument),*],
                        returns: Returns::$returns,
                        cost: Item::$cost,
                        moves_packet: matches!(self, Self::AdjustHead | Self::AdjustTail),
                    }),+
                }
            }
        }
    };
}

// Numbers below OWN_BASE: enum bpf_func_id of linux/bpf.h. What each means to the kernel: its text there.
helpers! {
    MapLookup 1 "map_lookup_elem" (Map, Key) -> MapValueOrNull, HashLookup,
        "The address of the value of this key, or 0.";
    MapUpdate 2 "map_update_elem" (Map, Key, Value, Number) -> Number, HashUpdate,
        "Writes a value; flags 0, BPF_NOEXIST (1) or BPF_EXIST (2). 0, or a negative error number.";
    MapDelete 3 "map_delete_elem" (Map, Key) -> Number, HashUpdate,
        "Removes a key from a hash map. 0, or a negative error number.";
    Now 5 "ktime_get_ns" () -> Number, Call,
        "The time of the packet in nanoseconds: monotonic, or of the simulation.";
    Trace 6 "trace_printk" (Readable, Size) -> Number, Call,
        "Prints nothing: the call is counted. Up to three values may follow, and are ignored.";
    Random 7 "get_prandom_u32" () -> Number, Random,
        "32 random bits, from the program's own stream.";
    Worker 8 "get_smp_processor_id" () -> Number, Call,
        "The number of the worker, from 0.";
    TailCall 12 "tail_call" (Context, Map, Number) -> Nothing, ArrayLookup,
        "Goes on with the program that a program array has by this number, which returns in its stead; \
         without one, after the call.";
    Redirect 23 "redirect" (Number, Number) -> Number, Call,
        "Chooses a port by its number, for a return of XDP_REDIRECT, which it returns; XDP_ABORTED if flags \
         are not 0.";
    PerfOutput 25 "perf_event_output" (Context, Map, Number, Payload, PayloadSize) -> Number, Record,
        "Writes a record into this worker's ring of a perf_event_array, and behind it as many bytes of the \
         packet as the upper half of flags says. 0, or a negative error number.";
    ChecksumDiff 28 "csum_diff" (ReadableOrNull, SizeOrZero, ReadableOrNull, SizeOrZero, Number) -> Number,
        Checksum,
        "The Internet checksum (not complemented) of the second bytes less that of the first, plus a seed; \
         sizes are multiples of 4.";
    Node 42 "get_numa_node_id" () -> Number, Call,
        "Always 0.";
    AdjustHead 44 "xdp_adjust_head" (Context, Number) -> Number, Adjust,
        "Moves the packet's beginning by so many bytes. 0, or a negative error number.";
    RedirectMap 51 "redirect_map" (Map, Number, Number) -> Number, PortLookup,
        "Chooses the port that a device map holds for this key and returns XDP_REDIRECT; without one, the \
         low two bits of flags.";
    AdjustTail 65 "xdp_adjust_tail" (Context, Number) -> Number, Adjust,
        "Moves the packet's end by so many bytes; new ones are 0. 0, or a negative error number.";
    FibLookup 69 "fib_lookup" (Context, Changed, Size, Number) -> Number, HashLookup,
        "Asks the router for the route and the neighbour of a struct bpf_fib_lookup. 0, or \
         BPF_FIB_LKUP_RET_…, or a negative error number.";
    SpinLock 93 "spin_lock" (Lock) -> Nothing, Atomic,
        "Takes the lock of a map's value, for which it waits. No helper but spin_unlock may be called then, \
         and no function.";
    SpinUnlock 94 "spin_unlock" (Lock) -> Nothing, Atomic,
        "Gives the lock of a map's value back.";
    Jiffies 118 "jiffies64" () -> Number, Call,
        "The time of the packet in milliseconds.";
    BootTime 125 "ktime_get_boot_ns" () -> Number, Call,
        "As ktime_get_ns: time does not stop here while a machine sleeps.";
    RingOutput 130 "ringbuf_output" (Map, Payload, PayloadSize, Number) -> Number, Record,
        "Writes a record into a ringbuf. 0, or a negative error number.";
    RingReserve 131 "ringbuf_reserve" (Map, RecordSize, Number) -> RecordOrNull, Record,
        "The address of room for a record in a ringbuf, all zero, or 0 if there is none. Submit or discard \
         it.";
    RingSubmit 132 "ringbuf_submit" (Record, Number) -> Nothing, Call,
        "Gives a record to who reads the ringbuf.";
    RingDiscard 133 "ringbuf_discard" (Record, Number) -> Nothing, Call,
        "Throws a record away.";
    RingQuery 134 "ringbuf_query" (Map, Number) -> Number, Record,
        "Of a ringbuf the bytes that wait (flags 0), its size (1), the positions of reader (2) and writers \
         (3).";
    CoarseTime 160 "ktime_get_coarse_ns" () -> Number, Call,
        "As ktime_get_ns: the time of the packet costs nothing to know.";
    TraceMany 177 "trace_vprintk" (Readable, Size, ReadableOrNull, SizeOrZero) -> Number, Call,
        "As trace_printk, with values in memory.";
    Loop 181 "loop" (Number, Function, StackOrNull, Number) -> Number, Call,
        "Calls a function with 0, 1, … and an address, at most so many times, until it returns 1. How often \
         it called; flags must be 0.";
    PacketLength 188 "xdp_get_buff_len" (Context) -> Number, Call,
        "The length of the packet in bytes.";
    LoadBytes 189 "xdp_load_bytes" (Context, Number, Writable, Size) -> Number, Copy,
        "Copies bytes of the packet from this offset on. 0, or a negative error number and zeros.";
    StoreBytes 190 "xdp_store_bytes" (Context, Number, Readable, Size) -> Number, Copy,
        "Copies bytes into the packet from this offset on. 0, or a negative error number.";
    FlowState 0x1_0000 "lw_flow_state" (StateSize) -> State, Call,
        "The address of this installation's state, of which so many bytes are used. Zeroed when it was \
         installed.";
    ChooseQueue 0x1_0001 "lw_choose_queue" (Number) -> Number, Call,
        "Chooses the output queue by its number, 0 to 65535. 0, or a negative error number.";
    Mark 0x1_0002 "lw_mark" (Number) -> Number, Call,
        "Sets the packet's 32-bit mark, for programs and rules behind. Returns 0.";
    Drop 0x1_0003 "lw_drop" (Number) -> Number, Call,
        "Notes the program's own reason, 0 to 63, and returns XDP_DROP; numbers beyond share one counter.";
    Hash 0x1_0004 "lw_hash" (Readable, Size, Number) -> Number, Hash,
        "A 64-bit hash of bytes and a seed, the same on every machine.";
    RedirectLink 0x1_0005 "lw_redirect_link" (Number) -> Number, Call,
        "Chooses a link by its number among those that the installation names, for a return of XDP_REDIRECT, \
         which it returns.";
    ReadMark 0x1_0006 "lw_read_mark" () -> Number, Call,
        "The packet's 32-bit mark, as programs have set it; 0 if none has.";
    ChooseLink 0x1_0007 "lw_choose_link" (Number) -> Number, Call,
        "Chooses a link by its number, as lw_redirect_link, for a packet that is routed: if the route leads \
         where the link begins. Returns 0.";
    Transport 0x1_0008 "lw_transport" (Context) -> Number, Copy,
        "Where the transport header of an IP packet is, behind extension headers, and its protocol; a \
         negative number if none can be found.";
}

/// Most tail calls ([`Helper::TailCall`]) per packet (MAX_TAIL_CALL_CNT of the kernel).
pub const MAX_TAIL_CALLS: u8 = 33;

/// Most rounds of [`Helper::Loop`] (BPF_MAX_LOOPS of the kernel).
pub const MAX_ROUNDS: u32 = 1 << 23;

/// Number of rounds of [`Helper::Loop`], or its error.
pub(crate) fn rounds(count: u64, flags: u64) -> Result<u32, u64> {
    const E2BIG: i64 = 7;
    const EINVAL: i64 = 22;
    match count as u32 {
        _ if flags != 0 => Err(-EINVAL as u64),
        count if count > MAX_ROUNDS => Err(-E2BIG as u64),
        count => Ok(count),
    }
}

impl Helper {
    /// Its number.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_numbers_have_the_kernels_names() {
        for &helper in Helper::ALL {
            assert_eq!(Helper::from_number(helper.number()), Some(helper));
            match helper.number() {
                own if own >= OWN_BASE => assert!(helper.name().starts_with("lw_")),
                number => assert_eq!(kernel_name(number), Some(helper.name())),
            }
        }
        assert!(Helper::ALL.is_sorted());
    }

    #[test]
    fn sizes_follow_what_they_measure() {
        for helper in Helper::ALL {
            let arguments = helper.signature().arguments;
            assert!(arguments.len() <= 5);
            for (index, argument) in arguments.iter().enumerate() {
                let next = arguments.get(index + 1);
                match argument {
                    Argument::Readable | Argument::Writable | Argument::Changed => {
                        assert_eq!(next, Some(&Argument::Size));
                    }
                    Argument::ReadableOrNull => assert_eq!(next, Some(&Argument::SizeOrZero)),
                    Argument::Payload => assert_eq!(next, Some(&Argument::PayloadSize)),
                    Argument::Key | Argument::Value => assert_eq!(arguments[0], Argument::Map),
                    _ => {}
                }
            }
        }
    }
}
