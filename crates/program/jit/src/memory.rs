//! Executable memory: from functions to code, and the code's lifetime.
#![allow(unsafe_code)]

use crate::CompileError;
use crate::order::Body;
use crate::run::{ProgramEnd, Run};
use crate::translate::{Callees, Role, Source, translate};
use crate::visit::{MOST, Visit, VisitProgress};
use cranelift_codegen::ir::{AbiParam, Signature, UserFuncName, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, ModuleError, default_libcall_names};
use longwire_packet::{Handle, Pool};
use longwire_program::MAX_TAIL_CALLS;
use longwire_program::memory::MAX_FRAMES;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A compiled program in memory that is readable and executable, not writable.
pub struct Loaded {
    /// None after it was dropped.
    module: Option<JITModule>,
    pub code: MachineCode,
}

// SAFETY: after `load` the module is touched by nobody but `drop`, which has it alone; the code is never
// written again, and what it works on is given to it with each call.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// Runs the program.
    #[inline]
    pub fn enter(&self, run: &mut Run) -> ProgramEnd {
        // SAFETY: the code is in memory as long as `self` is, and was made with this signature. It touches
        // the run, and the packet, stack, state and maps' values that the run points to, each within its
        // bounds, which it checks.
        unsafe { (self.code.entry)(&raw mut *run) }
    }

    /// Runs the program on packets of a pool, up to the first that can't be passed as it is. Returned bits
    /// mark packets for which the lower half of the return value was not `quiet`, or that were stopped; all
    /// of them if the program works on the machine, or there are too many.
    #[inline]
    pub fn visit(
        &self,
        run: &mut Run,
        pool: &mut Pool,
        (packets, visits): (&[Handle], &mut [Visit]),
        quiet: u64,
    ) -> VisitProgress {
        let bytes = pool.bytes_mut();
        let (count, limit) = (packets.len() as u64, bytes.len() as u64);
        let fits = count <= MOST as u64 && visits.len() >= packets.len();
        run.lend_visits(visits);
        match self.code.visits {
            _ if count == 0 => VisitProgress { loud: 0, count },
            // SAFETY: as for `enter`; besides, the code reads `count` handles, touches as many visits, which
            // are there, and metadata and packets that lie in the bytes, which it checks.
            Some(entry) if fits => unsafe {
                entry(&raw mut *run, packets.as_ptr(), count, bytes.as_mut_ptr(), limit, quiet)
            },
            _ => VisitProgress { loud: u64::MAX, count },
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: `entry` is the only pointer into it that was ever given away; it is called with `self`
            // borrowed, so not now, nor later.
            unsafe { module.free_memory() };
        }
    }
}

/// Compiles all functions; the first is the program.
pub fn load(source: &Source<'_>, bodies: &[Body]) -> Result<Loaded, CompileError> {
    let mut module = JITModule::new(JITBuilder::with_isa(processor()?, default_libcall_names()));
    let error = match define(&mut module, source, bodies) {
        Ok(code) if code.stack <= MAX_STACK => return Ok(Loaded { module: Some(module), code }),
        Ok(_) => CompileError::Stack(MAX_STACK),
        Err(error) => CompileError::Generator(error.to_string()),
    };
    // SAFETY: nothing in it was ever called, and no pointer into it is kept.
    unsafe { module.free_memory() };
    Err(error)
}

/// Most bytes of the processor's stack that a program may take. Threads have 2 MiB, and the code does not
/// notice their end.
const MAX_STACK: usize = 1 << 18;

type Entry = unsafe extern "C" fn(*mut Run) -> ProgramEnd;
type EntryOfVisits = unsafe extern "C" fn(*mut Run, *const Handle, u64, *mut u8, u64, u64) -> VisitProgress;

/// Functions in executable memory.
pub struct MachineCode {
    entry: Entry,
    /// The entry of the loop over packets, for a program without calls.
    visits: Option<EntryOfVisits>,
    /// Bytes of machine code.
    pub size: usize,
    /// Most bytes of the processor's stack.
    stack: usize,
    /// Whether it calls functions that work on the machine, and not only on the run's pointers.
    pub asks: bool,
    /// Whether it may move the packet's ends.
    pub moves: bool,
}

/// Bytes of the largest frames on the processor's stack.
#[derive(Default)]
struct Frames {
    /// Of the program, and of targets of tail calls.
    programs: usize,
    /// Of functions that they call.
    called: usize,
}

impl Frames {
    /// Return address and frame pointer.
    const LINKAGE: usize = 16;

    fn note(&mut self, role: Role, bytes: u32) {
        let largest = if role == Role::Called { &mut self.called } else { &mut self.programs };
        *largest = (bytes as usize + Self::LINKAGE).max(*largest);
    }

