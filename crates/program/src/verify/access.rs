//! Loads, stores and atomic operations: checks that every byte that may be accessed belongs to the program.

use super::error::{Rejection, Result};
use super::explore::Explorer;
use super::scalar::Scalar;
use super::state::{Flow, Knowledge, LINE, Object};
use super::value::{Id, MapOrigin, Value};
use crate::memory::{FRAME_SIZE, Region, STACK_SIZE};
use crate::{Arithmetic, Atomic, ContextField, Instruction, Item, Operand, Register, Size, Width};

/// Kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Read,
    Write,
    /// Atomic: both.
    Change,
    /// Atomic without a result: memory receives only an operand.
    Update,
}

impl Mode {
    const fn is_change(self) -> bool {
        matches!(self, Self::Change | Self::Update)
    }
}

/// Bytes that may be accessed: by an instruction, aligned to the size except in packets, or by a helper.
#[derive(Debug, Clone, Copy)]
pub struct AccessRequest {
    pub register: Register,
    pub offset: i64,
    pub size: u32,
    pub mode: Mode,
    pub aligned: bool,
}

/// Bytes that are in bounds.
#[derive(Debug, Clone, Copy)]
pub struct AccessBounds {
    pub region: Region,
    /// Offset in the region, if always the same.
    pub place: Option<u32>,
    /// Of a stack frame: its number, the first byte and the one after the last, from the lower end.
    pub stack: (usize, usize, usize),
    /// Whether `stack` is exactly what is accessed, not only an upper bound.
    pub exact: bool,
    /// Whether the region is one of several of the same kind.
    pub varies: bool,
    /// The value of constant bytes.
    constant: Option<u64>,
    lines: u32,
}

const FRAME: i64 = FRAME_SIZE as i64;

