//! Sends file ranges and arena pages by reference, without copying them.
//!
//! `sendfile(2)` sends one range and pushes a short packet at the end of the range. A segment of a
//! film with interleaved tracks has dozens of ranges, which would cause dozens of short packets.
//! Therefore, `splice(2)` first moves references to the pages of many ranges into a pipe. A second
//! `splice(2)` then moves all these references into the socket, so that the packets are full. For
//! pages of our own memory, `vmsplice(2)` fills the pipe.

use std::cell::RefCell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::body::part::{BodyFile, file_truncated_error};

/// Bytes that are sent by reference.
#[derive(Clone, Copy)]
pub(super) enum ReferencedPart<'a> {
    File {
        file: &'a BodyFile,
        offset: u64,
        len: usize,
    },
    /// Arena memory, which is never written again.
    Memory(&'a [u8]),
}

impl ReferencedPart<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            ReferencedPart::File { len, .. } => *len,
            ReferencedPart::Memory(bytes) => bytes.len(),
        }
    }
}

/// The result of a send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SendOutcome {
    /// Number of bytes that the socket accepted.
    pub(super) count: usize,
    /// Whether the socket is full. The kernel reports a full socket as writable as soon as the
    /// socket has room again.
    pub(super) full: bool,
}

/// Requested size of the pipe in bytes, which is 256 slots of one page (4 KiB) each. The kernel may
/// grant a smaller pipe.
const PIPE_BYTES: usize = 1 << 20;
/// Limit on the bytes gathered before each send. Bytes that the socket does not accept must be
/// gathered again.
const GATHER_BYTES_MAX: usize = 512 << 10;

/// A single file range of at least this length is sent without the pipe, even if more bytes follow.
/// The short packet at the end of the range costs less than the two additional system calls for the
/// pipe.
const ALONE_BYTES_MIN: usize = 64 << 10;

struct GatherPipe {
    read: OwnedFd,
    write: OwnedFd,
}

thread_local! {
    /// The worker's pipe. Between calls, the pipe is empty or absent.
    static PIPE: RefCell<Option<GatherPipe>> = const { RefCell::new(None) };
}

/// Sends `parts` in order, as far as the socket accepts them. `more` tells the kernel that further
/// bytes follow.
pub(super) fn send_by_reference(
    socket: BorrowedFd<'_>,
    parts: &[ReferencedPart<'_>],
    more: bool,
) -> io::Result<SendOutcome> {
    if let [ReferencedPart::File { file, offset, len }] = *parts
        && (!more || len >= ALONE_BYTES_MIN)
    {
        return send_file_range(socket, file, offset, len);
    }
    let (mut count, mut rest) = (0, UngatheredParts { parts, done: 0 });
    // The pipe is put back into `PIPE` only when it is empty again.
    let pipe = match PIPE.take() {
        Some(pipe) => pipe,
        None => GatherPipe::new()?,
    };
    while !rest.parts.is_empty() {
        let turn = pipe.gather_parts(&mut rest).and_then(|filled| {
            let more = more || !rest.parts.is_empty();
            Ok((filled, pipe.drain_into(socket, filled, more)?))
        });
        match turn {
            Ok((filled, taken)) => {
                count += taken;
                if taken < filled {
                    return Ok(SendOutcome { count, full: true });
                }
            }
            Err(error) if count == 0 => return Err(error),
            // This call must return the number of bytes that are already sent. If the cause of the
            // error persists, the next call returns the error.
            Err(error) => {
                let full = error.kind() == io::ErrorKind::WouldBlock;
                return Ok(SendOutcome { count, full });
            }
        }
    }
    PIPE.set(Some(pipe));
    Ok(SendOutcome { count, full: false })
}

fn send_file_range(
    socket: BorrowedFd<'_>,
    file: &BodyFile,
    mut offset: u64,
    len: usize,
) -> io::Result<SendOutcome> {
    let send = |left| rustix::fs::sendfile(socket, file.descriptor(), Some(&mut offset), left);
    match repeat_until_full(len, send)? {
        SendOutcome { count: 0, .. } => Err(file_truncated_error()),
        sent => Ok(sent),
    }
}

/// Calls `send` with the number of remaining bytes until all `len` bytes are sent, the socket is
/// full, or `send` returns 0.
///
/// A short write does not mean that the socket is full or that no bytes are left. A signal
/// (`SIGSTOP`, a debugger, a frozen container) also ends `sendfile` early. If the socket is not
/// full, waiting for room would never complete.
///
/// # Errors
/// The error of the first call of `send`. After the first sent byte, this function returns no
/// error. The next call returns the error.
pub(super) fn repeat_until_full(
    len: usize,
    mut send: impl FnMut(usize) -> rustix::io::Result<usize>,
) -> io::Result<SendOutcome> {
    let mut sent = SendOutcome::default();
    while sent.count < len {
        match send(len - sent.count) {
            Ok(0) => break,
            Ok(count) => sent.count += count,
            Err(Errno::INTR) => {}
            Err(error) if sent.count == 0 => return Err(error.into()),
            Err(error) => {
                sent.full = error == Errno::AGAIN;
                break;
            }
        }
    }
    Ok(sent)
}

/// Parts that are not completely gathered. The first `done` bytes of the first part are already
/// gathered.
struct UngatheredParts<'a> {
    parts: &'a [ReferencedPart<'a>],
    done: usize,
}

