//! Functions: from instructions in order to the code generator's blocks.

mod visits;

use crate::KnownAccesses;
use crate::order::Body;
use crate::run::{TOO_OFTEN, offset};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AliasRegionData, Block, BlockArg, FuncRef, Function, InstBuilder, MemFlagsData, Type, Value, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};
use longwire_program::memory::frame_pointer;
use longwire_program::{Code, Condition, Instruction, Machine, Maps, Operand, Region, Register, Size, Width};
use std::collections::BTreeMap;
use visits::Visits;

/// The input of compilation.
pub struct Source<'a> {
    pub code: &'a Code,
    pub known: KnownAccesses<'a>,
    /// Guaranteed bytes of state.
    pub state_size: u32,
    /// Limit of backward jumps per packet, if there are loops.
    pub turns: Option<u64>,
    pub maps: &'a Maps,
}

/// Callable functions, by their first instructions.
pub struct Callees<'a> {
    pub functions: &'a BTreeMap<usize, FuncId>,
    /// Targets of tail calls, by their first instructions.
    pub programs: &'a BTreeMap<usize, FuncId>,
    pub module: &'a mut JITModule,
    /// Set if a function of [`run`](crate::run) is called, which works on the machine.
    pub asks: &'a mut bool,
    /// Set if one may move the packet's ends.
    pub moves: &'a mut bool,
}

/// Kinds of memory. The code generator may assume that accesses of different kinds don't alias.
pub struct Memory {
    pub run: MemFlagsData,
    pub packet: MemFlagsData,
    pub stack: MemFlagsData,
    /// State and maps' values.
    pub words: MemFlagsData,
    /// Packets' handles and metadata, and [`Visit`](crate::visit::Visit)s.
    pub visits: MemFlagsData,
}

/// Role of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The program, on one packet.
    Program,
    /// The program, on one packet after another.
    Visits,
    /// A function called by the program.
    Called,
    /// A target of a tail call.
    Continued,
}

/// The location of a packet.
#[derive(Clone, Copy)]
pub struct Window {
    /// Program address of its first byte.
    pub first: Value,
    /// Its length.
    pub length: Value,
    /// Its location in the process.
    pub pointer: Value,
}

/// A function during translation.
pub struct Translator<'a, 'f> {
    pub source: &'a Source<'a>,
    pub builder: FunctionBuilder<'f>,
    pub memory: Memory,
    /// The [`Run`](crate::run::Run).
    pub run: Value,
    /// The function.
    body: &'a Body,
    /// The current instruction.
    pub index: usize,
    pub role: Role,
    /// State of [`Role::Visits`].
    pub visits: Option<Visits>,
    registers: [Variable; Register::COUNT],
    blocks: BTreeMap<usize, Block>,
    /// Exit for an early end, with the number to return.
    pub exit: Block,
    /// Exit after an invalid access, with the number to return and the address.
    outside: Block,
    pub callees: Callees<'a>,
    pub called: BTreeMap<FuncId, FuncRef>,
}

/// Translates a function.
pub fn translate<'a>(
    source: &'a Source<'a>,
    (body, role): (&'a Body, Role),
    callees: Callees<'a>,
    function: &mut Function,
    scratch: &mut FunctionBuilderContext,
) {
    let memory = Memory::new(function);
    let mut builder = FunctionBuilder::new(function, scratch);
    let registers = std::array::from_fn(|_| builder.declare_var(types::I64));
    let first = builder.create_block();
    builder.append_block_params_for_function_params(first);
    builder.switch_to_block(first);
    builder.seal_block(first);
    let run = builder.block_params(first)[0];
    let (exit, outside) = (builder.create_block(), builder.create_block());
    for block in [exit, outside] {
        builder.set_cold_block(block);
        builder.append_block_param(block, types::I64);
    }
    builder.append_block_param(outside, types::I64);
    let frontend = callees.module.target_config();
    let mut translator = Translator {
        source,
        builder,
        memory,
        run,
        body,
        index: body.entry,
        role,
        visits: None,
        registers,
        blocks: BTreeMap::new(),
        exit,
        outside,
        callees,
        called: BTreeMap::new(),
    };
    if role == Role::Visits {
        translator.begin_visits(first);
    }
    translator.begin(first);
    translator.make_blocks(body);
    let entry = translator.block(body.entry);
    translator.builder.ins().jump(entry, []);
    for &index in &body.order {
        translator.index = index;
        translator.instruction();
    }
    for head in body.heads() {
        let block = translator.block(head);
        translator.builder.seal_block(block);
    }
    translator.end();
    translator.builder.finalize(frontend);
}

impl Memory {
    fn new(function: &mut Function) -> Self {
        let mut kind = |user_id, description: &'static str| {
            let region = AliasRegionData { user_id, description: description.into() };
            let region = function.dfg.alias_regions.insert(region);
            MemFlagsData::new().with_notrap().with_alias_region(Some(region))
        };
        Self {
            run: kind(0, "run").with_aligned(),
            packet: kind(1, "packet"),
            stack: kind(2, "stack"),
            words: kind(3, "words"),
            visits: kind(4, "visits"),
        }
    }
}

