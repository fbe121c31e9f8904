//! Tests which connections are reused, and which requests are sent again.

use super::*;
use std::sync::mpsc::channel;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn bytes_on_an_idle_connection_are_not_the_next_response() {
    let (send_surplus, surplus_due) = channel::<()>();
    let (surplus_sent, wait_for_surplus) = channel::<()>();
    let surplus = std::sync::Mutex::new((surplus_due, surplus_sent));
    let (url, count) = start_server(move |mut socket| {
        while head(&mut socket).is_some() {
            socket.write_all(OK.as_bytes()).unwrap();
            let (due, sent) = &*surplus.lock().unwrap();
            if due.recv().is_ok() {
                let wrong = OK.replace("200 OK", "500 Surplus");
                socket.write_all(wrong.as_bytes()).unwrap();
                sent.send(()).unwrap();
            }
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = HttpClient::new(&Dialer::new(test_settings()).unwrap());
        let request = ClientRequest::new(url);
        assert!(client.execute_request(&request).await.is_success());
        send_surplus.send(()).unwrap();
        wait_for_surplus.recv().unwrap();
        drop(send_surplus);
        // Lets the event loop see the surplus bytes.
        tokio::task::yield_now().await;
        let outcome = client.execute_request(&request).await;
        assert!(outcome.is_success(), "{outcome:?}");
        assert_eq!(outcome.connection, Some(ConnectionFreshness::New));
    });
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

/// After a request that the server did not answer, the client cannot know whether the server has
/// processed it.
#[test]
fn only_idempotent_requests_are_sent_again() {
    for (method, fault, connections) in [
        (http::Method::GET, None, 2),
        (http::Method::PUT, None, 2),
        (http::Method::POST, Some(FailureKind::Closed), 1),
    ] {
        // Each connection closes after it has received its second request.
        let (url, count) = start_server(|mut socket| {
            head(&mut socket);
            let _ = socket.write_all(OK.as_bytes());
            head(&mut socket);
        });
        let request = ClientRequest {
            method: method.clone(),
            ..ClientRequest::new(url)
        };
        let outcomes = send_all(test_settings(), &[request.clone(), request]);
        assert_eq!(outcomes[1].fault, fault, "{method}: {outcomes:?}");
        assert_eq!(count.load(Ordering::SeqCst), connections, "{method}");
    }
}
