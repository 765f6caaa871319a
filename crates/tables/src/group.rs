//! Groups: members that share traffic by weight, so that a change moves as few flows as it can (resilient
//! hashing).
//!
//! The idea: flows hash to a fixed number of buckets and each bucket names a member, so what a flow gets
//! changes only when its bucket does. A newcomer takes buckets, up to its fair share, from the members that
//! hold the most above theirs; when one leaves, its buckets alone go to the members that hold the least below
//! theirs. A fair share is the member's part of the buckets by weight, rounded by largest remainder, so the
//! shares add up to all buckets.
//!
//! ```text
//! bucket i, 4 bytes at 4 i: the member, or u32::MAX while the group is empty
//! ```

#[cfg(feature = "reference")]
mod model;

#[cfg(feature = "reference")]
pub use model::GroupModel;

use std::collections::BinaryHeap;

/// The most buckets a group has, and the most members.
pub const MAX_BUCKETS: u32 = 1 << 20;
/// What a bucket of an empty group holds, and what no member may be called.
pub const NONE: u32 = u32::MAX;

/// Why a group cannot be made or changed. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// No buckets or too many.
    #[error("a group of {buckets} buckets; it has 1 to {MAX_BUCKETS}: declare another number")]
    Buckets {
        /// The buckets asked for.
        buckets: u32,
    },
    /// The number stands for "none".
    #[error("a member called {NONE}, which means none: use another number")]
    Reserved,
    /// It is a member already.
    #[error("{member} is a member already: remove it first to change its weight")]
    Present {
        /// The member.
        member: u32,
    },
    /// Nothing would go to it.
    #[error("member {member} has weight 0: give it a weight from 1, or leave it out")]
    NoWeight {
        /// The member.
        member: u32,
    },
    /// Each member would not get a bucket.
    #[error("a group of {buckets} buckets has that many members already: make it with more buckets")]
    Full {
        /// The buckets there are.
        buckets: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Member {
    member: u32,
    weight: u32,
    held: u32,
}

/// A group over a fixed number of buckets; 64 a member and more keep the parts within a few per cent of the
/// weights.
///
/// ```
/// use tables::group::GroupTable;
///
/// let mut group = GroupTable::new(256)?;
/// assert_eq!(group.find(7), None);
/// assert_eq!(group.add(10, 1)?, 256);
/// assert_eq!(group.add(11, 3)?, 192);
/// assert_eq!(group.held(10), 64);
/// assert_eq!(group.remove(11), Some(192));
/// assert_eq!(group.find(7), Some(10));
/// # Ok::<(), tables::group::GroupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GroupTable {
    buckets: Vec<u32>,
    /// By ascending number.
    members: Vec<Member>,
}

impl GroupTable {
    /// Bytes that a group of so many buckets and members takes, itself among them.
    pub fn allocated(buckets: u32, members: u32) -> u64 {
        let members = if members == 0 { 0 } else { u64::from(members).next_power_of_two().max(4) };
        size_of::<GroupTable>() as u64 + 4 * u64::from(buckets) + size_of::<Member>() as u64 * members
    }

    /// An empty group.
    pub fn new(buckets: u32) -> Result<GroupTable, GroupError> {
        if buckets == 0 || buckets > MAX_BUCKETS {
            return Err(GroupError::Buckets { buckets });
        }
        Ok(GroupTable { buckets: vec![NONE; buckets as usize], members: Vec::new() })
    }

    /// Who gets the flow with this hash; `None` while the group is empty. All 32 bits of the hash count.
    #[inline]
    pub fn find(&self, hash: u32) -> Option<u32> {
        let member = self.buckets[bucket(hash, self.buckets.len())];
        (member != NONE).then_some(member)
    }

    /// The buckets in order; [`bucket`] chooses among them.
    pub fn buckets(&self) -> &[u32] {
        &self.buckets
    }

    /// The members with their weights, by ascending number.
    pub fn members(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.members.iter().map(|member| (member.member, member.weight))
    }

    /// Buckets that a member holds.
    pub fn held(&self, member: u32) -> u32 {
        self.place(member).map_or(0, |place| self.members[place].held)
    }

    /// Takes in a member; how many buckets it took.
    pub fn add(&mut self, member: u32, weight: u32) -> Result<u32, GroupError> {
        let place = match self.place(member) {
            _ if member == NONE => return Err(GroupError::Reserved),
            Ok(_) => return Err(GroupError::Present { member }),
            Err(_) if weight == 0 => return Err(GroupError::NoWeight { member }),
            Err(_) if self.members.len() == self.buckets.len() => {
                return Err(GroupError::Full { buckets: self.buckets.len() as u32 });
            }
            Err(place) => place,
        };
        self.members.insert(place, Member { member, weight, held: 0 });
        let shares = shares(&self.weights(), self.buckets.len() as u32);
        let wanted = shares[place];
        if self.members.len() == 1 {
            self.buckets.fill(member);
        } else {
            let mut give = self.surplus(&shares, place, wanted);
            for bucket in &mut self.buckets {
                let Ok(giver) = self.members.binary_search_by_key(bucket, |one| one.member) else { continue };
                if give[giver] > 0 {
                    give[giver] -= 1;
                    self.members[giver].held -= 1;
                    *bucket = member;
                }
            }
        }
        self.members[place].held = wanted;
        Ok(wanted)
    }

