//! Hands the listening sockets of a running process to its successor.
//!
//! Both processes share the same sockets, so that no connection is lost, not even a connection that
//! waits to be accepted. Decision 22 gives the reasons.
//!
//! | who | message | descriptors |
//! |---|---|---|
//! | successor | `take 1 PROGRAM` | |
//! | predecessor | `PORT ADDRESS`, for each socket | the socket |
//! | predecessor | `end`, or `refused REASON` | |
//! | successor | `ready`, when it accepts connections | |
//! | predecessor | `draining`, or `refused REASON` | |
//!
//! If the successor fails before it is ready, the predecessor continues to serve. After `draining`,
//! the successor gives its own socket the name of the predecessor's socket, and closes the
//! connection.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use tokio::io::Interest;

use super::{FatalError, RunningProgram};
use crate::Shutdown;
use crate::server::{InheritedListener, ListenerCopies};

/// Timeout of a message that the peer can send immediately.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the start of the successor.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Limit on the bytes of one message from a successor.
const MESSAGE_BYTES_MAX: usize = 256;
/// Limit on the total bytes of the messages from a predecessor.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Limit on the number of sockets. A server has one socket per worker and address.
const SOCKETS_MAX: usize = 4096;
/// Limit on the retries while another process is replacing the predecessor.
const ATTEMPTS: u32 = 100;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(20);

/// The listening sockets that a predecessor or the service manager has passed. If there is a
/// predecessor, also the connection on which the predecessor waits until this process is ready.
#[derive(Debug, Default)]
pub struct InheritedPorts {
    listeners: Vec<InheritedListener>,
    predecessor: Option<UnixStream>,
}

impl InheritedPorts {
    /// Takes the sockets of the process that listens on `handover_socket`, if there is one.
    /// Otherwise, takes the sockets from the service manager.
    ///
    /// # Errors
    /// An error if the predecessor refuses, or if a passed descriptor is not a listening TCP
    /// socket.
    pub fn take_inherited_ports(
        program: &str,
        handover_socket: Option<&Path>,
    ) -> Result<InheritedPorts, FatalError> {
        if let Some(path) = handover_socket
            && let Some(ports) =
                take_ports(program, path).map_err(FatalError::cannot(describe_path(path)))?
        {
            return Ok(ports);
        }
        let listeners = InheritedListener::take_activated(super::MAIN)
            .map_err(FatalError::cannot("socket activation"))?;
        Ok(InheritedPorts {
            listeners,
            predecessor: None,
        })
    }

    /// Takes the sockets of the port with this name.
    pub fn take_port(&mut self, port: &str) -> Vec<InheritedListener> {
        let matching = self.listeners.extract_if(.., |one| one.port == port);
        matching.collect()
    }

    /// Returns whether a running process has passed its sockets.
    pub fn has_predecessor(&self) -> bool {
        self.predecessor.is_some()
    }

