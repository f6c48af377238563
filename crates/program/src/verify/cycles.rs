//! Cycles of the paper's virtual router processor: the register operations of an instruction.
//!
//! "Building a Robust Software-Based Router Using Network Processors" counts register operations (tables 2
//! and 5), which take a cycle each (section 3.5), separately from transfers of state: its 240 cycles and 24
//! transfers are 24 blocks of ten register operations and one transfer (figure 9, section 4.3). A packet's
//! headers are in registers when a forwarder begins, and the address of its state is in another. So
//!
//! - a load or store of state or of a map's value is a transfer and no cycle; an atomic one takes a cycle for
//!   its operation;
//! - loading a whole register of the packet, 4 bytes at a constant multiple of 4, is no operation; a part of
//!   one, bytes of two, or a variable offset take one for each resulting register;
//! - storing into the packet is one operation for each of its registers that changes;
//! - register names are part of an instruction: loading, copying and moving by a constant the addresses of
//!   context, packet and state, comparing them with the packet's end, and requesting the state's, are no
//!   operations;
//! - calling a callback takes one more for each round (`rounds.rs`);
//! - a helper that copies or sums bytes takes one more for each 4 of them (`cost.rs`); hashes don't, because
//!   the processor has a hash unit and hashes are counted separately; nor does `lw_transport`, because the
//!   classifier has already found the header (section 4.5);
//! - everything else is one, whatever it does.

use super::state::Knowledge;
use super::value::Value;
use crate::{Arithmetic, ContextField, Helper, Instruction, Operand, Register, Size, Width};

/// Bytes of a register.
const WORD: i64 = 4;

/// The cycles of an instruction in the state before it.
pub fn cycles(instruction: &Instruction, state: &Knowledge) -> u32 {
    match *instruction {
        Instruction::Arithmetic { width: Width::W64, operation, dst, source } => {
            arithmetic(operation, dst, source, state)
        }
        Instruction::Load { size, base, offset, .. } => load(state.register(base), offset, size),
        // Extending the sign is a separate operation.
        Instruction::LoadExtended { size, base, offset, .. } => 1 + load(state.register(base), offset, size),
        Instruction::Store { size, base, offset, .. } => store(state.register(base), offset, size),
        Instruction::Branch { dst, source: Operand::Register(src), .. } => {
            let ends = |value| matches!(value, Value::PacketEnd);
            let (left, right) = (state.register(dst), state.register(src));
            let bounds = ends(left) && is_named(&right) || ends(right) && is_named(&left);
            u32::from(!bounds)
        }
        Instruction::Call { helper } => u32::from(Helper::from_number(helper) != Some(Helper::FlowState)),
        _ => 1,
    }
}

/// Whether it is the address of something in registers of the paper's processor, or of something whose
/// address is in a register from the beginning.
fn is_named(value: &Value) -> bool {
    matches!(value, Value::Context { .. } | Value::Packet { .. } | Value::PacketEnd | Value::State { .. })
}

fn arithmetic(operation: Arithmetic, dst: Register, source: Operand, state: &Knowledge) -> u32 {
    let free = match (operation, state.register(dst), state.operand(source)) {
        (Arithmetic::Mov, _, value) => is_named(&value),
        (Arithmetic::Add | Arithmetic::Sub, address, Value::Number { scalar, .. })
        | (Arithmetic::Add, Value::Number { scalar, .. }, address) => {
            is_named(&address) && scalar.as_constant().is_some()
        }
        _ => false,
    };
    u32::from(!free)
}

/// Offset of an access in the packet, if constant.
fn place(value: Value, offset: i16) -> Option<i64> {
    match value {
        Value::Packet { origin: 0, fixed } => Some(fixed + i64::from(offset)),
        _ => None,
    }
}

fn load(base: Value, offset: i16, size: Size) -> u32 {
    let bytes = size.bytes() as i64;
    match base {
        Value::State { .. } | Value::Map { .. } => 0,
        Value::Context { offset: at } => {
            let field = ContextField::at(at + i64::from(offset));
            let address =
                matches!(field, Some(ContextField::Data | ContextField::DataMeta | ContextField::DataEnd));
            u32::from(!address)
        }
        Value::Packet { .. } => match place(base, offset) {
            Some(place) if place % WORD == 0 && bytes % WORD == 0 => 0,
            _ => bytes.div_euclid(WORD).max(1) as u32,
        },
        _ => 1,
    }
}

fn store(base: Value, offset: i16, size: Size) -> u32 {
    let bytes = size.bytes() as i64;
    match base {
        Value::State { .. } | Value::Map { .. } => 0,
        Value::Packet { .. } => {
            // Variable offsets have the worst alignment.
            let first = place(base, offset).map_or(WORD - 1, |place| place.rem_euclid(WORD));
            ((first + bytes - 1) / WORD + 1) as u32
        }
        _ => 1,
    }
}
