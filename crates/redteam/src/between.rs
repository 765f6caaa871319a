//! What hosts say to each other while they are attacked, and a listener in the container who must see nothing
//! of it.

use crate::frames::{Scene, Victim};
use crate::tap::Tap;
use rig::Namespace;
use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

/// The port at both hosts.
const PORT: u16 = 4009;
/// How often each says something.
const PAUSE: Duration = Duration::from_millis(5);

/// Datagrams of two hosts to each other.
pub(crate) struct Conversation {
    hosts: [Victim; 2],
    sockets: [UdpSocket; 2],
    /// What stands in each, and which no attacker knows.
    words: Vec<u8>,
    next: Instant,
    /// How many were sent.
    pub(crate) sent: u64,
    /// How many arrived.
    pub(crate) arrived: u64,
}

impl Conversation {
    /// One of the hosts of the LAN and the WAN, with words of which a folder of a name of its own is a part.
    ///
    /// # Errors
    /// The hosts have no sockets.
    pub(crate) fn new(scene: &Scene, networks: [&Namespace; 2], folder: &Path) -> io::Result<Conversation> {
        let hosts = [scene.lan, scene.wan];
        let socket = |number: usize| networks[number].inside(|| UdpSocket::bind((hosts[number].ipv4, PORT)));
        let words = format!("<<between hosts: {}>>", folder.display()).into_bytes();
        Ok(Conversation {
            hosts,
            sockets: [socket(0)?, socket(1)?],
            words,
            next: Instant::now(),
            sent: 0,
            arrived: 0,
        })
    }

    /// Has each say something, if it is time.
    ///
    /// # Errors
    /// What Linux says.
    pub(crate) fn go_on(&mut self) -> io::Result<()> {
        if Instant::now() < self.next {
            return Ok(());
        }
        self.next = Instant::now() + PAUSE;
        for (socket, to) in self.sockets.iter().zip(self.hosts.iter().rev()) {
            socket.send_to(&self.words, (to.ipv4, PORT))?;
            self.sent += 1;
        }
        Ok(())
    }

    /// Whether a frame is one of them as it comes to this host.
    pub(crate) fn is_to(&self, host: &Victim, frame: &[u8]) -> bool {
        let from = self.hosts.iter().find(|other| other.ethernet != host.ethernet);
        let head = from.map(|from| [host.ethernet, from.ethernet].concat());
        head.is_some_and(|head| frame.starts_with(&head)) && frame.ends_with(&self.words)
    }

    /// Whether something of them is in a frame.
    fn is_in(&self, frame: &[u8]) -> bool {
        frame.windows(self.words.len()).any(|window| window == self.words)
    }
}

/// A listener at the link of a container.
pub(crate) struct Listener {
    tap: Tap,
    /// How many frames it saw of what hosts say, or could not look at.
    pub(crate) seen: u64,
}

impl Listener {
    /// One who begins to listen now.
    pub(crate) fn new(tap: Tap) -> Listener {
        Listener { tap, seen: 0 }
    }

    /// Goes on at a link that is there again.
    pub(crate) fn renew(&mut self, tap: Tap) {
        self.tap = tap;
    }

    /// Looks at what has come.
    ///
    /// # Errors
    /// What Linux says.
    pub(crate) fn listen(&mut self, conversation: &Conversation) -> io::Result<()> {
        loop {
            match self.tap.take() {
                Ok(Some(frame)) => self.seen += u64::from(conversation.is_in(frame)),
                Ok(None) => break,
                // Root inside has turned the link off, or deleted it.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {}
                Err(error) => return Err(error),
            }
        }
        self.seen += self.tap.lost()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{ethernet, udp4};

    #[test]
    fn what_hosts_say_is_known_at_its_end_and_anywhere_else() {
        let scene = Scene::usual();
        let (lan, wan) = (scene.lan, scene.wan);
        let socket = || UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
        let conversation = Conversation {
            hosts: [lan, wan],
            sockets: [socket(), socket()],
            words: b"<<words>>".to_vec(),
            next: Instant::now(),
            sent: 0,
            arrived: 0,
        };
        let packet = |words: &[u8]| udp4(lan.ipv4, wan.ipv4, (PORT, PORT), words);
        let said = ethernet(wan.ethernet, lan.ethernet, 0x0800, &packet(b"<<words>>"));
        let other = ethernet(wan.ethernet, lan.ethernet, 0x0800, &packet(b"<<others>>"));
        let routers = ethernet(wan.ethernet, scene.router.ethernet, 0x0800, &packet(b"<<words>>"));
        assert!(conversation.is_to(&wan, &said) && conversation.is_in(&said));
        assert!(!conversation.is_to(&lan, &said));
        assert!(!conversation.is_to(&wan, &other) && !conversation.is_in(&other));
        assert!(!conversation.is_to(&wan, &routers) && conversation.is_in(&routers));
        assert!(conversation.is_in(&[&said[..], &[0; 7]].concat()));
    }
}
