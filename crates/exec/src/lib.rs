//! Ravelin's exec crate.
