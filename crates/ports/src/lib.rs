//! Ravelin's ports crate.
