//! Bodies in files of the disk tier, which the kernel sends from the page cache.

use std::ops::Range;
use std::sync::Arc;

use futures_util::stream::{StreamExt, try_unfold};
use net::body::BodyError;
use net::{Body, BodyFile, BodyPart, Chunk};
use store::{LocalFile, RequestReason, TierBodySource};

/// Maximum size of a frame. Bytes that are not in the page cache are read and sent in frames.
const FRAME_BYTES: u64 = 1 << 20;

/// A body in an open file. The body stays readable if the disk tier deletes the file.
#[derive(Debug, Clone)]
pub struct DiskBody {
    file: Arc<LocalFile>,
    /// Range of the body within the file.
    body: Range<u64>,
}

impl DiskBody {
    pub fn new(file: Arc<LocalFile>, body: Range<u64>) -> DiskBody {
        DiskBody { file, body }
    }

    pub fn len(&self) -> u64 {
        self.body.end - self.body.start
    }

    /// Returns the body in the form that the disk tier writes.
    pub fn to_tier_body(&self) -> TierBodySource {
        TierBodySource::File(self.file.clone(), self.body.clone())
    }

    /// Returns a range of this body as a response body. If all bytes are in the page cache, the
    /// response body is a single chunk. Otherwise, a blocking thread reads the bytes into the page
    /// cache frame by frame.
    pub fn to_response_body(&self, range: &Range<u64>) -> Body {
        let part = self.to_file_range(range);
        if self.file.is_range_resident(&part)
            && let Ok(chunk) = self.file_chunk(part)
        {
            return Body::from_chunk(chunk);
        }
        let len = range.end - range.start;
        let state = (self.clone(), range.clone());
        let frames = try_unfold(state, |(filed, rest)| async move {
            if rest.is_empty() {
                return Ok(None);
            }
            let end = rest.end.min(rest.start + FRAME_BYTES);
            let frame = filed.read_chunk_from_disk(rest.start..end).await?;
            Ok::<_, BodyError>(Some((frame, (filed, end..rest.end))))
        });
        Body::sized_stream(len, frames.boxed())
    }

    /// Reads one frame into the page cache, and returns it as a chunk. May wait for the storage
    /// device.
    pub async fn read_chunk_from_disk(&self, range: Range<u64>) -> Result<Chunk, BodyError> {
        let (part, file) = (self.to_file_range(&range), self.file.clone());
        let wanted = part.clone();
        let read = tokio::task::spawn_blocking(move || file.warm(wanted, RequestReason::Plain));
        let read = read.await.map_err(BodyError::new)?;
        let chunk = read.and_then(|()| self.file_chunk(part));
        chunk.map_err(|error| BodyError::new(format_args!("{error:?}")))
    }

    /// Returns a range of the file as a chunk for the response writer.
    fn file_chunk(&self, range: Range<u64>) -> Result<Chunk, store::Error> {
        self.file
            .check_and_count_request([range.clone()], RequestReason::Plain)?;
        let identity = self.file.version();
        let (len, modified_ns) = (identity.len, identity.mtime_ns);
        let file = BodyFile::new(self.file.clone(), self.file.mapping(), len, modified_ns);
        Ok(Chunk::from_parts(Some(file), vec![BodyPart::File(range)]))
    }

    fn to_file_range(&self, range: &Range<u64>) -> Range<u64> {
        let at = |place: u64| self.body.end.min(self.body.start + place);
        at(range.start)..at(range.end)
    }
}
