//! Helper calls, checked against their signatures.

use super::access::{AccessBounds, AccessRequest, Mode, written};
use super::cost::helper_cost;
use super::error::{Rejection, Result};
use super::explore::Explorer;
use super::scalar::Scalar;
use super::state::{Flow, Knowledge};
use super::value::{MapOrigin, Value};
use crate::map::MAX_RECORD;
use crate::memory::Region;
use crate::{Argument, Effects, Helper, Instruction, MAX_SIZE, MapSpec, Register, Returns, kernel_name};

/// Maximum growth of a packet in bytes that is priced.
const MAX_GROWTH: i64 = 65_535;

/// A helper call, with its map.
struct Call<'p> {
    helper: Helper,
    map: Option<(MapOrigin, &'p MapSpec)>,
}

impl<'p> Explorer<'p> {
    pub fn call(&mut self, index: usize, state: &mut Knowledge, number: u32) -> Result<Flow> {
        let unknown =
            Rejection::UnknownHelper { number, name: kernel_name(number).unwrap_or("of no known name") };
        let helper = Helper::from_number(number).ok_or(unknown)?;
        let signature = helper.signature();
        for argument in 0..signature.arguments.len() {
            self.readable(state, register(argument))?;
        }
        let map = self.map_argument(state, helper)?;
        let call = Call { helper, map };
        if matches!(helper, Helper::RedirectLink | Helper::ChooseLink) {
            self.note_link(state.register(Register::R1).as_scalar().unwrap_or(Scalar::ANY));
        }
        if helper == Helper::Drop {
            reason(state)?;
        }
        let record = match signature.arguments.first() {
            Some(&wanted @ Argument::Record) => {
                let found = state.register(Register::R1).what();
                let wrong = Rejection::Argument { helper, number: 1, wanted, found };
                Some(self.record(state, Register::R1, wrong)?)
            }
            _ => None,
        };
        let mut outputs = Vec::new();
        for (argument, &wanted) in signature.arguments.iter().enumerate() {
            self.argument(state, &call, argument, wanted, &mut outputs)?;
        }
        let worked_on = bytes(state, helper);
        let known = map.and_then(|(map, _)| match map {
            MapOrigin::Map(map) => Some(map),
            MapOrigin::Inner(_) => None,
        });
        self.note_call(index, helper, known, worked_on);
        let cost = helper_cost(helper, map.map(|(_, map)| map), worked_on, self.program.workers);
        self.cost = self.cost.plus(&cost);
        if helper == Helper::Loop {
            return self.begin_loop(index, state);
        }
        if matches!(helper, Helper::SpinLock | Helper::SpinUnlock) {
            self.lock(state, helper)?;
        }
        if helper == Helper::TailCall {
            self.tail_call(index, state, &call)?;
        }
        for (reached, certain) in outputs {
            output(state, &reached, certain);
        }
        let returned = match (signature.returns, map) {
            (Returns::RecordOrNull, Some((map @ MapOrigin::Map(ring), _))) => {
                let size = state.register(Register::R2).as_scalar().map_or(0, |size| size.max as u32);
                let object = self.reserve(state, index, (ring, size))?;
                Value::Map { map, object, offset: Scalar::constant(0), nullable: true }
            }
            _ => self.returned(state, &call),
        };
        if let Some(record) = record {
            state.release(record);
        }
        for argument in 0..5 {
            state.set(register(argument), Value::Unset);
        }
        state.set(Register::R0, returned);
        if signature.moves_packet {
            state.move_packet();
        }
        Ok(Flow::Next)
    }

    /// The map argument of a helper.
    fn map_argument(&self, state: &Knowledge, helper: Helper) -> Result<Option<(MapOrigin, &'p MapSpec)>> {
        let place = helper.signature().arguments.iter().position(|argument| *argument == Argument::Map);
        let Some(place) = place else { return Ok(None) };
        let value = state.register(register(place));
        let Value::Handle { map } = value else {
            let (number, wanted, found) = (place as u8 + 1, Argument::Map, value.what());
            return Err(Rejection::Argument { helper, number, wanted, found });
        };
        let spec = self.spec(map)?;
        if !spec.kind.serves(helper) {
            return Err(Rejection::MapKind { helper, map: spec.name.clone(), kind: spec.kind });
        }
        if spec.read_only && matches!(helper, Helper::MapUpdate | Helper::MapDelete) {
            return Err(Rejection::ReadOnly { map: spec.name.clone() });
        }
        Ok(Some((map, spec)))
    }

    /// Whether it is the address of a value's lock.
    fn is_lock(&self, value: &Value) -> bool {
        let Value::Map { map, offset, nullable: false, .. } = value else { return false };
        let lock = self.spec(*map).ok().and_then(|spec| spec.lock).map(u64::from);
        lock.is_some() && offset.as_constant() == lock
    }

