//! Signaling of a title's protection in manifests and init segments.

use super::base64_text::encode_base64;
use super::systems::{ContentSystem, SystemSignaling, escape_xml};
use super::{ProtectionParameters, SourceProtection, format_key_id};
use std::fmt::Write;

/// The protection of a title's renditions, without keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TitleSignaling {
    /// One entry per rendition, in the order of the renditions. `None` for an unencrypted
    /// rendition.
    pub tracks: Vec<Option<TrackSignaling>>,
}

/// The protection of one rendition, and the content protection systems that are signaled for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackSignaling {
    /// Scheme, key id and IV.
    pub protection: ProtectionParameters,
    /// The signaled systems.
    pub systems: Vec<SystemSignaling>,
    /// Whether the rendition is encrypted in the source and served with this encryption.
    pub(crate) is_of_source: bool,
    /// `pssh` boxes of the init segment.
    pub(crate) pssh_boxes: Vec<Vec<u8>>,
    /// Key lines of media playlists. Each line ends with a line feed.
    pub(crate) hls_keys: String,
    /// Key lines of the multivariant playlist. Each line ends with a line feed.
    pub(crate) hls_session_keys: Vec<String>,
    /// `ContentProtection` elements of the MPD.
    pub(crate) dash_elements: Vec<String>,
    /// Output protection (HDCP) that HLS variants declare. `None` if the source of the key
    /// specifies no level.
    hdcp_level: Option<HdcpLevel>,
}

/// Output protection (HDCP) between the player and the display, as in HDCP-LEVEL of HLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HdcpLevel {
    /// No HDCP is needed.
    None,
    /// HDCP of any version.
    Type0,
    /// HDCP 2.2 or later.
    Type1,
}

impl HdcpLevel {
    const ALL: [HdcpLevel; 3] = [HdcpLevel::None, HdcpLevel::Type0, HdcpLevel::Type1];

    /// Returns the value of HDCP-LEVEL.
    fn name(self) -> &'static str {
        match self {
            HdcpLevel::None => "NONE",
            HdcpLevel::Type0 => "TYPE-0",
            HdcpLevel::Type1 => "TYPE-1",
        }
    }

    /// Parses a value of HDCP-LEVEL.
    pub(super) fn from_name(name: &str) -> Option<HdcpLevel> {
        let mut all = HdcpLevel::ALL.into_iter();
        all.find(|level| level.name() == name)
    }
}

/// Places where `pssh` boxes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PsshPlaces {
    /// Init segments only.
    Init,
    /// Manifests only.
    Manifest,
    /// Init segments and manifests.
    #[default]
    Both,
}

impl TrackSignaling {
    /// Returns the `pssh` boxes of the init segment.
    pub fn pssh_boxes(&self) -> &[Vec<u8>] {
        &self.pssh_boxes
    }

    /// Creates the signaling of a track that is encrypted in the source. Manifests and init
    /// segments contain the `pssh` boxes.
    pub fn from_source(source: &SourceProtection, systems: &[SystemSignaling]) -> TrackSignaling {
        TrackSignaling {
            is_of_source: true,
            ..TrackSignaling::new(source.entry.protection, systems, PsshPlaces::Both)
        }
    }

    /// Creates the signaling of a track that this server encrypts.
    pub fn new(
        protection: ProtectionParameters,
        systems: &[SystemSignaling],
        places: PsshPlaces,
    ) -> TrackSignaling {
        let mut boxes = Vec::new();
        let (mut media, mut session) = (String::new(), Vec::new());
        let mut elements = vec![mp4_protection_element(&protection)];
        for system in systems {
            let pssh = system.pssh_box(&protection);
            if let Some(lines) = &system.hls_media {
                media.push_str(&trim_key_lines(lines));
            } else {
                write_media_keys(&mut media, system, &protection, pssh.as_deref());
            }
            session.extend(session_keys(system, &protection, pssh.as_deref()));
            let listed = pssh.as_deref().filter(|_| places != PsshPlaces::Init);
            elements.extend(content_protection(system, &protection, listed));
            // Omits a generated box if an explicit box has the same system id. For example, an
            // explicit common `pssh` replaces the common `pssh` that is generated for ClearKey.
            let is_replaced = |pssh: &Vec<u8>| {
                let is_same = |known: &Vec<u8>| known.get(12..28) == pssh.get(12..28);
                let mut explicit = systems.iter().filter_map(|known| known.pssh.as_ref());
                system.pssh.is_none() && explicit.any(is_same)
            };
            let listed = pssh.filter(|pssh| !is_replaced(pssh));
            boxes.extend(listed.filter(|_| places != PsshPlaces::Manifest));
        }
        TrackSignaling {
            protection,
            systems: systems.to_vec(),
            is_of_source: false,
            pssh_boxes: boxes,
            hls_keys: media,
            hls_session_keys: session,
            dash_elements: elements,
            hdcp_level: None,
        }
    }

    /// Sets the output protection (HDCP) that HLS variants declare.
    #[must_use]
    pub fn with_hdcp_level(self, hdcp_level: Option<HdcpLevel>) -> TrackSignaling {
        TrackSignaling { hdcp_level, ..self }
    }