impl GatherPipe {
    fn new() -> io::Result<GatherPipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Ignores the error, because a smaller pipe also works, with more system calls.
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        Ok(GatherPipe { read, write })
    }

    /// Gathers parts until the pipe is full, the limit is reached, or no part is left. Returns the
    /// number of gathered bytes, which is never 0.
    fn gather_parts(&self, rest: &mut UngatheredParts<'_>) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(part) = rest.parts.first()
            && filled < GATHER_BYTES_MAX
        {
            let wanted = (part.len() - rest.done).min(GATHER_BYTES_MAX - filled);
            match self.add_page_references(part, rest.done, wanted) {
                Ok(0) => return Err(file_truncated_error()),
                Ok(count) => {
                    filled += count;
                    rest.done += count;
                }
                Err(Errno::AGAIN) if filled > 0 => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if rest.done == part.len() {
                *rest = UngatheredParts {
                    parts: rest.parts.get(1..).unwrap_or(&[]),
                    done: 0,
                };
            }
        }
        Ok(filled)
    }

    /// Puts references to pages of a part into the pipe.
    fn add_page_references(
        &self,
        part: &ReferencedPart<'_>,
        done: usize,
        wanted: usize,
    ) -> rustix::io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        match part {
            ReferencedPart::File { file, offset, .. } => {
                let mut offset = offset + done as u64;
                let (file, pipe) = (file.descriptor(), &self.write);
                splice(file, Some(&mut offset), pipe, None, wanted, flags)
            }
            ReferencedPart::Memory(bytes) => {
                let bytes = bytes.get(done..done + wanted).unwrap_or(&[]);
                super::tcp::splice_memory_into_pipe(&self.write, bytes)
            }
        }
    }

    /// Moves the pipe's bytes into the socket. If the returned number is less than `filled`, the
    /// socket is full.
    ///
    /// Unlike `sendfile`, this non-blocking call is not ended early by a signal. Therefore, the
    /// call is not repeated. For slow viewers, repeating the call would make sending 10 % more
    /// expensive.
    fn drain_into(&self, socket: BorrowedFd<'_>, filled: usize, more: bool) -> io::Result<usize> {
        let more = if more {
            SpliceFlags::MORE
        } else {
            SpliceFlags::empty()
        };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK | more;
        Ok(splice(&self.read, None, socket, None, filled, flags)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    /// Regression test. When a file was truncated, the connection waited for room although the
    /// socket was not full. Finally, the connection was cut as stalled.
    #[test]
    fn a_truncated_file_does_not_mean_a_full_socket() {
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(70_000).unwrap();
        let same = std::sync::Arc::new(file.try_clone().unwrap());
        let file = BodyFile::new(same, None, 70_000, 0);
        let part = |offset: u64| ReferencedPart::File {
            file: &file,
            offset,
            len: 200_000,
        };
        let sent = send_by_reference(socket.as_fd(), &[part(0)], false).unwrap();
        assert_eq!((sent.count, sent.full), (70_000, false));
        assert!(send_by_reference(socket.as_fd(), &[part(70_000)], false).is_err());
    }

    #[test]
    fn a_write_that_a_signal_interrupts_does_not_mean_a_full_socket() {
        let results = [Ok(65_000), Err(Errno::INTR), Ok(35_000)];
        let mut results = results.into_iter();
        let sent = repeat_until_full(100_000, |_| results.next().unwrap()).unwrap();
        assert_eq!((sent.count, sent.full), (100_000, false));
        let mut results = [Ok(65_000), Err(Errno::AGAIN)].into_iter();
        let sent = repeat_until_full(100_000, |_| results.next().unwrap()).unwrap();
        assert_eq!((sent.count, sent.full), (65_000, true));
        let mut results = [Ok(65_000), Err(Errno::PIPE)].into_iter();
        let sent = repeat_until_full(100_000, |_| results.next().unwrap()).unwrap();
        assert_eq!((sent.count, sent.full), (65_000, false));
        assert!(repeat_until_full(1, |_| Err(Errno::PIPE)).is_err());
    }

    #[test]
    fn memory_arrives_unchanged_in_parts_of_any_length() {
        use std::io::Read;
        let (socket, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let bytes: Vec<u8> = (0..3_000_001u32).map(|n| (n % 251) as u8).collect();
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            peer.read_to_end(&mut all).unwrap();
            all
        });
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let (one, other) = rest.split_at(rest.len().min(4097));
            let parts = [ReferencedPart::Memory(one), ReferencedPart::Memory(other)];
            let parts = if other.is_empty() {
                &parts[..1]
            } else {
                &parts
            };
            match send_by_reference(socket.as_fd(), parts, false) {
                Ok(sent) => at += sent.count,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        drop(socket);
        assert!(reading.join().unwrap() == bytes);
    }
}
