//! Common Media Client Data: version 1 (CTA-5004, 2020) and version 2 (CTA-5004-B), as one query
//! argument or as header fields.

use std::fmt::Write;
use url::Url;

/// Which version is spoken, and where it is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// 1 or 2.
    pub version: u8,
    /// `CMCD-…` fields; else the query argument `CMCD`.
    pub in_headers: bool,
}

/// What is being asked for (`ot`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// A manifest or playlist.
    Manifest,
    /// Audio.
    Audio,
    /// Video.
    Video,
    /// Both in one.
    Muxed,
    /// An init segment.
    Init,
    /// Something else.
    Other,
}

/// What the player does (`sta`, version 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Before the first picture.
    Starting,
    /// Playing.
    Playing,
    /// After a seek, before pictures.
    Seeking,
    /// Stalled.
    Rebuffering,
}

/// What a player knows as it asks. Bitrates in kilobits a second, times in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Version and place.
    pub style: Style,
    /// What is asked for.
    pub object: Object,
    /// Bitrate of what is asked for (`br`).
    pub bitrate_kbps: Option<u32>,
    /// The highest that may be asked for (`tb`).
    pub top_kbps: Option<u32>,
    /// How long it is (`d`).
    pub duration_ms: Option<u32>,
    /// What is buffered (`bl`), and when it runs dry (`dl`).
    pub buffer_ms: Option<u32>,
    /// Throughput that was measured (`mtp`).
    pub throughput_kbps: Option<u32>,
    /// Needed at once: start, seek or stall (`su`).
    pub startup: bool,
    /// The buffer ran dry since the last request (`bs`).
    pub starved: bool,
    /// The next one of its kind, relative to this (`nor`), percent-encoded as in its URL.
    pub next: Option<String>,
    /// Bytes of the next one, first and last (`nrr`).
    pub next_range: Option<(u64, u64)>,
    /// HLS; else DASH (`sf`).
    pub is_hls: bool,
    /// The session (`sid`), a UUID.
    pub session: u128,
    /// The content (`cid`).
    pub content: u64,
    /// What it does (`sta`).
    pub state: State,
    /// Number of the request in its session (`sn`).
    pub sequence: u32,
    /// From the wish to play to the first picture (`msd`), once it is known.
    pub start_delay_ms: Option<u32>,
}

/// The header field a key belongs to: Object, Request, Session, Status.
const FIELDS: [&str; 4] = ["cmcd-object", "cmcd-request", "cmcd-session", "cmcd-status"];
const OBJECT: usize = 0;
const REQUEST: usize = 1;
const SESSION: usize = 2;
const STATUS: usize = 3;

impl Facts {
    /// Tells a server of it: changes the URL, or gives header fields.
    pub fn tell(&self, url: &mut Url) -> Vec<(&'static str, String)> {
        let mut pairs = self.pairs();
        pairs.sort_by_key(|(_, key, _)| *key);
        if !self.style.in_headers {
            let all = pairs.iter().map(|(_, key, value)| (*key, value.as_str()));
            url.query_pairs_mut().append_pair("CMCD", &dictionary(all));
            return Vec::new();
        }
        let field = |shard: usize| {
            let mine = pairs.iter().filter(|pair| pair.0 == shard);
            dictionary(mine.map(|(_, key, value)| (*key, value.as_str())))
        };
        let fields = (0..FIELDS.len()).map(|shard| (FIELDS[shard], field(shard)));
        fields.filter(|(_, text)| !text.is_empty()).collect()
    }

