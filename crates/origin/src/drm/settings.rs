//! The settings of Common Encryption, which form the table `[drm]` of the settings file.

use http::Uri;
use media::protection::cpix::CpixVersion;
use media::protection::{ContentSystem, ProtectionScheme, PsshPlaces};
use net::config::{Setting, SettingLayers, UsageError, parse_duration, parse_switch};
use std::path::PathBuf;
use std::time::Duration;
use store::Key;

/// The declarations of the settings, without defaults.
///
/// [`DrmSettings::parse_drm_settings`] applies the defaults. The printed settings of a server
/// without protection
/// therefore contain no DRM settings.
pub const DRM: &[Setting] = &[
    Setting::new(
        "drm-keys",
        "SOURCE",
        "",
        "Keys to encrypt segments (CENC): secret:FILE, cpix:FILE|URL, speke:URL, udrm:URL or none",
    ),
    Setting::new(
        "drm-scheme",
        "cbcs|cenc",
        "",
        "Protection scheme; Apple devices need cbcs, some old devices cenc [default: cbcs]",
    ),
    Setting::new(
        "drm-key-per",
        "title|type|resolution",
        "",
        "Keys from secret and speke: one per title, type or resolution class [default: title]",
    ),
    Setting::new(
        "drm-source-keys",
        "SOURCE",
        "",
        "Keys to decrypt encrypted films before drm-keys applies: cpix:FILE|URL, udrm:URL or none",
    ),
    Setting::new(
        "drm-systems",
        "SYSTEM",
        "",
        "DRM in manifests: widevine, playready, fairplay or clearkey (default for secret:FILE)",
    )
    .as_list(),
    Setting::new(
        "drm-license-url",
        "SYSTEM=URL",
        "",
        "License URL of widevine, playready or clearkey; same as drm-license-url-SYSTEM",
    )
    .as_key_values(),
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
        "",
        "Key URI of FairPlay; may contain {title}, {kid} and {uuid} [default: skd://{kid}]",
    ),
    Setting::new(
        "drm-headers-file",
        "FILE",
        "",
        "Headers of requests to the key server, one NAME: VALUE per line",
    ),
    Setting::new(
        "drm-private-key",
        "FILE",
        "",
        "RSA private key (PEM) of this server, which decrypts the key values of CPIX documents",
    ),
    Setting::new(
        "drm-certificate",
        "FILE",
        "",
        "X.509 certificate (PEM) of drm-private-key, for which SPEKE servers encrypt the keys",
    ),
    Setting::new(
        "drm-speke-version",
        "2.0|2.1",
        "",
        "Version of SPEKE for speke:URL; 2.1 requests CPIX 2.4 [default: 2.0]",
    ),
    Setting::new(
        "drm-cache",
        "DURATION",
        "",
        "Time for which keys stay in memory before they are requested again [default: 1h]",
    ),
    Setting::new(
        "drm-stale-if-error",
        "DURATION",
        "",
        "Additional time for which cached keys are used while the key server fails [default: 24h]",
    ),
    Setting::new(
        "drm-pssh",
        "init|manifest|both",
        "",
        "Places of pssh boxes [default: both]",
    ),
    Setting::new(
        "drm-clear-tracks",
        "yes|no",
        "",
        "Serve tracks without a key unencrypted; otherwise such titles are refused",
    )
    .as_switch(),
    Setting::new(
        "drm-rule",
        "TABLE",
        "",
        "Settings of [drm] for the titles of a path: { path = \"kids/**\", scheme = \"cenc\" }",
    )
    .accept_inline_tables(),
];

/// Default time for which keys are used without another request.
const CACHE: Duration = Duration::from_secs(60 * 60);
/// Additional time for which cached keys are used while the key server fails.
const STALE_IF_ERROR: Duration = Duration::from_secs(24 * 60 * 60);
/// Default key URI of FairPlay.
const FAIRPLAY_URI: &str = "skd://{kid}";

/// The settings of Common Encryption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrmSettings {
    /// Source of the keys.
    pub keys: KeyLocation,
    /// Source of the keys of films that are already encrypted. Without this source, such films are
    /// served as they are.
    pub source_keys: Option<KeyLocation>,
    /// Tracks that share a key. This setting applies to keys that are derived from a secret or
    /// requested from a SPEKE server.
    pub key_granularity: KeyGranularity,
    /// Protection scheme.
    pub scheme: ProtectionScheme,
    /// Signaled systems.
    pub systems: Vec<ContentSystem>,
    /// License URLs, which may contain placeholders.
    pub license_urls: Vec<(ContentSystem, String)>,
    /// Places of `pssh` boxes.
    pub pssh: PsshPlaces,
    /// Whether tracks without a key are served unencrypted.
    pub allows_clear_tracks: bool,
    /// File with the headers of requests to the key server.
    pub headers_file: Option<PathBuf>,
    /// File with the private key that decrypts key values.
    pub private_key: Option<PathBuf>,
    /// File with the certificate of the private key. If a certificate is set, SPEKE servers are
    /// requested to encrypt the keys.
    pub certificate: Option<PathBuf>,
    /// Version of CPIX in requests to a SPEKE key server.
    pub cpix_version: CpixVersion,
    /// Time for which keys are used without another request.
    pub cache: Duration,
    /// Additional time for which cached keys are used while the key server fails.
    pub stale_if_error: Duration,
}

