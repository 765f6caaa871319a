//! The control plane beside a confined core: it answers at the control socket, and whoever asks for metrics,
//! by what the core tells it, and follows routes and neighbours. Of packets it has those that the program
//! punts.

mod confined_loop;
pub(crate) mod core_channel;
mod one_process;
mod picture;
mod prefix_expansion;
mod routes;

use crate::active::{ActiveView, SignedView};
use crate::clients::{Attending, Clients};
use crate::control::{self, Asked, ControlAnswer, Conversation, InstallWish};
use crate::http;
use crate::metrics::{self, Seen};
use crate::routing::RoutingSettings;
use crate::tables::confined::ConfinedTables;
use crate::tables::{self, Known, confined};
use core_channel::{CoreChannel, unexpected};
use front::ClientRole;
use messages::control::{ControlQuestion, CoreAnswer};
use messages::front::ControlSupply;
use messages::limits::{
    AFTER_POLICY, AFTER_QUESTION, LONGEST_BUNDLE, LONGEST_BUNDLE_MESSAGE, LONGEST_SUPPLY,
};
use messages::{Channel, ChannelError};
pub use one_process::OneProcess;
use routes::ShownRouting;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, BufReader};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Addresses and routes of a gateway, and where to tell the operator of them.
pub struct ConfinedRouting {
    /// What its file says.
    pub settings: RoutingSettings,
    /// The socket of rtnetlink in the network of the container whose routes are followed, if that is so.
    pub container: Option<OwnedFd>,
    /// Tells it.
    pub told: fn(&str),
}

/// What there is to do beside a core, besides answering at the control socket.
#[derive(Default)]
pub struct ControlDuties {
    /// Fronts that are handed over by this channel are answered, too.
    pub fronts: Option<Channel>,
    /// Whoever asks here for metrics, too.
    pub metrics: Option<TcpListener>,
    /// These addresses and routes are the gateway's.
    pub routing: Option<ConfinedRouting>,
    /// Whether the gateway could be one process.
    pub one_process: OneProcess,
}

/// Answers clients at a control socket, does what there is to do besides, and calls `gone` on a thread of its
/// own when the core is gone. The socket may be another process's, too, and goes on being listened at.
///
/// # Errors
/// No thread can be had.
pub fn serve(
    listener: &UnixListener,
    core: Channel,
    duties: ControlDuties,
    gone: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let clients = Arc::new(Clients::new(Arc::default()));
    watch_end(&core, gone)?;
    let (core, handing_in) = (Arc::new(CoreChannel::new(core)), Mutex::new(()));
    let ControlDuties { fronts, metrics, routing, one_process } = duties;
    let routing = match routing {
        Some(ConfinedRouting { settings, container, told }) => {
            routes::start(&core, settings, container, told)?
        }
        None => ShownRouting::default(),
    };
    if let Some(fronts) = fronts {
        let core = core.clone();
        thread::Builder::new().name("fronts".to_owned()).spawn(move || answer_fronts(fronts, &core))?;
    }
    if let Some(listener) = metrics {
        let core = core.clone();
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let page = |method: &str, path: &str| metrics::page(method, path, &|| seen(&core));
            http::serve(&listener, &AtomicBool::new(false), &page);
        })?;
    }
    let answer: Arc<Attending> = Arc::new(move |visit, stream| {
        let turn = |silent| visit.turn(silent);
        // A client may disconnect at any time.
        let mut known = None;
        let ended = control::converse(stream, &turn, &mut |asked, _| match asked {
            Asked::Routes | Asked::Neighbours => shown(&asked, &routing, one_process),
            asked => answer(&core, &asked, &mut known, one_process),
        });
        match (ended, known) {
            (Ok(Conversation::Install(wish, reader)), _) => {
                // One at a time: a bundle may be long.
                let _only = handing_in.lock().unwrap_or_else(PoisonError::into_inner);
                let said = install(&core, &wish, stream, reader);
                let _ = control::say(stream, &said);
            }
            (Ok(Conversation::Tables(reader)), Some(known)) => {
                let ask = |question: &ControlQuestion| core.ask(question);
                let _ = confined::converse(
                    &ConfinedTables { ask: &ask, one_process },
                    known,
                    stream,
                    reader,
                    &turn,
                );
            }
            _ => {}
        }
    });
    clients.attend(listener, &answer);
    Ok(())
}

/// Routes and neighbours.
fn shown(asked: &Asked, routing: &ShownRouting, one_process: OneProcess) -> ControlAnswer {
    match (routing.get(), asked) {
        (Some(routing), Asked::Routes) => ControlAnswer::Routes(Box::new(routing.routes())),
        (Some(routing), _) => ControlAnswer::Neighbours(Box::new(routing.neighbours())),
        (None, _) => confined(one_process.misses(
            "no routes are followed without `addresses` of ports in the file and a signed policy with the tables for routes",
        )),
    }
}