impl Translator<'_, '_> {
    /// Sets the registers at the beginning of a function.
    fn begin(&mut self, first: Block) {
        if matches!(self.role, Role::Program | Role::Visits) {
            self.wind_up();
        }
        let zero = self.constant(0);
        let given = self.builder.block_params(first).to_vec();
        for number in 0..Register::COUNT {
            let value = match (self.role, number) {
                (Role::Called, 1..=5) => given[number],
                (Role::Called, 10) => given[6],
                (_, 1) if self.role != Role::Called => self.constant(Machine::CONTEXT),
                (_, 10) if self.role != Role::Called => self.constant(frame_pointer(0)),
                _ => zero,
            };
            self.builder.def_var(self.registers[number], value);
        }
    }

    /// The packet's current location.
    pub fn window(&mut self) -> Window {
        if let Some(visits) = &self.visits {
            return visits.window;
        }
        let (first, end) = (self.of_run(offset::FIELDS), self.of_run(offset::FIELDS + 8));
        let pointer = self.of_run(offset::PACKET);
        Window { first, length: self.builder.ins().isub(end, first), pointer }
    }

    /// Creates a block for each jump target.
    fn make_blocks(&mut self, body: &Body) {
        let code = self.source.code;
        let mut leaders = vec![body.entry];
        for &index in &body.order {
            if let [after, Some(target)] = code.successors(index) {
                leaders.push(target);
                leaders.extend(after);
            }
        }
        for leader in leaders {
            self.blocks.entry(leader).or_insert_with(|| self.builder.create_block());
        }
    }

    fn instruction(&mut self) {
        let index = self.index;
        if let Some(&block) = self.blocks.get(&index) {
            self.builder.switch_to_block(block);
            // All predecessors were translated before, except backward jumps.
            if !self.body.is_head(index) {
                self.builder.seal_block(block);
            }
        }
        let Some(&instruction) = self.source.code.instructions().get(index) else {
            return self.stop();
        };
        let target = self.source.code.target(index).unwrap_or(index);
        match instruction {
            Instruction::Jump { .. } | Instruction::JumpLong { .. } => return self.go_on(target),
            Instruction::Branch { width, condition, dst, source, .. } => {
                let holds = self.holds(width, condition, dst, source);
                let ways = [target, index + 1].map(|next| (next, self.way_to(next)));
                self.builder.ins().brif(holds, ways[0].1, [], ways[1].1, []);
                ways.into_iter().for_each(|(next, block)| self.turn(next, block));
                return;
            }
            Instruction::Exit => {
                let result = self.read(Register::R0);
                return self.leave_with(result);
            }
            Instruction::CallKernel { .. } => self.stop_here(),
            Instruction::Call { helper } => {
                if !self.call_helper(helper) {
                    self.stop_here();
                }
            }
            Instruction::CallLocal { .. } => self.call_function(target),
            Instruction::Load { .. }
            | Instruction::LoadExtended { .. }
            | Instruction::Store { .. }
            | Instruction::Atomic { .. } => self.access(instruction),
            plain => self.compute(plain),
        }
        if self.blocks.contains_key(&(index + 1)) {
            self.go_on(index + 1);
        }
    }

    /// The block of a jump target. Each has one: the exit is never used instead.
    fn block(&self, index: usize) -> Block {
        self.blocks[&index]
    }

    fn go_on(&mut self, index: usize) {
        let block = self.way_to(index);
        self.builder.ins().jump(block, []);
        self.turn(index, block);
    }

    /// Whether the jump from here to this instruction is backward.
    fn turns(&self, next: usize) -> bool {
        self.body.back.contains(&(next, self.index))
    }

    /// The block for reaching an instruction from here: for a backward jump an empty one, for
    /// [`turn`](Self::turn).
    fn way_to(&mut self, next: usize) -> Block {
        if self.turns(next) { self.builder.create_block() } else { self.block(next) }
    }

    /// Emits a backward jump to `next` through `block`: counts it, and ends the program if there were too
    /// many, which never happens in a verified program.
    fn turn(&mut self, next: usize, block: Block) {
        if !self.turns(next) {
            return;
        }
        self.enter_block(block);
        let head = self.block(next);
        self.count_turn(head);
    }

    /// Counts a backward jump, and continues at `head` if it is allowed.
    pub fn count_turn(&mut self, head: Block) {
        let left = self.of_run(offset::TURNS);
        let after = self.builder.ins().iadd_imm_s(left, -1);
        self.builder.ins().store(self.memory.run, after, self.run, offset::TURNS);
        let number = self.constant(TOO_OFTEN | (self.index as u64 + 1));
        self.builder.ins().brif(left, head, [], self.exit, &[BlockArg::from(number)]);
    }

    /// Initializes the count of backward jumps.
    fn wind_up(&mut self) {
        let Some(turns) = self.source.turns else { return };
        let turns = self.constant(turns);
        self.builder.ins().store(self.memory.run, turns, self.run, offset::TURNS);
    }

