//! A sorted map whose copies share what they have in common: copying costs nothing, and comparing two copies
//! costs what they differ in.
//!
//! It is a treap: sorted by key, and every node has a larger priority than those below it. Priorities are
//! hashes of the keys, so the same keys make the same tree whatever the order they came in, and trees that
//! come from each other share all nodes but those on the way to what changed.

use std::cmp::Ordering;
use std::fmt::{Debug, Formatter};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// A map that is cheap to copy.
pub(crate) struct Map<K, V> {
    root: Tree<K, V>,
}

type Tree<K, V> = Option<Rc<Node<K, V>>>;

#[derive(Clone)]
struct Node<K, V> {
    key: K,
    value: V,
    priority: u64,
    left: Tree<K, V>,
    right: Tree<K, V>,
}

/// A key with its values in two maps, at least one of which has it.
pub(crate) type Difference<K, V> = (K, Option<V>, Option<V>);

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Map { root: self.root.clone() }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Map { root: None }
    }
}

impl<K: Copy + Ord + Hash + Debug, V: Copy + PartialEq + Debug> Debug for Map<K, V> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Copy + Ord + Hash, V: Copy + PartialEq> Map<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let mut at = self.root.as_deref();
        while let Some(node) = at {
            at = match key.cmp(&node.key) {
                Ordering::Less => node.left.as_deref(),
                Ordering::Greater => node.right.as_deref(),
                Ordering::Equal => return Some(&node.value),
            };
        }
        None
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        // What is the same stays shared.
        if self.get(&key) != Some(&value) {
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            insert(&mut self.root, key, value, hasher.finish());
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let found = self.get(key).copied();
        if found.is_some() {
            remove(&mut self.root, key);
        }
        found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub(crate) fn clear(&mut self) {
        self.root = None;
    }

    /// All keys with their values, sorted.
    pub(crate) fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { above: Vec::new() };
        iter.down(self.root.as_deref());
        iter
    }

    /// The same from a key on.
    pub(crate) fn from(&self, first: &K) -> Iter<'_, K, V> {
        let mut iter = Iter { above: Vec::new() };
        let mut at = self.root.as_deref();
        while let Some(node) = at {
            at = if node.key < *first {
                node.right.as_deref()
            } else {
                iter.above.push(node);
                node.left.as_deref()
            };
        }
        iter
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Leaves only what the condition holds for.
    pub(crate) fn retain(&mut self, stays: impl Fn(&K) -> bool) {
        let gone: Vec<K> = self.keys().filter(|key| !stays(key)).copied().collect();
        for key in &gone {
            remove(&mut self.root, key);
        }
    }

    /// Where two maps differ, sorted by key.
    pub(crate) fn differences(&self, other: &Self) -> Vec<Difference<K, V>> {
        let mut found = Vec::new();
        differences(&self.root, &other.root, &mut found);
        found
    }
}

impl<K: Copy + Ord + Hash, V: Copy + PartialEq> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut map = Map::default();
        pairs.into_iter().for_each(|(key, value)| map.insert(key, value));
        map
    }
}

impl<K: Copy + Ord + Hash, V: Copy + PartialEq> std::ops::Index<&K> for Map<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the key is in the map")
    }
}

/// What [`Map::iter`] gives: the nodes whose right side is still to come, the next one last.
pub(crate) struct Iter<'m, K, V> {
    above: Vec<&'m Node<K, V>>,
}

impl<'m, K, V> Iter<'m, K, V> {
    fn down(&mut self, mut at: Option<&'m Node<K, V>>) {
        while let Some(node) = at {
            self.above.push(node);
            at = node.left.as_deref();
        }
    }
}

impl<'m, K, V> Iterator for Iter<'m, K, V> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.above.pop()?;
        self.down(node.right.as_deref());
        Some((&node.key, &node.value))
    }
}

fn insert<K: Copy + Ord, V: Copy>(tree: &mut Tree<K, V>, key: K, value: V, priority: u64) {
    match tree {
        Some(node) if node.key == key => Rc::make_mut(node).value = value,
        Some(node) if goes_above(node, &key, priority) => {
            let node = Rc::make_mut(node);
            let side = if key < node.key { &mut node.left } else { &mut node.right };
            insert(side, key, value, priority);
        }
        _ => {
            let (left, _, right) = split(tree, &key);
            *tree = Some(Rc::new(Node { key, value, priority, left, right }));
        }
    }
}

/// Whether a node stands above a key of this priority; between equal priorities the smaller key does.
fn goes_above<K: Ord, V>(node: &Node<K, V>, key: &K, priority: u64) -> bool {
    (node.priority, key) > (priority, &node.key)
}

