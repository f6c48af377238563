//! The data of compiled code, and the functions that it calls.
//!
//! None of these functions unwinds into compiled code: they catch panics.
#![allow(unsafe_code)]

use crate::visit::Visit;
use longwire_program::memory::Fault;
use longwire_program::{Atomic, Context, Helper, Machine, ProgramState, Region, Size, Stack, Width};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A run of a program: what its code reads directly, and its results. The code knows the fields by their
/// offsets.
#[repr(C)]
#[derive(Default)]
pub struct Run {
    /// The context's fields as loaded, in order.
    fields: [u64; 6],
    /// Pointer to the packet's first byte, whose program address is `fields[0]`. Its length is `fields[1]`
    /// minus that.
    packet: *mut u8,
    /// The stack's first byte.
    stack: *mut u8,
    /// The state's first byte.
    state: *mut u8,
    /// Bytes of the state.
    state_size: u64,
    /// The packet's time.
    now: u64,
    /// The worker's number.
    worker: u64,
    /// Not 0 if a called function requests the end of the program.
    halted: u64,
    /// Backward jumps that the program may still take.
    turns: u64,
    /// Address of the access that ended the program.
    pub address: u64,
    /// The machine for the functions below.
    machine: *mut c_void,
    /// Where the loop over packets writes return values.
    visits: *mut Visit,
    fault: Option<Fault>,
}

/// Offsets in a [`Run`] used by compiled code, in bytes.
pub mod offset {
    use super::Run;
    use std::mem::offset_of;

    pub const FIELDS: i32 = offset_of!(Run, fields) as i32;
    pub const PACKET: i32 = offset_of!(Run, packet) as i32;
    pub const STACK: i32 = offset_of!(Run, stack) as i32;
    pub const STATE: i32 = offset_of!(Run, state) as i32;
    pub const STATE_SIZE: i32 = offset_of!(Run, state_size) as i32;
    pub const NOW: i32 = offset_of!(Run, now) as i32;
    pub const WORKER: i32 = offset_of!(Run, worker) as i32;
    pub const HALTED: i32 = offset_of!(Run, halted) as i32;
    pub const TURNS: i32 = offset_of!(Run, turns) as i32;
    pub const ADDRESS: i32 = offset_of!(Run, address) as i32;
    pub const VISITS: i32 = offset_of!(Run, visits) as i32;
}

/// The end of a program.
#[repr(C)]
pub struct ProgramEnd {
    /// Its return value.
    pub returned: u64,
    /// 0, or the number of the instruction that ended it plus 1: then there is no return value.
    pub number: u64,
}

/// Set in the number of an instruction that jumped back too often.
pub const TOO_OFTEN: u64 = 1 << 32;

const FAULT: u64 = 1;
const PANIC: u64 = 2;

impl Run {
    /// Lends it a stack, which nothing else may access before the end of the run.
    pub fn lend_stack(&mut self, stack: &mut Stack) {
        self.stack = stack.bytes_mut().as_mut_ptr();
    }

    /// Lends it slots for return values, which nothing else may access before the end of the run.
    pub fn lend_visits(&mut self, visits: &mut [Visit]) {
        self.visits = visits.as_mut_ptr();
    }

    /// A run without packet, state and machine.
    pub fn idle() -> Self {
        let start = Region::Packet.address(0);
        Self { fields: [start, start, start, 0, 0, 0], ..Self::default() }
    }

    /// A run on this machine, which nothing else may access before the end of the run.
    #[inline]
    pub fn new(machine: &mut Machine<'_>) -> Self {
        let mut run = Self::idle();
        run.know(&machine.context);
        run.look(machine);
        run.lend(machine);
        run
    }

    /// Lends it a machine, which nothing else may access before the end of the run. Its packet is the run's.
    #[inline]
    pub fn lend(&mut self, machine: &mut Machine<'_>) {
        self.stack = machine.stack.bytes_mut().as_mut_ptr();
        self.use_state(machine.state);
        self.machine = (&raw mut *machine).cast();
    }

    /// Sets a packet without headroom and tailroom, with its ingress port and time; the rest of the context
    /// is kept.
    #[inline]
    pub fn take(&mut self, (ingress, now): (u32, u64), frame: &mut [u8]) {
        let length = frame.len().min(u32::MAX as usize);
        self.fields[1] = Region::Packet.address(length as u32);
        self.packet = frame.as_mut_ptr();
        (self.fields[3], self.now) = (ingress.into(), now);
    }

    /// Sets the context.
    #[inline]
    pub fn know(&mut self, context: &Context) {
        (self.fields[3], self.fields[4]) = (u64::from(context.ingress), u64::from(context.queue));
        self.fields[5] = u64::from(context.egress);
        (self.now, self.worker) = (context.now, u64::from(context.worker));
    }

    /// Lends it a state.
    #[inline]
    pub fn use_state(&mut self, state: &ProgramState) {
        self.state = state.words().words().as_ptr().cast_mut().cast();
        self.state_size = u64::from(state.size());
    }

    /// Resets the previous program's end.
    pub fn forget(&mut self) {
        (self.halted, self.fault) = (0, None);
    }

    /// Whether a called function has panicked.
    pub fn panicked(&self) -> bool {
        self.halted == PANIC
    }

    /// The fault of a called function.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Updates the locations of packet and stack. To be repeated after anything that may move the packet's
    /// ends.
    #[inline]
    fn look(&mut self, machine: &mut Machine<'_>) {
        let window = machine.packet.range();
        let start = Region::Packet.address(window.start as u32);
        self.fields[0] = start;
        self.fields[1] = Region::Packet.address(window.end as u32);
        self.fields[2] = start;
        self.packet = machine.packet.bytes_mut().as_mut_ptr();
        self.stack = machine.stack.bytes_mut().as_mut_ptr();
    }

