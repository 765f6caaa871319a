//! Which names a gateway may register: single ones, and all below one.

use naming::dns::{DnsName, Zone};

/// A name, or all names below one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    name: DnsName,
    below: bool,
}

impl NamePattern {
    /// From text: a name as in the file, or `*.` and a name for all below it.
    ///
    /// # Errors
    /// It is neither, or no name of the zone.
    pub(super) fn parse(text: &str, zone: &Zone) -> Result<NamePattern, String> {
        let (below, name) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let name = zone.name(name).map_err(|_| {
            format!("`{text}` is no name: write a name such as `nas`, or `*.` and a name for all below it")
        })?;
        if !zone.contains(&name) {
            return Err(format!("{name} is not in the zone {}, so nobody can register it here", zone.apex()));
        }
        Ok(NamePattern { name, below })
    }

    /// Whether a name is this one or, for a pattern, below it.
    pub(crate) fn holds(&self, name: &DnsName) -> bool {
        if self.below { name.is_below(&self.name) } else { *name == self.name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use naming::dns::ZoneDescription;

    #[test]
    fn a_pattern_holds_one_name_or_all_below_one() {
        let mut described = ZoneDescription::new("home.example".to_owned());
        let server = toml::from_str("name = \"ns\"\naddresses = [\"192.0.2.53\"]").expect("a server");
        described.name_servers.push(server);
        let zone = Zone::new(&described).expect("a zone");
        let name = |text: &str| DnsName::parse(text).expect("a name");
        for (pattern, held, not) in [
            ("nas", "nas.home.example", "x.nas.home.example"),
            ("NAS.Home.Example.", "nas.home.example", "nas.example"),
            ("*.lab", "a.b.lab.home.example", "lab.home.example"),
            ("*.lab", "a.lab.home.example", "a.xlab.home.example"),
            ("*.@", "nas.home.example", "home.example"),
        ] {
            let read = NamePattern::parse(pattern, &zone).expect("a pattern");
            assert!(read.holds(&name(held)) && !read.holds(&name(not)), "{pattern}");
        }
        for text in ["*", "n*s", "*.*.lab", "nas.*", "", "nas.elsewhere.", "*.example."] {
            assert!(NamePattern::parse(text, &zone).is_err(), "{text}");
        }
    }
}
