//! Sends a response's head, chunk and framing to a socket, each part in the cheapest way.
//!
//! Bytes in memory are copied by one vectored write. File ranges and arena pages are sent by
//! reference ([`super::splice`]), and bytes in a pipe are moved ([`rustix::pipe::splice`]). A short
//! file range is written from the file's mapping, because the copy costs less than another system
//! call.

use std::io::{self, ErrorKind, IoSlice};
use std::iter::Peekable;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use rustix::pipe::SpliceFlags;

use super::splice::{self, ReferencedPart, SendOutcome, repeat_until_full};
use crate::Chunk;
use crate::body::part::{BodyFile, BodyPart, PipeBytes};

/// Parts shorter than this are copied, because a copy costs no more than another system call.
const UNCOPIED_BYTES_MIN: u64 = 8 << 10;
/// Limit on the number of slices in one vectored write.
const SLICES_MAX: usize = 64;
/// Limit on the bytes of a file that one call copies when the kernel cannot send by reference.
const COPY_BYTES_MAX: usize = 64 << 10;

/// The bytes to send next, in the order of the fields.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingParts<'a> {
    /// The response head, or the size line of a chunk in chunked framing.
    pub(crate) before: &'a [u8],
    pub(crate) chunk: Option<&'a Chunk>,
    /// The chunked framing that follows the chunk.
    pub(crate) after: &'a [u8],
}