    /// Calls the machine; packet ends stay in place, unless `MOVES`. On failure the program must end, and the
    /// result is meaningless.
    ///
    /// # Safety
    /// `run` is what compiled code was entered with.
    #[inline]
    unsafe fn with_machine<const MOVES: bool>(
        run: *mut Self,
        work: impl FnOnce(&mut Machine<'_>) -> Result<u64, Fault>,
    ) -> u64 {
        // SAFETY: compiled code was entered with a reference to the run, and waits while this function has
        // it.
        let run = unsafe { &mut *run };
        // SAFETY: the run was lent the machine, which outlives it and is used by nobody else during it.
        // Packet and stack, which the run points to, lie outside it, and their buffers stay where they are.
        let machine = unsafe { &mut *run.machine.cast::<Machine<'_>>() };
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut *machine)));
        let result = match done {
            Ok(Ok(value)) => value,
            Ok(Err(fault)) => {
                (run.halted, run.fault) = (FAULT, Some(fault));
                0
            }
            Err(_) => {
                run.halted = PANIC;
                0
            }
        };
        if MOVES {
            run.look(machine);
        }
        result
    }
}

/// Added to a size: extends the sign.
pub const SIGNED: u64 = 0x10;

/// Carries out a load: `how` is a size in bytes, with [`SIGNED`].
///
/// # Safety
/// `run` is what compiled code was entered with.
pub unsafe extern "C" fn load(run: *mut Run, address: u64, how: u64) -> u64 {
    let work = |machine: &mut Machine<'_>| {
        let size = size_of_bytes(how & !SIGNED);
        if how & SIGNED != 0 { machine.load_extended(address, size) } else { machine.load(address, size) }
    };
    // SAFETY: promised by the caller.
    unsafe { Run::with_machine::<false>(run, work) }
}

/// Carries out a store of so many bytes.
///
/// # Safety
/// `run` is what compiled code was entered with.
pub unsafe extern "C" fn store(run: *mut Run, address: u64, value: u64, bytes: u64) -> u64 {
    let work = |machine: &mut Machine<'_>| machine.store(address, size_of_bytes(bytes), value).map(|()| 0);
    // SAFETY: promised by the caller.
    unsafe { Run::with_machine::<false>(run, work) }
}

/// Carries out an atomic operation: `how` is from [`operation_number`].
///
/// # Safety
/// `run` is what compiled code was entered with.
pub unsafe extern "C" fn change(run: *mut Run, address: u64, src: u64, r0: u64, how: u64) -> u64 {
    let width = if how & WIDE != 0 { Width::W64 } else { Width::W32 };
    let operation = Atomic::ALL[(how & !WIDE) as usize % Atomic::ALL.len()];
    let work = |machine: &mut Machine<'_>| machine.change(address, width, operation, src, r0);
    // SAFETY: promised by the caller.
    unsafe { Run::with_machine::<false>(run, work) }
}

/// Calls a helper whose arguments are unchecked.
///
/// # Safety
/// `run` is what compiled code was entered with.
pub unsafe extern "C" fn call(run: *mut Run, a: u64, b: u64, c: u64, d: u64, e: u64, helper: u64) -> u64 {
    let work = |machine: &mut Machine<'_>| machine.call(helper as u32, [a, b, c, d, e]);
    // SAFETY: promised by the caller.
    unsafe { Run::with_machine::<true>(run, work) }
}

/// Calls a helper whose arguments the verifier has checked.
///
/// # Safety
/// `run` is what compiled code was entered with.
unsafe extern "C" fn perform<const HELPER: u32, const MOVES: bool>(
    run: *mut Run,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
) -> u64 {
    let work = |machine: &mut Machine<'_>| match const { Helper::from_number(HELPER) } {
        Some(helper) => machine.perform(helper, [a, b, c, d, e]),
        None => Err(Fault::Helper(HELPER)),
    };
    // SAFETY: promised by the caller.
    unsafe { Run::with_machine::<MOVES>(run, work) }
}

macro_rules! performers {
    ($($helper:ident)+) => {
        /// The function that calls this helper, whose arguments the verifier has checked.
        pub fn performer(helper: Helper) -> *const () {
            match helper {
                $(Helper::$helper => {
                    const MOVES: bool = Helper::$helper.signature().moves_packet;
                    perform::<{ Helper::$helper as u32 }, MOVES> as *const ()
                })+
            }
        }
    };
}

performers! {
    MapLookup MapUpdate MapDelete Now Trace Random Worker Redirect ChecksumDiff Node AdjustHead RedirectMap
    AdjustTail Jiffies BootTime CoarseTime TraceMany PacketLength LoadBytes StoreBytes FlowState ChooseQueue
    Mark Drop Hash RedirectLink ReadMark ChooseLink Transport FibLookup Loop TailCall SpinLock SpinUnlock
    PerfOutput RingOutput RingReserve RingSubmit RingDiscard RingQuery
}

const WIDE: u64 = 0x10;

/// Number of an operation for [`change`].
pub fn operation_number(width: Width, operation: Atomic) -> u64 {
    if width == Width::W64 { operation as u64 | WIDE } else { operation as u64 }
}

fn size_of_bytes(bytes: u64) -> Size {
    match bytes {
        1 => Size::Byte,
        2 => Size::Half,
        4 => Size::Word,
        _ => Size::Double,
    }
}
