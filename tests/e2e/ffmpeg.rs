//! What ffprobe and ffmpeg say about a file or URL.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// A packet, in the ticks of its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    pub pts: i64,
    pub dts: i64,
    pub size: u64,
    pub key: bool,
    pub hash: String,
}

/// A stream with its packets in the order they lie.
#[derive(Debug, Clone)]
pub struct Stream {
    /// `video` or `audio`.
    pub kind: String,
    pub codec: String,
    /// Ticks a second.
    pub rate: i64,
    pub packets: Vec<Packet>,
}

/// All video and audio streams of an input.
pub fn streams(input: &str) -> Vec<Stream> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-show_packets", "-show_data_hash", "md5"])
        .args(["-show_entries", FIELDS, "-of", "json", input])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ffprobe {input}: {errors}");
    assert!(serious(&errors).is_empty(), "ffprobe {input}: {errors}");
    read(&serde_json::from_slice(&output.stdout).unwrap())
}

const FIELDS: &str = "packet=stream_index,pts,dts,size,flags,data_hash\
    :stream=index,codec_type,codec_name,time_base";

/// Complaints that are about the input, not about ffprobe's own guesses.
fn serious(errors: &str) -> Vec<&str> {
    let harmless = |line: &&str| line.contains("Could not find codec parameters");
    errors.lines().filter(|line| !harmless(line)).collect()
}

fn read(found: &Value) -> Vec<Stream> {
    let list = |name: &str| found[name].as_array().cloned().unwrap_or_default();
    let packets = list("packets");
    let of = |index: &Value| -> Vec<Packet> {
        let own = packets.iter().filter(|p| p["stream_index"] == *index);
        own.map(packet).collect()
    };
    let streams = list("streams").into_iter().filter(|s| {
        let kind = s["codec_type"].as_str();
        kind == Some("video") || kind == Some("audio")
    });
    streams
        .map(|s| {
            let (up, down) = s["time_base"].as_str().unwrap().split_once('/').unwrap();
            Stream {
                kind: s["codec_type"].as_str().unwrap().to_owned(),
                codec: s["codec_name"].as_str().unwrap_or("unknown").to_owned(),
                rate: down.parse::<i64>().unwrap() / up.parse::<i64>().unwrap(),
                packets: of(&s["index"]),
            }
        })
        .collect()
}

fn packet(found: &Value) -> Packet {
    Packet {
        pts: found["pts"].as_i64().unwrap_or(i64::MIN),
        dts: found["dts"].as_i64().unwrap_or(i64::MIN),
        size: found["size"].as_str().unwrap().parse().unwrap(),
        key: found["flags"].as_str().unwrap().starts_with('K'),
        hash: found["data_hash"].as_str().unwrap().to_owned(),
    }
}

/// Hashes of the decoded pictures of the first video stream, in the order they are shown.
pub fn pictures(input: &str) -> Vec<String> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i", input, "-map", "0:v:0"])
        .args(["-fps_mode", "passthrough", "-f", "framemd5", "-"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ffmpeg {input}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let frames = text.lines().filter(|line| !line.starts_with('#'));
    frames
        .map(|line| line.rsplit(',').next().unwrap().trim().to_owned())
        .collect()
}

/// Writes bytes where ffprobe can read them.
pub fn keep(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}