    /// Writes the attributes of an HLS variant that restrict which devices may play the variant
    /// (rfc8216bis, 4.4.6.2). A comma precedes each attribute.
    pub(crate) fn write_variant_attributes(&self, out: &mut String) {
        if let Some(level) = self.hdcp_level {
            let _ = write!(out, ",HDCP-LEVEL={}", level.name());
        }
        let allowed = self.systems.iter();
        let allowed = allowed.filter_map(|system| system.hls_allowed_cpc.as_deref());
        let allowed: Vec<&str> = allowed.collect();
        if !allowed.is_empty() {
            let _ = write!(out, ",ALLOWED-CPC=\"{}\"", allowed.join(","));
        }
    }

    /// Returns whether media playlists contain a key of any system.
    pub fn has_hls_keys(&self) -> bool {
        !self.hls_keys.is_empty()
    }
}

/// Drops empty lines and ends each remaining line with a line feed.
fn trim_key_lines(lines: &str) -> String {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the attributes of a key in HLS, starting with METHOD. Returns `None` if the KEYFORMAT of
/// the system is unknown, or if the license URL that the system requires is missing.
fn key_attributes(
    system: &SystemSignaling,
    protection: &ProtectionParameters,
    pssh: Option<&[u8]>,
) -> Option<String> {
    let uri = match system.system {
        ContentSystem::Widevine => {
            format!("data:text/plain;base64,{}", encode_base64(pssh?))
        }
        ContentSystem::PlayReady => {
            let object = system.playready_object(protection);
            format!(
                "data:text/plain;charset=UTF-16;base64,{}",
                encode_base64(&object)
            )
        }
        ContentSystem::FairPlay | ContentSystem::ClearKey => system.license_url.clone()?,
        ContentSystem::Other(_) => return None,
    };
    // FairPlay defines no KEYID. Apple's players ignore the attribute, so the attribute is written
    // for FairPlay, too.
    let key_id = format_key_id(&protection.key_id).replace('-', "");
    Some(format!(
        "METHOD={},URI=\"{}\",KEYID=0x{key_id},KEYFORMATVERSIONS=\"1\",KEYFORMAT=\"{}\"",
        protection.scheme.hls_method(),
        uri.replace('"', "%22"),
        system.system.hls_key_format()?,
    ))
}

fn write_media_keys(
    out: &mut String,
    system: &SystemSignaling,
    protection: &ProtectionParameters,
    pssh: Option<&[u8]>,
) {
    if let Some(attributes) = key_attributes(system, protection, pssh) {
        let _ = writeln!(out, "#EXT-X-KEY:{attributes}");
    }
}

fn session_keys(
    system: &SystemSignaling,
    protection: &ProtectionParameters,
    pssh: Option<&[u8]>,
) -> Vec<String> {
    if let Some(lines) = &system.hls_multivariant {
        return trim_key_lines(lines)
            .lines()
            .map(|line| format!("{line}\n"))
            .collect();
    }
    let attributes = key_attributes(system, protection, pssh);
    let line = attributes.map(|attributes| format!("#EXT-X-SESSION-KEY:{attributes}\n"));
    line.into_iter().collect()
}

/// Returns the `ContentProtection` element that declares the scheme and the default key id (ISO/IEC
/// 23009-1, 5.8.5.2).
fn mp4_protection_element(protection: &ProtectionParameters) -> String {
    format!(
        "<ContentProtection schemeIdUri=\"urn:mpeg:dash:mp4protection:2011\" value=\"{}\" cenc:default_KID=\"{}\"/>",
        protection.scheme.name(),
        format_key_id(&protection.key_id),
    )
}

/// Returns the `ContentProtection` element of a system. `None` for FairPlay, and for
/// [`ContentSystem::Other`] without an explicit `pssh` and without explicit content.
fn content_protection(
    system: &SystemSignaling,
    protection: &ProtectionParameters,
    pssh: Option<&[u8]>,
) -> Option<String> {
    let value = match system.system {
        ContentSystem::Other(_) if system.pssh.is_none() && system.dash_content.is_none() => {
            return None;
        }
        ContentSystem::Widevine | ContentSystem::Other(_) => "",
        ContentSystem::PlayReady => " value=\"MSPR 2.0\"",
        ContentSystem::ClearKey => " value=\"ClearKey1.0\"",
        // FairPlay exists only on Apple's systems, whose players use HLS instead of DASH.
        ContentSystem::FairPlay => return None,
    };
    let mut content = String::new();
    if let Some(explicit) = &system.dash_content {
        content.push_str(explicit);
    } else {
        // The `pssh` is omitted for ClearKey, because dash.js would parse the `pssh` as a list of
        // key ids.
        let listed = pssh.filter(|_| system.system != ContentSystem::ClearKey);
        if let Some(pssh) = listed {
            let _ = write!(content, "<cenc:pssh>{}</cenc:pssh>", encode_base64(pssh));
        }
        if system.system == ContentSystem::PlayReady && pssh.is_some() {
            let object = encode_base64(&system.playready_object(protection));
            let _ = write!(content, "<mspr:pro>{object}</mspr:pro>");
        }
        if let Some(url) = &system.license_url {
            let _ = write!(content, "<dashif:Laurl>{}</dashif:Laurl>", escape_xml(url));
        }
    }
    let start = format!("schemeIdUri=\"urn:uuid:{}\"{value}", system.system.uuid());
    Some(match content.is_empty() {
        true => format!("<ContentProtection {start}/>"),
        false => format!("<ContentProtection {start}>{content}</ContentProtection>"),
    })
}
