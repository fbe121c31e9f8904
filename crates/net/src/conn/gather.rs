//! Parts of files to a socket without a copy, gathered in a pipe on the way.
//!
//! `sendfile(2)` sends one part, and pushes a short packet at its end; a segment of a film whose
//! tracks interleave has dozens of parts. Here `splice(2)` moves references to the pages of many
//! parts into a pipe, and then all of them at once into the socket, which fills its packets.
//! `vmsplice(2)` does the same with pages of our own memory.

use std::cell::RefCell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// Bytes that are not copied.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// A part of a file.
    File {
        file: BorrowedFd<'a>,
        offset: u64,
        len: usize,
    },
    /// Memory that nobody writes any more.
    Memory(&'a [u8]),
}

impl Part<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Part::File { len, .. } => *len,
            Part::Memory(bytes) => bytes.len(),
        }
    }
}

/// What a socket took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Bytes.
    pub(super) count: usize,
    /// It said that it is full: it will say when there is room again.
    pub(super) full: bool,
}

/// Size asked for, in bytes: a slot for each of 256 pages. The kernel may give less.
const PIPE_BYTES: usize = 1 << 20;
/// Most gathered before it is sent: what the socket does not take is gathered again next time.
const GATHER_BYTES_MAX: usize = 512 << 10;

/// A part of this length is sent alone even if bytes follow it: the short packet at its end costs
/// less than the way through the pipe.
const ALONE_BYTES_MIN: usize = 64 << 10;

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

thread_local! {
    /// The worker's pipe. Empty, or gone, between calls.
    static PIPE: RefCell<Option<Pipe>> = const { RefCell::new(None) };
}

/// Sends `parts` in order, as much as the socket takes; `more`: other bytes follow at once.
pub(super) fn send(socket: BorrowedFd<'_>, parts: &[Part<'_>], more: bool) -> io::Result<Sent> {
    if let [Part::File { file, offset, len }] = *parts
        && (!more || len >= ALONE_BYTES_MIN)
    {
        return send_alone(socket, file, offset, len);
    }
    let (mut count, mut rest) = (0, Rest { parts, done: 0 });
    // Taken out, and put back only when it is empty again.
    let pipe = match PIPE.take() {
        Some(pipe) => pipe,
        None => Pipe::new()?,
    };
    while !rest.parts.is_empty() {
        let turn = pipe.fill(&mut rest).and_then(|filled| {
            let more = more || !rest.parts.is_empty();
            Ok((filled, pipe.empty(socket, filled, more)?))
        });
        match turn {
            Ok((filled, taken)) => {
                count += taken;
                if taken < filled {
                    return Ok(Sent { count, full: true });
                }
            }
            Err(error) if count == 0 => return Err(error),
            // Said again at the next call, if it lasts.
            Err(error) => {
                let full = error.kind() == io::ErrorKind::WouldBlock;
                return Ok(Sent { count, full });
            }
        }
    }
    PIPE.set(Some(pipe));
    Ok(Sent { count, full: false })
}

fn send_alone(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    mut offset: u64,
    len: usize,
) -> io::Result<Sent> {
    let send = |left| rustix::fs::sendfile(socket, file, Some(&mut offset), left);
    match until_full(len, send)? {
        Sent { count: 0, .. } => Err(cut()),
        sent => Ok(sent),
    }
}

/// Calls `send` with what is left of `len` bytes until none are, or it says itself that the socket is
/// full, or that there is nothing more to send. A call that sent less than it was asked to says neither:
/// a signal (`SIGSTOP`, a debugger, a frozen container) ends `sendfile` early, and a socket that is not full
/// never tells that it has room.
///
/// # Errors
/// What the first call fails with; it is said again at the next one where bytes were sent before.
pub(super) fn until_full(
    len: usize,
    mut send: impl FnMut(usize) -> rustix::io::Result<usize>,
) -> io::Result<Sent> {
    let mut sent = Sent::default();
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

/// Parts not gathered yet; of the first one, `done` bytes are.
struct Rest<'a> {
    parts: &'a [Part<'a>],
    done: usize,
}

