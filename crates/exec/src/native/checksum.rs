//! Sums of packet bytes in Cranelift's IR (see [`ir::checksum`]).
//!
//! A known number of bytes is added in pieces of four in the byte order of the machine: the two bytes of the
//! sum are then swapped, and they are swapped back when the sum is folded. A rest of unknown length is rarely
//! there, and a host function sums it up.

use super::host::SUM;
use super::translate::Body;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use ir::Value;

/// More bytes than these are summed by the host function.
const LARGEST_INLINE: u32 = 64;

impl Body<'_, '_> {
    pub(super) fn checksum(&mut self, base: Value, bytes: u32, more: Option<Value>) -> clif::Value {
        let known = if bytes <= LARGEST_INLINE {
            self.sum_of_pieces(base, bytes)
        } else {
            let (first, length) = (self.word(base), self.iconst(bytes.into()));
            self.sum_by_host(first, length)
        };
        let Some(more) = more else { return known };
        let more = self.word(more);
        let (behind, after) = (self.bx.create_block(), self.bx.create_block());
        let sum = self.bx.append_block_param(after, types::I64);
        self.bx.set_cold_block(behind);
        self.bx.ins().brif(more, behind, &[], after, &[known.into()]);
        self.bx.switch_to_block(behind);
        // If no byte is known to be captured, the rest may begin after the end of the packet.
        let base = self.word(base);
        let first = self.bx.ins().iadd_imm_u(base, i64::from(bytes));
        let captured = self.captured();
        let begins = self.bx.ins().icmp(IntCC::UnsignedLessThan, first, captured);
        let first = self.bx.ins().select(begins, first, captured);
        let left = self.bx.ins().isub(captured, first);
        let fits = self.bx.ins().icmp(IntCC::UnsignedLessThan, more, left);
        let length = self.bx.ins().select(fits, more, left);
        let rest = self.sum_by_host(first, length);
        let total = self.bx.ins().iadd(known, rest);
        let carry = self.bx.ins().ushr_imm_u(total, 16);
        let low = self.iconst(0xffff);
        let low = self.bx.ins().band(total, low);
        let total = self.bx.ins().iadd(low, carry);
        self.bx.ins().jump(after, &[total.into()]);
        self.bx.switch_to_block(after);
        sum
    }

    fn sum_by_host(&mut self, first: clif::Value, length: clif::Value) -> clif::Value {
        let frame = self.frame();
        let address = self.bx.ins().iadd(frame, first);
        self.host.call(&mut self.bx, SUM, [address, length])[0]
    }

    fn sum_of_pieces(&mut self, base: Value, bytes: u32) -> clif::Value {
        let place = self.place(base, bytes);
        let mut total = None;
        let mut at = 0;
        while at < bytes {
            let (address, offset) = super::bytes::reach(&mut self.bx, place, at);
            let (piece, size) = match bytes - at {
                4.. => (self.bx.ins().uload32(place.flags, address, offset), 4),
                2..4 => (self.bx.ins().uload16(types::I64, place.flags, address, offset), 2),
                // An odd byte at the end is the more significant one of its pair, here the one that is stored
                // first.
                _ => (self.bx.ins().uload8(types::I64, place.flags, address, offset), 1),
            };
            total = Some(match total {
                Some(total) => self.bx.ins().iadd(total, piece),
                None => piece,
            });
            at += size;
        }
        let Some(total) = total else { return self.iconst(0) };
        // A number and itself with its halves swapped add up to the sum of the halves, with the carry, in the
        // upper half.
        let swapped = self.bx.ins().rotr_imm_u(total, 32);
        let total = self.bx.ins().iadd(total, swapped);
        let total = self.bx.ins().ushr_imm_u(total, 32);
        let total = self.bx.ins().ireduce(types::I32, total);
        let swapped = self.bx.ins().rotr_imm_u(total, 16);
        let total = self.bx.ins().iadd(total, swapped);
        let total = self.bx.ins().ushr_imm_u(total, 16);
        let total = self.bx.ins().ireduce(types::I16, total);
        let total = self.bx.ins().bswap(total);
        self.bx.ins().uextend(types::I64, total)
    }
}
