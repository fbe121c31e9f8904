//! Tests request bodies that are streamed while the response is received.

use super::*;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body of unknown length.
struct UnsizedBody(Vec<&'static str>);

impl Body for UnsizedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = (!self.0.is_empty()).then(|| self.0.remove(0));
        Poll::Ready(part.map(|part| Ok(Frame::data(Bytes::from(part)))))
    }
}

/// Starts a server that responds to one request. The channel returns the request's head and
/// `body_len` bytes of its body.
fn serve_one(response: &'static str, body_len: usize) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = read_head(&mut stream);
        // Responds early, because the client must read the response before the end of its upload.
        stream.write_all(response.as_bytes()).unwrap();
        let mut body = vec![0; body_len];
        stream.read_exact(&mut body).unwrap();
        text += &String::from_utf8(body).unwrap();
        sender.send(text).unwrap();
    });
    (address, received)
}

fn put_request<B>(body: B) -> Request<Option<RequestUpload>>
where
    B: Body + Send + 'static,
    B::Error: std::fmt::Display,
{
    let request = Request::put("/x")
        .header("host", "o")
        .header("content-length", "99");
    request.body(RequestUpload::new(body)).unwrap()
}

#[test]
fn a_body_of_unknown_length_is_sent_in_chunks() {
    let chunks = "4\r\nfilm\r\n1\r\ns\r\n0\r\n\r\n";
    let (address, received) = serve_one(OK, chunks.len());
    let client = connect_to(address);
    block_on(async {
        let request = put_request(UnsizedBody(vec!["film", "", "s"]));
        let mut response = client.send_once(0, request).await.unwrap();
        assert_eq!(read_body(&mut response).await.unwrap(), b"abc");
    });
    let text = received.recv().unwrap();
    assert!(
        text.contains("\r\ntransfer-encoding: chunked\r\n") && !text.contains("99"),
        "{text}"
    );
    assert!(text.ends_with(chunks), "{text}");
}

#[test]
fn a_long_upload_continues_while_the_response_is_read() {
    let body = "v".repeat(8 << 20);
    let (address, received) =
        serve_one("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", body.len());
    let client = connect_to(address);
    block_on(async {
        let mut response = client
            .send_once(0, put_request(Full::<Bytes>::from(body.clone())))
            .await
            .unwrap();
        // The last byte of the response never arrives, so the client continues to read and to
        // upload. The server closes the connection after it has received the whole upload.
        let error = read_body(&mut response).await.unwrap_err();
        assert!(!error.reason.is_empty());
    });
    let text = received.recv().unwrap();
    assert!(text.contains("\r\ncontent-length: 8388608\r\n") && text.ends_with(&body));
}

#[test]
fn a_body_that_is_not_of_its_declared_length_fails_the_request() {
    struct Short;
    impl Body for Short {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(None)
        }

        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(7)
        }
    }
    let (address, _requests) = start_server(vec![vec![]]);
    let (error, unsent) =
        block_on(connect_to(address).send_once(0, put_request(Short))).unwrap_err();
    assert!(
        error.reason.contains("differs from the declared one") && unsent.is_none(),
        "{error}"
    );
}
