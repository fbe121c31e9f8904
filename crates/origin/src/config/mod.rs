//! Settings as written become settings as meant.
//!
//! `knobs` declares the origin's own settings; `net::config` reads them from flags, variables and
//! the file, together with those of every server.

mod knobs;
pub(crate) mod storage;

pub use knobs::{KNOBS, command};
pub use net::config::{Layers, Sources, Wrong};

use crate::reference::Prefix;
use crate::seal::TITLE;
use http::Uri;
use net::config::{Common, bytes, duration};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What `headwater serve` was told, as it is meant.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The library; `None`: the built-in film.
    pub source: Option<String>,
    /// `HOST:PORT`, at least one.
    pub listen: Vec<String>,
    /// Wished length of HLS segments.
    pub hls_segment_ms: u32,
    /// Wished length of DASH segments.
    pub dash_segment_ms: u32,
    /// Bound on all indexes, presentations and manifests in memory.
    pub index_memory_bytes: u64,
    /// Where indexes are kept.
    pub index_cache: IndexCache,
    /// Bound on indexes on disk.
    pub index_disk_bytes: u64,
    /// Absolute URLs that server manifests and index MP4s may name: all below each address, and
    /// where its bytes are.
    pub media_from: Vec<(Prefix, String)>,
    /// Most memory for segments asked for lately, in bytes.
    pub segment_memory_bytes: u64,
    /// How long a path is trusted to lead to the same files; `None`: as suits the storage.
    pub recheck: Option<Duration>,
    /// How a remote library is read.
    pub storage: store::Options,
    /// Whether the next segment of a remote film is fetched before it is asked for.
    pub read_ahead: bool,
    /// The file with the secret that segments are encrypted with, if they are.
    pub aes_secret: Option<PathBuf>,
    /// Where players ask for keys, if not here.
    pub aes_key_url: Option<String>,
    /// What every server can be told.
    pub common: Common,
}

/// Where indexes are kept between requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexCache {
    /// Nowhere: each request reads what it needs.
    Off,
    /// In memory, as long as the process lives.
    Memory,
    /// There, and in this folder.
    Disk(PathBuf),
}

/// Shortest and longest segment that may be wished for.
const SEGMENT_MS: std::ops::RangeInclusive<u64> = 100..=60_000;

impl Settings {
    /// Gives the layers their meaning.
    ///
    /// # Errors
    /// [`Wrong`], naming the knob and who set it, for the first value that means nothing.
    pub fn new(layers: &Layers) -> Result<Settings, Wrong> {
        let segment = layers.with("segment", segment_ms)?.unwrap_or(6000);
        Ok(Settings {
            source: layers.one("source").map(str::to_owned),
            listen: layers.list("listen"),
            hls_segment_ms: layers.with("hls-segment", segment_ms)?.unwrap_or(segment),
            dash_segment_ms: layers.with("dash-segment", segment_ms)?.unwrap_or(segment),
            index_memory_bytes: layers.with("index-memory", bytes)?.unwrap_or(0),
            index_cache: index_cache(layers)?,
            index_disk_bytes: layers.with("index-disk", bytes)?.unwrap_or(0),
            media_from: media_from(layers)?,
            segment_memory_bytes: layers.with("segment-memory", bytes)?.unwrap_or(0),
            recheck: layers.with("recheck", duration)?,
            storage: storage::options(layers)?,
            read_ahead: layers
                .with("storage-read-ahead", storage::switch)?
                .unwrap_or(false),
            aes_secret: layers.path("aes-secret"),
            aes_key_url: aes_key_url(layers)?,
            common: Common::new(layers)?,
        })
    }
}

fn index_cache(layers: &Layers) -> Result<IndexCache, Wrong> {
    let folder = layers.path("index-cache-dir");
    let kept = |text: &str| match (text, &folder) {
        ("off", _) => Ok(IndexCache::Off),
        ("memory", _) => Ok(IndexCache::Memory),
        ("memory+disk", Some(folder)) => Ok(IndexCache::Disk(folder.clone())),
        ("memory+disk", None) => Err("say in which folder with index-cache-dir".to_owned()),
        _ => Err("it is off, memory or memory+disk".to_owned()),
    };
    Ok(layers
        .with("index-cache", kept)?
        .unwrap_or(IndexCache::Memory))
}

/// An address with a place for the title's path.
fn aes_key_url(layers: &Layers) -> Result<Option<String>, Wrong> {
    let url = layers.with("aes-key-url", |text: &str| {
        if !text.contains(TITLE) {
            return Err(format!("{TITLE} is to stand for the title's path"));
        }
        let parsed = text.replace(TITLE, "title").parse::<Uri>();
        let absolute = parsed.is_ok_and(|url| match url.scheme_str() {
            Some(scheme) => scheme == "http" || scheme == "https",
            None => text.starts_with('/'),
        });
        // It stands between quotation marks.
        match absolute && !text.contains('"') {
            true => Ok(text.to_owned()),
            false => Err("it is an address: https://HOST/..., or a path from /".to_owned()),
        }
    })?;
    match layers.path("aes-secret") {
        None if url.is_some() => {
            let what = "aes-key-url: say what is encrypted with, too: aes-secret = FILE";
            Err(Wrong(what.to_owned()))
        }
        _ => Ok(url),
    }
}

fn media_from(layers: &Layers) -> Result<Vec<(Prefix, String)>, Wrong> {
    let read = |text: String| {
        let wrong = |why: &dyn fmt::Display| Wrong(format!("media-from = {text:?}: {why}"));
        let (url, place) = text
            .split_once('=')
            .ok_or_else(|| wrong(&"it is an address and where its bytes are: URL=SOURCE"))?;
        let prefix = Prefix::parse(url).map_err(|bad| wrong(&bad))?;
        Ok((prefix, place.to_owned()))
    };
    layers.list("media-from").into_iter().map(read).collect()
}

pub(crate) fn segment_ms(text: &str) -> Result<u32, String> {
    let ms = duration(text)?.as_millis() as u64;
    match u32::try_from(ms) {
        Ok(small) if SEGMENT_MS.contains(&ms) => Ok(small),
        _ => Err("a segment lasts from 100ms to 60s".into()),
    }
}

#[cfg(test)]
mod tests;
