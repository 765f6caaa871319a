//! Cookies by which a client shows that it gets what is sent to its address (RFC 7873, RFC 9018).

use domain::base::Serial;
use domain::base::opt::Cookie;
use std::net::IpAddr;

/// How old a cookie may be, and how far in the future another server's clock may have put it, in seconds (RFC
/// 9018, 4.3).
const OLDEST: u32 = 3_600;
const NEWEST: u32 = 300;

/// From this age on a client gets a new one.
const RENEWED: u32 = 1_800;

/// The secrets that cookies are made with.
#[derive(Clone, Copy, Debug)]
pub struct CookieSecrets {
    /// The one that makes new cookies.
    pub current: [u8; 16],
    /// The one before it, whose cookies still count.
    pub previous: Option<[u8; 16]>,
}

impl CookieSecrets {
    /// Whether the client has shown its cookie of ours, and the cookie to answer with.
    pub(crate) fn check(&self, offered: &Cookie, source: IpAddr, unix: u32) -> (bool, Cookie) {
        let age = |made: Serial| unix.wrapping_sub(made.into_int());
        let is_timely = |made| age(made) <= OLDEST || age(made).wrapping_neg() <= NEWEST;
        let is_fresh = |made| age(made) < RENEWED;
        if offered.check_server_hash(source, &self.current, is_fresh) {
            return (true, offered.clone());
        }
        let secrets = std::iter::once(&self.current).chain(&self.previous);
        let is_known = secrets.into_iter().any(|secret| offered.check_server_hash(source, secret, is_timely));
        (is_known, offered.create_response(Serial(unix), source, &self.current))
    }
}
