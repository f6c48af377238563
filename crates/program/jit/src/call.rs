//! Calls of helpers, and of the functions that stand in for code.

use crate::Known;
use crate::run::{self, offset};
use crate::translate::Translator;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, Value, types};
use longwire_program::{Helper, Region, Register};

const ARGUMENTS: [Register; 5] = [Register::R1, Register::R2, Register::R3, Register::R4, Register::R5];

impl Translator<'_, '_> {
    /// Translates a helper's call. False if there is no such helper.
    pub fn call_helper(&mut self, number: u32) -> bool {
        let Some(helper) = Helper::from_number(number) else { return false };
        let verified = match self.source.known {
            Known::Facts(facts) => facts.get(self.index).is_some_and(|fact| fact.call.is_some()),
            Known::Hints(_) => false,
        };
        let result = match helper {
            Helper::FlowState if verified => self.region(Region::State),
            Helper::Node => self.constant(0),
            Helper::Now | Helper::BootTime | Helper::CoarseTime => self.of_run(offset::NOW),
            Helper::Worker => self.of_run(offset::WORKER),
            Helper::PacketLength if verified => self.window().length,
            _ => self.call_out(helper, verified),
        };
        self.write(Register::R0, result);
        true
    }

    fn call_out(&mut self, helper: Helper, verified: bool) -> Value {
        let signature = helper.signature();
        let zero = self.constant(0);
        let mut arguments = [zero; 6];
        for (argument, register) in arguments.iter_mut().zip(ARGUMENTS).take(signature.arguments.len()) {
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

    /// What stands at this offset in the run.
    fn of_run(&mut self, offset: i32) -> Value {
        self.builder.ins().load(types::I64, self.memory.run, self.run, offset)
    }

    /// Calls one of the functions of [`run`] with these arguments after the first. If it wants so, the program ends.
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
