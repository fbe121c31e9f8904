//! Tests the server from the client's side, with real sockets and raw bytes.

mod drain;
mod drain_tls;
mod http1;
mod http1_fast_path;
mod http2;
mod limits;
mod overload;
mod relayed;
mod support;
