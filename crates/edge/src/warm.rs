//! Warming up: fetching what is on a list, as if a client had asked for it.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use http::header::{self, HeaderMap};
use http::{Method, Request, Uri};
use http_body::Body as _;
use net::Conn;
use serde::Serialize;

use crate::Edge;
use crate::cmcd::Cmcd;
use crate::reason::Outcome;
use crate::receive::Received;

/// Fetched at a time.
const AT_ONCE: usize = 8;
/// Lines of a list, at most.
const LINES_MAX: usize = 20_000;
/// Failures that are named, at most.
const NAMED_MAX: usize = 20;

/// What came of a list.
#[derive(Debug, Default, Serialize)]
pub struct Warmed {
    /// URLs on the list.
    pub listed: usize,
    /// Fetched now.
    pub fetched: usize,
    /// Here already.
    pub here: usize,
    /// Answered, but not to be kept.
    pub passed: usize,
    /// Not to be had.
    pub failed: usize,
    /// The first of those, with the reason.
    pub failures: Vec<String>,
}

/// The URLs of a list: a line each. Empty lines and comments (`#`) are none, so that a media
/// playlist is a list, too; what is no path or URL stands in the folder `base`.
///
/// # Errors
/// In words, for a line that is no URL, or too many of them.
pub fn list(text: &str, base: &str) -> Result<Vec<Uri>, String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut urls = Vec::new();
    for line in lines {
        let whole = line.starts_with('/') || line.contains("://");
        let text = if whole {
            line.to_owned()
        } else {
            format!("{base}{line}")
        };
        let url: Uri = text.parse().map_err(|error| format!("{line}: {error}"))?;
        if !url.path().starts_with('/') || !text.starts_with('/') && url.host().is_none() {
            return Err(format!(
                "{line}: no path and no URL; is base=/FOLDER/ missing?"
            ));
        }
        urls.push(url);
        if urls.len() > LINES_MAX {
            return Err(format!("more than {LINES_MAX} URLs"));
        }
    }
    Ok(urls)
}

impl Edge {
    /// Fetches all of them; `headers` are those of each request (`Accept-Encoding`, say, for
    /// variants).
    pub async fn warm(
        self: &Arc<Edge>,
        worker: usize,
        urls: Vec<Uri>,
        headers: &HeaderMap,
        conn: &Conn,
    ) -> Warmed {
        let mut warmed = Warmed {
            listed: urls.len(),
            ..Warmed::default()
        };
        let fetches = urls.into_iter().map(|url| async move {
            let result = self.warm_one(worker, &url, headers, conn).await;
            (url, result)
        });
        let mut fetches = futures_util::stream::iter(fetches).buffer_unordered(AT_ONCE);
        while let Some((url, result)) = fetches.next().await {
            match result {
                Ok(Outcome::Hit | Outcome::Disk | Outcome::Stale(_)) => warmed.here += 1,
                Ok(Outcome::Pass(_) | Outcome::Miss(_, Some(_))) => warmed.passed += 1,
                Ok(_) => warmed.fetched += 1,
                Err(why) => {
                    warmed.failed += 1;
                    if warmed.failures.len() < NAMED_MAX {
                        warmed.failures.push(format!("{url}: {why}"));
                    }
                }
            }
        }
        warmed
    }

    async fn warm_one(
        self: &Arc<Edge>,
        worker: usize,
        url: &Uri,
        headers: &HeaderMap,
        conn: &Conn,
    ) -> Result<Outcome, String> {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.method = Method::GET;
        parts.uri = url.clone();
        for name in [
            header::ACCEPT,
            header::ACCEPT_ENCODING,
            header::ACCEPT_LANGUAGE,
        ] {
            for value in headers.get_all(&name) {
                parts.headers.append(name.clone(), value.clone());
            }
        }
        let host = url.authority().and_then(|host| host.as_str().parse().ok());
        if let Some(host) = host {
            parts.headers.insert(header::HOST, host);
        }
        let received = Received::new(&parts, &self.settings, &self.instance, conn.client());
        let mut received = received.map_err(|_| "it is not relayed")?;
        let early = self.steer.early(&received, &Cmcd::default(), conn);
        if early.pass || early.deny.is_some() {
            return Err("a rule passes it on or denies it".into());
        }
        received.ttl = early.ttl;
        early
            .pool
            .into_iter()
            .for_each(|pool| received.turn_to(pool));
        let (response, ended) = self.relay(worker, &received).await;
        if let Some(error) = ended.error {
            return Err(error.to_string());
        }
        let (status, mut body) = (response.status(), response.into_body());
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            frame.map_err(|cut| cut.to_string())?;
        }
        if status.is_success() {
            Ok(ended.outcome)
        } else {
            Err(status.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_lines_and_a_playlist_is_one_too() {
        let text = "#EXTM3U\n#EXTINF:2,\n1.m4s\n\n/film/2.m4s?x=1\r\n http://edge/3.m4s \n";
        let urls = list(text, "/film/").unwrap();
        let urls: Vec<String> = urls.iter().map(Uri::to_string).collect();
        assert_eq!(
            urls,
            ["/film/1.m4s", "/film/2.m4s?x=1", "http://edge/3.m4s"]
        );
        for wrong in ["1.m4s", "a b", "*"] {
            assert!(list(wrong, "").is_err(), "{wrong}");
        }
        let many = "/a\n".repeat(LINES_MAX + 1);
        assert!(list(&many, "").is_err());
    }
}
