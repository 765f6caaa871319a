//! Takes off the compression of a stream: gzip or zstd, recognised by the first bytes.

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// The bytes of a stream, uncompressed.
pub type Stream = Box<dyn Read + Send>;

/// Takes off a compression, which is recognised by the first bytes.
pub fn uncompressed(stream: impl Read + Send + 'static) -> io::Result<Stream> {
    let mut start = Vec::with_capacity(4);
    let mut stream = stream;
    // A pipe may give fewer than four bytes at once.
    (&mut stream).take(4).read_to_end(&mut start)?;
    let magic = <[u8; 4]>::try_from(&start[..]).unwrap_or_default();
    let whole = BufReader::with_capacity(128 << 10, io::Cursor::new(start).chain(stream));
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
            Box::new(ZstdFrames { source: whole, decoder: FrameDecoder::new(), inside: false, damage: None })
        }
        _ => Box::new(whole),
    })
}

/// The contents of all zstd frames of a stream, one after the other. Frames to be skipped (RFC 8878, section
/// 3.1.2) are.
struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    inside: bool,
    /// What ended the data early; it is told behind everything that was decoded before.
    damage: Option<io::Error>,
}

/// A last block without content (RFC 8878, section 3.1.1.2), and room for a checksum. It ends a frame that
/// was cut off, and the decoder then hands out what it kept as its window.
const END_OF_FRAME: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let step = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.source, step) {
                    self.cut(broken_zstd(&error))?;
                }
            }
            let n = self.decoder.read(buffer)?;
            if n > 0 {
                return Ok(n);
            }
            match self.damage.take() {
                Some(damage) => return Err(damage),
                None => self.end_frame()?,
            }
        }
    }
}

impl<R: BufRead> ZstdFrames<R> {
    /// Opens the next frame that holds something; says whether there is one.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(broken_zstd(&error)),
            }
        }
        Ok(false)
    }

    /// Ends a frame whose data end early, so that the whole blocks before are still handed out. What is
    /// damaged in another way is an error at once: what a damaged block has left in the decoder is not to be
    /// trusted.
    fn cut(&mut self, damage: io::Error) -> io::Result<()> {
        if damage.kind() != io::ErrorKind::UnexpectedEof {
            return Err(damage);
        }
        let end = self.decoder.decode_blocks(&END_OF_FRAME[..], BlockDecodingStrategy::All);
        end.map_err(|error| broken_zstd(&error))?;
        self.damage = Some(damage);
        Ok(())
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.inside = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(said), Some(found)) if said != found => {
                let text = format!("the zstd checksum is {said:08x}, and the data has {found:08x}");
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
            _ => Ok(()),
        }
    }
}

/// What is wrong with zstd data, in words: the decoder's own errors name its parts and not the file.
fn broken_zstd(error: &(dyn std::error::Error + 'static)) -> io::Error {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return match io.kind() {
                io::ErrorKind::UnexpectedEof => {
                    io::Error::new(io.kind(), "the zstd data ends in the middle of a frame")
                }
                kind => io::Error::new(kind, io.to_string()),
            };
        }
        cause = error.source();
    }
    io::Error::new(io::ErrorKind::InvalidData, "the zstd data is damaged")
}