/// The place from which keys are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocation {
    /// A file with a secret from which the keys are derived.
    Secret(PathBuf),
    /// A CPIX document in a file whose path may contain `{title}`.
    CpixFile(String),
    /// A CPIX document at a URL that may contain `{title}`.
    CpixUrl(String),
    /// A SPEKE key server at a URL that may contain `{title}`.
    Speke(String),
    /// A key server that responds in the JSON format of nginx-vod-module, at a URL that may contain
    /// `{title}`.
    Udrm(String),
}

/// Tracks of a title that share a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyGranularity {
    /// All tracks share one key.
    Title,
    /// All video tracks share one key, and all audio tracks share another key.
    Type,
    /// SD video, HD video, UHD video and audio each have one key.
    Resolution,
}

impl DrmSettings {
    /// Parses the settings; `None` if `drm-keys` is missing or `none`.
    ///
    /// # Errors
    /// A [`UsageError`] for the first invalid value, or for a combination with `aes-secret`.
    pub fn parse_drm_settings(layers: &SettingLayers) -> Result<Option<DrmSettings>, UsageError> {
        let keys = match layers.parse_setting("drm-keys", parse_optional_key_location)? {
            Some(Some(keys)) => keys,
            Some(None) => return Ok(None),
            None => return refuse_settings_without_keys(layers),
        };
        if layers.setting_text("aes-secret").is_some() {
            let what = "aes-secret and drm-keys both encrypt the segments; set only one of them";
            return Err(UsageError(what.to_owned()));
        }
        let mut systems = layers.parse_list_setting("drm-systems", parse_drm_system)?;
        if systems.is_empty() && matches!(keys, KeyLocation::Secret(_)) {
            systems.push(ContentSystem::ClearKey);
        }
        let scheme = layers.parse_setting("drm-scheme", parse_protection_scheme)?;
        let scheme = scheme.unwrap_or(ProtectionScheme::Cbcs);
        if scheme == ProtectionScheme::Cenc && systems.contains(&ContentSystem::FairPlay) {
            let what = "drm-scheme = \"cenc\": FairPlay supports only cbcs";
            return Err(UsageError(what.to_owned()));
        }
        if layers.is_set("drm-certificate") && !layers.is_set("drm-private-key") {
            let what =
                "drm-certificate requires the private key of the certificate; set drm-private-key";
            return Err(UsageError(what.to_owned()));
        }
        let granularity = layers.parse_setting("drm-key-per", parse_granularity)?;
        Ok(Some(DrmSettings {
            keys,
            source_keys: layers
                .parse_setting("drm-source-keys", parse_source_key_location)?
                .flatten(),
            key_granularity: granularity.unwrap_or(KeyGranularity::Title),
            scheme,
            systems,
            license_urls: parse_license_urls(layers)?,
            pssh: layers
                .parse_setting("drm-pssh", parse_pssh_places)?
                .unwrap_or_default(),
            headers_file: layers.setting_path("drm-headers-file"),
            private_key: layers.setting_path("drm-private-key"),
            certificate: layers.setting_path("drm-certificate"),
            cpix_version: layers
                .parse_setting("drm-speke-version", parse_speke_version)?
                .unwrap_or_default(),
            cache: layers
                .parse_setting("drm-cache", parse_duration)?
                .unwrap_or(CACHE),
            stale_if_error: layers
                .parse_setting("drm-stale-if-error", parse_duration)?
                .unwrap_or(STALE_IF_ERROR),
            allows_clear_tracks: layers
                .parse_setting("drm-clear-tracks", parse_switch)?
                .unwrap_or(false),
        }))
    }

    /// Returns the license URL of a system, which may contain placeholders.
    pub fn license_url(&self, system: ContentSystem) -> Option<&str> {
        let mut urls = self.license_urls.iter();
        let found = urls.find(|(of, _)| *of == system);
        found.map(|(_, url)| url.as_str())
    }
}

/// Refuses protection settings without `drm-keys`, because an operator who sets any of them expects
/// encrypted segments.
fn refuse_settings_without_keys(layers: &SettingLayers) -> Result<Option<DrmSettings>, UsageError> {
    let mut names = DRM.iter().map(|setting| setting.name);
    match names.find(|name| layers.is_set(name)) {
        None => Ok(None),
        Some(name) => {
            let what = format!("{name} requires a source of keys; set drm-keys");
            Err(UsageError(what))
        }
    }
}

