//! Where a gateway can be asked over a network, and by whom.
//!
//! ```toml
//! [front]
//! listen = "192.0.2.1:4433"       # an address of this machine, and a port
//! key = "/etc/ravelin/front.key"  # its own secret key, as `ravelin front key new` makes it
//!
//! [front.clients.anna]
//! key = "8a1f…"                   # a public key, as `ravelin front key show` prints it
//! role = "administrator"          # reader, operator, administrator or owner
//! ```

use super::TrustConfig;
use bundle::Trust;
use front::PinnedClient;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileFront {
    listen: Spanned<String>,
    key: PathBuf,
    #[serde(default)]
    clients: BTreeMap<String, FileClient>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileClient {
    key: Spanned<String>,
    role: Spanned<String>,
}

/// Where a gateway can be asked over a network, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The file of its secret key.
    pub key: PathBuf,
    /// The clients that it knows.
    pub clients: Vec<PinnedClient>,
}

/// Reads the section; a relative path is one in `directory`.
pub(super) fn read(
    file: FileFront,
    trust: Option<&TrustConfig>,
    directory: &Path,
) -> Result<FrontConfig, (Range<usize>, String)> {
    let place = file.listen.span();
    let Some(trust) = trust else {
        let why = "`[front]` needs `[trust]`: over a network, only policies are taken that were signed";
        return Err((place, why.to_owned()));
    };
    let listen = file.listen.get_ref().parse().map_err(|_| {
        let why = "it has to be an address and a port, such as 192.0.2.1:4433 or [2001:db8::1]:4433";
        (place.clone(), why.to_owned())
    })?;
    if file.clients.is_empty() {
        let why = "nobody could ask there: name clients in `[front.clients]`, and make their keys by `ravelin front key new`";
        return Err((place, why.to_owned()));
    }
    let mut clients = Vec::new();
    for (name, client) in &file.clients {
        let (key, role) = (client.key.get_ref(), client.role.get_ref());
        if trust.keys.iter().any(|(_, other)| other.eq_ignore_ascii_case(key)) {
            let why = "this key signs policies: a client has one of its own (`ravelin front key new`)";
            return Err((client.key.span(), why.to_owned()));
        }
        role.parse::<front::ClientRole>().map_err(|error| (client.role.span(), error.to_string()))?;
        let client =
            PinnedClient::new(name, role, key).map_err(|error| (client.key.span(), error.to_string()))?;
        clients.push(client);
    }
    // What holds of keys that sign holds of these: each has a name and stands there once, and nobody else
    // can make signatures that are right by it.
    let digits = file.clients.iter().map(|(name, client)| (name, client.key.get_ref()));
    Trust::of_digits("front", digits, 1).map_err(|error| (place, error.to_string()))?;
    Ok(FrontConfig { listen, key: directory.join(file.key), clients })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use front::ClientRole;

    const ANNA: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const SIGNS: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

    fn read(front: &str) -> Result<Config, String> {
        let text = format!(
            "program = \"p\"\n[[port]]\ninterface = \"a\"\n[trust]\ngateway = \"g\"\nthreshold = 1\n[trust.keys]\nanna = \"{SIGNS}\"\n[front]\n{front}"
        );
        Config::read(&text, Path::new("/etc/ravelin")).map_err(|error| error.to_string())
    }

    #[test]
    fn who_may_ask_over_a_network_is_read_and_what_cannot_be_is_refused_at_its_place() {
        let right = format!(
            "listen = \"192.0.2.1:4433\"\nkey = \"front.key\"\n[front.clients]\nanna = {{ key = \"{ANNA}\", role = \"administrator\" }}\n"
        );
        let front = read(&right).expect("it is right").front.expect("there is one");
        assert_eq!(front.listen.to_string(), "192.0.2.1:4433");
        assert_eq!(front.key, Path::new("/etc/ravelin/front.key"));
        assert_eq!(
            (front.clients[0].name.as_str(), front.clients[0].role),
            ("anna", ClientRole::Administrator)
        );
        let twice = format!("{right}bert = {{ key = \"{ANNA}\", role = \"reader\" }}\n");
        let weak = right.replace(ANNA, &"0".repeat(64));
        for (wrong, place, why) in [
            (right.replace("192.0.2.1:4433", "192.0.2.1"), "line 10, column 10", "an address and a port"),
            (right.replace("administrator", "root"), "line 13", "there is no role `root`"),
            (right.replace(ANNA, "00"), "line 13", "64 hexadecimal digits"),
            (right.replace(ANNA, SIGNS), "line 13", "this key signs policies"),
            (
                right.split_once("[front.clients]").expect("it is there").0.to_owned(),
                "line 10",
                "nobody could ask",
            ),
            (twice, "line 10", "anna"),
            (weak, "line 10", "anna"),
        ] {
            let error = read(&wrong).expect_err("refused");
            assert!(error.contains(place) && error.contains(why), "{error}");
        }
        let alone = format!("program = \"p\"\n[[port]]\ninterface = \"a\"\n[front]\n{right}");
        let error = Config::read(&alone, Path::new("/")).expect_err("refused").to_string();
        assert!(error.contains("`[front]` needs `[trust]`"), "{error}");
    }
}
