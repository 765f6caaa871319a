//! The key `server_names` of `[names.waypoint]`: where clients that nobody is promised to are led by a server
//! name.

use crate::limits::SERVER_NAME_PORTS;
use naming::{Service, TCP};
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;

/// Reads the ports.
///
/// # Errors
/// What is no such port, and where it stands.
pub(super) fn read(texts: &[Spanned<String>]) -> Result<BTreeSet<u16>, (Range<usize>, String)> {
    let mut ports = BTreeSet::new();
    for text in texts {
        let wrong = |message: String| Err((text.span(), message));
        match text.get_ref().parse() {
            Ok(Service { protocol: TCP, port }) => {
                ports.insert(port);
            }
            Ok(_) => {
                return wrong(format!(
                    "`{}` is not of TCP: a server name stands in the first message of TLS, as at tcp/443",
                    text.get_ref()
                ));
            }
            Err(error) => return wrong(error.to_string()),
        }
        if ports.len() > SERVER_NAME_PORTS {
            return wrong(format!("there are at most {SERVER_NAME_PORTS} `server_names`"));
        }
    }
    Ok(ports)
}
