//! A request for a segment passes these steps: locate → plan → materialise → cache → send.
//!
//! - Locate: resolves the names in the URL within one version of the title. The result is a
//!   [`LocatedSegment`].
//! - Plan: determines response headers and body layout without reading media. The result is a
//!   [`SegmentPlan`].
//! - Materialise: generates bytes in memory, and checks that the file is unchanged. The result is a
//!   [`CachedSegment`].
//! - Cache: stores the [`CachedSegment`] under the URL path. The next request skips all steps
//!   before sending.
//! - Send: evaluates conditions and ranges, and builds the body.

pub(crate) mod cached_segment;
pub(crate) mod hls_aes128;
pub(crate) mod locate;
mod media_bytes;
pub(crate) mod memory_body;
pub(crate) mod plan;
pub(crate) mod protect;
pub(crate) mod protected_stream;
mod recycled_buffer;
pub(crate) mod transmux;

use crate::error;
use crate::response::responder::ClientRequest;
use crate::response::response_cache::segments::SegmentCache;
use crate::route::{self, SegmentUrl};
use crate::segment::locate::LocatedSegment;
use crate::segment::plan::SegmentError;
use crate::segment::protected_stream::SegmentSlot;
use crate::title::catalog::Catalog;
use crate::title::opened_title::Title;
use http::{Method, Response};
use net::{Body, Error};
use std::sync::Arc;
use trace::SpanKind;

#[cfg(doc)]
use crate::segment::{cached_segment::CachedSegment, plan::SegmentPlan};

/// Responds to a request for a segment that is not cached, and stores the segment under the URL's
/// `path`.
pub(crate) async fn respond_with_segment(
    catalog: &Arc<Catalog>,
    cache: &Arc<SegmentCache>,
    (path, url): (&str, &SegmentUrl),
    request: &ClientRequest<'_>,
) -> Result<Response<Body>, Error> {
    let mut title = catalog.load_title_media(&url.title).await?;
    let mut is_reloaded = false;
    loop {
        match respond_from_title(&title, catalog, cache, (path, url), request).await {
            Ok(response) => return Ok(response),
            Err(SegmentError::Response(error)) => return Err(error),
            Err(SegmentError::FileChanged) if is_reloaded => {
                return Err(error::from_store(&store::Error::Changed));
            }
            // If the change affects this segment, the URL belongs to an outdated version. The
            // second attempt then returns 410.
            Err(SegmentError::FileChanged) => title = catalog.reload_title(&title).await?,
        }
        is_reloaded = true;
    }
}

async fn respond_from_title(
    title: &Arc<Title>,
    catalog: &Catalog,
    cache: &Arc<SegmentCache>,
    (path, url): (&str, &SegmentUrl),
    request: &ClientRequest<'_>,
) -> Result<Response<Body>, SegmentError> {
    let span = trace::start_span("plan", SpanKind::Internal);
    let located = LocatedSegment::locate_segment(title, url)?;
    let plan = located.plan_segment()?;
    drop(span);
    let source = located.segment_body_source(plan.sibling_ranges(), request);
    // Evaluates the conditions first, because reading and transmuxing cost far more than a 304
    // response.
    if plan.reads_media()
        && let Some(response) = request.evaluate_conditions(plan.headers())
    {
        return match source.object.changed() {
            true => Err(SegmentError::FileChanged),
            false => Ok(response),
        };
    }
    let canonical = route::RequestedResource::Segment(url.clone()).to_string();
    let slot = SegmentSlot {
        cache,
        path: &canonical,
        is_canonical: canonical == path,
    };
    let reads_ahead = catalog.reads_ahead() && request.method == Method::GET;
    if let Some(response) = plan
        .respond_with_protected_stream(&source, request, slot)
        .await?
    {
        if reads_ahead {
            located.read_ahead();
        }
        return Ok(response);
    }
    let segment = Arc::new(plan.materialise(&source, slot).await?);
    if slot.is_canonical {
        cache.insert_new_segment(path, segment.clone());
    }
    let response = segment
        .send_segment(source.without_first_check(), request)
        .await?;
    if reads_ahead {
        located.read_ahead();
    }
    Ok(response)
}