    /// Keys with their values as they are printed; empty where the key alone says true.
    fn pairs(&self) -> Vec<(usize, &'static str, String)> {
        let second = self.style.version == 2;
        // In version 2 what differs by object type is a list (CTA-5004-B, 4.2).
        let listed = |value: u32| {
            if second {
                format!("({value})")
            } else {
                value.to_string()
            }
        };
        let hundreds = |value: u32| {
            (value / 100).saturating_mul(100) + if value % 100 >= 50 { 100 } else { 0 }
        };
        let mut pairs = Vec::with_capacity(20);
        let mut put = |shard, key, value: Option<String>| {
            pairs.extend(value.map(|value| (shard, key, value)))
        };
        put(OBJECT, "br", self.bitrate_kbps.map(listed));
        put(OBJECT, "d", self.duration_ms.map(|ms| ms.to_string()));
        put(OBJECT, "ot", Some(self.object.token().to_string()));
        put(OBJECT, "tb", self.top_kbps.map(listed));
        put(REQUEST, "bl", self.buffer_ms.map(|ms| listed(hundreds(ms))));
        put(
            REQUEST,
            "dl",
            self.buffer_ms.map(|ms| hundreds(ms).to_string()),
        );
        put(
            REQUEST,
            "mtp",
            self.throughput_kbps.map(|kbps| listed(hundreds(kbps))),
        );
        put(REQUEST, "su", self.startup.then(String::new));
        put(SESSION, "cid", Some(format!("\"{:016x}\"", self.content)));
        put(
            SESSION,
            "sf",
            Some(if self.is_hls { "h" } else { "d" }.to_string()),
        );
        put(SESSION, "sid", Some(format!("\"{}\"", uuid(self.session))));
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
            put(REQUEST, "sta", Some(self.state.token().to_string()));
            put(SESSION, "msd", self.start_delay_ms.map(|ms| ms.to_string()));
            put(SESSION, "v", Some("2".to_string()));
        } else {
            put(
                REQUEST,
                "nor",
                self.next
                    .as_ref()
                    .map(|next| format!("\"{}\"", percent(next))),
            );
            put(REQUEST, "nrr", range.map(|range| format!("\"{range}\"")));
        }
        pairs
    }
}

impl Object {
    fn token(self) -> &'static str {
        match self {
            Object::Manifest => "m",
            Object::Audio => "a",
            Object::Video => "v",
            Object::Muxed => "av",
            Object::Init => "i",
            Object::Other => "o",
        }
    }
}

impl State {
    fn token(self) -> &'static str {
        match self {
            State::Starting => "s",
            State::Playing => "p",
            State::Seeking => "k",
            State::Rebuffering => "r",
        }
    }
}

fn dictionary<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::new();
    for (key, value) in pairs {
        let comma = if out.is_empty() { "" } else { "," };
        let equals = if value.is_empty() { "" } else { "=" };
        let _ = write!(out, "{comma}{key}{equals}{value}");
    }
    out
}

/// As RFC 9562 prints one.
pub fn uuid(value: u128) -> String {
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

/// All but unreserved characters as `%XX`: version 1 has `nor` URL-encoded.
fn percent(text: &str) -> String {
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

/// The path from one URL to another of the same origin; nothing where there is none, or where it
/// holds what a quoted string may not.
pub fn relative(from: &Url, to: &Url) -> Option<String> {
    let path = from.make_relative(to)?;
    let clean = path
        .bytes()
        .all(|byte| (0x21..0x7f).contains(&byte) && byte != b'"' && byte != b'\\');
    (clean && !path.is_empty() && from.origin() == to.origin()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(version: u8, in_headers: bool) -> Facts {
        Facts {
            style: Style {
                version,
                in_headers,
            },
            object: Object::Video,
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
            state: State::Playing,
            sequence: 12,
            start_delay_ms: Some(300),
        }
    }

    fn url() -> Url {
        Url::parse("http://o.test/v/1.m4s?x=y").unwrap()
    }

    #[test]
    fn version_1_is_one_argument() {
        let mut url = url();
        assert!(facts(1, false).tell(&mut url).is_empty());
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        assert_eq!(pairs[0], ("x".into(), "y".into()));
        assert_eq!(
            pairs[1].1,
            "bl=21300,br=3200,bs,cid=\"0000000000000007\",d=4004,dl=21300,mtp=25400,nor=\"..%2Fv%2F2.m4s%3Fa%3Db\",ot=v,sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v,tb=6000"
        );
    }

    #[test]
    fn version_2_in_headers() {
        let mut url = url();
        let fields = facts(2, true).tell(&mut url);
        assert_eq!(url.as_str(), "http://o.test/v/1.m4s?x=y");
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

    #[test]
    fn only_what_can_be_quoted_is_told() {
        let to = |text: &str| relative(&url(), &Url::parse(text).unwrap());
        assert_eq!(to("http://o.test/v/2.m4s").as_deref(), Some("2.m4s"));
        assert_eq!(to("http://o.test/a/2.m4s").as_deref(), Some("../a/2.m4s"));
        assert_eq!(to("http://p.test/v/2.m4s"), None);
        assert_eq!(to("http://o.test/v/%22.m4s").as_deref(), Some("%22.m4s"));
    }
}
