//! Tests floods over HTTP/2: frames that cost the client little and might cost the server much.
//!
//! The client of a flood never reads while it writes. A server may close the connection or stop
//! reading. In no case may the server hold much memory or delay other clients.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

use crate::frames::*;
use crate::targets::{AttackedServers, ByteStream, TargetServer};

/// The state of a connection after a flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloodEnd {
    /// The server has sent GOAWAY or closed the connection.
    Closed,
    /// The connection is open. The server still reads, or has stopped reading.
    Open,
}

use FloodEnd::{Closed, Open};

/// A flood that sends similar frames in each round.
pub struct Flood {
    pub name: &'static str,
    /// Returns the frames of a round.
    frames: fn(u32) -> Vec<u8>,
    rounds: u32,
    pub expected: FloodEnd,
}

const fn flood(
    name: &'static str,
    rounds: u32,
    expected: FloodEnd,
    frames: fn(u32) -> Vec<u8>,
) -> Flood {
    Flood {
        name,
        frames,
        rounds,
        expected,
    }
}

/// A CVE number identifies other servers' vulnerability to the same kind of flood.
#[rustfmt::skip]
pub const FLOODS: &[Flood] = &[
    flood("requests that are reset at once (CVE-2023-44487)", 20_000, Closed, |n| {
        [get(n), frame(RST_STREAM, 0, id(n), &[0, 0, 0, 8])].concat()
    }),
    flood("requests that the client makes the server reset (CVE-2025-8671)", 20_000, Closed, |n| {
        [get(n), frame(WINDOW_UPDATE, 0, id(n), &[0; 4])].concat()
    }),
    flood("a header block without an end (CVE-2024-27316)", 20_000, Closed, |n| match n {
        0 => frame(HEADERS, END_STREAM, 1, &request_block("GET")),
        _ => frame(CONTINUATION, 0, 1, &encode_field("x", &"y".repeat(1000))),
    }),
    flood("empty parts of a header block (CVE-2019-9518)", 50_000, Closed, |n| match n {
        0 => frame(HEADERS, END_STREAM, 1, &request_block("GET")),
        _ => frame(CONTINUATION, 0, 1, &[]),
    }),
    flood("header lists that decode to a thousand times their bytes", 20, Open, |n| {
        let mut block = request_block("GET");
        // The first copy of the field is a literal that enters the dynamic table (RFC 7541 section
        // 6.2.1). Each of the 10,000 further copies is a reference of one byte.
        let mut entry = encode_field("x", &"y".repeat(3000));
        entry[0] = 0x40;
        block.extend(entry);
        block.extend([0xbe; 10_000]);
        frame(HEADERS, END_STREAM | END_HEADERS, id(n), &block)
    }),
    flood("header lists of 100 KB", 100, Open, |n| {
        let block = [request_block("GET"), encode_field("x", &"y".repeat(100_000))].concat();
        let mut parts = block.chunks(FRAME_BYTES_MAX).peekable();
        let mut bytes = Vec::new();
        let mut kind = HEADERS;
        while let Some(part) = parts.next() {
            let flags = if kind == HEADERS { END_STREAM } else { 0 };
            let last = if parts.peek().is_none() { END_HEADERS } else { 0 };
            bytes.extend(frame(kind, flags | last, id(n), part));
            kind = CONTINUATION;
        }
        bytes
    }),
    flood("fields without names (CVE-2019-9516)", 1000, Closed, |n| {
        let block = [request_block("GET"), encode_field("", "").repeat(100)].concat();
        frame(HEADERS, END_STREAM | END_HEADERS, id(n), &block)
    }),
    flood("SETTINGS (CVE-2019-9515)", 100_000, Open, |_| frame(SETTINGS, 0, 0, &[])),
    flood("SETTINGS of the largest header table", 10_000, Open, |_| {
        frame(SETTINGS, 0, 0, &[0, 1, 0xff, 0xff, 0xff, 0xff])
    }),
    flood("PING (CVE-2019-9512)", 100_000, Open, |_| frame(PING, 0, 0, &[0; 8])),
    flood("acknowledgements of PINGs that were never sent", 100_000, Open, |_| frame(PING, ACK, 0, &[0; 8])),
    flood("PRIORITY (CVE-2019-9513)", 100_000, Open, |n| {
        frame(PRIORITY, 0, id(n), &[0, 0, 0, 0, 255])
    }),
    flood("frames of an unknown type", 100_000, Open, |_| frame(0xbe, 0, 0, &[0; 8])),
    flood("windows opened by one byte", 100_000, Open, |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
    flood("a window beyond 2^31", 10, Closed, |_| frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
    flood("empty DATA of an upload (CVE-2019-9518)", 50_000, Closed, |n| match n {
        0 => frame(HEADERS, END_HEADERS, 1, &request_block("POST")),
        _ => frame(DATA, 0, 1, &[]),
    }),
    flood("DATA of streams that were never opened", 100, Closed, |n| frame(DATA, 0, id(n), &[0])),
    flood("more requests at a time than permitted", 5000, Open, get),
    flood("many responses whose window stays shut (CVE-2019-9511)", 100, Closed, |n| match n {
        // SETTINGS_INITIAL_WINDOW_SIZE = 0 (RFC 9113 section 6.5.2).
        0 => frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]),
        _ => get(n),
    }),
];

/// Number of connections of each flood.
const CONNECTIONS: usize = 4;

