//! Why a program is not let in.

use super::value::Value;
use crate::call::instead;
use crate::{Argument, Helper, Instruction, MapKind, Program, Register};
use thiserror::Error;

/// A program that is refused, and the instruction because of which it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("program {program}, instruction {slot} ({instruction}){source_line}: {fault}")]
pub struct Rejected {
    /// The program's name.
    pub program: Box<str>,
    /// The instruction's place in the program.
    pub index: usize,
    /// The instruction's number in slots, as the kernel and llvm-objdump count.
    pub slot: usize,
    /// The instruction.
    pub instruction: Instruction,
    /// File and line of the source, as `, file:line`; empty if that is not known.
    pub source_line: Box<str>,
    /// The fault.
    pub fault: Rejection,
}

impl Rejected {
    pub(super) fn new(program: &Program, index: usize, fault: Rejection) -> Box<Self> {
        let line = program.line(index);
        Box::new(Self {
            program: program.name.clone(),
            index,
            slot: program.code.slot(index),
            instruction: program.code.instructions()[index],
            source_line: line.map_or(Box::default(), |l| format!(", {}:{}", l.file, l.line).into()),
            fault,
        })
    }
}

/// A rejection, and the instruction that it is about.
pub type At = (usize, Rejection);

/// What is wrong with an instruction, and the fix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rejection {
    /// It leads back to where a loop begins, and nothing has changed that could end it.
    #[error(
        "it leads back to instruction {to} with nothing changed that must end the loop; count up to a \
         constant in a variable of its own, as in for (i = 0; i < 16; i++)"
    )]
    Endless {
        /// Where it leads, in slots.
        to: usize,
    },
    /// It leads back to where a loop begins, which was followed as often as may be.
    #[error(
        "it leads back to instruction {to}, and this loop had not come to its end ({rounds} rounds) when the \
         program was followed for {limit} steps; count up to a constant, as in for (i = 0; i < 16; i++), or \
         make the constant or the loop's body smaller",
        limit = super::limits::MAX_STEPS
    )]
    Unbounded {
        /// Where it leads, in slots.
        to: usize,
        /// How often the loop was followed.
        rounds: u32,
    },
    /// It leads back into a loop that is entered in several places.
    #[error("it leads back into a loop that has several beginnings; enter the loop in one place only")]
    Entries,
    /// It leads back in a loop within too many others.
    #[error("loops are nested more than {limit} deep; make functions of the inner ones",
        limit = super::limits::MAX_NESTED)]
    Nested,
    /// Nothing leads to it.
    #[error("nothing leads to it; leave it out")]
    Unreachable,
    /// What would run next belongs to no function or to the next one.
    #[error("the function ends here without exit; return")]
    RunsOff,
    /// It jumps into another function.
    #[error("it jumps to instruction {to}, which is in another function; call it")]
    Leaves {
        /// Where it leads, in slots.
        to: usize,
    },
    /// A function calls itself, through others or not.
    #[error("it calls a function that is being carried out already; programs can't be recursive")]
    Recursion,
    /// More calls within calls than there are frames.
    #[error("calls are nested more than {limit} deep; make functions inline",
        limit = crate::memory::MAX_FRAMES)]
    TooDeep,
    /// There are too many ways through the program.
    #[error(
        "there are too many ways through the program to follow all; make it smaller, or call its functions \
         less often"
    )]
    TooComplex,
    /// A helper that is not there.
    #[error("there is no helper {number} ({name}) here; {fix}", fix = instead(*.number))]
    UnknownHelper {
        /// Its number.
        number: u32,
        /// The kernel's name for it.
        name: &'static str,
    },
    /// A function of the kernel.
    #[error("functions of the kernel (kfuncs) can't be called; use a helper")]
    KernelFunction,
    /// A map that the object doesn't have.
    #[error("there is no map {0} in the object")]
    NoMap(u32),
    /// The address of a byte that a map doesn't have, or that can't be had without a search.
    #[error("map {map} has no byte {offset} that can be reached without a lookup; call map_lookup_elem")]
    NoMapValue {
        /// The map.
        map: Box<str>,
        /// The byte.
        offset: u32,
    },
    /// A register that was not written.
    #[error("{register} was not written before on every path; set it first (calls make r1 to r5 undefined)")]
    Unwritten {
        /// Which.
        register: Register,
    },
    /// An access through something that is no address.
    #[error(
        "{register} is {what}, not an address that can be used; keep addresses in variables of their own on \
         every path"
    )]
    NotAddress {
        /// Which.
        register: Register,
        /// What it is.
        what: &'static str,
    },
    /// The result of a search that was not looked at.
    #[error("{register} may be 0, as map {map} may not have the key; compare it with 0 first")]
    MaybeNull {
        /// Which.
        register: Register,
        /// The map.
        map: Box<str>,
    },
    /// The reservation of a record that was not looked at.
    #[error("{register} may be 0, as ring {map} may have no room; compare it with 0 first")]
    MaybeFull {
        /// Which.
        register: Register,
        /// The ring.
        map: Box<str>,
    },
    /// An address in a record that was given back.
    #[error("{register} is an address in a record that was submitted or discarded; do that last")]
    Released {
        /// Which.
        register: Register,
    },
    /// A record is given back by another address than that of its first byte.
    #[error(
        "{register} is not the first byte of the record; give back the address that ringbuf_reserve gave"
    )]
    RecordInside {
        /// Which.
        register: Register,
    },
    /// A record is not given back.
    #[error(
        "the program ends here with a record of ring {map}, which instruction {reserved} has reserved; \
         submit or discard it on every path"
    )]
    Unreleased {
        /// The ring.
        map: Box<str>,
        /// Where it was reserved, in slots.
        reserved: usize,
    },
    /// Too many records at once.
    #[error("it may have {limit} records reserved already; submit or discard one before",
        limit = crate::reserved::MAX_RECORDS)]
    TooManyRecords,
    /// An address in a packet that was moved.
    #[error(
        "{register} is an address in the packet from before it was moved; load data and data_end again and \
         check anew"
    )]
    Stale {
        /// Which.
        register: Register,
    },
    /// Bytes of the packet that are perhaps not there.
    #[error("the packet may end before byte {end} beyond {register}, {proven}; compare with data_end first",
        proven = Proven(*.proven))]
    PacketUnchecked {
        /// Which.
        register: Register,
        /// The first byte behind those that are touched, from where the register points.
        end: i64,
        /// How many bytes from where the register points are known to be there, if anything is known.
        proven: Option<i64>,
    },
    /// Bytes before the packet's beginning.
    #[error("it may touch byte {first} of the packet, before its first; use xdp_adjust_head for more room")]
    PacketBefore {
        /// Which, from the packet's beginning.
        first: i64,
    },
    /// Bytes beyond what there is.
    #[error(
        "it may touch bytes {first} to {last} of {what}, which has {low} to {high}; compare or mask the \
         index first"
    )]
    Bounds {
        /// What is accessed.
        what: Box<str>,
        /// First byte that may be touched.
        first: i64,
        /// Last byte that may be touched.
        last: i64,
        /// The first byte there is.
        low: i64,
        /// The last byte there is.
        high: i64,
    },
    /// An access to memory other than the packet at an address that is no multiple of its size.
    #[error(
        "{size} bytes of {what} have to lie at a multiple of {size}; align the variable, or copy it bytewise"
    )]
    Misaligned {
        /// What is accessed.
        what: Box<str>,
        /// How many bytes.
        size: u32,
    },
    /// Bytes of the stack that were never written.
    #[error("byte {offset} of the stack frame was not written before on every path; initialise the variable")]
    StackUnwritten {
        /// Which, from `r10`; negative.
        offset: i64,
    },
    /// A map that is for reading.
    #[error("map {map} can only be read; leave out const to write to it")]
    ReadOnly {
        /// The map.
        map: Box<str>,
    },
    /// An entry of a map of ports is written.
    #[error("map {map} holds ports, which programs only read; let the control half write it")]
    TargetWrite {
        /// The map.
        map: Box<str>,
    },
    /// The context is written to.
    #[error("the context can only be read; use helpers to change what becomes of the packet")]
    ContextWrite,
    /// Something that is no field of the context.
    #[error(
        "{size} bytes at {offset} are no field of struct xdp_md; load one of its fields, 4 bytes each, \
         unsigned"
    )]
    ContextField {
        /// From where.
        offset: i64,
        /// How many bytes.
        size: u32,
    },
    /// The context on one path and other memory on another.
    #[error("it touches the context on one path and other memory on another; make two instructions of it")]
    ContextOrNot,
    /// An atomic operation on a packet.
    #[error("atomic operations on packets can't be had; load, change and store instead")]
    AtomicPacket,
    /// Something is done to an address that can't be.
    #[error(
        "{register} is {what}, with which this can't be computed; only sums and differences with numbers can"
    )]
    PointerArithmetic {
        /// Which.
        register: Register,
        /// What it is.
        what: &'static str,
    },
    /// An address moved too far.
    #[error("{register} is moved by a number that is not known, or by more than {limit} bytes; use a smaller \
        constant", limit = super::limits::FURTHEST)]
    PointerRange {
        /// Which.
        register: Register,
    },
    /// A helper is given what it does not take.
    #[error("{name} takes {wanted} in r{number}, which is {found}", name = .helper.name(),
        wanted = takes(*.wanted))]
    Argument {
        /// The helper.
        helper: Helper,
        /// The register's number.
        number: u8,
        /// What it has to be.
        wanted: Argument,
        /// What it is.
        found: &'static str,
    },
    /// A helper is given a number out of its range.
    #[error("{name} takes a number from {low} to {high} in r{number}, which is {min} to {max}; compare it \
        first", name = .helper.name())]
    ArgumentRange {
        /// The helper.
        helper: Helper,
        /// The register's number.
        number: u8,
        /// Least that it may be.
        low: u64,
        /// Most that it may be.
        high: u64,
        /// Least that it is.
        min: u64,
        /// Most that it is.
        max: u64,
    },
    /// A helper is given a map that it can't use.
    #[error("{name} can't use map {map}, which is a {kind}{fix}", name = .helper.name(), kind = .kind.name(),
        fix = map_fix(*.helper, *.kind))]
    MapKind {
        /// The helper.
        helper: Helper,
        /// The map.
        map: Box<str>,
        /// Its kind.
        kind: MapKind,
    },
    /// Something is done while a lock is taken that may take long, or that leaves it taken.
    #[error("a lock is taken; call spin_unlock first, on every path")]
    Locked,
    /// A lock is given back that was not taken.
    #[error(
        "this is not the lock that was taken; use the address of the same lookup for spin_lock and \
         spin_unlock"
    )]
    NotLocked,
    /// A value's lock is read or written.
    #[error("values of map {map} have a lock there, which only spin_lock and spin_unlock touch")]
    LockBytes {
        /// The map.
        map: Box<str>,
    },
    /// A function that the program calls would go on with another program.
    #[error(
        "only the program itself can go on with another one, not a function that it calls; make the function \
         inline"
    )]
    TailCallInFunction,
    /// A map holds a program that is not there.
    #[error("map {map} holds program {number}, which is not in the object")]
    NoProgram {
        /// The map.
        map: Box<str>,
        /// The program's number.
        number: u32,
    },
    /// A function that a helper calls is not the same on every path.
    #[error("{name} calls one function on one path and another on another; call it once for each",
        name = .helper.name())]
    Callbacks {
        /// The helper.
        helper: Helper,
    },
    /// A function that a helper calls returns something else than it may.
    #[error("the function that {name} calls returns {what}; return 0 to go on or 1 to end the loop",
        name = .helper.name())]
    CallbackReturns {
        /// The helper.
        helper: Helper,
        /// What it returns.
        what: Box<str>,
    },
    /// The program returns something else than a number.
    #[error("r0 is {what}; return one of the XDP codes")]
    Returns {
        /// What it is.
        what: &'static str,
    },
    /// A function returns the address of a variable of its own.
    #[error(
        "it returns the address of a variable that ends with the function; let the caller give the variable"
    )]
    ReturnsLocal,
}

