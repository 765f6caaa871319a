//! The presence of a port's interface: whether the interface is there, and how the port is attached to it.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;

/// The largest number of reports that wait for a slow listener; further ones are dropped.
const UNHEARD: usize = 16;

/// Whether the interface of a port is there. Whoever watches it writes, whoever wants to know reads.
#[derive(Default)]
pub struct Presence {
    /// The program's time; 0 while it is there.
    gone_since: AtomicU64,
    vanished: AtomicU64,
    /// What was obtained when it came back.
    mode: Mutex<Option<String>>,
    /// Why it could not be used again at the last attempt.
    refused: Mutex<Option<String>>,
    /// What stands between it and the program, in words.
    before: OnceLock<String>,
    /// Why its trace is not written, while that is so.
    untraced: Mutex<Option<String>>,
    /// Where somebody hears of it.
    told: OnceLock<SyncSender<Heard>>,
    /// The ports that divide it, as long as each is there.
    ports: Mutex<Vec<Weak<Presence>>>,
    /// For such a port, the interface, which is there or not, and what of it the port has, in words.
    part_of: Option<(Arc<Presence>, String)>,
}

/// What somebody hears of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is there again, and this was obtained.
    Back(String),
    /// Something else, in words.
    Remark(String),
}

impl Presence {
    /// That of the interface.
    fn interface(&self) -> &Presence {
        self.part_of.as_ref().map_or(self, |(interface, _)| interface)
    }

    /// Since when it has been gone (the program's time); `None` while it is there.
    pub fn gone_since(&self) -> Option<u64> {
        Some(self.interface().gone_since.load(Ordering::Relaxed)).filter(|&since| since != 0)
    }

    /// How often it has vanished.
    pub fn vanished(&self) -> u64 {
        self.interface().vanished.load(Ordering::Relaxed)
    }

    /// What was obtained when it came back last, for people; `None` if it never did, so that what was
    /// obtained at first still holds.
    pub fn mode(&self) -> Option<String> {
        let mode = self.interface().mode.lock().unwrap_or_else(PoisonError::into_inner).clone();
        mode.map(|mode| if self.part_of.is_some() { self.described(mode) } else { mode })
    }

    /// What was obtained, with what else is to be said of the port.
    fn described(&self, mut mode: String) -> String {
        mode.push_str(self.part_of.as_ref().map_or("", |(_, part)| part));
        mode.push_str(self.before.get().map_or("", String::as_str));
        mode
    }

