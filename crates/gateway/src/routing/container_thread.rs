//! The thread that follows the routes of a router in a container: it asks and hears the kernel in the
//! container's network, and leaves most of the time to others.

use super::effects::Effects;
use super::rtnetlink::{self, Told};
use super::turns::{Cause, PacketLoop};
use super::{Controlled, PATIENCE, PAUSE, REMARKS, Routing, SHORTLY};
use crate::limits::{
    CONTAINER_LEFT_ASIDE, CONTAINER_LONGEST_REST, CONTAINER_NEXT_HOPS, CONTAINER_REST, CONTAINER_TOLD,
};
use ports::live::Netlink;
use std::thread;
use std::time::Instant;

impl Routing {
    /// Follows the routes of the container. Root there may say anything, so after all that was told this
    /// thread rests several times as long as it had kept others from what is known.
    pub(super) fn serve_container(&self, mut netlink: Netlink, packet_loop: &impl PacketLoop) {
        loop {
            let mut state = self.lock();
            let Some(container) = &mut state.container else { return };
            let (is_behind, wanted) = (container.is_behind(), container.question(Instant::now()));
            drop(state);
            if wanted.is_some_and(|wanted| netlink.ask(&rtnetlink::question(wanted)).is_err()) {
                // As an answer that broke off: everything is asked for again.
                self.take_of_container(vec![Told::Done { broken: true }], false);
                thread::sleep(PAUSE);
                continue;
            }
            let heard = if is_behind { Heard::nothing() } else { Heard::next(&mut netlink) };
            let Heard { mut told, is_lost, begun } = heard;
            if is_lost {
                thread::sleep(PAUSE);
                told = left_aside(told, &mut netlink);
            }
            let mut parts = told.chunks(CONTAINER_TOLD);
            self.take_of_container(parts.next().unwrap_or_default().to_vec(), is_lost);
            parts.for_each(|part| self.take_of_container(part.to_vec(), false));
            // Also after what says nothing of routes.
            let rest = begun.elapsed() * CONTAINER_REST;
            self.do_all_of_kernel(packet_loop);
            thread::sleep(rest.min(CONTAINER_LONGEST_REST));
        }
    }

    /// Takes in what the kernel told in the container's network; what follows from it waits in the queue.
    fn take_of_container(&self, told: Vec<Told>, was_lost: bool) {
        let (mut state, mut effects) = (self.lock(), Effects::default());
        let Controlled { container: Some(container), router, many_routes, .. } = &mut *state else { return };
        container.take(told);
        if was_lost {
            container.lost();
        }
        container.settle(router, &mut effects);
        if container.is_full() && container.is_settled() && Instant::now() >= *many_routes {
            *many_routes = Instant::now() + REMARKS;
            self.remarks.say(format!(
                "the router in the container has more routes than are followed: those beyond {CONTAINER_NEXT_HOPS} next hops, or 16 of a prefix, are left out"
            ));
        }
        state.push(effects, Cause::Kernel);
    }
}

impl Controlled {
    /// One question in the container's network, if there is one, and one answer.
    pub(super) fn follow_container(&mut self) {
        let Controlled { container: Some(container), container_netlink: Some(netlink), router, .. } = self
        else {
            return;
        };
        let wanted = container.question(Instant::now());
        if wanted.is_some_and(|wanted| netlink.ask(&rtnetlink::question(wanted)).is_err()) {
            // As an answer that broke off: everything is asked for again.
            container.take(vec![Told::Done { broken: true }]);
        }
        match netlink.receive(SHORTLY.as_nanos() as u64) {
            Ok(Some(bytes)) => container.take(rtnetlink::read(bytes)),
            Ok(None) => {}
            Err(_) => {
                container.take(left_aside(Vec::new(), netlink));
                container.lost();
            }
        }
        // All that is known goes into the tables before they change.
        container.settle(router, &mut Effects::default());
    }
}

/// What was heard at once in the container's network.
struct Heard {
    told: Vec<Told>,
    /// More was told than found room.
    is_lost: bool,
    /// When the first of it came.
    begun: Instant,
}

impl Heard {
    fn nothing() -> Heard {
        Heard { told: Vec::new(), is_lost: false, begun: Instant::now() }
    }

    /// Waits for a message, and reads those that have come with it.
    fn next(netlink: &mut Netlink) -> Heard {
        let mut received =
            netlink.receive(PATIENCE.as_nanos() as u64).map(|bytes| bytes.map(rtnetlink::read));
        let mut heard = Heard::nothing();
        for _ in 0..CONTAINER_TOLD {
            match received {
                Ok(None) => break,
                Ok(Some(told)) => heard.told.extend(told),
                Err(_) => {
                    heard.is_lost = true;
                    break;
                }
            }
            if heard.told.len() >= CONTAINER_TOLD {
                break;
            }
            received = netlink.receive(0).map(|bytes| bytes.map(rtnetlink::read));
        }
        heard
    }
}

/// Leaves aside what was told, and what waits, after a loss, since changes were dropped before it: all is
/// asked for again. Linux drops changes until nothing waits. An answer that ends there has parts that are
/// left aside.
fn left_aside(told: Vec<Told>, netlink: &mut Netlink) -> Vec<Told> {
    let end = |told: Told| matches!(told, Told::Done { .. }).then_some(Told::Done { broken: true });
    let mut ends: Vec<Told> = told.into_iter().filter_map(end).collect();
    for _ in 0..CONTAINER_LEFT_ASIDE {
        match netlink.receive(0) {
            Ok(None) => break,
            Ok(Some(bytes)) => ends.extend(rtnetlink::read(bytes).into_iter().filter_map(end)),
            // More was dropped.
            Err(_) => {}
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::rtnetlink::Wanted;

    #[test]
    fn after_a_loss_nothing_counts_but_that_an_answer_has_broken_off() {
        let mut netlink = Netlink::of(Netlink::of_routes().expect("a socket"));
        netlink.ask(&rtnetlink::question(Wanted::Links)).expect("asked");
        let heard = Heard::next(&mut netlink);
        assert!(heard.told.iter().any(|told| matches!(told, Told::Link { .. })) && !heard.is_lost);
        netlink.ask(&rtnetlink::question(Wanted::Ipv4Routes)).expect("asked");
        let told = vec![Told::Interrupted, Told::Done { broken: false }];
        let broken = || Told::Done { broken: true };
        assert_eq!(left_aside(told, &mut netlink), [broken(), broken()]);
    }
}
