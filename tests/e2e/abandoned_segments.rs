//! Tests that `headwater load players` abandons a segment if the connection becomes slow during the
//! download.

use crate::support::{HeadwaterServer, TempFolder};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Video bitrates of the film.
const LADDER_KBPS: [u32; 3] = [100, 300, 1200];
/// Bytes of the slow segment that are relayed at full speed.
const FAST_BYTES: u64 = 20_000;
/// Pause after each further kilobyte, which limits the response to about 100 kb/s.
const SLOW_PAUSE: Duration = Duration::from_millis(80);

/// Makes a film of 20 seconds with three video bitrates and audio.
fn make_film(folder: &Path) {
    let bitrates = LADDER_KBPS.iter().enumerate().flat_map(|(n, kbps)| {
        let options = ["b", "maxrate", "bufsize"];
        options.map(|option| [format!("-{option}:v:{n}"), format!("{kbps}k")])
    });
    let inputs = "-f lavfi -i testsrc2=size=320x180:rate=10:duration=20,noise=alls=80:allf=t -f lavfi -i sine=duration=20 \
                  -map 0:v -map 0:v -map 0:v -map 1:a -c:v libx264 -preset ultrafast -g 20 -c:a aac -b:a 64k";
    let made = Command::new("ffmpeg")
        .args(["-hide_banner", "-loglevel", "error", "-y"])
        .args(inputs.split_whitespace())
        .args(bitrates.flatten())
        .arg("film.mp4")
        .current_dir(folder)
        .status();
    assert!(made.unwrap().success());
}

/// A relay that slows down one response.
struct Relay {
    addr: SocketAddr,
    slowed: Arc<AtomicBool>,
}

impl Relay {
    /// Starts a relay to a server. The first response to a request that contains `slow` becomes
    /// slow after `FAST_BYTES` bytes.
    fn start(server: SocketAddr, slow: String) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let slowed = Arc::<AtomicBool>::default();
        let (slow, flag) = (Arc::<str>::from(slow), slowed.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(server).unwrap();
                relay_connection(client, server, slow.clone(), flag.clone());
            }
        });
        Relay { addr, slowed }
    }
}

fn relay_connection(client: TcpStream, server: TcpStream, slow: Arc<str>, slowed: Arc<AtomicBool>) {
    let slow_from = Arc::new(AtomicU64::new(u64::MAX));
    let sent = Arc::<AtomicU64>::default();
    let (mut from_client, mut to_server) =
        (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (limit, count) = (slow_from.clone(), sent.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(got @ 1..) = from_client.read(&mut buffer) {
            let request = String::from_utf8_lossy(&buffer[..got]);
            if request.contains(&*slow) && !slowed.swap(true, Ordering::SeqCst) {
                limit.store(count.load(Ordering::SeqCst) + FAST_BYTES, Ordering::SeqCst);
            }
            if to_server.write_all(&buffer[..got]).is_err() {
                break;
            }
        }
        let _ = to_server.shutdown(std::net::Shutdown::Both);
    });
    let (mut from_server, mut to_client) = (server, client);
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 10];
        while let Ok(got @ 1..) = from_server.read(&mut buffer) {
            if to_client.write_all(&buffer[..got]).is_err() {
                break;
            }
            if sent.fetch_add(got as u64, Ordering::SeqCst) > slow_from.load(Ordering::SeqCst) {
                std::thread::sleep(SLOW_PAUSE);
            }
        }
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
}

/// The result of one viewer who plays through a relay, and the records of the viewer's requests.
struct Played {
    viewing: Value,
    records: Vec<Value>,
}

/// Plays the film through a relay that slows down the segment whose URL contains `slow`.
fn play_over_relay(
    folder: &Path,
    server: SocketAddr,
    path: &str,
    slow: &str,
    like: &[&str],
) -> Played {
    let relay = Relay::start(server, slow.to_owned());
    let records = folder.join("records.jsonl");
    let url = format!("http://{}{path}", relay.addr);
    let output = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args([
            "load",
            "players",
            &url,
            "--json",
            "-",
            "--viewers",
            "1",
            "--spread",
            "0s",
        ])
        .args([
            "--buffer",
            "6s",
            "--duration",
            "30s",
            "--cmcd",
            "1-query",
            "--patience",
            "60s",
        ])
        .arg("--records")
        .arg(&records)
        .args(like)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{like:?}: {stderr}");
    assert!(
        relay.slowed.load(Ordering::SeqCst),
        "{like:?}: {slow} was never requested"
    );
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lines = std::fs::read_to_string(&records).unwrap();
    let records = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    Played {
        viewing: json["viewing"].clone(),
        records: records.collect(),
    }
}

