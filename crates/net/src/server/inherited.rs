//! Listening sockets that the service manager or a predecessor process has opened.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use socket2::SockRef;

/// Names of the sockets of additional ports. Sockets with other names belong to the main port.
///
/// The service manager's unit file sets the name of a socket (`FileDescriptorName=admin`).
const NAMED_PORTS: [&str; 1] = ["admin"];

/// The first descriptor that a service manager passes (`sd_listen_fds(3)`).
const FIRST_DESCRIPTOR: i32 = 3;
/// Limit on the descriptors that a service manager may pass.
const DESCRIPTORS_MAX: i32 = 1024;

/// A listening socket that another process has opened.
#[derive(Debug)]
pub struct InheritedListener {
    /// The name of the socket's port.
    pub(crate) port: String,
    /// The configured address. `None` means that the socket replaces all configured addresses.
    pub(crate) address: Option<String>,
    pub(crate) listener: TcpListener,
}

impl InheritedListener {
    /// Takes the sockets that a service manager has passed to this process (`LISTEN_PID` and
    /// `LISTEN_FDS`).
    ///
    /// Call this function once, before any thread starts another program. Otherwise the program
    /// could inherit the sockets.
    ///
    /// # Errors
    /// When a passed descriptor is not a listening TCP socket.
    pub(crate) fn take_activated(main_port: &str) -> io::Result<Vec<InheritedListener>> {
        let variable = |name: &str| std::env::var(name).ok();
        let is_for_us =
            variable("LISTEN_PID").is_some_and(|pid| pid == std::process::id().to_string());
        let count: Option<i32> = variable("LISTEN_FDS").and_then(|count| count.parse().ok());
        let Some(count) = count.filter(|_| is_for_us) else {
            return Ok(Vec::new());
        };
        if !(0..=DESCRIPTORS_MAX).contains(&count) {
            let what = format!("LISTEN_FDS = {count}: more than {DESCRIPTORS_MAX} sockets");
            return Err(io::Error::other(what));
        }
        let names = variable("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let sockets = crate::conn::tcp::take_activation_descriptors(FIRST_DESCRIPTOR, count);
        let adopt = |socket: io::Result<_>| {
            let name = names.next().unwrap_or_default();
            let listener = check_listener(socket?)
                .map_err(|error| io::Error::other(format!("LISTEN_FDS: socket {name:?}: {error}")));
            let named = NAMED_PORTS.contains(&name);
            Ok(InheritedListener {
                port: if named { name } else { main_port }.to_owned(),
                address: None,
                listener: listener?,
            })
        };
        sockets.into_iter().map(adopt).collect()
    }
}

/// Checks that a descriptor is a listening TCP socket, and prepares the socket for workers.
fn check_listener(socket: std::os::fd::OwnedFd) -> io::Result<TcpListener> {
    let listener = TcpListener::from(socket);
    let socket_ref = SockRef::from(&listener);
    let is_tcp = socket_ref.local_addr()?.as_socket().is_some();
    if !is_tcp || !socket_ref.is_listener()? {
        return Err(io::Error::other(
            "not a listening TCP socket; use ListenStream= and Accept=no",
        ));
    }
    socket_ref.set_tcp_nodelay(true)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Distributes the sockets of one address over the workers.
///
/// Every socket gets a worker, because the kernel queues connections at every socket. If there are
/// more workers than sockets, several workers accept from one socket.
pub(super) fn distribute_sockets(
    sockets: Vec<TcpListener>,
    workers: &mut [Vec<TcpListener>],
) -> io::Result<()> {
    let (count, all) = (sockets.len(), workers.len());
    if count == 0 || all == 0 {
        return Ok(());
    }
    for number in count..all {
        if let (Some(worker), Some(socket)) = (workers.get_mut(number), sockets.get(number % count))
        {
            worker.push(socket.try_clone()?);
        }
    }
    for (number, socket) in sockets.into_iter().enumerate() {
        if let Some(worker) = workers.get_mut(number % all) {
            worker.push(socket);
        }
    }
    Ok(())
}

/// Removes the sockets of one configured address from `inherited`, and returns these sockets.
pub(super) fn take_sockets_for_address(
    inherited: &mut Vec<InheritedListener>,
    name: &str,
) -> Vec<TcpListener> {
    let matches = |one: &mut InheritedListener| one.address.as_deref() == Some(name);
    let matching = inherited.extract_if(.., matches);
    matching.map(|one| one.listener).collect()
}

/// Copies of a server's listeners with their configured addresses, for a successor.
///
/// Each copy keeps its port open, so the workers drop the copies before they close the port.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListenerCopies(Arc<Mutex<Vec<ListenerCopy>>>);

#[derive(Debug)]
pub(crate) struct ListenerCopy {
    pub(crate) address: String,
    pub(crate) listener: TcpListener,
}

impl ListenerCopies {
    /// Copies the listeners of all workers. `names` are the configured addresses, and `addresses`
    /// are the bound addresses in the same order.
    pub(super) fn duplicate_listeners(
        &self,
        names: &[String],
        addresses: &[SocketAddr],
        listeners: &[Vec<TcpListener>],
    ) -> io::Result<()> {
        let mut copies = Vec::new();
        for listener in listeners.iter().flatten() {
            let local = listener.local_addr()?;
            let place = addresses.iter().position(|address| *address == local);
            let name = place.and_then(|place| names.get(place));
            copies.push(ListenerCopy {
                // Sockets of a service manager have no configured address, so the bound address is
                // used.
                address: name.cloned().unwrap_or_else(|| local.to_string()),
                listener: listener.try_clone()?,
            });
        }
        *self.lock() = copies;
        Ok(())
    }

    /// Duplicates the copies. Each duplicate has its own descriptor.
    pub(crate) fn duplicate_for_successor(&self) -> io::Result<Vec<ListenerCopy>> {
        let copy = |one: &ListenerCopy| {
            Ok(ListenerCopy {
                address: one.address.clone(),
                listener: one.listener.try_clone()?,
            })
        };
        self.lock().iter().map(copy).collect()
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<ListenerCopy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
