//! Ravelin's engine crate.
