//! A channel: one end of a pair of sockets over which messages of a type go, some with descriptors.
//!
//! ```text
//! message   its bytes, as in [`frame`](crate::frame), and its descriptors with the first of them
//! ```
//!
//! A message is read as a whole: one that is longer than its receiver admits, that is not exactly a value of
//! its type, or that comes with too many descriptors ends the channel, since nothing behind it can be
//! trusted to begin where it seems to begin.

use crate::frame::{self, MessageError};
use crate::limits::MOST_DESCRIPTORS;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Why no message could be received.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// the system refuses, or the channel ended within a message
    #[error("the channel to another process of the gateway: {0}")]
    System(#[from] io::Error),
    /// too long
    #[error("a message of {length} bytes, of which at most {most} are taken")]
    TooLong {
        /// Its length.
        length: usize,
        /// How long it may be.
        most: usize,
    },
    /// not one of the type
    #[error(transparent)]
    Message(#[from] MessageError),
    /// other descriptors than it needs
    #[error("a message with more than {0} descriptors")]
    Descriptors(usize),
}

/// One end of a channel.
#[derive(Debug)]
pub struct Channel(UnixStream);

impl Channel {
    /// Both ends of a new channel.
    ///
    /// # Errors
    /// Linux gives no further descriptor.
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let (one, other) = UnixStream::pair()?;
        Ok((Channel(one), Channel(other)))
    }

    /// The end that this descriptor is.
    pub fn of(descriptor: OwnedFd) -> Channel {
        Channel(UnixStream::from(descriptor))
    }

    /// Another handle of the same end.
    ///
    /// # Errors
    /// Linux gives no further descriptor.
    pub fn again(&self) -> io::Result<Channel> {
        Ok(Channel(self.0.try_clone()?))
    }

    /// The descriptor, to hand it to another process.
    pub fn into_descriptor(self) -> OwnedFd {
        self.0.into()
    }

    /// Lets a message that the other end does not read fail after this time, for all handles of this end.
    ///
    /// # Errors
    /// The time is zero.
    pub fn send_within(&self, time: Duration) -> io::Result<()> {
        self.0.set_write_timeout(Some(time))
    }

    /// Ends the channel at both ends: what is on its way can be received, and nothing more comes.
    pub fn end(&self) {
        // It may have ended.
        let _ = self.0.shutdown(Shutdown::Both);
    }

    /// Sends a message with these descriptors, and waits until there is room for it.
    ///
    /// # Errors
    /// The other end is gone, or the message cannot be written.
    pub fn send<M: Serialize>(&mut self, message: &M, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_bytes(frame::written(message)?, descriptors)
    }

    /// Sends a message of at most so many bytes, or another one in place of a longer one, and waits until
    /// there is room for it.
    ///
    /// # Errors
    /// As for [`send`](Channel::send).
    pub fn send_at_most<M: Serialize>(&mut self, most: usize, message: &M, instead: &M) -> io::Result<()> {
        match frame::written(message)? {
            bytes if bytes.len() - 4 <= most => self.send_bytes(bytes, &[]),
            _ => self.send(instead, &[]),
        }
    }

    fn send_bytes(&mut self, bytes: Vec<u8>, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if descriptors.len() > MOST_DESCRIPTORS {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut sent = 0;
        if !descriptors.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
            let mut rights = SendAncillaryBuffer::new(&mut space);
            rights.push(SendAncillaryMessage::ScmRights(descriptors));
            sent = sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut rights, SendFlags::NOSIGNAL)?;
        }
        self.0.write_all(&bytes[sent..])
    }

    /// Waits for the next message of at most `most` bytes; `None` if the other end is gone and everything it
    /// has sent was received.
    ///
    /// # Errors
    /// What came is no such message. Nothing can be received after that.
    pub fn receive<M: DeserializeOwned>(
        &mut self,
        most: usize,
    ) -> Result<Option<(M, Vec<OwnedFd>)>, ChannelError> {
        let mut descriptors = Vec::new();
        let mut length = [0; 4];
        let first = receive_first(&self.0, &mut length, &mut descriptors, MOST_DESCRIPTORS)?;
        if first == 0 {
            return Ok(None);
        }
        self.rest(length, first, most).map(|message| Some((message, descriptors)))
    }

    /// What follows the first bytes of a message.
    fn rest<M: DeserializeOwned>(
        &mut self,
        mut length: [u8; 4],
        first: usize,
        most: usize,
    ) -> Result<M, ChannelError> {
        self.0.read_exact(&mut length[first..])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > most {
            return Err(ChannelError::TooLong { length, most });
        }
        let mut bytes = Vec::new();
        // Memory is taken as bytes come, whatever length was announced.
        Read::by_ref(&mut self.0).take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(frame::read(&bytes)?)
    }

    /// As [`receive`](Channel::receive), of a process that may hand nothing over: Linux discards descriptors
    /// that come with bytes that are read so.
    ///
    /// # Errors
    /// As for [`receive`](Channel::receive).
    pub fn receive_alone<M: DeserializeOwned>(&mut self, most: usize) -> Result<Option<M>, ChannelError> {
        let mut length = [0; 4];
        let first = loop {
            match self.0.read(&mut length) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if first == 0 { Ok(None) } else { self.rest(length, first, most).map(Some) }
    }
}

