//! The keys of `[names]` for roles in other processes: `waypoints`, which are asked for addresses, and
//! `name_servers`, which ask this one. Both name peers of tunnels.

use naming::limits::MOST_WAYPOINTS;
use std::ops::Range;
use toml::Spanned;

/// Who has another role for the names of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// The waypoints that are asked for addresses, in this order.
    pub waypoints: Vec<String>,
    /// The name servers that may ask this waypoint.
    pub name_servers: Vec<String>,
}

impl Elsewhere {
    /// Reads both. `peers` are the names of all peers of tunnels.
    ///
    /// # Errors
    /// The first name that is not that of one peer, and where it stands.
    pub(super) fn read(
        waypoints: &[Spanned<String>],
        name_servers: &[Spanned<String>],
        peers: &[&str],
    ) -> Result<Elsewhere, (Range<usize>, String)> {
        Ok(Elsewhere {
            waypoints: named("waypoints", waypoints, peers)?,
            name_servers: named("name_servers", name_servers, peers)?,
        })
    }
}

fn named(
    key: &str,
    names: &[Spanned<String>],
    peers: &[&str],
) -> Result<Vec<String>, (Range<usize>, String)> {
    let mut all: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let text = name.get_ref();
        let message = match peers.iter().filter(|peer| *peer == text).count() {
            _ if all.len() >= MOST_WAYPOINTS => format!("`{key}` has at most {MOST_WAYPOINTS} names"),
            1 if all.contains(text) => format!("`{text}` stands here twice"),
            1 => {
                all.push(text.clone());
                continue;
            }
            0 => format!(
                "no tunnel has a peer `{text}`: describe it by `[[port.peer]]`, or in a file without ports by `[[tunnel.peer]]`"
            ),
            _ => format!("peers of several tunnels are called `{text}`"),
        };
        return Err((name.span(), message));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct File {
        waypoints: Vec<Spanned<String>>,
    }

    #[test]
    fn so_many_waypoints_are_asked_and_no_more() {
        let names: Vec<String> = (0..=MOST_WAYPOINTS).map(|number| format!("w{number}")).collect();
        let peers: Vec<&str> = names.iter().map(String::as_str).collect();
        let file: File = toml::from_str(&format!("waypoints = {names:?}")).expect("is read");
        let most = &file.waypoints[..MOST_WAYPOINTS];
        let read = Elsewhere::read(most, &[], &peers).expect("just so many");
        assert_eq!(read.waypoints, names[..MOST_WAYPOINTS]);
        let (_, message) = Elsewhere::read(&file.waypoints, &[], &peers).expect_err("one too many");
        assert_eq!(message, "`waypoints` has at most 16 names");
    }
}