/// Returns the level and the position of a segment. The URL has the form
/// `…/video=LEVEL/POSITION.m4s?…`.
fn segment_of(record: &Value) -> Option<(u64, String)> {
    let (_, of_video) = record["url"].as_str()?.split_once("/video=")?;
    let (level, rest) = of_video.split_once('/')?;
    let position = rest.split(['.', '?']).next()?;
    position.parse::<u64>().ok()?;
    let digits = level.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((digits.parse().ok()?, position.to_owned()))
}

/// Returns the part of the URL that identifies the fifth segment of the highest level. To learn the
/// URL, this function plays the film for two seconds without a relay.
fn fifth_of_highest(server: &HeadwaterServer, folder: &Path, path: &str) -> String {
    let records = folder.join("all.jsonl");
    let status = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args([
            "load",
            "players",
            &server.url(path),
            "--viewers",
            "1",
            "--spread",
            "0s",
        ])
        .args(["--abr", "highest", "--duration", "2s", "--records"])
        .arg(&records)
        .output();
    assert!(status.unwrap().status.success());
    let lines = std::fs::read_to_string(&records).unwrap();
    let segments = lines
        .lines()
        .map(|line| segment_of(&serde_json::from_str(line).unwrap()));
    let (level, position) = segments.flatten().nth(4).unwrap();
    format!("/video={level}/{position}.")
}

/// Plays a film with a slow segment twice: once like `player`, and once with the same ABR rule but
/// without abandoning segments. Compares both results.
fn compare_with_patient_player(server: &HeadwaterServer, player: &str, path: &str) {
    let folders = [TempFolder::new(), TempFolder::new()];
    let slow = fifth_of_highest(server, folders[0].0.as_path(), path);
    let address = server
        .url("")
        .trim_start_matches("http://")
        .parse()
        .unwrap();
    let rule = if player == "dash.js" {
        "dynamic"
    } else {
        player
    };
    let [like_player, like_none] = [&["--like", player][..], &["--like", "none", "--abr", rule]];
    let play = |n: usize, like| play_over_relay(folders[n].0.as_path(), address, path, &slow, like);
    let (played, patient) = std::thread::scope(|scope| {
        let patient = scope.spawn(|| play(1, like_none));
        (play(0, like_player), patient.join().unwrap())
    });
    check_abandoned(player, &played, &slow);
    assert_eq!(patient.viewing["abandoned"], 0, "{}", patient.viewing);
    let stalled_s = |played: &Played| played.viewing["stalled_s"].as_f64().unwrap();
    assert!(
        stalled_s(&patient) > stalled_s(&played),
        "{player}: {} {}",
        played.viewing,
        patient.viewing
    );
}

/// Checks that the slow segment was abandoned once, and that a lower level replaced it.
fn check_abandoned(player: &str, played: &Played, slow: &str) {
    let is_slow = |record: &&Value| {
        let url = record["url"].as_str().unwrap_or_default();
        record["abandoned"] == true && url.contains(slow)
    };
    let of_slow: Vec<&Value> = played.records.iter().filter(is_slow).collect();
    let [abandoned] = of_slow[..] else {
        panic!("{player}: {of_slow:?}, {}", played.viewing)
    };
    let bytes = abandoned["bytes"].as_u64().unwrap();
    assert!(bytes > FAST_BYTES / 2, "{abandoned}");
    let (level, position) = segment_of(abandoned).unwrap();
    let end = |record: &Value| record["end_ms"].as_f64().unwrap_or(f64::NAN);
    let replaces = |record: &&Value| {
        end(record) > end(abandoned)
            && segment_of(record).is_some_and(|(other, at)| at == position && other < level)
    };
    let again = played.records.iter().find(replaces);
    let again = again.unwrap_or_else(|| panic!("{player}: {position} is missing"));
    assert_eq!(again["status"], 200, "{again}");
    let viewing = &played.viewing;
    assert!(viewing["abandoned"].as_u64().unwrap() >= 1, "{viewing}");
    assert!(
        viewing["abandoned_bytes"].as_u64().unwrap() >= bytes,
        "{viewing}"
    );
}

#[test]
fn a_segment_that_becomes_slow_is_abandoned_for_a_lower_level() {
    let folder = TempFolder::new();
    make_film(folder.0.as_path());
    let server = HeadwaterServer::serve_source(&folder.0.join("film.mp4"));
    std::thread::scope(|scope| {
        for (player, manifest) in [("hls.js", ".m3u8"), ("dash.js", ".mpd"), ("shaka", ".mpd")] {
            let (server, path) = (&server, format!("/film.mp4/{manifest}"));
            scope.spawn(move || compare_with_patient_player(server, player, &path));
        }
    });
}