impl Pipe {
    fn new() -> io::Result<Pipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller one does as well, in more turns.
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        Ok(Pipe { read, write })
    }

    /// Gathers until the pipe is full, enough is in it, or nothing is left. Never 0 bytes.
    fn fill(&self, rest: &mut Rest<'_>) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(part) = rest.parts.first()
            && filled < GATHER_BYTES_MAX
        {
            let wanted = (part.len() - rest.done).min(GATHER_BYTES_MAX - filled);
            match self.refer(part, rest.done, wanted) {
                Ok(0) => return Err(cut()),
                Ok(count) => {
                    filled += count;
                    rest.done += count;
                }
                Err(Errno::AGAIN) if filled > 0 => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if rest.done == part.len() {
                *rest = Rest {
                    parts: rest.parts.get(1..).unwrap_or(&[]),
                    done: 0,
                };
            }
        }
        Ok(filled)
    }

    /// Puts references to pages of a part into the pipe.
    fn refer(&self, part: &Part<'_>, done: usize, wanted: usize) -> rustix::io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        match part {
            Part::File { file, offset, .. } => {
                let mut offset = offset + done as u64;
                splice(file, Some(&mut offset), &self.write, None, wanted, flags)
            }
            Part::Memory(bytes) => {
                let bytes = bytes.get(done..done + wanted).unwrap_or(&[]);
                super::tcp::refer(&self.write, bytes)
            }
        }
    }

    /// Fewer bytes than are in it: the socket is full. Signals end this call early only where it waits, and
    /// another one each time would cost slow viewers a tenth more.
    fn empty(&self, socket: BorrowedFd<'_>, filled: usize, more: bool) -> io::Result<usize> {
        let more = if more {
            SpliceFlags::MORE
        } else {
            SpliceFlags::empty()
        };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK | more;
        Ok(splice(&self.read, None, socket, None, filled, flags)?)
    }
}

fn cut() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the file was cut while it was sent",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    /// It waited for room that was there already, until the client was taken to be stalled.
    #[test]
    fn a_file_that_was_cut_is_no_full_socket() {
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(70_000).unwrap();
        let part = |offset: u64| Part::File {
            file: file.as_fd(),
            offset,
            len: 200_000,
        };
        let sent = send(socket.as_fd(), &[part(0)], false).unwrap();
        assert_eq!((sent.count, sent.full), (70_000, false));
        assert!(send(socket.as_fd(), &[part(70_000)], false).is_err());
    }

    #[test]
    fn what_a_signal_ends_early_is_no_full_socket() {
        let told = [Ok(65_000), Err(Errno::INTR), Ok(35_000)];
        let mut told = told.into_iter();
        let sent = until_full(100_000, |_| told.next().unwrap()).unwrap();
        assert_eq!((sent.count, sent.full), (100_000, false));
        let mut told = [Ok(65_000), Err(Errno::AGAIN)].into_iter();
        let sent = until_full(100_000, |_| told.next().unwrap()).unwrap();
        assert_eq!((sent.count, sent.full), (65_000, true));
        let mut told = [Ok(65_000), Err(Errno::PIPE)].into_iter();
        let sent = until_full(100_000, |_| told.next().unwrap()).unwrap();
        assert_eq!((sent.count, sent.full), (65_000, false));
        assert!(until_full(1, |_| Err(Errno::PIPE)).is_err());
    }

    #[test]
    fn memory_arrives_as_it_was_in_whatever_parts() {
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
            let parts = [Part::Memory(one), Part::Memory(other)];
            let parts = if other.is_empty() {
                &parts[..1]
            } else {
                &parts
            };
            match send(socket.as_fd(), parts, false) {
                Ok(sent) => at += sent.count,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        drop(socket);
        assert!(reading.join().unwrap() == bytes);
    }
}
