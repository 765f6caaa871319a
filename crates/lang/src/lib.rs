//! The compiler of the Ravelin language: text → checked program → intermediate representation (IR).
//!
//! The compiler is pure: it does no I/O and reads no clock. It never panics on any input; every input gives a
//! result and diagnostics.

pub mod ast;
pub mod check;
mod components;
pub mod cost;
pub mod diagnostic;
pub mod entries;
pub mod explain;
pub mod flow;
pub mod format;
pub mod graph;
pub mod lexer;
pub mod limits;
pub mod lower;
pub mod mend;
pub mod parser;
pub mod pipeline;
pub mod policy_model;
pub mod policy_rows;
pub mod rules_file;
pub mod settings;
pub mod standard;
pub mod testcase;
pub mod token;
pub mod tree;
pub mod unreachable;
