//! Ravelin's lang crate.
