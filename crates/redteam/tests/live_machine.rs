//! A virtual machine, as a router's whole operating system, behind a running gateway: whoever is root in it,
//! with its Linux, brings no frame past the guard, and its end disturbs nobody.
//!
//! Where the rights to make namespaces are missing, or a Linux for the machine, a test says so and ends.
#![cfg(target_os = "linux")]

mod laboratory;

use laboratory::{REDTEAM, unless};
use redteam::{
    ATTACKS, GUEST_ACTIONS, GuestLink, GuestSystem, InContainer, Laboratory, RING_ATTACKS, SIGNED_POLICY,
};
use std::io::ErrorKind;
use std::path::Path;

/// What is not there where a machine, or a namespace, cannot be had.
const MISSING: [ErrorKind; 2] = [ErrorKind::PermissionDenied, ErrorKind::NotFound];

/// `None` where that is not allowed here. Beside the programs lie the unpacked packages of the tests.
fn laboratory(test: &str, link: GuestLink) -> Option<(Laboratory, InContainer)> {
    let target = Path::new(REDTEAM).parent().and_then(Path::parent).expect("a folder");
    let started = GuestSystem::below(&target.join("debian"), link)
        .map(InContainer::Machine)
        .and_then(|inside| Ok((Laboratory::start(Path::new(REDTEAM), &inside)?, inside)));
    unless(&MISSING, test, started)
}

/// A laboratory without a machine, whose memory and rings are those of an attacker.
fn by_rings(test: &str) -> Option<Laboratory> {
    unless(&MISSING, test, Laboratory::start(Path::new(REDTEAM), &InContainer::Rings))
}

#[test]
fn no_frame_by_shared_rings_passes_that_is_not_the_routers() {
    let Some(mut laboratory) = by_rings("no_frame_by_shared_rings_passes_that_is_not_the_routers") else {
        return;
    };
    for attack in ATTACKS {
        let result = laboratory.attack(attack, 300).expect("it can be tried");
        assert_eq!((result.violations, result.frames), (0, 300), "{result:?}");
    }
    let shown = laboratory.shown().expect("it answers");
    let refused = shown["refused"]["services"].as_object().expect("by reason");
    assert!(refused.len() >= 20, "{refused:?}");
}

#[test]
fn rings_and_memory_of_an_attacker_disturb_nobody_and_another_machine_is_served_after_them() {
    let test = "rings_and_memory_of_an_attacker_disturb_nobody_and_another_machine_is_served_after_them";
    let Some(mut laboratory) = by_rings(test) else { return };
    let core = laboratory.core().expect("it runs");
    for attack in RING_ATTACKS {
        let result = laboratory.attack_by_rings(attack).expect(attack.name);
        assert_eq!(result.violations, 0, "{result:?}");
        assert_eq!(laboratory.core().expect("it runs"), core, "{}", attack.name);
        assert!(reaches(&laboratory.lan, "10.1.1.2"), "{}: hosts reach each other", attack.name);
    }
}

/// Whether a host reaches an address, by one of a few trials: a link that was reset takes a while.
fn reaches(host: &rig::Namespace, address: &str) -> bool {
    let pinged = || host.run("ping", &["-c", "1", "-W", "2", address], "");
    (0..10).any(|_| pinged().is_ok_and(|output| output.status.success()))
}

#[test]
fn no_frame_of_root_in_a_virtual_machine_passes_that_is_not_the_routers() {
    attacked("no_frame_of_root_in_a_virtual_machine_passes_that_is_not_the_routers", GuestLink::Tap, "T2");
}

#[test]
fn no_frame_of_root_in_a_virtual_machine_that_shares_its_memory_passes_either() {
    let test = "no_frame_of_root_in_a_virtual_machine_that_shares_its_memory_passes_either";
    attacked(test, GuestLink::VhostUser, "T2 vhost-user");
}

fn attacked(test: &str, link: GuestLink, tier: &str) {
    let Some((mut laboratory, _)) = laboratory(test, link) else { return };
    assert!(reaches(&laboratory.lan, "10.1.1.99"), "the router answers");
    let (mut sent, mut unsent) = (0, Vec::new());
    for attack in ATTACKS {
        let result = laboratory.attack(attack, 40).expect("it can be tried");
        assert_eq!(result.violations, 0, "{result:?}");
        assert_eq!(result.tier, tier);
        match result.frames {
            0 => unsent.push(attack.name),
            frames => sent += frames,
        }
    }
    assert_eq!(unsent, [""; 0]);
    assert!(sent > 38 * (ATTACKS.len() - unsent.len()) as u64, "{sent}");
    let shown = laboratory.shown().expect("it answers");
    let refused = shown["refused"]["services"].as_object().expect("by reason");
    assert!(refused.len() >= 20, "{refused:?}");
    for (name, script) in GUEST_ACTIONS {
        let (done, violations) = laboratory.act_in_machine(script).expect("it can be tried");
        assert!(!done, "{name}");
        assert_eq!(violations, 0, "{name}");
    }
    assert!(!laboratory.overhear_in_machine().expect("it listens"), "it sees what hosts say");
    assert!(reaches(&laboratory.lan, "10.1.1.99"), "the router answers");
    assert!(!reaches(&laboratory.wan, "10.1.1.99"), "the policy lets nothing of the WAN to the router");
    // Under a policy that lets more pass, it does.
    assert_eq!(laboratory.attack_by_policy(&SIGNED_POLICY).expect("it is handed in").violations, 1);
    assert!(laboratory.overhear_in_machine().expect("it listens"), "it sees what hosts say");
}

#[test]
fn a_virtual_machine_that_breaks_down_disturbs_nobody_and_another_one_takes_its_place() {
    let test = "a_virtual_machine_that_breaks_down_disturbs_nobody_and_another_one_takes_its_place";
    breaks_down(test, GuestLink::Tap);
}

#[test]
fn neither_does_one_that_shares_its_memory() {
    breaks_down("neither_does_one_that_shares_its_memory", GuestLink::VhostUser);
}

fn breaks_down(test: &str, link: GuestLink) {
    let Some((mut laboratory, inside)) = laboratory(test, link) else { return };
    let InContainer::Machine(guest) = inside else { panic!("it is a machine") };
    let machine = laboratory.machine().expect("it runs");
    let again = "rmmod virtio_net && insmod /lib/modules/virtio_net.ko && ip link set eth0 up && \
                 ip address add 10.1.1.99/24 dev eth0";
    let ended = machine.run(again, || Ok(())).expect("it runs");
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(reaches(&laboratory.lan, "10.1.1.99"), "by the link that was reset");
    let launch = rustix::process::Pid::from_raw(laboratory.launch() as i32).expect("a process");
    for _ in 0..3 {
        rustix::process::kill_process(launch, rustix::process::Signal::USR2).expect("it runs");
        laboratory.hears("another core runs").expect("it takes over");
        assert!(reaches(&laboratory.lan, "10.1.1.99"), "the router, by another core");
        assert!(reaches(&laboratory.lan, "10.1.1.2"), "hosts, by another core");
    }
    let core = laboratory.core().expect("it runs");
    let machine = laboratory.machine().expect("it runs");
    machine.begin("echo c > /proc/sysrq-trigger").expect("it is told");
    machine.end().expect("its monitor ends");
    assert!(reaches(&laboratory.lan, "10.1.1.2"), "hosts reach each other");
    laboratory.start_machine(&guest).expect("another one");
    assert!(reaches(&laboratory.lan, "10.1.1.99"), "the router answers again");
    assert_eq!(laboratory.core().expect("it runs"), core);
}
