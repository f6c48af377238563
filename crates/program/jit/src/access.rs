//! Loads, stores and atomic operations.
//!
//! If the region of an access is known, it is carried out inline after one comparison: the address minus the
//! region's first address is an offset in the region only if the address is in it, and a huge number
//! otherwise. Else the machine carries it out.

use crate::KnownAccesses;
use crate::run::{self, SIGNED, offset, operation_number};
use crate::translate::{Role, Translator, type_of_size};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, BlockArg, InstBuilder, MemFlagsData, Value, types};
use longwire_program::memory::{STACK_SIZE, frame_pointer};
use longwire_program::{Atomic, ContextField, Instruction, Map, Region, Register, Size, Width};

/// The effect of an instruction on memory.
#[derive(Clone, Copy)]
enum MemoryEffect {
    Load { extended: bool },
    Store { value: Value },
    Change { operation: Atomic, src: Value, r0: Value },
}

/// An access in the translator.
#[derive(Clone, Copy)]
struct Access {
    size: Size,
    base: Register,
    offset: i16,
    work: MemoryEffect,
}

/// A location in the process.
#[derive(Clone, Copy)]
struct Place {
    pointer: Value,
    offset: i32,
    memory: MemFlagsData,
}

impl Translator<'_, '_> {
    /// Translates an instruction that accesses memory.
    pub fn access(&mut self, instruction: Instruction) {
        let access = match instruction {
            Instruction::Load { size, base, offset, .. } => {
                Access { size, base, offset, work: MemoryEffect::Load { extended: false } }
            }
            Instruction::LoadExtended { size, base, offset, .. } => {
                Access { size, base, offset, work: MemoryEffect::Load { extended: true } }
            }
            Instruction::Store { size, base, offset, source } => {
                let value = self.operand(Width::W64, source);
                Access { size, base, offset, work: MemoryEffect::Store { value } }
            }
            Instruction::Atomic { width, operation, base, offset, src } => {
                let size = width.size();
                let (src, r0) = (self.read(src), self.read(Register::R0));
                Access { size, base, offset, work: MemoryEffect::Change { operation, src, r0 } }
            }
            _ => return,
        };
        let value = self.lowered(&access);
        if let (Some(register), Some(value)) = (instruction.writes(), value) {
            self.write(register, value);
        }
    }

    fn proven(&self) -> bool {
        matches!(self.source.known, KnownAccesses::Facts(_))
    }

    /// Emits an access: unchecked if its location is known and valid, after a comparison if only its region
    /// is known, else by the machine.
    fn lowered(&mut self, access: &Access) -> Option<Value> {
        let (region, place) = self.known(self.index);
        // The frame of the program itself is always at one place.
        let own_frame = self.role != Role::Called && access.base == Register::FRAME;
        let in_frame = (frame_pointer(0) as u32).checked_add_signed(i32::from(access.offset));
        let (region, place) = if own_frame { (Some(Region::Stack), in_frame) } else { (region, place) };
        let Some(region) = region.filter(|&region| self.has_code(access, region)) else {
            return self.by_machine(access);
        };
        // The bytes whose places are fixed.
        let room = match region {
            Region::Stack => STACK_SIZE,
            Region::State => self.source.state_size as usize,
            Region::Context => ContextField::TOTAL,
            _ => 0,
        };
        let size = access.size.bytes();
        let within = |place: &u32| *place as usize + size <= room && (*place as usize).is_multiple_of(size);
        match (region, place.filter(within)) {
            (Region::Stack, Some(place)) => {
                let place = self.place(offset::STACK, place as i32, self.memory.stack);
                self.carry_out(access, place)
            }
            (Region::State, Some(place)) => {
                let place = self.place(offset::STATE, place as i32, self.memory.words);
                self.carry_out(access, place)
            }
            (Region::Context, Some(place)) => Some(self.field(place as usize / size)),
            _ => self.checked(access, region),
        }
    }

    /// What is known about the access of an instruction: its region, and the offset there.
    fn known(&self, index: usize) -> (Option<Region>, Option<u32>) {
        match self.source.known {
            KnownAccesses::Facts(facts) => {
                let known = facts.get(index).and_then(|fact| fact.access);
                known.map_or((None, None), |known| (known.region, known.place))
            }
            KnownAccesses::Hints(hints) => (hints.get(index).copied().flatten(), None),
        }
    }

    /// Whether anything reads the packet's data from the run: called functions, and accesses to the context
    /// at an unknown offset.
    pub fn reads_run(&self) -> bool {
        let calls = !(self.callees.functions.is_empty() && self.callees.programs.is_empty());
        let mut indices = 0..self.source.code.instructions().len();
        calls || indices.any(|index| self.known(index) == (Some(Region::Context), None))
    }

