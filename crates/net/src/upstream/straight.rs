//! A long body straight from the socket into memory of just its length.
//!
//! HTTP reads into buffers of its own, which fit no body: what is to be kept would have to be copied
//! once more, and fresh buffers cost the kernel a page fault for every 4 KiB. So once a head has said
//! how long its body is, HTTP lets go of the socket and of what it has read of the body already, and
//! is given it back when the body is here.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::{BufMut, Bytes, BytesMut};
use http::Version;
use http::header::{CONNECTION, HeaderMap};
use http::response::Parts;
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::io::AsyncReadExt;

use super::connect::{Connection, Released};
use super::socket::Socket;

/// Shorter bodies are read by HTTP: to let go of a socket and to take it again costs more than their
/// copy.
pub(super) const BYTES_MIN: u64 = 64 << 10;
/// What is taken for a body of which nothing has come yet; later as much again as has come, so that
/// promises cost little: as long as origins keep them, bodies need no more than twice what is here.
const BUFFER_BYTES_MIN: u64 = 256 << 10;
/// The most memory taken at a time.
const BUFFER_BYTES_MAX: u64 = 1 << 20;

/// What is left of a body.
#[derive(Debug)]
pub(super) struct Straight {
    socket: Socket,
    /// HTTP had read it.
    early: Bytes,
    came: u64,
    left: u64,
    /// Room for what comes next.
    buffer: BytesMut,
    /// Another request may follow on the connection.
    again: bool,
    head_bytes_max: usize,
    worker: usize,
}

impl Straight {
    /// Of `len` bytes, of which `body` gives those that HTTP has handed on already; `head` is the
    /// answer's.
    pub(super) async fn new(
        released: Released,
        len: u64,
        head: &Parts,
        mut body: Incoming,
    ) -> Straight {
        let mut early = BytesMut::new();
        // Nobody feeds it any more, so that it ends at once, with an error where more was promised.
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            frame
                .into_data()
                .into_iter()
                .for_each(|data| early.put(data));
        }
        early.put(released.unread);
        let whole = !released.socket.is_unflushed() && early.len() as u64 <= len;
        let stays = head.version == Version::HTTP_11 && !says_close(&head.headers);
        Straight {
            socket: released.socket,
            early: early.freeze(),
            came: 0,
            left: len,
            buffer: BytesMut::new(),
            again: whole && stays,
            head_bytes_max: released.head_bytes_max,
            worker: released.worker,
        }
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// What came next, at least a byte of it.
    ///
    /// # Errors
    /// When the server ends before the body does.
    pub(super) async fn piece(&mut self) -> io::Result<Bytes> {
        if self.buffer.capacity() == 0 {
            let room = self.came.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
            // At most a MiB.
            let room = self.left.min(room) as usize;
            self.buffer = BytesMut::with_capacity(room);
        }
        let early = self.early.len().min(self.buffer.capacity());
        self.buffer.put_slice(&self.early.split_to(early));
        let room = self.buffer.capacity() - early;
        let room = room.min(usize::try_from(self.left).unwrap_or(room) - early);
        let mut limited = (&mut self.buffer).limit(room);
        let mut reading = pin!(self.socket.read_buf(&mut limited));
        if early == 0 {
            if reading.await? == 0 {
                let what = format!("the server closed it {} bytes early", self.left);
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
        } else if room > 0 {
            // With what is here anyway; an end, or an error, shows again at the next look.
            poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_ready())).await;
        }
        let piece = self.buffer.split().freeze();
        self.came += piece.len() as u64;
        self.left -= piece.len() as u64;
        Ok(piece)
    }

    /// The connection again, where another request may follow.
    pub(super) async fn connection(self) -> Option<Connection> {
        if !self.again {
            return None;
        }
        // Without one the next request opens another.
        let mut connection = Connection::over(self.socket, self.head_bytes_max)
            .await
            .ok()?;
        connection.worker = self.worker;
        Some(connection)
    }
}

/// RFC 9112 section 9.6.
fn says_close(headers: &HeaderMap) -> bool {
    let mut options = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}
