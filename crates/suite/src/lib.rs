//! Ravelin's suite crate.