    /// Why it could not be used again at the last attempt, for people; `None` while it is there, and before
    /// the first.
    pub fn refused(&self) -> Option<String> {
        self.interface().refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why its trace is not written, for people; `None` while it is, or where there is none.
    pub fn untraced(&self) -> Option<String> {
        self.untraced.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells somebody what was obtained whenever it has come back, and what else is to be known, on a thread
    /// of its own: no packet waits for whoever hears slowly or not at all. The first who asks is told.
    ///
    /// # Errors
    /// No further thread can be had.
    pub fn tell(&self, told: impl Fn(&Heard) + Send + 'static) -> io::Result<()> {
        let (words, heard) = sync_channel::<Heard>(UNHEARD);
        thread::Builder::new()
            .name("told of ports".to_owned())
            .spawn(move || heard.iter().for_each(|words| told(&words)))?;
        // Whoever asked before goes on being told.
        let _ = self.told.set(words);
        Ok(())
    }

    /// It has vanished at `now`.
    pub fn gone(&self, now: u64) {
        self.vanished.fetch_add(1, Ordering::Relaxed);
        self.away(now);
    }

    /// A part of it is away since `now` at the latest, which is counted already.
    pub(crate) fn away(&self, now: u64) {
        // It stays gone since it was gone first.
        let _ = self.gone_since.compare_exchange(0, now.max(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It could not be used again.
    #[cfg(feature = "attach")]
    pub(crate) fn refuse(&self, error: &impl fmt::Display) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }

    /// It is there again, and this was obtained.
    pub fn back(&self, mode: String) {
        let mode = self.whole(mode);
        self.say(Heard::Back(mode.clone()));
        let ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        for port in ports.iter().filter_map(Weak::upgrade) {
            port.say(Heard::Back(port.described(mode.clone())));
        }
    }

    fn say(&self, what: Heard) {
        if let Some(told) = self.told.get() {
            // Packets may wait for this thread.
            let _ = told.try_send(what);
        }
    }

    /// A part of it that was away is there again, of which nobody is told, and so is all of it; says what was
    /// obtained in all.
    pub(crate) fn whole(&self, mode: String) -> String {
        let mode = self.described(mode);
        self.gone_since.store(0, Ordering::Relaxed);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = None;
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode.clone());
        mode
    }
}

#[cfg(feature = "attach")]
impl Presence {
    /// That of a port that divides an interface with others, and has this part of it, in words. The port has
    /// a trace of its own, and is told by itself when the interface is there again.
    pub(crate) fn of_part(interface: &Arc<Presence>, part: &str) -> Arc<Presence> {
        let part_of = Some((interface.clone(), part.to_owned()));
        let port = Arc::new(Presence { part_of, ..Presence::default() });
        let mut ports = interface.ports.lock().unwrap_or_else(PoisonError::into_inner);
        ports.retain(|port| port.strong_count() > 0);
        ports.push(Arc::downgrade(&port));
        port
    }

    /// Its trace cannot be written for a reason, or is written again.
    pub(crate) fn trace(&self, untraced: Option<String>) {
        self.say(Heard::Remark(untraced.clone().unwrap_or_else(|| "its trace is written again".to_owned())));
        *self.untraced.lock().unwrap_or_else(PoisonError::into_inner) = untraced;
    }

    /// Adds words to whatever will be obtained.
    pub(crate) fn stands_behind(&self, words: &str) {
        // A port is wrapped once.
        let _ = self.before.set(words.to_owned());
    }
}

impl fmt::Debug for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presence")
            .field("gone_since", &self.gone_since())
            .field("vanished", &self.vanished())
            .field("mode", &self.mode())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn what_vanished_is_counted_and_what_comes_back_is_told() {
        let presence = Presence::default();
        let (hears, heard) = channel();
        presence.tell(move |what| hears.send(what.clone()).expect("heard")).expect("a thread");
        presence.stands_behind(", traced");
        assert_eq!((presence.gone_since(), presence.vanished(), presence.mode()), (None, 0, None));
        presence.gone(7);
        presence.away(8);
        assert_eq!((presence.gone_since(), presence.vanished()), (Some(7), 1));
        presence.refuse(&"interface tap0 is switched off");
        assert!(presence.refused().is_some_and(|why| why.contains("tap0")));
        presence.back("tap".to_owned());
        assert_eq!(presence.refused(), None);
        assert_eq!((presence.gone_since(), presence.vanished()), (None, 1));
        assert_eq!(presence.mode().as_deref(), Some("tap, traced"));
        assert_eq!(heard.recv(), Ok(Heard::Back("tap, traced".to_owned())));
        presence.trace(Some("the disk is full".to_owned()));
        assert_eq!(heard.recv(), Ok(Heard::Remark("the disk is full".to_owned())));
        assert_eq!(presence.untraced().as_deref(), Some("the disk is full"));
        presence.trace(None);
        assert_eq!(presence.untraced(), None);
    }

    #[test]
    fn ports_of_one_interface_are_told_one_by_one_and_have_traces_of_their_own() {
        let interface = Arc::new(Presence::default());
        let mut ports = [", VLAN 20", ", VLAN 30"].map(|part| {
            let (hears, heard) = channel();
            let port = Presence::of_part(&interface, part);
            port.tell(move |what| hears.send(what.clone()).expect("heard")).expect("a thread");
            (port, heard)
        });
        ports[0].0.stands_behind(", traced");
        let back = |mode: &str| Ok(Heard::Back(mode.to_owned()));
        interface.gone(7);
        interface.refuse(&"it is off");
        for (port, _) in &ports {
            assert_eq!((port.gone_since(), port.vanished(), port.mode()), (Some(7), 1, None));
            assert_eq!(port.refused().as_deref(), Some("it is off"));
        }
        interface.back("tap".to_owned());
        for ((port, heard), mode) in ports.iter().zip(["tap, VLAN 20, traced", "tap, VLAN 30"]) {
            assert_eq!((port.gone_since(), port.mode().as_deref(), port.refused()), (None, Some(mode), None));
            assert_eq!(heard.recv(), back(mode));
        }
        ports[0].0.trace(Some("the disk is full".to_owned()));
        assert_eq!(ports[0].1.recv(), Ok(Heard::Remark("the disk is full".to_owned())));
        assert_eq!(ports[0].0.untraced().as_deref(), Some("the disk is full"));
        assert_eq!((ports[1].0.untraced(), interface.untraced()), (None, None));
        // The first one goes; whoever heard of it hears no more, and the other one still does.
        ports[0].0 = Arc::default();
        interface.back("tap again".to_owned());
        assert!(ports[0].1.recv().is_err());
        assert_eq!(ports[1].1.recv(), back("tap again, VLAN 30"));
        let port = Presence::of_part(&interface, ", VLAN 40");
        assert_eq!(port.mode().as_deref(), Some("tap again, VLAN 40"));
        assert_eq!(interface.ports.lock().expect("whole").len(), 2, "of those that are there");
    }

    #[test]
    fn nothing_waits_for_whoever_does_not_hear() {
        let presence = Presence::default();
        let (hears, heard) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let deaf = move |what: &Heard| {
            hears.send(what.clone()).expect("heard");
            // Until the other end is gone.
            let _ = may_go_on.recv();
        };
        presence.tell(deaf).expect("a thread");
        presence.back("first".to_owned());
        assert_eq!(heard.recv(), Ok(Heard::Back("first".to_owned())));
        for number in 0..UNHEARD + 100 {
            presence.gone(1);
            presence.back(format!("{number}"));
        }
        assert_eq!((presence.gone_since(), presence.mode()), (None, Some(format!("{}", UNHEARD + 99))));
        drop((go_on, presence));
        assert_eq!(heard.iter().count(), UNHEARD, "what found room, and the thread ends");
    }
}
