//! Tests the messages that the programs send to their service manager (`sd_notify(3)`).

use crate::support::{HeadwaterServer, TempFolder};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;
use std::time::Duration;

/// The socket on which a service manager receives messages, and the value of `NOTIFY_SOCKET`.
struct ServiceManager {
    socket: UnixDatagram,
    variable: String,
}

impl ServiceManager {
    fn at_path(folder: &TempFolder) -> ServiceManager {
        let path = folder.0.join("notify.sock");
        ServiceManager::new(
            UnixDatagram::bind(&path).unwrap(),
            path.display().to_string(),
        )
    }

    fn in_abstract_namespace() -> ServiceManager {
        let name = format!("headwater-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        ServiceManager::new(
            UnixDatagram::bind_addr(&address).unwrap(),
            format!("@{name}"),
        )
    }

    fn new(socket: UnixDatagram, variable: String) -> ServiceManager {
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        ServiceManager { socket, variable }
    }

    fn start(&self, program: &str, args: &[&str]) -> HeadwaterServer {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.env("NOTIFY_SOCKET", &self.variable);
        HeadwaterServer::spawn(command, program, args)
    }

    fn next_message(&self) -> String {
        let mut bytes = [0; 256];
        let length = self.socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }
}

fn ready(server: &HeadwaterServer) -> String {
    format!("READY=1\nMAINPID={}\n", server.process_id())
}

#[test]
fn a_service_reports_start_reload_and_stop() {
    let folder = TempFolder::new();
    for manager in [
        ServiceManager::at_path(&folder),
        ServiceManager::in_abstract_namespace(),
    ] {
        let mut edge = manager.start("edge", &["--origin", "http://127.0.0.1:9"]);
        assert_eq!(manager.next_message(), ready(&edge));
        edge.send_signal("HUP");
        let reloading = manager.next_message();
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        let time: u64 = time.unwrap().trim_end().parse().unwrap();
        assert!(time > 0);
        assert_eq!(manager.next_message(), ready(&edge));
        assert_eq!(edge.terminate(), Some(0));
        assert_eq!(manager.next_message(), "STOPPING=1\n");
    }
}

/// The replaced process must not report that it is stopping. Otherwise, the manager would stop the
/// service.
#[test]
fn the_successor_becomes_the_main_process_of_the_service() {
    let folder = TempFolder::new();
    let manager = ServiceManager::at_path(&folder);
    let socket = folder.0.join("handover.sock").display().to_string();
    let start = || manager.start("serve", &["--handover-socket", &socket]);
    let mut first = start();
    assert_eq!(manager.next_message(), ready(&first));
    let second = start();
    assert_eq!(first.wait_for_exit(), Some(0));
    assert_eq!(manager.next_message(), ready(&second));
    manager.socket.set_nonblocking(true).unwrap();
    let more = manager.socket.recv(&mut [0; 256]);
    assert_eq!(more.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_service_starts_without_its_manager() {
    let folder = TempFolder::new();
    let manager = ServiceManager {
        socket: UnixDatagram::unbound().unwrap(),
        variable: folder.0.join("missing.sock").display().to_string(),
    };
    let origin = manager.start("serve", &[]);
    assert_eq!(origin.get("/healthz").status, 200);
}