    /// Records that a lock is taken or released.
    fn lock(&mut self, state: &mut Knowledge, helper: Helper) -> Result<()> {
        let Value::Map { map, object, .. } = state.register(Register::R1) else { return Ok(()) };
        let (before, after) = match helper {
            Helper::SpinLock => (None, Some((map, object))),
            _ => (Some((map, object)), None),
        };
        if state.locked != before {
            return Err(Rejection::NotLocked);
        }
        state.locked = after;
        Ok(())
    }

    /// Checks that an instruction is allowed while a lock is held, if one is.
    pub fn check_locked(&self, index: usize, state: &Knowledge) -> Result<()> {
        let may = match self.program.code.instructions()[index] {
            Instruction::Call { helper } => helper == Helper::SpinUnlock.number(),
            Instruction::CallLocal { .. } | Instruction::Exit => false,
            _ => true,
        };
        if may || state.locked.is_none() { Ok(()) } else { Err(Rejection::Locked) }
    }

    /// Records the targets of a tail call. They inherit no knowledge.
    fn tail_call(&mut self, index: usize, state: &Knowledge, call: &Call<'_>) -> Result<()> {
        if state.depth() > 0 {
            return Err(Rejection::TailCallInFunction);
        }
        self.all_given_back(state)?;
        let Some((_, map)) = call.map else { return Ok(()) };
        let entry = state.register(Register::R3).as_scalar().unwrap_or(Scalar::ANY).low_half();
        // Arrays may have a million entries, and all up to the last are passed in each visit.
        self.compare((map.initial.len() / 4).min(entry.max as usize + 1));
        for number in map.programs(entry.min as u32, entry.max as u32) {
            self.note_tail_call(index, number, map)?;
        }
        Ok(())
    }

    fn argument(
        &mut self,
        state: &mut Knowledge,
        call: &Call<'_>,
        argument: usize,
        wanted: Argument,
        outputs: &mut Vec<(AccessBounds, usize)>,
    ) -> Result<()> {
        let value = state.register(register(argument));
        let helper = call.helper;
        let wrong = Rejection::Argument { helper, number: argument as u8 + 1, wanted, found: value.what() };
        match wanted {
            // These were checked before.
            Argument::Map | Argument::Record => Ok(()),
            Argument::Number => value.as_scalar().map(|_| ()).ok_or(wrong),
            Argument::Context if value == (Value::Context { offset: 0 }) => Ok(()),
            Argument::Context => Err(wrong),
            Argument::Function if matches!(value, Value::Function { .. }) => Ok(()),
            Argument::StackOrNull if matches!(value, Value::Stack { .. }) || is_null(&value) => Ok(()),
            Argument::Lock => self.is_lock(&value).then_some(()).ok_or(wrong),
            Argument::Function | Argument::StackOrNull => Err(wrong),
            Argument::StateSize => {
                let constant = value.as_scalar().and_then(|scalar| scalar.as_constant()).ok_or(wrong)?;
                within(helper, argument, Scalar::constant(constant), 1, crate::ProgramState::MAX)?;
                self.note_state(constant as u32);
                Ok(())
            }
            Argument::Size | Argument::SizeOrZero => {
                let scalar = value.as_scalar().ok_or(wrong)?;
                within(helper, argument, scalar, u64::from(wanted == Argument::Size), MAX_SIZE)
            }
            Argument::PayloadSize => within(helper, argument, value.as_scalar().ok_or(wrong)?, 0, MAX_RECORD),
            Argument::RecordSize => {
                let constant = value.as_scalar().and_then(|scalar| scalar.as_constant()).ok_or(wrong)?;
                within(helper, argument, Scalar::constant(constant), 0, MAX_RECORD)
            }
            Argument::Key | Argument::Value => {
                let (key, value) = call.map.map_or((0, 0), |(_, map)| (map.key_size, map.value_size));
                let size = if wanted == Argument::Key { key } else { value };
                self.memory(state, call, argument, Mode::Read, size).map(|_| ())
            }
            Argument::ReadableOrNull if is_null(&value) => {
                let size = state.register(register(argument + 1)).as_scalar().unwrap_or(Scalar::ANY);
                within(helper, argument + 1, size, 0, 0)
            }
            Argument::Readable
            | Argument::ReadableOrNull
            | Argument::Payload
            | Argument::Writable
            | Argument::Changed => {
                let limit = if wanted == Argument::Payload { MAX_RECORD } else { MAX_SIZE };
                let next = state.register(register(argument + 1)).as_scalar();
                let size = next.filter(|size| size.max <= u64::from(limit)).unwrap_or(Scalar::constant(0));
                let modes: &[Mode] = match wanted {
                    Argument::Writable => &[Mode::Write],
                    Argument::Changed => &[Mode::Read, Mode::Write],
                    _ => &[Mode::Read],
                };
                for &mode in modes {
                    let reached = self.memory(state, call, argument, mode, size.max as u32)?;
                    if mode == Mode::Write {
                        outputs.push((reached, size.min as usize));
                    }
                }
                Ok(())
            }
        }
    }

