//! What routers with Cisco IOS print: the access lists of a configuration, and forwarding tables.

pub(crate) mod access_list;
mod entry;
mod forwarding;
pub(crate) mod list;
mod object_group;
#[cfg(test)]
mod tests;
mod texts;

pub use access_list::{AccessList, AccessListOptions, access_lists};
pub use forwarding::forwarding_table;