    /// Sends a member away; how many buckets moved, or `None` if it is no member. Every flow of another
    /// member stays where it is.
    pub fn remove(&mut self, member: u32) -> Option<u32> {
        let gone = self.members.remove(self.place(member).ok()?);
        let shares = shares(&self.weights(), self.buckets.len() as u32);
        // The most below its share comes first, the smallest number among equals.
        let mut takers: BinaryHeap<(i64, std::cmp::Reverse<usize>)> = (self.members.iter().zip(&shares))
            .enumerate()
            .map(|(place, (one, share))| (i64::from(*share) - i64::from(one.held), std::cmp::Reverse(place)))
            .collect();
        for bucket in self.buckets.iter_mut().filter(|bucket| **bucket == member) {
            let Some(mut most) = takers.peek_mut() else {
                *bucket = NONE;
                continue;
            };
            let place = most.1.0;
            most.0 -= 1;
            self.members[place].held += 1;
            *bucket = self.members[place].member;
        }
        Some(gone.held)
    }

    /// Gives members other weights, as far as `weight` tells one that is not 0; how many buckets moved. Where
    /// nobody's weight changes, nothing moves. Otherwise each bucket of a member that holds more than its
    /// share, in order, goes to who is the most below its own, the smallest number among equals.
    pub fn reweigh(&mut self, weight: impl Fn(u32) -> Option<u32>) -> u32 {
        let before = self.weights();
        for one in &mut self.members {
            one.weight = weight(one.member).filter(|weight| *weight > 0).unwrap_or(one.weight);
        }
        if self.weights() == before {
            return 0;
        }
        let shares = shares(&self.weights(), self.buckets.len() as u32);
        let mut takers: BinaryHeap<(i64, std::cmp::Reverse<usize>)> = (self.members.iter().zip(&shares))
            .enumerate()
            .map(|(place, (one, share))| (i64::from(*share) - i64::from(one.held), std::cmp::Reverse(place)))
            .filter(|(below, _)| *below > 0)
            .collect();
        let mut moved = 0;
        for bucket in &mut self.buckets {
            let Ok(giver) = self.members.binary_search_by_key(bucket, |one| one.member) else { continue };
            if self.members[giver].held <= shares[giver] {
                continue;
            }
            let Some(mut most) = takers.peek_mut() else { break };
            let place = most.1.0;
            most.0 -= 1;
            self.members[giver].held -= 1;
            self.members[place].held += 1;
            *bucket = self.members[place].member;
            moved += 1;
        }
        moved
    }

    /// The same group whose members have other numbers, each one of its own. Those that have none leave.
    pub fn renumbered(&self, number: impl Fn(u32) -> Option<u32>) -> GroupTable {
        let mut same = self.clone();
        for (gone, _) in self.members().filter(|(member, _)| number(*member).is_none()) {
            same.remove(gone);
        }
        for bucket in same.buckets.iter_mut().filter(|bucket| **bucket != NONE) {
            *bucket = number(*bucket).unwrap_or(NONE);
        }
        for one in &mut same.members {
            one.member = number(one.member).unwrap_or(one.member);
        }
        same.members.sort_unstable_by_key(|one| one.member);
        same
    }

    fn place(&self, member: u32) -> Result<usize, usize> {
        self.members.binary_search_by_key(&member, |one| one.member)
    }

    fn weights(&self) -> Vec<u32> {
        self.members.iter().map(|member| member.weight).collect()
    }

    /// How many buckets each member gives so that the newcomer has what it wants: one at a time from who
    /// holds the most above its share, the smallest number among equals.
    fn surplus(&self, shares: &[u32], newcomer: usize, wanted: u32) -> Vec<u32> {
        let mut give = vec![0; self.members.len()];
        let mut givers: BinaryHeap<(i64, std::cmp::Reverse<usize>)> = (self.members.iter().zip(shares))
            .enumerate()
            .filter(|(place, _)| *place != newcomer)
            .map(|(place, (one, share))| (i64::from(one.held) - i64::from(*share), std::cmp::Reverse(place)))
            .collect();
        for _ in 0..wanted {
            let Some(mut most) = givers.peek_mut() else { break };
            most.0 -= 1;
            give[most.1.0] += 1;
        }
        give
    }
}

/// The bucket of a flow's hash among `buckets`: the hash is spread by a multiplication and its high bits
/// choose.
#[inline]
pub fn bucket(hash: u32, buckets: usize) -> usize {
    let spread = hash.wrapping_mul(0x9e37_79b1);
    ((u64::from(spread ^ spread >> 15) * buckets as u64) >> 32) as usize
}

/// Each member's part of the buckets: the exact part rounded down, and one more for those with the largest
/// remainders, the first among equals. Then nobody is left with nothing while another holds two: members
/// without a bucket take one from the largest.
fn shares(weights: &[u32], buckets: u32) -> Vec<u32> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if total == 0 {
        return Vec::new();
    }
    let exact = |weight: u32| u128::from(weight) * u128::from(buckets);
    let mut shares: Vec<u32> = weights.iter().map(|weight| (exact(*weight) / total) as u32).collect();
    let left = buckets - shares.iter().sum::<u32>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(exact(weights[*place]) % total));
    for place in order.iter().take(left as usize) {
        shares[*place] += 1;
    }
    let empty: Vec<usize> = (0..shares.len()).filter(|place| shares[*place] == 0).collect();
    if empty.is_empty() {
        return shares;
    }
    let others = shares.iter().enumerate().filter(|(_, share)| **share > 1);
    let mut largest: BinaryHeap<(u32, std::cmp::Reverse<usize>)> =
        others.map(|(place, share)| (*share, std::cmp::Reverse(place))).collect();
    for place in empty.into_iter().rev() {
        let Some(mut most) = largest.peek_mut() else { break };
        if most.0 < 2 {
            break;
        }
        most.0 -= 1;
        shares[most.1.0] -= 1;
        shares[place] = 1;
    }
    shares
}

#[cfg(test)]
mod tests;
