//! The control plane beside a confined core: it answers at the control socket by what the core tells it, and
//! has no way to the packets.

use crate::active::ActiveView;
use crate::clients::{Attending, Clients};
use crate::control::{self, Asked, ControlAnswer};
use messages::control::{ControlQuestion, CoreAnswer};
use messages::limits::LONGEST_PROGRAM;
use messages::{Channel, ChannelError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Answers clients at a control socket, and calls `gone` on a thread of its own when the core is gone. The
/// socket may be another process's, too, and goes on being listened at.
///
/// # Errors
/// No thread can be had.
pub fn serve(listener: &UnixListener, core: Channel, gone: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let clients = Arc::new(Clients::new(Arc::default()));
    watch_end(&core, gone)?;
    let core = Mutex::new(core);
    let answer: Arc<Attending> = Arc::new(move |visit, stream| {
        let turn = |silent| visit.turn(silent);
        // A client may disconnect at any time.
        let _ = control::converse(stream, &turn, &mut |asked, _| answer(&core, &asked));
    });
    clients.attend(listener, &answer);
    Ok(())
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

/// Answers a question.
fn answer(core: &Mutex<Channel>, asked: &Asked) -> ControlAnswer {
    match asked {
        Asked::Active => match ask(core, &ControlQuestion::Show) {
            Ok(CoreAnswer::Shown(shown)) => ControlAnswer::Active(Box::new(ActiveView::from(shown))),
            Ok(CoreAnswer::Refused(why)) => ControlAnswer::Error(why),
            Err(error) => ControlAnswer::Error(format!("the core: {error}")),
        },
        Asked::Stop | Asked::Reload(_) => ControlAnswer::Error(
            "the process that answers here has no right to do that: `ravelin-launch` ends by SIGTERM, and has its file read again by SIGHUP".to_owned(),
        ),
        _ => ControlAnswer::Error(
            "the core is confined and does not tell this: `ravelin show policy` says what runs there; `ravelin serve` without `--trusted` tells everything".to_owned(),
        ),
    }
}

/// Asks the core. After an answer that is not understood nobody knows where the next one begins, so the
/// channel ends, and with it this process.
fn ask(core: &Mutex<Channel>, question: &ControlQuestion) -> Result<CoreAnswer, ChannelError> {
    let mut core = core.lock().unwrap_or_else(PoisonError::into_inner);
    let gone = || ChannelError::System(io::ErrorKind::UnexpectedEof.into());
    let sent = core.send(question, &[]).map_err(ChannelError::from);
    let answered = sent.and_then(|()| core.receive_alone(LONGEST_PROGRAM)?.ok_or_else(gone));
    if answered.is_err() {
        core.end();
    }
    answered
}