    /// Makes the predecessor drain. This process must already accept connections.
    fn replace_predecessor(&self) -> io::Result<()> {
        let Some(stream) = &self.predecessor else {
            return Ok(());
        };
        // Ignores the result. A predecessor that no longer waits has closed the connection, but its
        // refusal can still be received.
        let _ = (&*stream).write_all(b"ready\n");
        match receive_until(stream, |text| text.ends_with('\n')) {
            Ok((text, _)) => match text.strip_prefix("refused ") {
                Some(reason) => Err(io::Error::other(reason.trim_end().to_owned())),
                None => Ok(()),
            },
            // The predecessor has exited in the meantime, so nothing remains to be done.
            Err(error) if is_disconnect(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl RunningProgram {
    /// Makes a predecessor drain, and starts to accept successors on `handover_socket`. Call this
    /// when all ports accept connections.
    ///
    /// # Errors
    /// [`FatalError::Cannot`] when the socket cannot be created, or when the predecessor no
    /// longer waits for this process. The predecessor then continues to serve.
    pub fn replace_predecessor(
        &mut self,
        program: &'static str,
        handover_socket: Option<&Path>,
        inherited: InheritedPorts,
    ) -> Result<(), FatalError> {
        // A process without this socket has no predecessor.
        let Some(path) = handover_socket else {
            return Ok(());
        };
        let cannot_offer = || FatalError::cannot(describe_path(path));
        let temporary = self.offer_ports(program, path).map_err(cannot_offer())?;
        if let Err(error) = inherited.replace_predecessor() {
            // Ignores an error, because the next process with this process id removes the file.
            let _ = std::fs::remove_file(&temporary);
            let failed = FatalError::cannot("cannot replace the running process");
            return Err(failed(error));
        }
        if let Err(error) = std::fs::rename(&temporary, path) {
            // The predecessor already drains, so this process must serve. Only later hand-overs fail.
            let socket = path.display();
            tracing::error!(%error, %socket, "cannot offer the ports to a successor");
            let _ = std::fs::remove_file(&temporary);
        }
        // The predecessor closes its socket when this connection closes. The rename precedes this,
        // so that another successor always finds a socket at `path`.
        drop(inherited);
        Ok(())
    }

    /// Starts to accept successors on a socket with a temporary name. Returns this name. The
    /// caller renames the socket to `path` when the predecessor no longer needs that name.
    fn offer_ports(&mut self, program: &'static str, path: &Path) -> io::Result<PathBuf> {
        let copies = std::mem::take(&mut self.copies);
        let (temporary, listener) = bind_temporary(path)?;
        let offer = PortOffer {
            program,
            copies,
            shutdown: self.shutdown.clone(),
            start_timeout: START_TIMEOUT,
        };
        self.spawn_async_thread("handover", move || offer.run_until_drained(listener))
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(temporary)
    }
}

fn describe_path(path: &Path) -> String {
    format!("handover-socket {}", path.display())
}

/// Binds a socket with a temporary name in the folder of `path`.
fn bind_temporary(path: &Path) -> io::Result<(PathBuf, UnixListener)> {
    use std::os::unix::fs::PermissionsExt;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    // An earlier process with the same process id may have left a socket with this name.
    let _ = std::fs::remove_file(&name);
    let listener = UnixListener::bind(&name)?;
    std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok((name.into(), listener))
}

/// The sockets that a running process offers.
struct PortOffer {
    program: &'static str,
    copies: Vec<(&'static str, ListenerCopies)>,
    shutdown: Shutdown,
    /// Time limit for the start of a successor.
    start_timeout: Duration,
}

impl PortOffer {
    /// Serves successors until one of them has taken the ports, or until this process drains.
    async fn run_until_drained(self, listener: UnixListener) {
        let Ok(listener) = tokio::net::UnixListener::from_std(listener) else {
            return;
        };
        let successor = tokio::select! {
            () = self.shutdown.wait_until_draining() => return,
            successor = self.serve_successors(&listener) => successor,
        };
        tracing::info!("a successor has taken the ports; draining");
        self.shutdown.hand_over();
        // Ignores the errors, because the ports have already been handed over.
        let _ = send_message(&successor, "draining\n", None).await;
        // Keeps the listener until the successor's socket has the name of this socket. Another
        // successor that has connected to this listener is disconnected, and tries again.
        let _ = expect_message(&successor, "", MESSAGE_TIMEOUT).await;
    }

    /// Completes when a successor is ready. Returns the connection to this successor.
    async fn serve_successors(
        &self,
        listener: &tokio::net::UnixListener,
    ) -> tokio::net::UnixStream {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ATTEMPT_PAUSE).await;
                continue;
            };
            match self.serve_successor(&stream).await {
                Ok(()) => return stream,
                Err(error) => {
                    tracing::warn!(%error, "a successor did not take the ports");
                    let refusal = format!("refused {error}\n");
                    let _ = send_message(&stream, &refusal, None).await;
                }
            }
        }
    }

    /// Passes the sockets to a successor. Completes when the successor is ready.
    async fn serve_successor(&self, stream: &tokio::net::UnixStream) -> io::Result<()> {
        check_user(stream.peer_cred()?.uid())?;
        let hello = format!("take 1 {}\n", self.program);
        expect_message(stream, &hello, MESSAGE_TIMEOUT).await?;
        for (port, copies) in &self.copies {
            for copy in copies.duplicate_for_successor()? {
                let text = format!("{port} {}\n", copy.address);
                send_message(stream, &text, Some(&copy.listener)).await?;
            }
        }
        send_message(stream, "end\n", None).await?;
        expect_message(stream, "ready\n", self.start_timeout).await
    }
}

/// Checks the peer's user. Only the same user and root may pass or take sockets.
fn check_user(peer: u32) -> io::Result<()> {
    let user = rustix::process::geteuid();
    if peer == 0 || peer == user.as_raw() {
        return Ok(());
    }
    Err(io::Error::other(format!("user {peer} may not do this")))
}

async fn expect_message(
    stream: &tokio::net::UnixStream,
    expected: &str,
    timeout: Duration,
) -> io::Result<()> {
    let mut found = Vec::new();
    let read = async {
        while !found.ends_with(b"\n") && found.len() < MESSAGE_BYTES_MAX {
            stream.readable().await?;
            // The peer waits for a response after each message, so this read cannot return a second
            // message.
            match stream.try_read_buf(&mut found) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok(())
    };
    tokio::time::timeout(timeout, read)
        .await
        .map_err(|_| io::Error::other("no message within the time limit"))??;
    if found == expected.as_bytes() {
        return Ok(());
    }
    let found = String::from_utf8_lossy(&found).trim_end().to_owned();
    let what = format!("expected {:?}, found {found:?}", expected.trim_end());
    Err(io::Error::other(what))
}

async fn send_message(
    stream: &tokio::net::UnixStream,
    text: &str,
    socket: Option<&TcpListener>,
) -> io::Result<()> {
    let sent = stream
        .async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let descriptors = socket.map(AsFd::as_fd);
            let descriptors = descriptors.as_slice();
            if !descriptors.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(descriptors));
            }
            let bytes = [IoSlice::new(text.as_bytes())];
            let flags = SendFlags::NOSIGNAL;
            Ok(rustix::net::sendmsg(stream, &bytes, &mut control, flags)?)
        })
        .await?;
    if sent == text.len() {
        return Ok(());
    }
    Err(io::Error::other("a message was sent in part"))
}

