//! The sink that writes a directory of captures: the packets that each port sent, and dropped packets with
//! their reason as comment.

use crate::{Departure, Transmit};
use captures::write::{Interface, PcapngWriter};
use packet::{LinkType, NO_PORT, PortNumber};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Writes `port1.pcapng`, `port2.pcapng` and so on, and `dropped.pcapng`. All files are made at the start,
/// also those that stay empty.
pub struct CaptureOut {
    directory: PathBuf,
    /// The capture of dropped packets, then those of the ports: as port numbers have it.
    writers: Vec<PcapngWriter<BufWriter<File>>>,
}

impl CaptureOut {
    /// Makes the directory, with those it lies in, and the captures of `ports` ports. Captures of these names
    /// that are there are replaced.
    pub fn create(directory: &Path, ports: u16, link: LinkType) -> io::Result<CaptureOut> {
        fs::create_dir_all(directory).map_err(|error| in_words(directory, &error))?;
        let writers = (0..=ports).map(|port| {
            let (name, path) = (name(port), path(directory, port));
            let interface = Interface { name: &name, link };
            // Many ports share the memory, so their buffers are small.
            File::create(&path)
                .and_then(|file| PcapngWriter::new(BufWriter::with_capacity(64 << 10, file), &[interface]))
                .map_err(|error| in_words(&path, &error))
        });
        Ok(CaptureOut { directory: directory.to_owned(), writers: writers.collect::<io::Result<_>>()? })
    }

    /// Ends the captures. Without this, what could not be written at the end goes unnoticed.
    ///
    /// # Errors
    /// The first capture that could not be written, with its file; the others are ended all the same.
    pub fn finish(self) -> io::Result<()> {
        let mut first = Ok(());
        for (port, writer) in (0..).zip(self.writers) {
            let end = writer.finish().map_err(|error| in_words(&path(&self.directory, port), &error));
            first = first.and(end.map(drop));
        }
        first
    }
}

fn name(port: PortNumber) -> String {
    if port == NO_PORT { "dropped".to_owned() } else { format!("port{port}") }
}

fn path(directory: &Path, port: PortNumber) -> PathBuf {
    directory.join(format!("{}.pcapng", name(port)))
}

impl Transmit for CaptureOut {
    fn transmit(&mut self, departure: &Departure<'_>) -> io::Result<()> {
        let &Departure { port, bytes, wire, time, comment, .. } = departure;
        let ports = self.writers.len() - 1;
        match self.writers.get_mut(usize::from(port)) {
            Some(writer) => writer
                .write(0, time, wire, bytes, comment)
                .map_err(|error| in_words(&path(&self.directory, port), &error)),
            None => {
                let text = format!("there is no port {port} to write to; the ports are 1 to {ports}");
                Err(io::Error::new(io::ErrorKind::InvalidInput, text))
            }
        }
    }
}

fn in_words(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use captures::Capture;
    use packet::VirtioHeader;

    fn packets(path: &Path) -> Vec<(Vec<u8>, u32, u64)> {
        let mut capture = Capture::open(File::open(path).expect("was made")).expect("a capture");
        let mut all = Vec::new();
        while let Some(record) = capture.next().expect("whole") {
            all.push((record.data.to_vec(), record.wire, record.time_ns));
        }
        all
    }

    fn packet(port: PortNumber, bytes: &[u8], wire: u32, time: u64) -> Departure<'_> {
        Departure { port, bytes, wire, time, virtio: VirtioHeader::NONE, comment: None }
    }

    #[test]
    fn one_capture_a_port_and_one_of_drops() {
        let directory = std::env::temp_dir().join(format!("ravelin-capture-out-{}", std::process::id()));
        let inner = directory.join("a/b");
        let mut out = CaptureOut::create(&inner, 3, LinkType::ETHERNET).expect("can be made");
        out.transmit(&packet(1, b"one", 60, 5)).expect("port 1");
        out.transmit(&packet(3, b"three", 5, 6)).expect("port 3");
        let dropped = Departure { comment: Some("not_web"), ..packet(NO_PORT, b"none", 4, 7) };
        out.transmit(&dropped).expect("dropped");
        let error = out.transmit(&packet(4, b"", 0, 0)).expect_err("no port 4").to_string();
        assert_eq!(error, "there is no port 4 to write to; the ports are 1 to 3");
        out.finish().expect("is written");
        assert_eq!(packets(&inner.join("port1.pcapng")), [(b"one".to_vec(), 60, 5)]);
        assert_eq!(packets(&inner.join("port2.pcapng")), []);
        assert_eq!(packets(&inner.join("port3.pcapng")), [(b"three".to_vec(), 5, 6)]);
        let dropped = inner.join("dropped.pcapng");
        assert_eq!(packets(&dropped), [(b"none".to_vec(), 4, 7)]);
        let bytes = fs::read(&dropped).expect("was made");
        assert!(bytes.windows(7).any(|window| window == b"not_web"));
        fs::remove_dir_all(&directory).expect("can be removed");
    }

    #[test]
    fn a_full_disk_names_the_file() {
        let directory = std::env::temp_dir().join(format!("ravelin-full-disk-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("can be made");
        // Every write to this device finds no room (full(4)).
        std::os::unix::fs::symlink("/dev/full", directory.join("port1.pcapng")).expect("can be made");
        let mut out = CaptureOut::create(&directory, 1, LinkType::ETHERNET).expect("nothing is written yet");
        let large = vec![0; 100_000];
        let error = out.transmit(&packet(1, &large, 100_000, 5)).expect_err("the buffer is full").to_string();
        assert!(error.contains("port1.pcapng: No space left on device"), "{error}");
        let error = out.finish().expect_err("what waits cannot be written").to_string();
        assert!(error.contains("port1.pcapng: No space left on device"), "{error}");
        fs::remove_dir_all(&directory).expect("can be removed");
    }

    #[test]
    fn a_directory_that_cannot_be_is_named() {
        let error =
            CaptureOut::create(Path::new("/dev/null/out"), 1, LinkType::ETHERNET).err().expect("an error");
        assert!(error.to_string().starts_with("cannot write /dev/null/out: "), "{error}");
    }
}