fn remove<K: Copy + Ord, V: Copy>(tree: &mut Tree<K, V>, key: &K) {
    let Some(node) = tree else { return };
    match key.cmp(&node.key) {
        Ordering::Less => remove(&mut Rc::make_mut(node).left, key),
        Ordering::Greater => remove(&mut Rc::make_mut(node).right, key),
        Ordering::Equal => *tree = joined(node.left.clone(), node.right.clone()),
    }
}

/// One tree of two, all keys of the first being smaller.
fn joined<K: Copy + Ord, V: Copy>(left: Tree<K, V>, right: Tree<K, V>) -> Tree<K, V> {
    let (Some(mut low), Some(mut high)) = (left.clone(), right.clone()) else { return left.or(right) };
    drop((left, right));
    if goes_above(&low, &high.key, high.priority) {
        let node = Rc::make_mut(&mut low);
        node.right = joined(node.right.take(), Some(high));
        Some(low)
    } else {
        let node = Rc::make_mut(&mut high);
        node.left = joined(Some(low), node.left.take());
        Some(high)
    }
}

/// What is before a key, its value, and what is behind it.
fn split<K: Copy + Ord, V: Copy>(tree: &Tree<K, V>, key: &K) -> (Tree<K, V>, Option<V>, Tree<K, V>) {
    let Some(node) = tree else { return (None, None, None) };
    match key.cmp(&node.key) {
        Ordering::Equal => (node.left.clone(), Some(node.value), node.right.clone()),
        Ordering::Less => {
            let (before, value, behind) = split(&node.left, key);
            (before, value, Some(Rc::new(Node { left: behind, right: node.right.clone(), ..**node })))
        }
        Ordering::Greater => {
            let (before, value, behind) = split(&node.right, key);
            (Some(Rc::new(Node { left: node.left.clone(), right: before, ..**node })), value, behind)
        }
    }
}

fn differences<K: Copy + Ord, V: Copy + PartialEq>(
    one: &Tree<K, V>,
    other: &Tree<K, V>,
    found: &mut Vec<Difference<K, V>>,
) {
    match (one, other) {
        (Some(a), Some(b)) if Rc::ptr_eq(a, b) => {}
        (None, None) => {}
        (Some(a), b) if b.as_ref().is_none_or(|b| a.key == b.key || goes_above(a, &b.key, b.priority)) => {
            let (before, value, behind) = split(b, &a.key);
            differences(&a.left, &before, found);
            if value != Some(a.value) {
                found.push((a.key, Some(a.value), value));
            }
            differences(&a.right, &behind, found);
        }
        (a, Some(b)) => {
            let (before, value, behind) = split(a, &b.key);
            differences(&before, &b.left, found);
            if value != Some(b.value) {
                found.push((b.key, value, Some(b.value)));
            }
            differences(&behind, &b.right, found);
        }
        (Some(_), None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::Map;
    use std::collections::BTreeMap;

    #[test]
    fn it_answers_as_a_sorted_map_does_and_its_copies_stay() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut versions: Vec<(Map<u64, u64>, BTreeMap<u64, u64>)> = vec![Default::default()];
        for _ in 0..2_000 {
            let (mut map, mut twin) = versions[random(versions.len() as u64) as usize].clone();
            for _ in 0..random(5) {
                let key = random(60);
                if random(3) == 0 {
                    assert_eq!(map.remove(&key), twin.remove(&key));
                } else {
                    let value = random(3);
                    map.insert(key, value);
                    twin.insert(key, value);
                }
            }
            if random(40) == 0 {
                map.retain(|key| key % 3 != 0);
                twin.retain(|key, _| key % 3 != 0);
            }
            let (first, key) = (random(60), random(60));
            assert!(map.iter().eq(twin.iter()));
            assert!(map.from(&first).eq(twin.range(first..)));
            assert_eq!(map.get(&key), twin.get(&key));
            let (other, its) = &versions[random(versions.len() as u64) as usize];
            let keys: std::collections::BTreeSet<u64> = twin.keys().chain(its.keys()).copied().collect();
            let pairs = keys.into_iter().map(|key| (key, twin.get(&key).copied(), its.get(&key).copied()));
            let expected: Vec<_> = pairs.filter(|(_, one, other)| one != other).collect();
            assert_eq!(map.differences(other), expected);
            versions.push((map, twin));
        }
        assert!(versions.iter().all(|(map, twin)| map.iter().eq(twin.iter())));
    }

    #[test]
    fn comparing_copies_costs_what_they_differ_in() {
        let steps = |size: u32| {
            let map: Map<u32, u32> = (0..size).map(|key| (key, 0)).collect();
            let mut other = map.clone();
            other.insert(size / 2, 1);
            other.remove(&(size / 3));
            allocation_counter::measure(|| assert_eq!(map.differences(&other).len(), 2)).count_total
        };
        // Twice as many keys make the tree about one level deeper.
        assert!(steps(40_000) < steps(10_000) + 60, "{} and {}", steps(40_000), steps(10_000));
    }
}