    /// Whether this access to this region can be compiled inline.
    fn has_code(&self, access: &Access, region: Region) -> bool {
        match (region, access.work) {
            (Region::Context, MemoryEffect::Load { extended }) => access.size == Size::Word && !extended,
            (Region::Packet, work) => !matches!(work, MemoryEffect::Change { .. }),
            (Region::Map(map), work) => self.map(map).is_some_and(|map| {
                let writable = !map.spec().is_read_only() || matches!(work, MemoryEffect::Load { .. });
                // Only the verifier knows whether the lock is accessed, and where a record ends.
                let bounded = map.spec().lock.is_none() && !map.spec().kind.is_ring() || self.proven();
                writable && bounded && map.values().len() >= access.size.bytes()
            }),
            (Region::Stack | Region::State, _) => true,
            (Region::Context | Region::Handle(_) | Region::Code, _) => false,
        }
    }

    fn map(&self, index: u16) -> Option<&Map> {
        self.source.maps.at(u32::from(index))
    }

    fn place(&mut self, base: i32, offset: i32, memory: MemFlagsData) -> Place {
        let pointer = self.of_run(base);
        Place { pointer, offset, memory }
    }

    /// An access that is probably in this region.
    fn checked(&mut self, access: &Access, region: Region) -> Option<Value> {
        let address = self.address(access);
        let (within, at) = self.within(access, region, address);
        if self.proven() {
            self.require(within, address);
            let place = self.located(region, at);
            return self.carry_out_in(access, region, place);
        }
        let (here, elsewhere, after) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(elsewhere);
        self.builder.append_block_param(after, types::I64);
        self.builder.ins().brif(within, here, [], elsewhere, []);
        self.enter_block(here);
        let place = self.located(region, at);
        let done = self.carry_out_in(access, region, place);
        self.join(done, after);
        self.enter_block(elsewhere);
        let done = self.by_machine(access);
        self.join(done, after);
        self.enter_block(after);
        Some(self.builder.block_params(after)[0])
    }

    fn join(&mut self, value: Option<Value>, after: cranelift_codegen::ir::Block) {
        let value = value.unwrap_or_else(|| self.constant(0));
        self.builder.ins().jump(after, &[BlockArg::from(value)]);
    }

    fn address(&mut self, access: &Access) -> Value {
        let base = self.read(access.base);
        self.builder.ins().iadd_imm_s(base, i64::from(access.offset))
    }

