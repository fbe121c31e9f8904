//! Tests rolling restarts at 80 % of the rate that saturates the server. The load is an open loop,
//! so each request starts at its scheduled time, even if earlier responses are late.
//!
//! The server has a quarter of a processor, so that the load generator is not the bottleneck. If
//! other processes use a part of this quarter, the load may exceed the capacity of the server. The
//! timeouts are therefore long. Requests may be late, but none may fail.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{ROLLING_RESTARTS, RestartSetup};
use crate::support::{HeadwaterServer, report_skip};

const CPU_PERCENT: u64 = 25;
const LOAD_PERCENT: f64 = 80.0;
const TARGET: &str = "/medium.bin";
/// SHA-256 of the target's body ([`super::load::make_body`]).
const SHA256: &str = "61e6f8e6f59db2c33c8dd6ccece4b2cd7d09edb5c2fbeff86ab480a0320e36a6";
/// Time under load between two restarts.
const BETWEEN: Duration = Duration::from_millis(200);

/// A control group that is limited to [`CPU_PERCENT`] of a processor. Dropping it removes the
/// group.
struct CpuGroup(PathBuf);

impl CpuGroup {
    /// Returns None if the test cannot create control groups.
    fn create(name: &str) -> Option<CpuGroup> {
        let name = format!("headwater-{name}-{}", std::process::id());
        let version1 = ("cpu", "cpu.cfs_quota_us", format!("{}", CPU_PERCENT * 1000));
        let version2 = ("", "cpu.max", format!("{} 100000", CPU_PERCENT * 1000));
        [version1, version2]
            .into_iter()
            .find_map(|(controller, file, limit)| {
                let folder = Path::new("/sys/fs/cgroup").join(controller).join(&name);
                std::fs::create_dir(&folder).ok()?;
                let group = CpuGroup(folder);
                let file = group.0.join(file);
                (file.exists() && std::fs::write(file, limit).is_ok()).then_some(group)
            })
    }

    /// Starts a program of `headwater` in the group.
    fn start(&self, program: &str, flags: &[&str]) -> HeadwaterServer {
        let mut command = Command::new("sh");
        let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        command.args(["-c", enter]).arg(&self.0);
        command.arg(env!("CARGO_BIN_EXE_headwater"));
        HeadwaterServer::spawn(command, program, flags)
    }
}

impl Drop for CpuGroup {
    fn drop(&mut self) {
        // The kernel may list an exited process in the group for a moment, so the removal is
        // repeated.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A running `headwater load rate`.
pub struct LoadGenerator {
    child: Child,
    version: &'static str,
}

impl LoadGenerator {
    pub fn start(url: &str, version: &'static str, rate: &str, duration: &str) -> LoadGenerator {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.args(["load", "rate", url, "--http", version, "--rate", rate]);
        command.args([
            "--duration",
            duration,
            "--drain",
            "60s",
            "--timeout",
            "600s",
        ]);
        command.args(["--connections", "8", "--max-connections", "2000"]);
        command.args([
            "--threads",
            "1",
            "--insecure",
            "--sha256",
            SHA256,
            "--json",
            "-",
        ]);
        if version == "2" {
            command.args(["--streams", "8"]);
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null());
        LoadGenerator {
            child: child.spawn().unwrap(),
            version,
        }
    }

    pub fn interrupt(&self) {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status().unwrap();
    }

    /// Waits until the load generator exits, and returns its result.
    pub fn finish(self) -> serde_json::Value {
        let output = self.child.wait_with_output().unwrap();
        serde_json::from_slice(&output.stdout).expect("a result")
    }
}

/// Saturates a server with two generators, and returns the rate of each generator. Measures twice
/// and returns the lower rates, because the load of the test must stay below saturation.
fn measure_saturation(url: &str, versions: [&'static str; 2]) -> [f64; 2] {
    let measure = || {
        let start = |version| LoadGenerator::start(url, version, "max", "2s");
        versions.map(start).map(|generator| {
            let result = generator.finish();
            assert_eq!(result["summary"]["errors"], 0, "{}", result["examples"]);
            result["summary"]["rate_per_s"].as_f64().unwrap()
        })
    };
    let (first, second) = (measure(), measure());
    [first[0].min(second[0]), first[1].min(second[1])]
}

/// Replaces a process repeatedly under the load of two open-loop generators, one for each of these
/// HTTP versions.
fn roll_in_open_loop(
    scheme: &str,
    versions: [&'static str; 2],
    start: impl Fn() -> HeadwaterServer,
) {
    let mut current = start();
    let url = format!("{scheme}://{}{TARGET}", current.addr);
    let rates = measure_saturation(&url, versions).map(|rate| rate * LOAD_PERCENT / 100.0);
    let pairs = [(versions[0], rates[0]), (versions[1], rates[1])];
    let generators = pairs
        .map(|(version, rate)| LoadGenerator::start(&url, version, &format!("{rate:.1}"), "600s"));
    for round in 0..ROLLING_RESTARTS {
        std::thread::sleep(BETWEEN);
        let next = start();
        assert_eq!(next.addr, current.addr, "round {round}");
        assert_eq!(current.wait_for_exit(), Some(0), "round {round}");
        current = next;
    }
    std::thread::sleep(BETWEEN);
    generators.iter().for_each(LoadGenerator::interrupt);
    for generator in generators {
        let version = generator.version;
        let result = generator.finish();
        let summary = &result["summary"];
        eprintln!(
            "{scheme}, HTTP/{version}, {rates:.0?}/s: {}",
            summary["requests"]
        );
        assert!(summary["requests"].as_u64() > Some(100), "{summary}");
        // The errors include refused connections, truncated responses and wrong bytes.
        assert_eq!(
            summary["errors"], 0,
            "HTTP/{version}: {}",
            result["examples"]
        );
    }
}

/// Tests a program with HTTP/1.1 and HTTP/2, first without TLS and then with TLS.
fn roll_program(program: &str) {
    let versions = ["1", "2"];
    for scheme in ["http", "https"] {
        let Some(group) = CpuGroup::create(&format!("{program}-{scheme}")) else {
            return report_skip("control groups cannot be created here");
        };
        let setup = RestartSetup::new();
        let origin = HeadwaterServer::serve(&[&setup.path("films")]);
        let (films, socket, url) = (setup.path("films"), setup.handover_socket(), origin.url(""));
        let mut flags = match program {
            "edge" => vec!["--origin", &url],
            _ => vec![&*films],
        };
        flags.extend(["--handover-socket", &socket, "--drain-timeout", "600s"]);
        flags.extend(["--stall-timeout", "600s", "--header-timeout", "600s"]);
        let certificate = setup.write_certificate();
        if scheme == "https" {
            flags.extend(certificate.iter().map(String::as_str));
        }
        roll_in_open_loop(scheme, versions, || group.start(program, &flags));
    }
}

#[test]
#[ignore = "needs an idle machine: make restarts"]
fn the_origin_loses_no_request_of_an_open_loop() {
    roll_program("serve");
}

#[test]
#[ignore = "needs an idle machine: make restarts"]
fn the_edge_loses_no_request_of_an_open_loop() {
    roll_program("edge");
}
