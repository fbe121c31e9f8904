//! The thread that sends finished spans to the collector (OTLP/HTTP with protobuf).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, Uri};
use http_body_util::Full;
use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;
use upstream::{RequestUpload, TrustedAuthorities, UpstreamClient, UpstreamLimits};

use crate::collector_headers::CollectorHeaders;
use crate::otlp::{Attribute, AttributeValue, FinishedSpan, encode_spans};

const BATCH_SPANS_MAX: usize = 512;
/// Pause after a batch that is not full, so that the next batch contains more spans.
const BATCH_PAUSE: Duration = Duration::from_millis(500);
/// Pause after a failed batch. Meanwhile, new spans are queued. Once the queue is full, new spans
/// are dropped.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_BYTES_MAX: usize = 64 << 10;

struct Exporter {
    client: UpstreamClient,
    path: Uri,
    headers: Option<CollectorHeaders>,
    service: Vec<Attribute>,
}

/// File that contains the host name. In Kubernetes, the host name is the name of the pod.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Returns the attributes that identify a server (semantic conventions for resources). The host
/// name distinguishes the servers of a fleet, and is available on Linux only.
fn describe_service(name: &str) -> Vec<Attribute> {
    let text = |text: &str| AttributeValue::Text(text.to_owned());
    let mut attributes = vec![
        ("service.name", text(name)),
        ("service.version", text(env!("CARGO_PKG_VERSION"))),
    ];
    let host = std::fs::read_to_string(HOST_NAME);
    attributes.extend(host.ok().map(|host| ("host.name", text(host.trim()))));
    attributes
}

/// Starts the thread that exports spans. The thread ends when all senders are dropped.
pub(crate) fn spawn_exporter(
    endpoint: &str,
    headers: Option<CollectorHeaders>,
    service: &'static str,
    spans: Receiver<FinishedSpan>,
    dropped: Arc<AtomicU64>,
) -> io::Result<()> {
    let exporter = Exporter::new(endpoint, headers, service)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let work = move || runtime.block_on(exporter.run_export_loop(spans, &dropped));
    std::thread::Builder::new()
        .name("otlp".into())
        .spawn(work)?;
    Ok(())
}

impl Exporter {
    fn new(
        endpoint: &str,
        headers: Option<CollectorHeaders>,
        service: &'static str,
    ) -> io::Result<Exporter> {
        let invalid = |error: http::Error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let url: Uri = endpoint
            .parse()
            .map_err(|e| invalid(http::Error::from(e)))?;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let path = path.parse().map_err(|e| invalid(http::Error::from(e)))?;
        let mut server = url.into_parts();
        server.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        let server = Uri::from_parts(server).map_err(|e| invalid(http::Error::from(e)))?;
        let limits = UpstreamLimits {
            connect_timeout: STEP_TIMEOUT,
            first_byte_timeout: STEP_TIMEOUT,
            body_gap_timeout: STEP_TIMEOUT,
            ..UpstreamLimits::default()
        };
        Ok(Exporter {
            client: UpstreamClient::new(&server, 1, limits, &TrustedAuthorities::Public)?,
            path,
            headers,
            service: describe_service(service),
        })
    }

    async fn run_export_loop(mut self, mut spans: Receiver<FinishedSpan>, dropped: &AtomicU64) {
        let mut batch = Vec::with_capacity(BATCH_SPANS_MAX);
        while spans.recv_many(&mut batch, BATCH_SPANS_MAX).await > 0 {
            let count = batch.len();
            let body = encode_spans(&self.service, &batch);
            batch.clear();
            if let Err(error) = self.send_batch(body).await {
                tracing::warn!(error, spans = count, "cannot export spans; they are lost");
                dropped.fetch_add(count as u64, Relaxed);
                sleep(FAILURE_PAUSE).await;
            } else if count < BATCH_SPANS_MAX {
                sleep(BATCH_PAUSE).await;
            }
        }
    }

    async fn send_batch(&mut self, body: Vec<u8>) -> Result<(), String> {
        let request = self.build_request(body)?;
        let sent = self.client.send_once(0, request).await;
        let mut response = sent.map_err(|(error, _)| error.to_string())?;
        let status = response.status;
        let mut received = 0;
        while let Some(data) = response.next_data().await.map_err(|e| e.to_string())? {
            received += data.len();
            if received > RESPONSE_BYTES_MAX {
                return Err("the collector's response is too long".to_owned());
            }
        }
        match status.is_success() {
            true => Ok(()),
            false => Err(format!("the collector returned {status}")),
        }
    }

    fn build_request(&mut self, body: Vec<u8>) -> Result<Request<Option<RequestUpload>>, String> {
        let len = body.len();
        let mut request = Request::new(RequestUpload::new(Full::new(Bytes::from(body))));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        let host = HeaderValue::from_str(self.client.authority()).map_err(|e| e.to_string())?;
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        let headers = request.headers_mut();
        if let Some(of_collector) = &mut self.headers {
            *headers = of_collector.reload_headers().clone();
        }
        headers.insert(HOST, host);
        headers.insert(CONTENT_TYPE, protobuf);
        headers.insert(CONTENT_LENGTH, len.into());
        Ok(request)
    }
}