/// Answers fronts, one process after the other, until none is handed over any more.
fn answer_fronts(mut fronts: Channel, core: &CoreChannel) {
    while let Ok(Some((ControlSupply::Front, mut channels))) = fronts.receive(LONGEST_SUPPLY) {
        if let Some(channel) = channels.pop() {
            answer_front(Channel::of(channel), core);
        }
    }
}

/// Answers a front until it is gone, or says what is not understood. It gets no other answers than the users
/// of the control socket, and leaves them their turn after each question.
fn answer_front(mut front: Channel, core: &CoreChannel) {
    while let Ok(Some(question)) = front.receive_alone::<ControlQuestion>(LONGEST_BUNDLE_MESSAGE) {
        let refused = |error: ChannelError| CoreAnswer::Refused(format!("the core: {error}"));
        let answer = match ClientRole::needed(&question) {
            Some(_) => core.ask_in_time(&question).unwrap_or_else(refused),
            None => CoreAnswer::Refused("that is not asked over a network".to_owned()),
        };
        if front.send(&answer, &[]).is_err() {
            return;
        }
        let changes = question != ControlQuestion::Show;
        thread::sleep(if changes { AFTER_POLICY } else { AFTER_QUESTION });
    }
}

/// Calls `gone` once the core is gone.
fn watch_end(core: &Channel, gone: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let core = core.again()?;
    thread::Builder::new().name("core".to_owned()).spawn(move || {
        // Nobody asks for more than the end, which Linux tells of in any case.
        let mut watched = [PollFd::new(&core, PollFlags::empty())];
        while poll(&mut watched, None) == Err(Errno::INTR) {}
        gone();
    })?;
    Ok(())
}

/// What there is to measure.
fn seen(core: &CoreChannel) -> Result<Seen, String> {
    let asked = |question| core.ask(question).map_err(|error| format!("the core: {error}"));
    let gateway = match asked(&ControlQuestion::Figures)? {
        CoreAnswer::Figures(figures) => Some((*figures).into()),
        other => return Err(unexpected(other)),
    };
    let policy = match asked(&ControlQuestion::Show)? {
        CoreAnswer::Shown(shown) => Some(shown.into()),
        other => return Err(unexpected(other)),
    };
    Ok(Seen { gateway, policy, names: None })
}

/// Reads a bundle, into which nobody looks here, and hands it to the core.
fn install(
    core: &CoreChannel,
    wish: &InstallWish,
    stream: &UnixStream,
    mut reader: BufReader<&UnixStream>,
) -> ControlAnswer {
    match control::bytes_behind(stream, &mut reader, wish.bytes) {
        Ok(bundle) => {
            let confirm_within = wish.confirm_within;
            told(core.ask_in_time(&ControlQuestion::Install { bundle, confirm_within }))
        }
        Err(error) => ControlAnswer::Error(format!("the bundle did not come whole: {error}")),
    }
}

/// What the core answers, as users are told it.
fn told(answer: Result<CoreAnswer, ChannelError>) -> ControlAnswer {
    answer.map_or_else(|error| ControlAnswer::Error(format!("the core: {error}")), ControlAnswer::from)
}

impl From<CoreAnswer> for ControlAnswer {
    fn from(answer: CoreAnswer) -> ControlAnswer {
        match answer {
            CoreAnswer::Shown(shown) => ControlAnswer::Active(Box::new(ActiveView::from(shown))),
            CoreAnswer::Runs { policy, not_kept } => ControlAnswer::Done(runs(policy.into(), not_kept)),
            CoreAnswer::Figures(figures) => ControlAnswer::Picture(Box::new((*figures).into())),
            other => ControlAnswer::Error(unexpected(other)),
        }
    }
}

/// Says that a policy runs that was handed in or confirmed.
fn runs(policy: SignedView, not_kept: Option<String>) -> String {
    let names: Vec<&str> = policy.signed_by.keys().map(String::as_str).collect();
    let mut text = format!("version {} runs, signed by {}", policy.version, names.join(" and "));
    if let Some(seconds) = policy.seconds_left {
        let before = policy.before.map_or("every packet is dropped".to_owned(), |version| {
            format!("version {version} takes over again")
        });
        text += &format!(
            "; {before} in {seconds} s, unless `ravelin bundle confirm {}` is said before",
            policy.hash
        );
    }
    if let Some(why) = not_kept {
        text += &format!("; it is not kept, and will not be there after an end of the gateway: {why}");
    }
    text
}

