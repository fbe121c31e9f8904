//! Delivery of large objects, which are cached as blocks.
//!
//! The cached object contains the head and no body. Each block is fetched whole with one range
//! request, regardless of the ranges that clients request. See [`crate::block_layout`] for keys and
//! sizes.

use std::ops::Range;
use std::sync::Arc;

use futures_util::stream::{StreamExt, try_unfold};
use http::StatusCode;
use net::body::BodyError;
use net::{Body, Chunk, Error, range};
use store::cache::{GrowingReader, LeadOrFollow};

use crate::Edge;
use crate::cache_entry::CacheEntry;
use crate::cached_object::CachedObject;
use crate::fetch::{FetchOutcome, FetchRequest, block::start_block_fetch};
use crate::object_body::SharedObjectBody;

/// Maximum number of lookups of a block before the client's response is aborted. A lookup is
/// repeated, for example, after the block was loaded from disk.
const BLOCK_LOOKUPS_MAX: usize = 4;

/// The reason why a block is unavailable.
#[derive(Debug, Clone)]
pub enum BlockError {
    /// The object changed at the origin, or the origin ignored the range.
    ValidatorChanged,
    /// The origin refused the request with the headers of this client, or of the other clients that
    /// this client waited for.
    Refused,
    /// The origin failed.
    OriginFailed(Arc<Error>),
}

/// A response body that is read block by block.
pub struct BlockBody {
    pub edge: Arc<Edge>,
    pub request: Arc<FetchRequest>,
    pub object: Arc<CachedObject>,
    /// The first block. It is fetched before the response head is written, so that a failure of
    /// this fetch can still be reported with an error response.
    pub first: Option<Arc<SharedObjectBody>>,
}

/// The read position of one client in a [`BlockBody`].
struct BlockCursor {
    body: BlockBody,
    at: u64,
    end: u64,
    /// Reader of a block that is still growing.
    reader: Option<GrowingReader>,
}

impl BlockBody {
    /// Returns the range `wanted` of the object as a response body.
    pub fn into_body(self, wanted: Range<u64>) -> Body {
        let len = wanted.end - wanted.start;
        let cursor = BlockCursor {
            body: self,
            at: wanted.start,
            end: wanted.end,
            reader: None,
        };
        let pieces = try_unfold(cursor, |mut cursor| async move {
            let next = cursor.next_chunk().await?;
            Ok::<_, BodyError>(next.map(|chunk| (chunk, cursor)))
        });
        Body::sized_stream(len, pieces.boxed())
    }
}

impl BlockCursor {
    async fn next_chunk(&mut self) -> Result<Option<Chunk>, BodyError> {
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.next().await {
                    Some(Ok(pieces)) => {
                        self.at += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
                        return Ok(Some(pieces.into()));
                    }
                    Some(Err(broken)) => return Err(BodyError::new(broken)),
                    None => self.reader = None,
                }
            }
            if self.at >= self.end {
                return Ok(None);
            }
            let BlockBody {
                edge,
                request,
                object,
                first,
            } = &mut self.body;
            let Some(layout) = &object.blocks else {
                return Err(BodyError::new("the object is not stored in blocks"));
            };
            let n = self.at / layout.block_bytes;
            let range = layout.block_range(n, self.end);
            let block = match first.take() {
                Some(first) => Ok(first),
                None => edge.get_or_fetch_block(request, object, n).await,
            };
            let block = block.map_err(|error| match error {
                BlockError::ValidatorChanged => {
                    BodyError::new("the object changed during delivery")
                }
                BlockError::Refused => {
                    BodyError::new("the origin refused a byte range to this client")
                }
                BlockError::OriginFailed(error) => BodyError::new(error.operator_message()),
            })?;
            let start = n * layout.block_bytes;
            let within = self.at - start..range.end - start;
            if let Some(pieces) = block.complete_chunks() {
                self.at = range.end;
                return Ok(Some(range::slice_pieces(pieces, &within).into()));
            }
            if let Some(filed) = block.disk_file() {
                self.at = range.end;
                return filed.read_chunk_from_disk(within).await.map(Some);
            }
            // The bytes of the block stay in memory until the reader has read them. A block is
            // small enough for this.
            self.reader = block.growing.open_reader(within);
        }
    }
}

impl Edge {
    /// Returns one block. The block is read from memory, from disk, or from a fetch that all
    /// requests for the block share.
    pub(crate) async fn get_or_fetch_block(
        self: &Arc<Edge>,
        request: &Arc<FetchRequest>,
        object: &Arc<CachedObject>,
        n: u64,
    ) -> Result<Arc<SharedObjectBody>, BlockError> {
        let Some(layout) = &object.blocks else {
            return Err(BlockError::ValidatorChanged);
        };
        let key = layout.block_key(n);
        let (mut was_loaded, mut was_refused) = (false, false);
        for _ in 0..BLOCK_LOOKUPS_MAX {
            if let Some(CacheEntry::Block(block)) = self.memory.get(&key) {
                return Ok(block);
            }
            // If the block is still not in memory after one load, its file cannot be read.
            if !was_loaded && self.disk.has_entry(key.as_str()) {
                self.load_from_disk(&key).await;
                was_loaded = true;
                continue;
            }
            let outcome = match self.flights.lead_or_join(&key) {
                // Another fetch may have stored the block between the lookup and the call of
                // `lead_or_join`.
                LeadOrFollow::Lead(_) if self.memory.get(&key).is_some() => continue,
                LeadOrFollow::Lead(lead) => {
                    let outcome = start_block_fetch(self, lead, request, object, n);
                    match outcome.await.ok() {
                        Some(FetchOutcome::Private(_)) => return Err(BlockError::Refused),
                        outcome => outcome,
                    }
                }
                LeadOrFollow::Follow(follow) => follow.wait_for_result().await,
            };
            match outcome {
                Some(FetchOutcome::Block(block)) => return Ok(block),
                Some(FetchOutcome::ValidatorChanged) => return Err(BlockError::ValidatorChanged),
                Some(FetchOutcome::Failed(error)) => return Err(BlockError::OriginFailed(error)),
                // The origin refused another client's request, so this request is repeated.
                outcome => was_refused = matches!(outcome, Some(FetchOutcome::Private(_))),
            }
        }
        if was_refused {
            return Err(BlockError::Refused);
        }
        let what = format_args!("{BLOCK_LOOKUPS_MAX} fetches of a byte range failed");
        let error = Error::new_upstream_error(StatusCode::BAD_GATEWAY, what);
        Err(BlockError::OriginFailed(Arc::new(error)))
    }
}
