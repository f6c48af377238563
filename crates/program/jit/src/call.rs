//! Calls of the program's functions, of helpers, and of functions that replace inline code.

use crate::run::{self, offset};
use crate::translate::{Role, Translator};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, BlockArg, InstBuilder, Signature, Value, types};
use cranelift_module::{FuncId, Module};
use longwire_program::memory::FRAME_SIZE;
use longwire_program::{Helper, MAX_ROUNDS, Region, Register, Width};

/// Errors that [`Helper::Loop`] returns, as in errno(3).
const E2BIG: i64 = 7;
const EINVAL: i64 = 22;

impl Translator<'_, '_> {
    /// Translates a helper call. False if there is no such helper.
    pub fn call_helper(&mut self, number: u32) -> bool {
        let Some(helper) = Helper::from_number(number) else { return false };
        let verified = self.source.known.call(self.index).is_some();
        let result = match helper {
            Helper::FlowState if verified => self.region(Region::State),
            Helper::Node => self.constant(0),
            Helper::Now | Helper::BootTime | Helper::CoarseTime => self.now(),
            Helper::Worker => self.of_run(offset::WORKER),
            Helper::PacketLength if verified => self.window().length,
            Helper::Loop => self.repeat(),
            Helper::TailCall => self.tail_call(verified),
            _ => self.call_out(helper, verified),
        };
        self.write(Register::R0, result);
        true
    }

    fn call_out(&mut self, helper: Helper, verified: bool) -> Value {
        let signature = helper.signature();
        let zero = self.constant(0);
        let mut arguments = [zero; 6];
        let given = Register::ARGUMENTS.iter().take(signature.arguments.len());
        for (argument, &register) in arguments.iter_mut().zip(given) {
            *argument = self.read(register);
        }
        if !verified {
            *self.callees.moves = true;
            arguments[5] = self.constant(u64::from(helper.number()));
            return self.call_function_of_ours(run::call as *const (), &arguments);
        }
        *self.callees.moves |= signature.moves_packet;
        self.call_function_of_ours(run::performer(helper), &arguments[..5])
    }

    /// Calls a function of the program, if it exists, and returns its result. If it is stopped, the caller
    /// ends, too.
    pub fn call_body(&mut self, entry: usize, arguments: &[Value; 5]) -> Option<Value> {
        let &id = self.callees.functions.get(&entry)?;
        let frame = self.read(Register::FRAME);
        let below = self.builder.ins().iadd_imm_s(frame, -(FRAME_SIZE as i64));
        let all: Vec<Value> = [self.run].iter().chain(arguments).copied().chain([below]).collect();
        Some(self.call_id(id, &all))
    }

    /// Continues with the program that begins at this instruction, and returns its result, if it exists.
    pub fn go_on_with(&mut self, start: usize) -> Option<()> {
        let &id = self.callees.programs.get(&start)?;
        let result = self.call_id(id, &[self.run]);
        self.leave_with(result);
        Some(())
    }

    /// Calls a function and returns its result. If it is stopped, the caller ends, too.
    fn call_id(&mut self, id: FuncId, arguments: &[Value]) -> Value {
        let known = self.called.get(&id).copied();
        let function =
            known.unwrap_or_else(|| self.callees.module.declare_func_in_func(id, self.builder.func));
        self.called.insert(id, function);
        let call = self.builder.ins().call(function, arguments);
        let results = self.builder.inst_results(call);
        let (result, ended, after) = (results[0], results[1], self.builder.create_block());
        self.builder.ins().brif(ended, self.exit, &[BlockArg::from(ended)], after, []);
        self.enter_block(after);
        result
    }

    /// Continues with another program, as [`Helper::TailCall`] does; the machine selects it.
    fn tail_call(&mut self, verified: bool) -> Value {
        let number = self.call_out(Helper::TailCall, verified);
        let [some, none] = [(); 2].map(|()| self.builder.create_block());
        self.builder.ins().brif(number, some, [], none, []);
        self.enter_block(some);
        if self.role != Role::Called {
            for (program, start) in self.source.code.programs() {
                let [here, other] = [(); 2].map(|()| self.builder.create_block());
                let is_it = self.builder.ins().icmp_imm_u(IntCC::Equal, number, i64::from(program));
                self.builder.ins().brif(is_it, here, [], other, []);
                self.enter_block(here);
                if self.go_on_with(start).is_none() {
                    self.stop();
                }
                self.enter_block(other);
            }
        }
        self.stop();
        self.enter_block(none);
        self.constant(0)
    }

