//! Reports the state of this process to the service manager (`sd_notify(3)`).
//!
//! Without the environment variable `NOTIFY_SOCKET`, nothing is sent.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// A state change that is reported to the service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceState {
    /// All ports accept connections.
    Ready,
    /// The settings are being read again. [`ServiceState::Ready`] follows.
    Reloading,
    /// The process accepts no new connections and will exit.
    Stopping,
}

impl ServiceState {
    /// Returns the message, with one assignment per line.
    fn format_notification(self) -> String {
        match self {
            // After a hand-over, the main process of the service is not the process that the
            // service manager started. The message therefore contains the new process id.
            ServiceState::Ready => format!("READY=1\nMAINPID={}\n", std::process::id()),
            ServiceState::Reloading => {
                let now = clock_gettime(ClockId::Monotonic);
                let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
                format!("RELOADING=1\nMONOTONIC_USEC={micros}\n")
            }
            ServiceState::Stopping => "STOPPING=1\n".into(),
        }
    }
}

/// Returns whether a service manager expects state notifications (`NOTIFY_SOCKET` is set).
pub(super) fn has_service_manager() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// Sends the state to the service manager, if `NOTIFY_SOCKET` is set. An error is only logged,
/// because the process can also serve without a service manager.
pub(super) fn notify_service_manager(state: ServiceState) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send_state(&path, state) {
        tracing::warn!(%error, socket = %path.display(), "cannot notify the service manager");
    }
}

fn send_state(path: &OsStr, state: ServiceState) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // Does not block, because the service manager's queue may be full and a server must not wait.
    socket.set_nonblocking(true)?;
    let sent = socket.send_to_addr(
        state.format_notification().as_bytes(),
        &parse_notify_address(path)?,
    );
    sent.map(drop)
}

/// Parses the address in `NOTIFY_SOCKET`. A path that starts with `@` names a socket in Linux's
/// abstract namespace.
fn parse_notify_address(path: &OsStr) -> io::Result<SocketAddr> {
    match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(path),
    }
}
