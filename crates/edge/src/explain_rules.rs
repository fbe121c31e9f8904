//! `headwater edge explain`: evaluates the rules for a given request.

use std::io::Write as _;
use std::net::IpAddr;

use clap::{Arg, ArgAction, ArgMatches, Command};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use net::config::UsageError;

use crate::cache_key::unescape_unreserved;
use crate::rules::{self, RuleSet, RuleVariables};
use net::cmcd::CmcdData;

/// Builds the arguments of `headwater edge explain`.
pub fn define_explain_command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("explain")
        .about("Show which rule applies to a request, and why")
        .after_help(
            "Example:\n  headwater edge explain http://edge/film/1.m4s --client 10.1.2.3 --config edge.toml",
        )
        .arg(
            Arg::new("url")
                .value_name("URL")
                .required(true)
                .help("URL or path of the request"),
        )
        .arg(text(
            "client",
            "IP",
            "Address of the client [default: 127.0.0.1]",
        ))
        .arg(
            text("header", "LINE", "Header of the request, as NAME: VALUE; repeatable")
                .action(ArgAction::Append),
        )
        .arg(text("config", "FILE", "Settings file with the rules").required(true))
        .arg(text(
            "status",
            "CODE",
            "Status of the response [default: 200]",
        ))
        .arg(text("type", "TYPE", "Content-Type of the response"))
        .arg(text("cache", "RESULT", "Result of the cache: hit, stale, revalidated, follow, miss or pass [default: hit]"))
}

/// Prints the result of each rule up to the first match.
///
/// # Errors
/// [`UsageError`] for an invalid file, rule, URL, address or header.
pub fn print_rule_verdicts(flags: &ArgMatches) -> Result<(), UsageError> {
    let one = |name: &str| flags.get_one::<String>(name).map(String::as_str);
    let path = one("config").unwrap_or_default();
    let file = std::fs::read_to_string(path).map_err(|e| UsageError(format!("{path}: {e}")))?;
    let rules = rules::read_rules(path, &file)?;
    let url = one("url").unwrap_or_default();
    let uri: Uri = url.parse().map_err(|e| UsageError(format!("{url}: {e}")))?;
    let client = one("client").unwrap_or("127.0.0.1");
    let client: IpAddr = client
        .parse()
        .map_err(|_| UsageError(format!("client: invalid address {client:?}")))?;
    let lines = flags.get_many::<String>("header").unwrap_or_default();
    let headers = lines
        .map(|line| parse_header_line(line))
        .collect::<Result<HeaderMap, _>>()?;
    let mut response_headers = HeaderMap::new();
    if let Some(kind) = one("type") {
        let kind = HeaderValue::from_str(kind).map_err(|e| UsageError(format!("type: {e}")))?;
        response_headers.insert(http::header::CONTENT_TYPE, kind);
    }
    let status = one("status").unwrap_or("200");
    let status = status
        .parse()
        .map_err(|_| UsageError(format!("status: invalid status {status:?}")))?;
    // Maps the argument to a static string, because `RuleVariables` requires a `&'static str`.
    let cache = ["hit", "stale", "revalidated", "follow", "miss", "pass"];
    let requested = one("cache").unwrap_or("hit");
    let cache = cache.into_iter().find(|name| *name == requested);
    let cache = cache.ok_or_else(|| UsageError(format!("cache: unknown result {requested:?}")))?;
    let cmcd = CmcdData::parse_cmcd(uri.query(), &headers);
    let named = headers.get("host").and_then(|host| host.to_str().ok());
    let host = uri.authority().map(|host| host.as_str()).or(named);
    let host = host.unwrap_or_default().to_ascii_lowercase();
    let facts = RuleVariables {
        method: &Method::GET,
        host: &host,
        path: &unescape_unreserved(uri.path()),
        query: uri.query().unwrap_or_default(),
        client,
        headers: &headers,
        cmcd: &cmcd,
        response: Some((status, &response_headers, None, cache)),
        tcp: None,
    };
    // The error is ignored, because the reader may have closed the pipe (`| head`).
    let _ = std::io::stdout().write_all(describe_verdicts(&rules, &facts).as_bytes());
    Ok(())
}

fn describe_verdicts(rules: &RuleSet, facts: &RuleVariables<'_>) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let mut won = false;
    // Writing to a string cannot fail.
    for one in rules.explain_verdicts(facts) {
        let verdict = match &one.verdict {
            Ok(true) => "matches",
            Ok(false) => "does not match",
            Err(why) => why,
        };
        let _ = writeln!(
            text,
            "{}: {verdict}\n  when {}",
            one.rule.name, one.rule.source
        );
        if one.verdict == Ok(true) {
            won = true;
            let _ = writeln!(text, "  so: {}", one.rule.describe_actions());
            if let Some(rate) = rules
                .choose_response_rule(facts)
                .and_then(|c| c.transport.pace_bytes_per_s)
            {
                let _ = writeln!(text, "  pace: {} kbit/s", rate / 125);
            }
        }
    }
    if let Some((rule, _)) = rules.find_request_actions(facts) {
        let _ = writeln!(
            text,
            "on arrival of the request: {} ({})",
            rule.name,
            rule.describe_actions()
        );
    }
    if !won {
        text.push_str("no rule matches: the system's defaults apply\n");
    }
    text
}

fn parse_header_line(line: &str) -> Result<(HeaderName, HeaderValue), UsageError> {
    let wrong = || UsageError(format!("header: {line:?} is not NAME: VALUE"));
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let name = name.trim().parse().map_err(|_| wrong())?;
    let value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
    Ok((name, value))
}
