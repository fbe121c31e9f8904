//! Keys in the JSON format of nginx-vod-module (`vod_drm_upstream_location`).

use super::content_key::ContentKey;
use super::key_set::{KeySet, TitleContentKey};
use media::protection::{ContentSystem, SystemSignaling, decode_base64, write_system_pssh};
use serde::Deserialize;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Maximum number of bytes of a response, as in nginx-vod-module.
pub(crate) const RESPONSE_BYTES_MAX: usize = 4096;

/// A key in the response. The response is an array with exactly one such object.
#[derive(Deserialize)]
struct UdrmKey {
    key: String,
    key_id: String,
    iv: Option<String>,
    #[serde(default)]
    pssh: Vec<UdrmPssh>,
}

/// The data in the `pssh` box of a DRM system, without the box itself.
#[derive(Deserialize)]
struct UdrmPssh {
    uuid: String,
    data: String,
}

impl Zeroize for UdrmKey {
    fn zeroize(&mut self) {
        self.key.zeroize();
    }
}

impl Drop for UdrmKey {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for UdrmKey {}

/// Parses a response.
///
/// # Errors
/// A message that names the invalid field.
pub(crate) fn parse_udrm_response(text: &str) -> Result<KeySet, String> {
    let keys: Vec<UdrmKey> = serde_json::from_str(text)
        // Reports only the position of the error, because the parser's message may quote the
        // document. The document contains keys.
        .map_err(|error| {
            format!(
                "invalid JSON at line {}, column {}",
                error.line(),
                error.column()
            )
        })?;
    let [key] = &keys[..] else {
        return Err(format!("expected one key, found {}", keys.len()));
    };
    let systems = key.pssh.iter().map(from_udrm_pssh);
    let title_key = TitleContentKey {
        key_id: *decode_16_bytes(&key.key_id, "key_id")?,
        key: ContentKey::new(*decode_16_bytes(&key.key, "key")?),
        hdcp_level: None,
        explicit_iv: key
            .iv
            .as_deref()
            .map(|iv| decode_16_bytes(iv, "iv").map(|iv| *iv))
            .transpose()?,
        systems: systems.collect::<Result<_, _>>()?,
    };
    Ok(KeySet {
        keys: vec![title_key],
        rules: Vec::new(),
        is_served: false,
    })
}

fn decode_16_bytes(text: &str, field: &str) -> Result<Zeroizing<[u8; 16]>, String> {
    let bytes = Zeroizing::new(decode_base64(text).unwrap_or_default());
    let block = bytes[..].try_into().map(Zeroizing::new);
    block.map_err(|_| format!("{field} is not the base64 of 16 bytes"))
}

fn from_udrm_pssh(pssh: &UdrmPssh) -> Result<SystemSignaling, String> {
    let system = ContentSystem::from_uuid(&pssh.uuid);
    let system = system.ok_or_else(|| "pssh.uuid is not a UUID".to_owned())?;
    let data = decode_base64(&pssh.data).ok_or_else(|| "pssh.data is not base64".to_owned())?;
    let mut signal = SystemSignaling::new(system);
    signal.pssh = Some(write_system_pssh(system, &data));
    Ok(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "AAECAwQFBgcICQoLDA0ODw==";

    #[test]
    fn a_response_becomes_a_key() {
        let text = format!(
            r#"[{{"key":"{BLOCK}","key_id":"{BLOCK}","iv":"{BLOCK}","pssh":[{{"uuid":"edef8ba9-79d6-4ace-a3c8-27dcd51d21ed","data":"AQI="}}]}}]"#
        );
        let keys = parse_udrm_response(&text).unwrap();
        let key = &keys.keys[0];
        assert_eq!(key.key_id, std::array::from_fn(|n| n as u8));
        assert_eq!(
            (key.explicit_iv, key.key.expose()),
            (Some(key.key_id), &key.key_id)
        );
        assert_eq!(key.systems[0].system, ContentSystem::Widevine);
        let pssh = key.systems[0].pssh.as_ref().unwrap();
        assert_eq!((pssh.len(), &pssh[28..]), (34, &[0, 0, 0, 2, 1, 2][..]));
    }

    #[test]
    fn the_text_of_a_key_is_wiped() {
        let text = format!(r#"{{"key":"{BLOCK}","key_id":"{BLOCK}"}}"#);
        let mut key: UdrmKey = serde_json::from_str(&text).unwrap();
        assert_eq!(key.key, BLOCK);
        // The test calls `zeroize` itself, because the memory of a dropped key cannot be read.
        // Dropping the key calls the same function.
        key.zeroize();
        assert_eq!((&*key.key, &*key.key_id), ("", BLOCK));
    }

    #[test]
    fn damaged_responses_are_named_without_their_keys() {
        for (text, wrong) in [
            ("[]".to_owned(), "expected one key, found 0"),
            (
                format!(r#"[{{"key":"{BLOCK}"}}]"#),
                "invalid JSON at line 1",
            ),
            (
                format!(r#"[{{"key":"AAEC","key_id":"{BLOCK}"}}]"#),
                "key is not the base64 of 16 bytes",
            ),
        ] {
            let error = parse_udrm_response(&text).unwrap_err();
            assert!(error.starts_with(wrong), "{error}");
            assert!(!error.contains(BLOCK), "{error}");
        }
    }
}