/// Takes the sockets of a running process, or returns `None` if no process is running.
fn take_ports(program: &str, path: &Path) -> io::Result<Option<InheritedPorts>> {
    let mut attempts = 0;
    loop {
        let Some(mut stream) = connect_predecessor(path)? else {
            return Ok(None);
        };
        let hello = format!("take 1 {program}\n");
        let received = stream
            .write_all(hello.as_bytes())
            .and_then(|()| receive_until(&stream, is_last_message));
        match received {
            Ok((text, sockets)) => return parse_ports(&text, sockets, stream).map(Some),
            // Another process may have just replaced the predecessor. The next attempt then
            // connects to that process.
            Err(error) if attempts < ATTEMPTS && is_disconnect(&error) => {
                attempts += 1;
                std::thread::sleep(ATTEMPT_PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

fn connect_predecessor(path: &Path) -> io::Result<Option<UnixStream>> {
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        // No process listens on the handover socket.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    check_user(rustix::net::sockopt::socket_peercred(&stream)?.uid.as_raw())?;
    stream.set_read_timeout(Some(MESSAGE_TIMEOUT))?;
    stream.set_write_timeout(Some(MESSAGE_TIMEOUT))?;
    Ok(Some(stream))
}

fn is_disconnect(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn is_last_message(text: &str) -> bool {
    text == "end\n" || text.ends_with("\nend\n") || is_refusal_message(text)
}

fn is_refusal_message(text: &str) -> bool {
    text.starts_with("refused ") && text.ends_with('\n')
}

fn parse_ports(
    text: &str,
    sockets: Vec<OwnedFd>,
    stream: UnixStream,
) -> io::Result<InheritedPorts> {
    if is_refusal_message(text) {
        return Err(io::Error::other(text.trim_end().to_owned()));
    }
    let lines: Vec<_> = text.lines().filter(|line| *line != "end").collect();
    if lines.len() != sockets.len() {
        let what = format!("{} sockets for {} addresses", sockets.len(), lines.len());
        return Err(io::Error::other(what));
    }
    let listeners = lines.into_iter().zip(sockets).map(|(line, socket)| {
        let (port, address) = line
            .split_once(' ')
            .ok_or_else(|| io::Error::other(format!("unexpected message {line:?}")))?;
        Ok(InheritedListener {
            port: port.to_owned(),
            address: Some(address.to_owned()),
            listener: TcpListener::from(socket),
        })
    });
    Ok(InheritedPorts {
        listeners: listeners.collect::<io::Result<_>>()?,
        predecessor: Some(stream),
    })
}

/// Receives messages and their descriptors until `is_complete` accepts the received text.
fn receive_until(
    stream: &UnixStream,
    is_complete: impl Fn(&str) -> bool,
) -> io::Result<(String, Vec<OwnedFd>)> {
    let (mut text, mut sockets) = (String::new(), Vec::new());
    while !is_complete(&text) {
        let mut bytes = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                sockets.extend(received);
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let part = bytes.get(..received.bytes).unwrap_or_default();
        text += std::str::from_utf8(part).map_err(io::Error::other)?;
        if text.len() > TEXT_BYTES_MAX || sockets.len() > SOCKETS_MAX {
            return Err(io::Error::other("too many sockets"));
        }
    }
    Ok((text, sockets))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Instant;

    use super::*;

    const PROGRAM: &str = "serve";

    /// Starts a program that offers its ports at `path`. It limits the start of a successor to
    /// `start_timeout`.
    fn start_predecessor(path: &Path, start_timeout: Duration) -> RunningProgram {
        let (temporary, listener) = bind_temporary(path).unwrap();
        std::fs::rename(temporary, path).unwrap();
        let mut running = RunningProgram::new(Shutdown::new());
        let offer = PortOffer {
            program: PROGRAM,
            copies: Vec::new(),
            shutdown: running.shutdown().clone(),
            start_timeout,
        };
        running
            .spawn_async_thread("handover", move || offer.run_until_drained(listener))
            .unwrap();
        running
    }

    fn take_from_predecessor(path: &Path) -> InheritedPorts {
        let inherited = InheritedPorts::take_inherited_ports(PROGRAM, Some(path)).unwrap();
        assert!(inherited.has_predecessor());
        inherited
    }

    fn wait_for_message(stream: &UnixStream) {
        let received = rustix::net::recv(stream, &mut [0_u8; 1], RecvFlags::PEEK).unwrap();
        assert!(received.1 > 0);
    }

    /// Regression: the successor took the closed connection for an exit of its predecessor, so both
    /// processes served, and no further process could replace the predecessor.
    #[test]
    fn a_successor_that_is_ready_too_late_fails_and_the_next_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("handover.sock");
        let first = start_predecessor(&path, Duration::from_millis(100));
        let inherited = take_from_predecessor(&path);
        // The predecessor refuses when its time limit is over.
        wait_for_message(inherited.predecessor.as_ref().unwrap());
        // The predecessor accepts another successor when it has closed the first connection.
        take_from_predecessor(&path);
        let mut late = RunningProgram::new(Shutdown::new());
        let error = late.replace_predecessor(PROGRAM, Some(&path), inherited);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("no message within the time limit"),
            "{error}"
        );
        assert!(!first.shutdown().is_draining());
        // On a busy machine, a successor may be too late again.
        let replace = |running: &mut RunningProgram| {
            running.replace_predecessor(PROGRAM, Some(&path), take_from_predecessor(&path))
        };
        let mut next = RunningProgram::new(Shutdown::new());
        let end = Instant::now() + Duration::from_secs(60);
        while let Err(error) = replace(&mut next) {
            assert!(
                Instant::now() < end,
                "no successor was ready in time: {error}"
            );
        }
        assert!(first.shutdown().is_handed_over());
        first.join().unwrap();
        take_from_predecessor(&path);
        for running in [late, next] {
            running.shutdown().drain();
            running.join().unwrap();
        }
        let files = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(files.count(), 1, "a temporary socket remains");
    }

    /// Regression: the successor failed after its predecessor had started to drain, so no process
    /// served.
    #[test]
    fn a_successor_whose_socket_cannot_be_renamed_serves() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("handover.sock");
        let first = start_predecessor(&path, START_TIMEOUT);
        let inherited = take_from_predecessor(&path);
        // A socket cannot replace a folder.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let mut next = RunningProgram::new(Shutdown::new());
        next.replace_predecessor(PROGRAM, Some(&path), inherited)
            .unwrap();
        first.join().unwrap();
        assert!(!next.shutdown().is_draining());
        let files = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(files.count(), 1, "a temporary socket remains");
        next.shutdown().drain();
        next.join().unwrap();
    }

    #[test]
    fn a_predecessor_that_exits_before_its_answer_is_replaced() {
        let read_ready = |mut stream: UnixStream| stream.read_exact(&mut [0; 6]).unwrap();
        let see_ready = |stream: UnixStream| wait_for_message(&stream);
        for exit in [read_ready as fn(UnixStream), see_ready] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let exiting = std::thread::spawn(move || exit(theirs));
            let inherited = InheritedPorts {
                listeners: Vec::new(),
                predecessor: Some(ours),
            };
            inherited.replace_predecessor().unwrap();
            exiting.join().unwrap();
        }
    }
}
