//! Bodies that lie in a file of the disk tier: sent by the kernel from there.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{StreamExt, try_unfold};
use net::body::Cut;
use net::{Body, Mapped};
use store::{LocalFile, Reason, ShelvedBody};

/// What is not in memory is brought in, and sent, in frames of this length.
const FRAME_BYTES: u64 = 1 << 20;

/// A body in a file, which may have been removed meanwhile: it is open.
#[derive(Debug, Clone)]
pub struct Filed {
    file: Arc<LocalFile>,
    /// Within the file.
    body: Range<u64>,
}

impl Filed {
    pub fn new(file: Arc<LocalFile>, body: Range<u64>) -> Filed {
        Filed { file, body }
    }

    pub fn len(&self) -> u64 {
        self.body.end - self.body.start
    }

    /// For another file.
    pub fn shelved(&self) -> ShelvedBody {
        ShelvedBody::File(self.file.clone(), self.body.clone())
    }

    /// These bytes; `touched` where user code will see them. At once if they are in the page cache;
    /// else a thread that may wait brings them in, frame by frame.
    pub fn send(&self, range: &Range<u64>, touched: bool) -> Body {
        let part = self.part(range);
        if !touched && self.file.resident(&part) {
            let slices = self.file.slices([&part].into_iter(), Reason::Plain);
            if let Some(slices) = slices {
                return self.named(Body::pieces(slices));
            }
        }
        let len = range.end - range.start;
        let state = (self.clone(), range.clone());
        let frames = try_unfold(state, move |(filed, rest)| async move {
            if rest.is_empty() {
                return Ok(None);
            }
            let end = rest.end.min(rest.start + FRAME_BYTES);
            let frame = filed.bring(rest.start..end, touched).await?;
            Ok::<_, Cut>(Some((frame, (filed, end..rest.end))))
        });
        let body = Body::stream(len, frames.boxed());
        if touched { body } else { self.named(body) }
    }

    /// A frame of it, for which the storage may have to be waited.
    pub async fn bring(&self, range: Range<u64>, touched: bool) -> Result<Vec<Bytes>, Cut> {
        let (part, file) = (self.part(&range), self.file.clone());
        let brought = tokio::task::spawn_blocking(move || {
            if !touched {
                file.warm(part.clone(), Reason::Plain)?;
                if let Some(slices) = file.slices([&part].into_iter(), Reason::Plain) {
                    return Ok(slices);
                }
            }
            file.read(part, Reason::Plain).map(|bytes| vec![bytes])
        });
        let brought = brought.await.map_err(Cut::new)?;
        brought.map_err(|error| Cut::new(format_args!("{error:?}")))
    }

    fn part(&self, range: &Range<u64>) -> Range<u64> {
        let at = |place: u64| self.body.end.min(self.body.start + place);
        at(range.start)..at(range.end)
    }

    fn named(&self, body: Body) -> Body {
        match self.file.address() {
            Some(address) => {
                // It could be mapped, so its length is a usize.
                let len = self.file.len() as usize;
                body.of_file(Mapped::new(self.file.clone(), address, len))
            }
            None => body,
        }
    }
}
