//! A program that loops over packets in its own code, so that most packets cost little more than the
//! program's work.

use super::{Translator, Window};
use crate::run::offset;
use crate::visit::Visit;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};
use longwire_packet::{Checksum, Handle, Meta};
use longwire_program::Region;
use std::mem::offset_of;

/// Bytes of a line: metadata take one, and the packet's bytes begin at the next.
const LINE: u64 = size_of::<Meta>() as u64;

/// Numbers of the context's fields that differ between packets.
const DATA_END: usize = 1;
const INGRESS: usize = 3;

/// Offset of a metadata field.
const fn of_meta(field: usize) -> i32 {
    field as i32 - LINE as i32
}

/// State of the loop over packets.
pub struct Visits {
    /// The current packet.
    pub window: Window,
    /// Loop head: takes the handle's location and the bits so far.
    head: Block,
    packet: Value,
    bits: Value,
    /// Continues with the return value and the number of the instruction that ended the program, if the
    /// packet must be reported.
    loud: Block,
    /// Continues with the next packet and the bits.
    next: Block,
    /// End of the loop: takes the location of the next handle and the bits.
    done: Block,
    /// Locations of the first handle and after the last.
    packets: (Value, Value),
    quiet: Value,
}

impl Translator<'_, '_> {
    /// Begins the loop, with the first packet. The function takes the run, the handles, their number, the
    /// pool's bytes, their number, and the lower half of the return value that need not be reported.
    pub fn begin_visits(&mut self, first: Block) {
        let [_, packets, count, bytes, limit, quiet] = *self.builder.block_params(first) else {
            return self.stop_here();
        };
        let [head, away, there, inside, single, shown, loud, next, done] =
            std::array::from_fn(|_| self.builder.create_block());
        for cold in [away, loud] {
            self.builder.set_cold_block(cold);
        }
        for (block, parameters) in [(head, 2), (loud, 2), (next, 1), (done, 2)] {
            for _ in 0..parameters {
                self.builder.append_block_param(block, types::I64);
            }
        }
        let size = self.builder.ins().ishl_imm_u(count, i64::from(size_of::<Handle>().ilog2()));
        let packets = (packets, self.builder.ins().iadd(packets, size));
        let zero = self.constant(0);
        self.builder.ins().jump(head, &[packets.0, zero].map(BlockArg::from));
        self.builder.switch_to_block(head);
        let [packet, bits] = *self.builder.block_params(head) else { return self.stop_here() };
        let flags = self.memory.visits;
        let line = self.builder.ins().uload32(flags, packet, 0);
        // Both are 32 bits wide, so nothing is lost.
        let start = self.builder.ins().ishl_imm_u(line, i64::from(LINE.ilog2()));
        let start = self.builder.ins().iadd_imm_s(start, LINE as i64);
        let pointer = self.builder.ins().iadd(bytes, start);
        self.go_on_if((IntCC::UnsignedLessThanOrEqual, start, limit), there, (away, &[]));
        let length = self.builder.ins().uload32(flags, pointer, of_meta(offset_of!(Meta, len)));
        let end = self.builder.ins().iadd(start, length);
        self.go_on_if((IntCC::UnsignedLessThanOrEqual, end, limit), inside, (away, &[]));
        let segments =
            self.builder.ins().uload16(types::I64, flags, pointer, of_meta(offset_of!(Meta, segments)));
        let one = self.constant(1);
        let stopped = [packet, bits].map(BlockArg::from);
        self.go_on_if((IntCC::UnsignedLessThanOrEqual, segments, one), single, (done, &stopped));
        let checksum =
            self.builder.ins().uload8(types::I64, flags, pointer, of_meta(offset_of!(Meta, checksum)));
        let open = self.constant(Checksum::Partial as u64);
        self.go_on_if((IntCC::NotEqual, checksum, open), shown, (done, &stopped));
        self.enter_block(away);
        let (nothing, outside) = (self.constant(0), self.constant(u64::MAX));
        self.builder.ins().jump(loud, &[nothing, outside].map(BlockArg::from));
        self.builder.switch_to_block(shown);
        let window = Window { first: self.region(Region::Packet), length, pointer };
        self.visits = Some(Visits { window, head, packet, bits, loud, next, done, packets, quiet });
        if self.reads_run() {
            let fields =
                [DATA_END, INGRESS].map(|field| (self.field(field), offset::FIELDS + 8 * field as i32));
            let others = [(pointer, offset::PACKET), (self.now(), offset::NOW)];
            for (value, place) in fields.into_iter().chain(others) {
                self.builder.ins().store(self.memory.run, value, self.run, place);
            }
        }
    }

