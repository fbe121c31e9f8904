//! Sending bytes that wait in a pipe: from one socket to another they need not be copied.
//!
//! HTTP puts slices of memory together, and a pipe is none. So a slice of memory that nobody looks at
//! stands in HTTP's place for bytes in a pipe, and where slices are written, the next pipe of the
//! connection is emptied in its stead. What stands in is never sent itself.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::gather::{Sent, until_full};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

/// Longest slice that stands for bytes in a pipe.
const STAND_IN_BYTES: usize = 1 << 20;

/// Zeros that are never looked at, so that no page of them need be there.
static STAND_IN: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; STAND_IN_BYTES]);

/// Bytes that wait in a pipe, to be taken once.
#[derive(Clone)]
pub(crate) struct Piped {
    pipe: Arc<dyn AsFd + Send + Sync>,
    left: usize,
}

impl Piped {
    /// `left` bytes are in the pipe now, behind those that were named before them.
    pub(crate) fn new(pipe: Arc<dyn AsFd + Send + Sync>, left: usize) -> Piped {
        Piped { pipe, left }
    }

    /// Bytes not taken yet.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// So many were taken.
    pub(crate) fn advance(&mut self, count: usize) {
        assert!(count <= self.left, "advanced past the end of a pipe");
        self.left -= count;
    }

    /// What stands for the next of them.
    pub(crate) fn stand_in(&self) -> &[u8] {
        STAND_IN.get(..self.left.min(STAND_IN_BYTES)).unwrap_or(&[])
    }

    /// Takes all of them into memory.
    ///
    /// # Errors
    /// When there are fewer, or the kernel says so.
    pub(crate) fn read(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.left];
        while self.left > 0 {
            let done = bytes.len() - self.left;
            match rustix::io::read(&*self.pipe, bytes.get_mut(done..).unwrap_or(&mut []))? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.left -= count,
            }
        }
        Ok(bytes)
    }

    /// Moves those that [`Piped::stand_in`] stands for into a socket, as many as it takes.
    fn splice(&mut self, socket: BorrowedFd<'_>, more: bool) -> io::Result<Sent> {
        let more = if more {
            SpliceFlags::MORE
        } else {
            SpliceFlags::empty()
        };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK | more;
        let (pipe, wanted) = (&*self.pipe, self.stand_in().len());
        let sent = until_full(wanted, |left| {
            match splice(pipe, None, socket, None, left, flags)? {
                // There is less in it than was said.
                0 => Err(Errno::PIPE),
                count => Ok(count),
            }
        })?;
        self.left -= sent.count;
        Ok(sent)
    }
}

impl std::fmt::Debug for Piped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Piped({} bytes)", self.left)
    }
}

/// Whether this slice stands for bytes in a pipe.
pub(super) fn stands_in(slice: &[u8]) -> bool {
    STAND_IN.as_ptr_range().contains(&slice.as_ptr()) && !slice.is_empty()
}

/// The pipes whose bytes a connection is to send next, in the order of their slices.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    any: AtomicBool,
    next: Mutex<VecDeque<Piped>>,
}

impl Pipes {
    /// HTTP is given the slice that stands for these.
    pub(crate) fn add(&self, piped: &Piped) {
        self.lock().push_back(piped.clone());
        self.any.store(true, Relaxed);
    }

