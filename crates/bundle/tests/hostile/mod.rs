//! Bundles that no gateway may accept, each made from a good one by one of many ways, and the situation in
//! which it is handed in.

use crate::made::{self, ENGINE, GATEWAY, bytes, cose, cose_in_order, signed, value};
use bundle::{Accepted, BundleRefusal, CONTEXT, EngineVersion, SignedPolicy, Trust};
use ciborium::Value;
use tables::generate::Random;

/// A bundle and who is asked about it, when.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// By which way it was made.
    pub(crate) way: &'static str,
    pub(crate) bundle: Vec<u8>,
    /// Which of [`GATEWAYS`].
    pub(crate) gateway: usize,
    pub(crate) now: u64,
    pub(crate) newest: u64,
    pub(crate) engine: EngineVersion,
}

/// The gateway of all good bundles, and others.
pub(crate) const GATEWAYS: [&str; 4] = [GATEWAY, "gateway-8.example", "gateway-7.example.", "x"];

/// The gateways that are asked. Two of the first three administrators have to sign.
pub(crate) struct Gateways([Trust; 4]);

impl Gateways {
    pub(crate) fn new() -> Self {
        Self(GATEWAYS.map(|gateway| Trust::new(gateway, made::trusted(&ADMINISTRATORS), 2).unwrap()))
    }

    pub(crate) fn judge(&self, case: &Case) -> Result<Accepted, BundleRefusal> {
        self.0[case.gateway].accept(&case.bundle, case.now, case.newest, case.engine)
    }
}

/// A good bundle, and others of the same policy.
struct Original {
    policy: SignedPolicy,
    signers: [u8; 2],
    bundle: Vec<u8>,
    /// Signed well, but not as a gateway needs it.
    ill_signed: Vec<(&'static str, Vec<u8>)>,
}

/// The bundles that cases are made from.
pub(crate) struct Originals {
    all: Vec<Original>,
    keys: Vec<[u8; 32]>,
}

/// Whose keys the gateways know.
pub(crate) const ADMINISTRATORS: [u8; 3] = [1, 2, 3];

impl Originals {
    pub(crate) fn new(random: &mut Random, count: usize) -> Self {
        let all = (0..count).map(|_| Original::new(random)).collect();
        Self { all, keys: made::public_keys(&ADMINISTRATORS) }
    }

    /// All of them as they are, to be accepted.
    pub(crate) fn good(&self) -> impl Iterator<Item = Case> + '_ {
        self.all.iter().map(Original::good)
    }

    /// The next case. It is never a good bundle in a situation in which it is to be accepted.
    pub(crate) fn hostile(&self, random: &mut Random) -> Case {
        loop {
            let (one, other) = (random.pick(&self.all).unwrap(), random.pick(&self.all).unwrap());
            let case = one.spoiled(other, &self.keys, random);
            let unchanged = self.all.iter().any(|original| original.bundle == case.bundle);
            if !unchanged || case.way.starts_with("situation: ") {
                return case;
            }
        }
    }
}

impl Original {
    fn new(random: &mut Random) -> Self {
        let policy = made::random_policy(random);
        let signers = *random.pick(&[[1, 2], [1, 3], [2, 3]]).unwrap();
        let payload = || bytes(&value(&policy));
        let [first, second] = signers;
        let mut backwards = signers;
        backwards.sort_unstable_by_key(|number| std::cmp::Reverse(made::public_key(*number)));
        let mut ill_signed = vec![
            ("k-1 signatures", signed(payload(), &[first])),
            ("no signatures", signed(payload(), &[])),
            ("one key twice", cose_in_order(payload(), &[first, first], CONTEXT)),
            ("one key twice, and another", cose(payload(), &[first, second, second], CONTEXT)),
            ("signatures out of order", cose_in_order(payload(), &backwards, CONTEXT)),
            ("a stranger and one administrator", signed(payload(), &[first, 9])),
            ("strangers", signed(payload(), &[8, 9])),
            ("a stranger beside enough administrators", signed(payload(), &[first, second, 9])),
        ];
        let contexts: [&[u8]; 4] =
            [b"", &CONTEXT[1..], b"ravelin signed policy, format 2", b"ravelin release"];
        for context in contexts {
            ill_signed.push(("another context", cose(payload(), &signers, context)));
        }
        Self { bundle: signed(payload(), &signers), policy, signers, ill_signed }
    }

    fn good(&self) -> Case {
        let SignedPolicy { version, not_before, .. } = self.policy;
        let (bundle, engine) = (self.bundle.clone(), EngineVersion { major: 2, ..ENGINE });
        Case { way: "unchanged", bundle, gateway: 0, now: not_before, newest: version - 1, engine }
    }