/// A part to send. The variants differ in the method of sending.
#[derive(Clone, Copy)]
enum OutgoingItem<'a> {
    Copied(&'a [u8]),
    /// Bytes in the mapping of a file. The kernel can copy them only while the file is not
    /// truncated.
    Mapped(&'a [u8]),
    Uncopied(ReferencedPart<'a>),
    Pipe(&'a PipeBytes),
}

impl<'a> OutgoingParts<'a> {
    fn outgoing_items(self) -> impl Iterator<Item = OutgoingItem<'a>> {
        let framing = |bytes: &'a [u8]| (!bytes.is_empty()).then_some(OutgoingItem::Copied(bytes));
        let (parts, file) = match self.chunk {
            Some(chunk) => (chunk.unsent_parts(), chunk.file()),
            None => (&[][..], None),
        };
        let parts = parts
            .iter()
            .map(move |part| OutgoingItem::from_part(part, file));
        let before = framing(self.before).into_iter();
        before.chain(parts).chain(framing(self.after))
    }

    /// Sends as much as the socket accepts.
    ///
    /// # Errors
    /// The error of the first system call, or `UnexpectedEof` if a file was truncated. After the
    /// first sent byte, this call returns no error. The next call returns the error.
    pub(super) fn send_to(self, socket: BorrowedFd<'_>) -> io::Result<SendOutcome> {
        let mut items = self.outgoing_items().peekable();
        let mut sent = SendOutcome::default();
        while let Some(first) = items.peek()
            && !sent.full
        {
            let (offered, turn) = match first {
                OutgoingItem::Copied(_) | OutgoingItem::Mapped(_) => {
                    send_copied(socket, &mut items)
                }
                OutgoingItem::Uncopied(_) => send_uncopied(socket, &mut items),
                OutgoingItem::Pipe(pipe) => {
                    let pipe = *pipe;
                    items.next();
                    (pipe.len(), move_pipe(socket, pipe, items.peek().is_some()))
                }
            };
            match turn {
                Ok(turn) => {
                    sent.count += turn.count;
                    sent.full = turn.full;
                    if turn.count < offered {
                        break;
                    }
                }
                Err(error) if sent.count == 0 => return Err(error),
                Err(error) => {
                    sent.full = error.kind() == ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        Ok(sent)
    }
}

impl<'a> OutgoingItem<'a> {
    fn from_part(part: &'a BodyPart, file: Option<&'a BodyFile>) -> OutgoingItem<'a> {
        let is_short = part.len() < UNCOPIED_BYTES_MIN;
        match (part, file) {
            (BodyPart::Bytes(bytes), _) => OutgoingItem::Copied(bytes),
            (BodyPart::Arena(bytes), _) if is_short => OutgoingItem::Copied(bytes),
            (BodyPart::Arena(bytes), _) => OutgoingItem::Uncopied(ReferencedPart::Memory(bytes)),
            (BodyPart::Pipe(pipe), _) => OutgoingItem::Pipe(pipe),
            (BodyPart::File(range), Some(file)) => match file.mapped_bytes(range) {
                Some(bytes) if is_short => OutgoingItem::Mapped(bytes),
                _ => OutgoingItem::Uncopied(ReferencedPart::File {
                    file,
                    offset: range.start,
                    len: (range.end - range.start) as usize,
                }),
            },
            // A chunk with file ranges always has a file, so this case does not occur.
            (BodyPart::File(_), None) => OutgoingItem::Copied(&[]),
        }
    }
}

type OutgoingItems<'a, I> = Peekable<I>;

/// Writes the next items that must be copied. Returns the number of bytes offered, and the result
/// of the write.
fn send_copied<'a, I: Iterator<Item = OutgoingItem<'a>>>(
    socket: BorrowedFd<'_>,
    items: &mut OutgoingItems<'a, I>,
) -> (usize, io::Result<SendOutcome>) {
    let mut slices = [IoSlice::new(b""); SLICES_MAX];
    let (mut count, mut offered, mut is_mapped) = (0, 0, false);
    for slot in &mut slices {
        let is_copied = |item: &OutgoingItem<'_>| {
            matches!(item, OutgoingItem::Copied(_) | OutgoingItem::Mapped(_))
        };
        let bytes = match items.next_if(is_copied) {
            Some(OutgoingItem::Copied(bytes)) => bytes,
            Some(OutgoingItem::Mapped(bytes)) => {
                is_mapped = true;
                bytes
            }
            _ => break,
        };
        *slot = IoSlice::new(bytes);
        offered += bytes.len();
        count += 1;
    }
    let slices = slices.get(..count).unwrap_or_default();
    let mut turn = send_slices(socket, slices, items.peek().is_some());
    if let Ok(sent) = &mut turn {
        // The kernel also writes fewer bytes if a mapped file was truncated. If the socket is not
        // full, waiting for room would never complete. The next write shows which of the two
        // occurred.
        sent.full &= !is_mapped;
    }
    (offered, turn)
}

/// Sends the next uncopied items by reference. This can fail, for example if the kernel lacks the
/// system call or if no descriptor is left for a pipe. The function then copies the first of these
/// items.
fn send_uncopied<'a, I: Iterator<Item = OutgoingItem<'a>>>(
    socket: BorrowedFd<'_>,
    items: &mut OutgoingItems<'a, I>,
) -> (usize, io::Result<SendOutcome>) {
    let parts = std::iter::from_fn(|| {
        match items.next_if(|item| matches!(item, OutgoingItem::Uncopied(_)))? {
            OutgoingItem::Uncopied(part) => Some(part),
            _ => None,
        }
    });
    let parts: Vec<ReferencedPart<'_>> = parts.collect();
    let offered = parts.iter().map(ReferencedPart::len).sum();
    let turn = splice::send_by_reference(socket, &parts, items.peek().is_some());
    let turn = turn.or_else(|error| match (error.kind(), parts.first()) {
        (ErrorKind::WouldBlock | ErrorKind::UnexpectedEof, _) | (_, None) => Err(error),
        (_, Some(part)) => send_copy(socket, part),
    });
    (offered, turn)
}

fn send_copy(socket: BorrowedFd<'_>, part: &ReferencedPart<'_>) -> io::Result<SendOutcome> {
    match *part {
        ReferencedPart::Memory(bytes) => send_slices(socket, &[IoSlice::new(bytes)], false),
        ReferencedPart::File { file, offset, len } => {
            let bytes = file.read_range(offset, len.min(COPY_BYTES_MAX))?;
            send_slices(socket, &[IoSlice::new(&bytes)], false)
        }
    }
}

/// Writes the slices. `more` tells the kernel that further bytes follow, so that it does not send a
/// short packet now.
pub(super) fn send_slices(
    socket: BorrowedFd<'_>,
    slices: &[IoSlice<'_>],
    more: bool,
) -> io::Result<SendOutcome> {
    let more = if more {
        SendFlags::MORE
    } else {
        SendFlags::empty()
    };
    let flags = SendFlags::NOSIGNAL | more;
    let mut nothing = SendAncillaryBuffer::default();
    let count = rustix::net::sendmsg(socket, slices, &mut nothing, flags)?;
    let full = count < slices.iter().map(|slice| slice.len()).sum();
    Ok(SendOutcome { count, full })
}

/// Moves bytes from a pipe into the socket.
fn move_pipe(socket: BorrowedFd<'_>, pipe: &PipeBytes, more: bool) -> io::Result<SendOutcome> {
    let more = if more {
        SpliceFlags::MORE
    } else {
        SpliceFlags::empty()
    };
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK | more;
    repeat_until_full(pipe.len(), |left| {
        match rustix::pipe::splice(pipe.read_end(), None, socket, None, left, flags)? {
            // The pipe contains fewer bytes than [`PipeBytes`] declares.
            0 => Err(Errno::PIPE),
            count => Ok(count),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::Arc;

    use super::*;
    use crate::conn::tcp::map_test_file;

    /// Regression: the connection waited for room although the socket was not full, and was cut as
    /// stalled.
    #[test]
    fn a_truncated_mapped_file_does_not_mean_a_full_socket() {
        const PAGE: u64 = 4096;
        const PAGES: u64 = 32;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        socket.set_nonblocking(true).unwrap();
        let file = Arc::new(tempfile::tempfile().unwrap());
        file.set_len(PAGES * PAGE).unwrap();
        let mapping = map_test_file(&file, (PAGES * PAGE) as usize);
        let body_file = BodyFile::new(file.clone(), Some(mapping), PAGES * PAGE, 0);
        let part = |page| BodyPart::File(page * PAGE..(page + 1) * PAGE);
        let mut chunk = Chunk::from_parts(Some(body_file), (0..PAGES).map(part).collect());
        file.set_len((PAGES - 4) * PAGE).unwrap();
        let send = |chunk: &Chunk| {
            let outgoing = OutgoingParts {
                before: b"head",
                chunk: Some(chunk),
                after: b"",
            };
            outgoing.send_to(socket.as_fd())
        };
        let sent = send(&chunk).unwrap();
        assert!(sent.count > 4 && !sent.full, "{sent:?}");
        chunk.advance((PAGES - 4) * PAGE);
        let error = send(&chunk).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::FAULT.raw_os_error()));
    }
}
