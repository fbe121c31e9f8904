//! Tests pools whose members are listed by a real DNS server. The list changes under load.

use crate::support::{HeadwaterServer, TempFolder, report_skip};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The name that the edge resolves.
pub const NAME: &str = "origin.pool.test";
/// Maximum time to wait for any condition.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A dnsmasq process that resolves one name. Dropping this value kills the process.
pub struct DnsServer {
    folder: PathBuf,
    pub address: SocketAddr,
    process: Option<Child>,
}

impl DnsServer {
    /// Reports a skip and returns None if dnsmasq is not installed.
    pub fn new(folder: &TempFolder) -> Option<DnsServer> {
        if Command::new("dnsmasq").arg("--version").output().is_err() {
            report_skip("dnsmasq is not installed");
            return None;
        }
        let address = SocketAddr::from(([127, 0, 0, 1], crate::nginx::port::free()));
        Some(DnsServer {
            folder: folder.0.clone(),
            address,
            process: None,
        })
    }

    /// Starts the server with these addresses and further options. Stops a running server first.
    pub fn start(&mut self, addresses: &[&str], options: &[String]) {
        self.stop();
        self.write_addresses(addresses);
        let mut command = Command::new("dnsmasq");
        command.args([
            "--keep-in-foreground",
            "--no-resolv",
            "--no-hosts",
            "--log-facility=-",
        ]);
        command.args(["--conf-file=/dev/null", "--pid-file=", "--bind-interfaces"]);
        command.args(["--user=", "--local=/test/", "--listen-address=127.0.0.1"]);
        command.arg(format!("--port={}", self.address.port()));
        command.arg(format!("--addn-hosts={}", self.hosts_file().display()));
        command.args(options).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
        wait_until("dnsmasq responds", || self.responds());
    }

    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Replaces the addresses of the name.
    fn change_addresses(&self, addresses: &[&str]) {
        self.write_addresses(addresses);
        let pid = self.process.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args(["-HUP", &pid]).status();
        assert!(sent.unwrap().success());
    }

    fn write_addresses(&self, addresses: &[&str]) {
        let lines = addresses
            .iter()
            .map(|address| format!("{address} {NAME}\n"));
        std::fs::write(self.hosts_file(), lines.collect::<String>()).unwrap();
    }

    fn hosts_file(&self) -> PathBuf {
        self.folder.join("hosts")
    }

    /// Sends a query for the DNS root, because every DNS server responds to such a query. Returns
    /// whether a response arrived.
    fn responds(&self) -> bool {
        let query = b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01";
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.address).unwrap();
        let timeout = Some(Duration::from_millis(100));
        socket.set_read_timeout(timeout).unwrap();
        socket.send(query).is_ok() && socket.recv(&mut [0; 512]).is_ok()
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.stop();
    }
}

pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(
            started.elapsed() < WAIT_MAX,
            "{what}: not within {WAIT_MAX:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns a port that is free on all these addresses.
pub fn find_common_port(addresses: &[&str]) -> u16 {
    loop {
        let port = crate::nginx::port::free();
        let is_free = |ip: &&str| TcpListener::bind((*ip as &str, port)).is_ok();
        if addresses.iter().all(is_free) {
            return port;
        }
    }
}

/// Formats an address and a port as text. An IPv6 address is put in brackets.
fn format_address(ip: &str, port: u16) -> String {
    SocketAddr::new(ip.parse().unwrap(), port).to_string()
}

fn start_origin(folder: &TempFolder, ip: &str, port: u16) -> HeadwaterServer {
    start_origin_with(folder, ip, port, &[])
}

pub fn start_origin_with(
    folder: &TempFolder,
    ip: &str,
    port: u16,
    flags: &[&str],
) -> HeadwaterServer {
    let (films, listen) = (folder.0.join("films"), format_address(ip, port));
    let mut command = Command::new("sh");
    // The test support always passes `serve --listen 127.0.0.1:0`. The script removes these three
    // arguments, so that each origin can listen at another address.
    let script = "shift 3; exec \"$0\" serve --listen \"$@\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_headwater")]);
    let own = [&listen, films.to_str().unwrap()];
    HeadwaterServer::spawn(command, "serve", &[&own[..], flags].concat())
}

fn start_edge(origin: &str, dns: &DnsServer) -> HeadwaterServer {
    let dns = dns.address.to_string();
    let flags = ["--origin", origin, "--dns-server", &dns];
    let flags = [
        &flags[..],
        &["--origin-dns-interval", "100ms", "--cookies", "pass"],
    ]
    .concat();
    HeadwaterServer::start_program("edge", &flags)
}

