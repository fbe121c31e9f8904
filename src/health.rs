//! `headwater health` checks whether a server should receive traffic. Containers without a shell
//! can use this command as their health check.

use clap::{Arg, ArgMatches, Command};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(3);
/// Number of bytes that are read from a response: `HTTP/1.0 200`. A server may keep the connection open
/// after its response.
const STATUS_BYTES: u64 = 12;

pub(crate) fn health_command() -> Command {
    Command::new("health")
        .about("Check whether a running server is ready; exit with 1 if it is not")
        .after_help(
            "Examples:\n  headwater health\n  headwater health http://127.0.0.1:9090/healthz",
        )
        .arg(
            Arg::new("url")
                .help("Address of the health check, http:// only")
                .default_value("http://127.0.0.1:8080/readyz"),
        )
}

pub(crate) fn check_health(flags: &ArgMatches) -> ExitCode {
    let url = flags.get_one::<String>("url").map_or("", String::as_str);
    let Some((authority, path)) = split_url(url) else {
        eprintln!(
            "headwater: {url}: give an address like http://127.0.0.1:8080/readyz; https is not supported here"
        );
        return 2.into();
    };
    match request_status(authority, path) {
        Ok(200) => ExitCode::SUCCESS,
        Ok(status) => report_failure(url, &format!("the server responded with {status}")),
        Err(error) => report_failure(url, &error.to_string()),
    }
}

fn report_failure(url: &str, why: &str) -> ExitCode {
    eprintln!("headwater: {url}: {why}");
    ExitCode::FAILURE
}

/// Returns the authority and the path of an http URL.
fn split_url(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let slash = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    let is_plain = !url.contains(|c: char| c.is_whitespace() || c.is_control());
    (is_plain && !authority.is_empty())
        .then_some((authority, if path.is_empty() { "/" } else { path }))
}

fn request_status(authority: &str, path: &str) -> io::Result<u16> {
    let mut stream = connect(authority)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {authority}\r\n\r\n")?;
    let mut line = Vec::new();
    stream.take(STATUS_BYTES).read_to_end(&mut line)?;
    parse_status(&line).ok_or_else(|| io::Error::other("the answer is not HTTP"))
}

fn connect(authority: &str) -> io::Result<TcpStream> {
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let addresses = match has_port {
        true => authority.to_socket_addrs()?,
        false => format!("{authority}:80").to_socket_addrs()?,
    };
    let mut last = io::Error::other("the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads the status from a line such as `HTTP/1.0 200 OK`.
fn parse_status(line: &[u8]) -> Option<u16> {
    let text = line.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(text).ok()?.parse().ok()
}
