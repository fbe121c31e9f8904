//! Content protection systems: their ids, `pssh` boxes (ISO/IEC 23001-7, 8.1) and headers.

use super::base64_text::encode_base64;
use super::{KeyId, ProtectionParameters, ProtectionScheme, format_key_id, parse_key_id};
use crate::bytes::write_full_box;

/// A content protection (DRM) system, which provides keys to players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentSystem {
    /// Google Widevine.
    Widevine,
    /// Microsoft PlayReady.
    PlayReady,
    /// Apple FairPlay Streaming.
    FairPlay,
    /// ClearKey of Encrypted Media Extensions, which sends keys to players unencrypted.
    ClearKey,
    /// Another system, with its system id. All values of its signaling come from a key document.
    Other(KeyId),
}

impl ContentSystem {
    /// All systems whose signaling can be generated, in the order in which manifests list them.
    pub const ALL: [ContentSystem; 4] = [
        ContentSystem::Widevine,
        ContentSystem::PlayReady,
        ContentSystem::FairPlay,
        ContentSystem::ClearKey,
    ];

    /// Returns the name that settings use for the system.
    pub fn name(self) -> &'static str {
        match self {
            ContentSystem::Widevine => "widevine",
            ContentSystem::PlayReady => "playready",
            ContentSystem::FairPlay => "fairplay",
            ContentSystem::ClearKey => "clearkey",
            ContentSystem::Other(_) => "other",
        }
    }

    /// Returns the name that settings use for the system, or the system id if settings have no name
    /// for it.
    pub fn name_or_uuid(self) -> String {
        match self {
            ContentSystem::Other(_) => self.uuid(),
            known => known.name().to_owned(),
        }
    }

    /// Returns the system id as a UUID.
    pub fn uuid(self) -> String {
        let uuid = match self {
            ContentSystem::Widevine => "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed",
            ContentSystem::PlayReady => "9a04f079-9840-4286-ab92-e65be0885f95",
            ContentSystem::FairPlay => "94ce86fb-07ff-4f43-adb8-93d2fa968ca2",
            ContentSystem::ClearKey => "e2719d58-a985-b3c9-781a-b030af78d30e",
            ContentSystem::Other(id) => return format_key_id(&id),
        };
        uuid.to_owned()
    }

    /// Returns the KEYFORMAT of the system in HLS. `None` if the KEYFORMAT is unknown.
    pub(super) fn hls_key_format(self) -> Option<&'static str> {
        let format = match self {
            ContentSystem::Widevine => "urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed",
            ContentSystem::PlayReady => "com.microsoft.playready",
            ContentSystem::FairPlay => "com.apple.streamingkeydelivery",
            ContentSystem::ClearKey => "org.w3.clearkey",
            ContentSystem::Other(_) => return None,
        };
        Some(format)
    }

    /// Returns the system with this system id. `uuid` may be in upper or lower case. Returns `None`
    /// if `uuid` is not a UUID.
    pub fn from_uuid(uuid: &str) -> Option<ContentSystem> {
        let id = parse_key_id(uuid)?;
        let mut all = ContentSystem::ALL.into_iter();
        let known = all.find(|system| parse_key_id(&system.uuid()) == Some(id));
        Some(known.unwrap_or(ContentSystem::Other(id)))
    }
}

/// The signaling of one system for one key.
///
/// Explicit values, which come from a key document, take precedence over generated values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemSignaling {
    /// The system.
    pub system: ContentSystem,
    /// License URL for manifests. HLS keys of ClearKey and FairPlay (`skd://…`) require a license
    /// URL.
    pub license_url: Option<String>,
    /// Checksum of PlayReady with `cenc`. The key encrypts the key id in little-endian form, and
    /// the first 8 bytes of the result are the checksum.
    pub checksum: Option<[u8; 8]>,
    /// Explicit `pssh` box, with its box header.
    pub pssh: Option<Vec<u8>>,
    /// Explicit key lines for media playlists.
    pub hls_media: Option<String>,
    /// Explicit key lines for the multivariant playlist.
    pub hls_multivariant: Option<String>,
    /// Explicit content of the `ContentProtection` element in the MPD.
    pub dash_content: Option<String>,
    /// Entries of ALLOWED-CPC in multivariant playlists: the content protection configurations that
    /// may play a variant.
    pub hls_allowed_cpc: Option<String>,
}

impl SystemSignaling {
    /// Creates signaling without explicit values, so that all values are generated.
    pub fn new(system: ContentSystem) -> SystemSignaling {
        SystemSignaling {
            system,
            license_url: None,
            checksum: None,
            pssh: None,
            hls_media: None,
            hls_multivariant: None,
            dash_content: None,
            hls_allowed_cpc: None,
        }
    }

    /// Returns the `pssh` box, if the system has one.
    pub(super) fn pssh_box(&self, protection: &ProtectionParameters) -> Option<Vec<u8>> {
        let generated = || {
            let data = match self.system {
                ContentSystem::Widevine => widevine_data(protection),
                ContentSystem::PlayReady => self.playready_object(protection),
                ContentSystem::FairPlay | ContentSystem::Other(_) => return None,
                ContentSystem::ClearKey => return Some(common_pssh(&protection.key_id)),
            };
            Some(write_system_pssh(self.system, &data))
        };
        self.pssh.clone().or_else(generated)
    }

