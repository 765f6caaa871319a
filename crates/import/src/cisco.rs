//! What routers with Cisco IOS print: the access lists of a configuration, and forwarding tables.

mod access_list;
mod forwarding;
#[cfg(test)]
mod tests;

pub use access_list::{AccessList, AccessListOptions, access_lists};
pub use forwarding::forwarding_table;
