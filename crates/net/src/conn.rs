//! The handler's view of a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

use http::{Response, StatusCode};

use crate::{Body, Error};

pub(crate) use self::connection_state::{
    CoarseClock, ConnectionState, CopyParameters, InFlight, SweepVerdict,
};
pub use self::interim::InterimSender;
pub(crate) use self::io::ConnectionIo;
pub(crate) use self::send_parts::OutgoingParts;
pub use self::tcp::{BbrInfo, RefusedOption, TcpInfo, TransportOptions};

mod connection_state;
mod interim;
mod io;
mod send_parts;
mod splice;
pub(crate) mod tcp;

/// The connection of a request. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Conn {
    pub(crate) shared: Arc<ConnectionState>,
    /// The request's number on its connection, starting at 1.
    pub request: u64,
    pub(crate) client: IpAddr,
}

impl Conn {
    /// Returns the peer's address. Behind a trusted proxy that sends the PROXY header, this is the
    /// address of the proxy's client.
    pub fn effective_peer(&self) -> SocketAddr {
        self.shared.effective_peer()
    }

    /// Returns the client's address that a trusted proxy has reported, or else the peer's address.
    pub fn client(&self) -> IpAddr {
        self.client
    }

    /// Returns whether the connection is encrypted.
    pub fn is_secure(&self) -> bool {
        self.shared.secure
    }

    /// Returns the connection's number, which is unique in this process. Numbers start at 1.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Returns whether bodies are copied into this process before they are sent, as TLS and HTTP/2
    /// require. Otherwise, the kernel sends most bytes without a copy.
    pub fn copies_bodies(&self) -> bool {
        self.shared.copy_parameters().is_some()
    }

    /// Reserves memory for a response that needs copies. Call this for every response before the
    /// response is recorded. If the call fails, the error replaces the response, also in the
    /// record.
    ///
    /// # Errors
    /// An error with status 503 if the copies of other responses use up `send-memory`.
    pub fn reserve_send_memory(&self, response: &mut Response<Body>) -> Result<(), Error> {
        match self.shared.copy_parameters() {
            Some(copying) if !response.body_mut().reserve_first_frame(&copying) => Err(Error {
                status: StatusCode::SERVICE_UNAVAILABLE,
                retry: true,
                ..Error::new_internal_error(
                    "send-memory is used up: too many clients read too slowly",
                )
            }),
            _ => Ok(()),
        }
    }

    /// Returns a handle that sends interim responses (1xx) before the final response.
    pub fn interim_sender(&self) -> InterimSender {
        InterimSender {
            connection: Arc::downgrade(&self.shared),
            request: self.request,
        }
    }

    /// Returns TCP's statistics of the connection.
    ///
    /// # Errors
    /// An error if the kernel does not provide the statistics.
    pub fn tcp_info(&self) -> std::io::Result<TcpInfo> {
        self.shared.tcp_info()
    }

    /// Applies these options until the next request on the connection. That request restores the
    /// former options. Returns the refused options.
    ///
    /// The former options are not restored at the end of the response, because its last bytes still
    /// wait in the socket and must be sent with the new options.
    pub fn apply_transport(&self, wanted: &TransportOptions) -> Vec<RefusedOption> {
        self.shared.apply_transport(wanted)
    }

    /// Returns a handle that can read the connection's state later. The handle does not keep the
    /// connection open.
    pub fn weak_handle(&self) -> WeakConnection {
        WeakConnection(Arc::downgrade(&self.shared))
    }
}

/// A handle to a connection that may already be closed.
#[derive(Debug, Clone)]
pub struct WeakConnection(pub(crate) Weak<ConnectionState>);

impl WeakConnection {
    /// Returns TCP's statistics, or `None` if the connection is closed or the kernel provides no
    /// statistics.
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        self.0.upgrade()?.tcp_info().ok()
    }

    /// Returns the number of requests so far, or `None` if the connection is closed.
    pub fn request_count(&self) -> Option<u64> {
        Some(self.0.upgrade()?.request_count())
    }
}