    /// Memory arguments of a helper.
    fn memory(
        &mut self,
        state: &mut Knowledge,
        call: &Call<'_>,
        argument: usize,
        mode: Mode,
        size: u32,
    ) -> Result<AccessBounds> {
        let register = register(argument);
        if !matches!(state.register(register), Value::Context { .. }) {
            let wanted = AccessRequest { register, offset: 0, size, mode, aligned: false };
            let reached = self.reach(state, wanted)?;
            if mode == Mode::Read && reached.region == Region::Stack {
                written(state, reached.stack)?;
            }
            self.note_touch(&wanted, &reached);
            return Ok(reached);
        }
        let wanted = call.helper.signature().arguments[argument];
        let (helper, number, found) = (call.helper, argument as u8 + 1, "the context");
        Err(Rejection::Argument { helper, number, wanted, found })
    }

    fn returned(&mut self, state: &Knowledge, call: &Call<'_>) -> Value {
        let start = Scalar::constant(0);
        match (call.helper.signature().returns, call.map) {
            (Returns::MapValueOrNull, Some((MapOrigin::Map(outer), map))) if map.kind.is_of_maps() => {
                Value::Held { outer, object: self.fresh() }
            }
            (Returns::MapValueOrNull, Some((map, _))) => {
                Value::Map { map, object: self.fresh(), offset: start, nullable: true }
            }
            (Returns::Nothing, _) => Value::Unset,
            (Returns::State, _) => {
                let size = state.register(Register::R1).as_scalar().map_or(0, |size| size.max as u32);
                Value::State { size, offset: start }
            }
            _ => match call.helper {
                Helper::Random | Helper::Worker | Helper::ReadMark => {
                    Value::number(Scalar::between(0, u64::from(u32::MAX)))
                }
                _ => Value::ANY,
            },
        }
    }
}

/// Register of an argument, counted from 0.
fn register(argument: usize) -> Register {
    Register::ARGUMENTS[argument.min(4)]
}

fn is_null(value: &Value) -> bool {
    value.as_scalar().and_then(|scalar| scalar.as_constant()) == Some(0)
}

fn within(helper: Helper, argument: usize, scalar: Scalar, low: u64, high: u32) -> Result<()> {
    let (number, high) = (argument as u8 + 1, u64::from(high));
    if scalar.min >= low && scalar.max <= high {
        return Ok(());
    }
    let Scalar { min, max, .. } = scalar;
    Err(Rejection::ArgumentRange { helper, number, low, high, min, max })
}

/// Checks for a reason that is certainly out of range. One known only at run time may be out of range, and is
/// then "other". The helper uses the lower half.
fn reason(state: &Knowledge) -> Result<()> {
    let low = state.register(Register::R1).as_scalar().unwrap_or(Scalar::ANY).low_half();
    let high = u64::from(Effects::REASONS) - 1;
    if low.min <= high {
        return Ok(());
    }
    let (helper, number, min, max) = (Helper::Drop, 1, low.min, low.max);
    Err(Rejection::ArgumentRange { helper, number, low: 0, high, min, max })
}

/// Most bytes that a helper processes.
fn bytes(state: &Knowledge, helper: Helper) -> u32 {
    let most = |register| state.register(register).as_scalar().map_or(0, |scalar| scalar.max as u32);
    match helper {
        Helper::ChecksumDiff => most(Register::R2) + most(Register::R4),
        Helper::Hash => most(Register::R2),
        Helper::LoadBytes | Helper::StoreBytes => most(Register::R4),
        Helper::RingOutput => most(Register::R3),
        // The number of packet bytes is in the upper half of the flags, and limited by the packet.
        Helper::PerfOutput => {
            let flags = state.register(Register::R3).as_scalar().unwrap_or(Scalar::ANY);
            let packet = flags.max.min(flags.bits.max()) >> 32;
            most(Register::R5).saturating_add(packet.min(MAX_GROWTH as u64) as u32)
        }
        // New bytes at the end are zeroed. The helper uses the lower half as a signed number.
        Helper::AdjustTail => {
            let by = state.register(Register::R2).as_scalar().unwrap_or(Scalar::ANY);
            by.extend(crate::Size::Word, crate::Width::W64).signed_max.clamp(0, MAX_GROWTH) as u32
        }
        // Two words of each parsed header, including IP's own.
        Helper::Transport => (longwire_wire::MAX_EXTENSIONS as u32 + 1) * 8,
        _ => 0,
    }
}

/// Records a helper's output: `certain` bytes are written, others may be.
fn output(state: &mut Knowledge, reached: &AccessBounds, certain: usize) {
    if reached.region != Region::Stack {
        return;
    }
    let (frame, start, end) = reached.stack;
    state.frames[frame].forget(start, end);
    if reached.exact {
        state.frames[frame].write(start, start + certain);
    }
}
