//! Ravelin's packet crate.
