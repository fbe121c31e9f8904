//! Sending pages without touching them, for slices of mapped files and of memory that nobody writes.
//!
//! A body holds parts of a file as slices of its mapping. For such a slice the kernel can be
//! asked to send the file's pages themselves, which copies nothing; the mapping serves as their
//! name, and as the way to send what is so short that copying costs less than asking.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::gather::{self, Part, Sent};
use rustix::net::{SendAncillaryBuffer, SendFlags};

/// Slices shorter than this are copied: a call to the kernel costs about as much.
const FILE_BYTES_MIN: usize = 8 << 10;
/// Files a connection remembers: that of the response being sent, and of those just before it,
/// whose last bytes may still wait in HTTP's buffer.
const FILES_MAX: usize = 4;

/// Bytes in memory, and what the kernel can send in their place.
#[derive(Clone)]
pub struct Mapped {
    source: Source,
    address: usize,
    len: usize,
}

#[derive(Clone)]
enum Source {
    /// A file that is mapped from its first byte on.
    File(Arc<dyn AsFd + Send + Sync>),
    /// Those pages themselves, as long as this is held.
    Memory(#[allow(dead_code)] Arc<dyn Send + Sync>),
}

impl Mapped {
    /// `file` is mapped at `address`, `len` bytes of it. The address is only compared with, never
    /// looked at.
    pub fn new(file: Arc<dyn AsFd + Send + Sync>, address: usize, len: usize) -> Mapped {
        let source = Source::File(file);
        Mapped {
            source,
            address,
            len,
        }
    }

    /// `len` bytes at `address` are never written again, by nobody: neither as long as `owner` lives nor,
    /// as the network may hold on to their pages, after that. (Whoever gives them back to the system
    /// writes nothing to them.)
    pub fn memory(owner: Arc<dyn Send + Sync>, address: usize, len: usize) -> Mapped {
        let source = Source::Memory(owner);
        Mapped {
            source,
            address,
            len,
        }
    }

    /// What a slice of memory is of it, if it lies within.
    fn part<'a>(&'a self, slice: &'a [u8]) -> Option<Part<'a>> {
        let offset = slice.as_ptr().addr().checked_sub(self.address)?;
        let inside = offset.checked_add(slice.len())? <= self.len;
        inside.then(|| match &self.source {
            Source::File(file) => Part::File {
                file: file.as_fd(),
                offset: offset as u64,
                len: slice.len(),
            },
            Source::Memory(_) => Part::Memory(slice),
        })
    }
}

impl std::fmt::Debug for Mapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mapped({} bytes)", self.len)
    }
}

/// The files whose pages a connection may be asked to send.
#[derive(Debug, Default)]
pub(crate) struct Files {
    any: AtomicBool,
    latest: Mutex<Vec<Mapped>>,
}