impl Explorer<'_> {
    pub fn load_extended(
        &mut self,
        index: usize,
        state: &mut Knowledge,
        size: Size,
        wanted: AccessRequest,
    ) -> Result<Value> {
        if let Value::Context { offset } = state.register(wanted.register) {
            return Err(Rejection::ContextField { offset: offset + wanted.offset, size: wanted.size });
        }
        let value = self.load(index, state, size, wanted)?;
        let scalar = value.as_scalar().unwrap_or_else(|| Scalar::of_size(size));
        Ok(Value::number(scalar.extend(size, Width::W64)))
    }

    pub fn load(
        &mut self,
        index: usize,
        state: &mut Knowledge,
        size: Size,
        wanted: AccessRequest,
    ) -> Result<Value> {
        if let Value::Context { offset } = state.register(wanted.register) {
            let at = offset + wanted.offset;
            self.note_access(index, Some(Region::Context), u32::try_from(at).ok())?;
            return field(at, size);
        }
        let reached = self.access(index, state, wanted)?;
        self.loaded(state, &reached, size)
    }

    pub fn store(&mut self, index: usize, state: &mut Knowledge, instruction: Instruction) -> Result<Flow> {
        let Instruction::Store { size, base, offset, source } = instruction else { return Ok(Flow::Next) };
        let value = match source {
            Operand::Register(register) => {
                self.readable(state, register)?;
                let linked = size == Size::Double && register != Register::FRAME;
                if linked { state.link(register, || self.fresh()) } else { state.register(register) }
            }
            Operand::Immediate(_) => state.operand(source),
        }
        .handed_over();
        let wanted = instruction_bytes(base, offset, size, Mode::Write);
        let reached = self.access(index, state, wanted)?;
        if reached.region != Region::Stack {
            return Ok(Flow::Next);
        }
        let (frame, start, end) = reached.stack;
        let frame = &mut state.frames[frame];
        match (reached.exact, value) {
            (false, _) => frame.forget(start, end),
            (true, value) if size == Size::Double => frame.store(start, size.bytes(), value),
            (true, Value::Number { scalar, .. }) => {
                frame.store(start, size.bytes(), Value::number(scalar.cut(size)));
            }
            (true, _) => frame.write(start, end),
        }
        Ok(Flow::Next)
    }

    pub fn change(&mut self, index: usize, state: &mut Knowledge, instruction: Instruction) -> Result<Flow> {
        let Instruction::Atomic { width, operation, base, offset, src } = instruction else {
            return Ok(Flow::Next);
        };
        self.readable(state, src)?;
        if operation == Atomic::CompareExchange {
            self.readable(state, Register::R0)?;
        }
        let size = width.size();
        let mode = if instruction.writes().is_some() { Mode::Change } else { Mode::Update };
        let reached = self.access(index, state, instruction_bytes(base, offset, size, mode))?;
        if reached.region == Region::Stack {
            self.loaded(state, &reached, size)?;
            let (frame, start, end) = reached.stack;
            state.frames[frame].forget(start, end);
        }
        if let Some(register) = instruction.writes() {
            state.set(register, Value::number(Scalar::of_size(size)));
        }
        Ok(Flow::Next)
    }

    /// The result of a load.
    fn loaded(&self, state: &Knowledge, reached: &AccessBounds, size: Size) -> Result<Value> {
        if reached.region == Region::Stack {
            let (frame, start, _) = reached.stack;
            if let Some(value) = state.frames[frame].load(start, size.bytes()).filter(|_| reached.exact) {
                return Ok(value);
            }
            written(state, reached.stack)?;
        }
        Ok(reached.constant.map_or(Value::number(Scalar::of_size(size)), Value::constant))
    }

    /// Checks that all bytes that may be accessed exist and permit it.
    pub fn reach(&mut self, state: &mut Knowledge, wanted: AccessRequest) -> Result<AccessBounds> {
        let AccessRequest { register, offset, size, mode, .. } = wanted;
        let end = offset + i64::from(size);
        match state.register(register) {
            Value::Context { .. } if mode != Mode::Read => Err(Rejection::ContextWrite),
            Value::Packet { origin, fixed } => {
                let (least, proven) = state.packet_place(origin, fixed);
                if mode.is_change() {
                    return Err(Rejection::AtomicPacket);
                }
                if least.saturating_add(offset) < 0 {
                    return Err(Rejection::PacketBefore { first: least.saturating_add(offset) });
                }
                if end > proven {
                    let proven = Some(proven).filter(|proven| proven.unsigned_abs() < 1 << 32);
                    return Err(Rejection::PacketUnchecked { register, end, proven });
                }
                Ok(AccessBounds::new(Region::Packet))
            }
            Value::Stack { frame, offset: at } => {
                let (first, end) = bounds("the stack frame", wanted, at, -FRAME, 0)?;
                let bottom = (STACK_SIZE - usize::from(frame) * FRAME_SIZE) as i64;
                let exact = end - first == i64::from(size);
                let place = exact.then_some((bottom + first) as u32);
                let stack = (usize::from(frame), (first + FRAME) as usize, (end + FRAME) as usize);
                Ok(AccessBounds { place, stack, exact, ..AccessBounds::new(Region::Stack) })
            }
            Value::State { size: length, offset: at } => {
                let (first, end) = bounds("the state", wanted, at, 0, i64::from(length))?;
                let place = (end - first == i64::from(size)).then_some(first as u32);
                let lines = touch(state, Object::State, wanted, first, end);
                Ok(AccessBounds { place, lines, ..AccessBounds::new(Region::State) })
            }
            Value::Map { map, nullable: true, .. } => Err(self.maybe_null(register, map)?),
            Value::Map { map, object, offset: at, nullable: false } => {
                let spec = self.spec(map)?;
                if spec.kind.is_ring() {
                    return in_record(state, wanted, object, (at, &spec.name));
                }
                if mode != Mode::Read && spec.kind.is_targets() {
                    return Err(Rejection::TargetWrite { map: spec.name.clone() });
                }
                if mode != Mode::Read && spec.read_only {
                    return Err(Rejection::ReadOnly { map: spec.name.clone() });
                }
                let what = format!("a value of map {}", spec.name);
                let (first, end) = bounds(&what, wanted, at, 0, i64::from(spec.value_size))?;
                let lines = touch(state, Object::Value(object), wanted, first, end);
                // Both are within the value, and so not negative.
                if spec.touches_lock(first as usize, end as usize) {
                    return Err(Rejection::LockBytes { map: spec.name.clone() });
                }
                let exact = end - first == i64::from(size);
                let constant = if exact { spec.constant(first as usize, size as usize) } else { None };
                // Only the address tells which of the maps in a map of maps it is.
                let (MapOrigin::Map(number) | MapOrigin::Inner(number)) = map;
                let varies = matches!(map, MapOrigin::Inner(_));
                Ok(AccessBounds { lines, constant, varies, ..AccessBounds::new(Region::Map(number)) })
            }
            other => Err(Rejection::not_address(register, &other)),
        }
    }

    /// Error for an unchecked result of a lookup, or of a record's reservation.
    pub fn maybe_null(&self, register: Register, map: MapOrigin) -> Result<Rejection> {
        let spec = self.spec(map)?;
        let map = spec.name.clone();
        Ok(if spec.kind.is_ring() {
            Rejection::MaybeFull { register, map }
        } else {
            Rejection::MaybeNull { register, map }
        })
    }

    /// Checks and records the access of an instruction.
    fn access(&mut self, index: usize, state: &mut Knowledge, wanted: AccessRequest) -> Result<AccessBounds> {
        let reached = self.reach(state, wanted)?;
        self.note_access(index, Some(reached.region).filter(|_| !reached.varies), reached.place)?;
        self.note_touch(&wanted, &reached);
        Ok(reached)
    }

    /// Counts an access to these bytes, in addition to its instruction.
    pub fn note_touch(&mut self, wanted: &AccessRequest, reached: &AccessBounds) {
        let (reads, writes) = (u32::from(wanted.mode != Mode::Write), u32::from(wanted.mode != Mode::Read));
        let (times, size, lines) = (reads + writes, wanted.size, reached.lines);
        // An atomic addition sends only the number to memory: the paper's counter of SYNs is 4 bytes read or
        // written, and needs no register (table 5).
        let transfers = if wanted.mode == Mode::Update { 1 } else { times };
        let mut add = |item, count| self.cost[item] += count;
        add(Item::Atomic, u32::from(wanted.mode.is_change()));
        match reached.region {
            Region::Packet => {
                add(Item::PacketLoad, reads);
                add(Item::PacketStore, writes);
            }
            Region::State => {
                add(Item::StateAccess, times);
                add(Item::StateTransfer, transfers * size.div_ceil(4));
                add(Item::StateByte, transfers * size);
                add(Item::StateLine, lines);
            }
            Region::Map(_) => {
                add(Item::MapAccess, times);
                add(Item::MapTransfer, transfers * size.div_ceil(4));
                add(Item::MapLine, lines);
            }
            Region::Context | Region::Stack | Region::Handle(_) | Region::Code => {}
        }
    }

    pub fn readable_operand(&self, state: &Knowledge, operand: Operand) -> Result<Value> {
        match operand {
            Operand::Register(register) => self.readable(state, register),
            Operand::Immediate(_) => Ok(state.operand(operand)),
        }
    }

    pub fn readable(&self, state: &Knowledge, register: Register) -> Result<Value> {
        match state.register(register) {
            Value::Unset => Err(Rejection::Unwritten { register }),
            value => Ok(value),
        }
    }
}

