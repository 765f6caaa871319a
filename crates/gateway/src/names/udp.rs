//! Queries by UDP: those that are there are answered together, and their replies leave in one system call.

use crate::limits::{DNS_BATCH, DNS_QUERY};
use crate::names::Names;
use crate::names::answering::{Received, ReplyTo, Taken};
use naming::dns::DnsTransport;
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{MMsgHdr, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrAny, recvfrom, sendmmsg};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often is looked whether all ends, and how long it waits after an error of the socket.
const LOOK: Duration = Duration::from_millis(200);

pub(super) fn listen(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

/// A reply and where it goes.
struct Outgoing {
    to: SocketAddrAny,
    bytes: Vec<u8>,
}

/// Answers until `ended` is true.
pub(super) fn serve(socket: &Arc<UdpSocket>, names: &Names, ended: &AtomicBool) {
    let mut queries = vec![[0; DNS_QUERY]; DNS_BATCH];
    let mut arrived: Vec<(usize, SocketAddr)> = Vec::with_capacity(DNS_BATCH);
    let mut replies: Vec<Outgoing> = Vec::with_capacity(DNS_BATCH);
    while !ended.load(Ordering::SeqCst) {
        arrived.clear();
        replies.clear();
        receive(socket, &mut queries, &mut arrived);
        if arrived.is_empty() {
            continue;
        }
        let under_load = arrived.len() == DNS_BATCH;
        let mut answering = names.answering();
        let mut received = Vec::with_capacity(arrived.len());
        for (query, &(length, from)) in queries.iter().zip(&arrived) {
            match query.get(..length) {
                Some(bytes) => {
                    received.push(Received { bytes, from, transport: DnsTransport::Udp, under_load });
                }
                None => answering.refuse(format!("longer than {DNS_QUERY} bytes")),
            }
        }
        let taken = answering.take(&received, &|_| ReplyTo::Udp(socket.clone()));
        drop(answering);
        for (one, taken) in received.iter().zip(taken) {
            if let Taken::Reply(bytes) = taken {
                replies.push(Outgoing { to: one.from.as_any(), bytes });
            }
        }
        let lost = send(socket, &replies);
        let mut answering = names.answering();
        answering.refuse_all("reply not sent".to_owned(), lost);
    }
}

/// Waits for a query, and takes those that are there. Of a query that is too long the length is told.
fn receive(socket: &UdpSocket, queries: &mut [[u8; DNS_QUERY]], arrived: &mut Vec<(usize, SocketAddr)>) {
    for (query, waits) in queries.iter_mut().zip(std::iter::once(true).chain(std::iter::repeat(false))) {
        let flags = if waits { RecvFlags::TRUNC } else { RecvFlags::TRUNC | RecvFlags::DONTWAIT };
        match recvfrom(socket, query.as_mut_slice(), flags) {
            Ok((_, length, Some(from))) => match SocketAddr::try_from(from) {
                Ok(from) => arrived.push((length, from)),
                // A socket of the internet has other addresses only by a fault of the system.
                Err(_) => return,
            },
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok((_, _, None)) | Err(_) => {
                // What an earlier reply met, or want of memory.
                if waits {
                    thread::sleep(LOOK / 20);
                }
                return;
            }
        }
    }
}

/// Sends all replies, and says how many found no room.
fn send(socket: &UdpSocket, replies: &[Outgoing]) -> usize {
    let slices: Vec<[IoSlice<'_>; 1]> = replies.iter().map(|reply| [IoSlice::new(&reply.bytes)]).collect();
    let mut controls: Vec<SendAncillaryBuffer<'_, '_, '_>> =
        replies.iter().map(|_| SendAncillaryBuffer::default()).collect();
    let parts = replies.iter().zip(&slices).zip(&mut controls);
    let mut headers: Vec<MMsgHdr<'_>> =
        parts.map(|((reply, slice), control)| MMsgHdr::new_with_addr(&reply.to, slice, control)).collect();
    let (mut rest, mut lost) = (&mut headers[..], 0);
    while !rest.is_empty() {
        let sent = match sendmmsg(socket, rest, SendFlags::DONTWAIT) {
            Ok(sent) if sent > 0 => sent,
            Err(Errno::INTR) => continue,
            // The first of them cannot be sent, such as to a network without a route.
            Ok(_) | Err(_) => {
                lost += 1;
                1
            }
        };
        rest = &mut rest[sent..];
    }
    lost
}
