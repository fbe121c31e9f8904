//! Signaling that a CPIX document defines for a DRM system (CPIX 2.3, section 5.3.3).

use crate::error::{Error, Result};
use crate::protection::base64_text::decode_base64;
use crate::protection::{ContentSystem, SystemSignaling};
use crate::xml::{self, XmlElement};

/// Reads a `DRMSystem`. Headwater generates the signaling that the element does not define. Empty
/// child elements define nothing.
pub(super) fn read_system(element: &XmlElement) -> Result<SystemSignaling> {
    let id = element.attribute("systemId").unwrap_or_default();
    let system = ContentSystem::from_uuid(id);
    let system = system.ok_or_else(|| Error::malformed("DRMSystem@systemId is not a UUID"))?;
    let mut signal = SystemSignaling::new(system);
    let allowed = element.attribute("HLSAllowedCPC");
    signal.hls_allowed_cpc = allowed.map(check_allowed_cpc).transpose()?;
    for child in &element.children {
        let Some(value) = decode_value(child)? else {
            continue;
        };
        match child.name.as_str() {
            "PSSH" => signal.pssh = Some(check_pssh(value)?),
            "ContentProtectionData" => {
                signal.dash_content = Some(check_content_protection_xml(value)?)
            }
            "HLSSignalingData" => match child.attribute("playlist") {
                None | Some("media") => {
                    signal.hls_media = Some(check_hls_key_lines(value, "#EXT-X-KEY:")?);
                }
                Some("master" | "multiVariant") => {
                    let lines = check_hls_key_lines(value, "#EXT-X-SESSION-KEY:")?;
                    signal.hls_multivariant = Some(lines);
                }
                Some(_) => return Err(Error::malformed("HLSSignalingData@playlist is unknown")),
            },
            "URIExtXKey" => signal.license_url = Some(check_uri(value)?),
            _ => {}
        }
    }
    Ok(signal)
}

fn decode_value(element: &XmlElement) -> Result<Option<Vec<u8>>> {
    let text = element.text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let message = || Error::malformed(format!("{} is not base64", element.name));
    decode_base64(text).map(Some).ok_or_else(message)
}

/// Returns the bytes if they are one complete `pssh` box.
fn check_pssh(bytes: Vec<u8>) -> Result<Vec<u8>> {
    let size = bytes
        .first_chunk()
        .map(|size| u32::from_be_bytes(*size) as usize);
    match size == Some(bytes.len()) && bytes.get(4..8) == Some(b"pssh") && bytes.len() >= 32 {
        true => Ok(bytes),
        false => Err(Error::malformed("PSSH is not one complete pssh box")),
    }
}

fn decode_utf8(bytes: Vec<u8>, name: &str) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::malformed(format!("{name} is not UTF-8")))
}

/// Returns the XML if it is well-formed and contains neither `<?` nor `<!`, because the XML becomes
/// part of an MPD.
fn check_content_protection_xml(bytes: Vec<u8>) -> Result<String> {
    let text = decode_utf8(bytes, "ContentProtectionData")?;
    let wrapped = format!("<ContentProtection>{text}</ContentProtection>");
    xml::parse_xml_document(&wrapped).map_err(|error| Error {
        message: format!("ContentProtectionData: {}", error.message),
        ..error
    })?;
    match text.contains("<?") || text.contains("<!") {
        true => Err(Error::malformed(
            "ContentProtectionData is more than elements",
        )),
        false => Ok(text),
    }
}

/// Returns the lines if each line starts with `tag`, because the lines become part of a playlist.
fn check_hls_key_lines(bytes: Vec<u8>, tag: &str) -> Result<String> {
    let text = decode_utf8(bytes, "HLSSignalingData")?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_tag = |line: &str| line.starts_with(tag) && !line.contains(char::is_control);
    match lines.all(is_tag) {
        true => Ok(text),
        false => Err(Error::malformed(format!(
            "HLSSignalingData is not {tag} lines"
        ))),
    }
}

/// Returns the text if its entries have the form `KEYFORMAT:LABEL/…`, because the text becomes part
/// of a quoted-string.
fn check_allowed_cpc(text: &str) -> Result<String> {
    let is_entry = |entry: &str| entry.contains(':') && !entry.contains(['"', ' ']);
    match text.split(',').all(is_entry) && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err(Error::malformed(
            "DRMSystem@HLSAllowedCPC is not a list of KEYFORMAT:LABEL",
        )),
    }
}

fn check_uri(bytes: Vec<u8>) -> Result<String> {
    let text = decode_utf8(bytes, "URIExtXKey")?;
    match text.contains(char::is_control) || text.contains('"') {
        true => Err(Error::malformed("URIExtXKey is not a URI")),
        false => Ok(text),
    }
}
