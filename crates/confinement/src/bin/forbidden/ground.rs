//! What forbidden actions need to be there: descriptors, memory and a child, made while this still is
//! possible.

use crate::calls;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{IntoRawFd, RawFd};

/// What is there. Nothing of it is ever freed or closed.
#[derive(Debug)]
pub(crate) struct Ground {
    /// A child that waits, and a descriptor that stands for it.
    pub(crate) child: i32,
    pub(crate) child_process: RawFd,
    /// A socket of UDP, one of TCP that is bound to nothing, and one of TCP that listens.
    pub(crate) udp: RawFd,
    pub(crate) tcp: RawFd,
    pub(crate) listening: RawFd,
    /// This program, the folder of temporary files, and the network of this process.
    pub(crate) program: RawFd,
    pub(crate) folder: RawFd,
    pub(crate) network: RawFd,
    /// A terminal.
    pub(crate) terminal: RawFd,
    /// A number of an existing process of the machine, given by who started this one.
    pub(crate) outsider: i32,
    /// 8 pages of memory that a call may write to; the child has some at the same place.
    pub(crate) memory: u64,
    /// The handle of the folder of temporary files.
    pub(crate) handle: u64,
}

/// The size of a page, and of the memory of the ground.
pub(crate) const PAGE: u64 = 4096;

impl Ground {
    /// Makes all of it ready.
    pub(crate) fn new(outsider: i32) -> io::Result<Self> {
        let result = |result: Result<i64, i32>| result.map_err(io::Error::from_raw_os_error);
        let numbers = |a: i64, b: i64, c: i64| [a as u64, b as u64, c as u64, 0, 0, 0];
        let socket = numbers(libc::AF_INET.into(), libc::SOCK_STREAM.into(), 0);
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let pages = [0, 8 * PAGE, (libc::PROT_READ | libc::PROT_WRITE) as u64, anonymous as u64, u64::MAX, 0];
        let memory = result(calls::make(libc::SYS_mmap, pages))? as u64;
        // The child has the memory at the same place.
        let child = calls::waiting_child()?;
        let mut ground = Self {
            child,
            child_process: result(calls::make(libc::SYS_pidfd_open, numbers(child.into(), 0, 0)))? as RawFd,
            udp: UdpSocket::bind("0.0.0.0:0")?.into_raw_fd(),
            tcp: result(calls::make(libc::SYS_socket, socket))? as RawFd,
            listening: TcpListener::bind("0.0.0.0:0")?.into_raw_fd(),
            program: File::open("/proc/self/exe")?.into_raw_fd(),
            folder: File::open("/tmp")?.into_raw_fd(),
            network: File::open("/proc/self/ns/net")?.into_raw_fd(),
            terminal: File::options().read(true).write(true).open("/dev/ptmx")?.into_raw_fd(),
            outsider,
            memory,
            handle: 0,
        };
        ground.handle = ground.bytes(&[128u32.to_ne_bytes().as_slice(), &[0; 132]].concat());
        let mount = ground.bytes(&[0; 8]);
        let path = ground.text("/tmp");
        let at = libc::AT_FDCWD as i64 as u64;
        result(calls::make(libc::SYS_name_to_handle_at, [at, path, ground.handle, mount, 0, 0]))?;
        Ok(ground)
    }

    /// The address of a text that ends with a zero.
    pub(crate) fn text(&self, text: &str) -> u64 {
        // A text of this program holds no zero.
        CString::new(text).unwrap_or_default().into_raw() as u64
    }

    /// The address of bytes that a call may read and write, aligned as any structure of Linux wants it.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> u64 {
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_ne_bytes(word)
            })
            .collect();
        words.leak().as_mut_ptr() as u64
    }

    /// The address of numbers of 64 bits.
    pub(crate) fn words(&self, words: &[u64]) -> u64 {
        words.to_vec().leak().as_mut_ptr() as u64
    }
}
