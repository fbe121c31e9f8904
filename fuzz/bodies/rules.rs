//! Checks that no settings file makes the rule parser panic, and that no request makes a rule
//! panic. The values that a rule chooses must stay within their limits.

use std::net::IpAddr;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response};

use crate::rules::{RuleVariables, read_rules};
use net::cmcd::CmcdData;

/// `data` contains a settings file, a line of three dashes, and a request. The request consists of
/// its target, the client's address, and header lines.
pub fn run_case(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (file, request) = text.split_once("\n---\n").unwrap_or((&text, ""));
    let rules = match read_rules("edge.toml", file) {
        Ok(rules) => rules,
        Err(error) => {
            assert!(error.0.starts_with("edge.toml"), "{}", error.0);
            return;
        }
    };
    let mut lines = request.lines();
    let target = lines.next().unwrap_or("/");
    let client = lines.next().and_then(|line| line.parse().ok());
    let mut headers = HeaderMap::new();
    for (name, value) in lines.take(64).filter_map(|line| line.split_once(": ")) {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let cmcd = CmcdData::parse_cmcd(Some(query), &headers);
    let early = RuleVariables {
        method: &Method::GET,
        host: "edge",
        path,
        query,
        client: client.unwrap_or(IpAddr::from([10, 1, 2, 3])),
        headers: &headers,
        cmcd: &cmcd,
        response: None,
        tcp: None,
    };
    if let Some((rule, actions)) = rules.find_request_actions(&early) {
        assert!(!rule.describe_actions().is_empty());
        assert!(actions.delay.is_none_or(|delay| delay.as_secs() <= 60));
        assert!(actions.deny.is_none_or(|status| status.as_u16() >= 400));
    }
    let late = RuleVariables {
        response: Some((200, &headers, Some(1 << 20), "hit")),
        ..early
    };
    let explained = rules.explain_verdicts(&late);
    let won = explained
        .last()
        .is_some_and(|last| last.verdict == Ok(true));
    let chosen = rules.choose_response_rule(&late);
    assert_eq!(chosen.is_some(), won);
    let Some(chosen) = chosen else {
        return;
    };
    assert!(
        chosen
            .transport
            .pace_bytes_per_s
            .is_none_or(|pace| pace >= 8 << 10)
    );
    assert!(
        chosen
            .transport
            .initial_window_packets
            .is_none_or(|packets| (1..=1000).contains(&packets))
    );
    let mut response = Response::new(());
    *response.headers_mut() = headers.clone();
    chosen.rule.edit_headers(response.headers_mut());
}
