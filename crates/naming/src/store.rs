//! What outlives a process: the epochs of its lives, names that were added, and who has been bound to whom.
//!
//! ```text
//!  part      key                                         value
//!  Life      (empty)                                     epoch u64, time u64
//!  Bindings  initiator u32, address u32, protocol u8,    gateway u32, host u32, ended u64
//!            port u16                                    (0: it had not ended)
//!  Names     the name                                    what the caller makes of it
//! ```
//!
//! Numbers have their highest byte first. Times are nanoseconds since 1970: those of a process mean nothing
//! to the next one. A [`Store`] keeps bytes, so that another one than a file of this machine can take its
//! place.

use crate::bindings::BindingKey;
use crate::limits::QUARANTINE;
use crate::service::Service;
use std::net::Ipv4Addr;

/// What a store keeps apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StorePart {
    /// The last life of the process.
    Life,
    /// Names that were added while it ran.
    Names,
    /// Who reaches whom, and who has done so a short time ago.
    Bindings,
}

impl StorePart {
    /// All parts.
    pub const ALL: [StorePart; 3] = [StorePart::Life, StorePart::Names, StorePart::Bindings];
}

/// A change of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreChange {
    /// Where.
    pub part: StorePart,
    /// By which key.
    pub key: Vec<u8>,
    /// The value; none removes what is there.
    pub value: Option<Vec<u8>>,
}

/// A store that cannot do what it should, in words of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// A key and its value.
pub type Stored = (Vec<u8>, Vec<u8>);

/// Keeps bytes by key. There is one writer.
pub trait Store: Send {
    /// All keys of a part with their values, in ascending order.
    ///
    /// # Errors
    /// It cannot be read.
    fn all(&self, part: StorePart) -> Result<Vec<Stored>, StoreError>;

    /// Makes changes in their order, all or none. When it returns, they outlive the process and the machine.
    ///
    /// # Errors
    /// It is not certain that they were made.
    fn commit(&mut self, changes: &[StoreChange]) -> Result<(), StoreError>;
}

/// Why a process does not begin with what is stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoredError {
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A value has another form.
    #[error("a value in `{0:?}` is damaged: take the file away, and add names again")]
    Damaged(StorePart),
    /// The clock has gone back since it was written.
    #[error(
        "it was written {0} s later than now by the clock of the machine, so nobody knows how long ago bindings ended: set the clock, such as by `chronyc makestep`, and start again"
    )]
    ClockBehind(u64),
}

/// A binding of an earlier life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBinding {
    /// Whose binding it is.
    pub key: BindingKey,
    /// The number of the gateway.
    pub gateway: u32,
    /// The host behind it.
    pub host: Ipv4Addr,
    /// How long ago it ended, ns: less than [`QUARANTINE`].
    pub ago: u64,
}

/// Begins another life: its epoch is larger than that of each life before, and stored. Bindings that had not
/// ended end now; those in quarantine are given, the one that ended first in front. `now` is the time since
/// 1970.
///
/// # Errors
/// The store fails or is damaged, or the clock has gone back.
pub fn begin_life(store: &mut dyn Store, now: u64) -> Result<(u64, Vec<StoredBinding>), StoredError> {
    let mut epoch = now;
    for (_, value) in store.all(StorePart::Life)? {
        let (before, written) = two(&value).ok_or(StoredError::Damaged(StorePart::Life))?;
        if written > now {
            return Err(StoredError::ClockBehind((written - now).div_ceil(1_000_000_000)));
        }
        epoch = epoch.max(before.saturating_add(1));
    }
    let (mut changes, mut bindings) = (vec![life(epoch, now)], Vec::new());
    for (key, value) in store.all(StorePart::Bindings)? {
        let damaged = StoredError::Damaged(StorePart::Bindings);
        let (bound, gateway, host, ended) = read_binding(&key, &value).ok_or(damaged)?;
        // No value is of a later time than the life: both are written together.
        let ago = if ended == 0 { 0 } else { now.saturating_sub(ended) };
        if ago >= QUARANTINE {
            changes.push(StoreChange { part: StorePart::Bindings, key, value: None });
            continue;
        }
        if ended == 0 {
            changes.push(binding(&bound, gateway, host, now));
        }
        bindings.push(StoredBinding { key: bound, gateway, host, ago });
    }
    bindings.sort_by_key(|one| std::cmp::Reverse(one.ago));
    store.commit(&changes)?;
    Ok((epoch, bindings))
}

/// The change that says how far this life has come.
pub fn life(epoch: u64, now: u64) -> StoreChange {
    let value = [epoch.to_be_bytes(), now.to_be_bytes()].concat();
    StoreChange { part: StorePart::Life, key: Vec::new(), value: Some(value) }
}

/// The change that stores a binding; `ended` is 0 while it lasts.
pub fn binding(key: &BindingKey, gateway: u32, host: Ipv4Addr, ended: u64) -> StoreChange {
    let mut value = [gateway.to_be_bytes(), host.octets()].concat();
    value.extend(ended.to_be_bytes());
    StoreChange { part: StorePart::Bindings, key: binding_key(key), value: Some(value) }
}

/// The change that forgets a binding.
pub fn no_binding(key: &BindingKey) -> StoreChange {
    StoreChange { part: StorePart::Bindings, key: binding_key(key), value: None }
}

fn binding_key(key: &BindingKey) -> Vec<u8> {
    let mut bytes = [key.initiator.octets(), key.address.octets()].concat();
    bytes.push(key.service.protocol);
    bytes.extend(key.service.port.to_be_bytes());
    bytes
}

fn read_binding(key: &[u8], value: &[u8]) -> Option<(BindingKey, u32, Ipv4Addr, u64)> {
    let (initiator, rest) = key.split_first_chunk::<4>()?;
    let (address, rest) = rest.split_first_chunk::<4>()?;
    let &[protocol, high, low] = rest else { return None };
    let service = Service { protocol, port: u16::from_be_bytes([high, low]) };
    let key = BindingKey { initiator: (*initiator).into(), address: (*address).into(), service };
    let (gateway, rest) = value.split_first_chunk::<4>()?;
    let (host, ended) = rest.split_first_chunk::<4>()?;
    Some((key, u32::from_be_bytes(*gateway), (*host).into(), u64::from_be_bytes(ended.try_into().ok()?)))
}

fn two(value: &[u8]) -> Option<(u64, u64)> {
    let (one, other) = value.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*one), u64::from_be_bytes(other.try_into().ok()?)))
}
