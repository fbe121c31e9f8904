//! Packets and decoded frames of a file or URL, as ffprobe and ffmpeg read them.

use crate::probe_cache;
use serde_json::Value;
use std::path::Path;

/// A packet whose times are in ticks of the stream's time base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedPacket {
    pub pts: i64,
    pub dts: i64,
    pub size: u64,
    pub key: bool,
    pub hash: String,
}

/// A stream with its packets in file order.
#[derive(Debug, Clone)]
pub struct ProbedStream {
    /// `video` or `audio`.
    pub kind: String,
    pub codec: String,
    /// Ticks per second.
    pub rate: i64,
    pub packets: Vec<ProbedPacket>,
}

/// Returns all video and audio streams of an input.
pub fn probe_streams(input: &str) -> Vec<ProbedStream> {
    let arguments = [
        ["-v", "error", "-show_packets", "-show_data_hash", "md5"].as_slice(),
        &["-show_entries", FIELDS, "-of", "json", input],
    ]
    .concat();
    let json = probe_cache::run_cached("ffprobe", &arguments, input, is_serious);
    parse_streams(&serde_json::from_slice(&json).unwrap())
}

const FIELDS: &str = "packet=stream_index,pts,dts,size,flags,data_hash\
    :stream=index,codec_type,codec_name,time_base";

/// Returns whether an error line of ffprobe concerns the input. Errors about codec parameters that
/// ffprobe could not guess are ignored.
fn is_serious(line: &str) -> bool {
    !line.contains("Could not find codec parameters")
}

fn parse_streams(found: &Value) -> Vec<ProbedStream> {
    let list = |name: &str| found[name].as_array().cloned().unwrap_or_default();
    let packets = list("packets");
    let of = |index: &Value| -> Vec<ProbedPacket> {
        let own = packets.iter().filter(|p| p["stream_index"] == *index);
        own.map(parse_packet).collect()
    };
    let streams = list("streams").into_iter().filter(|s| {
        let kind = s["codec_type"].as_str();
        kind == Some("video") || kind == Some("audio")
    });
    streams
        .map(|s| {
            let (up, down) = s["time_base"].as_str().unwrap().split_once('/').unwrap();
            ProbedStream {
                kind: s["codec_type"].as_str().unwrap().to_owned(),
                codec: s["codec_name"].as_str().unwrap_or("unknown").to_owned(),
                rate: down.parse::<i64>().unwrap() / up.parse::<i64>().unwrap(),
                packets: of(&s["index"]),
            }
        })
        .collect()
}

fn parse_packet(found: &Value) -> ProbedPacket {
    ProbedPacket {
        pts: found["pts"].as_i64().unwrap_or(i64::MIN),
        dts: found["dts"].as_i64().unwrap_or(i64::MIN),
        size: found["size"].as_str().unwrap().parse().unwrap(),
        key: found["flags"].as_str().unwrap().starts_with('K'),
        hash: found["data_hash"].as_str().unwrap().to_owned(),
    }
}

/// Returns hashes of the decoded frames of the first video stream, in presentation order.
pub fn decode_video_hashes(input: &str) -> Vec<String> {
    let arguments = [
        ["-nostdin", "-v", "error", "-i", input, "-map", "0:v:0"].as_slice(),
        &["-fps_mode", "passthrough", "-f", "framemd5", "-"],
    ]
    .concat();
    let text = probe_cache::run_cached("ffmpeg", &arguments, input, |_| false);
    let text = String::from_utf8(text).unwrap();
    let frames = text.lines().filter(|line| !line.starts_with('#'));
    frames
        .map(|line| line.rsplit(',').next().unwrap().trim().to_owned())
        .collect()
}

/// Writes bytes to a file for ffprobe and returns its path.
pub fn write_probe_input(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}
