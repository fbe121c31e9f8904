//! Writes the CMCD of an emulated player.

use std::fmt::Write;

use super::HEADERS;

/// The version of CMCD, and the part of the request that carries the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CmcdFormat {
    /// The version, either 1 or 2.
    pub version: u8,
    /// Whether to use `CMCD-…` header fields instead of the query argument `CMCD`.
    pub in_headers: bool,
}

/// The kind of the requested object (`ot`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmcdObjectType {
    /// A manifest or playlist.
    Manifest,
    /// Audio.
    Audio,
    /// Video.
    Video,
    /// Audio and video in one object.
    Muxed,
    /// An init segment.
    Init,
    /// Any other object.
    Other,
}

/// The state of the player (`sta`, version 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmcdPlayerState {
    /// Before the first frame is shown.
    Starting,
    /// Playing.
    Playing,
    /// After a seek, before the next frame is shown.
    Seeking,
    /// Stalled.
    Rebuffering,
}

/// The state of a player when it sends a request. Bitrates are in kbit/s, times in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct CmcdReport {
    /// The version of CMCD, and the part of the request that carries the data.
    pub format: CmcdFormat,
    /// The type of the requested object (`ot`).
    pub object: CmcdObjectType,
    /// The bitrate of the requested object (`br`).
    pub bitrate_kbps: Option<u32>,
    /// The highest available bitrate (`tb`).
    pub top_kbps: Option<u32>,
    /// The duration of the requested object (`d`).
    pub duration_ms: Option<u32>,
    /// The duration of the buffered media (`bl`). The same value is sent as the deadline for the
    /// object (`dl`).
    pub buffer_ms: Option<u32>,
    /// Measured throughput (`mtp`).
    pub throughput_kbps: Option<u32>,
    /// Whether the object is needed immediately (`su`). This is the case at the start, after a seek
    /// and after a stall.
    pub startup: bool,
    /// Whether the buffer ran empty at any time since the last request (`bs`).
    pub starved: bool,
    /// The path of the next object, relative to the requested object (`nor`). The path is
    /// percent-encoded as in a URL.
    pub next: Option<String>,
    /// The byte range of the next object (`nrr`), as the positions of the first and the last byte.
    pub next_range: Option<(u64, u64)>,
    /// True for an HLS stream, false for a DASH stream (`sf`).
    pub is_hls: bool,
    /// The UUID of the session (`sid`).
    pub session: u128,
    /// The identifier of the content (`cid`).
    pub content: u64,
    /// The player's state (`sta`).
    pub state: CmcdPlayerState,
    /// The sequence number of the request in its session (`sn`).
    pub sequence: u32,
    /// Time from the play command to the first frame (`msd`), once it is known.
    pub start_delay_ms: Option<u32>,
}

/// Indexes into [`HEADERS`].
const OBJECT: usize = 0;
const REQUEST: usize = 1;
const SESSION: usize = 2;
const STATUS: usize = 3;

impl CmcdReport {
    /// Returns the value of the query argument `CMCD`, which is not yet URL-encoded.
    pub fn to_query(&self) -> String {
        let mut pairs = self.key_value_pairs();
        pairs.sort_by_key(|(_, key, _)| *key);
        write_dictionary(pairs.iter().map(|(_, key, value)| (*key, value.as_str())))
    }

    /// Returns the name and value of each header field that has at least one key.
    pub fn to_headers(&self) -> Vec<(&'static str, String)> {
        let mut pairs = self.key_value_pairs();
        pairs.sort_by_key(|(_, key, _)| *key);
        let field = |shard: usize| {
            let of_shard = pairs.iter().filter(|pair| pair.0 == shard);
            write_dictionary(of_shard.map(|(_, key, value)| (*key, value.as_str())))
        };
        let fields = HEADERS
            .iter()
            .enumerate()
            .map(|(shard, name)| (*name, field(shard)));
        fields.filter(|(_, text)| !text.is_empty()).collect()
    }