impl Files {
    /// A response of this file begins.
    pub(crate) fn add(&self, file: &Mapped) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |other: &Mapped| other.address == file.address && other.len == file.len;
        if latest.last().is_some_and(same) {
            return;
        }
        latest.retain(|other| !same(other));
        if latest.len() == FILES_MAX {
            latest.remove(0);
        }
        latest.push(file.clone());
        self.any.store(true, Relaxed);
    }

    /// No more than the last one is needed from now on.
    pub(crate) fn forget(&self) {
        if self.any.swap(false, Relaxed) {
            let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            latest.clear();
        }
    }

    /// Writes as much of `slices` as the socket takes, mapped ones by `sendfile`. `None`: none of
    /// them is mapped and long enough.
    pub(super) fn send(
        &self,
        socket: BorrowedFd<'_>,
        slices: &[IoSlice<'_>],
    ) -> Option<io::Result<Sent>> {
        if !self.any.load(Relaxed) {
            return None;
        }
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        slices.iter().find_map(|slice| part_of(&latest, slice))?;
        let (mut sent, mut rest) = (Sent::default(), slices);
        while !rest.is_empty() && !sent.full {
            let end = rest
                .iter()
                .position(|slice| part_of(&latest, slice).is_some());
            let (memory, files) = rest.split_at(end.unwrap_or(rest.len()));
            let (offered, turn): (usize, _) = if memory.is_empty() {
                let parts = files.iter().map_while(|slice| part_of(&latest, slice));
                let run: Vec<Part<'_>> = parts.collect();
                let (same, after) = files.split_at(run.len());
                rest = after;
                let offered = run.iter().map(Part::len).sum();
                let turn = gather::send(socket, &run, !rest.is_empty());
                (offered, turn.or_else(|error| copied(socket, same, error)))
            } else {
                rest = files;
                let offered = memory.iter().map(|slice| slice.len()).sum();
                (offered, send_memory(socket, memory, !rest.is_empty()))
            };
            match turn {
                Ok(turn) => {
                    sent.count += turn.count;
                    sent.full = turn.full;
                    if turn.count < offered {
                        return Some(Ok(sent));
                    }
                }
                Err(error) if sent.count == 0 => return Some(Err(error)),
                Err(error) => {
                    sent.full = error.kind() == io::ErrorKind::WouldBlock;
                    return Some(Ok(sent));
                }
            }
        }
        Some(Ok(sent))
    }
}

/// What can be sent in a slice's place.
fn part_of<'a>(latest: &'a [Mapped], slice: &'a [u8]) -> Option<Part<'a>> {
    let long = slice.len() >= FILE_BYTES_MIN;
    let mut parts = latest.iter().rev().filter_map(|mapped| mapped.part(slice));
    long.then(|| parts.next()).flatten()
}

/// Without a pipe (no descriptor is left, or the kernel has no such call), bytes are copied after all;
/// what else is wrong shows then, too. But not those of a file that was cut: to the end of its last
/// page the mapping holds zeros that were never in it.
fn copied(socket: BorrowedFd<'_>, run: &[IoSlice<'_>], error: io::Error) -> io::Result<Sent> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::UnexpectedEof => Err(error),
        _ => send_memory(socket, run, false),
    }
}

/// `more`: a file follows at once, so the kernel need not send a short packet now.
pub(super) fn send_memory(
    socket: BorrowedFd<'_>,
    run: &[IoSlice<'_>],
    more: bool,
) -> io::Result<Sent> {
    let more = if more {
        SendFlags::MORE
    } else {
        SendFlags::empty()
    };
    let flags = SendFlags::NOSIGNAL | more;
    let mut nothing = SendAncillaryBuffer::default();
    let count = rustix::net::sendmsg(socket, run, &mut nothing, flags)?;
    let full = count < run.iter().map(|slice| slice.len()).sum();
    Ok(Sent { count, full })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_cannot_be_sent_uncopied_is_copied() {
        let (socket, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let bytes: Vec<u8> = (0..20_000u32).map(|n| (n % 251) as u8).collect();
        // A folder has no bytes to send.
        let folder = std::fs::File::open("/").unwrap();
        let files = Files::default();
        let address = bytes.as_ptr().addr();
        files.add(&Mapped::new(Arc::new(folder), address, bytes.len()));
        let slices = [&b"head"[..], &bytes].map(IoSlice::new);
        let sent = files.send(socket.as_fd(), &slices).unwrap().unwrap();
        assert_eq!((sent.count, sent.full), (20_004, false));
        drop(socket);
        let mut came = Vec::new();
        peer.read_to_end(&mut came).unwrap();
        assert!(came == [&b"head"[..], &bytes].concat());
    }

    #[test]
    fn what_a_file_held_before_it_was_cut_is_not_copied() {
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(70_000).unwrap();
        let bytes = vec![0u8; 90_000];
        let files = Files::default();
        let address = bytes.as_ptr().addr();
        files.add(&Mapped::new(Arc::new(file), address, bytes.len()));
        let sent = files.send(socket.as_fd(), &[IoSlice::new(&bytes[70_000..])]);
        let error = sent.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
