//! A player's request in flight.

use super::super::cmcd::attach_cmcd_report;
use super::super::player_interface::{DocumentFormat, FetchPurpose, MediaFetch};
use crate::client::{ClientRequest, HttpClient, RequestOutcome, TransferProgress, Url};
use media::manifest::read::MANIFEST_BYTES_MAX;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// A fetch in flight.
pub(super) struct InFlightFetch {
    pub(super) id: u32,
    pub(super) purpose: FetchPurpose,
    pub(super) url: Url,
    pub(super) start: Instant,
    pub(super) progress: Arc<TransferProgress>,
    pub(super) format: DocumentFormat,
    pub(super) result: Pin<Box<dyn Future<Output = RequestOutcome>>>,
}

/// Creates the request of a player. The request is sent when `result` is first polled.
pub(super) fn start_fetch(client: &Rc<HttpClient>, fetch: MediaFetch) -> InFlightFetch {
    let progress = Arc::<TransferProgress>::default();
    let mut url = fetch.resource.url;
    let fields = fetch
        .cmcd
        .map_or_else(Vec::new, |report| attach_cmcd_report(&report, &mut url));
    let mut request = ClientRequest::new(url.clone());
    request.progress = Some(progress.clone());
    for (name, text) in fields {
        request.add_header(name, &text);
    }
    if let Some(range) = fetch.resource.range {
        request = request.with_range(range);
    }
    if fetch.purpose.is_document() {
        request = request.keep_body(MANIFEST_BYTES_MAX);
    }
    let client = client.clone();
    let result = Box::pin(async move { client.execute_request(&request).await });
    InFlightFetch {
        id: fetch.id,
        purpose: fetch.purpose,
        url,
        start: Instant::now(),
        progress,
        format: fetch.format,
        result,
    }
}
