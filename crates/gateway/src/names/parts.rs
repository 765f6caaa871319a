//! What gateways may register: of the numbers of hosts and of the entries of packets each has an equal part
//! of what the names of the file leave.

use crate::config::names::{Hosts, NamesConfig};
use crate::limits::NAMED_HOSTS;
use crate::names::packet_tables::PacketTables;
use naming::dns::{Zone, ZoneError};
use std::collections::HashMap;

/// How much of what is limited somebody has or may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    /// Numbers of hosts.
    pub(super) hosts: usize,
    /// Entries by which an address always leads to one host.
    pub(super) standing: usize,
    /// Services of hosts by IPv6.
    pub(super) stable: usize,
}

impl Amount {
    fn each(self) -> [(usize, &'static str, &'static str); 3] {
        [
            (self.hosts, "hosts", "lead names to fewer hosts"),
            (
                self.standing,
                "services at addresses that always lead to one host",
                "raise `MOST_EXPECTATIONS` by `[set]`",
            ),
            (self.stable, "services by IPv6", "raise `MOST_STABLE` by `[set]`"),
        ]
    }

    /// What there is where these tables carry packets.
    pub(super) fn of_tables(tables: &PacketTables) -> Amount {
        let stable = tables.stable.map_or(usize::MAX, |stable| stable.room);
        Amount { hosts: NAMED_HOSTS, standing: tables.room, stable }
    }

    /// What there is where nobody carries packets.
    pub(super) fn without_packets() -> Amount {
        Amount { hosts: NAMED_HOSTS, standing: usize::MAX, stable: usize::MAX }
    }
}

/// What each gateway has, and may have.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    of_file: HashMap<String, Amount>,
    /// How many gateways may register names.
    registering: usize,
    /// What there is for all, and what each of these may have besides.
    all: Amount,
    part: Amount,
    /// Entries that the names of each gateway have. Hosts are counted where they are numbered.
    used: HashMap<String, Amount>,
}

impl Parts {
    /// The parts of the gateways of a file, of so much in all.
    ///
    /// # Errors
    /// The file's own names need more, or leave nothing.
    pub(super) fn of(names: &NamesConfig, all: Amount) -> Result<Parts, String> {
        let told = |error: ZoneError| error.to_string();
        let zone = Zone::new(&names.zone).map_err(told)?;
        let mut of_file: HashMap<String, Amount> = HashMap::new();
        for described in &names.zone.names {
            let Some(place) = names.hosts.place(described.responder) else { continue };
            let name = zone.name(&described.name).map_err(told)?;
            let amount = of_file.entry(place.gateway.clone()).or_default();
            amount.hosts = names.hosts.count_of(&place.gateway);
            if zone.standing_address(&name).is_some() {
                amount.standing += described.services.len();
            }
            if names.inside6.contains_key(&name.to_string()) {
                amount.stable += described.services.len();
            }
        }
        let registering = names.gateways.iter().filter(|gateway| !gateway.names.is_empty()).count();
        let part = Amount::default();
        let mut parts = Parts { used: of_file.clone(), of_file, registering, all, part };
        parts.divide(all)?;
        Ok(parts)
    }

    /// The file was read again, and a program that has taken over has these tables.
    ///
    /// # Errors
    /// The file's own names need more, or leave nothing; then all is as before.
    pub(super) fn follow(
        &mut self,
        names: &NamesConfig,
        tables: Option<&PacketTables>,
    ) -> Result<(), String> {
        let all = tables.map_or(self.all, Amount::of_tables);
        let new = Parts::of(names, all)?;
        *self = Parts { used: std::mem::take(&mut self.used), ..new };
        Ok(())
    }

    /// There is so much in all from now on.
    ///
    /// # Errors
    /// The file's own names need more, or leave nothing.
    pub(super) fn divide(&mut self, all: Amount) -> Result<(), String> {
        let sum = |of: fn(&Amount) -> usize| self.of_file.values().map(of).sum::<usize>();
        let needed = Amount {
            hosts: sum(|one| one.hosts),
            standing: sum(|one| one.standing),
            stable: sum(|one| one.stable),
        };
        let mut parts = [0; 3];
        for (part, ((needed, what, advice), (all, ..))) in
            parts.iter_mut().zip(needed.each().into_iter().zip(all.each()))
        {
            let left = all.checked_sub(needed).ok_or_else(|| {
                format!("names of the file have {needed} {what}, and there is room for {all}: {advice}")
            })?;
            *part = left / self.registering.max(1);
            if *part == 0 && self.registering > 0 {
                return Err(format!(
                    "{} gateways may register names, and of {all} {what} there is none left for each: {advice}",
                    self.registering
                ));
            }
        }
        let [hosts, standing, stable] = parts;
        (self.all, self.part) = (all, Amount { hosts, standing, stable });
        Ok(())
    }

    /// A name of a gateway has come, with so many entries.
    pub(super) fn come(&mut self, gateway: &str, entries: Amount) {
        let used = self.used.entry(gateway.to_owned()).or_default();
        used.standing += entries.standing;
        used.stable += entries.stable;
    }

    /// One has gone.
    pub(super) fn go(&mut self, gateway: &str, entries: Amount) {
        if let Some(used) = self.used.get_mut(gateway) {
            used.standing = used.standing.saturating_sub(entries.standing);
            used.stable = used.stable.saturating_sub(entries.stable);
        }
    }

    /// Whether a gateway has no more than its part, with so many new hosts.
    ///
    /// # Errors
    /// It has more.
    pub(super) fn suffice(&self, gateway: &str, hosts: &Hosts, new: usize) -> Result<(), String> {
        let used = self.used.get(gateway).copied().unwrap_or_default();
        let used = Amount { hosts: hosts.count_of(gateway) + new, ..used };
        let own = self.of_file.get(gateway).copied().unwrap_or_default();
        for (((used, what, _), (own, ..)), (part, ..)) in
            used.each().into_iter().zip(own.each()).zip(self.part.each())
        {
            let most = own.saturating_add(part);
            if used > most {
                return Err(format!("the gateway `{gateway}` has its part of {what}, which is {most}"));
            }
        }
        Ok(())
    }
}