/// Refuses what is not had beside a confined core, for this reason.
fn confined(error: String) -> ControlAnswer {
    ControlAnswer::Confined { error, confined: true }
}

/// Answers a question. A client that goes on with tables gets what is `known` of them.
fn answer(
    core: &CoreChannel,
    asked: &Asked,
    known: &mut Option<Known>,
    one_process: OneProcess,
) -> ControlAnswer {
    match asked {
        Asked::Tables { version } => {
            let ask = |question: &ControlQuestion| core.ask(question);
            let tables = ConfinedTables { ask: &ask, one_process };
            let told = || confined::known(&tables).map_err(|refusal| refusal.message);
            match tables::speaks(*version).and_then(|()| told()) {
                Ok(told) => ControlAnswer::Tables(Box::new(known.insert(told).schema.clone())),
                Err(why) => ControlAnswer::Error(why),
            }
        }
        Asked::Active => told(core.ask(&ControlQuestion::Show)),
        Asked::Picture => told(core.ask(&ControlQuestion::Figures)),
        Asked::Install(wish) if wish.bytes > LONGEST_BUNDLE as u64 => ControlAnswer::Error(format!(
            "the bundle has {} bytes, of which at most {LONGEST_BUNDLE} are taken: make the policy smaller",
            wish.bytes
        )),
        Asked::Install(_) => ControlAnswer::Send(true),
        Asked::Confirm { hash } => match bundle::bytes_of_digits(hash) {
            Some(hash) => told(core.ask_in_time(&ControlQuestion::Confirm { hash })),
            None => ControlAnswer::Error(
                "a hash has 64 hexadecimal digits: `ravelin show policy` tells it".to_owned(),
            ),
        },
        Asked::Stop => ControlAnswer::Signal(true),
        Asked::Reload(wish) if wish.is_unconditional() => ControlAnswer::Signal(true),
        asked => confined(one_process.misses(missed(asked))),
    }
}

/// What is not had beside a confined core, which was asked for.
fn missed(asked: &Asked) -> &'static str {
    match asked {
        Asked::Reload(_) => "policies are not compared before another program takes over",
        Asked::Measure { .. } => {
            "nobody tells where the time of the packet loop goes, and how long packets stay"
        }
        Asked::Watch(_) | Asked::Why { .. } => "nobody tells of single packets",
        Asked::Policies | Asked::PolicyCounts => {
            "nobody tells of rules of policies, and what they have counted"
        }
        Asked::Names | Asked::WhyName(_) | Asked::AddName(_) | Asked::RemoveName { .. } => {
            "there are no names"
        }
        _ => "nobody tells that",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::ReloadWish;

    #[test]
    fn a_bundle_is_asked_for_if_it_is_not_too_long() {
        let (ours, _theirs) = Channel::pair().expect("a pair");
        let core = CoreChannel::new(ours);
        let asked = |bytes| {
            let wish = InstallWish { bytes, confirm_within: None };
            answer(&core, &Asked::Install(wish), &mut None, OneProcess::Never)
        };
        assert!(matches!(asked(LONGEST_BUNDLE as u64), ControlAnswer::Send(true)));
        for bytes in [LONGEST_BUNDLE as u64 + 1, u64::MAX] {
            let ControlAnswer::Error(why) = asked(bytes) else { panic!("{bytes} bytes are asked for") };
            assert!(why.contains("67108864 are taken"), "{why}");
        }
        let hash = "no digits".to_owned();
        assert!(matches!(
            answer(&core, &Asked::Confirm { hash }, &mut None, OneProcess::Never),
            ControlAnswer::Error(_)
        ));
    }

    #[test]
    fn what_is_not_had_names_the_way_to_it_and_what_control_may_not_do_is_asked_of_a_signal() {
        let (ours, _theirs) = Channel::pair().expect("a pair");
        let core = CoreChannel::new(ours);
        let told = |asked: &Asked, one_process| match answer(&core, asked, &mut None, one_process) {
            ControlAnswer::Confined { error, confined: true } => error,
            other => panic!("{other:?}"),
        };
        let reload = |check| Asked::Reload(ReloadWish { check, ..ReloadWish::default() });
        for asked in [Asked::Stop, reload(false)] {
            let answer = answer(&core, &asked, &mut None, OneProcess::Possible);
            assert!(matches!(answer, ControlAnswer::Signal(true)), "{asked:?}");
        }
        for asked in [reload(true), Asked::Names, Asked::PolicyCounts, Asked::Measure { seconds: 1.0 }] {
            let way = "`ravelin serve --one-process` runs";
            assert!(told(&asked, OneProcess::Possible).contains(way), "{asked:?}");
            assert!(!told(&asked, OneProcess::Never).contains("one-process"), "{asked:?}");
        }
    }
}