    /// Calls the function named by `r2` repeatedly, as [`Helper::Loop`] does.
    fn repeat(&mut self) -> Value {
        let count = self.narrowed(Width::W32, Register::R1);
        let count = self.widened(count);
        let [function, data, flags] = [Register::R2, Register::R3, Register::R4].map(|r| self.read(r));
        let [counted, done] = [(); 2].map(|()| self.builder.create_block());
        self.builder.append_block_param(done, types::I64);
        let (wrong, many) = (self.constant(-EINVAL as u64), self.constant(-E2BIG as u64));
        self.builder.ins().brif(flags, done, &[BlockArg::from(wrong)], counted, []);
        self.enter_block(counted);
        let within = self.builder.create_block();
        let limit = self.constant(MAX_ROUNDS.into());
        let fits = self.builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, count, limit);
        self.builder.ins().brif(fits, within, [], done, &[BlockArg::from(many)]);
        self.enter_block(within);
        for entry in self.callbacks() {
            let [here, other] = [(); 2].map(|()| self.builder.create_block());
            let address = self.constant(Region::Code.address(entry as u32));
            let is_it = self.builder.ins().icmp(IntCC::Equal, function, address);
            self.builder.ins().brif(is_it, here, [], other, []);
            self.enter_block(here);
            self.rounds(entry, (count, data), done);
            self.enter_block(other);
        }
        self.stop();
        self.enter_block(done);
        self.builder.block_params(done)[0]
    }

    /// Calls a function `count` times with the round's number and `data`, and continues at `done` with the
    /// number of rounds.
    fn rounds(&mut self, entry: usize, (count, data): (Value, Value), done: Block) {
        let [head, round, call] = [(); 3].map(|()| self.builder.create_block());
        self.builder.append_block_param(head, types::I64);
        let zero = self.constant(0);
        self.builder.ins().jump(head, &[BlockArg::from(zero)]);
        self.builder.switch_to_block(head);
        let before = self.builder.block_params(head)[0];
        let goes_on = self.builder.ins().icmp(IntCC::UnsignedLessThan, before, count);
        self.builder.ins().brif(goes_on, round, [], done, &[BlockArg::from(before)]);
        self.enter_block(round);
        self.count_turn(call);
        self.enter_block(call);
        let after = self.builder.ins().iadd_imm_s(before, 1);
        match self.call_body(entry, &[before, data, zero, zero, zero]) {
            Some(result) => {
                let after = [BlockArg::from(after)];
                self.builder.ins().brif(result, done, &after, head, &after);
            }
            None => self.stop(),
        }
        self.builder.seal_block(head);
    }

    /// The functions that `r2` may name here.
    fn callbacks(&self) -> Vec<usize> {
        let known = self.source.known.call(self.index).and_then(|call| call.callback);
        known.map_or_else(|| self.source.code.callbacks(), |callback| vec![callback.entry])
    }

    /// Enters a block whose predecessors are all translated.
    pub fn enter_block(&mut self, block: Block) {
        self.builder.switch_to_block(block);
        self.builder.seal_block(block);
    }

    /// The value at this offset in the run.
    pub fn of_run(&mut self, offset: i32) -> Value {
        self.builder.ins().load(types::I64, self.memory.run, self.run, offset)
    }

    /// Calls one of the functions of [`run`] with these arguments after the first. The program ends if it
    /// requests that.
    pub fn call_function_of_ours(&mut self, function: *const (), arguments: &[Value]) -> Value {
        let mut signature = Signature::new(self.builder.func.signature.call_conv);
        signature.params = vec![AbiParam::new(types::I64); arguments.len() + 1];
        signature.returns = vec![AbiParam::new(types::I64)];
        *self.callees.asks = true;
        let signature = self.builder.import_signature(signature);
        let callee = self.constant(function as usize as u64);
        let all: Vec<Value> = [self.run].iter().chain(arguments).copied().collect();
        let call = self.builder.ins().call_indirect(signature, callee, &all);
        let result = self.builder.inst_results(call)[0];
        self.end_if_halted();
        result
    }
}
