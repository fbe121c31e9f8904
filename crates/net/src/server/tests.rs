//! Real sockets, raw bytes: what a client sees.

mod direct;
mod drain;
mod http1;
mod http2;
mod limits;
mod relayed;
mod support;