    /// Writes as much of `slices` as the socket takes. `memory` writes those that are what they seem;
    /// it is told whether others follow at once. `None`: all of them are.
    pub(super) fn send(
        &self,
        socket: BorrowedFd<'_>,
        slices: &[IoSlice<'_>],
        memory: impl Fn(&[IoSlice<'_>], bool) -> io::Result<Sent>,
    ) -> Option<io::Result<Sent>> {
        if !self.any.load(Relaxed) || !slices.iter().any(|slice| stands_in(slice)) {
            return None;
        }
        let mut next = self.lock();
        let sent = send(&mut next, socket, slices, memory);
        self.any.store(!next.is_empty(), Relaxed);
        Some(sent)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Piped>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send(
    next: &mut VecDeque<Piped>,
    socket: BorrowedFd<'_>,
    slices: &[IoSlice<'_>],
    memory: impl Fn(&[IoSlice<'_>], bool) -> io::Result<Sent>,
) -> io::Result<Sent> {
    let (mut sent, mut rest) = (Sent::default(), slices);
    while let Some((first, after)) = rest.split_first()
        && !sent.full
    {
        let turn = if stands_in(first) {
            rest = after;
            empty(next, socket, first, !rest.is_empty())
        } else {
            let end = rest.iter().position(|slice| stands_in(slice));
            let (run, pipes) = rest.split_at(end.unwrap_or(rest.len()));
            rest = pipes;
            memory(run, !rest.is_empty())
        };
        match turn {
            Ok(turn) => {
                sent.count += turn.count;
                sent.full = turn.full;
            }
            Err(error) if sent.count == 0 => return Err(error),
            // Said again at the next call, if it lasts.
            Err(error) => {
                sent.full = error.kind() == io::ErrorKind::WouldBlock;
                break;
            }
        }
    }
    Ok(sent)
}

/// Empties the next pipe, in whose place `slice` is.
fn empty(
    next: &mut VecDeque<Piped>,
    socket: BorrowedFd<'_>,
    slice: &[u8],
    more: bool,
) -> io::Result<Sent> {
    let named = next
        .front_mut()
        .filter(|piped| piped.stand_in().len() == slice.len());
    // Never what only stands in.
    let piped = named.ok_or_else(|| io::Error::other("a pipe was taken for another one"))?;
    let whole = piped.left == slice.len();
    let sent = piped.splice(socket, more || !whole)?;
    if piped.left == 0 {
        next.pop_front();
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::super::mapped::send_memory;
    use super::*;
    use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;

    /// A pipe that holds these bytes.
    fn pipe(bytes: &[u8]) -> Arc<OwnedFd> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        fcntl_setpipe_size(&write, STAND_IN_BYTES).unwrap();
        std::fs::File::from(write).write_all(bytes).unwrap();
        Arc::new(read)
    }

    fn film(len: usize) -> Vec<u8> {
        (0..len).map(|n| (n % 251) as u8 + 1).collect()
    }

    /// Writes as HTTP does: what is left of each slice, until nothing is.
    fn write_all(
        pipes: &Pipes,
        socket: &std::os::unix::net::UnixStream,
        head: &[u8],
        mut all: Vec<Piped>,
    ) -> io::Result<()> {
        let mut head = head;
        while !head.is_empty() || all.iter().any(|piped| piped.left() > 0) {
            let stand_ins = all.iter().map(Piped::stand_in);
            let slices: Vec<_> = std::iter::once(head)
                .chain(stand_ins)
                .filter(|slice| !slice.is_empty())
                .map(IoSlice::new)
                .collect();
            let memory = |run: &[IoSlice<'_>], more| send_memory(socket.as_fd(), run, more);
            let sent = pipes.send(socket.as_fd(), &slices, memory);
            let mut count = match sent.unwrap_or_else(|| memory(&slices, false)) {
                Ok(sent) => sent.count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            let of_head = count.min(head.len());
            head = &head[of_head..];
            count -= of_head;
            for piped in &mut all {
                let here = count.min(piped.left());
                piped.advance(here);
                count -= here;
            }
        }
        Ok(())
    }

    #[test]
    fn bytes_of_several_pipes_arrive_in_order() {
        let (socket, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let bytes = film(700_000);
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            peer.read_to_end(&mut all).unwrap();
            all
        });
        let pipes = Pipes::default();
        let all: Vec<_> = [
            &bytes[..300_000],
            &bytes[300_000..300_007],
            &bytes[300_007..],
        ]
        .map(|part| Piped::new(pipe(part), part.len()))
        .into();
        all.iter().for_each(|piped| pipes.add(piped));
        write_all(&pipes, &socket, b"head", all).unwrap();
        assert!(pipes.lock().is_empty() && !pipes.any.load(Relaxed));
        drop(socket);
        assert!(reading.join().unwrap() == [&b"head"[..], &bytes].concat());
    }

    #[test]
    fn what_stands_in_is_never_sent() {
        let (socket, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let (one, other) = (film(100), film(200));
        let pipes = Pipes::default();
        pipes.add(&Piped::new(pipe(&one), one.len()));
        let strange = Piped::new(pipe(&other), other.len());
        let error = write_all(&pipes, &socket, b"", vec![strange]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Other);
        drop(socket);
        let mut came = Vec::new();
        peer.read_to_end(&mut came).unwrap();
        assert_eq!(came, b"");
    }

    #[test]
    fn what_is_to_be_seen_is_read() {
        let bytes = film(200_000);
        let piped = Piped::new(pipe(&bytes), bytes.len());
        assert!(piped.read().unwrap() == bytes);
        let short = Piped::new(pipe(&bytes), bytes.len() + 1);
        assert!(short.read().is_err());
    }
}
