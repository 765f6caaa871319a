//! Whether files can be a virtual machine's memory for a process that does not trust the machine: reading and
//! writing what is mapped of them must not fail, whatever the machine's monitor does with them.

use super::limits::{MOST_GUEST_MEMORY, MOST_REGIONS};
use super::shared::GuestRegion;
use rustix::fs::{SealFlags, fcntl_get_seals, fstat, fstatfs};
use std::os::fd::OwnedFd;

/// The file system of memory (linux/magic.h, TMPFS_MAGIC). One of large pages (hugetlbfs) may have none left
/// when a page is written first.
const TMPFS: i128 = 0x0102_1994;

/// Why a file cannot be a machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharedFileError {
    /// regions and files
    #[error("it shares no memory, more than {MOST_REGIONS} regions, or not a file for each")]
    Regions,
    /// the length
    #[error("a region is longer than its file, or all are longer than {MOST_GUEST_MEMORY} bytes")]
    Length,
    /// another kind of file
    #[error("its memory is no file of memory with pages of the usual size")]
    Kind,
    /// it can fail
    #[error(
        "this machine may refuse memory that was promised (vm.overcommit_memory is not 0 or 1), so that a write to shared memory can fail: `guest = true` works without it"
    )]
    Refused,
    /// it can shrink
    #[error(
        "its memory could shrink, since it is not sealed: of QEMU, `-object memory-backend-memfd,share=on` is"
    )]
    Shrinks,
}

/// Looks at the file of each region.
///
/// # Errors
/// One is not sealed against shrinking (memfd_create(2)), is too short or of another kind.
pub fn check(regions: &[GuestRegion], files: &[OwnedFd]) -> Result<(), SharedFileError> {
    if regions.is_empty() || regions.len() > MOST_REGIONS || regions.len() != files.len() {
        return Err(SharedFileError::Regions);
    }
    let mode = std::fs::read_to_string("/proc/sys/vm/overcommit_memory").unwrap_or_default();
    if !gives_what_was_promised(&mode) {
        return Err(SharedFileError::Refused);
    }
    let mut all = 0u64;
    for (region, file) in regions.iter().zip(files) {
        let kind = fstatfs(file).map_err(|_| SharedFileError::Kind)?;
        if i128::from(kind.f_type) != TMPFS {
            return Err(SharedFileError::Kind);
        }
        if !fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
            return Err(SharedFileError::Shrinks);
        }
        // It cannot become shorter after this.
        let there = fstat(file).map_err(|_| SharedFileError::Kind)?.st_size;
        let end = region.offset.checked_add(region.length).ok_or(SharedFileError::Length)?;
        all = all.saturating_add(region.length);
        if i128::from(end) > i128::from(there) || all > MOST_GUEST_MEMORY {
            return Err(SharedFileError::Length);
        }
    }
    Ok(())
}

/// Whether Linux gives a page of such a file to whoever touches it first, as long as there is memory, in this
/// mode of `vm.overcommit_memory`. In the mode 2 it ends him (SIGBUS) where more was promised than there is.
fn gives_what_was_promised(mode: &str) -> bool {
    matches!(mode.trim(), "0" | "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};
    use std::fs::File;

    const MIB: u64 = 1 << 20;

    fn memory(seals: SealFlags) -> OwnedFd {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("guest", flags).expect("memory");
        ftruncate(&file, MIB).expect("as long");
        fcntl_add_seals(&file, seals).expect("sealed");
        file
    }

    #[test]
    fn memory_that_could_go_away_under_a_reader_is_refused() {
        let region = |length, offset| GuestRegion { start: 0, length, offset };
        let one = [region(MIB, 0)];
        let sealed = memory(SealFlags::SHRINK);
        assert_eq!(check(&one, std::slice::from_ref(&sealed)), Ok(()));
        assert_eq!(check(&one, &[memory(SealFlags::GROW)]), Err(SharedFileError::Shrinks));
        let disk = File::open("/proc/self/exe").expect("a file").into();
        assert_eq!(check(&[region(4096, 0)], &[disk]), Err(SharedFileError::Kind));
        let (reads, _writes) = std::io::pipe().expect("a pipe");
        assert_eq!(check(&[region(4096, 0)], &[reads.into()]), Err(SharedFileError::Kind));
        for wrong in [region(MIB + 1, 0), region(MIB, 1), region(u64::MAX, 1)] {
            assert_eq!(
                check(&[wrong], std::slice::from_ref(&sealed)),
                Err(SharedFileError::Length),
                "{wrong:?}"
            );
        }
        assert_eq!(check(&[], &[]), Err(SharedFileError::Regions));
        assert_eq!(check(&one, &[]), Err(SharedFileError::Regions));
        let many = [region(4096, 0); MOST_REGIONS + 1];
        let files: Vec<_> = many.iter().map(|_| sealed.try_clone().expect("another handle")).collect();
        assert_eq!(check(&many, &files), Err(SharedFileError::Regions));
    }

    #[test]
    fn a_mode_in_which_a_write_can_fail_is_not_taken_nor_one_that_is_not_known() {
        assert!(gives_what_was_promised("0\n") && gives_what_was_promised("1\n"));
        for mode in ["2\n", "3\n", "", "-1\n", "01"] {
            assert!(!gives_what_was_promised(mode), "{mode:?}");
        }
    }

    #[test]
    fn more_memory_than_the_limit_is_refused() {
        let file = memory(SealFlags::SHRINK);
        let long = memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory");
        ftruncate(&long, MOST_GUEST_MEMORY + MIB).expect("it takes no memory");
        fcntl_add_seals(&long, SealFlags::SHRINK).expect("sealed");
        let most = GuestRegion { start: 0, length: MOST_GUEST_MEMORY, offset: 0 };
        let more = GuestRegion { start: MOST_GUEST_MEMORY, length: MIB, offset: 0 };
        assert_eq!(check(&[most], &[long.try_clone().expect("another handle")]), Ok(()));
        assert_eq!(check(&[most, more], &[long, file]), Err(SharedFileError::Length));
    }
}
