//! The form in which explanations are written down.

/// An explanation as it is written down; `mend` replaces one part of the example by another and is empty
/// where one edit does not do.
pub(super) struct Entry {
    pub(super) code: &'static str,
    pub(super) headline: &'static str,
    pub(super) cause: &'static str,
    pub(super) example: &'static str,
    pub(super) fix: &'static str,
    pub(super) mend: (&'static str, &'static str),
}
