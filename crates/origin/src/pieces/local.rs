//! Pieces of a local file: slices of its mapping, or copies.

use super::{Piece, cut, ranges};
use bytes::Bytes;
use futures_util::stream;
use net::body::Cut;
use net::{Body, Chunk, Mapped};
use std::sync::Arc;
use store::{LocalFile, Reason};

/// Parts of one file, and how they may be brought.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) file: Arc<LocalFile>,
    pub(super) reason: Reason,
    /// See [`super::Source::touched`].
    pub(super) touched: bool,
}

/// Bodies up to this leave in one frame with their head; longer ones end in a tail of their own.
const WHOLE_BYTES_MAX: u64 = 256 << 10;
/// The end of longer bodies: sent only if the file is still the same when all before it has left,
/// so that a response which mixes two states of a file does not look complete.
const TAIL_BYTES: u64 = 256 << 10;
/// The longest frame before the tail.
const FRAME_BYTES_MAX: u64 = 4 << 20;
/// What is in memory and no longer than this is read at once; the rest by a thread that may wait.
const READ_NOW_BYTES_MAX: u64 = 1 << 20;

/// Makes a body of pieces. Its first frame is there when this returns, so that what is wrong can
/// still be said with a status.
pub(super) async fn body(source: Source, pieces: Arc<[Piece]>) -> Result<Body, store::Error> {
    let len: u64 = pieces.iter().map(Piece::len).sum();
    if len <= WHOLE_BYTES_MAX || ranges(&pieces).next().is_none() {
        let whole = source.bring(&pieces).await?;
        return Ok(source.named(Body::pieces(whole)));
    }
    let begin = frame_end(0, len);
    let first = source.bring(&cut(&pieces, &(0..begin))).await;
    let first = Chunk::pieces(first?);
    let named = source.clone();
    let state = (Some(first), source, pieces, begin);
    let frames = stream::try_unfold(state, move |(first, source, pieces, at)| async move {
        if let Some(first) = first {
            return Ok(Some((first, (None, source, pieces, at))));
        }
        if at >= len {
            return Ok(None);
        }
        let next = frame_end(at, len);
        let frame = cut(&pieces, &(at..next));
        let chunk = Chunk::pieces(source.bring(&frame).await.map_err(Cut::new)?);
        Ok::<_, Cut>(Some((chunk, (None, source, pieces, next))))
    });
    Ok(named.named(Body::stream(len, frames)))
}

/// Where the frame that begins at `at` ends, in a body of `len` bytes with a tail.
fn frame_end(at: u64, len: u64) -> u64 {
    let tail = len.saturating_sub(TAIL_BYTES);
    if at >= tail {
        len
    } else {
        tail.min(at + FRAME_BYTES_MAX)
    }
}

impl Source {
    /// Tells the body which file its slices are of, so that the kernel can send it by itself.
    fn named(&self, body: Body) -> Body {
        match self.file.address() {
            Some(address) if !self.touched => {
                let len = self.file.len() as usize;
                body.of_file(Mapped::new(self.file.clone(), address, len))
            }
            _ => body,
        }
    }

    /// Turns pieces into bytes: slices of the mapped file where the kernel alone will see them,
    /// else copies.
    async fn bring(&self, pieces: &[Piece]) -> Result<Vec<Bytes>, store::Error> {
        if let [Piece::Made(bytes)] = pieces {
            return Ok(vec![bytes.clone()]);
        }
        if self.touched {
            return self.read(pieces).await;
        }
        let cold: Vec<_> = ranges(pieces)
            .filter(|range| !self.file.resident(range))
            .collect();
        if !cold.is_empty() {
            let source = self.clone();
            blocking(move || {
                cold.into_iter()
                    .try_for_each(|range| source.file.warm(range, source.reason))
            })
            .await?;
        }
        if self.file.changed() {
            return Err(store::Error::Changed);
        }
        match self.slices(pieces) {
            Some(slices) => Ok(slices),
            None => self.read(pieces).await,
        }
    }

