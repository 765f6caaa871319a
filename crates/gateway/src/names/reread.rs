//! The names of a file that is read again: what is new comes, what is gone goes, and the rest is not touched.
//!
//! ```text
//!  names of the file before ─┬─ the same in the new one ──► stay as they are
//!                            └─ others, or gone ──► go ──► those of the new file come
//!  names that were added or registered ──► stay, where the gateways of the new file still allow them
//! ```

use crate::config::names::{GatewayDescription, NamesConfig, is_behind, served};
use crate::limits::NAMED_HOSTS;
use crate::names::answering::{Answering, FileName, lock};
use crate::names::packet_tables::PacketTables;
use crate::names::waypoint::locked;
use naming::dns::NameDescription;
use std::collections::BTreeMap;

impl Answering {
    /// Whether what `ravelin names add` has added can stay with the gateways of this file, and no gateway
    /// gets the number of another one, and its bindings with it.
    ///
    /// # Errors
    /// What cannot, and why.
    pub(super) fn can_follow(&self, config: &NamesConfig) -> Result<(), String> {
        for one in &config.gateways {
            let before = one.peer.and_then(|peer| self.numbered.get(&peer));
            if let Some(before) = before.filter(|before| **before != one.name) {
                return Err(format!(
                    "`peer` of the gateway `{}` is the number that `{before}` has had since the start, and clients may still be bound to that one: take another number, or start anew",
                    one.name
                ));
            }
        }
        let added = self.named.iter().filter(|(name, described)| {
            let of_file = self.of_file.get(*name).is_some_and(|one| one.described == **described);
            !of_file && !self.leased.contains(*name)
        });
        for (name, described) in added {
            self.allowed(&config.gateways, described, None).map_err(|why| {
                format!("`{name}`, which `ravelin names add` has added, cannot be there any more: {why}; remove it before, by `ravelin names remove`")
            })?;
        }
        Ok(())
    }

    /// Follows a file that was read again; a program that has taken over has these tables. Says what did not
    /// come or went besides.
    pub(super) fn follow(&mut self, config: &NamesConfig, tables: Option<&PacketTables>) -> Vec<String> {
        let mut told = Vec::new();
        let mut new = self.file_names(config, &mut told);
        let old = std::mem::take(&mut self.of_file);
        // Names go with the gateways that they came with.
        self.serve(&[&self.gateways[..], &config.gateways].concat());
        for (name, one) in old.iter().filter(|(name, one)| new.get(*name) != Some(one)) {
            if self.named.get(name) == Some(&one.described) {
                self.go(name, &mut told);
            }
        }
        let stays = |(name, described): (&String, &NameDescription)| {
            let lease = self.leased.contains(name).then_some(name.as_str());
            let why = self.allowed(&config.gateways, described, lease).err()?;
            Some((name.clone(), why))
        };
        let gone: Vec<(String, String)> = self.named.iter().filter_map(stays).collect();
        for (name, why) in gone {
            self.go(&name, &mut told);
            told.push(format!("`{name}` is gone: {why}"));
        }
        self.gateways.clone_from(&config.gateways);
        self.note_numbers();
        self.serve(&config.gateways);
        if let Err(why) = self.parts.follow(config, tables) {
            told.push(why);
        }
        self.server.set_policy(config.policy.clone());
        new.retain(|name, one| {
            if old.get(name) == Some(one) {
                return true;
            }
            // The file has precedence.
            if self.named.contains_key(name) {
                self.go(name, &mut told);
            }
            let came = self.come(one.described.clone(), &one.place, one.inside);
            if let Err(why) = &came {
                told.push(format!("`{name}` is not there: {why}"));
            }
            came.is_ok()
        });
        self.of_file = new;
        told
    }

    fn go(&mut self, name: &str, told: &mut Vec<String>) {
        if let Err(why) = self.remove_unkept(&format!("{name}.")) {
            told.push(format!("`{name}` is still there: {why}"));
        }
    }

    fn serve(&self, gateways: &[GatewayDescription]) {
        if let Some(waypoint) = &self.waypoint {
            locked(waypoint).serve(gateways);
        }
    }

    /// The names of a file, with the numbers that their hosts have in this process.
    pub(super) fn file_names(
        &self,
        config: &NamesConfig,
        told: &mut Vec<String>,
    ) -> BTreeMap<String, FileName> {
        let mut hosts = lock(&self.hosts);
        let mut names = BTreeMap::new();
        for described in &config.zone.names {
            let place = config.hosts.place(described.responder);
            let (Ok(name), Some(place)) = (self.server.zone().name(&described.name), place) else { continue };
            let name = name.to_string();
            if hosts.count() >= NAMED_HOSTS && !hosts.is_named(place) {
                told.push(format!(
                    "`{name}` is not there: names have led to {NAMED_HOSTS} hosts since the start"
                ));
                continue;
            }
            let responder = hosts.number(place.clone());
            let described = NameDescription { responder, ..described.clone() };
            let inside = config.inside6.get(&name).copied();
            names.insert(name, FileName { described, place: place.clone(), inside });
        }
        names
    }

    /// Whether a name that is there may be there with these gateways; one by a `lease` needs its gateway's
    /// right to it.
    fn allowed(
        &self,
        gateways: &[GatewayDescription],
        described: &NameDescription,
        lease: Option<&str>,
    ) -> Result<(), String> {
        let Some(place) = lock(&self.hosts).place(described.responder).cloned() else { return Ok(()) };
        let gateway = served(gateways, &place).map_err(|(_, why)| why)?;
        let Some(lease) = lease else { return Ok(()) };
        let name = self.server.zone().name(&format!("{lease}.")).map_err(|error| error.to_string())?;
        let behind = self.inside6.get(lease).is_none_or(|inside| is_behind(gateway, *inside));
        if behind && gateway.names.iter().any(|pattern| pattern.holds(&name)) {
            return Ok(());
        }
        Err(format!("the file does not give it to the gateway `{}` any more", gateway.name))
    }
}
