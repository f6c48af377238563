//! Reasons for refusing a program.

use super::value::Value;
use crate::call::instead;
use crate::{Argument, Helper, Instruction, Item, MapKind, Program, Register};
use thiserror::Error;

/// A refused program, with the instruction at fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("program {program}, instruction {slot} ({instruction}){source_line}: {fault}")]
pub struct Rejected {
    /// The program's name.
    pub program: Box<str>,
    /// Index of the instruction in the program.
    pub index: usize,
    /// Number of the instruction in slots, as counted by the kernel and llvm-objdump.
    pub slot: usize,
    /// The instruction.
    pub instruction: Instruction,
    /// Source file and line, as `, file:line`; empty if unknown.
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

/// A rejection with its instruction.
pub type At = (usize, Rejection);

/// What is found out about an instruction, unless it is refused.
pub type Result<T, E = Rejection> = std::result::Result<T, E>;

/// Error of an instruction, with the fix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rejection {
    /// A backward jump without progress towards the loop's end.
    #[error(
        "it leads back to instruction {to} with nothing changed that must end the loop; count up to a \
         constant in a variable of its own, as in for (i = 0; i < 16; i++)"
    )]
    Endless {
        /// Its target, in slots.
        to: usize,
    },
    /// A backward jump of a loop that was followed for the maximum number of rounds.
    #[error(
        "it leads back to instruction {to}, and this loop had not come to its end ({rounds} rounds) when the \
         program was followed for {limit} steps; count up to a constant, as in for (i = 0; i < 16; i++), or \
         make the constant or the loop's body smaller",
        limit = super::MAX_STEPS
    )]
    Unbounded {
        /// Its target, in slots.
        to: usize,
        /// Number of rounds followed.
        rounds: u32,
    },
    /// A backward jump into a loop with several entries.
    #[error("it leads back into a loop that has several beginnings; enter the loop in one place only")]
    Entries,
    /// A backward jump of a loop nested too deeply.
    #[error("loops are nested more than {limit} deep; make functions of the inner ones",
        limit = super::MAX_NESTED)]
    Nested,
    /// It is unreachable.
    #[error("nothing leads to it; leave it out")]
    Unreachable,
    /// Execution would run past the function's end.
    #[error("the function ends here without exit; return")]
    RunsOff,
    /// It jumps into another function.
    #[error("it jumps to instruction {to}, which is in another function; call it")]
    Leaves {
        /// Its target, in slots.
        to: usize,
    },
    /// A recursive function, directly or indirectly.
    #[error("it calls a function that is being carried out already; programs can't be recursive")]
    Recursion,
    /// Nested calls exceed the number of frames.
    #[error("calls are nested more than {limit} deep; make functions inline",
        limit = crate::memory::MAX_FRAMES)]
    TooDeep,
    /// The program has too many paths.
    #[error(
        "there are too many ways through the program to follow all; make it smaller, or call its functions \
         less often"
    )]
    TooComplex,
    /// Its worst case is beyond what is counted.
    #[error(
        "the program may take more than {limit} times the operation \"{name}\" a packet; lower the number of \
         rounds",
        limit = u32::MAX - 1, name = .item.name()
    )]
    TooLong {
        /// The operation.
        item: Item,
    },
    /// An unknown helper.
    #[error("there is no helper {number} ({name}) here; {fix}", fix = instead(*.number))]
    UnknownHelper {
        /// Its number.
        number: u32,
        /// The kernel's name of it.
        name: &'static str,
    },
    /// A function of the kernel.
    #[error("functions of the kernel (kfuncs) can't be called; use a helper")]
    KernelFunction,
    /// A map that does not exist.
    #[error("there is no map {0} in the object")]
    NoMap(u32),
    /// An offset beyond a map's value, or in a map that requires a lookup.
    #[error("map {map} has no byte {offset} that can be reached without a lookup; call map_lookup_elem")]
    NoMapValue {
        /// The map.
        map: Box<str>,
        /// The offset.
        offset: u32,
    },
    /// An uninitialized register.
    #[error("{register} was not written before on every path; set it first (calls make r1 to r5 undefined)")]
    Unwritten {
        /// The register.
        register: Register,
    },
    /// An access through something that is no address.
    #[error(
        "{register} is {what}, not an address that can be used; keep addresses in variables of their own on \
         every path"
    )]
    NotAddress {
        /// The register.
        register: Register,
        /// Its content.
        what: &'static str,
    },
    /// An unchecked result of a lookup.
    #[error("{register} may be 0, as map {map} may not have the key; compare it with 0 first")]
    MaybeNull {
        /// The register.
        register: Register,
        /// The map.
        map: Box<str>,
    },
    /// An unchecked reservation of a record.
    #[error("{register} may be 0, as ring {map} may have no room; compare it with 0 first")]
    MaybeFull {
        /// The register.
        register: Register,
        /// The ring.
        map: Box<str>,
    },
    /// An address in a released record.
    #[error("{register} is an address in a record that was submitted or discarded; do that last")]
    Released {
        /// The register.
        register: Register,
    },
    /// Release of a record by an address other than its first byte.
    #[error(
        "{register} is not the first byte of the record; give back the address that ringbuf_reserve gave"
    )]
    RecordInside {
        /// The register.
        register: Register,
    },
    /// A record that is not released.
    #[error(
        "the program ends here with a record of ring {map}, which instruction {reserved} has reserved; \
         submit or discard it on every path"
    )]
    Unreleased {
        /// The ring.
        map: Box<str>,
        /// The instruction of its reservation, in slots.
        reserved: usize,
    },
    /// Too many records at once.
    #[error("it may have {limit} records reserved already; submit or discard one before",
        limit = crate::reserved::MAX_RECORDS)]
    TooManyRecords,
    /// An address in a packet that was moved since.
    #[error(
        "{register} is an address in the packet from before it was moved; load data and data_end again and \
         check anew"
    )]
    Stale {
        /// The register.
        register: Register,
    },
    /// Bytes that may be beyond the packet's end.
    #[error("the packet may end before byte {end} beyond {register}, {proven}; compare with data_end first",
        proven = known_bytes(*.proven))]
    PacketUnchecked {
        /// The register.
        register: Register,
        /// The first byte after the access, relative to the register.
        end: i64,
        /// Number of bytes from the register that are proven, if any.
        proven: Option<i64>,
    },
    /// Bytes before the packet's beginning.
    #[error("it may touch byte {first} of the packet, before its first; use xdp_adjust_head for more room")]
    PacketBefore {
        /// The first one, relative to the packet's beginning.
        first: i64,
    },
    /// Bytes out of bounds.
    #[error(
        "it may touch bytes {first} to {last} of {what}, which has {low} to {high}; compare or mask the \
         index first"
    )]
    Bounds {
        /// The object.
        what: Box<str>,
        /// First byte that may be accessed.
        first: i64,
        /// Last byte that may be accessed.
        last: i64,
        /// First existing byte.
        low: i64,
        /// Last existing byte.
        high: i64,
    },
    /// An unaligned access outside the packet.
    #[error(
        "{size} bytes of {what} have to lie at a multiple of {size}; align the variable, or copy it bytewise"
    )]
    Misaligned {
        /// The object.
        what: Box<str>,
        /// The size.
        size: u32,
    },
    /// Uninitialized bytes of the stack.
    #[error("byte {offset} of the stack frame was not written before on every path; initialise the variable")]
    StackUnwritten {
        /// Offset from `r10`; negative.
        offset: i64,
    },
    /// A store to a read-only map.
    #[error("map {map} can only be read; leave out const to write to it")]
    ReadOnly {
        /// The map.
        map: Box<str>,
    },
    /// A store to an entry of a map of ports.
    #[error("map {map} holds ports, which programs only read; let the control half write it")]
    TargetWrite {
        /// The map.
        map: Box<str>,
    },
    /// A store to the context.
    #[error("the context can only be read; use helpers to change what becomes of the packet")]
    ContextWrite,
    /// An access that is not a whole field of the context.
    #[error(
        "an access of {size} B at {offset} is to no field of struct xdp_md; load one of its fields, 4 bytes \
         each, unsigned"
    )]
    ContextField {
        /// The offset.
        offset: i64,
        /// The size.
        size: u32,
    },
    /// The context on one path and other memory on another.
    #[error("it touches the context on one path and other memory on another; make two instructions of it")]
    ContextOrNot,
    /// An atomic operation on a packet.
    #[error("atomic operations on packets can't be had; load, change and store instead")]
    AtomicPacket,
    /// An invalid operation on an address.
    #[error(
        "{register} is {what}, with which this can't be computed; only sums and differences with numbers can"
    )]
    PointerArithmetic {
        /// The register.
        register: Register,
        /// Its content.
        what: &'static str,
    },
    /// An address moved too far.
    #[error("{register} is moved by a number that is not known, or by more than {limit} bytes; use a smaller \
        constant", limit = super::FURTHEST)]
    PointerRange {
        /// The register.
        register: Register,
    },
    /// Wrong type of a helper's argument.
    #[error("{name} takes {wanted} in r{number}, which is {found}", name = .helper.name(),
        wanted = takes(*.wanted))]
    Argument {
        /// The helper.
        helper: Helper,
        /// The register's number.
        number: u8,
        /// The required type.
        wanted: Argument,
        /// Its content.
        found: &'static str,
    },
    /// A helper's argument is out of range.
    #[error("{name} takes a number from {low} to {high} in r{number}, which is {min} to {max}; compare it \
        first", name = .helper.name())]
    ArgumentRange {
        /// The helper.
        helper: Helper,
        /// The register's number.
        number: u8,
        /// The allowed minimum.
        low: u64,
        /// The allowed maximum.
        high: u64,
        /// The possible minimum.
        min: u64,
        /// The possible maximum.
        max: u64,
    },
    /// A map that a helper does not accept.
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
    /// An operation that may take long, or returns, while a lock is held.
    #[error("a lock is taken; call spin_unlock first, on every path")]
    Locked,
    /// Release of a lock that was not taken.
    #[error(
        "this is not the lock that was taken; use the address of the same lookup for spin_lock and \
         spin_unlock"
    )]
    NotLocked,
    /// An access to a value's lock.
    #[error("values of map {map} have a lock there, which only spin_lock and spin_unlock touch")]
    LockBytes {
        /// The map.
        map: Box<str>,
    },
    /// A tail call within a called function.
    #[error(
        "only the program itself can go on with another one, not a function that it calls; make the function \
         inline"
    )]
    TailCallInFunction,
    /// A map holds a program that does not exist.
    #[error("map {map} holds program {number}, which is not in the object")]
    NoProgram {
        /// The map.
        map: Box<str>,
        /// The program's number.
        number: u32,
    },
    /// A callback that differs between paths.
    #[error("{name} calls one function on one path and another on another; call it once for each",
        name = .helper.name())]
    Callbacks {
        /// The helper.
        helper: Helper,
    },
    /// An invalid return value of a callback.
    #[error("the function that {name} calls returns {what}; return 0 to go on or 1 to end the loop",
        name = .helper.name())]
    CallbackReturns {
        /// The helper.
        helper: Helper,
        /// The value.
        what: Box<str>,
    },
    /// The program's return value is not a number.
    #[error("r0 is {what}; return one of the XDP codes")]
    Returns {
        /// The value.
        what: &'static str,
    },
    /// A function returns the address of its own variable.
    #[error(
        "it returns the address of a variable that ends with the function; let the caller give the variable"
    )]
    ReturnsLocal,
}

impl Rejection {
    /// For an access through something that is no memory.
    pub(super) fn not_address(register: Register, value: &Value) -> Self {
        match value {
            Value::Unset => Self::Unwritten { register },
            Value::Stale => Self::Stale { register },
            Value::Released => Self::Released { register },
            other => Self::NotAddress { register, what: other.what() },
        }
    }
}

fn known_bytes(proven: Option<i64>) -> String {
    match proven {
        Some(proven) => format!("of which {} are known to be there", proven.max(0)),
        None => "of whose bytes nothing is known".into(),
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
