//! Tests rolling restarts under load over TLS, with HTTP/1.1 and HTTP/2.

use std::time::Duration;

use super::RestartSetup;
use super::open_loop::LoadGenerator;
use crate::support::HeadwaterServer;

const RESTARTS: usize = 4;
/// Time under load between two restarts.
const BETWEEN: Duration = Duration::from_millis(300);

/// Replaces a process repeatedly under load over TLS. Refused connections, truncated responses and
/// wrong bytes count as errors.
fn roll_over_tls(setup: &RestartSetup, program: &str, source: &[&str]) {
    let socket = setup.handover_socket();
    let certificate = setup.write_certificate();
    let mut flags = source.to_vec();
    flags.extend(["--handover-socket", &socket, "--drain-timeout", "600s"]);
    flags.extend(["--stall-timeout", "600s", "--header-timeout", "600s"]);
    flags.extend(certificate.iter().map(String::as_str));
    let start = || HeadwaterServer::start_program(program, &flags);
    let mut current = start();
    let url = format!("https://{}/medium.bin", current.addr);
    let generators = ["1", "2"].map(|http| LoadGenerator::start(&url, http, "max", "600s"));
    for round in 0..RESTARTS {
        std::thread::sleep(BETWEEN);
        let next = start();
        assert_eq!(next.addr, current.addr, "round {round}");
        assert_eq!(current.wait_for_exit(), Some(0), "round {round}");
        current = next;
    }
    generators.iter().for_each(LoadGenerator::interrupt);
    for generator in generators {
        let result = generator.finish();
        let summary = &result["summary"];
        assert!(summary["requests"].as_u64() > Some(100), "{summary}");
        assert_eq!(summary["errors"], 0, "{}", result["examples"]);
    }
}

#[test]
fn rolling_restarts_of_the_origin_over_tls_lose_no_request() {
    let setup = RestartSetup::new();
    roll_over_tls(&setup, "serve", &[&setup.path("films")]);
}

#[test]
fn rolling_restarts_of_the_edge_over_tls_lose_no_request() {
    let setup = RestartSetup::new();
    let origin = HeadwaterServer::serve(&[&setup.path("films")]);
    roll_over_tls(&setup, "edge", &["--origin", &origin.url("")]);
}
