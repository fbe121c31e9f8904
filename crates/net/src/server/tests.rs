//! Tests over real sockets and raw bytes, from the client's side.

mod drain;
mod drain_tls;
mod http1;
mod http1_fast_path;
mod http2;
mod limits;
mod overload;
mod relayed;
mod support;