    fn holds(&mut self, width: Width, condition: Condition, left: Register, right: Operand) -> Value {
        let (left, right) = (self.narrowed(width, left), self.operand(width, right));
        let code = match condition {
            Condition::Equal => IntCC::Equal,
            Condition::NotEqual => IntCC::NotEqual,
            Condition::BitsSet => return self.builder.ins().band(left, right),
            Condition::Greater => IntCC::UnsignedGreaterThan,
            Condition::GreaterEqual => IntCC::UnsignedGreaterThanOrEqual,
            Condition::Less => IntCC::UnsignedLessThan,
            Condition::LessEqual => IntCC::UnsignedLessThanOrEqual,
            Condition::SignedGreater => IntCC::SignedGreaterThan,
            Condition::SignedGreaterEqual => IntCC::SignedGreaterThanOrEqual,
            Condition::SignedLess => IntCC::SignedLessThan,
            Condition::SignedLessEqual => IntCC::SignedLessThanOrEqual,
        };
        self.builder.ins().icmp(code, left, right)
    }

    /// Calls a function of the program with this one's arguments.
    fn call_function(&mut self, entry: usize) {
        let arguments = Register::ARGUMENTS.map(|register| self.read(register));
        match self.call_body(entry, &arguments) {
            Some(result) => self.write(Register::R0, result),
            None => self.stop_here(),
        }
    }

    pub fn leave_with(&mut self, result: Value) {
        let done = self.constant(0);
        if self.visits.is_some() {
            self.leave_visit(result);
        } else {
            self.builder.ins().return_(&[result, done]);
        }
    }

    /// Ends the program at this instruction.
    pub fn stop(&mut self) {
        let number = self.number();
        self.builder.ins().jump(self.exit, &[BlockArg::from(number)]);
    }

    /// Ends the program at this instruction; what is translated next is unreachable.
    pub fn stop_here(&mut self) {
        self.stop();
        let after = self.builder.create_block();
        self.enter_block(after);
    }

    /// The return value for an end at this instruction.
    fn number(&mut self) -> Value {
        self.constant(self.index as u64 + 1)
    }

    /// Continues if the access at `address` is valid; otherwise the program ends.
    pub fn require(&mut self, within: Value, address: Value) {
        let number = self.number();
        let after = self.builder.create_block();
        let arguments = [BlockArg::from(number), BlockArg::from(address)];
        self.builder.ins().brif(within, after, [], self.outside, &arguments);
        self.enter_block(after);
    }

    /// Ends the program if the called function requests it.
    pub fn end_if_halted(&mut self) {
        let halted = self.of_run(offset::HALTED);
        let number = self.number();
        let after = self.builder.create_block();
        self.builder.ins().brif(halted, self.exit, &[BlockArg::from(number)], after, []);
        self.enter_block(after);
    }

    /// Emits the exits of accesses and calls.
    fn end(&mut self) {
        self.enter_block(self.outside);
        let [number, address] = *self.builder.block_params(self.outside) else { return };
        self.builder.ins().store(self.memory.run, address, self.run, offset::ADDRESS);
        self.builder.ins().jump(self.exit, &[BlockArg::from(number)]);
        self.enter_block(self.exit);
        let number = self.builder.block_params(self.exit)[0];
        let nothing = self.constant(0);
        if self.visits.is_some() {
            self.end_visits(number);
        } else {
            self.builder.ins().return_(&[nothing, number]);
        }
    }

    pub fn constant(&mut self, value: u64) -> Value {
        self.builder.ins().iconst(types::I64, value as i64)
    }

    pub fn read(&mut self, register: Register) -> Value {
        self.builder.use_var(self.registers[register.number()])
    }

    pub fn write(&mut self, register: Register, value: Value) {
        self.builder.def_var(self.registers[register.number()], value);
    }

    /// The lower bits of a register.
    pub fn narrowed(&mut self, width: Width, register: Register) -> Value {
        let value = self.read(register);
        self.cut(value, type_of(width))
    }

    pub fn operand(&mut self, width: Width, operand: Operand) -> Value {
        match (operand, width) {
            (Operand::Register(register), _) => self.narrowed(width, register),
            (Operand::Immediate(value), Width::W64) => {
                self.builder.ins().iconst(types::I64, i64::from(value))
            }
            (Operand::Immediate(value), Width::W32) => {
                self.builder.ins().iconst(types::I32, i64::from(value as u32))
            }
        }
    }

    /// The lower bits of a 64-bit value.
    pub fn cut(&mut self, value: Value, to: Type) -> Value {
        if to == types::I64 { value } else { self.builder.ins().ireduce(to, value) }
    }

    /// A value zero-extended to 64 bits.
    pub fn widened(&mut self, value: Value) -> Value {
        let narrow = self.builder.func.dfg.value_type(value) != types::I64;
        if narrow { self.builder.ins().uextend(types::I64, value) } else { value }
    }

    /// The first address of a region.
    pub fn region(&mut self, region: Region) -> Value {
        self.constant(region.address(0))
    }
}

pub fn type_of(width: Width) -> Type {
    type_of_size(width.size())
}

pub fn type_of_size(size: Size) -> Type {
    match size {
        Size::Byte => types::I8,
        Size::Half => types::I16,
        Size::Word => types::I32,
        Size::Double => types::I64,
    }
}
