//! The guard and the evaluator, which were written apart, say the same of right frames, of frames with one
//! thing changed, and of what is left of them after many changes.

use guard::{Guard, OwnAddresses};
use proptest::prelude::*;
use redteam::RouterAddresses;
use redteam::frames::{RandomNumbers, Scene, mutate, right};

/// The scene, with a router that may do so much.
fn scene(advertises: bool, dhcp_client: bool) -> Scene {
    let usual = Scene::usual();
    Scene { router: RouterAddresses { advertises, dhcp_client, ..usual.router.clone() }, ..usual }
}

fn guard(router: &RouterAddresses) -> Guard {
    let RouterAddresses { ethernet, ipv4, ipv6, mtu, advertises, dhcp_client } = router.clone();
    Guard::new(OwnAddresses { ethernet, ipv4, ipv6, mtu: mtu as u16, advertises, dhcp_client })
}

/// Whether both say the same; and whether they let the frame pass.
fn agreed(scene: &Scene, guard: &Guard, frame: &[u8]) -> bool {
    let (judged, violation) = (guard.judge(frame), scene.router.violation(frame));
    assert_eq!(
        judged.is_ok(),
        violation.is_none(),
        "guard {judged:?}, evaluator {violation:?}: {frame:02x?}"
    );
    judged.is_ok()
}

#[test]
fn right_frames_pass_and_each_bit_of_them_is_judged_alike() {
    for (advertises, dhcp_client) in [(false, false), (true, false), (false, true), (true, true)] {
        let scene = scene(advertises, dhcp_client);
        let guard = guard(&scene.router);
        let mut passed = 0;
        for frame in right(&scene) {
            passed += usize::from(agreed(&scene, &guard, &frame));
            for bit in 0..frame.len().min(160) * 8 {
                let mut other = frame.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                agreed(&scene, &guard, &other);
            }
            for length in 0..frame.len() {
                agreed(&scene, &guard, &frame[..length]);
            }
        }
        // Without either permission, the advertisement and the question by DHCP do not pass.
        let refused = usize::from(!advertises) + usize::from(!dhcp_client);
        assert_eq!(passed, right(&scene).len() - refused);
    }
}

#[test]
fn what_many_changes_leave_is_judged_alike() {
    let scenes = [scene(false, false), scene(true, true)];
    let guards = scenes.each_ref().map(|scene| guard(&scene.router));
    let frames = scenes.each_ref().map(right);
    let mut random = RandomNumbers(7);
    let (mut passed, mut refused) = (0, 0);
    for turn in 0..200_000 {
        let at = turn % 2;
        let mut frame = frames[at][random.below(frames[at].len())].clone();
        mutate(&mut frame, &scenes[at], &mut random);
        match agreed(&scenes[at], &guards[at], &frame) {
            true => passed += 1,
            false => refused += 1,
        }
    }
    assert!(passed > 1_000 && refused > 50_000, "{passed} passed, {refused} refused");
}

proptest! {
    #[test]
    fn bytes_behind_a_right_beginning_are_judged_alike(
        which in 0usize..25, keep in 14usize..80, bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let scene = scene(true, true);
        let mut frame = right(&scene).swap_remove(which);
        frame.truncate(keep);
        frame.extend(bytes);
        agreed(&scene, &guard(&scene.router), &frame);
        redteam::frames::sum_up(&mut frame);
        agreed(&scene, &guard(&scene.router), &frame);
    }
}
