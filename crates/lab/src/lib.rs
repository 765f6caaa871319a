//! Ravelin's lab crate.