/// Maximum growth of a server's peak memory during all floods. It includes TLS buffers and the
/// higher memory use of debug builds.
const GROWTH_BYTES_MAX: u64 = 24 << 20;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    encode_frame(kind, flags, stream, payload)
}

/// Returns the stream id of a round.
fn id(round: u32) -> u32 {
    2 * round + 1
}

fn request_block(method: &str) -> Vec<u8> {
    [
        encode_field(":method", method),
        encode_field(":scheme", "http"),
        encode_field(":path", "/film.bin"),
        encode_field(":authority", "e"),
    ]
    .concat()
}

/// Returns a request for the film on the round's stream.
fn get(round: u32) -> Vec<u8> {
    let flags = END_STREAM | END_HEADERS;
    frame(HEADERS, flags, id(round), &request_block("GET"))
}

/// Writes a flood until the flood ends, the server closes the connection, or the server stops
/// reading.
pub fn write_flood(stream: &mut dyn ByteStream, flood: &Flood) -> FloodEnd {
    let start = [PREFACE, &encode_frame(SETTINGS, 0, 0, &[])].concat();
    let rounds = (0..flood.rounds).map(flood.frames);
    for bytes in std::iter::once(start).chain(rounds) {
        match stream.write_all(&bytes).and_then(|()| stream.flush()) {
            Ok(()) => {}
            Err(error) if is_timeout(&error) => return Open,
            Err(_) => return Closed,
        }
    }
    Open
}

/// Reads until the server sends GOAWAY or closes the connection, or until the read timeout.
pub fn read_flood_end(stream: &mut dyn ByteStream) -> FloodEnd {
    loop {
        match try_read_frame(stream) {
            Ok((GOAWAY, _)) => return Closed,
            Ok(_) => {}
            Err(error) if is_timeout(&error) => return Open,
            Err(_) => return Closed,
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Minimum number of requests of other clients during each flood.
const HEALTH_REQUESTS_MIN: usize = 2;

/// Requests `/healthz` on new connections until the flood has ended. Returns the number of
/// responses. Each response must arrive before the connection's read timeout, which is long enough
/// for a busy machine.
fn request_health_until(has_ended: &AtomicBool, target: &TargetServer, flood: &Flood) -> usize {
    for n in 1.. {
        // The flag is read before the request, so that the last request starts after the end of the
        // flood.
        let is_last = has_ended.load(SeqCst);
        let started = Instant::now();
        let health = target.request("http/1.1", "GET", "/healthz", &[]);
        let request = format!("{}: {}: request {n}", target.name, flood.name);
        let taken = started.elapsed();
        assert_eq!(health, StreamResult::Status(200), "{request}: {taken:?}");
        if is_last && n >= HEALTH_REQUESTS_MIN {
            return n;
        }
    }
    unreachable!("the loop has no end")
}

/// Floods a server over several connections. Meanwhile, the server must serve other clients.
fn flood_server(target: &TargetServer, flood: &Flood) -> FloodEnd {
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| target.connect(b"h2")).collect();
    let has_ended = AtomicBool::new(false);
    let (mut ends, served) = std::thread::scope(|scope| {
        let health = scope.spawn(|| request_health_until(&has_ended, target, flood));
        let ends: Vec<_> = streams
            .iter_mut()
            .map(|stream| write_flood(stream, flood))
            .collect();
        has_ended.store(true, SeqCst);
        (ends, health.join().unwrap())
    });
    println!("{}: {}: {served} other requests", target.name, flood.name);
    if flood.expected == Closed {
        for (end, stream) in ends.iter_mut().zip(&mut streams) {
            if *end == Open {
                *end = read_flood_end(stream);
            }
        }
    }
    match ends.iter().all(|end| *end == Closed) {
        true => Closed,
        false => Open,
    }
}

/// Runs all floods against a server, and describes the differences from the expected results.
fn run_floods(target: &TargetServer) -> Vec<String> {
    let mut wrong = Vec::new();
    target.request("h2", "GET", "/film.bin", &[]);
    let before = target.peak_memory_bytes();
    for flood in FLOODS {
        let peak = target.peak_memory_bytes();
        let end = flood_server(target, flood);
        let growth = target.peak_memory_bytes().saturating_sub(peak) >> 10;
        println!("{}: {}: {end:?}, {growth} KiB", target.name, flood.name);
        // A server may close the connection even if the flood's expected end is `Open`.
        if flood.expected == Closed && end == Open {
            wrong.push(format!("{}: {}: open", target.name, flood.name));
        }
    }
    let growth = target.peak_memory_bytes().saturating_sub(before);
    if growth > GROWTH_BYTES_MAX {
        wrong.push(format!("{}: {} MiB", target.name, growth >> 20));
    }
    wrong
}

#[test]
fn floods_over_http2_hold_little_memory_and_delay_nobody() {
    // The header timeout is long, because a handshake can take more than half a second on a busy
    // machine. Otherwise, the server would close the connections of harmless clients.
    let flags = ["--stall-timeout", "500ms", "--header-timeout", "6s"];
    let attacked = AttackedServers::start(&flags);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let run = |target| scope.spawn(move || run_floods(target));
        let threads: Vec<_> = attacked.servers.iter().map(run).collect();
        let join = |thread: std::thread::ScopedJoinHandle<Vec<String>>| thread.join().unwrap();
        threads.into_iter().flat_map(join).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    attacked.assert_unharmed();
}
