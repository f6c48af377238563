//! From functions to code in memory, and the code's life.
#![allow(unsafe_code)]

use crate::CompileError;
use crate::order::Body;
use crate::run::{Ended, Run};
use crate::translate::{Callees, Source, translate};
use cranelift_codegen::ir::{AbiParam, Signature, UserFuncName, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, ModuleError, default_libcall_names};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A compiled program in memory that can be read and executed, and not written.
pub struct Loaded {
    /// None after it was dropped.
    module: Option<JITModule>,
    entry: Entry,
    size: usize,
    /// Whether it calls functions that work on the machine.
    asks: bool,
    /// Whether it may move the packet's ends.
    moves: bool,
}

// SAFETY: after `load` the module is touched by nobody but `drop`, which has it alone; the code is never written again, and what it works on is
// given to it with each call.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// Runs the program.
    #[inline]
    pub fn enter(&self, run: &mut Run) -> Ended {
        // SAFETY: the code is in memory as long as `self` is, and was made with this signature. It touches the run, and the packet, stack,
        // state and maps' values that the run points to, each within its bounds, which it checks.
        unsafe { (self.entry)(&raw mut *run) }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether it works on the machine, and not only on what the run points to.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Whether it may move the packet's ends.
    pub fn moves(&self) -> bool {
        self.moves
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: `entry` is the only pointer into it that was ever given away; it is called with `self` borrowed, so not now, nor later.
            unsafe { module.free_memory() };
        }
    }
}

/// Compiles all functions, of which the first is the program.
pub fn load(source: &Source<'_>, bodies: &[Body]) -> Result<Loaded, CompileError> {
    let mut module = JITModule::new(JITBuilder::with_isa(processor()?, default_libcall_names()));
    let (mut asks, mut moves) = (false, false);
    match define(&mut module, source, bodies, (&mut asks, &mut moves)) {
        Ok((entry, size)) => Ok(Loaded { module: Some(module), entry, size, asks, moves }),
        Err(error) => {
            // SAFETY: nothing in it was ever called, and no pointer into it is kept.
            unsafe { module.free_memory() };
            Err(CompileError::Generator(error.to_string()))
        }
    }
}

type Entry = unsafe extern "C" fn(*mut Run) -> Ended;

fn define(
    module: &mut JITModule,
    source: &Source<'_>,
    bodies: &[Body],
    (asks, moves): (&mut bool, &mut bool),
) -> Result<(Entry, usize), Box<ModuleError>> {
    let convention = module.isa().default_call_conv();
    let mut functions = BTreeMap::new();
    let mut ids = Vec::with_capacity(bodies.len());
    for (number, body) in bodies.iter().enumerate() {
        let signature = signature(convention, number == 0);
        let id = module.declare_function(&format!("f{number}"), Linkage::Local, &signature)?;
        functions.insert(body.entry, id);
        ids.push(id);
    }
    let (mut context, mut scratch) = (module.make_context(), FunctionBuilderContext::new());
    let mut size = 0;
    for (number, body) in bodies.iter().enumerate() {
        context.func.signature = signature(convention, number == 0);
        context.func.name = UserFuncName::user(0, ids[number].as_u32());
        let callees =
            Callees { functions: &functions, module: &mut *module, asks: &mut *asks, moves: &mut *moves };
        translate(source, body, callees, &mut context.func, &mut scratch);
        module.define_function(ids[number], &mut context)?;
        size += context.compiled_code().map_or(0, |code| code.code_info().total_size as usize);
        module.clear_context(&mut context);
    }
    module.finalize_definitions()?;
    let code = module.get_finalized_function(ids[0]);
    // SAFETY: the function was defined above, with the signature of `Entry`.
    let entry = unsafe { std::mem::transmute::<*const u8, Entry>(code) };
    Ok((entry, size))
}

/// The program takes the run; other functions take `r1` to `r5` and `r10` besides. They give an [`Ended`] in two registers, which is how C gives it by the
/// conventions of the processors that are taken here.
fn signature(convention: CallConv, program: bool) -> Signature {
    let takes = if program { 1 } else { 7 };
    let mut signature = Signature::new(convention);
    signature.params = vec![AbiParam::new(types::I64); takes];
    signature.returns = vec![AbiParam::new(types::I64); 2];
    signature
}

/// The processor that this runs on, as the code generator knows it.
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
        // The generator's own checks of what it was given and has made, which cost as much as the rest.
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        flags.set(name, value).map_err(|error| error.to_string())?;
    }
    let builder = cranelift_native::builder()?;
    builder.finish(settings::Flags::new(flags)).map_err(|error| error.to_string())
}