    fn spoiled(&self, other: &Original, keys: &[[u8; 32]], random: &mut Random) -> Case {
        let mut case = self.good();
        let length = case.bundle.len() as u64;
        let at = random.below(length) as usize;
        let end = (at + random.pareto(100) as usize).min(case.bundle.len());
        case.way = match random.below(100) {
            0..40 => {
                for _ in 0..random.pareto(8) {
                    let at = random.below(length) as usize;
                    case.bundle[at] ^= match random.chance(50) {
                        true => 1 << random.below(8),
                        false => random.between(1, 255) as u8,
                    };
                }
                "changed bytes"
            }
            40..48 => {
                case.bundle.truncate(at);
                "truncated"
            }
            48..54 => {
                case.bundle.extend((0..random.pareto(50)).map(|_| random.word() as u8));
                "extended"
            }
            54..58 => {
                case.bundle.drain(at..end);
                "bytes left out"
            }
            58..62 => {
                let twice = case.bundle[at..end].to_vec();
                case.bundle.splice(at..at, twice);
                "bytes twice"
            }
            62..65 => {
                case.bundle.truncate(at);
                case.bundle.extend(other.bundle.iter().skip(at));
                "two bundles in one"
            }
            65..68 => {
                let signatures = other.bundle.len() - 2 * SIGNATURE_BYTES;
                case.bundle.truncate(length as usize - 2 * SIGNATURE_BYTES);
                case.bundle.extend(&other.bundle[signatures..]);
                "signatures of another bundle"
            }
            68..70 => {
                let place = length as usize - random.between(1, 2) as usize * SIGNATURE_BYTES + KEY_AT;
                case.bundle[place..place + 32].copy_from_slice(random.pick(keys).unwrap());
                "another key named"
            }
            70..75 => {
                case.newest = self.policy.version.saturating_add(random.pareto(u64::MAX) - 1);
                "situation: older, or replayed"
            }
            75..80 => {
                case.now = self.policy.expiry.saturating_add(random.pareto(u64::MAX) - 1);
                "situation: expired"
            }
            80..84 => {
                case.now = self.policy.not_before.saturating_sub(random.pareto(u64::MAX));
                "situation: not yet valid"
            }
            84..87 => {
                case.gateway = random.between(1, 3) as usize;
                "situation: another gateway"
            }
            87..89 => {
                case.engine.major = 0;
                "situation: older engine"
            }
            89..97 => {
                let (way, bundle) = random.pick(&self.ill_signed).unwrap();
                case.bundle.clone_from(bundle);
                way
            }
            97..99 => {
                let whole = ciborium::from_reader(&case.bundle[..]).unwrap();
                case.bundle = other_form(&whole, random);
                "another form of CBOR, outside"
            }
            _ => {
                let payload = value(&self.policy);
                case.bundle = signed(other_form(&payload, random), &self.signers);
                "another form of CBOR, signed"
            }
        };
        case
    }
}

/// Bytes of one signature in a bundle, and where its key begins among them.
const SIGNATURE_BYTES: usize = 9 + 32 + 2 + 64;
const KEY_AT: usize = 9;

/// The value in valid CBOR, of which one item, or a few, are not in the deterministic form.
fn other_form(value: &Value, random: &mut Random) -> Vec<u8> {
    let deterministic = bytes(value);
    loop {
        let mut out = Vec::new();
        let percent = random.between(1, 20);
        write(value, random, percent, &mut out);
        if out != deterministic {
            return out;
        }
    }
}

/// Writes a value; each item is in another form in `percent` of 100 cases.
fn write(value: &Value, random: &mut Random, percent: u64, out: &mut Vec<u8>) {
    let other = random.chance(percent);
    let indefinite = other && random.chance(50);
    match value {
        Value::Integer(number) => head(0, u64::try_from(*number).unwrap(), other, random, out),
        Value::Bytes(bytes) => string(2, bytes, other, indefinite, random, out),
        Value::Text(text) => string(3, text.as_bytes(), other, indefinite, random, out),
        Value::Tag(tag, inner) => {
            head(6, *tag, other, random, out);
            write(inner, random, percent, out);
        }
        Value::Array(items) => {
            start(4, items.len(), other, indefinite, random, out);
            items.iter().for_each(|item| write(item, random, percent, out));
            end(indefinite, out);
        }
        Value::Map(pairs) => {
            let mut pairs = pairs.clone();
            // Out of order, or a key twice, or one that nobody knows.
            match random.below(4) {
                0 if other => pairs.reverse(),
                1 if other => pairs.extend(pairs.first().cloned()),
                2 if other => pairs.push((Value::Integer(99.into()), Value::Integer(0.into()))),
                _ => {}
            }
            start(5, pairs.len(), other, indefinite, random, out);
            for (key, value) in &pairs {
                write(key, random, percent, out);
                write(value, random, percent, out);
            }
            end(indefinite, out);
        }
        value => panic!("bundles have no {value:?}"),
    }
}

fn start(major: u8, count: usize, other: bool, indefinite: bool, random: &mut Random, out: &mut Vec<u8>) {
    if indefinite { out.push(major << 5 | 31) } else { head(major, count as u64, other, random, out) }
}

fn end(indefinite: bool, out: &mut Vec<u8>) {
    out.extend(indefinite.then_some(0xff));
}

fn string(major: u8, bytes: &[u8], other: bool, indefinite: bool, random: &mut Random, out: &mut Vec<u8>) {
    start(major, bytes.len(), other, indefinite, random, out);
    if indefinite {
        head(major, bytes.len() as u64, false, random, out);
    }
    out.extend(bytes);
    end(indefinite, out);
}

/// A head in the fewest bytes, or in more of them if `longer` and there is a longer one.
fn head(major: u8, value: u64, longer: bool, random: &mut Random, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let least = match value {
        0..24 => 0,
        24..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x1_0000_0000 => 3,
        _ => 4,
    };
    match if longer { random.between(least + 1, 4).min(4) } else { least } {
        0 => out.push(major << 5 | bytes[7]),
        form => {
            out.push(major << 5 | (23 + form as u8));
            out.extend(&bytes[8 - (1 << (form - 1))..]);
        }
    }
}