    /// Whether an address is in a region and the access fits there, and the address' offset in the region.
    fn within(&mut self, access: &Access, region: Region, address: Value) -> (Value, Value) {
        let size = access.size.bytes() as u64;
        let first = match region {
            Region::Packet => self.window().first,
            other => self.region(other),
        };
        let at = self.builder.ins().isub(address, first);
        let within = match region {
            Region::Packet => {
                let places = self.places(size);
                return (self.builder.ins().icmp(IntCC::UnsignedLessThan, at, places), at);
            }
            Region::State if !self.proven() => {
                let length = self.of_run(offset::STATE_SIZE);
                let begins = self.builder.ins().icmp(IntCC::UnsignedLessThan, at, length);
                let end = self.builder.ins().iadd_imm_s(at, size as i64);
                let ends = self.builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, length);
                self.builder.ins().band(begins, ends)
            }
            other => {
                let room = match other {
                    Region::Context => ContextField::TOTAL,
                    Region::State => self.source.state_size as usize,
                    Region::Map(map) => self.map(map).map_or(0, |map| map.values().len()),
                    _ => STACK_SIZE,
                };
                match (room as u64).checked_sub(size) {
                    Some(last) => {
                        let last = self.constant(last);
                        self.builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, at, last)
                    }
                    None => self.builder.ins().iconst(types::I8, 0),
                }
            }
        };
        (self.further(access, region, at, within), at)
    }

    /// Number of offsets in the packet at which an access of this size fits.
    fn places(&mut self, bytes: u64) -> Value {
        let length = self.window().length;
        let Some(less @ 1..) = bytes.checked_sub(1) else { return length };
        let less = self.constant(less);
        let length = self.builder.ins().umax(length, less);
        self.builder.ins().isub(length, less)
    }

    /// Further conditions for unproven accesses: alignment, and the bounds of one value.
    fn further(&mut self, access: &Access, region: Region, at: Value, mut within: Value) -> Value {
        let size = access.size.bytes() as i64;
        let atomic = matches!(access.work, MemoryEffect::Change { .. });
        if size > 1 && (atomic || !self.proven()) {
            let low = self.builder.ins().band_imm_u(at, size - 1);
            let aligned = self.builder.ins().icmp_imm_u(IntCC::Equal, low, 0);
            within = self.builder.ins().band(within, aligned);
        }
        let Region::Map(map) = region else { return within };
        let Some(spec) = self.map(map).map(Map::spec) else { return within };
        let (stride, last) = (spec.stride() as i64, i64::from(spec.value_size) - size);
        if stride > i64::from(spec.value_size) && !self.proven() {
            let in_value = self.builder.ins().urem_imm_u(at, stride);
            let fits = self.builder.ins().icmp_imm_s(IntCC::SignedLessThanOrEqual, in_value, last);
            within = self.builder.ins().band(within, fits);
        }
        within
    }

    /// Location in the process of the byte at offset `at` of a region.
    fn located(&mut self, region: Region, at: Value) -> Place {
        let (base, memory) = match region {
            Region::Context => {
                // Fields are twice as wide in compiled code as in the program.
                let twice = self.builder.ins().iadd(at, at);
                let pointer = self.builder.ins().iadd(self.run, twice);
                return Place { pointer, offset: offset::FIELDS, memory: self.memory.run };
            }
            Region::Map(map) => {
                let first = self.map(map).map_or(0, |map| map.values().words().as_ptr().expose_provenance());
                (self.constant(first as u64), self.memory.words)
            }
            Region::Packet => (self.window().pointer, self.memory.packet),
            Region::State => (self.place(offset::STATE, 0, self.memory.words).pointer, self.memory.words),
            Region::Stack | Region::Handle(_) | Region::Code => {
                (self.place(offset::STACK, 0, self.memory.stack).pointer, self.memory.stack)
            }
        };
        Place { pointer: self.builder.ins().iadd(base, at), offset: 0, memory }
    }

    fn carry_out_in(&mut self, access: &Access, region: Region, place: Place) -> Option<Value> {
        if region == Region::Context {
            return Some(self.builder.ins().load(types::I64, place.memory, place.pointer, place.offset));
        }
        self.carry_out(access, place)
    }

    /// Emits the access.
    fn carry_out(&mut self, access: &Access, place: Place) -> Option<Value> {
        let kind = type_of_size(access.size);
        let Place { pointer, offset, memory } = place;
        match access.work {
            MemoryEffect::Load { extended } => {
                let value = self.builder.ins().load(kind, memory, pointer, offset);
                let signed = extended && kind != types::I64;
                Some(if signed { self.builder.ins().sextend(types::I64, value) } else { self.widened(value) })
            }
            MemoryEffect::Store { value } => {
                let value = self.cut(value, kind);
                self.builder.ins().store(memory, value, pointer, offset);
                None
            }
            MemoryEffect::Change { operation, src, r0 } => {
                let pointer = self.builder.ins().iadd_imm_s(pointer, i64::from(offset));
                let memory = memory.with_aligned();
                let (src, r0) = (self.cut(src, kind), self.cut(r0, kind));
                let old = match simple(operation) {
                    Some(simple) => self.builder.ins().atomic_rmw(kind, memory, simple, pointer, src),
                    None => self.builder.ins().atomic_cas(memory, pointer, r0, src),
                };
                Some(self.widened(old))
            }
        }
    }

    /// Emits a call of the machine.
    fn by_machine(&mut self, access: &Access) -> Option<Value> {
        let address = self.address(access);
        let bytes = access.size.bytes() as u64;
        match access.work {
            MemoryEffect::Load { extended } => {
                let how = self.constant(if extended { bytes | SIGNED } else { bytes });
                Some(self.call_function_of_ours(run::load as *const (), &[address, how]))
            }
            MemoryEffect::Store { value } => {
                let how = self.constant(bytes);
                self.call_function_of_ours(run::store as *const (), &[address, value, how]);
                None
            }
            MemoryEffect::Change { operation, src, r0 } => {
                let width = if access.size == Size::Word { Width::W32 } else { Width::W64 };
                let how = self.constant(operation_number(width, operation));
                Some(self.call_function_of_ours(run::change as *const (), &[address, src, r0, how]))
            }
        }
    }
}

/// The generator's operation; none for compare-and-exchange.
fn simple(operation: Atomic) -> Option<AtomicRmwOp> {
    Some(match operation {
        Atomic::Add | Atomic::FetchAdd => AtomicRmwOp::Add,
        Atomic::Or | Atomic::FetchOr => AtomicRmwOp::Or,
        Atomic::And | Atomic::FetchAnd => AtomicRmwOp::And,
        Atomic::Xor | Atomic::FetchXor => AtomicRmwOp::Xor,
        Atomic::Exchange => AtomicRmwOp::Xchg,
        Atomic::CompareExchange => return None,
    })
}
