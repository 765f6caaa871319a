//! A second judge of bundles, written from the format's description alone, on `ciborium`, `coset` and
//! `ed25519-dalek`: slower, and by other means. It takes everything apart first and compares what it would
//! write with what it has read.

use ciborium::Value;
use coset::{CoseSign, Header, TaggedCborSerializable, iana};
use ed25519_dalek::{Signature, Verifier, VerifyingKey};

/// What a gateway knows when it is asked.
pub(crate) struct Situation<'a> {
    pub(crate) gateway: &'a str,
    pub(crate) keys: &'a [[u8; 32]],
    pub(crate) threshold: usize,
    pub(crate) now: u64,
    pub(crate) newest: u64,
    pub(crate) engine: [u64; 3],
}

/// Whether the bundle is to be accepted.
pub(crate) fn accepts(bundle: &[u8], situation: &Situation<'_>) -> bool {
    judge(bundle, situation).is_some()
}

fn judge(bundle: &[u8], situation: &Situation<'_>) -> Option<()> {
    need(bundle.len() <= 64 << 20)?;
    canonical(bundle)?;
    let cose = CoseSign::from_tagged_slice(bundle).ok()?;
    need(cose.clone().to_tagged_vec().ok()? == bundle)?;
    need(cose.protected.original_data.as_ref()?.is_empty() && cose.unprotected == Header::default())?;
    let payload = cose.payload.clone()?;

    let mut keys: Vec<[u8; 32]> = Vec::new();
    for (at, signature) in cose.signatures.iter().enumerate() {
        let alone = Header {
            alg: Some(coset::RegisteredLabelWithPrivate::Assigned(iana::Algorithm::EdDSA)),
            ..Header::default()
        };
        need(signature.protected.header == alone && signature.protected.original_data.as_ref()?.len() == 3)?;
        let id = signature.unprotected.key_id.clone();
        need(signature.unprotected == Header { key_id: id.clone(), ..Header::default() })?;
        let key: [u8; 32] = id.try_into().ok()?;
        need(situation.keys.contains(&key))?;
        let public = VerifyingKey::from_bytes(&key).ok()?;
        cose.verify_signature(at, b"ravelin signed policy, format 1", |signature, data| {
            let signature = Signature::from_slice(signature).map_err(|_| ())?;
            public.verify(data, &signature).map_err(|_| ())
        })
        .ok()?;
        keys.push(key);
    }
    need(keys.len() >= situation.threshold && keys.len() <= 16)?;
    need(keys.windows(2).all(|pair| pair[0] < pair[1]))?;

    let [format, gateway, version, not_before, expiry, engine, program, rights] =
        fields(&canonical(&payload)?)?;
    need(unsigned(&format)? == 1)?;
    need(name(&gateway)? == situation.gateway)?;
    let version = unsigned(&version)?;
    need(version >= 1 && version > situation.newest)?;
    let (not_before, expiry) = (unsigned(&not_before)?, unsigned(&expiry)?);
    need(not_before < expiry && (not_before..expiry).contains(&situation.now))?;
    let engine = engine.as_array()?.iter().map(unsigned).collect::<Option<Vec<u64>>>()?;
    need(engine.len() == 3 && engine.iter().all(|part| *part <= u64::from(u32::MAX)))?;
    need(engine[..] <= situation.engine[..])?;
    need(program.as_text()?.len() <= 60 << 20)?;
    let rights = rights.as_array()?;
    let tables = rights.iter().map(right).collect::<Option<Vec<String>>>()?;
    need(tables.len() <= 64 && tables.windows(2).all(|pair| pair[0] < pair[1]))
}

fn need(holds: bool) -> Option<()> {
    holds.then_some(())
}

/// The value that is written as exactly these bytes.
fn canonical(bytes: &[u8]) -> Option<Value> {
    let value: Value = ciborium::from_reader(bytes).ok()?;
    let mut again = Vec::new();
    ciborium::into_writer(&value, &mut again).ok()?;
    need(again == bytes)?;
    Some(value)
}

/// The values of a map whose keys are 1, 2, …, `N`, in this order.
fn fields<const N: usize>(value: &Value) -> Option<[Value; N]> {
    let pairs = value.as_map()?;
    let keys = pairs.iter().map(|(key, _)| unsigned(key)).collect::<Option<Vec<u64>>>()?;
    need(keys.iter().copied().eq(1..=N as u64))?;
    pairs.iter().map(|(_, value)| value.clone()).collect::<Vec<Value>>().try_into().ok()
}

fn unsigned(value: &Value) -> Option<u64> {
    u64::try_from(value.as_integer()?).ok()
}

fn name(value: &Value) -> Option<String> {
    let text = value.as_text()?;
    need(!text.is_empty() && text.len() <= 255)?;
    need(text.chars().all(|letter| ('!'..='~').contains(&letter)))?;
    Some(text.to_owned())
}

/// The table of a right.
fn right(value: &Value) -> Option<String> {
    let [table, prefixes, entries, changes] = fields(value)?;
    let prefixes = prefixes.as_array()?.iter().map(prefix).collect::<Option<Vec<(u64, u64, Vec<bool>)>>>()?;
    need(prefixes.len() <= 1_024 && prefixes.windows(2).all(|pair| pair[0] < pair[1]))?;
    need(unsigned(&entries)? <= u64::from(u32::MAX) && unsigned(&changes)? <= u64::from(u32::MAX))?;
    name(&table)
}

/// Width, length and bits of a prefix.
fn prefix(value: &Value) -> Option<(u64, u64, Vec<bool>)> {
    let [width, length, bytes] = value.as_array()?.as_slice() else { return None };
    let (width, length, bytes) = (unsigned(width)?, unsigned(length)?, bytes.as_bytes()?);
    need((1..=128).contains(&width) && length <= width)?;
    need(bytes.len() as u64 == length.div_ceil(8))?;
    let bits: Vec<bool> =
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1 == 1)).collect();
    need(bits[length as usize..].iter().all(|bit| !bit))?;
    Some((width, length, bits))
}