impl AccessBounds {
    fn new(region: Region) -> Self {
        Self { region, place: None, stack: (0, 0, 0), exact: false, varies: false, constant: None, lines: 0 }
    }
}

/// Checks bytes of a reserved record.
fn in_record(
    state: &mut Knowledge,
    wanted: AccessRequest,
    object: Id,
    (at, ring): (Scalar, &str),
) -> Result<AccessBounds> {
    let record = state.open.iter().find(|record| record.object == object);
    // Rings can't be in maps of maps, and released records have no addresses.
    let (map, size) = record.map_or((0, 0), |record| (record.map, i64::from(record.size)));
    let (first, end) = bounds(&format!("a record of ring {ring}"), wanted, at, 0, size)?;
    let lines = touch(state, Object::Value(object), wanted, first, end);
    Ok(AccessBounds { lines, ..AccessBounds::new(Region::Map(map)) })
}

/// Checks that all these bytes of a stack frame are initialized.
pub fn written(state: &Knowledge, (frame, start, end): (usize, usize, usize)) -> Result<()> {
    match state.frames[frame].unwritten(start, end) {
        Some(at) => Err(Rejection::StackUnwritten { offset: at as i64 - FRAME }),
        None => Ok(()),
    }
}

pub fn instruction_bytes(register: Register, offset: i16, size: Size, mode: Mode) -> AccessRequest {
    AccessRequest { register, offset: i64::from(offset), size: size.bytes() as u32, mode, aligned: true }
}

/// The first byte that may be accessed and the one after the last, in memory that has the bytes from `low` to
/// before `high`.
fn bounds(what: &str, wanted: AccessRequest, at: Scalar, low: i64, high: i64) -> Result<(i64, i64)> {
    let first = at.signed_min.saturating_add(wanted.offset);
    let end = at.signed_max.saturating_add(wanted.offset).saturating_add(i64::from(wanted.size));
    if first < low || end > high {
        let (last, high) = (end - 1, high - 1);
        return Err(Rejection::Bounds { what: what.into(), first, last, low, high });
    }
    let place = at.apply(Arithmetic::Add, Width::W64, Scalar::constant(wanted.offset as u64));
    if wanted.aligned && !place.is_aligned(u64::from(wanted.size)) {
        return Err(Rejection::Misaligned { what: what.into(), size: wanted.size });
    }
    Ok((first, end))
}

/// Number of lines that may be accessed for the first time.
fn touch(state: &mut Knowledge, object: Object, wanted: AccessRequest, first: i64, end: i64) -> u32 {
    if wanted.aligned {
        return u32::from(state.touch(object, first, end - 1));
    }
    wanted.size.div_ceil(LINE as u32) + 1
}

fn field(offset: i64, size: Size) -> Result<Value> {
    let fault = Rejection::ContextField { offset, size: size.bytes() as u32 };
    match ContextField::at(offset).filter(|_| size == Size::Word).ok_or(fault)? {
        // There is no metadata: it begins and ends at the packet.
        ContextField::Data | ContextField::DataMeta => Ok(Value::Packet { origin: 0, fixed: 0 }),
        ContextField::DataEnd => Ok(Value::PacketEnd),
        ContextField::Ingress | ContextField::Queue | ContextField::Egress => {
            Ok(Value::number(Scalar::of_size(size)))
        }
    }
}