    /// A field of the context, by its number.
    pub fn field(&mut self, number: usize) -> Value {
        let in_run = offset::FIELDS + 8 * number as i32;
        let Some(Visits { window, .. }) = &self.visits else { return self.of_run(in_run) };
        let Window { first, length, pointer } = *window;
        match number {
            DATA_END => self.builder.ins().iadd(first, length),
            INGRESS => {
                let place = of_meta(offset_of!(Meta, in_port));
                self.builder.ins().uload16(types::I64, self.memory.visits, pointer, place)
            }
            // The others are the same for all packets.
            _ => self.of_run(in_run),
        }
    }

    /// The packet's time.
    pub fn now(&mut self) -> Value {
        let Some(Visits { window, .. }) = &self.visits else { return self.of_run(offset::NOW) };
        let place = of_meta(offset_of!(Meta, arrival));
        self.builder.ins().load(types::I64, self.memory.visits, window.pointer, place)
    }

    /// Continues in a new block if a comparison holds, and elsewhere if not.
    fn go_on_if(
        &mut self,
        (code, left, right): (IntCC, Value, Value),
        then: Block,
        (other, with): (Block, &[BlockArg]),
    ) {
        let holds = self.builder.ins().icmp(code, left, right);
        self.builder.ins().brif(holds, then, [], other, with);
        self.enter_block(then);
    }

    /// Continues with the next packet, unless the return value must be reported.
    pub fn leave_visit(&mut self, result: Value) {
        let Some(Visits { loud, next, bits, quiet, .. }) = self.visits else { return };
        let low = self.builder.ins().ireduce(types::I32, result);
        let low = self.widened(low);
        let is_quiet = self.builder.ins().icmp(IntCC::Equal, low, quiet);
        let aloud = self.builder.create_block();
        self.builder.set_cold_block(aloud);
        self.builder.ins().brif(is_quiet, next, &[BlockArg::from(bits)], aloud, []);
        self.enter_block(aloud);
        let done = self.constant(0);
        self.builder.ins().jump(loud, &[result, done].map(BlockArg::from));
    }

    /// Code after the program, which has ended early with this number where it is called.
    pub fn end_visits(&mut self, number: Value) {
        let Some(Visits { head, packet, bits, loud, next, done, packets, .. }) = self.visits else { return };
        let nothing = self.constant(0);
        self.builder.ins().jump(loud, &[nothing, number].map(BlockArg::from));
        self.enter_block(loud);
        let visits = self.of_run(offset::VISITS);
        let place = self.place_of(packet, packets.0);
        let at = self.builder.ins().ishl_imm_u(place, i64::from(size_of::<Visit>().ilog2()));
        let visit = self.builder.ins().iadd(visits, at);
        for (at, field) in [(0, offset_of!(Visit, returned)), (1, offset_of!(Visit, number))] {
            let value = self.builder.block_params(loud)[at];
            self.builder.ins().store(self.memory.visits, value, visit, field as i32);
        }
        let one = self.constant(1);
        let bit = self.builder.ins().ishl(one, place);
        let with_it = self.builder.ins().bor(bits, bit);
        self.builder.ins().jump(next, &[BlockArg::from(with_it)]);
        self.enter_block(next);
        let bits = self.builder.block_params(next)[0];
        let packet = self.builder.ins().iadd_imm_s(packet, size_of::<Handle>() as i64);
        let goes_on = self.builder.ins().icmp(IntCC::UnsignedLessThan, packet, packets.1);
        let there = [packet, bits].map(BlockArg::from);
        self.builder.ins().brif(goes_on, head, &there, done, &there);
        self.builder.seal_block(head);
        self.enter_block(done);
        let [packet, bits] = *self.builder.block_params(done) else { return };
        let count = self.place_of(packet, packets.0);
        self.builder.ins().return_(&[bits, count]);
    }

    /// A packet's index, from its handle's location.
    fn place_of(&mut self, packet: Value, first: Value) -> Value {
        let bytes = self.builder.ins().isub(packet, first);
        self.builder.ins().ushr_imm_u(bytes, i64::from(size_of::<Handle>().ilog2()))
    }
}
