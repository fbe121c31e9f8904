//! `headwater edge explain`: which rule would apply to a request, and why.

use std::io::Write as _;
use std::net::IpAddr;

use clap::{Arg, ArgAction, ArgMatches, Command};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use net::config::Wrong;

use crate::cmcd::Cmcd;
use crate::rules::{self, Facts, Rules};

/// The words of `headwater edge explain`.
pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("explain")
        .about("Say which rule would apply to a request, and why")
        .after_help(
            "Example:\n  headwater edge explain http://edge/film/1.m4s --client 10.1.2.3 --config edge.toml",
        )
        .arg(
            Arg::new("url")
                .value_name("URL")
                .required(true)
                .help("URL or path"),
        )
        .arg(text(
            "client",
            "IP",
            "The client's address [default: 127.0.0.1]",
        ))
        .arg(
            text("header", "LINE", "A header of the request, as NAME: VALUE")
                .action(ArgAction::Append),
        )
        .arg(text("config", "FILE", "The settings file with the rules").required(true))
        .arg(text(
            "status",
            "CODE",
            "Status of the answer [default: 200]",
        ))
        .arg(text("type", "TYPE", "Content-Type of the answer"))
        .arg(text("cache", "RESULT", "What the cache did [default: hit]"))
}

/// Prints every rule up to the one that wins.
///
/// # Errors
/// [`Wrong`] for a file, rule, URL, address or header that is none.
pub fn explain(flags: &ArgMatches) -> Result<(), Wrong> {
    let one = |name: &str| flags.get_one::<String>(name).map(String::as_str);
    let path = one("config").unwrap_or_default();
    let file = std::fs::read_to_string(path).map_err(|e| Wrong(format!("{path}: {e}")))?;
    let rules = rules::read(path, &file)?;
    let url = one("url").unwrap_or_default();
    let uri: Uri = url.parse().map_err(|e| Wrong(format!("{url}: {e}")))?;
    let client = one("client").unwrap_or("127.0.0.1");
    let client: IpAddr = client
        .parse()
        .map_err(|_| Wrong(format!("{client}: no address")))?;
    let lines = flags.get_many::<String>("header").unwrap_or_default();
    let headers = lines
        .map(|line| header(line))
        .collect::<Result<HeaderMap, _>>()?;
    let mut answer = HeaderMap::new();
    if let Some(kind) = one("type") {
        let kind = HeaderValue::from_str(kind).map_err(|e| Wrong(format!("type: {e}")))?;
        answer.insert(http::header::CONTENT_TYPE, kind);
    }
    let status = one("status").unwrap_or("200");
    let status = status
        .parse()
        .map_err(|_| Wrong(format!("{status}: no status")))?;
    // The name is printed or compared, never kept.
    let cache = ["hit", "stale", "revalidated", "follow", "miss", "pass"];
    let asked = one("cache").unwrap_or("hit");
    let cache = cache.into_iter().find(|name| *name == asked);
    let cache = cache.ok_or_else(|| Wrong(format!("{asked}: the cache has no such result")))?;
    let cmcd = Cmcd::of(uri.query(), &headers);
    let named = headers.get("host").and_then(|host| host.to_str().ok());
    let host = uri.authority().map(|host| host.as_str()).or(named);
    let host = host.unwrap_or_default().to_ascii_lowercase();
    let facts = Facts {
        method: &Method::GET,
        host: &host,
        path: uri.path(),
        query: uri.query().unwrap_or_default(),
        client,
        headers: &headers,
        cmcd: &cmcd,
        answer: Some((status, &answer, None, cache)),
        tcp: None,
    };
    // Whoever reads it may have seen enough (`| head`).
    let _ = std::io::stdout().write_all(describe(&rules, &facts).as_bytes());
    Ok(())
}

fn describe(rules: &Rules, facts: &Facts<'_>) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let mut won = false;
    // Writing to a string cannot fail.
    for one in rules.explain(facts) {
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
            let _ = writeln!(text, "  so: {}", one.rule.actions());
            if let Some(rate) = rules
                .choose(facts)
                .and_then(|c| c.transport.pace_bytes_per_s)
            {
                let _ = writeln!(text, "  pace: {} kbit/s", rate / 125);
            }
        }
    }
    if let Some((rule, _)) = rules.early(facts) {
        let _ = writeln!(
            text,
            "when the request comes: {} ({})",
            rule.name,
            rule.actions()
        );
    }
    if !won {
        text.push_str("no rule matches: it is sent as the system does by default\n");
    }
    text
}

fn header(line: &str) -> Result<(HeaderName, HeaderValue), Wrong> {
    let wrong = || Wrong(format!("{line:?}: a header is NAME: VALUE"));
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let name = name.trim().parse().map_err(|_| wrong())?;
    let value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
    Ok((name, value))
}
