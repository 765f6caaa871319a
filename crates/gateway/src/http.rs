//! A small HTTP/1.1 server (RFC 9112) for the metrics: each connection has one short request within a time
//! limit, one response, and ends.
//!
//! ```text
//! → GET /metrics HTTP/1.1 ␍␊  Host: … ␍␊  ␍␊
//! ← HTTP/1.1 200 OK ␍␊  Content-Type: … ␍␊  Content-Length: … ␍␊  Connection: close ␍␊  ␍␊  the page
//! ```
//!
//! Strangers may ask: there are few threads for them, room for a short question, and a few seconds for
//! question and answer together, so that nobody who says nothing, or reads nothing, keeps others from their
//! answers or the gateway from its end.

use crate::limits::{HTTP_CLIENTS as CLIENTS, HTTP_PATIENCE as PATIENCE, HTTP_QUESTION as LONGEST};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often is looked whether all ends.
const LOOK: Duration = Duration::from_millis(200);

/// An answer.
pub(crate) struct Page {
    /// Number and words, such as `200 OK`.
    pub(crate) status: &'static str,
    /// Its type.
    pub(crate) kind: &'static str,
    /// Its text.
    pub(crate) text: String,
}

impl Page {
    /// Words for people.
    pub(crate) fn plain(status: &'static str, text: impl Into<String>) -> Page {
        Page { status, kind: "text/plain; charset=utf-8", text: text.into() }
    }
}

/// The page for a method and what it is applied to.
pub(crate) type Pages<'a> = dyn Fn(&str, &str) -> Page + Sync + 'a;

/// Answers until `ended` is true and the listener has been shut.
pub(crate) fn serve(listener: &TcpListener, ended: &AtomicBool, pages: &Pages<'_>) {
    let clients = &AtomicUsize::new(0);
    thread::scope(|scope| {
        loop {
            let taken = listener.accept();
            if ended.load(Ordering::SeqCst) {
                return;
            }
            let Ok((stream, _)) = taken else {
                // Descriptors have run out, or whoever asked has gone.
                thread::sleep(LOOK);
                continue;
            };
            if clients.load(Ordering::Relaxed) >= CLIENTS {
                continue;
            }
            clients.fetch_add(1, Ordering::Relaxed);
            let answer = move || {
                // Whoever asked may have gone, or takes too long.
                let _ = converse(&stream, ended, pages);
                clients.fetch_sub(1, Ordering::Relaxed);
            };
            if thread::Builder::new().spawn_scoped(scope, answer).is_err() {
                clients.fetch_sub(1, Ordering::Relaxed);
            }
        }
    });
}

fn converse(stream: &TcpStream, ended: &AtomicBool, pages: &Pages<'_>) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let goes_on = || {
        let over = ended.load(Ordering::SeqCst) || Instant::now() >= end;
        if over { Err(io::Error::from(ErrorKind::TimedOut)) } else { Ok(()) }
    };
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(LOOK))?;
    let head = question(stream, &goes_on)?;
    let (page, head_alone) = match head.as_deref().map(asked) {
        Some(Some((method, path))) => (pages(method, path), method == "HEAD"),
        Some(None) => (Page::plain("400 Bad Request", "this is no HTTP/1.1\n"), false),
        None => {
            let text = format!("a question has {LONGEST} bytes at most\n");
            (Page::plain("431 Request Header Fields Too Large", text), false)
        }
    };
    let Page { status, kind, text } = page;
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    if !head_alone {
        answer.push_str(&text);
    }
    say(stream, answer.as_bytes(), &goes_on)
}

type GoesOn<'a> = dyn Fn() -> io::Result<()> + 'a;

/// The head of a question; `None` where it is too long.
fn question(mut stream: &TcpStream, goes_on: &GoesOn<'_>) -> io::Result<Option<Vec<u8>>> {
    let (mut head, mut part): (Vec<u8>, _) = (Vec::new(), [0; 1024]);
    loop {
        goes_on()?;
        let length = match stream.read(&mut part) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if passes(&error) => continue,
            Err(error) => return Err(error),
        };
        let searched = head.len().saturating_sub(3);
        head.extend_from_slice(&part[..length]);
        if head[searched..].windows(4).any(|window| window == b"\r\n\r\n") {
            return Ok(Some(head));
        }
        if head.len() > LONGEST {
            return Ok(None);
        }
    }
}

/// Method and path of a question.
fn asked(head: &[u8]) -> Option<(&str, &str)> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    (version.starts_with("HTTP/1.") && words.next().is_none()).then_some((method, path))
}

fn say(mut stream: &TcpStream, mut bytes: &[u8], goes_on: &GoesOn<'_>) -> io::Result<()> {
    while !bytes.is_empty() {
        goes_on()?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if passes(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether it is worth another try.
fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{Shutdown, shutdown};
    use std::net::SocketAddr;

    /// Ends the server, whatever becomes of the test.
    struct End<'a>(&'a TcpListener, &'a AtomicBool);

    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.1.store(true, Ordering::SeqCst);
            shutdown(self.0, Shutdown::Both).expect("it is open");
        }
    }

    /// Pages that say what was asked; `/large` is larger than what the kernel takes for somebody who does not
    /// read.
    fn served<T>(visit: impl FnOnce(SocketAddr) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let ended = AtomicBool::new(false);
        let pages = |method: &str, path: &str| {
            let length = if path == "/large" { 16 << 20 } else { 0 };
            Page::plain("200 OK", format!("{method} {path}{}", " ".repeat(length)))
        };
        thread::scope(|scope| {
            scope.spawn(|| serve(&listener, &ended, &pages));
            let _end = End(&listener, &ended);
            visit(address)
        })
    }

    fn said(address: SocketAddr, question: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(question.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    #[test]
    fn questions_are_answered_and_others_told_why_not() {
        served(|address| {
            let answer = said(address, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(
                answer.contains("Content-Length: 6\r\n") && answer.ends_with("\r\n\r\nGET /a"),
                "{answer}"
            );
            let answer = said(address, "HEAD /a HTTP/1.0\r\n\r\n");
            assert!(answer.contains("Content-Length: 7\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
            for wrong in ["what?\r\n\r\n", "GET /a\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n"] {
                assert!(said(address, wrong).starts_with("HTTP/1.1 400 "), "{wrong}");
            }
            let long = format!("GET /{}", "a".repeat(LONGEST - 4));
            assert!(said(address, &long).starts_with("HTTP/1.1 431 "));
        });
    }

    #[test]
    fn who_never_reads_or_says_nothing_keeps_nobody_from_an_answer_or_the_end() {
        // They stay until all has ended.
        let stayed = served(|address| {
            let silent = TcpStream::connect(address).expect("it listens");
            let mut deaf = TcpStream::connect(address).expect("it listens");
            deaf.write_all(b"GET /large HTTP/1.1\r\n\r\n").expect("it reads");
            assert!(said(address, "GET /a HTTP/1.1\r\n\r\n").ends_with("GET /a"));
            (silent, deaf)
        });
        drop(stayed);
    }

    #[test]
    fn no_more_than_so_many_are_answered_at_once() {
        served(|address| {
            let silent: Vec<_> =
                (0..CLIENTS).map(|_| TcpStream::connect(address).expect("it listens")).collect();
            let mut turned = TcpStream::connect(address).expect("it listens");
            assert_eq!(turned.read(&mut [0]).expect("it is closed"), 0);
            drop(silent);
        });
    }
}
