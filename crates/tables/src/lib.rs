//! Ravelin's tables crate.
