//! The thread that follows the routes of a router in a container: it asks and hears the kernel in the
//! container's network, and leaves others most of the time.

use super::effects::Effects;
use super::rtnetlink::{self, Told};
use super::turns::{Cause, PacketLoop};
use super::{Controlled, PATIENCE, PAUSE, REMARKS, Routing, SHORTLY};
use crate::limits::{
    CONTAINER_LEFT_ASIDE, CONTAINER_LONGEST_REST, CONTAINER_NEXT_HOPS, CONTAINER_REST, CONTAINER_TOLD,
};
use ports::live::Netlink;
use std::thread;
use std::time::{Duration, Instant};

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
                self.take_of_container(vec![Told::Done { broken: true }], false);
                thread::sleep(PAUSE);
                continue;
            }
            let received = if is_behind { Ok(None) } else { netlink.receive(PATIENCE.as_nanos() as u64) };
            let begun = Instant::now();
            match received.map(|bytes| bytes.map(rtnetlink::read)) {
                Ok(None) if !is_behind => continue,
                Ok(None) => self.take_of_container(Vec::new(), false),
                Ok(Some(told)) => {
                    let parts = told.chunks(CONTAINER_TOLD);
                    parts.for_each(|part| self.take_of_container(part.to_vec(), false));
                }
                Err(_) => {
                    thread::sleep(PAUSE);
                    self.take_of_container(left_aside(&mut netlink), true);
                }
            }
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
        let asked = wanted.map_or(Ok(()), |wanted| netlink.ask(&rtnetlink::question(wanted)));
        match asked.and_then(|()| netlink.receive(SHORTLY.as_nanos() as u64)) {
            Ok(Some(bytes)) => container.take(rtnetlink::read(bytes)),
            Ok(None) => {}
            Err(_) => {
                let told = left_aside(netlink);
                container.take(told);
                container.lost();
            }
        }
        // All that is known goes into the tables before they change.
        container.settle(router, &mut Effects::default());
    }
}

/// Leaves aside what waits after a loss, since changes were dropped before it: all is asked for again. Linux
/// drops changes until nothing waits. That an answer is at its end counts nevertheless.
fn left_aside(netlink: &mut Netlink) -> Vec<Told> {
    let mut told = Vec::new();
    for _ in 0..CONTAINER_LEFT_ASIDE {
        match netlink.receive(Duration::ZERO.as_nanos() as u64) {
            Ok(None) => break,
            Ok(Some(bytes)) => {
                let ends =
                    rtnetlink::read(bytes).into_iter().filter(|told| matches!(told, Told::Done { .. }));
                told.extend(ends);
            }
            // More was dropped.
            Err(_) => {}
        }
    }
    told
}
