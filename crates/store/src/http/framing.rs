//! Where an answer's body ends (RFC 9112 sections 6.3 and 7.1).

use bytes::{Buf, Bytes, BytesMut};

/// Longest line of a chunk's size with its extensions, and all trailers together.
const LINE_BYTES_MAX: usize = 8 << 10;

/// What of a body is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked(Chunk),
    /// Whatever comes until the connection ends.
    Close,
    /// Nothing: the connection has ended.
    Closed,
}

/// A place in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    /// Before the line with a chunk's size.
    Size,
    /// So many bytes of a chunk are to come, at least one.
    Data(u64),
    /// Before the line break after a chunk's bytes.
    Break,
    /// Before a trailer, or the empty line at the end; bytes that trailers may still have.
    Trailer(usize),
    /// At the end.
    End,
}

impl Framing {
    pub(super) fn chunked() -> Framing {
        Framing::Chunked(Chunk::Size)
    }

    /// Whether nothing is to come.
    pub(super) fn is_over(&self) -> bool {
        matches!(
            self,
            Framing::Length(0) | Framing::Chunked(Chunk::End) | Framing::Closed
        )
    }

    /// Bytes of the body that come next, without framing among them; 0: framing comes next.
    pub(super) fn ahead(&self) -> u64 {
        match *self {
            Framing::Length(left) | Framing::Chunked(Chunk::Data(left)) => left,
            Framing::Close => u64::MAX,
            _ => 0,
        }
    }

    /// Takes what there is of the body from what was read; none: more must be read, or it is over.
    ///
    /// # Errors
    /// What is wrong with the chunks.
    pub(super) fn take(&mut self, read: &mut BytesMut) -> Result<Option<Bytes>, &'static str> {
        while self.ahead() == 0 && self.step(read)? {}
        let here = usize::try_from(self.ahead())
            .unwrap_or(usize::MAX)
            .min(read.len());
        if here == 0 {
            return Ok(None);
        }
        self.pass(here as u64);
        Ok(Some(read.split_to(here).freeze()))
    }

    /// So many of the bytes that come next were taken; at most [`Framing::ahead`].
    pub(super) fn pass(&mut self, here: u64) {
        match self {
            Framing::Length(left) => *left -= here,
            Framing::Chunked(Chunk::Data(left)) if *left > here => *left -= here,
            Framing::Chunked(place) => *place = Chunk::Break,
            _ => {}
        }
    }

    /// Passes one line of framing; false: it is not there yet, or none follows.
    fn step(&mut self, read: &mut BytesMut) -> Result<bool, &'static str> {
        let Framing::Chunked(place) = self else {
            return Ok(false);
        };
        if *place == Chunk::End {
            return Ok(false);
        }
        let Some(end) = read.iter().position(|byte| *byte == b'\n') else {
            let long = read.len() > LINE_BYTES_MAX;
            return if long {
                Err("a line without end between chunks")
            } else {
                Ok(false)
            };
        };
        let line = read.get(..end).unwrap_or_default().trim_ascii_end();
        *place = match *place {
            Chunk::Size => match size(line)? {
                0 => Chunk::Trailer(LINE_BYTES_MAX),
                size => Chunk::Data(size),
            },
            Chunk::Break if line.is_empty() => Chunk::Size,
            Chunk::Trailer(_) if line.is_empty() => Chunk::End,
            Chunk::Trailer(room) => {
                Chunk::Trailer(room.checked_sub(end).ok_or("too many trailers")?)
            }
            _ => return Err("a chunk that is longer than it says"),
        };
        read.advance(end + 1);
        Ok(true)
    }
}

fn size(line: &[u8]) -> Result<u64, &'static str> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let digits = digits.trim_ascii_end();
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| plain);
    let size = text.and_then(|text| u64::from_str_radix(text, 16).ok());
    size.ok_or("a chunk's size that is no number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All that comes of a body when it is read in pieces of these lengths.
    fn read(
        mut framing: Framing,
        text: &[u8],
        mut cuts: impl Iterator<Item = usize>,
    ) -> (Vec<u8>, bool, usize) {
        let (mut out, mut buffer, mut rest) = (Vec::new(), BytesMut::new(), text);
        loop {
            while let Some(bytes) = framing.take(&mut buffer).unwrap() {
                out.extend_from_slice(&bytes);
            }
            if rest.is_empty() || framing.is_over() {
                return (out, framing.is_over(), rest.len() + buffer.len());
            }
            let (here, after) = rest.split_at(cuts.next().unwrap_or(1).clamp(1, rest.len()));
            buffer.extend_from_slice(here);
            rest = after;
        }
    }

    proptest! {
        #[test]
        fn a_chunked_body_is_the_same_however_it_comes(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            cuts in prop::collection::vec(1usize..50, 0..60),
        ) {
            let mut text = Vec::new();
            for chunk in &chunks {
                text.extend(format!("{:x} ;ext=\"1\"\r\n", chunk.len()).bytes());
                text.extend(chunk);
                text.extend(b"\r\n");
            }
            text.extend(b"0\r\nTrailer: 1\r\n\r\nHTTP/1.1");
            let found = read(Framing::chunked(), &text, cuts.into_iter());
            let rest = found.2;
            prop_assert_eq!((found.0, found.1), (chunks.concat(), true));
            prop_assert!(rest >= 1, "what follows is not taken");
        }

        #[test]
        fn nothing_makes_it_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let (mut framing, mut buffer) = (Framing::chunked(), BytesMut::from(&text[..]));
            while let Ok(Some(_)) = framing.take(&mut buffer) {}
        }
    }

    #[test]
    fn what_are_no_chunks() {
        for text in [
            "x\r\n",
            "\r\n",
            "-1\r\n",
            "10000000000000000\r\n",
            "1\r\nab\r\n",
        ] {
            let (mut framing, mut buffer) = (Framing::chunked(), BytesMut::from(text));
            let mut taken = std::iter::from_fn(|| framing.take(&mut buffer).transpose());
            assert!(taken.any(|one| one.is_err()), "{text:?}");
        }
        let mut endless = BytesMut::from(&vec![b'0'; LINE_BYTES_MAX + 1][..]);
        assert!(Framing::chunked().take(&mut endless).is_err());
    }

    #[test]
    fn lengths_and_ends() {
        let ones = std::iter::repeat(1);
        assert_eq!(
            read(Framing::Length(3), b"filmHTTP", ones.clone()),
            (b"fil".to_vec(), true, 5)
        );
        assert_eq!(
            read(Framing::Length(9), b"film", ones.clone()),
            (b"film".to_vec(), false, 0)
        );
        assert_eq!(
            read(Framing::Close, b"film", ones),
            (b"film".to_vec(), false, 0)
        );
    }
}
