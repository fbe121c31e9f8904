//! Pipes in which bytes of a storage wait, uncopied, until they are sent on.
//!
//! Each takes two descriptors, and holds up to 256 pages of the kernel's memory, or as many larger pieces
//! of what came; so there are few, and who gets none copies.

use bytes::Bytes;
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Room asked for in each, in bytes: a slot for each of 256 pages (or pieces of several).
const PIPE_BYTES: usize = 1 << 20;
/// One with less is of no use. (A user who has no privilege and many pipes is given small ones.)
const PIPE_BYTES_MIN: usize = 128 << 10;

/// Pipes that are there, and room for more.
pub(crate) struct Pipes(Arc<Mutex<Spare>>);

struct Spare {
    empty: Vec<Arc<Ends>>,
    /// How many may be opened beside those that are there.
    left: usize,
}

struct Ends {
    read: OwnedFd,
    write: OwnedFd,
}

/// Bytes on their way from a socket to another one. What is said to be in it is taken from it once,
/// in order, by whoever was told.
pub struct Pipe {
    ends: Arc<Ends>,
    spare: Arc<Mutex<Spare>>,
}

/// What came of a try to fill a pipe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// So many bytes; none at their end.
    Bytes(usize),
    /// There are bytes, and no room for them.
    Full,
}

impl Pipes {
    /// At most `most` at a time.
    pub(crate) fn new(most: usize) -> Pipes {
        let (empty, left) = (Vec::new(), most);
        Pipes(Arc::new(Mutex::new(Spare { empty, left })))
    }

    /// An empty one. `None`: too many are in use, or the kernel gives none.
    pub(crate) fn take(&self) -> Option<Pipe> {
        let mut spare = lock(&self.0);
        let ends = match spare.empty.pop() {
            Some(ends) => ends,
            None => {
                let left = spare.left.checked_sub(1)?;
                let ends = Ends::new().ok()?;
                spare.left = left;
                Arc::new(ends)
            }
        };
        let spare = self.0.clone();
        Some(Pipe { ends, spare })
    }
}

impl Ends {
    fn new() -> io::Result<Ends> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // What it has got is what counts.
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        if fcntl_getpipe_size(&write)? < PIPE_BYTES_MIN {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        Ok(Ends { read, write })
    }
}

impl Pipe {
    /// Moves up to `most` bytes of a socket into it.
    ///
    /// # Errors
    /// `WouldBlock` where the socket has none; what is wrong with it.
    pub(crate) fn fill(&self, socket: BorrowedFd<'_>, most: usize) -> io::Result<Filled> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let most = most.min(PIPE_BYTES);
        match rustix::pipe::splice(socket, None, &self.ends.write, None, most, flags) {
            Ok(count) => Ok(Filled::Bytes(count)),
            // Either end may be why. The socket is asked, as nobody else takes bytes of it.
            Err(Errno::AGAIN) if ioctl_fionread(socket)? > 0 => Ok(Filled::Full),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the next `bytes` of those that are in it into memory.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn read(&self, bytes: usize) -> io::Result<Bytes> {
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

/// The end that is read.
impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ends.read.as_fd()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let empty = ioctl_fionread(&self.ends.read) == Ok(0);
        let mut spare = lock(&self.spare);
        if empty {
            spare.empty.push(self.ends.clone());
        } else {
            // Closed with what nobody took.
            spare.left += 1;
        }
    }
}

fn lock(spare: &Mutex<Spare>) -> MutexGuard<'_, Spare> {
    spare.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, UnixStream) {
        let (one, other) = UnixStream::pair().unwrap();
        other.set_nonblocking(true).unwrap();
        (one, other)
    }

    #[test]
    fn an_empty_pipe_is_used_again_and_another_one_is_not() {
        let pipes = Pipes::new(2);
        let (mut one, other) = pair();
        let pipe = pipes.take().unwrap();
        let number = |pipe: &Pipe| std::os::fd::AsRawFd::as_raw_fd(&pipe.as_fd());
        let first = number(&pipe);
        one.write_all(b"film").unwrap();
        assert_eq!(pipe.fill(other.as_fd(), 3).unwrap(), Filled::Bytes(3));
        assert_eq!(pipe.read(3).unwrap(), &b"fil"[..]);
        drop(pipe);
        let (again, beside) = (pipes.take().unwrap(), pipes.take().unwrap());
        assert_eq!(number(&again), first);
        assert!(
            pipes.take().is_none(),
            "there are no more than there may be"
        );
        assert_eq!(again.fill(other.as_fd(), 9).unwrap(), Filled::Bytes(1));
        drop(again);
        let new = pipes.take().unwrap();
        assert!(
            new.read(1).is_err(),
            "what nobody took is in no other's way"
        );
        drop((beside, new));
    }

    #[test]
    fn it_says_which_end_has_no_more() {
        let pipes = Pipes::new(1);
        let pipe = pipes.take().unwrap();
        let (mut one, other) = pair();
        let error = pipe.fill(other.as_fd(), 9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let mut count = 0;
        loop {
            one.write_all(&[7; 4096]).unwrap();
            match pipe.fill(other.as_fd(), usize::MAX).unwrap() {
                Filled::Bytes(more) => count += more,
                Filled::Full => break,
            }
        }
        assert!(pipe.read(count).unwrap().iter().all(|byte| *byte == 7));
        drop(one);
        let rest = pipe.fill(other.as_fd(), usize::MAX).unwrap();
        assert_eq!(rest, Filled::Bytes(4096));
        assert_eq!(pipe.fill(other.as_fd(), 9).unwrap(), Filled::Bytes(0));
    }
}
