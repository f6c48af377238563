//! A program on one packet after another, without leaving its code in between: what most packets need of it is then little more than what it does.

use crate::run::offset;
use crate::translate::{Translator, Window};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};
use longwire_program::Region;
use std::mem::offset_of;

/// A packet without room before and behind that a program is to be run on, and what that returned if it is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Visit {
    line: u32,
    len: u32,
    ingress: u32,
    now: u64,
    returned: u64,
    /// 0, or the number of the instruction that ended the program, plus 1; all bits if the packet lies outside the bytes.
    number: u64,
}

impl Visit {
    /// To no packet: it lies outside of any 256 GiB.
    pub const NOWHERE: Self =
        Self { line: u32::MAX, len: u32::MAX, ingress: 0, now: 0, returned: 0, number: 0 };

    /// Makes it one to the packet of `len` bytes that begins with this line of [`LINE`] bytes among those that the program is given, and came in by the port
    /// `ingress` at `now`.
    #[inline]
    pub fn aim(&mut self, (line, len): (u32, u32), (ingress, now): (u32, u64)) {
        (self.line, self.len, self.ingress, self.now) = (line, len, ingress, now);
    }

    /// What the program returned, of a packet whose bit is set: none if it was stopped.
    #[inline]
    pub fn returned(&self) -> Option<u64> {
        (self.number == 0).then_some(self.returned)
    }
}

/// How many packets there may be: each has a bit.
pub const MOST: usize = u64::BITS as usize;

/// Bytes of a line: packets begin with one.
pub const LINE: u64 = 64;

/// What code that goes from packet to packet knows.
pub struct Visits {
    /// The packet that it is at.
    pub window: Window,
    /// What it begins with for each packet: with its place, its [`Visit`], and the bits so far.
    head: Block,
    place: Value,
    visit: Value,
    bits: Value,
    /// Where it goes with what the program returned, and with the number of the instruction that ended it, if somebody is to see that.
    loud: Block,
    /// Where it goes from packet to packet, with the bits.
    next: Block,
    count: Value,
    quiet: Value,
}

impl Translator<'_, '_> {
    /// Begins the way from packet to packet, and shows the program the first one. The function is given the run, the visits, how many they are, the
    /// bytes, how many those are, and the low half of what is not worth a look.
    pub fn begin_visits(&mut self, first: Block) {
        let [_, visits, count, bytes, limit, quiet] = *self.builder.block_params(first) else {
            return self.stop_here();
        };
        let [head, away, inside, loud, next] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.set_cold_block(away);
        self.builder.set_cold_block(loud);
        for (block, parameters) in [(head, 3), (loud, 2), (next, 1)] {
            for _ in 0..parameters {
                self.builder.append_block_param(block, types::I64);
            }
        }
        let zero = self.constant(0);
        self.builder.ins().jump(head, &[zero, visits, zero].map(BlockArg::from));
        self.builder.switch_to_block(head);
        let [place, visit, bits] = *self.builder.block_params(head) else { return self.stop_here() };
        let flags = self.memory.visits;
        let [line, length, ingress] =
            [offset_of!(Visit, line), offset_of!(Visit, len), offset_of!(Visit, ingress)]
                .map(|field| self.builder.ins().uload32(flags, visit, field as i32));
        let now = self.builder.ins().load(types::I64, flags, visit, offset_of!(Visit, now) as i32);
        // Both are of 32 bits, so that nothing is lost.
        let start = self.builder.ins().ishl_imm_u(line, i64::from(LINE.ilog2()));
        let end = self.builder.ins().iadd(start, length);
        let fits = self.builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, limit);
        self.builder.ins().brif(fits, inside, [], away, []);
        self.builder.switch_to_block(away);
        self.builder.seal_block(away);
        let (nothing, outside) = (self.constant(0), self.constant(u64::MAX));
        self.builder.ins().jump(loud, &[nothing, outside].map(BlockArg::from));
        self.builder.switch_to_block(inside);
        self.builder.seal_block(inside);
        let pointer = self.builder.ins().iadd(bytes, start);
        let packet = self.region(Region::Packet);
        let end = self.builder.ins().iadd(packet, length);
        for (value, place) in [
            (end, offset::FIELDS + 8),
            (pointer, offset::PACKET),
            (ingress, offset::FIELDS + 24),
            (now, offset::NOW),
        ] {
            self.builder.ins().store(self.memory.run, value, self.run, place);
        }
        let window = Window { first: packet, length, pointer };
        self.visits = Some(Visits { window, head, place, visit, bits, loud, next, count, quiet });
    }

    /// Goes on to the next packet, unless somebody is to see what the program returned of this one.
    pub fn leave_visit(&mut self, result: Value) {
        let Some(Visits { loud, next, bits, quiet, .. }) = self.visits else { return };
        let low = self.builder.ins().ireduce(types::I32, result);
        let low = self.widened(low);
        let is_quiet = self.builder.ins().icmp(IntCC::Equal, low, quiet);
        let done = self.constant(0);
        let told = [result, done].map(BlockArg::from);
        self.builder.ins().brif(is_quiet, next, &[BlockArg::from(bits)], loud, &told);
    }

    /// What comes after the program, which has ended early with this number where it is called.
    pub fn end_visits(&mut self, number: Value) {
        let Some(Visits { head, place, visit, bits, loud, next, count, .. }) = self.visits else { return };
        let nothing = self.constant(0);
        self.builder.ins().jump(loud, &[nothing, number].map(BlockArg::from));
        self.builder.switch_to_block(loud);
        self.builder.seal_block(loud);
        for (at, field) in [(0, offset_of!(Visit, returned)), (1, offset_of!(Visit, number))] {
            let value = self.builder.block_params(loud)[at];
            self.builder.ins().store(self.memory.visits, value, visit, field as i32);
        }
        let one = self.constant(1);
        let bit = self.builder.ins().ishl(one, place);
        let with_it = self.builder.ins().bor(bits, bit);
        self.builder.ins().jump(next, &[BlockArg::from(with_it)]);
        self.builder.switch_to_block(next);
        self.builder.seal_block(next);
        let bits = self.builder.block_params(next)[0];
        let place = self.builder.ins().iadd_imm_s(place, 1);
        let visit = self.builder.ins().iadd_imm_s(visit, size_of::<Visit>() as i64);
        let goes_on = self.builder.ins().icmp(IntCC::UnsignedLessThan, place, count);
        let done = self.builder.create_block();
        self.builder.ins().brif(goes_on, head, &[place, visit, bits].map(BlockArg::from), done, []);
        self.builder.seal_block(head);
        self.builder.switch_to_block(done);
        self.builder.seal_block(done);
        self.builder.ins().return_(&[bits]);
    }
}
