//! Tests that servers refuse requests while memory is short, and recover afterwards.

use crate::support::{HeadwaterServer, TempFolder, report_skip};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT_BYTES: u64 = 96 << 20;
const BODY_BYTES: usize = 1 << 20;
/// Number of objects. Their total size is three times the limit.
const OBJECTS: usize = 288;

fn metric(server: &HeadwaterServer, name: &str) -> u64 {
    let text = server.get_text("/metrics");
    let value = text.lines().find_map(|line| {
        let rest = line.strip_prefix("headwater_")?.strip_prefix(name)?;
        rest.trim().parse().ok()
    });
    value.unwrap_or_else(|| panic!("no metric {name} in\n{text}"))
}

#[test]
fn an_overloaded_server_still_answers_probes_and_metrics() {
    let server = HeadwaterServer::serve(&["--memory-limit", "1MiB"]);
    let refused = server.get("/");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(metric(&server, "overload_level"), 2);
    assert_eq!(metric(&server, "memory_limit_bytes"), 1 << 20);
    assert!(metric(&server, "memory_used_bytes") > 1 << 20);
    let refused = metric(&server, "overload_refused_total{action=\"response\"}");
    assert_eq!(refused, 1);
}

#[test]
fn a_cache_above_the_memory_limit_shrinks_instead_of_growing() {
    let limit = LIMIT_BYTES.to_string() + "B";
    let origin = start_origin().to_string();
    let url = format!("http://{origin}");
    let flags = ["--origin", &url, "--memory", "1GiB"];
    let all = [&flags[..], &["--memory-limit", &limit]].concat();
    let mut edge = HeadwaterServer::start_program("edge", &all);
    fill_cache(&mut edge);
}

/// The kernel kills a process that exceeds the memory limit of its control group.
#[test]
fn an_edge_in_a_small_control_group_survives_a_cache_above_its_limit() {
    let Some(group) = MemoryGroup::create() else {
        return report_skip("control groups of version 1 cannot be created here");
    };
    let origin = start_origin().to_string();
    let url = format!("http://{origin}");
    let mut command = Command::new("sh");
    let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
    command.args(["-c", enter]).arg(&group.0);
    command.arg(env!("CARGO_BIN_EXE_headwater"));
    let flags = ["--origin", &url, "--memory", "1GiB"];
    let mut edge = HeadwaterServer::spawn(command, "edge", &flags);
    fill_cache(&mut edge);
    // Stops the edge first, because a control group that contains a process cannot be removed.
    drop(edge);
}

/// Requests three times as many bytes as the limit allows.
fn fill_cache(edge: &mut HeadwaterServer) {
    assert_eq!(metric(edge, "memory_limit_bytes"), LIMIT_BYTES);
    let mut refused = 0;
    for n in 0..OBJECTS {
        let target = format!("/object-{n}");
        let response = loop {
            let response = edge.get(&target);
            match response.status {
                // The cache shrinks every 100 ms. If the cache does not shrink, the test fails
                // after 600 refusals.
                503 if refused < 600 => {
                    assert_eq!(response.header("retry-after"), Some("1"));
                    refused += 1;
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => break response,
            }
        };
        assert_eq!(response.status, 200, "{}", response.error_reason());
        assert!(response.body == make_body(&target), "{target}");
    }
    assert!(edge.is_alive());
    let cached = metric(edge, "cache_memory_bytes");
    assert!(cached < LIMIT_BYTES, "{cached} bytes cached");
    assert!(cached > 0, "nothing is cached");
}

fn make_body(target: &str) -> Vec<u8> {
    target.bytes().cycle().take(BODY_BYTES).collect()
}

/// Starts an origin whose responses are all cacheable.
fn start_origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve_connection(stream));
        }
    });
    address
}

fn serve_connection(mut stream: TcpStream) -> Option<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.extend(byte);
        }
        let text = String::from_utf8(head).ok()?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=9999\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&make_body(text.split(' ').nth(1)?)).ok()?;
    }
}

/// A control group (version 1) that limits memory to [`LIMIT_BYTES`]. The group is removed when
/// dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn create() -> Option<MemoryGroup> {
        let name = TempFolder::new();
        let name = name.0.file_name()?.to_owned();
        let folder = Path::new("/sys/fs/cgroup/memory").join(name);
        std::fs::create_dir(&folder).ok()?;
        let group = MemoryGroup(folder);
        let file = group.0.join("memory.limit_in_bytes");
        (file.exists() && std::fs::write(file, LIMIT_BYTES.to_string()).is_ok()).then_some(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}
