//! The source that makes packets by the generator, without holding all of them in memory.

use crate::ingress::Ingress;
use crate::{Receive, ReceiveError};
use packet::Arena;
use packet::generate::{Generator, Profile, ProfileError};
use packet::{BATCH, Batch};

/// The packets of a profile and a seed.
pub struct GeneratorSource {
    generator: Generator,
    ingress: Ingress,
    arena: Arena,
    frame: Vec<u8>,
}

impl GeneratorSource {
    /// Makes the packets of a profile; the same seed gives the same packets.
    pub fn new(profile: &Profile, seed: u64, ingress: Ingress) -> Result<GeneratorSource, ProfileError> {
        let generator = Generator::new(profile, seed)?;
        Ok(GeneratorSource { generator, ingress, arena: Arena::new(), frame: Vec::new() })
    }
}

impl Receive for GeneratorSource {
    fn receive<'a>(&'a mut self, batch: &mut Batch) -> Result<&'a mut [u8], ReceiveError> {
        batch.clear();
        self.arena.clear();
        while batch.len < BATCH {
            let Some(stamp) = self.generator.next(&mut self.frame) else {
                break;
            };
            self.arena.push(batch, &self.frame, stamp.wire, stamp.time);
        }
        self.ingress.assign(self.arena.memory_mut(), batch);
        Ok(self.arena.memory_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IngressPolicy, collect};

    #[test]
    fn gives_what_the_generator_makes() {
        let ingress = Ingress::new(IngressPolicy::Hash, 5);
        let mut source = GeneratorSource::new(&Profile::demo(), 9, ingress).expect("a possible profile");
        let (frames, error) = collect(&mut source);
        assert!(error.is_none());
        let mut generator = Generator::new(&Profile::demo(), 9).expect("a possible profile");
        let mut bytes = Vec::new();
        assert_eq!(frames.len(), 2_000);
        for frame in frames.iter() {
            let stamp = generator.next(&mut bytes).expect("as many");
            assert_eq!((frame.bytes, frame.wire, frame.time), (&bytes[..], stamp.wire, stamp.time));
        }
        assert!(generator.next(&mut bytes).is_none());
    }
}