impl Rejection {
    /// For an access through something that has no bytes.
    pub(super) fn not_address(register: Register, value: &Value) -> Self {
        match value {
            Value::Unset => Self::Unwritten { register },
            Value::Stale => Self::Stale { register },
            Value::Released => Self::Released { register },
            other => Self::NotAddress { register, what: other.what() },
        }
    }
}

struct Proven(Option<i64>);

impl std::fmt::Display for Proven {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(proven) => write!(f, "of which {} are known to be there", proven.max(0)),
            None => f.write_str("of whose bytes nothing is known"),
        }
    }
}

const fn takes(argument: Argument) -> &'static str {
    match argument {
        Argument::Number | Argument::Size | Argument::SizeOrZero | Argument::PayloadSize => "a number",
        Argument::RecordSize => "a constant number",
        Argument::Record => "a record that ringbuf_reserve gave",
        Argument::StateSize => "a constant number, at least 1 and at most 4096",
        Argument::Context => "the context",
        Argument::Function => "a function, as it was loaded in the same function",
        Argument::StackOrNull => "an address in the stack, or 0",
        Argument::Lock => "the address of the struct bpf_spin_lock of a map's value",
        Argument::Map => "a map",
        Argument::Key => "the address of a key",
        Argument::Value => "the address of a value",
        Argument::Readable | Argument::Writable | Argument::Changed | Argument::Payload => "an address",
        Argument::ReadableOrNull => "an address, or 0 if the size is 0",
    }
}

const fn map_fix(helper: Helper, kind: MapKind) -> &'static str {
    match helper {
        Helper::RedirectMap => "; it takes a devmap, devmap_hash, cpumap or xskmap",
        Helper::TailCall => "; it takes a prog_array",
        Helper::RingOutput | Helper::RingReserve | Helper::RingQuery => "; it takes a ringbuf",
        Helper::PerfOutput => "; it takes a perf_event_array",
        _ if kind.is_ring() => {
            "; records are written into it, with ringbuf_reserve, ringbuf_output or perf_event_output"
        }
        _ => "; ports and processors are redirected to, with redirect_map",
    }
}
