//! Converts settings from text to typed values.
//!
//! `settings_table` declares the origin's own settings. `net::config` reads these settings from
//! flags, environment variables and the settings file, together with the settings that all servers
//! share.

mod help_groups;
mod manifest_settings;
pub(crate) mod remote_libraries;
mod settings_table;

pub use net::config::{SettingLayers, SettingSources, UsageError, unknown_variables};
pub use settings_table::{SETTINGS, define_serve_command, shorten_serve_help};

use crate::drm::rules::DrmRules;
use crate::index_command::media_files::split_remote_url;
use crate::segment::hls_aes128::TITLE_PLACEHOLDER;
use crate::title::file_names::{is_media, is_server_manifest};
use crate::title::references::AllowedUrlPrefix;
use http::Uri;
use media::presentation::ManifestOptions;
use net::config::{
    CommonSettings, parse_bytes, parse_duration, parse_listen_address, parse_switch,
    read_admin_port,
};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of `headwater serve`.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// The library; `None` for the built-in film.
    pub source: Option<String>,
    /// Addresses to listen on, as `HOST:PORT`. There is at least one address.
    pub listen: Vec<String>,
    /// Target length of HLS segments.
    pub hls_segment_ms: u32,
    /// Target length of DASH segments.
    pub dash_segment_ms: u32,
    /// Memory limit of indexes, presentations and manifests, in bytes.
    pub index_memory_bytes: u64,
    /// Place where indexes are stored between requests.
    pub index_cache: IndexCacheStorage,
    /// Disk limit of the index cache, in bytes.
    pub index_disk_bytes: u64,
    /// URL prefixes to which server manifests and index MP4s may refer. Each prefix is paired with
    /// the library from which the media is read.
    pub media_from: Vec<(AllowedUrlPrefix, String)>,
    /// Memory limit of the segment cache, in bytes.
    pub segment_memory_bytes: u64,
    /// Interval at which files are checked for changes; `None` for the default of the storage.
    pub recheck: Option<Duration>,
    /// Settings of the library's storage.
    pub storage: store::Options,
    /// Whether the next segment of a remote film is fetched in advance.
    pub read_ahead: bool,
    /// File with the secret for segment encryption with AES-128; `None` without this encryption.
    pub aes_secret: Option<PathBuf>,
    /// Key URL of an external key server, if any.
    pub aes_key_url: Option<String>,
    /// Settings that determine what manifests declare.
    pub manifest_rules: ManifestOptions,
    /// Address of the admin port, and the file with the token of the admin port.
    pub admin: Option<(String, PathBuf)>,
    /// File with the secret of the edges. Requests without this secret are refused.
    pub edge_secret: Option<PathBuf>,
    /// Settings of Common Encryption; `None` if no title is protected.
    pub drm: Option<DrmRules>,
    /// Settings that all servers share.
    pub common: CommonSettings,
}

/// Place where indexes are stored between requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexCacheStorage {
    /// Indexes are not stored, so each request reads the film's index again.
    Off,
    /// Indexes are stored in memory until the process exits.
    Memory,
    /// Indexes are stored in memory and in this folder.
    Disk(PathBuf),
}

/// Allowed target segment lengths, in milliseconds.
const SEGMENT_MS_RANGE: std::ops::RangeInclusive<u64> = 100..=60_000;

impl ServeSettings {
    /// Converts the settings of all layers (flags, environment variables, file) to typed values.
    ///
    /// # Errors
    /// An error that names the first invalid setting and the place where it was set.
    pub fn new(layers: &SettingLayers) -> Result<ServeSettings, UsageError> {
        let segment = layers
            .parse_setting("segment", parse_segment_ms)?
            .unwrap_or(6000);
        Ok(ServeSettings {
            source: read_library_source(layers)?,
            listen: layers.parse_list_setting("listen", parse_listen_address)?,
            hls_segment_ms: layers
                .parse_setting("hls-segment", parse_segment_ms)?
                .unwrap_or(segment),
            dash_segment_ms: layers
                .parse_setting("dash-segment", parse_segment_ms)?
                .unwrap_or(segment),
            index_memory_bytes: layers.parse_memory_setting("index-memory")?.unwrap_or(0),
            index_cache: parse_index_cache_mode(layers)?,
            index_disk_bytes: layers
                .parse_setting("index-disk", parse_bytes)?
                .unwrap_or(0),
            media_from: parse_media_sources(layers)?,
            segment_memory_bytes: layers.parse_memory_setting("segment-memory")?.unwrap_or(0),
            recheck: layers.parse_setting("recheck", parse_duration)?,
            storage: store::Options {
                follow_links: layers
                    .parse_setting("follow-links", parse_switch)?
                    .unwrap_or(false),
                ..remote_libraries::read_storage_options(layers)?
            },
            read_ahead: layers
                .parse_setting("storage-read-ahead", parse_switch)?
                .unwrap_or(false),
            aes_secret: layers.setting_path("aes-secret"),
            aes_key_url: parse_aes_key_url(layers)?,
            manifest_rules: manifest_settings::read_manifest_rules(layers)?,
            admin: read_admin_port(layers)?,
            edge_secret: layers.setting_path("edge-secret-file"),
            drm: DrmRules::parse_drm_rules(layers)?,
            common: CommonSettings::new(layers)?,
        })
    }
}

