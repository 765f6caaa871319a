//! A monitor without a virtual machine: it agrees with a gateway on memory and rings (vhost-user), and is the
//! driver of the rings itself. It says what it likes.

use rig::virtio_driver::{Driver, MEMORY, RECEIVE, RingAt, SIZE, START, TRANSMIT};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// The first address of the memory at the monitor.
pub(crate) const AT_MONITOR: u64 = 0x7f00_0000_0000;
/// VIRTIO_F_VERSION_1, VHOST_USER_F_PROTOCOL_FEATURES, and those by which frames may be unfinished:
/// VIRTIO_NET_F_CSUM, VIRTIO_NET_F_HOST_TSO4 and VIRTIO_NET_F_HOST_TSO6.
pub(crate) const FEATURES: u64 = 1 << 32 | 1 << 30 | 1 | 1 << 11 | 1 << 12;
/// How long the gateway may take to look at a ring.
const LIMIT: Duration = Duration::from_secs(30);

/// A monitor with its driver.
pub(crate) struct Monitor {
    stream: UnixStream,
    pub(crate) driver: Driver,
    /// By which the driver notifies the gateway of what it sends.
    kick: OwnedFd,
}

/// What a monitor says of a ring.
#[derive(Clone, Copy)]
pub(crate) struct RingSetup {
    pub(crate) size: u32,
    /// Addresses at the monitor.
    pub(crate) at: RingAt,
}

/// The rings as the driver has them: of what is received, and of what is sent.
pub(crate) fn setups() -> [RingSetup; 2] {
    [RECEIVE, TRANSMIT].map(|at| RingSetup {
        size: SIZE.into(),
        at: RingAt {
            descriptors: AT_MONITOR + at.descriptors,
            available: AT_MONITOR + at.available,
            used: AT_MONITOR + at.used,
        },
    })
}

/// An eventfd.
///
/// # Errors
/// Linux gives none.
pub(crate) fn events() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC)?)
}

