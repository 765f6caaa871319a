//! Observers of the interpreter: they are shown every step of a packet, for traces.

use ir::{BlockId, Instruction};
use tables::exact::Learned;

/// Is shown every step. By default each method does nothing.
pub trait Observer {
    /// A packet begins: its index in the batch and the time, ns.
    fn packet(&mut self, _index: usize, _now: u64) {}

    /// A packet and the events that it raised are done.
    fn packet_end(&mut self, _index: usize) {}

    /// A handler begins: its function, its arguments and the time, ns.
    fn handler(&mut self, _function: u32, _args: &[u128], _now: u64) {}

    /// A decoder or stage begins.
    fn stage(&mut self, _stage: u32) {}

    /// A header was decoded: its layout, its position in bytes, and its name in the program.
    fn header(&mut self, _layout: u32, _base: u32, _name: &str) {}

    /// An instruction of a function was done, with its results.
    fn instruction(&mut self, _function: u32, _instruction: &Instruction, _results: &[u128]) {}

    /// The size of the packet changed: its captured bytes as they are now. Called before `instruction`.
    fn resized(&mut self, _bytes: &[u8]) {}

    /// A lookup was made: the key's columns, and the value's columns if an entry was found. Called before
    /// `instruction`.
    fn lookup(&mut self, _table: u32, _key: &[u128], _hit: Option<&[u128]>) {}

    /// An entry was learned: the key's columns, the value's columns, and the result. Called before
    /// `instruction`.
    fn learn(&mut self, _table: u32, _key: &[u128], _value: &[u128], _learned: Learned) {}

    /// A block of a function ended and went on to `next`, or ended the function.
    fn terminator(&mut self, _function: u32, _block: BlockId, _next: Option<BlockId>) {}
}

/// Who is shown everything by way of a reference.
impl<O: Observer + ?Sized> Observer for &mut O {
    fn packet(&mut self, index: usize, now: u64) {
        (**self).packet(index, now);
    }

    fn packet_end(&mut self, index: usize) {
        (**self).packet_end(index);
    }

    fn handler(&mut self, function: u32, args: &[u128], now: u64) {
        (**self).handler(function, args, now);
    }

    fn stage(&mut self, stage: u32) {
        (**self).stage(stage);
    }

    fn header(&mut self, layout: u32, base: u32, name: &str) {
        (**self).header(layout, base, name);
    }

    fn instruction(&mut self, function: u32, instruction: &Instruction, results: &[u128]) {
        (**self).instruction(function, instruction, results);
    }

    fn resized(&mut self, bytes: &[u8]) {
        (**self).resized(bytes);
    }

    fn lookup(&mut self, table: u32, key: &[u128], hit: Option<&[u128]>) {
        (**self).lookup(table, key, hit);
    }

    fn learn(&mut self, table: u32, key: &[u128], value: &[u128], learned: Learned) {
        (**self).learn(table, key, value, learned);
    }

    fn terminator(&mut self, function: u32, block: BlockId, next: Option<BlockId>) {
        (**self).terminator(function, block, next);
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
