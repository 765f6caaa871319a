//! The capture that ships with the project: made by our own generator from a fixed seed, so that anybody can
//! make it again.
//!
//! The bytes are those of `ravelin generate --preset demo --seed 1`. They are made here without the binary,
//! because the binary holds the capture.

use anyhow::{Context, bail};
use captures::generate::{Generator, Profile};
use captures::write::{Interface, PcapngWriter};
use packet::LinkType;
use std::path::Path;

const CAPTURE: &str = "captures/demo.pcapng";
const SEED: u64 = 1;

/// Makes the capture.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    let path = root.join(CAPTURE);
    std::fs::create_dir_all(root.join("captures"))?;
    std::fs::write(&path, generate()?).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {CAPTURE}");
    Ok(())
}

/// Compares the capture that is there with a new one, byte by byte.
///
/// # Errors
/// They differ, or the one that is there cannot be read.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let there = std::fs::read(root.join(CAPTURE)).with_context(|| format!("cannot read {CAPTURE}"))?;
    let made = generate()?;
    if there == made {
        println!("{CAPTURE} is what seed {SEED} makes: {} bytes", made.len());
        return Ok(());
    }
    let at = there.iter().zip(&made).position(|(a, b)| a != b).unwrap_or(there.len().min(made.len()));
    bail!(
        "{CAPTURE} differs from what the generator makes, first at byte {at}: run `cargo xtask demo-capture`"
    )
}

fn generate() -> anyhow::Result<Vec<u8>> {
    let mut generator = Generator::new(&Profile::demo(), SEED)?;
    let interface = Interface { name: "generated", link: LinkType::ETHERNET };
    let mut writer = PcapngWriter::new(Vec::new(), &[interface])?;
    let mut frame = Vec::new();
    while let Some(stamp) = generator.next(&mut frame) {
        writer.write(0, stamp.time, stamp.wire, &frame, None)?;
    }
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_capture_is_noticed() {
        let root = std::env::temp_dir().join(format!("ravelin-demo-capture-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        assert!(check(&root).is_err(), "there is none yet");
        write(&root).unwrap();
        check(&root).unwrap();
        let path = root.join(CAPTURE);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = check(&root).unwrap_err().to_string();
        std::fs::remove_dir_all(&root).unwrap();
        assert!(error.contains(&format!("byte {}", bytes.len() - 1)), "{error}");
    }
}
