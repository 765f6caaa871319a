//! The memory that this process may still allocate. If a control group limits it, Linux kills a process that
//! exceeds the limit without a message.
//!
//! ```text
//! version 2   0::/system.slice/x.service       /sys/fs/cgroup/system.slice/x.service/memory.{max,high,current,stat}
//! version 1   4:memory:/x                      /sys/fs/cgroup/memory/x/memory.{limit_in_bytes,usage_in_bytes,stat}
//! ```
//!
//! (Linux, admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.) A group is bounded by those that it is in as
//! well; pages of files that nobody uses are given back when they are needed, so they count as room.

use std::fs;
use std::path::{Path, PathBuf};

/// What a control group leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// The file that says the bound.
    pub(crate) file: PathBuf,
    /// The bound, in bytes.
    pub(crate) most: u64,
    /// How much of it is left.
    pub(crate) left: u64,
}

/// Where groups are. `ip netns exec` hides them behind another /sys, and the first process has them still.
const MOUNTED: [&str; 2] = ["/sys/fs/cgroup", "/proc/1/root/sys/fs/cgroup"];

/// The least that is left in any of the groups that this process is in; nothing where none bounds it, as far
/// as can be seen.
pub(crate) fn room() -> Option<Room> {
    room_below(Bound::Killed)
}

fn room_below(bound: Bound) -> Option<Room> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    MOUNTED.iter().find_map(|mounted| least(&groups, Path::new(mounted), bound))
}

/// How much memory a program's tables are given before packets come, in bytes: a part of what this process
/// may still allocate without being slowed down, since others need some, too, and the program itself.
pub(crate) fn to_provide() -> u64 {
    let rooms = [room_below(Bound::Killed), room_below(Bound::SlowedDown)];
    let narrowest = rooms.into_iter().flatten().min_by_key(|room| room.left);
    part(fs::read_to_string("/proc/meminfo").ok().as_deref(), narrowest.as_ref())
}

/// What Linux does with a group that takes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// It kills a process: `memory.max`, or `memory.limit_in_bytes`.
    Killed,
    /// It lets the processes wait until they have given some back: `memory.high`, of version 2 alone.
    SlowedDown,
}

/// One part in so many is provided.
const PART: u64 = 4;
/// What is left, in bytes, where Linux does not say it.
const UNKNOWN_LEFT: u64 = 1 << 30;

fn part(meminfo: Option<&str>, room: Option<&Room>) -> u64 {
    let left = meminfo.and_then(available).unwrap_or(UNKNOWN_LEFT);
    left.min(room.map_or(u64::MAX, |room| room.left)) / PART
}

/// The bytes that Linux could still give (proc_meminfo(5)).
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn least(groups: &str, mounted: &Path, bound: Bound) -> Option<Room> {
    let rooms = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        // With version 1 beside it, version 2 may be elsewhere and bounds no memory.
        let (root, names) = match (controllers, bound) {
            ("", Bound::Killed) => (mounted.to_owned(), VERSION_2),
            ("", Bound::SlowedDown) => (mounted.to_owned(), VERSION_2_HIGH),
            ("memory", Bound::Killed) => (mounted.join("memory"), VERSION_1),
            _ => return Vec::new(),
        };
        let group = Path::new(group.trim_start_matches('/'));
        group.ancestors().filter_map(|group| of(&root.join(group), names)).collect()
    });
    rooms.min_by_key(|room| room.left)
}