pub fn read_metric(server: &HeadwaterServer, name: &str) -> u64 {
    let metrics = server.get_text("/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

fn wait_for_members(edge: &HeadwaterServer, count: u64) {
    let name = "headwater_upstream_members ";
    wait_until("the members of the pool", || {
        read_metric(edge, name) == count
    });
}

fn count_responses(origin: &HeadwaterServer) -> u64 {
    read_metric(
        origin,
        "headwater_http_requests_total{kind=\"file\",status=\"200\"} ",
    )
}

/// Threads that send requests until they are stopped, and count responses and failures. A cookie
/// makes the requests bypass the cache.
struct PassingLoad {
    counts: Arc<(AtomicU64, AtomicU64, AtomicBool)>,
    threads: Vec<JoinHandle<()>>,
}

impl PassingLoad {
    fn start(edge: &Arc<HeadwaterServer>) -> PassingLoad {
        let counts = Arc::<(AtomicU64, AtomicU64, AtomicBool)>::default();
        let thread = |thread: u32| {
            let (edge, counts) = (edge.clone(), counts.clone());
            std::thread::spawn(move || {
                for n in 0.. {
                    if counts.2.load(Relaxed) {
                        return;
                    }
                    let target = format!("/film-{}.bin", (n + thread) % 40);
                    let response = edge.request("GET", &target, &[("Cookie", "a=b")]);
                    counts.0.fetch_add(1, Relaxed);
                    if response.status != 200 || response.body != target.as_bytes() {
                        eprintln!("{}", response.error_reason());
                        counts.1.fetch_add(1, Relaxed);
                    }
                }
            })
        };
        let threads = (0..4).map(thread).collect();
        PassingLoad { counts, threads }
    }

    fn wait_for_responses(&self, count: u64) {
        let target = self.counts.0.load(Relaxed) + count;
        wait_until("responses", || self.counts.0.load(Relaxed) >= target);
    }

    /// Returns the number of failed requests.
    fn stop(self) -> u64 {
        self.counts.2.store(true, Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.counts.1.load(Relaxed)
    }
}

/// Length of a large film, which exceeds the total size of all socket buffers between an origin and
/// its client.
const LARGE_BYTES: u64 = 64 << 20;
const LARGE_FILES: u32 = 30;

fn write_films(folder: &TempFolder) {
    for n in 0..40 {
        let name = format!("/film-{n}.bin");
        folder.write_file(&format!("films{name}"), name.as_bytes());
    }
    for n in 0..LARGE_FILES {
        let path = folder.0.join(format!("films/large-{n}.bin"));
        let file = std::fs::File::create(path).unwrap();
        file.set_len(LARGE_BYTES).unwrap();
    }
}

pub const IPS: [&str; 3] = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];

#[test]
fn members_that_dns_adds_and_removes_under_load_cost_no_request() {
    let folder = TempFolder::new();
    let Some(mut dns) = DnsServer::new(&folder) else {
        return;
    };
    write_films(&folder);
    let port = find_common_port(&IPS);
    let mut origins = IPS.map(|ip| start_origin(&folder, ip, port));
    dns.start(&IPS[..1], &[]);
    let edge = Arc::new(start_edge(&format!("dns+http://{NAME}:{port}"), &dns));
    let load = PassingLoad::start(&edge);
    load.wait_for_responses(50);
    dns.change_addresses(&IPS);
    wait_for_members(&edge, 3);
    load.wait_for_responses(200);
    for origin in &origins {
        assert!(count_responses(origin) > 0, "every member gets requests");
    }
    // The member that will be removed is still sending a response.
    let mut targets = (0..LARGE_FILES).map(|n| format!("/large-{n}.bin"));
    let target = targets.find(|target| is_served_by(&edge, target, &origins[0]));
    let target = target.unwrap();
    let mut slow = edge.connect();
    let head =
        format!("GET {target} HTTP/1.1\r\nHost: x\r\nCookie: a=b\r\nConnection: close\r\n\r\n");
    slow.write_all(head.as_bytes()).unwrap();
    slow.read_exact(&mut [0; 1000]).unwrap();
    dns.change_addresses(&IPS[1..]);
    wait_for_members(&edge, 2);
    load.wait_for_responses(100);
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(
        rest.len() as u64 + 1000 > LARGE_BYTES,
        "{} bytes",
        rest.len()
    );
    let of_removed = count_responses(&origins[0]);
    load.wait_for_responses(200);
    assert_eq!(count_responses(&origins[0]), of_removed);
    assert_eq!(origins[0].terminate(), Some(0));
    load.wait_for_responses(100);
    assert_eq!(load.stop(), 0, "failed requests");
}

/// Requests one byte of a target. Returns whether this member served the request, according to the
/// member's request counter.
fn is_served_by(edge: &HeadwaterServer, target: &str, origin: &HeadwaterServer) -> bool {
    let count = |origin| {
        read_metric(
            origin,
            "headwater_http_requests_total{kind=\"file\",status=\"206\"} ",
        )
    };
    let before = count(origin);
    let headers = [("Cookie", "a=b"), ("Range", "bytes=0-0")];
    assert_eq!(edge.request("GET", target, &headers).status, 206);
    count(origin) > before
}

#[test]
fn members_stay_while_dns_is_away_or_lists_none() {
    let folder = TempFolder::new();
    let Some(mut dns) = DnsServer::new(&folder) else {
        return;
    };
    write_films(&folder);
    let port = find_common_port(&IPS);
    let _origins = IPS.map(|ip| start_origin(&folder, ip, port));
    dns.start(&IPS, &[]);
    let edge = start_edge(&format!("dns+http://{NAME}:{port}"), &dns);
    wait_for_members(&edge, 3);
    let resolutions = |result: &str| {
        let name = format!("headwater_upstream_resolutions_total{{result=\"{result}\"}} ");
        read_metric(&edge, &name)
    };
    dns.change_addresses(&[]);
    wait_until("an empty response of DNS", || resolutions("empty") > 0);
    assert_eq!(edge.get("/film-1.bin").status, 200);
    dns.stop();
    wait_until("a failed resolution", || resolutions("failed") > 0);
    assert_eq!(edge.get("/film-2.bin").status, 200);
    assert_eq!(read_metric(&edge, "headwater_upstream_members "), 3);
    dns.start(&IPS[..2], &[]);
    wait_for_members(&edge, 2);
    assert_eq!(edge.get("/film-3.bin").status, 200);
}

#[test]
fn srv_records_list_members_with_ports_of_their_own() {
    let folder = TempFolder::new();
    let Some(mut dns) = DnsServer::new(&folder) else {
        return;
    };
    write_films(&folder);
    let origins = [0, 1].map(|_| {
        let port = find_common_port(&IPS[..1]);
        start_origin(&folder, IPS[0], port)
    });
    // Clients use an SRV target with a higher priority value only if no other target is reachable.
    let record =
        |port: u16, priority| format!("--srv-host=_http._tcp.{NAME},{NAME},{port},{priority},10");
    let records = [
        record(origins[0].addr.port(), 1),
        record(origins[1].addr.port(), 1),
        record(9, 2),
    ];
    dns.start(&IPS[..1], &records);
    let edge = start_edge(&format!("dns+srv+http://_http._tcp.{NAME}"), &dns);
    wait_for_members(&edge, 2);
    for n in 0..40 {
        let target = format!("/film-{n}.bin");
        assert_eq!(edge.get_text(&target), target);
    }
    assert!(origins.iter().all(|origin| count_responses(origin) > 0));
    dns.start(&IPS[..1], &records[..1]);
    wait_for_members(&edge, 1);
    let before = count_responses(&origins[1]);
    for n in 0..40 {
        assert_eq!(
            edge.request("GET", &format!("/film-{n}.bin"), &[("Cookie", "a=b")])
                .status,
            200
        );
    }
    assert_eq!(count_responses(&origins[1]), before);
}

#[test]
fn addresses_of_ipv6_are_members_of_names_without_ipv4() {
    const IP6: &str = "::1";
    let folder = TempFolder::new();
    let Some(mut dns) = DnsServer::new(&folder) else {
        return;
    };
    if TcpListener::bind((IP6, 0)).is_err() {
        report_skip("this machine has no IPv6 loopback");
        return;
    }
    write_films(&folder);
    let port = find_common_port(&[IP6, IPS[0]]);
    let [six, mut four] = [IP6, IPS[0]].map(|ip| start_origin(&folder, ip, port));
    let read_films = |edge: &HeadwaterServer| {
        for n in 0..10 {
            let target = format!("/film-{n}.bin");
            let response = edge.request("GET", &target, &[("Cookie", "a=b")]);
            assert_eq!((response.status, &*response.body), (200, target.as_bytes()));
        }
    };
    dns.start(&[IP6], &[]);
    let edge = start_edge(&format!("dns+http://{NAME}:{port}"), &dns);
    wait_for_members(&edge, 1);
    read_films(&edge);
    assert_eq!((count_responses(&six), count_responses(&four)), (10, 0));
    // The edge uses only the IPv4 address. Otherwise, a server with both addresses would become two
    // members.
    dns.change_addresses(&[IP6, IPS[0]]);
    wait_until("the IPv4 member", || {
        edge.request("GET", "/film-1.bin", &[("Cookie", "a=b")]);
        count_responses(&four) > 0
    });
    let before = count_responses(&six);
    read_films(&edge);
    assert_eq!(count_responses(&six), before);
    assert_eq!(read_metric(&edge, "headwater_upstream_members "), 1);
    // The name now has only its AAAA record.
    dns.change_addresses(&[IP6]);
    let reaches_six = || {
        edge.request("GET", "/film-1.bin", &[("Cookie", "a=b")]);
        count_responses(&six) > before
    };
    wait_until("the IPv6 member", reaches_six);
    assert_eq!(four.terminate(), Some(0));
    read_films(&edge);
}
