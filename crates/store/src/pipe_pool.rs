//! Pipes that carry bytes from a storage's socket to a client's socket without a copy.
//!
//! Each pipe uses two file descriptors. A pipe has up to 256 slots, and each slot holds a page of
//! kernel memory or a larger fragment of received data. The number of pipes is therefore bounded.
//! Responses without a pipe are copied.

use bytes::Bytes;
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requested capacity of a pipe in bytes. A pipe of this capacity has 256 slots, each for one page
/// or one fragment of received data.
const PIPE_BYTES: usize = 1 << 20;
/// Minimum capacity of a pipe in bytes. Smaller pipes are not worth using. The kernel creates
/// smaller pipes for unprivileged users that already have many pipes.
const PIPE_BYTES_MIN: usize = 128 << 10;

/// Empty pipes, and the number of pipes that may still be opened.
pub(crate) struct PipePool(Arc<Mutex<SparePipes>>);

struct SparePipes {
    empty: Vec<Arc<PipeEnds>>,
    /// Number of pipes that may still be opened.
    left: usize,
}

struct PipeEnds {
    read: OwnedFd,
    write: OwnedFd,
}

/// A pipe that carries bytes from one socket to another. The reader must take the bytes in order,
/// and each byte exactly once.
pub struct Pipe {
    ends: Arc<PipeEnds>,
    spare: Arc<Mutex<SparePipes>>,
}

/// The result of an attempt to fill a pipe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SpliceOutcome {
    /// The number of bytes moved into the pipe. It is 0 at the end of the stream.
    Bytes(usize),
    /// The socket has bytes, but the pipe is full.
    Full,
}

impl PipePool {
    /// Creates a pool of at most `pipes_max` pipes.
    pub(crate) fn new(pipes_max: usize) -> PipePool {
        let (empty, left) = (Vec::new(), pipes_max);
        PipePool(Arc::new(Mutex::new(SparePipes { empty, left })))
    }

    /// Takes an empty pipe. Returns `None` if all pipes are in use, or if the kernel cannot create
    /// a pipe with enough capacity.
    pub(crate) fn take_pipe(&self) -> Option<Pipe> {
        let mut spare = lock_spare(&self.0);
        let ends = match spare.empty.pop() {
            Some(ends) => ends,
            None => {
                let left = spare.left.checked_sub(1)?;
                let ends = PipeEnds::new().ok()?;
                spare.left = left;
                Arc::new(ends)
            }
        };
        let spare = self.0.clone();
        Some(Pipe { ends, spare })
    }
}

impl PipeEnds {
    fn new() -> io::Result<PipeEnds> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Ignores the error, because the resulting capacity is checked next.
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        if fcntl_getpipe_size(&write)? < PIPE_BYTES_MIN {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        Ok(PipeEnds { read, write })
    }
}

impl Pipe {
    /// Moves up to `bytes_max` bytes from a socket into the pipe.
    ///
    /// # Errors
    /// `WouldBlock` when the socket has no bytes. Any other error is an error of the socket.
    pub(crate) fn splice_from_socket(
        &self,
        socket: BorrowedFd<'_>,
        bytes_max: usize,
    ) -> io::Result<SpliceOutcome> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let bytes_max = bytes_max.min(PIPE_BYTES);
        match rustix::pipe::splice(socket, None, &self.ends.write, None, bytes_max, flags) {
            Ok(count) => Ok(SpliceOutcome::Bytes(count)),
            // `EAGAIN` means that either the socket is empty or the pipe is full. If the socket has
            // bytes, the pipe is full, because nothing else reads from the socket.
            Err(Errno::AGAIN) if ioctl_fionread(socket)? > 0 => Ok(SpliceOutcome::Full),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the next `bytes` bytes of the pipe into memory.
    ///
    /// # Errors
    /// When the pipe contains fewer bytes.
    pub fn read_into_memory(&self, bytes: usize) -> io::Result<Bytes> {
        let (mut into, mut done) = (vec![0; bytes], 0);
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::read(&self.ends.read, rest)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(into.into())
    }
}

/// The descriptor of the pipe's reading end.
impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ends.read.as_fd()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let empty = ioctl_fionread(&self.ends.read) == Ok(0);
        let mut spare = lock_spare(&self.spare);
        if empty {
            spare.empty.push(self.ends.clone());
        } else {
            // The pipe still contains unread bytes, so it is closed and not reused.
            spare.left += 1;
        }
    }
}

fn lock_spare(spare: &Mutex<SparePipes>) -> MutexGuard<'_, SparePipes> {
    spare.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn socket_pair() -> (UnixStream, UnixStream) {
        let (one, other) = UnixStream::pair().unwrap();
        other.set_nonblocking(true).unwrap();
        (one, other)
    }

    #[test]
    fn an_empty_pipe_is_reused_and_a_filled_one_is_not() {
        let pipes = PipePool::new(2);
        let (mut one, other) = socket_pair();
        let pipe = pipes.take_pipe().unwrap();
        let number = |pipe: &Pipe| std::os::fd::AsRawFd::as_raw_fd(&pipe.as_fd());
        let first = number(&pipe);
        one.write_all(b"film").unwrap();
        assert_eq!(
            pipe.splice_from_socket(other.as_fd(), 3).unwrap(),
            SpliceOutcome::Bytes(3)
        );
        assert_eq!(pipe.read_into_memory(3).unwrap(), &b"fil"[..]);
        drop(pipe);
        let (again, beside) = (pipes.take_pipe().unwrap(), pipes.take_pipe().unwrap());
        assert_eq!(number(&again), first);
        assert!(pipes.take_pipe().is_none(), "the pool has no further pipe");
        assert_eq!(
            again.splice_from_socket(other.as_fd(), 9).unwrap(),
            SpliceOutcome::Bytes(1)
        );
        drop(again);
        let new = pipes.take_pipe().unwrap();
        assert!(
            new.read_into_memory(1).is_err(),
            "unread bytes do not affect another pipe"
        );
        drop((beside, new));
    }

    #[test]
    fn filling_reports_whether_the_socket_or_the_pipe_stopped_it() {
        let pipes = PipePool::new(1);
        let pipe = pipes.take_pipe().unwrap();
        let (mut one, other) = socket_pair();
        let error = pipe.splice_from_socket(other.as_fd(), 9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let mut count = 0;
        loop {
            one.write_all(&[7; 4096]).unwrap();
            match pipe.splice_from_socket(other.as_fd(), usize::MAX).unwrap() {
                SpliceOutcome::Bytes(more) => count += more,
                SpliceOutcome::Full => break,
            }
        }
        assert!(
            pipe.read_into_memory(count)
                .unwrap()
                .iter()
                .all(|byte| *byte == 7)
        );
        drop(one);
        let rest = pipe.splice_from_socket(other.as_fd(), usize::MAX).unwrap();
        assert_eq!(rest, SpliceOutcome::Bytes(4096));
        assert_eq!(
            pipe.splice_from_socket(other.as_fd(), 9).unwrap(),
            SpliceOutcome::Bytes(0)
        );
    }
}
