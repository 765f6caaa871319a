//! The control groups of a container (cgroups(7)): how much memory it has together, and how much time of the
//! processors beside others.

use crate::{ContainerError, failed};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a group waits for processes that are ending.
const ENDING: Duration = Duration::from_millis(500);

/// What a group bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Bytes of memory, with files in memory.
    Memory(u64),
    /// Time of the processors where others want it, too: so many percent of what a process beside it gets.
    Time(u64),
}

impl Bound {
    /// The name of what does it.
    fn controller(self) -> &'static str {
        match self {
            Bound::Memory(_) => "memory",
            Bound::Time(_) => "cpu",
        }
    }

    /// The file that there has to be and what is written into it, of version 1 and 2.
    fn setting(self, version: Version) -> (&'static str, u64) {
        match (self, version) {
            (Bound::Memory(most), Version::First) => ("memory.limit_in_bytes", most),
            (Bound::Memory(most), Version::Second) => ("memory.max", most),
            (Bound::Time(percent), Version::First) => ("cpu.shares", 1024 * percent / 100),
            (Bound::Time(percent), Version::Second) => ("cpu.weight", percent),
        }
    }
}

/// Of Linux's control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    First,
    Second,
}

/// A control group; it goes when this is dropped and nobody is in it.
#[derive(Debug)]
pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes it below the group of this process, or beside it where groups that have members cannot be
    /// divided (version 2).
    ///
    /// # Errors
    /// The machine has no such groups, or this process may not make one.
    pub(crate) fn new(name: &str, bound: Bound) -> Result<ControlGroup, ContainerError> {
        let read = |path: &str| fs::read_to_string(path).map_err(failed(path));
        let place = place(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?, bound);
        let missing = failed(format!("no control group for `{}` is mounted", bound.controller()));
        let (folder, version) = place.ok_or(io::Error::from(io::ErrorKind::NotFound)).map_err(missing)?;
        ControlGroup::make(&folder, name, bound.setting(version))
    }

    fn make(folder: &Path, name: &str, (file, value): (&str, u64)) -> Result<ControlGroup, ContainerError> {
        let path = folder.join(format!("ravelin-{}-{name}", std::process::id()));
        let made = match fs::create_dir(&path) {
            Ok(()) => true,
            // The one for other bounds of version 2.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(failed(path.display().to_string())(error)),
        };
        let bounded = || {
            write(&path.join(file), value)?;
            // Memory with swap, where Linux counts that.
            let with_swap = [("memory.memsw.limit_in_bytes", value), ("memory.swap.max", 0)];
            let counted =
                with_swap.iter().filter(|(swap, _)| file.starts_with("memory.") && path.join(swap).exists());
            counted.copied().try_for_each(|(swap, most)| write(&path.join(swap), most))
        };
        match bounded() {
            Ok(()) => Ok(ControlGroup(path)),
            Err(error) => {
                // One that has another bound stays.
                if made {
                    let _ = fs::remove_dir(&path);
                }
                Err(error)
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Puts a process into it.
    pub(crate) fn take(&self, process: u64) -> Result<(), ContainerError> {
        write(&self.0.join("cgroup.procs"), process)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Those in it may be ending. If they are not, it stays, empty in the end.
        let end = Instant::now() + ENDING;
        while fs::remove_dir(&self.0).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
            && Instant::now() < end
        {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Writes a number into a file of a group. Linux makes these files: one that is not there bounds nothing.
fn write(file: &Path, number: u64) -> Result<(), ContainerError> {
    let opened = OpenOptions::new().write(true).open(file);
    opened
        .and_then(|mut file| file.write_all(number.to_string().as_bytes()))
        .map_err(failed(file.display().to_string()))
}

/// Where a group can be made: of the texts of /proc/self/cgroup and /proc/self/mountinfo (cgroups(7),
/// proc_pid_mountinfo(5)).
fn place(groups: &str, mounts: &str, bound: Bound) -> Option<(PathBuf, Version)> {
    let mounted = |kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let (before, behind) = line.split_once(" - ")?;
            let mut behind = behind.split(' ');
            let is_it = behind.next()? == kind && behind.nth(1)?.split(',').any(|has| has == option);
            let mut before = before.split(' ').skip(3);
            let (root, at) = (before.next()?, before.next()?);
            (is_it && root == "/").then(|| PathBuf::from(at))
        })
    };
    let own = |is_it: &dyn Fn(&str, &str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            // With `..` it lies outside of what this process sees.
            (is_it(number, controllers) && !path.contains("..")).then(|| path.trim_start_matches('/'))
        })
    };
    let first = || {
        let own = own(&|_, controllers| controllers.split(',').any(|has| has == bound.controller()))?;
        Some((mounted("cgroup", bound.controller())?.join(own), Version::First))
    };
    let second = || {
        let own = own(&|number, controllers| number == "0" && controllers.is_empty())?;
        let mount = mounted("cgroup2", "rw")?;
        // Above the mount there are no groups.
        let folder = if own.is_empty() { mount } else { mount.join(own).parent()?.to_owned() };
        Some((folder, Version::Second))
    };
    first().or_else(second)
}

