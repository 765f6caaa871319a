//! The thread that follows the routes of a router in a container: it asks and hears the kernel in the
//! container's network, and leaves others most of the time.

use super::effects::Effects;
use super::rtnetlink::{self, Told};
use super::turns::{Cause, PacketLoop};
use super::{Controlled, PATIENCE, PAUSE, REMARKS, Routing, SHORTLY};
use crate::limits::{CONTAINER_MESSAGES, CONTAINER_NEXT_HOPS, CONTAINER_REST};
use ports::live::Netlink;
use std::thread;
use std::time::{Duration, Instant};

impl Routing {
    /// Follows the routes of the container. Root there may say anything, so it takes only a part of the time
    /// in which others could have what is known.
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
            let (mut told, mut was_lost) = (Vec::new(), false);
            let mut patience = if is_behind { Duration::ZERO } else { PATIENCE };
            for _ in 0..if is_behind { 0 } else { CONTAINER_MESSAGES } {
                match netlink.receive(patience.as_nanos() as u64) {
                    Ok(None) => break,
                    Ok(Some(bytes)) => told.extend(rtnetlink::read(bytes)),
                    Err(_) => {
                        was_lost = true;
                        break;
                    }
                }
                patience = Duration::ZERO;
            }
            let begun = Instant::now();
            self.take_of_container(told, was_lost);
            self.do_all_of_kernel(packet_loop);
            let rest = begun.elapsed() * CONTAINER_REST;
            thread::sleep(if was_lost { rest.max(PAUSE) } else { rest });
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
                "the router in the container has more routes than are followed: those beyond {CONTAINER_NEXT_HOPS} next hops are left out"
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
            Err(_) => container.lost(),
        }
        // All that is known goes into the tables before they change.
        container.settle(router, &mut Effects::default());
    }
}
