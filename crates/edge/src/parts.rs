//! What is too long to be kept whole is kept in parts (RFC 9111 sections 3.3 and 3.4): aligned
//! blocks under one strong validator, each fetched once by a range request, whoever asks for
//! whichever range.
//!
//! The object itself holds the head and no body. A block is a [`Content`] in the memory tier,
//! under a key that names the object's own key, the block's size and number, and the validator: so
//! blocks of another state of the object are never found.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{StreamExt, try_unfold};
use http::header;
use net::body::Cut;
use net::{Body, Error, range};
use store::cache::{Joined, Reader};

use crate::Edge;
use crate::content::Content;
use crate::entry::Entry;
use crate::fetch::{self, Ask, Landed};
use crate::key::Key;
use crate::object::Object;

/// The longest block. A client costs the origin one of them at least.
const BLOCK_BYTES_MAX: u64 = 1 << 20;
/// How often a block is looked for before the client is cut: each time, somebody else's fetch of
/// it came to nothing.
const ROUNDS_MAX: usize = 4;

/// How an object's bytes are kept, where they are not kept in one.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The object's.
    pub key: Key,
    /// The validator that all parts have, as printed.
    pub etag: Box<str>,
    /// Length of a block; the last one may be shorter.
    pub block: u64,
}

/// Why a block cannot be had.
#[derive(Debug, Clone)]
pub enum Missing {
    /// The object is another one by now.
    Changed,
    /// The origin failed.
    Failed(Arc<Error>),
}

/// The length of blocks where an object may take `object_bytes_max`.
pub fn block_bytes(object_bytes_max: u64) -> u64 {
    let half = (object_bytes_max / 2).max(1);
    BLOCK_BYTES_MAX.min(1 << half.ilog2())
}

impl Parts {
    /// Where block `n` is kept. (A line of a variant's key begins with a header's name, so never
    /// with a space.)
    pub fn key(&self, n: u64) -> Key {
        let Parts { key, etag, block } = self;
        Key::from(format!("{}\n {block} {n} {etag}", key.as_str()).as_str())
    }

    /// The bytes of block `n` of an object of this length.
    pub fn range(&self, n: u64, len: u64) -> Range<u64> {
        let start = n.saturating_mul(self.block).min(len);
        start..start.saturating_add(self.block).min(len)
    }
}

/// A client's way through the blocks.
pub struct Blocks {
    pub edge: Arc<Edge>,
    pub ask: Arc<Ask>,
    pub object: Arc<Object>,
    /// The first block, which was had before the answer's head was written.
    pub first: Option<Arc<Content>>,
    /// User code will see the bytes.
    pub touched: bool,
}

struct Walk {
    blocks: Blocks,
    at: u64,
    end: u64,
    reader: Option<Reader>,
}

impl Blocks {
    /// These bytes of the object, one block after the other.
    pub fn body(self, wanted: Range<u64>) -> Body {
        let len = wanted.end - wanted.start;
        let walk = Walk {
            blocks: self,
            at: wanted.start,
            end: wanted.end,
            reader: None,
        };
        let pieces = try_unfold(walk, |mut walk| async move {
            let next = walk.next().await?;
            Ok::<_, Cut>(next.map(|pieces| (pieces, walk)))
        });
        Body::stream(len, pieces.boxed())
    }
}

impl Walk {
    async fn next(&mut self) -> Result<Option<Vec<Bytes>>, Cut> {
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.next().await {
                    Some(Ok(pieces)) => {
                        self.at += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
                        return Ok(Some(pieces));
                    }
                    Some(Err(broken)) => return Err(Cut::new(broken)),
                    None => self.reader = None,
                }
            }
            if self.at >= self.end {
                return Ok(None);
            }
            let Blocks {
                edge,
                ask,
                object,
                first,
                touched,
            } = &mut self.blocks;
            let Some(parts) = &object.parts else {
                return Err(Cut::new("not kept in parts"));
            };
            let n = self.at / parts.block;
            let range = parts.range(n, self.end);
            let block = match first.take() {
                Some(first) => Ok(first),
                None => edge.block(ask, object, n).await,
            };
            let block = block.map_err(|missing| match missing {
                Missing::Changed => Cut::new("the object changed while it was sent"),
                Missing::Failed(error) => Cut::new(error.context.as_str()),
            })?;
            let within = self.at - n * parts.block..range.end - n * parts.block;
            if let Some(pieces) = block.pieces() {
                self.at = range.end;
                return Ok(Some(range::slice(pieces, &within)));
            }
            if let Some(filed) = block.file() {
                self.at = range.end;
                return filed.bring(within, *touched).await.map(Some);
            }
            // Blocks are short enough to be held as a whole by whoever reads them.
            self.reader = block.growing.read(within);
        }
    }
}

