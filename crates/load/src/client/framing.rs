//! Where an answer's body ends (RFC 9112, 6.3 and 7.1): what is body, what is framing.

use super::{Fault, Sink};

/// Longest line of a chunk's size with its extensions, and of a trailer.
const LINE_MAX: u32 = 4096;

/// Most lines after the last chunk.
const TRAILERS_MAX: u32 = 128;

/// How a body is delimited, and how much of it is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// In chunks.
    Chunked(Chunks),
    /// Until the connection ends.
    Close,
}

/// A place in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    /// In the line of a chunk's size: its value so far, digits, bytes of the line, extension begun.
    Size(u64, u32, u32, bool),
    /// In a chunk's data; so many bytes of it are to come.
    Data(u64),
    /// After a chunk's data: its line break.
    Break,
    /// After the last chunk: lines so far, bytes of this line.
    Trailer(u32, u32),
    /// At the end.
    End,
}

impl Framing {
    pub(super) fn chunked() -> Framing {
        Framing::Chunked(Chunks::Size(0, 0, 0, false))
    }

    /// Whether the body is whole.
    pub(super) fn is_done(&self) -> bool {
        matches!(
            self,
            Framing::None | Framing::Length(0) | Framing::Chunked(Chunks::End)
        )
    }

    /// Bytes of the body that come next, without framing between.
    pub(super) fn ahead(&self) -> u64 {
        match *self {
            Framing::Length(rest) | Framing::Chunked(Chunks::Data(rest)) => rest,
            Framing::Close => u64::MAX,
            _ => 0,
        }
    }

    /// So many bytes of the body came, at most [`Framing::ahead`].
    pub(super) fn advance(&mut self, count: u64) {
        match self {
            Framing::Length(rest) => *rest -= count,
            Framing::Chunked(Chunks::Data(rest)) => {
                *rest -= count;
                if *rest == 0 {
                    *self = Framing::Chunked(Chunks::Break);
                }
            }
            _ => {}
        }
    }

    /// Takes bytes as they came; returns how many belong to this answer, and how many of those
    /// are body.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(usize, u64), Fault> {
        let mut at = 0;
        let mut body = 0;
        while !self.is_done() && at < bytes.len() {
            let ahead = self.ahead();
            if ahead > 0 {
                let count = ahead.min((bytes.len() - at) as u64) as usize;
                sink.bytes(&bytes[at..at + count])?;
                self.advance(count as u64);
                at += count;
                body += count as u64;
            } else if let Framing::Chunked(chunks) = self {
                chunks.step(bytes[at])?;
                at += 1;
            }
        }
        Ok((at, body))
    }
}

impl Chunks {
    /// One byte of framing.
    fn step(&mut self, byte: u8) -> Result<(), Fault> {
        *self = match (*self, byte) {
            (Chunks::Size(size, digits, _, _), b'\n') if digits > 0 => match size {
                0 => Chunks::Trailer(0, 0),
                size => Chunks::Data(size),
            },
            (Chunks::Size(size, digits, line, extension), byte) if line < LINE_MAX => {
                match char::from(byte).to_digit(16) {
                    Some(digit) if !extension && digits < 15 => {
                        Chunks::Size(size << 4 | u64::from(digit), digits + 1, line + 1, false)
                    }
                    Some(_) if !extension => return Err(Fault::Chunk),
                    None if digits == 0 => return Err(Fault::Chunk),
                    None if !extension && !matches!(byte, b';' | b'\r' | b' ' | b'\t') => {
                        return Err(Fault::Chunk);
                    }
                    _ => Chunks::Size(size, digits, line + 1, true),
                }
            }
            (Chunks::Break, b'\r') => Chunks::Break,
            (Chunks::Break, b'\n') => Chunks::Size(0, 0, 0, false),
            (Chunks::Trailer(_, 0), b'\n') => Chunks::End,
            (Chunks::Trailer(lines, _), b'\n') if lines < TRAILERS_MAX => {
                Chunks::Trailer(lines + 1, 0)
            }
            (Chunks::Trailer(lines, 0), b'\r') => Chunks::Trailer(lines, 0),
            (Chunks::Trailer(lines, line), byte) if line < LINE_MAX && byte != b'\n' => {
                Chunks::Trailer(lines, line + 1)
            }
            _ => return Err(Fault::Chunk),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Keep;
    use proptest::prelude::*;

    fn keep() -> Keep {
        Keep {
            max: 1 << 20,
            ..Keep::default()
        }
    }

    /// The body of a chunked stream that is fed in pieces of these lengths.
    fn decoded(stream: &[u8], pieces: &[usize]) -> Result<(Vec<u8>, bool, usize), Fault> {
        let mut framing = Framing::chunked();
        let mut sink = keep();
        let mut at = 0;
        for piece in pieces.iter().copied().cycle() {
            let end = (at + piece.max(1)).min(stream.len());
            let (used, _) = framing.feed(&stream[at..end], &mut sink)?;
            at += used;
            if framing.is_done() || at == stream.len() {
                break;
            }
        }
        Ok((sink.body, framing.is_done(), at))
    }

    #[test]
    fn chunks_are_put_together() {
        let stream =
            b"4\r\nWiki\r\n7;a=b\r\npedia i\r\nB \r\nn \r\nchunks.\r\n0\r\nX: y\r\n\r\nnext";
        let (body, done, used) = decoded(stream, &[stream.len()]).unwrap();
        assert_eq!(body, b"Wikipedia in \r\nchunks.");
        assert!(done);
        assert_eq!(&stream[used..], b"next");
    }

    #[test]
    fn malformed_chunks_are_faults() {
        for stream in [
            &b"x\r\n"[..],
            b"\r\n",
            b"-1\r\n",
            b"1x\r\n",
            b"1\r\nab\r\n",
            b"fffffffffffffffff\r\n",
        ] {
            assert_eq!(decoded(stream, &[1]), Err(Fault::Chunk), "{stream:?}");
        }
        let endless = [b"1;".to_vec(), vec![b'x'; LINE_MAX as usize + 1]].concat();
        assert_eq!(decoded(&endless, &[100]), Err(Fault::Chunk));
        let trailers = format!("0\r\n{}", "x: y\r\n".repeat(TRAILERS_MAX as usize + 2));
        assert_eq!(decoded(trailers.as_bytes(), &[100]), Err(Fault::Chunk));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            pieces in prop::collection::vec(1usize..50, 1..8),
        ) {
            let mut stream = Vec::new();
            for chunk in &chunks {
                stream.extend(format!("{:x}\r\n", chunk.len()).bytes());
                stream.extend(chunk);
                stream.extend(b"\r\n");
            }
            stream.extend(b"0\r\n\r\n");
            let (body, done, used) = decoded(&stream, &pieces).unwrap();
            prop_assert_eq!(body, chunks.concat());
            prop_assert!(done);
            prop_assert_eq!(used, stream.len());
        }

        #[test]
        fn anything_ends_without_panic(stream in prop::collection::vec(any::<u8>(), 1..200)) {
            let _ = decoded(&stream, &[7]);
        }
    }
}
