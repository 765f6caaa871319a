//! Any bytes at a channel of the core are a message of its type or refused, whole or in parts; and a message
//! that is taken is taken as the same one when it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use messages::Channel;
use messages::compile::CompileMessage;
use messages::control::ControlQuestion;
use messages::frame;
use messages::launch::LaunchMessage;
use messages::takeover::{TakeoverAnswer, TakeoverQuestion};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// The longest message here, in bytes.
const MOST: usize = 512;

/// Receives until nothing more is taken, and compares with what the bytes mean by themselves.
fn receive<M: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let (mut theirs, ours) = UnixStream::pair().expect("a pair");
    let mut channel = Channel::of(ours.into());
    theirs.write_all(bytes).expect("a socket holds more than an input");
    drop(theirs);
    let mut rest = bytes;
    loop {
        let due: Option<M> = rest.split_first_chunk().and_then(|(length, behind)| {
            let length = u32::from_le_bytes(*length) as usize;
            let message = behind.get(..length).filter(|_| length <= MOST)?;
            rest = &behind[length..];
            frame::read(message).ok()
        });
        match (channel.receive_alone::<M>(MOST), due) {
            (Ok(Some(message)), Some(due)) => {
                assert_eq!(message, due);
                let again = frame::written(&message).expect("it was read");
                assert_eq!(frame::read(&again[4..]), Ok(message));
            }
            (Ok(None), None) => return assert!(rest.is_empty(), "{} bytes are left", rest.len()),
            (Err(_), None) => return,
            (received, due) => panic!("{received:?}, and not {due:?}"),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 5 {
        0 => receive::<ControlQuestion>(bytes),
        1 => receive::<CompileMessage>(bytes),
        2 => receive::<LaunchMessage>(bytes),
        3 => receive::<TakeoverQuestion>(bytes),
        _ => receive::<TakeoverAnswer>(bytes),
    }
});