impl Monitor {
    /// One that has said nothing yet, by a connection to this socket.
    ///
    /// # Errors
    /// Nobody listens there.
    pub(crate) fn silent(socket: &str) -> io::Result<Monitor> {
        let end = Instant::now() + LIMIT;
        loop {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(LIMIT))?;
            let mut monitor = Monitor { stream, driver: Driver::new(1 << MEMORY), kick: events()? };
            // Who comes before the monitor before it is forgotten, or too soon, finds the connection ended.
            match monitor.say(1, &[], &[]).and_then(|()| monitor.answer()) {
                Ok(features) if features == FEATURES.to_ne_bytes() => return Ok(monitor),
                Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// One that has agreed on everything.
    ///
    /// # Errors
    /// The gateway is gone.
    pub(crate) fn new(socket: &str) -> io::Result<Monitor> {
        let mut monitor = Monitor::silent(socket)?;
        monitor.begin()?;
        Ok(monitor)
    }

    /// Agrees on everything.
    ///
    /// # Errors
    /// The gateway is gone.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.driver.seal();
        self.agree(START, 1 << MEMORY, 0)?;
        self.set_up(&setups())
    }

    /// Agrees on features and on a region of the driver's memory.
    ///
    /// # Errors
    /// The gateway is gone.
    pub(crate) fn agree(&mut self, start: u64, length: u64, offset: u64) -> io::Result<()> {
        let file = self.driver.file();
        self.features()?;
        self.share(&[(start, length, AT_MONITOR, offset)], &[file.as_fd()])
    }

    pub(crate) fn features(&mut self) -> io::Result<()> {
        self.say(3, &[], &[])?;
        self.say(16, &0u64.to_ne_bytes(), &[])?;
        self.say(2, &FEATURES.to_ne_bytes(), &[])
    }

    /// Shares regions: their first address at the machine, bytes, address at the monitor, place in the file.
    ///
    /// # Errors
    /// The gateway is gone.
    pub(crate) fn share(
        &mut self,
        regions: &[(u64, u64, u64, u64)],
        files: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let mut body = (regions.len() as u64).to_ne_bytes().to_vec();
        for &(start, length, at_monitor, offset) in regions {
            [start, length, at_monitor, offset].iter().for_each(|number| body.extend(number.to_ne_bytes()));
        }
        self.say(5, &body, files)
    }

    /// Says where the rings lie, and lets them begin.
    ///
    /// # Errors
    /// The gateway is gone.
    pub(crate) fn set_up(&mut self, rings: &[RingSetup; 2]) -> io::Result<()> {
        for (number, ring) in (0u32..).zip(rings) {
            self.say(8, &words(&[number, ring.size]), &[])?;
            self.say(10, &words(&[number, 0]), &[])?;
            let mut body = words(&[number, 0]);
            for address in [ring.at.descriptors, ring.at.used, ring.at.available, 0] {
                body.extend(address.to_ne_bytes());
            }
            self.say(9, &body, &[])?;
            self.kick_by(number)?;
            self.say(18, &words(&[number, 1]), &[])?;
        }
        Ok(())
    }

    fn kick_by(&mut self, ring: u32) -> io::Result<()> {
        let kick = if ring == 1 { self.kick.try_clone()? } else { events()? };
        self.say(12, &u64::from(ring).to_ne_bytes(), &[kick.as_fd()])
    }

    /// Stops both rings, and lets them begin anew where the driver is.
    ///
    /// # Errors
    /// The gateway is gone.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        for ring in [0, 1] {
            self.say(11, &words(&[ring, 0]), &[])?;
            self.answer()?;
        }
        for at in [RECEIVE, TRANSMIT] {
            self.driver.write(at.available, &[0; 4]);
            self.driver.write(at.used, &[0; 4]);
        }
        self.driver = self.driver.anew();
        self.kick_by(0)?;
        self.kick_by(1)
    }

    /// Waits for an answer, and says its body.
    fn answer(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 12];
        self.stream.read_exact(&mut header)?;
        let [.., a, b, c, d] = header;
        let mut body = vec![0; u32::from_ne_bytes([a, b, c, d]) as usize];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The gateway is gone.
    pub(crate) fn say(&mut self, request: u32, body: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut bytes = words(&[request, 1, body.len() as u32]);
        bytes.extend(body);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            rights.push(SendAncillaryMessage::ScmRights(files));
        }
        let sent = sendmsg(&self.stream, &[IoSlice::new(&bytes)], &mut rights, SendFlags::NOSIGNAL)?;
        self.raw(&bytes[sent..])
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The gateway is gone.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Notifies the gateway of what the driver sends.
    pub(crate) fn kick(&self) {
        // Whoever does not hear it is looked at by whoever judges.
        let _ = rustix::io::write(&self.kick, &1u64.to_ne_bytes());
    }

    /// Sends a frame behind this header, once there is room.
    ///
    /// # Errors
    /// The gateway takes none.
    pub(crate) fn send(&mut self, header: [u8; 10], frame: &[u8]) -> io::Result<()> {
        self.wait(|driver| driver.has_room())?;
        let [a, b, c, d, e, f, g, h, i, j] = header;
        self.driver.transmit_with([a, b, c, d, e, f, g, h, i, j, 0, 0], frame);
        if !self.driver.is_to_be_quiet() {
            self.kick();
        }
        Ok(())
    }

    /// Waits until the gateway has taken all that was sent.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        self.kick();
        self.wait(Driver::is_settled)
    }

    /// Notifies the gateway again and again until something holds.
    ///
    /// # Errors
    /// It does not come to hold.
    pub(crate) fn wait(&mut self, until: impl Fn(&Driver) -> bool) -> io::Result<()> {
        let end = Instant::now() + LIMIT;
        while !until(&self.driver) {
            if Instant::now() > end {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the gateway takes nothing"));
            }
            self.kick();
            thread::yield_now();
        }
        Ok(())
    }
}

/// Words, in the byte order of the machine.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
