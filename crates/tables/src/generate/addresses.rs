//! Generates addresses to look up: uniform, uniform over routes, and with few frequent destinations (Zipf).

use super::routes::GeneratedRoutes;
use super::{Random, Version, Weighted};

/// Uniform over all addresses of the version.
pub fn uniform(version: Version, count: usize, seed: u64) -> Vec<u128> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.wide() >> (128 - version.width())).collect()
}

/// Each a random address inside a random route; uniform over all addresses if there is no route.
pub fn inside(routes: &GeneratedRoutes, count: usize, seed: u64) -> Vec<u128> {
    let mut random = Random::new(seed);
    (0..count).map(|_| one_inside(routes, &mut random)).collect()
}

/// So many destinations inside random routes, the i-th asked for in proportion to 1 / i.
pub fn zipf(routes: &GeneratedRoutes, destinations: u32, count: usize, seed: u64) -> Vec<u128> {
    let mut random = Random::new(seed);
    let known: Vec<u128> = (0..destinations.max(1)).map(|_| one_inside(routes, &mut random)).collect();
    let law = Weighted::zipf(known.len() as u32);
    (0..count).map(|_| known[law.draw(&mut random)]).collect()
}

fn one_inside(routes: &GeneratedRoutes, random: &mut Random) -> u128 {
    let width = routes.version.width();
    let any = random.wide() >> (128 - width);
    match random.pick(&routes.routes) {
        Some(route) => {
            route.bits | any & u128::MAX.checked_shr(128 - u32::from(width - route.length)).unwrap_or(0)
        }
        None => any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::routes::{Route, RoutesSpec};

    #[test]
    fn addresses_lie_where_they_should() {
        let spec = RoutesSpec { version: Version::V4, count: 1000, next_hops: 4, seed: 1 };
        let routes = GeneratedRoutes::new(&spec);
        let covers = |route: &Route, address: u128| (route.bits ^ address) >> (32 - route.length) == 0;
        for address in inside(&routes, 500, 2).into_iter().chain(zipf(&routes, 50, 500, 2)) {
            assert!(routes.routes.iter().any(|route| covers(route, address)), "{address:x}");
        }
        assert!(uniform(Version::V4, 500, 2).iter().all(|address| *address <= u128::from(u32::MAX)));
        assert!(uniform(Version::V6, 500, 2).iter().any(|address| address >> 127 == 1));
    }

    #[test]
    fn few_destinations_get_most() {
        let routes =
            GeneratedRoutes::new(&RoutesSpec { version: Version::V6, count: 1000, next_hops: 4, seed: 1 });
        let mut asked = std::collections::BTreeMap::<u128, usize>::new();
        for address in zipf(&routes, 1000, 100_000, 3) {
            *asked.entry(address).or_default() += 1;
        }
        assert!(asked.values().max().is_some_and(|most| (12_000..15_000).contains(most)));
        assert!(asked.len() > 900 && asked.len() <= 1000);
    }

    #[test]
    fn no_route_means_any_address() {
        let none = GeneratedRoutes { version: Version::V4, routes: Vec::new() };
        assert_eq!(inside(&none, 3, 1).len(), 3);
        assert_eq!(zipf(&none, 0, 3, 1).len(), 3);
    }
}
