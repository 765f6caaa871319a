//! The model of a group, simple enough to be the reference: it moves one bucket at a time, and counts all
//! loads again before the next one.

use std::collections::BTreeMap;

use super::{GroupError, MAX_BUCKETS, NONE, bucket, shares};

/// A group over ordered maps: the judge of [`GroupTable`](super::GroupTable).
pub struct GroupModel {
    buckets: Vec<u32>,
    weights: BTreeMap<u32, u32>,
}

impl GroupModel {
    /// An empty group.
    pub fn new(buckets: u32) -> Result<GroupModel, GroupError> {
        if buckets == 0 || buckets > MAX_BUCKETS {
            return Err(GroupError::Buckets { buckets });
        }
        Ok(GroupModel { buckets: vec![NONE; buckets as usize], weights: BTreeMap::new() })
    }

    /// [`GroupTable::find`](super::GroupTable::find).
    pub fn find(&self, hash: u32) -> Option<u32> {
        Some(self.buckets[bucket(hash, self.buckets.len())]).filter(|member| *member != NONE)
    }

    /// The buckets in order.
    pub fn buckets(&self) -> &[u32] {
        &self.buckets
    }

    /// [`GroupTable::add`](super::GroupTable::add).
    pub fn add(&mut self, member: u32, weight: u32) -> Result<u32, GroupError> {
        if member == NONE {
            return Err(GroupError::Reserved);
        }
        if self.weights.contains_key(&member) {
            return Err(GroupError::Present { member });
        }
        if weight == 0 {
            return Err(GroupError::NoWeight { member });
        }
        if self.weights.len() == self.buckets.len() {
            return Err(GroupError::Full { buckets: self.buckets.len() as u32 });
        }
        self.weights.insert(member, weight);
        if self.weights.len() == 1 {
            self.buckets.fill(member);
            return Ok(self.buckets.len() as u32);
        }
        let wanted = self.shares()[&member];
        for _ in 0..wanted {
            let most = self.by_surplus().into_iter().filter(|(_, other)| *other != member).min_by_key(first);
            let Some((_, giver)) = most else { break };
            if let Some(bucket) = self.buckets.iter_mut().find(|bucket| **bucket == giver) {
                *bucket = member;
            }
        }
        Ok(wanted)
    }

    /// [`GroupTable::remove`](super::GroupTable::remove).
    pub fn remove(&mut self, member: u32) -> Option<u32> {
        self.weights.remove(&member)?;
        let mut moved = 0;
        while let Some(place) = self.buckets.iter().position(|bucket| *bucket == member) {
            let least = self.by_surplus().into_iter().min_by_key(|(surplus, other)| (*surplus, *other));
            self.buckets[place] = least.map_or(NONE, |(_, taker)| taker);
            moved += 1;
        }
        Some(moved)
    }

    /// [`GroupTable::reweigh`](super::GroupTable::reweigh).
    pub fn reweigh(&mut self, weight: impl Fn(u32) -> Option<u32>) -> u32 {
        let before = self.weights.clone();
        for (member, old) in &mut self.weights {
            *old = weight(*member).filter(|weight| *weight > 0).unwrap_or(*old);
        }
        let mut moved = 0;
        for place in 0..self.buckets.len() {
            let surplus = self.by_surplus();
            let giver = surplus.iter().any(|(more, member)| *member == self.buckets[place] && *more > 0);
            let taker = surplus.iter().copied().min_by_key(|(surplus, other)| (*surplus, *other));
            if let Some((_, taker)) = taker.filter(|_| giver && self.weights != before) {
                self.buckets[place] = taker;
                moved += 1;
            }
        }
        moved
    }

    fn shares(&self) -> BTreeMap<u32, u32> {
        let weights: Vec<u32> = self.weights.values().copied().collect();
        self.weights.keys().copied().zip(shares(&weights, self.buckets.len() as u32)).collect()
    }

    /// Buckets held above the share, and the member.
    fn by_surplus(&self) -> Vec<(i64, u32)> {
        let held = |member: &u32| self.buckets.iter().filter(|bucket| *bucket == member).count() as i64;
        self.shares().iter().map(|(member, share)| (held(member) - i64::from(*share), *member)).collect()
    }
}

/// The largest surplus first, the smallest number among equals.
fn first((surplus, member): &(i64, u32)) -> (std::cmp::Reverse<i64>, u32) {
    (std::cmp::Reverse(*surplus), *member)
}
