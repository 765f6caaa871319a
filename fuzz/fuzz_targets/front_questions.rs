//! Any bytes of a client that a front knows are a question that its role may ask, or refused, in whatever
//! parts they come; and a question that is taken has a form that is taken as the same question.
#![no_main]

use front::{ClientRole, Inbox};
use libfuzzer_sys::fuzz_target;
use messages::frame;

fuzz_target!(|data: &[u8]| {
    let Some(([role, cut], bytes)) = data.split_first_chunk() else { return };
    let role = ClientRole::ALL[usize::from(*role) % ClientRole::ALL.len()];
    let whole = Inbox::new(role).take(bytes);
    if let Ok(Some(question)) = &whole {
        assert!(ClientRole::needed(question).is_some_and(|needed| needed <= role));
        assert!(bytes.len() <= 4 + role.longest_question());
        let again = frame::written(question).unwrap();
        // Numbers may be longer than they need to be, but say the same.
        assert_eq!(&Inbox::new(role).take(&again).unwrap().unwrap(), question);
    }
    let (first, second) = bytes.split_at(usize::from(*cut).min(bytes.len()));
    let mut inbox = Inbox::new(role);
    match inbox.take(first) {
        Ok(None) => match (inbox.take(second), whole) {
            (Ok(parts), Ok(whole)) => assert_eq!(parts, whole),
            (parts, whole) => assert_eq!(parts.is_err(), whole.is_err()),
        },
        // Behind a whole question nothing may come before its answer.
        Ok(Some(_)) => assert!(second.is_empty() || whole.is_err()),
        Err(_) => assert!(whole.is_err()),
    }
});
