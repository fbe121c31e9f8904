//! One chunk of a body: parts that are sent together.

use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::Bytes;

use super::completion::SendProgress;
use super::part::{BodyFile, BodyPart, PipeBytes};
use crate::conn::InFlight;

/// Parts of a body that are sent together. All file ranges of a chunk refer to the same file.
#[derive(Debug)]
pub struct Chunk {
    parts: PartList,
    /// Boxed to keep chunks small, because each chunk is moved about twenty times and most chunks
    /// have no file.
    file: Option<Box<BodyFile>>,
    progress: Option<Arc<SendProgress>>,
    /// Set only in the last chunk of a body. The response counts as in flight until this chunk is
    /// sent or dropped.
    in_flight: Option<InFlight>,
}

#[derive(Debug)]
enum PartList {
    One(BodyPart),
    /// Non-empty parts. The parts before index `first` have been sent.
    Many {
        parts: Vec<BodyPart>,
        first: usize,
        len: u64,
    },
}

impl Chunk {
    /// Creates a chunk from consecutive buffers. Empty buffers are dropped.
    pub fn from_pieces(pieces: Vec<Bytes>) -> Chunk {
        Chunk::from_parts(None, pieces.into_iter().map(BodyPart::Bytes).collect())
    }

    /// Creates a chunk from consecutive parts. File ranges refer to `file`. Empty parts are
    /// dropped. Without `file`, file ranges are also dropped. A stream of known length that returns
    /// such a chunk fails, because the stream is then shorter than declared.
    pub fn from_parts(file: Option<BodyFile>, mut parts: Vec<BodyPart>) -> Chunk {
        let is_lost = |part: &BodyPart| file.is_none() && matches!(part, BodyPart::File(_));
        parts.retain(|part| !part.is_empty() && !is_lost(part));
        let len = parts.iter().map(BodyPart::len).sum();
        let first = 0;
        Chunk::new(PartList::Many { parts, first, len }, file)
    }

    /// Creates a chunk from the next `len` bytes in a pipe. `read_end` is the read end of the pipe.
    pub fn from_pipe(read_end: Arc<dyn AsFd + Send + Sync>, len: usize) -> Chunk {
        let pipe = PipeBytes::new(read_end, len);
        Chunk::new(PartList::One(BodyPart::Pipe(pipe)), None)
    }

    /// Creates a chunk from memory that is never written again, as in [`BodyPart::Arena`].
    pub fn from_arena(bytes: Bytes) -> Chunk {
        Chunk::new(PartList::One(BodyPart::Arena(bytes)), None)
    }

    fn new(parts: PartList, file: Option<BodyFile>) -> Chunk {
        Chunk {
            parts,
            file: file.map(Box::new),
            progress: None,
            in_flight: None,
        }
    }

    /// Returns the number of unsent bytes.
    pub fn len(&self) -> u64 {
        match &self.parts {
            PartList::One(part) => part.len(),
            PartList::Many { len, .. } => *len,
        }
    }

    /// Returns whether all bytes are sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the unsent parts.
    pub(crate) fn unsent_parts(&self) -> &[BodyPart] {
        match &self.parts {
            PartList::One(part) => std::slice::from_ref(part),
            PartList::Many { parts, first, .. } => parts.get(*first..).unwrap_or_default(),
        }
    }

    /// Returns the file of the [`BodyPart::File`] ranges.
    pub(crate) fn file(&self) -> Option<&BodyFile> {
        self.file.as_deref()
    }

    /// Returns whether an unsent part is in a file or a pipe. A copy of such a part needs newly
    /// allocated memory.
    pub(super) fn needs_copy(&self) -> bool {
        let in_memory = |part: &BodyPart| matches!(part, BodyPart::Bytes(_) | BodyPart::Arena(_));
        !self.unsent_parts().iter().all(in_memory)
    }

    /// Marks `count` bytes as sent.
    ///
    /// # Panics
    /// If fewer than `count` bytes are unsent.
    pub(crate) fn advance(&mut self, count: u64) {
        assert!(count <= self.len(), "advanced past the end of a chunk");
        match &mut self.parts {
            PartList::One(part) => part.advance(count),
            PartList::Many { parts, first, len } => {
                *len -= count;
                let mut count = count;
                while let Some(part) = parts.get_mut(*first) {
                    if count < part.len() {
                        part.advance(count);
                        break;
                    }
                    count -= part.len();
                    // Releases the memory of the sent part before the rest of the chunk is sent.
                    *part = BodyPart::Bytes(Bytes::new());
                    *first += 1;
                }
            }
        }
        if let Some(progress) = &self.progress {
            progress.note_sent(count);
        }
    }

    /// Returns the chunk with `progress`, which counts the chunk's sent bytes. The chunk holds
    /// `in_flight` until the chunk is dropped.
    pub(super) fn with_progress(
        mut self,
        progress: Option<Arc<SendProgress>>,
        in_flight: Option<InFlight>,
    ) -> Chunk {
        self.progress = progress;
        self.in_flight = in_flight;
        self
    }
}

impl From<Bytes> for Chunk {
    fn from(bytes: Bytes) -> Chunk {
        Chunk::new(PartList::One(BodyPart::Bytes(bytes)), None)
    }
}

impl From<Vec<Bytes>> for Chunk {
    fn from(pieces: Vec<Bytes>) -> Chunk {
        Chunk::from_pieces(pieces)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn unsent_parts_are_the_rest_after_every_advance(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 0..200),
            steps in prop::collection::vec(0usize..40, 0..40),
        ) {
            let whole = pieces.concat();
            let mut chunk = Chunk::from_pieces(pieces.into_iter().map(Bytes::from).collect());
            let mut at = 0;
            for step in steps {
                let bytes = |part: &BodyPart| match part {
                    BodyPart::Bytes(bytes) => bytes.clone(),
                    other => panic!("{other:?}"),
                };
                let unsent: Vec<Bytes> = chunk.unsent_parts().iter().map(bytes).collect();
                prop_assert!(unsent.iter().all(|bytes| !bytes.is_empty()));
                prop_assert_eq!(unsent.concat(), &whole[at..]);
                prop_assert_eq!(chunk.len(), (whole.len() - at) as u64);
                let step = step.min(whole.len() - at);
                chunk.advance(step as u64);
                at += step;
            }
        }
    }
}
