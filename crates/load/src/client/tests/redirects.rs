//! Tests of redirects and of credentials.

use super::*;
use std::io::Read;

/// Starts a server that redirects `/` to `target` with this status, and returns the received request
/// for all other paths.
fn redirect_and_echo(status: &'static str, target: impl Into<String>) -> Url {
    let target = target.into();
    let (url, _) = start_server(move |mut socket| {
        while let Some(mut text) = head(&mut socket) {
            text.push_str(&read_body(&mut socket, &text));
            let is_root = text.split(' ').nth(1) == Some("/");
            let (status, body) = match is_root {
                true => (status, ""),
                false => ("200 OK", text.as_str()),
            };
            let response = format!(
                "HTTP/1.1 {status}\r\nLocation: {target}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            socket.write_all(response.as_bytes()).unwrap();
        }
    });
    url
}

/// Reads the request body that follows this head.
fn read_body(socket: &mut TcpStream, head: &str) -> String {
    let length = head.split("Content-Length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    socket.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

fn request_with_credentials(url: Url, method: http::Method) -> ClientRequest {
    let mut request = ClientRequest {
        method,
        ..ClientRequest::new(url).keep_body(1 << 12)
    };
    for (name, value) in [
        ("Authorization", "secret"),
        ("Cookie", "secret"),
        ("Proxy-Authorization", "secret"),
        ("Host", "first.test"),
        ("Content-Type", "text/plain"),
        ("X-One", "1"),
    ] {
        assert!(request.add_header(name, value));
    }
    request
}

fn echoed(request: ClientRequest) -> String {
    let outcome = send_one(request);
    assert!(outcome.is_success(), "{outcome:?}");
    String::from_utf8(outcome.body).unwrap()
}

/// Regression: the first byte of the redirect was taken as the first byte of the final response.
#[test]
fn times_after_a_redirect_are_those_of_the_last_request() {
    let outcome = send_one(ClientRequest::new(redirect_and_echo("302 Found", "/next")));
    assert!(outcome.is_success(), "{outcome:?}");
    let (sent, first) = (outcome.sent.unwrap(), outcome.first_byte.unwrap());
    assert!(sent <= first && first <= outcome.last_byte, "{outcome:?}");
}

#[test]
fn credentials_are_not_sent_to_another_origin() {
    let echo = redirect_and_echo("404 Not Found", "/");
    let first = redirect_and_echo("307 Temporary", echo.join("next").unwrap());
    let text = echoed(request_with_credentials(first, http::Method::GET));
    assert!(
        !text.contains("secret") && !text.contains("first.test"),
        "{text}"
    );
    let host = format!("Host: 127.0.0.1:{}\r\n", echo.port().unwrap());
    assert!(text.contains(&host) && text.contains("x-one: 1"), "{text}");
}

#[test]
fn credentials_are_sent_again_to_the_same_origin() {
    let url = redirect_and_echo("307 Temporary", "/next");
    let text = echoed(request_with_credentials(url, http::Method::GET));
    assert_eq!(text.matches("secret").count(), 3, "{text}");
    assert!(text.contains("host: first.test"), "{text}");
}

#[test]
fn a_post_that_becomes_a_get_has_no_body_and_no_content_fields() {
    for (status, is_post) in [
        ("301 Moved", false),
        ("302 Found", false),
        ("303 See Other", false),
        ("307 Temporary", true),
        ("308 Permanent", true),
    ] {
        let url = redirect_and_echo(status, "/next");
        let mut request = request_with_credentials(url, http::Method::POST);
        request.body = "film".into();
        let text = echoed(request);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(head.starts_with("POST"), is_post, "{text}");
        assert_eq!(body, if is_post { "film" } else { "" }, "{text}");
        let has_content_field = head.to_lowercase().contains("\r\ncontent-");
        assert_eq!(has_content_field, is_post, "{text}");
    }
}

/// Regression: 301 and 302 changed all methods except HEAD to GET.
#[test]
fn only_303_changes_a_put_to_a_get() {
    for (status, start, end) in [
        ("301 Moved", "PUT", "\r\n\r\nfilm"),
        ("302 Found", "PUT", "\r\n\r\nfilm"),
        ("303 See Other", "GET", "\r\n\r\n"),
    ] {
        let url = redirect_and_echo(status, "/next");
        let text = echoed(ClientRequest {
            method: http::Method::PUT,
            body: "film".into(),
            ..ClientRequest::new(url).keep_body(1 << 12)
        });
        assert!(text.starts_with(start) && text.ends_with(end), "{text}");
    }
}

#[test]
fn credentials_of_the_url_are_sent_as_basic_authorization() {
    let mut url = redirect_and_echo("302 Found", "/next");
    url.set_username("me").unwrap();
    url.set_password(Some("a b")).unwrap();
    let text = echoed(ClientRequest::new(url.clone()).keep_body(1 << 12));
    // "me:a b" in Base64.
    let expected = "Authorization: Basic bWU6YSBi\r\n";
    assert!(text.contains(expected) && !text.contains('@'), "{text}");
    let defaults = http1_exchange::DefaultHeaders {
        user_agent: "x",
        keep_alive: true,
    };
    let headers = http::HeaderMap::new();
    let request = http2_exchange::build_request(&http::Method::GET, &url, &headers, &defaults);
    let request = request.unwrap();
    let authority = format!("127.0.0.1:{}", url.port().unwrap());
    assert_eq!(request.uri().authority().unwrap().as_str(), authority);
    assert_eq!(request.headers()["authorization"], "Basic bWU6YSBi");
}
