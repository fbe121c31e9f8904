//! A player's request in flight.

use super::super::cmcd::attach_cmcd_report;
use super::super::player_interface::{DocumentFormat, FetchPurpose, MediaFetch};
use crate::client::{
    ClientRequest, ExpectedBody, HttpClient, RequestOutcome, TransferProgress, Url,
};
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
        // The range of a document can end after the end of the file. Then the response is shorter.
        let is_checked = !fetch.purpose.is_document() && !range.is_empty();
        request.check = is_checked.then(|| ExpectedBody::check_length(&range));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ClientSettings, Dialer, FailureKind};
    use media::manifest::read::ResourceRange;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn a_server_that_ignores_the_range_of_a_segment_fails() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                let _ = socket.read(&mut [0; 4096]);
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nall");
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        for (purpose, range, fault) in [
            (
                FetchPurpose::Video,
                Some(0..2),
                Some(FailureKind::WrongLength),
            ),
            (FetchPurpose::Range, Some(0..3), None),
            (FetchPurpose::Video, None, None),
            (FetchPurpose::Index, Some(0..100), None),
        ] {
            let fetch = MediaFetch {
                id: 1,
                purpose,
                resource: ResourceRange {
                    url: url.clone(),
                    range,
                },
                format: DocumentFormat::Discard,
                cmcd: None,
            };
            let outcome = runtime.block_on(async {
                let dialer = Dialer::new(ClientSettings::default()).unwrap();
                start_fetch(&Rc::new(HttpClient::new(&dialer)), fetch)
                    .result
                    .await
            });
            assert_eq!((outcome.status, outcome.fault), (200, fault), "{outcome:?}");
        }
    }
}
