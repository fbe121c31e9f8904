//! Chooses free ports for servers that cannot listen on port 0 and report the resulting port.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// First port of the range, which is below the ephemeral ports of the kernel. The kernel could give
/// an ephemeral port to another test before this test's server listens on the port. The other test
/// would then receive the requests of this test.
const FIRST: u32 = 12_000;
const COUNT: u32 = 18_000;

static TURN: AtomicU32 = AtomicU32::new(0);

/// Returns a port that is free now, and that other tests are unlikely to choose.
pub fn free() -> u16 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let chance = since.subsec_micros() + 7919 * TURN.fetch_add(1, Relaxed);
    let ports = (0..COUNT).map(|n| FIRST + (chance.wrapping_add(n)) % COUNT);
    let ports = ports.filter_map(|port| u16::try_from(port).ok());
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.into_iter().find(is_free).unwrap()
}
