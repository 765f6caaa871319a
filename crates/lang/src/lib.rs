//! The Ravelin language: text → checked program → IR. Pure: no I/O, no clock, never panics; always a result
//! and diagnostics.

pub mod ast;
pub mod check;
pub mod diagnostic;
pub mod entries;
pub mod explain;
pub mod flow;
pub mod format;
pub mod ir;
pub mod lexer;
pub mod limits;
pub mod lower;
pub mod mend;
pub mod parser;
pub mod pipeline;
pub mod source;
pub mod standard;
pub mod testcase;
pub mod token;
pub mod tree;