/// Parses `drm-keys`, which may be `none`.
fn parse_optional_key_location(text: &str) -> Result<Option<KeyLocation>, String> {
    match text {
        "none" => Ok(None),
        text => parse_key_location(text).map(Some),
    }
}

/// Parses `drm-source-keys`. An encrypted source already has a key id. A secret or a SPEKE server
/// is therefore refused, because it provides keys only for key ids that this server chooses.
fn parse_source_key_location(text: &str) -> Result<Option<KeyLocation>, String> {
    match parse_optional_key_location(text) {
        Ok(Some(KeyLocation::Secret(_) | KeyLocation::Speke(_))) | Err(_) => {
            Err("expected cpix:FILE, cpix:URL, udrm:URL or none".to_owned())
        }
        location => location,
    }
}

fn parse_key_location(text: &str) -> Result<KeyLocation, String> {
    let (kind, place) = text.split_once(':').unwrap_or_default();
    let is_url = place.contains("://");
    match kind {
        _ if place.is_empty() => {}
        "secret" => return Ok(KeyLocation::Secret(place.into())),
        "cpix" if !is_url => return Ok(KeyLocation::CpixFile(place.to_owned())),
        "cpix" => return parse_server_url(place).map(KeyLocation::CpixUrl),
        "speke" => return parse_server_url(place).map(KeyLocation::Speke),
        "udrm" => return parse_server_url(place).map(KeyLocation::Udrm),
        _ => {}
    }
    Err("expected secret:FILE, cpix:FILE, cpix:URL, speke:URL, udrm:URL or none".to_owned())
}

impl KeyLocation {
    /// Returns the scheme, and the host with the port, of the key server; `None` without a key
    /// server.
    pub(crate) fn scheme_and_authority(&self) -> Option<(String, String)> {
        let url = match self {
            KeyLocation::Secret(_) | KeyLocation::CpixFile(_) => return None,
            KeyLocation::CpixUrl(url) | KeyLocation::Speke(url) | KeyLocation::Udrm(url) => url,
        };
        let url: Uri = url.replace("{title}", "title").parse().ok()?;
        let authority = url.authority()?.as_str().to_ascii_lowercase();
        Some((url.scheme_str()?.to_owned(), authority))
    }

    /// Returns the path under which the keys of a title are cached. If all titles share one
    /// document, this path is the root.
    pub(crate) fn select_cache_key(&self, title: &Key) -> Key {
        match self {
            KeyLocation::CpixFile(place)
            | KeyLocation::CpixUrl(place)
            | KeyLocation::Udrm(place)
                if !place.contains("{title}") =>
            {
                Key::ROOT
            }
            // Requests to a SPEKE server contain the title, so each title has its own keys.
            _ => title.clone(),
        }
    }
}

/// Checks the URL of a key server. Refuses credentials in the URL, because they belong in the
/// headers file, whose content is never logged.
fn parse_server_url(text: &str) -> Result<String, String> {
    let url = text.replace("{title}", "title").parse::<Uri>();
    let has_server = url.is_ok_and(|url| {
        let is_http = matches!(url.scheme_str(), Some("http" | "https"));
        let authority = url.authority().map(|authority| authority.as_str());
        is_http && authority.is_some_and(|authority| !authority.contains('@'))
    });
    match has_server && !text.split('/').take(3).any(|part| part.contains('{')) {
        true => Ok(text.to_owned()),
        false => Err("expected http(s)://HOST/PATH without a user name".to_owned()),
    }
}

fn parse_protection_scheme(text: &str) -> Result<ProtectionScheme, String> {
    let schemes = [ProtectionScheme::Cbcs, ProtectionScheme::Cenc];
    let found = schemes.into_iter().find(|scheme| scheme.name() == text);
    found.ok_or_else(|| "expected cbcs or cenc".to_owned())
}

fn parse_drm_system(text: &str) -> Result<ContentSystem, String> {
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

fn parse_speke_version(text: &str) -> Result<CpixVersion, String> {
    match text {
        "2.0" => Ok(CpixVersion::V2_3),
        "2.1" => Ok(CpixVersion::V2_4),
        _ => Err("expected 2.0 or 2.1".to_owned()),
    }
}

fn parse_pssh_places(text: &str) -> Result<PsshPlaces, String> {
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
        let url = layers.parse_setting(name, |text: &str| {
            // Manifests contain the URL between quotation marks, on one line. The URL may therefore
            // contain no quotation mark and no line break.
            match text.contains(['"', '\n', '\r']) || !text.contains(':') && !text.starts_with('/')
            {
                true => Err("expected a URL".to_owned()),
                false => Ok(text.to_owned()),
            }
        })?;
        urls.extend(url.map(|url| (system, url)));
    }
    if urls
        .iter()
        .all(|(system, _)| *system != ContentSystem::FairPlay)
    {
        urls.push((ContentSystem::FairPlay, FAIRPLAY_URI.to_owned()));
    }
    Ok(urls)
}