/// Waits for the first bytes of a message, and receives its descriptors with them, at most `most`, which is
/// no more than [`MOST_DESCRIPTORS`]. Says how many bytes came; 0 if the other end is gone.
///
/// # Errors
/// The system refuses, or there are more descriptors.
pub fn receive_first(
    stream: &UnixStream,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
    most: usize,
) -> Result<usize, ChannelError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut *bytes)];
        match recvmsg(stream, &mut parts, &mut rights, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received.map_err(io::Error::from)?,
        }
    };
    for message in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) || descriptors.len() > most {
        return Err(ChannelError::Descriptors(most));
    }
    Ok(received.bytes)
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::CompileMessage;
    use crate::control::{ControlQuestion, CoreAnswer};
    use crate::launch::LaunchMessage;
    use proptest::prelude::*;

    fn pair() -> (Channel, Channel) {
        Channel::pair().expect("a pair")
    }

    #[test]
    fn messages_come_in_order_and_descriptors_with_their_own() {
        let (mut one, mut other) = pair();
        let (mut reader, writer) = io::pipe().expect("a pipe");
        one.send(&LaunchMessage::Start, &[]).expect("sent");
        one.send(&LaunchMessage::Control, &[writer.as_fd(), reader.as_fd()]).expect("sent");
        one.send(&LaunchMessage::Compile, &[]).expect("sent");
        drop((one, writer));
        let mut next = || other.receive::<LaunchMessage>(100).expect("understood");
        assert_eq!(next().map(|(message, with)| (message, with.len())), Some((LaunchMessage::Start, 0)));
        let (message, with) = next().expect("the second");
        assert_eq!((message, with.len()), (LaunchMessage::Control, 2));
        assert_eq!(next().map(|(message, with)| (message, with.len())), Some((LaunchMessage::Compile, 0)));
        let mut with = with.into_iter();
        io::Write::write_all(&mut std::fs::File::from(with.next().expect("a descriptor")), b"here")
            .expect("written");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "here", "it is the end of that pipe");
        drop(with);
        assert!(next().is_none());
    }

    #[test]
    fn a_long_message_is_received_whole_and_a_longer_one_refused() {
        let (mut one, mut other) = pair();
        let text = "x".repeat(3 << 20);
        let sent = text.clone();
        let sends = std::thread::spawn(move || {
            one.send(&CoreAnswer::Refused(sent.clone()), &[]).expect("sent");
            // The other end leaves before it has all of this one.
            let _ = one.send(&CoreAnswer::Refused(sent), &[]);
        });
        let received = other.receive::<CoreAnswer>(4 << 20).expect("understood").expect("one");
        assert_eq!(received.0, CoreAnswer::Refused(text));
        let refused = other.receive::<CoreAnswer>(3 << 20).expect_err("longer than that");
        assert!(matches!(refused, ChannelError::TooLong { .. }), "{refused}");
        drop(other);
        sends.join().expect("ends");
    }

    #[test]
    fn another_message_is_sent_in_place_of_one_that_is_too_long() {
        let (mut one, mut other) = pair();
        let said = |length: usize| CoreAnswer::Refused("x".repeat(length));
        let most = frame::written(&said(900)).expect("it has a form").len() - 4;
        for (length, comes) in [(900, 900), (901, 1), (1 << 20, 1)] {
            one.send_at_most(most, &said(length), &said(1)).expect("sent");
            assert_eq!(other.receive_alone(most).expect("understood"), Some(said(comes)));
        }
    }

    #[test]
    fn what_is_no_message_of_the_type_is_refused() {
        let refused = |bytes: &[u8]| {
            let (mut one, mut other) = pair();
            one.0.write_all(bytes).expect("sent");
            drop(one);
            other.receive::<ControlQuestion>(100).expect_err("not understood").to_string()
        };
        assert!(refused(&[1, 0, 0, 0, 9]).contains("not understood"));
        assert!(refused(&[2, 0, 0, 0, 0, 0]).contains("1 bytes behind its end"));
        assert!(refused(&[0, 0, 0, 0]).contains("not understood"));
        assert!(refused(&[5, 0, 0, 0, 0]).contains("channel"), "it ends within a message");
        assert!(refused(&[5, 0]).contains("channel"));
        assert!(refused(&[255, 255, 255, 255, 0]).contains("4294967295 bytes"));
    }

    #[test]
    fn whoever_may_hand_nothing_over_leaves_nothing_open() {
        let (mut one, mut other) = pair();
        let (mut reader, writer) = io::pipe().expect("a pipe");
        one.send(&LaunchMessage::Start, &[writer.as_fd()]).expect("sent");
        drop(writer);
        let received = other.receive_alone::<LaunchMessage>(100).expect("understood");
        assert_eq!(received, Some(LaunchMessage::Start));
        assert_eq!(reader.read(&mut [0]).expect("read"), 0, "nobody has the other end");
        drop(one);
        assert_eq!(other.receive_alone::<LaunchMessage>(100).expect("the end"), None);
    }

    #[test]
    fn more_descriptors_than_are_taken_are_refused_on_both_sides() {
        let (mut one, mut other) = pair();
        let copies: Vec<_> =
            (0..=MOST_DESCRIPTORS).map(|_| one.as_fd().try_clone_to_owned().expect("one")).collect();
        let borrowed: Vec<_> = copies.iter().map(AsFd::as_fd).collect();
        assert!(one.send(&LaunchMessage::Start, &borrowed).is_err());
        one.send(&LaunchMessage::Start, &borrowed[1..]).expect("as many as may be");
        let (_, with) = other.receive::<LaunchMessage>(100).expect("understood").expect("one");
        assert_eq!(with.len(), MOST_DESCRIPTORS);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS + 1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        rights.push(SendAncillaryMessage::ScmRights(&borrowed));
        sendmsg(&one.0, &[IoSlice::new(&[1, 0, 0, 0, 2])], &mut rights, SendFlags::empty()).expect("sent");
        let refused = other.receive::<LaunchMessage>(100).expect_err("too many");
        assert!(matches!(refused, ChannelError::Descriptors(_)), "{refused}");
    }

    #[test]
    fn an_end_that_does_not_read_holds_nobody_up_for_longer_than_was_said() {
        let (one, other) = pair();
        one.send_within(Duration::from_millis(20)).expect("a time");
        let mut again = one.again().expect("another handle");
        let long = CompileMessage::Refused("x".repeat(1 << 22));
        let error = again.send(&long, &[]).expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(one.send_within(Duration::ZERO).is_err());
        drop(other);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_a_message_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (mut one, mut other) = pair();
            one.0.write_all(&bytes).expect("sent");
            drop(one);
            while let Ok(Some((message, with))) = other.receive::<LaunchMessage>(64) {
                prop_assert!(with.is_empty());
                let (mut back, mut again) = pair();
                back.send(&message, &[]).expect("sent");
                prop_assert_eq!(again.receive::<LaunchMessage>(1 << 10).expect("understood").expect("one").0, message);
            }
        }
    }
}
