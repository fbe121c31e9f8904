//! Cache warming: fetches a list of URLs into the cache, in the same way as for client requests.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use http::header::{self, HeaderMap};
use http::{Method, Request, Uri};
use http_body::Body as _;
use serde::Serialize;

use crate::Edge;
use crate::cache_outcome::CacheOutcome;
use crate::request_facts::RequestFacts;
use net::cmcd::CmcdData;

/// Maximum number of concurrent fetches.
const AT_ONCE: usize = 8;
/// Maximum number of URLs in a list.
const LINES_MAX: usize = 20_000;
/// Maximum number of failures that a report describes.
const NAMED_MAX: usize = 20;

/// The results of one list of URLs.
#[derive(Debug, Default, Serialize)]
pub struct WarmReport {
    /// Number of URLs on the list.
    pub listed: usize,
    /// Number of URLs that were fetched into the cache.
    pub fetched: usize,
    /// Number of URLs that were already cached.
    pub here: usize,
    /// Number of URLs that were fetched but are not cacheable.
    pub passed: usize,
    /// Number of URLs that could not be fetched.
    pub failed: usize,
    /// The first failures, with their reasons.
    pub failures: Vec<String>,
}

/// Parses a list with one URL per line. Empty lines and comments (`#`) are ignored, so a media
/// playlist is a valid list. `base` is prepended to relative URLs.
///
/// # Errors
/// A message with the first invalid line, or a message that the list has too many URLs.
pub fn parse_url_list(text: &str, base: &str) -> Result<Vec<Uri>, String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut urls = Vec::new();
    for line in lines {
        let is_complete = line.starts_with('/') || line.contains("://");
        let text = if is_complete {
            line.to_owned()
        } else {
            format!("{base}{line}")
        };
        let url: Uri = text.parse().map_err(|error| format!("{line}: {error}"))?;
        if !url.path().starts_with('/') || !text.starts_with('/') && url.host().is_none() {
            return Err(format!(
                "{line}: neither a path nor a URL; for relative URLs, add base=/FOLDER/"
            ));
        }
        urls.push(url);
        if urls.len() > LINES_MAX {
            return Err(format!("the list has more than {LINES_MAX} URLs; split it"));
        }
    }
    Ok(urls)
}

impl Edge {
    /// Fetches all URLs into the cache. `headers` are the request headers of the client that sent
    /// the list. The headers that may select a variant, such as `Accept-Encoding`, are sent with
    /// each fetch.
    pub async fn warm_urls(
        self: &Arc<Edge>,
        worker: usize,
        urls: Vec<Uri>,
        headers: &HeaderMap,
        client: IpAddr,
    ) -> WarmReport {
        let mut warmed = WarmReport {
            listed: urls.len(),
            ..WarmReport::default()
        };
        let fetches = urls.into_iter().map(|url| async move {
            let result = self.warm_url(worker, &url, headers, client).await;
            (url, result)
        });
        let mut fetches = futures_util::stream::iter(fetches).buffer_unordered(AT_ONCE);
        while let Some((url, result)) = fetches.next().await {
            match result {
                Ok(CacheOutcome::Hit | CacheOutcome::DiskHit | CacheOutcome::Stale(_)) => {
                    warmed.here += 1
                }
                Ok(
                    CacheOutcome::Pass(_)
                    | CacheOutcome::Miss(_, Some(_))
                    | CacheOutcome::Revalidated(_, Some(_)),
                ) => warmed.passed += 1,
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

    async fn warm_url(
        self: &Arc<Edge>,
        worker: usize,
        url: &Uri,
        headers: &HeaderMap,
        client: IpAddr,
    ) -> Result<CacheOutcome, String> {
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
        let facts = RequestFacts::from_parts(&parts, &self.settings, &self.loop_token, client);
        let mut facts = facts.map_err(|_| "the edge rejects this request")?;
        let actions = self
            .rules
            .request_actions(&facts, &CmcdData::default(), client);
        if actions.pass || actions.deny.is_some() {
            return Err("a rule with pass or deny applies".into());
        }
        facts.ttl = actions.ttl;
        actions
            .pool
            .into_iter()
            .for_each(|pool| facts.use_pool(pool));
        let (response, summary) = self.serve_through_cache(worker, &facts).await;
        if let Some(error) = summary.error {
            return Err(error.to_string());
        }
        let (status, mut body) = (response.status(), response.into_body());
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            frame.map_err(|cut| cut.to_string())?;
        }
        if status.is_success() {
            Ok(summary.outcome)
        } else {
            Err(status.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_playlist_is_a_valid_url_list() {
        let text = "#EXTM3U\n#EXTINF:2,\n1.m4s\n\n/film/2.m4s?x=1\r\n http://edge/3.m4s \n";
        let urls = parse_url_list(text, "/film/").unwrap();
        let urls: Vec<String> = urls.iter().map(Uri::to_string).collect();
        assert_eq!(
            urls,
            ["/film/1.m4s", "/film/2.m4s?x=1", "http://edge/3.m4s"]
        );
        for wrong in ["1.m4s", "a b", "*"] {
            assert!(parse_url_list(wrong, "").is_err(), "{wrong}");
        }
        let many = "/a\n".repeat(LINES_MAX + 1);
        assert!(parse_url_list(&many, "").is_err());
    }
}
