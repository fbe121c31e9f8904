//! The segment flow: locate → plan → materialise → cache → send.
//!
//! 1. [`LocatedSegment`]: the names in the URL, resolved within one version of the title.
//! 2. [`SegmentPlan`]: response headers and body layout. No media byte has been read.
//! 3. [`CachedSegment`]: the materialised segment. Its file has just been found unchanged, and the
//!    bytes that Headwater generates are in memory.
//! 4. The segment cache stores it under the URL path, so that the next request starts at step 5.
//! 5. `send` evaluates conditions and ranges and builds the body.

pub(crate) mod cached_segment;
pub(crate) mod encryption;
pub(crate) mod locate;
pub(crate) mod memory_body;
pub(crate) mod plan;
pub(crate) mod transmux;

use crate::error;
use crate::response::responder::ClientRequest;
use crate::response::response_cache::segments::SegmentCache;
use crate::route::{self, SegmentUrl};
use crate::segment::locate::LocatedSegment;
use crate::segment::plan::SegmentError;
use crate::title::catalog::Catalog;
use crate::title::title_version::Title;
use http::Response;
use net::{Body, Error};
use std::sync::Arc;

#[cfg(doc)]
use crate::segment::{cached_segment::CachedSegment, plan::SegmentPlan};

/// Responds to the first request for a segment and stores the result under the URL's `path`.
pub(crate) async fn respond_with_segment(
    catalog: &Arc<Catalog>,
    cache: &SegmentCache,
    (path, url): (&str, &SegmentUrl),
    request: &ClientRequest<'_>,
) -> Result<Response<Body>, Error> {
    let mut title = catalog.load_title(&url.title).await?;
    let mut is_reloaded = false;
    loop {
        match respond_from_title(&title, catalog, cache, (path, url), request).await {
            Ok(response) => return Ok(response),
            Err(SegmentError::Response(error)) => return Err(error),
            Err(SegmentError::FileChanged) if is_reloaded => {
                return Err(error::from_store(&store::Error::Changed));
            }
            // A segment of the new bytes has another URL, unless the change did not concern it.
            Err(SegmentError::FileChanged) => title = catalog.reload_title(&title).await?,
        }
        is_reloaded = true;
    }
}

async fn respond_from_title(
    title: &Arc<Title>,
    catalog: &Catalog,
    cache: &SegmentCache,
    (path, url): (&str, &SegmentUrl),
    request: &ClientRequest<'_>,
) -> Result<Response<Body>, SegmentError> {
    let located = LocatedSegment::locate_segment(title, url)?;
    let plan = located.plan_segment()?;
    let source = located.segment_source(plan.sibling_ranges(), request);
    // Reading and transmuxing cost far more than a 304.
    if plan.reads_media()
        && let Some(response) = request.evaluate_conditions(plan.headers())
    {
        return match source.object.changed() {
            true => Err(SegmentError::FileChanged),
            false => Ok(response),
        };
    }
    let segment = Arc::new(plan.materialise(&source, cache.arena()).await?);
    // Other spellings of the URL name the same segment, which is stored once.
    if route::OriginRequest::Segment(url.clone()).to_string() == path {
        cache.insert_first(path, segment.clone());
    }
    let response = segment.send_segment(source.verified(), request).await?;
    if catalog.reads_ahead() {
        located.read_ahead();
    }
    Ok(response)
}