impl Edge {
    /// One block: from memory, or by the one fetch that there is of it.
    pub(crate) async fn block(
        self: &Arc<Edge>,
        ask: &Arc<Ask>,
        object: &Arc<Object>,
        n: u64,
    ) -> Result<Arc<Content>, Missing> {
        let Some(parts) = &object.parts else {
            return Err(Missing::Changed);
        };
        let key = parts.key(n);
        for _ in 0..ROUNDS_MAX {
            if let Some(Entry::Block(block)) = self.memory.get(&key) {
                return Ok(block);
            }
            if self.disk.has(key.as_str()) {
                self.recall(&key).await;
                continue;
            }
            let landed = match self.flights.join(&key) {
                // It may have landed between our look and our lead.
                Joined::Lead(_) if self.memory.get(&key).is_some() => continue,
                Joined::Lead(lead) => {
                    let told = fetch::block::start(self, lead, ask, object, n);
                    told.await.ok()
                }
                Joined::Follow(follow) => follow.landed().await,
            };
            match landed {
                Some(Landed::Block(block)) => return Ok(block),
                Some(Landed::Changed) => return Err(Missing::Changed),
                Some(Landed::Failed(error)) => return Err(Missing::Failed(error)),
                _ => {}
            }
        }
        let what = "a part was asked for several times, and never came";
        let error = Error::upstream(http::StatusCode::BAD_GATEWAY, what);
        Err(Missing::Failed(Arc::new(error)))
    }

    /// Forgets an object that proved to be another one by now, with its parts.
    pub(crate) fn forget(&self, object: &Arc<Object>) {
        let Some(parts) = &object.parts else {
            return;
        };
        if let Some(Entry::Object(kept)) = self.memory.get(&parts.key)
            && Arc::ptr_eq(&kept, object)
        {
            self.take(&parts.key);
        }
        // Those of very long objects are not found any more, and make room in time.
        let count = object.len.unwrap_or(0).div_ceil(parts.block);
        for n in 0..count.min(FORGOTTEN_MAX) {
            self.take(&parts.key(n));
        }
    }
}

/// Blocks that are looked for when their object is forgotten.
const FORGOTTEN_MAX: u64 = 4096;

/// The strong validator that parts need (RFC 9111 section 3.4), of an answer whose origin does not
/// say that it has no ranges.
pub fn etag(headers: &http::HeaderMap) -> Option<Box<str>> {
    let none = headers.get(header::ACCEPT_RANGES);
    if none.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"none")) {
        return None;
    }
    let etag = net::conditional::Validators::of(headers).etag?;
    let text = etag.to_str().ok()?;
    text.starts_with('"').then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_the_last_is_shorter() {
        let parts = Parts {
            key: Key::from("/a"),
            etag: "\"e\"".into(),
            block: 10,
        };
        assert_eq!(parts.range(0, 25), 0..10);
        assert_eq!(parts.range(2, 25), 20..25);
        assert_eq!(parts.range(3, 25), 25..25);
        assert_eq!(parts.key(3).as_str(), "/a\n 10 3 \"e\"");
    }

    #[test]
    fn a_block_is_a_power_of_two_that_may_be_kept() {
        for (most, block) in [(512 << 10, 256 << 10), (1 << 30, 1 << 20), (3, 1), (0, 1)] {
            assert_eq!(block_bytes(most), block);
        }
    }

    #[test]
    fn only_strong_validators_and_origins_with_ranges_will_do() {
        for (lines, found) in [
            (&[("etag", "\"a\"")][..], Some("\"a\"")),
            (&[("etag", "W/\"a\"")], None),
            (&[("etag", "a")], None),
            (&[("etag", "\"a\""), ("accept-ranges", "none")], None),
            (
                &[("etag", "\"a\""), ("accept-ranges", "bytes")],
                Some("\"a\""),
            ),
            (&[], None),
        ] {
            let mut headers = http::HeaderMap::new();
            for (name, value) in lines {
                headers.insert(*name, value.parse().unwrap());
            }
            assert_eq!(etag(&headers).as_deref(), found, "{lines:?}");
        }
    }
}
