//! Tests of redirects and of credentials.

use super::*;

/// Starts a server that redirects `/` to `target` with this status, and returns the received head
/// for all other paths.
fn redirect_and_echo(status: &'static str, target: impl Into<String>) -> Url {
    let target = target.into();
    let (url, _) = start_server(move |mut socket| {
        while let Some(text) = head(&mut socket) {
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
fn a_post_that_becomes_a_get_has_no_content_fields() {
    for (status, has_content) in [("303 See Other", false), ("307 Temporary", true)] {
        let url = redirect_and_echo(status, "/next");
        let text = echoed(request_with_credentials(url, http::Method::POST));
        assert_eq!(text.contains("content-type"), has_content, "{text}");
        assert_eq!(text.starts_with("POST"), has_content, "{text}");
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
