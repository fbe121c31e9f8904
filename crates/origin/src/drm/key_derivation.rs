//! Keys that are derived from one secret, for tests and ClearKey.

use super::content_key::{ContentKey, derive_bytes};
use super::key_set::{KeySet, TitleContentKey};
use super::settings::KeyGranularity;
use aws_lc_rs::hmac;
use media::protection::{MediaFilter, UsageRule, VideoFilterLimits};
use store::Key;

/// Maximum number of pixels of SD video (768×576, as in the usual CPIX rules). SD video of
/// broadcasters may have up to 1024×576 pixels, and then counts as HD.
const SD_PIXELS_MAX: u64 = 442_368;
/// Maximum number of pixels of HD video (1920×1080).
const HD_PIXELS_MAX: u64 = 2_073_600;

/// The secret from which the keys of all titles are derived.
pub(crate) struct KeyDerivationSecret {
    secret: hmac::Key,
    granularity: KeyGranularity,
}

impl KeyDerivationSecret {
    /// Creates the source of keys from the secret.
    pub(crate) fn new(secret: &[u8], granularity: KeyGranularity) -> KeyDerivationSecret {
        KeyDerivationSecret {
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            granularity,
        }
    }

    /// Derives the keys of a title.
    pub(crate) fn derive_keys(&self, title: &Key) -> KeySet {
        let classes = track_classes(self.granularity);
        let keys = classes.iter().map(|(class, _)| TitleContentKey {
            key_id: self.derive_16_bytes("headwater drm key id\n", title, class),
            key: ContentKey::new(self.derive_16_bytes("headwater drm key\n", title, class)),
            explicit_iv: None,
            hdcp_level: None,
            systems: Vec::new(),
        });
        let keys: Vec<TitleContentKey> = keys.collect();
        let rules = keys.iter().zip(classes).map(|(key, (_, media))| UsageRule {
            key_id: key.key_id,
            media,
            bitrates: Vec::new(),
        });
        KeySet {
            rules: rules.collect(),
            keys,
            is_served: true,
        }
    }

    fn derive_16_bytes(&self, label: &str, title: &Key, class: &str) -> [u8; 16] {
        let words = [label, title.as_str(), "\n", class];
        derive_bytes(&self.secret, &words.map(str::as_bytes))
    }
}

/// Returns the classes of tracks, each with the filters that select its tracks. The tracks of a
/// class share one key.
pub(crate) fn track_classes(granularity: KeyGranularity) -> Vec<(&'static str, Vec<MediaFilter>)> {
    let audio = || MediaFilter::Audio(0..=u32::MAX);
    let pixels = |pixels| {
        MediaFilter::Video(VideoFilterLimits {
            pixels,
            ..VideoFilterLimits::default()
        })
    };
    match granularity {
        KeyGranularity::Title => vec![("ALL", vec![pixels(0..=u64::MAX), audio()])],
        KeyGranularity::Type => vec![
            ("VIDEO", vec![pixels(0..=u64::MAX)]),
            ("AUDIO", vec![audio()]),
        ],
        KeyGranularity::Resolution => vec![
            ("SD", vec![pixels(0..=SD_PIXELS_MAX)]),
            ("HD", vec![pixels(SD_PIXELS_MAX + 1..=HD_PIXELS_MAX)]),
            ("UHD", vec![pixels(HD_PIXELS_MAX + 1..=u64::MAX)]),
            ("AUDIO", vec![audio()]),
        ],
    }
}