    /// Slices of the mapped file, between bytes of our own.
    fn slices(&self, pieces: &[Piece]) -> Option<Vec<Bytes>> {
        let of_file = pieces.iter().filter_map(|piece| match piece {
            Piece::Made(_) => None,
            Piece::Of(range) => Some(range),
        });
        let mut slices = self.file.slices(of_file, self.reason)?.into_iter();
        let piece = |piece: &Piece| match piece {
            Piece::Made(bytes) => Some(bytes.clone()),
            Piece::Of(_) => slices.next(),
        };
        pieces.iter().map(piece).collect()
    }

    pub(super) async fn read(&self, pieces: &[Piece]) -> Result<Vec<Bytes>, store::Error> {
        if self.is_quick(pieces) {
            return self.read_now(pieces);
        }
        let (source, pieces) = (self.clone(), pieces.to_vec());
        blocking(move || source.read_now(&pieces)).await
    }

    /// Whether reading these takes so little that no other thread need be asked to.
    pub(super) fn is_quick(&self, pieces: &[Piece]) -> bool {
        let len: u64 = ranges(pieces).map(|range| range.end - range.start).sum();
        len <= READ_NOW_BYTES_MAX && ranges(pieces).all(|range| self.file.resident(&range))
    }

    /// Reads pieces into memory, and makes sure that the file did not change meanwhile. Blocks.
    fn read_now(&self, pieces: &[Piece]) -> Result<Vec<Bytes>, store::Error> {
        let bytes = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Made(bytes) => Ok(bytes.clone()),
                Piece::Of(range) => self.file.read(range.clone(), self.reason),
            })
            .collect::<Result<_, _>>()?;
        if self.file.changed() {
            Err(store::Error::Changed)
        } else {
            Ok(bytes)
        }
    }
}

/// Runs what may wait on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, store::Error> + Send + 'static,
) -> Result<T, store::Error> {
    let task = tokio::task::spawn_blocking(work);
    task.await
        .unwrap_or_else(|e| Err(store::Error::Io(std::io::Error::other(e))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    /// A file of `len` bytes, and all kinds of answers about it.
    fn file(dir: &std::path::Path, len: usize) -> (Vec<u8>, Arc<LocalFile>) {
        let bytes: Vec<u8> = (0..len).map(|n| (n / 3 % 251) as u8).collect();
        std::fs::write(dir.join("film"), &bytes).unwrap();
        let folder = store::Folder::new(dir).unwrap();
        let object = folder.open(&store::Key::parse("film").unwrap()).unwrap();
        (bytes, object)
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn bodies_of_all_lengths_are_the_same_read_and_mapped() {
        let dir = tempfile::tempdir().unwrap();
        let (bytes, object) = file(dir.path(), 10 << 20);
        for len in [
            0,
            1,
            4096,
            WHOLE_BYTES_MAX,
            WHOLE_BYTES_MAX + 1,
            5 << 20,
            9 << 20,
        ] {
            for touched in [false, true] {
                let source = Source {
                    file: object.clone(),
                    reason: Reason::Plain,
                    touched,
                };
                let head = Bytes::from_static(b"head");
                let pieces = vec![Piece::Made(head), Piece::Of(77..77 + len)];
                let sent = run(async {
                    let body = body(source, pieces.into()).await.unwrap();
                    assert_eq!(body.len(), len + 4);
                    body.collect().await.unwrap().to_bytes()
                });
                assert_eq!(&sent[..4], b"head");
                assert_eq!(&sent[4..], &bytes[77..77 + len as usize], "{len} {touched}");
            }
        }
    }

    #[test]
    fn a_body_over_a_file_that_is_overwritten_meanwhile_is_cut() {
        for touched in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (bytes, object) = file(dir.path(), 1 << 20);
            let source = Source {
                file: object,
                reason: Reason::Plain,
                touched,
            };
            let pieces = vec![Piece::Of(0..bytes.len() as u64)];
            let sent = run(async {
                let mut body = body(source, pieces.into()).await.unwrap();
                assert!(body.frame().await.unwrap().is_ok());
                let changed = std::fs::File::options()
                    .write(true)
                    .open(dir.path().join("film"));
                let file = changed.unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH)
                    .unwrap();
                body.collect().await
            });
            assert!(sent.is_err(), "the tail must not follow");
        }
    }
}
