//! Opens listening sockets, one per worker and address. The sockets of an address share its port.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use super::inherited::{self, InheritedListener};
use socket2::{Domain, Protocol, Socket, Type};

/// Limit on the connections that wait to be accepted at one listening socket. The kernel may lower
/// this limit (`somaxconn`).
const BACKLOG: i32 = 4096;

/// The bound addresses, and each worker's listener for each address.
type BoundListeners = (Vec<SocketAddr>, Vec<Vec<TcpListener>>);

pub(super) fn bind_all(
    names: &[String],
    workers: usize,
    share: bool,
    mut inherited: Vec<InheritedListener>,
) -> io::Result<BoundListeners> {
    if inherited.iter().any(|one| one.address.is_none()) {
        return assign_activated_to_workers(inherited, workers);
    }
    if names.is_empty() {
        return Err(io::Error::other("no address to listen on"));
    }
    let mut addresses = Vec::new();
    let mut listeners: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
    for name in names {
        let sockets = inherited::take_sockets_for_address(&mut inherited, name);
        if let Some(socket) = sockets.first() {
            addresses.push(socket.local_addr()?);
            inherited::distribute_sockets(sockets, &mut listeners)?;
            continue;
        }
        let first =
            bind_first_address(name, share).map_err(|error| describe_bind_error(name, &error))?;
        // If the configured port is 0, the kernel chooses a port for the first socket. The other
        // sockets then use the same port.
        let address = first.local_addr()?;
        addresses.push(address);
        let mut first = Some(first);
        for worker in &mut listeners {
            worker.push(first.take().map_or_else(|| open_listener(address), Ok)?);
        }
    }
    Ok((addresses, listeners))
}

/// Distributes the sockets of a service manager, which replace the configured addresses.
fn assign_activated_to_workers(
    inherited: Vec<InheritedListener>,
    workers: usize,
) -> io::Result<BoundListeners> {
    let mut addresses = Vec::new();
    let mut listeners: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
    for one in inherited {
        addresses.push(one.listener.local_addr()?);
        inherited::distribute_sockets(vec![one.listener], &mut listeners)?;
    }
    Ok((addresses, listeners))
}

/// Adds the address and a remedy to the error.
fn describe_bind_error(name: &str, error: &io::Error) -> io::Error {
    let remedy = match error.kind() {
        io::ErrorKind::InvalidInput => "; expected HOST:PORT, such as 127.0.0.1:8080",
        _ => "",
    };
    let cause = match error.kind() {
        // The usual remedy for this error is about file permissions, which do not apply to ports.
        io::ErrorKind::PermissionDenied => {
            "permission denied; choose a port from 1024, or grant CAP_NET_BIND_SERVICE".to_owned()
        }
        _ => crate::describe_io_error(error),
    };
    io::Error::new(
        error.kind(),
        format!("cannot listen on {name}: {cause}{remedy}"),
    )
}

/// Resolves a name and binds the first of its addresses that can be bound.
fn bind_first_address(name: &str, share: bool) -> io::Result<TcpListener> {
    let mut failure = io::Error::other("the name has no address");
    for address in resolve_name(name)? {
        let bound = probe_port(address, share).and_then(|()| open_listener(address));
        match bound {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn resolve_name(name: &str) -> io::Result<Vec<SocketAddr>> {
    match name.strip_prefix(':') {
        Some(port) => {
            let port = port.parse().map_err(|_| io::Error::other("not a port"))?;
            let (v6, v4) = (
                std::net::Ipv6Addr::UNSPECIFIED,
                std::net::Ipv4Addr::UNSPECIFIED,
            );
            Ok(vec![(v6, port).into(), (v4, port).into()])
        }
        None => Ok(name.to_socket_addrs()?.collect()),
    }
}

/// Fails if another process already listens on the address, unless `share` permits this. Port
/// sharing would hide this conflict.
fn probe_port(address: SocketAddr, share: bool) -> io::Result<()> {
    if share || address.port() == 0 {
        return Ok(());
    }
    let socket = create_tcp_socket(address)?;
    socket.bind(&address.into())
}

fn open_listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = create_tcp_socket(address)?;
    socket.set_reuse_port(true)?;
    // Accepted sockets inherit this option, which saves one system call per connection.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn create_tcp_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // This lets the unspecified IPv6 address accept IPv4 connections too.
        socket.set_only_v6(false)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_of_an_address_share_its_port() {
        let names = ["127.0.0.1:0".to_owned(), "localhost:0".to_owned()];
        let (addresses, listeners) = bind_all(&names, 3, false, Vec::new()).unwrap();
        assert_eq!(listeners.len(), 3);
        assert!(addresses.iter().all(|address| address.port() != 0));
        for worker in &listeners {
            let own: Vec<_> = worker.iter().map(|one| one.local_addr().unwrap()).collect();
            assert_eq!(own, addresses);
        }
    }

    #[test]
    fn a_taken_port_is_an_error_unless_shared() {
        let (addresses, _held) =
            bind_all(&["127.0.0.1:0".to_owned()], 1, false, Vec::new()).unwrap();
        let name = [addresses[0].to_string()];
        let error = bind_all(&name, 1, false, Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{error}");
        assert!(error.to_string().contains("choose another port"), "{error}");
        assert!(bind_all(&name, 1, true, Vec::new()).is_ok());
    }

    #[test]
    fn nonsense_is_an_error() {
        for name in ["", ":", "nowhere", ":99999", "127.0.0.1:x"] {
            assert!(
                bind_all(&[name.to_owned()], 1, false, Vec::new()).is_err(),
                "{name}"
            );
        }
        assert!(bind_all(&[], 1, false, Vec::new()).is_err());
    }

    fn pass_on(listeners: Vec<Vec<TcpListener>>, address: Option<&str>) -> Vec<InheritedListener> {
        let all = listeners.into_iter().flatten();
        let pass = all.map(|listener| InheritedListener {
            port: "serve".to_owned(),
            address: address.map(str::to_owned),
            listener,
        });
        pass.collect()
    }

    /// Connections that wait at a socket without a worker would never be accepted.
    #[test]
    fn each_inherited_socket_gets_a_worker_and_each_worker_a_socket() {
        let name = ["127.0.0.1:0".to_owned()];
        let (addresses, two) = bind_all(&name, 2, false, Vec::new()).unwrap();
        let inherited = pass_on(two, Some(&name[0]));
        let (again, five) = bind_all(&name, 5, false, inherited).unwrap();
        assert_eq!(again, addresses);
        assert!(five.iter().all(|worker| worker.len() == 1));
        let inherited = pass_on(five, Some(&name[0]));
        let (_, three) = bind_all(&name, 3, false, inherited).unwrap();
        let counts: Vec<_> = three.iter().map(Vec::len).collect();
        assert_eq!(counts, [2, 2, 1]);
    }

    #[test]
    fn inherited_sockets_serve_their_configured_address_only() {
        let name = ["127.0.0.1:0".to_owned()];
        let (addresses, one) = bind_all(&name, 1, false, Vec::new()).unwrap();
        let inherited = pass_on(one, Some("127.0.0.1:9"));
        let (others, _) = bind_all(&name, 1, false, inherited).unwrap();
        assert_ne!(others, addresses);
        let (_, one) = bind_all(&name, 1, false, Vec::new()).unwrap();
        let activated = one[0][0].local_addr().unwrap();
        let (addresses, workers) = bind_all(&name, 3, false, pass_on(one, None)).unwrap();
        assert_eq!(addresses, [activated]);
        assert!(workers.iter().all(|worker| worker.len() == 1));
    }
}