/// Reads the setting for the library. The URL of a film is refused, because a remote library must
/// be a folder.
fn read_library_source(layers: &SettingLayers) -> Result<Option<String>, UsageError> {
    let Some(source) = layers.setting_text("source") else {
        return Ok(None);
    };
    if let Some((folder, film)) = split_remote_url(source)
        && !source.ends_with('/')
        && (is_media(film.name()) || is_server_manifest(film.name()))
    {
        return Err(UsageError(format!(
            "{source} is a film, but a remote library must be a folder; give {folder}/, and play /{film}"
        )));
    }
    Ok(Some(source.to_owned()))
}

fn parse_index_cache_mode(layers: &SettingLayers) -> Result<IndexCacheStorage, UsageError> {
    let folder = layers.setting_path("index-cache-dir");
    let parse_mode = |text: &str| match (text, &folder) {
        ("off", _) => Ok(IndexCacheStorage::Off),
        ("memory", _) => Ok(IndexCacheStorage::Memory),
        ("memory+disk", Some(folder)) => Ok(IndexCacheStorage::Disk(folder.clone())),
        ("memory+disk", None) => Err("no folder; set it with index-cache-dir".to_owned()),
        _ => Err("expected off, memory or memory+disk".to_owned()),
    };
    Ok(layers
        .parse_setting("index-cache", parse_mode)?
        .unwrap_or(IndexCacheStorage::Memory))
}

/// Parses the key URL, which must contain the placeholder for the title's path.
fn parse_aes_key_url(layers: &SettingLayers) -> Result<Option<String>, UsageError> {
    let url = layers.parse_setting("aes-key-url", |text: &str| {
        if !text.contains(TITLE_PLACEHOLDER) {
            return Err(format!(
                "expected {TITLE_PLACEHOLDER} in place of the title's path"
            ));
        }
        let parsed = text.replace(TITLE_PLACEHOLDER, "title").parse::<Uri>();
        let absolute = parsed.is_ok_and(|url| match url.scheme_str() {
            Some(scheme) => scheme == "http" || scheme == "https",
            None => text.starts_with('/'),
        });
        // Playlists contain the URL between quotation marks, so the URL may contain no quotation
        // mark.
        match absolute && !text.contains('"') {
            true => Ok(text.to_owned()),
            false => Err("expected a URL such as https://HOST/... or a path from /".to_owned()),
        }
    })?;
    match layers.setting_path("aes-secret") {
        None if url.is_some() => {
            let what = "aes-key-url requires a secret; set aes-secret = FILE";
            Err(UsageError(what.to_owned()))
        }
        _ => Ok(url),
    }
}

fn parse_media_sources(
    layers: &SettingLayers,
) -> Result<Vec<(AllowedUrlPrefix, String)>, UsageError> {
    let read = |text: String| {
        let wrong = |why: &dyn fmt::Display| UsageError(format!("media-from = {text:?}: {why}"));
        let (url, place) = text
            .split_once('=')
            .ok_or_else(|| wrong(&"expected a URL prefix and a source: URL=SOURCE"))?;
        let prefix = AllowedUrlPrefix::parse_prefix(url).map_err(|bad| wrong(&bad))?;
        Ok((prefix, place.to_owned()))
    };
    layers
        .setting_texts("media-from")
        .into_iter()
        .map(read)
        .collect()
}

pub(crate) fn parse_segment_ms(text: &str) -> Result<u32, String> {
    let ms = parse_duration(text)?.as_millis() as u64;
    match u32::try_from(ms) {
        Ok(small) if SEGMENT_MS_RANGE.contains(&ms) => Ok(small),
        _ => Err("expected a segment length from 100ms to 60s".into()),
    }
}

#[cfg(test)]
mod tests;