    /// Returns the PlayReady Object (PlayReady Header Object specification). If an explicit `pssh`
    /// box exists, the object is the data of this box. Otherwise, the object is generated with one
    /// record, which contains the header in UTF-16LE.
    pub(super) fn playready_object(&self, protection: &ProtectionParameters) -> Vec<u8> {
        if let Some(data) = self.pssh.as_deref().and_then(extract_pssh_data) {
            return data.to_vec();
        }
        let header = self.playready_header(protection);
        let text: Vec<u8> = header.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut out = Vec::with_capacity(10 + text.len());
        out.extend_from_slice(&(text.len() as u32 + 10).to_le_bytes());
        // The number of records is 1, and record type 1 is the rights management header.
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        out.extend_from_slice(&text);
        out
    }

    /// Returns the PlayReady header. AES-CTR uses version 4.0, which older devices can read, too.
    /// AES-CBC uses version 4.3.
    fn playready_header(&self, protection: &ProtectionParameters) -> String {
        let key_id = encode_base64(&to_guid(&protection.key_id));
        let url = self.license_url.as_deref();
        let url = url.map(|url| format!("<LA_URL>{}</LA_URL>", escape_xml(url)));
        let url = url.unwrap_or_default();
        let (version, protect) = match protection.scheme {
            ProtectionScheme::Cenc => {
                let checksum = self.checksum.map(|sum| encode_base64(&sum));
                let checksum =
                    checksum.map_or(String::new(), |sum| format!("<CHECKSUM>{sum}</CHECKSUM>"));
                let info = "<PROTECTINFO><KEYLEN>16</KEYLEN><ALGID>AESCTR</ALGID></PROTECTINFO>";
                ("4.0.0.0", format!("{info}<KID>{key_id}</KID>{checksum}"))
            }
            ProtectionScheme::Cbcs => {
                let kid = format!("<KID ALGID=\"AESCBC\" VALUE=\"{key_id}\"></KID>");
                let info = format!("<PROTECTINFO><KIDS>{kid}</KIDS></PROTECTINFO>");
                ("4.3.0.0", info)
            }
        };
        format!(
            "<WRMHEADER xmlns=\"http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader\" version=\"{version}\"><DATA>{protect}{url}</DATA></WRMHEADER>"
        )
    }
}

/// Returns the data of a `pssh` box. `None` if the box is truncated.
fn extract_pssh_data(pssh: &[u8]) -> Option<&[u8]> {
    let key_ids_bytes = match pssh.get(8)? {
        0 => 0,
        _ => {
            let count = u32::from_be_bytes(pssh.get(28..32)?.try_into().ok()?);
            (count as usize).checked_mul(16)?.checked_add(4)?
        }
    };
    pssh.get(key_ids_bytes.checked_add(32)?..)
}

/// Converts a key id to a GUID. The first three fields of a GUID are little endian.
pub fn to_guid(key_id: &KeyId) -> KeyId {
    let mut guid = *key_id;
    guid[..4].reverse();
    guid[4..6].reverse();
    guid[6..8].reverse();
    guid
}

/// The system id of the W3C's common `pssh`.
const COMMON_SYSTEM: &str = "1077efec-c0b2-4d02-ace3-3c1e52e2fb4b";

/// Returns the common `pssh` box, which contains only key ids.
pub(super) fn common_pssh(key_id: &KeyId) -> Vec<u8> {
    write_pssh(COMMON_SYSTEM, Some(key_id), &[])
}

/// Returns the data of Widevine's `pssh` box, a protobuf message. Field 2 is the key id, and field
/// 9 is the scheme.
fn widevine_data(protection: &ProtectionParameters) -> Vec<u8> {
    let mut out = vec![0x12, 0x10];
    out.extend_from_slice(&protection.key_id);
    out.push(0x48);
    let name: [u8; 4] = protection
        .scheme
        .name()
        .as_bytes()
        .try_into()
        .unwrap_or_default();
    let mut rest = u32::from_be_bytes(name);
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out
}

/// Returns a `pssh` box (version 0) with the data of a system.
pub fn write_system_pssh(system: ContentSystem, data: &[u8]) -> Vec<u8> {
    write_pssh(&system.uuid(), None, data)
}

fn write_pssh(uuid: &str, key_id: Option<&KeyId>, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + 20 + data.len());
    write_full_box(&mut out, b"pssh", key_id.is_some().into(), 0, |out| {
        out.extend_from_slice(&parse_key_id(uuid).unwrap_or_default());
        if let Some(key_id) = key_id {
            out.extend_from_slice(&1u32.to_be_bytes());
            out.extend_from_slice(key_id);
        }
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        out.extend_from_slice(data);
    });
    out
}

/// Escapes text for XML.
pub(super) fn escape_xml(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        c => c.to_string(),
    });
    escaped.collect()
}