    /// Returns each key with its serialized value and the index of its header in [`HEADERS`]. The
    /// serialized value of the Boolean `true` is empty.
    fn key_value_pairs(&self) -> Vec<(usize, &'static str, String)> {
        let second = self.format.version == 2;
        // In version 2, values that can differ by object type are lists (CTA-5004-B section 4.2).
        let listed = |value: u32| {
            if second {
                format!("({value})")
            } else {
                value.to_string()
            }
        };
        let mut pairs = Vec::with_capacity(20);
        let mut put = |shard, key, value: Option<String>| {
            pairs.extend(value.map(|value| (shard, key, value)))
        };
        put(OBJECT, "br", self.bitrate_kbps.map(listed));
        put(OBJECT, "d", self.duration_ms.map(|ms| ms.to_string()));
        put(OBJECT, "ot", Some(self.object.cmcd_token().to_string()));
        put(OBJECT, "tb", self.top_kbps.map(listed));
        put(
            REQUEST,
            "bl",
            self.buffer_ms.map(|ms| listed(round_to_hundreds(ms))),
        );
        let deadline = self.buffer_ms.map(round_to_hundreds);
        put(REQUEST, "dl", deadline.map(|ms| ms.to_string()));
        let throughput = self.throughput_kbps.map(round_to_hundreds);
        put(REQUEST, "mtp", throughput.map(listed));
        put(REQUEST, "su", self.startup.then(String::new));
        put(SESSION, "cid", Some(format!("\"{:016x}\"", self.content)));
        put(
            SESSION,
            "sf",
            Some(if self.is_hls { "h" } else { "d" }.to_string()),
        );
        put(
            SESSION,
            "sid",
            Some(format!("\"{}\"", format_uuid(self.session))),
        );
        put(SESSION, "st", Some("v".to_string()));
        put(STATUS, "bs", self.starved.then(String::new));
        let range = self
            .next_range
            .map(|(first, last)| format!("{first}-{last}"));
        if second {
            let parameter = range.map_or(String::new(), |range| format!(";r=\"{range}\""));
            put(
                REQUEST,
                "nor",
                self.next
                    .as_ref()
                    .map(|next| format!("(\"{next}\"{parameter})")),
            );
            put(REQUEST, "sn", Some(self.sequence.to_string()));
            put(REQUEST, "sta", Some(self.state.cmcd_token().to_string()));
            put(SESSION, "msd", self.start_delay_ms.map(|ms| ms.to_string()));
            put(SESSION, "v", Some("2".to_string()));
        } else {
            put(
                REQUEST,
                "nor",
                self.next
                    .as_ref()
                    .map(|next| format!("\"{}\"", percent_encode(next))),
            );
            put(REQUEST, "nrr", range.map(|range| format!("\"{range}\"")));
        }
        pairs
    }
}

/// Rounds to the nearest 100, as CTA-5004 requires for buffer lengths and throughput.
fn round_to_hundreds(value: u32) -> u32 {
    (value / 100).saturating_mul(100) + if value % 100 >= 50 { 100 } else { 0 }
}

impl CmcdObjectType {
    fn cmcd_token(self) -> &'static str {
        match self {
            CmcdObjectType::Manifest => "m",
            CmcdObjectType::Audio => "a",
            CmcdObjectType::Video => "v",
            CmcdObjectType::Muxed => "av",
            CmcdObjectType::Init => "i",
            CmcdObjectType::Other => "o",
        }
    }
}

impl CmcdPlayerState {
    fn cmcd_token(self) -> &'static str {
        match self {
            CmcdPlayerState::Starting => "s",
            CmcdPlayerState::Playing => "p",
            CmcdPlayerState::Seeking => "k",
            CmcdPlayerState::Rebuffering => "r",
        }
    }
}

fn write_dictionary<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::new();
    for (key, value) in pairs {
        let comma = if out.is_empty() { "" } else { "," };
        let equals = if value.is_empty() { "" } else { "=" };
        let _ = write!(out, "{comma}{key}{equals}{value}");
    }
    out
}

/// Formats a UUID (RFC 9562).
pub fn format_uuid(value: u128) -> String {
    let hex = format!("{value:032x}");
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

/// Percent-encodes the value of `nor`, as version 1 requires.
fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                write!(out, "{}", byte as char)
            }
            _ => write!(out, "%{byte:02X}"),
        };
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_report(version: u8, in_headers: bool) -> CmcdReport {
        CmcdReport {
            format: CmcdFormat {
                version,
                in_headers,
            },
            object: CmcdObjectType::Video,
            bitrate_kbps: Some(3200),
            top_kbps: Some(6000),
            duration_ms: Some(4004),
            buffer_ms: Some(21_349),
            throughput_kbps: Some(25_350),
            startup: false,
            starved: true,
            next: Some("../v/2.m4s?a=b".into()),
            next_range: None,
            is_hls: false,
            session: 0x6e2f_b550_c457_11e9_bb97_0800_200c_9a66,
            content: 7,
            state: CmcdPlayerState::Playing,
            sequence: 12,
            start_delay_ms: Some(300),
        }
    }

    #[test]
    fn writes_version_1_as_one_argument() {
        assert_eq!(
            sample_report(1, false).to_query(),
            "bl=21300,br=3200,bs,cid=\"0000000000000007\",d=4004,dl=21300,mtp=25400,nor=\"..%2Fv%2F2.m4s%3Fa%3Db\",ot=v,sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v,tb=6000"
        );
    }

    #[test]
    fn writes_version_2_as_headers() {
        let fields = sample_report(2, true).to_headers();
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, text)| format!("{name}: {text}"))
            .collect();
        assert_eq!(
            fields,
            [
                "cmcd-object: br=(3200),d=4004,ot=v,tb=(6000)",
                "cmcd-request: bl=(21300),dl=21300,mtp=(25400),nor=(\"../v/2.m4s?a=b\"),sn=12,sta=p",
                "cmcd-session: cid=\"0000000000000007\",msd=300,sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v,v=2",
                "cmcd-status: bs",
            ]
        );
    }
}
