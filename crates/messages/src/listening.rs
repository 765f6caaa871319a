//! The control socket: whoever has the right makes it, and may hand it to the process that answers there.

use crate::limits::WAITING_CLIENTS;
use rustix::fs::Mode;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

fn unix_socket() -> io::Result<OwnedFd> {
    Ok(net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// A listening socket. Dropping it removes the socket's file, unless another socket has taken its place.
pub struct Listening {
    /// The socket.
    pub listener: UnixListener,
    path: PathBuf,
    file: Metadata,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let same = |now: &Metadata| (now.dev(), now.ino()) == (self.file.dev(), self.file.ino());
        if fs::symlink_metadata(&self.path).is_ok_and(|now| same(&now)) {
            // Somebody may have removed the file meanwhile.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path`, for clients of the same user only. Removes the socket of a gateway that was killed, but
/// neither a socket at which somebody listens nor a file that is no socket.
///
/// # Errors
/// Somebody listens there (`AddrInUse`), there is such a file (`AlreadyExists`), or the system refuses.
pub fn listen(path: &Path) -> io::Result<Listening> {
    let listener = match bound(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if !fs::symlink_metadata(path)?.file_type().is_socket() {
                let words = "there is a file of this name, which is no socket";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, words));
            }
            match UnixStream::connect(path) {
                Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused => {}
                _ => {
                    return Err(io::Error::new(error.kind(), "a gateway, or another program, listens there"));
                }
            }
            fs::remove_file(path)?;
            bound(path)?
        }
        result => result?,
    };
    Ok(Listening { listener, path: path.to_owned(), file: fs::symlink_metadata(path)? })
}

/// Binds a listener whose file nobody else may ever use: the file gets the access rights of the socket.
fn bound(path: &Path) -> io::Result<UnixListener> {
    let socket = unix_socket()?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    net::listen(&socket, WAITING_CLIENTS)?;
    Ok(UnixListener::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_socket_that_nobody_listens_at_is_taken_away() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control.sock");
        fs::write(&path, "a letter").expect("can be written");
        let error = listen(&path).err().expect("a file is there");
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("is still there"), "a letter");
        fs::remove_file(&path).expect("can be removed");

        let first = listen(&path).expect("nothing is there");
        assert_eq!(fs::metadata(&path).expect("is there").permissions().mode() & 0o777, 0o600);
        let error = listen(&path).err().expect("somebody listens");
        assert!(error.to_string().contains("listens there"), "{error}");
        // As if a gateway was killed: the socket's file stays and nobody listens.
        let Listening { listener, .. } = &first;
        let killed = UnixListener::bind(directory.path().join("killed.sock")).expect("can be bound");
        drop(killed);
        assert!(listener.local_addr().is_ok());
        let second = listen(&directory.path().join("killed.sock")).expect("was left behind");
        drop(second);
        assert!(!directory.path().join("killed.sock").exists());
    }

    #[test]
    fn a_socket_that_took_the_place_of_ours_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control.sock");
        let ours = listen(&path).expect("nothing is there");
        fs::remove_file(&path).expect("can be removed");
        let theirs = listen(&path).expect("nothing is there");
        drop(ours);
        assert!(path.exists());
        drop(theirs);
        assert!(!path.exists());
    }
}
