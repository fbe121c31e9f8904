//! The HTTP client: bodies are counted and discarded, every moment is stamped, every failure has a
//! kind, and everything is bounded.
//!
//! A request's journey: a [`Client`] takes an idle connection or lets its [`Dialer`] make one
//! (`dial`, `stream`), one exchange is made on it (`h1` with `head` and `framing`, or `h2`), the
//! body goes to a [`Sink`] or nowhere at all, redirects are followed, and an [`Outcome`] says how it
//! went. The rate engine uses the same connections without the pool.

mod check;
mod dial;
mod fault;
mod framing;
pub(crate) mod h1;
pub(crate) mod h2;
mod head;
mod pool;
mod request;
mod settings;
mod sink;
mod stream;
mod tls;

pub use check::{Check, Digest};
pub use dial::{Connections, Dialer};
pub use fault::{Failure, Fault};
pub use pool::Client;
pub(crate) use pool::redirect;
pub use request::{Outcome, Request, Reuse};
pub use settings::{Settings, Version};
pub use sink::{Discard, Keep, Sink};
pub use url::Url;

pub(crate) use dial::Link;

#[cfg(test)]
mod tests;