/// The files of a group: its bound, what is used, and of what; and there, what can be given back.
type Names = [&'static str; 4];
const VERSION_2: Names = ["memory.max", "memory.current", "memory.stat", "inactive_file"];
const VERSION_2_HIGH: Names = ["memory.high", "memory.current", "memory.stat", "inactive_file"];
const VERSION_1: Names =
    ["memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file"];
/// From here on a bound of version 1 is none.
const UNBOUNDED: u64 = 1 << 60;

fn of(group: &Path, [bound, used, statistics, idle]: Names) -> Option<Room> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    // `max` is no number.
    let most = number(bound).filter(|most| *most < UNBOUNDED)?;
    let used = number(used)?;
    let text = fs::read_to_string(group.join(statistics)).unwrap_or_default();
    let idle = text.lines().find_map(|line| line.strip_prefix(idle)?.trim().parse().ok()).unwrap_or(0);
    Some(Room { file: group.join(bound), most, left: most.saturating_sub(used.saturating_sub(idle)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_given_a_quarter_of_what_the_system_and_the_group_leave() {
        let meminfo = "MemTotal:       24640000 kB\nMemFree:         100 kB\nMemAvailable:    8388608 kB\n";
        let room = |left| Some(Room { file: PathBuf::new(), most: 1 << 40, left });
        assert_eq!(part(Some(meminfo), None), 2 << 30);
        assert_eq!(part(Some(meminfo), room(1 << 40).as_ref()), 2 << 30);
        assert_eq!(part(Some(meminfo), room(512 << 20).as_ref()), 128 << 20);
        assert_eq!(part(Some(meminfo), room(0).as_ref()), 0);
        for unknown in
            [None, Some("MemFree: 5 kB\n"), Some("MemAvailable: many kB\n"), Some("MemAvailable: 5\n")]
        {
            assert_eq!(part(unknown, None), 256 << 20);
        }
    }

    #[test]
    fn the_narrowest_group_counts_in_both_versions_and_none_where_there_is_none() {
        let mounted = tempfile::tempdir().expect("a directory");
        let write = |group: &str, files: &[(&str, &str)]| {
            let group = mounted.path().join(group);
            fs::create_dir_all(&group).expect("can be made");
            for (name, text) in files {
                fs::write(group.join(name), text).expect("can be written");
            }
        };
        let below = |groups: &str, bound| {
            let room = least(groups, mounted.path(), bound);
            room.map(|room| (room.left, room.most))
        };
        let left = |groups: &str| below(groups, Bound::Killed);
        assert_eq!(left("0::/a/b\n"), None);
        write("a/b", &[("memory.max", "max\n"), ("memory.current", "50\n")]);
        assert_eq!(left("0::/a/b\n"), None);
        write("a", &[("memory.max", "1000\n"), ("memory.current", "700\n")]);
        assert_eq!(left("0::/a/b\n"), Some((300, 1000)), "of the group around it");
        write("a/b", &[("memory.max", "400\n"), ("memory.stat", "anon 9\ninactive_file 20\n")]);
        assert_eq!(left("1:name=systemd:/x\n0::/a/b\n"), Some((300, 1000)));
        write("a/b", &[("memory.current", "390\n")]);
        assert_eq!(left("0::/a/b\n"), Some((30, 400)));
        // Where processes are slowed down before, of the group itself or of one around it.
        let high = |groups: &str| below(groups, Bound::SlowedDown);
        assert_eq!(high("0::/a/b\n"), None);
        write("a/b", &[("memory.high", "max\n")]);
        write("a", &[("memory.high", "710\n")]);
        assert_eq!(high("0::/a/b\n"), Some((10, 710)));
        write("a/b", &[("memory.high", "375\n")]);
        assert_eq!(high("0::/a/b\n"), Some((5, 375)));
        assert_eq!(high("4:memory:/a/b\n"), None, "version 1 has no such bound");
        assert_eq!(left("0::/a/b\n"), Some((30, 400)));
        write(
            "memory/c",
            &[
                ("memory.limit_in_bytes", "200\n"),
                ("memory.usage_in_bytes", "190\n"),
                ("memory.stat", "inactive_file 9\ntotal_inactive_file 15\n"),
            ],
        );
        assert_eq!(left("4:memory:/c\n0::/\n"), Some((25, 200)));
        write(
            "memory",
            &[("memory.limit_in_bytes", "9223372036854771712\n"), ("memory.usage_in_bytes", "7\n")],
        );
        assert_eq!(left("4:memory:/\n"), None);
    }
}
