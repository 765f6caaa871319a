//! What administrators sign comes out as they signed it, in the one encoding that a second encoder makes too.

mod made;

use bundle::sign::{add_signature, read_unverified, sign};
use bundle::{KeyPrefix, TableRight, Trust};
use made::{ENGINE, GATEWAY, NOW};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use tables::generate::Random;

#[test]
fn a_policy_comes_out_as_two_of_three_signed_it() {
    let policy = made::policy();
    let one = sign(&policy, &made::signer(3)).unwrap();
    let bundle = add_signature(&one, &made::signer(1)).unwrap();
    let accepted = made::trust().accept(&bundle, NOW, 299, ENGINE).unwrap();
    assert_eq!(accepted.policy, policy);
    let mut names = accepted.signed_by.clone();
    names.sort_unstable();
    assert_eq!(names, ["admin-1", "admin-3"]);
    assert_eq!(accepted.hash, *Sha256::digest(made::bytes(&made::value(&policy))));
    // In whatever order they sign, the bundle is the same, and who signs again changes nothing.
    let other = add_signature(&sign(&policy, &made::signer(1)).unwrap(), &made::signer(3)).unwrap();
    assert_eq!(other, bundle);
    assert_eq!(add_signature(&bundle, &made::signer(1)).unwrap(), bundle);
    let seen = read_unverified(&bundle).unwrap();
    assert_eq!((seen.policy, seen.keys), (policy, made::public_keys(&[1, 3])));
}

#[test]
fn all_keys_may_sign_and_one_key_may_be_enough() {
    let policy = made::policy();
    let numbers: Vec<u8> = (1..=16).collect();
    let mut bundle = sign(&policy, &made::signer(1)).unwrap();
    let alone = Trust::new(GATEWAY, made::trusted(&[1]), 1).unwrap();
    assert_eq!(alone.accept(&bundle, NOW, 0, ENGINE).unwrap().signed_by, ["admin-1"]);
    for number in &numbers[1..] {
        bundle = add_signature(&bundle, &made::signer(*number)).unwrap();
    }
    let all = Trust::new(GATEWAY, made::trusted(&numbers), 16).unwrap();
    let accepted = all.accept(&bundle, NOW, 0, ENGINE).unwrap();
    assert_eq!(accepted.signed_by.len(), 16);
    assert_eq!(accepted.policy, policy);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_policy_has_the_encoding_of_a_second_encoder(seed: u64) {
        let policy = made::random_policy(&mut Random::new(seed));
        let bundle = add_signature(&sign(&policy, &made::signer(1)).unwrap(), &made::signer(2)).unwrap();
        prop_assert_eq!(&bundle, &made::signed(made::bytes(&made::value(&policy)), &[1, 2]));
        let engine = bundle::EngineVersion { major: 2, ..ENGINE };
        let accepted = made::trust().accept(&bundle, policy.not_before, policy.version - 1, engine).unwrap();
        prop_assert_eq!(accepted.policy, policy);
    }

    #[test]
    fn prefixes_cover_what_begins_with_their_bits(seed: u64) {
        let random = &mut Random::new(seed);
        let one = made::random_prefix(random);
        // Related to it in most cases: the same width, and a part of its bits.
        let width = if random.chance(80) { one.width() } else { random.between(1, 128) as u8 };
        let length = random.below(u64::from(width) + 1) as u8;
        let flipped = random.below(u64::from(width) * 3) as u8;
        let bit = |at: u8| {
            let own = at < one.width() && one.bits() >> (one.width() - 1 - at) & 1 == 1;
            at < length && own != (at == flipped)
        };
        let bits = (0..width).fold(0_u128, |bits, at| bits << 1 | u128::from(bit(at)));
        let other = KeyPrefix::new(width, length, bits).unwrap();
        let begins = one.width() == width
            && one.length() <= length
            && (0..one.length()).all(|at| bit(at) == (one.bits() >> (width - 1 - at) & 1 == 1));
        prop_assert_eq!(one.covers(other), begins);
        let right = TableRight {
            table: "t".to_owned(), prefixes: vec![one], most_entries: 1, changes_per_second: 1,
        };
        prop_assert_eq!(right.covers(other), begins);
    }
}

#[test]
fn a_right_covers_what_one_of_its_prefixes_covers() {
    let route = |length, bits| KeyPrefix::new(32, length, bits).unwrap();
    let right = made::policy().rights[1].clone();
    for inside in [route(8, 0x0a00_0000), route(32, 0x0aff_ffff), route(16, 0xac1f_0000)] {
        assert!(right.covers(inside), "{inside:?}");
    }
    for outside in [route(7, 0x0a00_0000), route(32, 0x0b00_0000), route(16, 0xac20_0000), route(0, 0)] {
        assert!(!right.covers(outside), "{outside:?}");
    }
    assert!(!right.covers(KeyPrefix::new(128, 8, 0x0a << 120).unwrap()));
    assert!(!TableRight { prefixes: Vec::new(), ..right }.covers(route(32, 0x0a00_0001)));
}

#[test]
fn a_prefix_has_no_bit_outside_of_its_length() {
    assert!(KeyPrefix::new(0, 0, 0).is_none());
    assert!(KeyPrefix::new(129, 0, 0).is_none());
    assert!(KeyPrefix::new(32, 33, 0).is_none());
    assert!(KeyPrefix::new(32, 8, 0x0a00_0001).is_none());
    assert!(KeyPrefix::new(32, 8, 0x1_0000_0000).is_none());
    assert!(KeyPrefix::new(32, 0, 1).is_none());
    let all = KeyPrefix::new(128, 128, u128::MAX).unwrap();
    assert_eq!((all.width(), all.length(), all.bits()), (128, 128, u128::MAX));
    assert!(KeyPrefix::new(128, 0, 0).unwrap().covers(all));
}
