//! The server behind, and what its failures mean.

use std::time::{Duration, Instant, SystemTime};

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use net::Error;
use net::metrics::{Counter, Family, Metrics, Row};
use net::upstream::{Answer, Failed, Upstream};

const REQUESTS: Row = Row {
    name: "upstream_requests",
    unit: "",
    help: "Requests sent to origins, by what came of them",
};
const CONNECTIONS: Row = Row {
    name: "upstream_connections_opened",
    unit: "",
    help: "Connections opened to origins",
};

/// Who answers what is not kept.
#[derive(Debug)]
pub struct Origins {
    one: Upstream,
    host: HeaderValue,
    requests: Family,
    opened: Counter,
}

/// A head that has come, and when it was asked for.
pub struct Reply {
    pub answer: Answer,
    /// From asking to the head.
    pub delay: Duration,
    /// The wall clock when the head came.
    pub at: SystemTime,
}

impl Origins {
    pub fn new(one: Upstream, metrics: &Metrics) -> Origins {
        let host = HeaderValue::from_str(one.authority());
        Origins {
            // An authority that parsed is visible ASCII.
            host: host.unwrap_or(HeaderValue::from_static("")),
            one,
            requests: metrics.family(&REQUESTS, &["result"]),
            opened: metrics.counter(&CONNECTIONS),
        }
    }

    /// Asks for a target with these headers; `host` goes in place of the origin's own.
    ///
    /// # Errors
    /// 502 or 504 when no head came.
    pub async fn ask(
        &self,
        worker: usize,
        method: &Method,
        target: &str,
        mut headers: HeaderMap,
        host: Option<&HeaderValue>,
    ) -> Result<Reply, Error> {
        headers.insert(header::HOST, host.unwrap_or(&self.host).clone());
        let uri: Uri = target.parse().map_err(Error::internal)?;
        let mut request = Request::new(());
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let began = Instant::now();
        let sent = self.one.send(worker, &request).await;
        self.opened
            .inc_by(self.one.opened().saturating_sub(self.opened.get()));
        let result = match &sent {
            Ok(answer) if answer.status.is_server_error() => "error",
            Ok(_) => "answer",
            Err(failed) if failed.late => "late",
            Err(_) => "failed",
        };
        self.requests.of(&[result]).inc();
        Ok(Reply {
            answer: sent.map_err(|failed| error(&failed))?,
            delay: began.elapsed(),
            at: SystemTime::now(),
        })
    }
}

/// The one table of what an origin's failures mean for a client.
fn error(failed: &Failed) -> Error {
    let status = if failed.late {
        StatusCode::GATEWAY_TIMEOUT
    } else {
        StatusCode::BAD_GATEWAY
    };
    Error::upstream(status, failed)
}
