//! Sending pages of files without touching them: `sendfile(2)` for slices of mapped files.
//!
//! A body holds parts of a file as slices of its mapping. For such a slice the kernel can be
//! asked to send the file's pages themselves, which copies nothing; the mapping serves as their
//! name, and as the way to send where `sendfile` is not worth its call.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rustix::net::{SendAncillaryBuffer, SendFlags};

/// Slices shorter than this are copied: a call to the kernel costs about as much.
const SENDFILE_BYTES_MIN: usize = 8 << 10;
/// Files a connection remembers: that of the response being sent, and of those just before it,
/// whose last bytes may still wait in HTTP's buffer.
const FILES_MAX: usize = 4;

/// A file, and where in memory it is mapped from its first byte on.
#[derive(Clone)]
pub struct Mapped {
    file: Arc<dyn AsFd + Send + Sync>,
    address: usize,
    len: usize,
}

impl Mapped {
    /// `file` is mapped at `address`, `len` bytes of it. The address is only compared with, never
    /// looked at.
    pub fn new(file: Arc<dyn AsFd + Send + Sync>, address: usize, len: usize) -> Mapped {
        Mapped { file, address, len }
    }

    /// Where in the file a slice of memory lies, if it is a part of the mapping.
    fn offset_of(&self, slice: &[u8]) -> Option<u64> {
        let offset = slice.as_ptr().addr().checked_sub(self.address)?;
        (offset.checked_add(slice.len())? <= self.len).then_some(offset as u64)
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
    ) -> Option<io::Result<usize>> {
        if !self.any.load(Relaxed) {
            return None;
        }
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let of_file = |slice: &IoSlice<'_>| {
            let long = slice.len() >= SENDFILE_BYTES_MIN;
            let found = |file| Mapped::offset_of(file, slice).map(|offset| (file, offset));
            long.then(|| latest.iter().rev().find_map(found)).flatten()
        };
        slices.iter().find_map(of_file)?;
        let (mut sent, mut at) = (0, 0);
        while let Some(slice) = slices.get(at) {
            let (wanted, result) = match of_file(slice) {
                Some((file, offset)) => {
                    at += 1;
                    (slice.len(), send_file(socket, file, offset, slice.len()))
                }
                None => {
                    let rest = slices.get(at..).unwrap_or(&[]);
                    let end = rest.iter().position(|slice| of_file(slice).is_some());
                    let run = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
                    at += run.len();
                    let more = end.is_some();
                    (
                        run.iter().map(|slice| slice.len()).sum(),
                        send_memory(socket, run, more),
                    )
                }
            };
            match result {
                Ok(count) => sent += count,
                Err(error) if sent == 0 => return Some(Err(error)),
                // Said again at the next call, if it lasts.
                Err(_) => break,
            }
            if result.is_ok_and(|count| count < wanted) {
                break;
            }
        }
        Some(Ok(sent))
    }
}

fn send_file(socket: BorrowedFd<'_>, file: &Mapped, offset: u64, len: usize) -> io::Result<usize> {
    let mut offset = offset;
    match rustix::fs::sendfile(socket, file.file.as_fd(), Some(&mut offset), len)? {
        0 if len > 0 => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file was cut while it was sent",
        )),
        count => Ok(count),
    }
}

/// `more`: a file follows at once, so the kernel need not send a short packet now.
fn send_memory(socket: BorrowedFd<'_>, run: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
    let more = if more {
        SendFlags::MORE
    } else {
        SendFlags::empty()
    };
    let flags = SendFlags::NOSIGNAL | more;
    let mut nothing = SendAncillaryBuffer::default();
    Ok(rustix::net::sendmsg(socket, run, &mut nothing, flags)?)
}