    /// Most bytes at once: every tail call adds a frame, and the last program has those of functions below.
    fn most(&self, tail_calls: u8) -> usize {
        self.programs * (1 + usize::from(tail_calls)) + self.called * (MAX_FRAMES - 1)
    }
}

fn define(
    module: &mut JITModule,
    source: &Source<'_>,
    bodies: &[Body],
) -> Result<MachineCode, Box<ModuleError>> {
    let convention = module.isa().default_call_conv();
    let declare = |module: &mut JITModule, name: &str, role| {
        module.declare_function(name, Linkage::Local, &signature(convention, role)).map_err(Box::new)
    };
    let (mut functions, mut programs) = (BTreeMap::new(), BTreeMap::new());
    let mut made = Vec::with_capacity(bodies.len() + 1);
    for (number, body) in bodies.iter().enumerate() {
        let roles =
            [(Role::Program, number == 0), (Role::Called, body.is_called), (Role::Continued, body.goes_on)];
        for (role, _) in roles.into_iter().filter(|&(_, wanted)| wanted) {
            let id = declare(module, &format!("f{number}{role:?}"), role)?;
            match role {
                Role::Called => functions.insert(body.entry, id),
                Role::Continued => programs.insert(body.entry, id),
                Role::Program | Role::Visits => None,
            };
            made.push((id, body, role));
        }
    }
    let (mut asks, mut moves, count) = (false, false, made.len());
    let (mut context, mut scratch) = (module.make_context(), FunctionBuilderContext::new());
    let (mut size, mut done, mut frames) = (0, 0, Frames::default());
    while let Some(&(id, body, role)) = made.get(done) {
        context.func.signature = signature(convention, role);
        context.func.name = UserFuncName::user(0, id.as_u32());
        let (functions, programs) = (&functions, &programs);
        let callees = Callees { functions, programs, module, asks: &mut asks, moves: &mut moves };
        translate(source, (body, role), callees, &mut context.func, &mut scratch);
        module.define_function(id, &mut context)?;
        let code = context.compiled_code();
        size += code.map_or(0, |code| code.code_info().total_size as usize);
        let frame = code.and_then(|code| code.buffer.frame_layout());
        frames.note(role, frame.map_or(u32::MAX, |frame| frame.frame_to_fp_offset));
        module.clear_context(&mut context);
        done += 1;
        // Now it is known whether any of them calls the machine.
        if done == count && !asks {
            made.push((declare(module, "visits", Role::Visits)?, &bodies[0], Role::Visits));
        }
    }
    module.finalize_definitions()?;
    let code = module.get_finalized_function(made[0].0);
    // SAFETY: the function was defined above, with the signature of `Entry`.
    let entry = unsafe { std::mem::transmute::<*const u8, Entry>(code) };
    let visits = made.get(count).map(|&(id, ..)| {
        let code = module.get_finalized_function(id);
        // SAFETY: the function was defined above, with the signature of `EntryOfVisits`.
        unsafe { std::mem::transmute::<*const u8, EntryOfVisits>(code) }
    });
    let stack = frames.most(if programs.is_empty() { 0 } else { MAX_TAIL_CALLS });
    Ok(MachineCode { entry, visits, size, stack, asks, moves })
}

/// A program takes the run, or the arguments of [`EntryOfVisits`]; other functions take the run, `r1` to
/// `r5`, and `r10`. They return a [`ProgramEnd`] or a [`VisitProgress`] in two registers, as C does by
/// the calling conventions of the supported processors.
fn signature(convention: CallConv, role: Role) -> Signature {
    let takes = match role {
        Role::Program | Role::Continued => 1,
        Role::Visits => 6,
        Role::Called => 7,
    };
    let mut signature = Signature::new(convention);
    signature.params = vec![AbiParam::new(types::I64); takes];
    signature.returns = vec![AbiParam::new(types::I64); 2];
    signature
}

/// The code generator's description of this processor.
fn processor() -> Result<OwnedTargetIsa, CompileError> {
    static PROCESSOR: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    PROCESSOR.get_or_init(describe_processor).clone().map_err(CompileError::Processor)
}

fn describe_processor() -> Result<OwnedTargetIsa, String> {
    if cfg!(not(all(unix, target_pointer_width = "64", target_endian = "little"))) {
        return Err("it is not a little-endian one of 64 bits, under Unix".into());
    }
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("unwind_info", "false"),
        // The generator's own consistency checks, which cost as much as the rest.
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        flags.set(name, value).map_err(|error| error.to_string())?;
    }
    let builder = cranelift_native::builder()?;
    builder.finish(settings::Flags::new(flags)).map_err(|error| error.to_string())
}
