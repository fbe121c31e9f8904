//! Serves the paths of the admin port that show the viewers.

use std::time::Instant;

use http::{Method, Response, StatusCode};

use crate::{Body, Error};

use super::collector::CmcdCollector;
use super::{page, summary};

const PATHS: [&str; 3] = ["/viewers", "/viewers.json", "/viewers.js"];

/// Responds to an operator's request if its path is one of the viewer paths, and otherwise returns
/// `None`. Without a collector, the response is an error that names the setting to enable the
/// collector.
pub fn viewers_response(
    collector: Option<&CmcdCollector>,
    method: &Method,
    path: &str,
) -> Option<Response<Body>> {
    if !PATHS.contains(&path) || !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let Some(collector) = collector else {
        let what = "viewers are not collected; start the server with --cmcd-collector";
        return Some(Error::new_client_error(StatusCode::NOT_FOUND, what).to_response());
    };
    if path == "/viewers.js" {
        return Some(page::script_response());
    }
    let summary = summary::summarize_sessions(&collector.table, Instant::now());
    Some(match path {
        "/viewers" => page::page_response(&summary),
        _ => page::json_response(&summary),
    })
}
