//! Bodies from a local file. Such a body contains ranges instead of bytes. The response writer
//! sends these ranges from the file.

use super::body_parts::{PlannedPart, cut_parts, file_ranges, merge_read_bytes};
use bytes::Bytes;
use futures_util::stream;
use net::body::BodyError;
use net::{Body, BodyFile, Chunk};
use std::sync::Arc;
use store::{LocalFile, RequestReason};

/// A local file, and the parameters for reading it.
#[derive(Clone)]
pub(super) struct LocalSource {
    pub(super) file: Arc<LocalFile>,
    pub(super) reason: RequestReason,
    /// See [`super::body_source::BodySource::is_verified`].
    pub(super) is_verified: bool,
}

/// Converts the file for the response writer.
fn body_file(file: &Arc<LocalFile>) -> BodyFile {
    let identity = file.version();
    BodyFile::new(
        file.clone(),
        file.mapping(),
        identity.len,
        identity.mtime_ns,
    )
}

/// Bodies up to this size are sent in a single frame. Longer bodies have a separate tail.
const WHOLE_BYTES_MAX: u64 = 256 << 10;
/// Length of the tail of a longer body. The tail is sent only if the file is still unchanged when
/// all previous bytes have been sent. A response that mixes two versions of a file therefore never
/// looks complete.
const TAIL_BYTES: u64 = 256 << 10;
/// Maximum size of a frame before the tail.
const FRAME_BYTES_MAX: u64 = 4 << 20;
/// Ranges in the page cache are read inline, up to this total size. Other ranges are read on a
/// blocking thread.
const READ_NOW_BYTES_MAX: u64 = 1 << 20;

/// Builds a body. The first frame is available when this function returns, so that an earlier error
/// can still determine the response status.
pub(super) async fn build_local_file_body(
    mut source: LocalSource,
    pieces: Arc<[PlannedPart]>,
) -> Result<Body, store::Error> {
    let len: u64 = pieces.iter().map(PlannedPart::len).sum();
    if len <= WHOLE_BYTES_MAX || file_ranges(&pieces).next().is_none() {
        return Ok(Body::from_chunk(source.to_chunk(&pieces).await?));
    }
    let begin = frame_end(0, len);
    let first = source.to_chunk(&cut_parts(&pieces, &(0..begin))).await;
    source.is_verified = false;
    let state = (Some(first?), source, pieces, begin);
    let frames = stream::try_unfold(state, move |(first, source, pieces, at)| async move {
        if let Some(first) = first {
            return Ok(Some((first, (None, source, pieces, at))));
        }
        if at >= len {
            return Ok(None);
        }
        let next = frame_end(at, len);
        let frame = cut_parts(&pieces, &(at..next));
        let chunk = source.to_chunk(&frame).await.map_err(BodyError::new)?;
        Ok::<_, BodyError>(Some((chunk, (None, source, pieces, next))))
    });
    Ok(Body::sized_stream(len, frames))
}

/// Returns the end of the frame that starts at `at`, in a body of `len` bytes with a tail.
fn frame_end(at: u64, len: u64) -> u64 {
    let tail = len.saturating_sub(TAIL_BYTES);
    if at >= tail {
        len
    } else {
        tail.min(at + FRAME_BYTES_MAX)
    }
}

impl LocalSource {
    /// Converts parts to a chunk. First, a blocking thread reads ranges that are not completely in
    /// the page cache.
    async fn to_chunk(&self, pieces: &[PlannedPart]) -> Result<Chunk, store::Error> {
        match pieces {
            [PlannedPart::Generated(bytes)] => return Ok(bytes.clone().into()),
            [PlannedPart::Arena(bytes)] => return Ok(Chunk::from_arena(bytes.clone())),
            _ if file_ranges(pieces).next().is_none() => {
                let parts = pieces.iter().map(PlannedPart::to_body_part);
                return Ok(Chunk::from_parts(None, parts.collect()));
            }
            _ => {}
        }
        let cold: Vec<_> = file_ranges(pieces)
            .filter(|range| !self.file.is_range_resident(range))
            .collect();
        let has_waited = !cold.is_empty();
        if has_waited {
            let source = self.clone();
            run_blocking(move || {
                cold.into_iter()
                    .try_for_each(|range| source.file.warm(range, source.reason))
            })
            .await?;
        }
        if (has_waited || !self.is_verified) && self.file.changed() {
            return Err(store::Error::Changed);
        }
        self.file
            .check_and_count_request(file_ranges(pieces), self.reason)?;
        let parts = pieces.iter().map(PlannedPart::to_body_part).collect();
        Ok(Chunk::from_parts(Some(body_file(&self.file)), parts))
    }

    pub(super) async fn read_parts(
        &self,
        pieces: &[PlannedPart],
    ) -> Result<Vec<Bytes>, store::Error> {
        if self.can_read_inline(pieces) {
            return self.read_parts_blocking(pieces);
        }
        let (source, pieces) = (self.clone(), pieces.to_vec());
        run_blocking(move || source.read_parts_blocking(&pieces)).await
    }

    /// Returns whether reading these parts is quick enough for the event loop.
    pub(super) fn can_read_inline(&self, pieces: &[PlannedPart]) -> bool {
        let len: u64 = file_ranges(pieces)
            .map(|range| range.end - range.start)
            .sum();
        len <= READ_NOW_BYTES_MAX
            && file_ranges(pieces).all(|range| self.file.is_range_resident(&range))
    }

    /// Reads parts into memory. Returns an error if the file has changed since it was opened.
    /// Blocks the thread.
    fn read_parts_blocking(&self, pieces: &[PlannedPart]) -> Result<Vec<Bytes>, store::Error> {
        let read = self
            .file
            .read_ranges(&file_ranges(pieces).collect::<Vec<_>>(), self.reason)?;
        match self.file.changed() {
            true => Err(store::Error::Changed),
            false => Ok(merge_read_bytes(pieces, read)),
        }
    }
}

/// Runs `work` on a blocking thread.
async fn run_blocking<T: Send + 'static>(
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

    /// Creates and opens a file of `len` bytes.
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
    fn bodies_of_all_lengths_are_the_files_bytes() {
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
            let source = LocalSource {
                file: object.clone(),
                reason: RequestReason::Plain,
                is_verified: false,
            };
            let head = Bytes::from_static(b"head");
            let pieces = vec![
                PlannedPart::Generated(head),
                PlannedPart::FileRange(77..77 + len),
            ];
            let sent = run(async {
                let body = build_local_file_body(source, pieces.into()).await.unwrap();
                assert_eq!(body.len(), len + 4);
                body.collect().await.unwrap().to_bytes()
            });
            assert_eq!(&sent[..4], b"head");
            assert_eq!(&sent[4..], &bytes[77..77 + len as usize], "{len}");
        }
    }

    #[test]
    fn a_body_is_cut_if_its_file_is_overwritten_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let (bytes, object) = file(dir.path(), 1 << 20);
        let source = LocalSource {
            file: object,
            reason: RequestReason::Plain,
            is_verified: false,
        };
        let pieces = vec![PlannedPart::FileRange(0..bytes.len() as u64)];
        let sent = run(async {
            let mut body = build_local_file_body(source, pieces.into()).await.unwrap();
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
