//! The Ravelin language: text → checked program → IR. Pure: no I/O, no clock, never panics; always a result and diagnostics.

pub mod ast;
pub mod diagnostic;
pub mod ir;
pub mod source;
pub mod testcase;
