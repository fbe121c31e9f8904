//! The settings of Common Encryption, in the file as the table `[drm]`.

use media::protection::{ContentSystem, ProtectionScheme, PsshPlaces};
use net::config::{Setting, SettingLayers, UsageError, switch};
use std::path::PathBuf;

/// The settings, as they are declared.
pub const DRM: &[Setting] = &[
    Setting::new(
        "drm-keys",
        "SOURCE",
        "",
        "Encrypt segments with keys from secret:FILE (Common Encryption; HLS and DASH)",
    ),
    Setting::new(
        "drm-scheme",
        "cbcs|cenc",
        "cbcs",
        "Protection scheme; cenc only for old devices, and not for Apple's",
    ),
    Setting::new(
        "drm-key-per",
        "title|type|resolution",
        "title",
        "Tracks that share a key of secret:FILE; resolution: SD, HD, UHD and audio",
    ),
    Setting::new(
        "drm-systems",
        "SYSTEM",
        "",
        "Signal widevine, playready, fairplay or clearkey [default: clearkey for secret:FILE]",
    )
    .as_list(),
    Setting::new(
        "drm-license-url-widevine",
        "URL",
        "",
        "License URL of Widevine for MPDs; may contain {title}, {kid} and {uuid}",
    ),
    Setting::new(
        "drm-license-url-playready",
        "URL",
        "",
        "License URL of PlayReady for MPDs and headers",
    ),
    Setting::new(
        "drm-license-url-clearkey",
        "URL",
        "",
        "License URL of ClearKey; default for secret:FILE: this server gives anyone the keys",
    ),
    Setting::new(
        "drm-fairplay-uri",
        "URI",
        "skd://{kid}",
        "Key URI of FairPlay; may contain {title}, {kid} and {uuid}",
    ),
    Setting::new(
        "drm-pssh",
        "init|manifest|both",
        "both",
        "Places of pssh boxes",
    ),
    Setting::new(
        "drm-clear-tracks",
        "yes|no",
        "no",
        "Serve tracks without a key unencrypted; otherwise such titles are refused",
    )
    .as_switch(),
];

/// The settings of Common Encryption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrmSettings {
    /// Source of the keys.
    pub keys: KeyLocation,
    /// Tracks that share a key, if the keys are derived or requested.
    pub key_granularity: KeyGranularity,
    /// Protection scheme.
    pub scheme: ProtectionScheme,
    /// Signaled systems.
    pub systems: Vec<ContentSystem>,
    /// License URLs, with placeholders.
    pub license_urls: Vec<(ContentSystem, String)>,
    /// Places of `pssh` boxes.
    pub pssh: PsshPlaces,
    /// Whether tracks without a key are served unencrypted.
    pub allows_clear_tracks: bool,
}

/// Where keys are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocation {
    /// A file with a secret from which they are derived.
    Secret(PathBuf),
}

/// Tracks of a title that share a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyGranularity {
    /// All tracks.
    Title,
    /// All video, and all audio.
    Type,
    /// SD, HD and UHD video, and all audio.
    Resolution,
}

impl DrmSettings {
    /// Parses the settings; `None` without `drm-keys`.
    ///
    /// # Errors
    /// [`UsageError`] for the first invalid value, and for a combination with `aes-secret`.
    pub fn parse(layers: &SettingLayers) -> Result<Option<DrmSettings>, UsageError> {
        let Some(keys) = layers.with("drm-keys", parse_location)? else {
            return Ok(None);
        };
        if layers.one("aes-secret").is_some() {
            let what =
                "aes-secret and drm-keys are two encryptions of the same segments; set one of them";
            return Err(UsageError(what.to_owned()));
        }
        let mut systems = layers.list_with("drm-systems", parse_system)?;
        if systems.is_empty() && matches!(keys, KeyLocation::Secret(_)) {
            systems.push(ContentSystem::ClearKey);
        }
        let scheme = layers.with("drm-scheme", parse_scheme)?;
        let scheme = scheme.unwrap_or(ProtectionScheme::Cbcs);
        if scheme == ProtectionScheme::Cenc && systems.contains(&ContentSystem::FairPlay) {
            let what = "drm-scheme = \"cenc\": FairPlay supports only cbcs";
            return Err(UsageError(what.to_owned()));
        }
        let granularity = layers.with("drm-key-per", parse_granularity)?;
        Ok(Some(DrmSettings {
            keys,
            key_granularity: granularity.unwrap_or(KeyGranularity::Title),
            scheme,
            systems,
            license_urls: parse_license_urls(layers)?,
            pssh: layers.with("drm-pssh", parse_places)?.unwrap_or_default(),
            allows_clear_tracks: layers.with("drm-clear-tracks", switch)?.unwrap_or(false),
        }))
    }

    /// Returns the license URL of a system, with placeholders.
    pub fn license_url(&self, system: ContentSystem) -> Option<&str> {
        let mut urls = self.license_urls.iter();
        let found = urls.find(|(of, _)| *of == system);
        found.map(|(_, url)| url.as_str())
    }
}

fn parse_location(text: &str) -> Result<KeyLocation, String> {
    match text.split_once(':') {
        Some(("secret", file)) if !file.is_empty() => Ok(KeyLocation::Secret(file.into())),
        _ => Err("expected secret:FILE".to_owned()),
    }
}

fn parse_scheme(text: &str) -> Result<ProtectionScheme, String> {
    let schemes = [ProtectionScheme::Cbcs, ProtectionScheme::Cenc];
    let found = schemes.into_iter().find(|scheme| scheme.name() == text);
    found.ok_or_else(|| "expected cbcs or cenc".to_owned())
}

fn parse_system(text: &str) -> Result<ContentSystem, String> {
    let found = ContentSystem::ALL
        .into_iter()
        .find(|system| system.name() == text);
    found.ok_or_else(|| "expected widevine, playready, fairplay or clearkey".to_owned())
}

fn parse_granularity(text: &str) -> Result<KeyGranularity, String> {
    match text {
        "title" => Ok(KeyGranularity::Title),
        "type" => Ok(KeyGranularity::Type),
        "resolution" => Ok(KeyGranularity::Resolution),
        _ => Err("expected title, type or resolution".to_owned()),
    }
}

fn parse_places(text: &str) -> Result<PsshPlaces, String> {
    match text {
        "init" => Ok(PsshPlaces::Init),
        "manifest" => Ok(PsshPlaces::Manifest),
        "both" => Ok(PsshPlaces::Both),
        _ => Err("expected init, manifest or both".to_owned()),
    }
}

fn parse_license_urls(layers: &SettingLayers) -> Result<Vec<(ContentSystem, String)>, UsageError> {
    let settings = [
        (ContentSystem::Widevine, "drm-license-url-widevine"),
        (ContentSystem::PlayReady, "drm-license-url-playready"),
        (ContentSystem::ClearKey, "drm-license-url-clearkey"),
        (ContentSystem::FairPlay, "drm-fairplay-uri"),
    ];
    let mut urls = Vec::new();
    for (system, name) in settings {
        let url = layers.with(name, |text: &str| {
            // The URL is printed between quotation marks, on one line.
            match text.contains(['"', '\n', '\r']) || !text.contains(':') && !text.starts_with('/')
            {
                true => Err("expected a URL".to_owned()),
                false => Ok(text.to_owned()),
            }
        })?;
        urls.extend(url.map(|url| (system, url)));
    }
    Ok(urls)
}
