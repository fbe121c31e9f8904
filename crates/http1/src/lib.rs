//! A sans-IO HTTP/1.1 codec (RFC 9112) for every crate that sends requests: `store`, `upstream` and
//! the load tester.
//!
//! - [`write_request_head`] formats the head of a request, and [`ResponseHead::parse`] parses the
//!   head of a response.
//! - [`BodyDecoder`] finds the body's bytes in the bytes that follow the head. The decoder copies
//!   nothing and has no buffer, so the caller may also skip body bytes or splice them into a pipe.
//! - [`ChunkEncoder`] frames a request body of unknown length.
//!
//! The codec rejects ambiguous framing, except a response with both `Content-Length` and
//! `Transfer-Encoding`, whose connection is not reused. If two recipients disagree about the end of
//! a response, one of them reads a part of this response as the next response. The codec limits the
//! size of heads and of chunk framing.
//!
//! ```
//! use http1::{HeadLimits, ResponseHead};
//!
//! let received = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfilm\r\n0\r\n\r\n";
//! let (head, headers) =
//!     ResponseHead::parse_to_map(received, HeadLimits::default(), false)?.unwrap();
//! assert_eq!((head.status, headers.len(), head.keep_alive), (200, 1, true));
//!
//! let (mut body, mut rest) = (head.body, &received[head.len..]);
//! let data = body.next_data(rest)?;
//! assert_eq!(&rest[data.clone()], b"film");
//! rest = &rest[data.end..];
//! assert!(body.next_data(rest)?.is_empty() && body.is_complete());
//! # Ok::<(), http1::ProtocolError>(())
//! ```

mod body;
mod chunked;
mod error;
mod request;
mod response;

pub use body::BodyDecoder;
pub use chunked::{ChunkEncoder, ChunkedDecoder};
pub use error::ProtocolError;
pub use request::write_request_head;
pub use response::{HeadLimits, ResponseHead};
