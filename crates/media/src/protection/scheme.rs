//! Protection schemes, key ids, and the protection of a track.

use crate::codec::Codec;
use crate::error::{Error, Result, format_fourcc};

/// Identifies a content key: 16 bytes, big endian, as in `tenc`.
pub type KeyId = [u8; 16];

/// A protection scheme (ISO/IEC 23001-7, 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtectionScheme {
    /// AES-CBC with a constant IV (10.4). In video, this server encrypts one of ten cipher blocks.
    Cbcs,
    /// AES-CTR on all protected bytes, with an IV for each sample (10.1).
    Cenc,
}

impl ProtectionScheme {
    /// Returns the scheme's four characters: `cbcs` or `cenc`.
    pub fn name(self) -> &'static str {
        match self {
            ProtectionScheme::Cbcs => "cbcs",
            ProtectionScheme::Cenc => "cenc",
        }
    }

    /// Returns the METHOD attribute of keys in HLS playlists.
    pub fn hls_method(self) -> &'static str {
        match self {
            ProtectionScheme::Cbcs => "SAMPLE-AES",
            ProtectionScheme::Cenc => "SAMPLE-AES-CTR",
        }
    }
}

/// The public part of a track's protection. It contains no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectionParameters {
    /// The scheme.
    pub scheme: ProtectionScheme,
    /// The key id of every sample.
    pub key_id: KeyId,
    /// In `cbcs`, this is the constant IV. In `cenc`, the first eight bytes are the IV of the
    /// track's sample 0, and the IV of each later sample is higher by one.
    pub iv: [u8; 16],
}

impl ProtectionParameters {
    /// A `cbcs` protection with zeros as key id and IV, which is enough to find subsamples.
    pub(super) const PLACEHOLDER: ProtectionParameters = ProtectionParameters {
        scheme: ProtectionScheme::Cbcs,
        key_id: [0; 16],
        iv: [0; 16],
    };

    /// Returns the eight bytes of a sample's IV in `cenc`. `sample` is the number of the sample in
    /// the track, not in the segment. Therefore a key frame that is served alone has the same
    /// encrypted bytes as in its segment.
    pub fn sample_iv(&self, sample: u32) -> [u8; 8] {
        let [base, _] = self.iv_halves();
        base.wrapping_add(u64::from(sample)).to_be_bytes()
    }

    fn iv_halves(&self) -> [u64; 2] {
        let all = u128::from_be_bytes(self.iv);
        [(all >> 64) as u64, all as u64]
    }
}

/// Returns whether this library can encrypt samples of the codec.
pub(super) fn is_protectable(codec: &Codec) -> bool {
    codec.audio().is_some() || codec.video().is_some_and(|video| video.nal.is_some())
}

/// Checks that a codec can be protected.
///
/// # Errors
/// `Unsupported` if the codec cannot be protected. The message names the codec and a remedy.
pub(super) fn check_protectable_codec(codec: &Codec) -> Result<()> {
    if is_protectable(codec) {
        return Ok(());
    }
    let name = format_fourcc(codec.fourcc);
    Err(Error::unsupported(format!(
        "codec {name} cannot be protected yet; encode the video as AVC or HEVC"
    )))
}

/// Formats a key id as a UUID, as in `cenc:default_KID`.
pub fn format_key_id(key_id: &KeyId) -> String {
    let hex: String = key_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let cuts = [0..8, 8..12, 12..16, 16..20, 20..32];
    cuts.map(|cut| hex.get(cut).unwrap_or_default().to_owned())
        .join("-")
}

/// Parses a UUID with or without hyphens. Returns `None` if `text` is not a UUID.
pub fn parse_key_id(text: &str) -> Option<KeyId> {
    let hex: Vec<u8> = text.trim().bytes().filter(|byte| *byte != b'-').collect();
    let pairs = hex.chunks_exact(2).map(|pair| {
        let digit = |byte: u8| (byte as char).to_digit(16);
        Some((digit(*pair.first()?)? * 16 + digit(*pair.last()?)?) as u8)
    });
    let bytes: Vec<u8> = pairs.collect::<Option<_>>()?;
    (hex.len() == 32).then(|| bytes.try_into().ok()).flatten()
}