/// Puts this process into the groups whose paths a file says, a line each; there may be none.
pub(crate) fn join(file: &Path) -> Result<(), ContainerError> {
    let groups = fs::read_to_string(file).map_err(failed(file.display().to_string()))?;
    groups.lines().try_for_each(|group| write(&Path::new(group).join("cgroup.procs"), 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MOST_MEMORY;

    const MOUNTS: &str = "\
25 1 0:22 / /proc rw - proc proc rw
30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime shared:3 - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn a_group_lies_below_the_own_one_of_version_1_or_beside_that_of_version_2() {
        let at = |groups: &str, mounts: &str| place(groups, mounts, Bound::Memory(1));
        let first = at("5:devices:/\n4:cpu,memory:/own\n0::/\n", MOUNTS);
        assert_eq!(first, Some(("/sys/fs/cgroup/memory/own".into(), Version::First)));
        let second = at("0::/system.slice/ravelin.service\n", MOUNTS);
        assert_eq!(second, Some(("/sys/fs/cgroup/unified/system.slice".into(), Version::Second)));
        let root = at("0::/\n", MOUNTS);
        assert_eq!(root, Some(("/sys/fs/cgroup/unified".into(), Version::Second)));
        // Neither one that this process does not see, nor one that is not mounted.
        assert_eq!(at("4:memory:/../other\n", MOUNTS), None);
        assert_eq!(at("4:memory:/own\n", "25 1 0:22 / /proc rw - proc proc rw\n"), None);
        assert_eq!(place("4:cpu,memory:/own\n", MOUNTS, Bound::Time(10)), None);
        assert_eq!(at("", MOUNTS), None);
    }

    /// What Linux does where a group is made: it has the files of its controllers.
    fn controlled(path: &Path) {
        for file in ["memory.max", "memory.swap.max", "cgroup.procs"] {
            fs::write(path.join(file), "").expect("written");
        }
    }

    #[test]
    fn a_bound_that_cannot_be_had_leaves_the_group_of_the_other_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let make =
            |bound: Bound| ControlGroup::make(folder.path(), "services", bound.setting(Version::Second));
        assert!(make(Bound::Memory(MOST_MEMORY)).is_err(), "nobody has made the file that bounds");
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0, "it left nothing");
        let path = folder.path().join(format!("ravelin-{}-services", std::process::id()));
        fs::create_dir(&path).expect("made");
        controlled(&path);
        let group = make(Bound::Memory(MOST_MEMORY)).expect("it bounds");
        let read = |file: &str| fs::read_to_string(path.join(file)).expect("it is there");
        assert_eq!((read("memory.max").parse(), &*read("memory.swap.max")), (Ok(MOST_MEMORY), "0"));
        assert!(make(Bound::Time(10)).is_err(), "this machine divides no time");
        assert!(path.exists() && !path.join("cpu.weight").exists(), "{}", group.path().display());
        // A folder of Linux goes with its files.
        for file in fs::read_dir(&path).expect("there") {
            fs::remove_file(file.expect("one").path()).expect("it is there");
        }
        drop(group);
        assert!(!path.exists());
        let missing = folder.path().join("missing");
        assert!(
            ControlGroup::make(&missing, "services", Bound::Memory(MOST_MEMORY).setting(Version::First))
                .is_err()
        );
    }

    #[test]
    fn who_is_to_join_a_group_joins_it_or_says_why_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("services.groups");
        assert!(join(&file).is_err(), "nobody has said yet which groups there are");
        fs::write(&file, "").expect("written");
        join(&file).expect("the machine has none");
        let group = folder.path().join("group");
        fs::write(&file, group.display().to_string()).expect("written");
        assert!(join(&file).is_err(), "it has gone");
        fs::create_dir(&group).expect("made");
        assert!(join(&file).is_err(), "it is no group");
        controlled(&group);
        join(&file).expect("joined");
        assert_eq!(fs::read_to_string(group.join("cgroup.procs")).expect("there"), "0");
    }
}
