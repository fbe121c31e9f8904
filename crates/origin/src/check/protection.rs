//! The protection of a title. Either the source is already encrypted, or this server encrypts the
//! title with the keys of the settings.

use crate::drm::LibraryDrm;
use crate::drm::key_derivation::track_classes;
use crate::drm::settings::KeyGranularity;
use media::presentation::{Presentation, Rendition};
use media::protection::{
    RuleTrackProperties, SubsampleParser, TitleSignaling, TrackSignaling, UsageRule, format_key_id,
};
use serde::Serialize;
use store::Key;

/// The protection of a title's renditions.
#[derive(Debug, Default)]
pub(super) struct CheckedProtection {
    /// Whether the settings protect the title.
    pub(super) is_required: bool,
    /// Scheme, key id and systems of each rendition; `None` for an unencrypted rendition. The list
    /// is empty if the title is refused.
    pub(super) tracks: Vec<Option<TrackSignaling>>,
    /// The reason why the title is refused. `None` if the title is not refused, or if the reason is
    /// a codec that cannot be encrypted. The report lists such codecs separately.
    pub(super) refusal: Option<String>,
}

impl CheckedProtection {
    /// Loads the keys of a title as `headwater serve` does, and maps the keys to the renditions.
    /// Blocks.
    ///
    /// `path` is the title's path in the library, and `files` are the paths of its files.
    pub(super) fn load_protection(
        drm: Option<&LibraryDrm>,
        (path, files): (&Key, &[Key]),
        title: &Presentation,
    ) -> CheckedProtection {
        let source = title.source_protection();
        let source = source.unwrap_or_default();
        let Some(drm) = drm else {
            return CheckedProtection::from_title_protection(false, source);
        };
        let policy = drm.policy_of(path);
        let result = match policy {
            Some(policy) => {
                let keys = policy.load_keys(path, title);
                let protected = keys.and_then(|keys| policy.protect_title(path, title, &keys));
                protected.map(|(_, protection)| protection)
            }
            None => {
                let checked = drm.refuse_references_to_protected(path, files.iter());
                checked.map(|()| source)
            }
        };
        match result {
            Ok(protection) => {
                CheckedProtection::from_title_protection(policy.is_some(), protection)
            }
            Err(error) => CheckedProtection {
                is_required: policy.is_some(),
                tracks: Vec::new(),
                refusal: Some(error.operator_message().to_owned())
                    .filter(|refusal| !is_codec_refusal(title, refusal))
                    .map(|refusal| strip_title_from_error(&refusal, path.as_str())),
            },
        }
    }

    fn from_title_protection(is_required: bool, protection: TitleSignaling) -> CheckedProtection {
        CheckedProtection {
            is_required,
            tracks: protection.tracks,
            refusal: None,
        }
    }

    /// Returns the protection of a rendition, if the rendition is encrypted.
    pub(super) fn signaling_of(&self, rendition: usize) -> Option<&TrackSignaling> {
        self.tracks.get(rendition)?.as_ref()
    }
}

/// Returns whether an error names a codec that cannot be encrypted. Such an error is left out,
/// because the report lists every rendition with such a codec, not only the first.
fn is_codec_refusal(title: &Presentation, error: &str) -> bool {
    let mut tracks = title.renditions.iter().map(|r| title.track(r));
    tracks.any(|track| {
        let refused = SubsampleParser::check_protectable_track(&track.codec).err();
        refused.is_some_and(|refused| error.contains(&*refused.message))
    })
}

/// Removes the title's path from the start of an error, because the report prints the path in front
/// of the error.
fn strip_title_from_error(error: &str, title: &str) -> String {
    let rest = error.strip_prefix(title);
    let rest = rest.and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(error).to_owned()
}

/// The key that encrypts a rendition, and the DRM systems that provide the key to players.
#[derive(Debug, Serialize)]
pub struct RenditionProtection {
    /// Whether the source of the rendition is already encrypted.
    pub is_in_source: bool,
    /// Protection scheme: `cbcs` or `cenc`.
    pub scheme: &'static str,
    /// Key id as a UUID.
    pub key_id: String,
    /// Class of the rendition: `SD`, `HD`, `UHD` or `AUDIO`. Licenses may have different
    /// requirements for each class.
    pub class: &'static str,
    /// Names of the signaled DRM systems, or UUIDs for systems without a known name.
    pub systems: Vec<String>,
}

impl RenditionProtection {
    /// Describes the protection of a rendition from its signaling.
    pub(super) fn from_signaling(
        title: &Presentation,
        rendition: &Rendition,
        signaling: &TrackSignaling,
    ) -> RenditionProtection {
        let systems = signaling.systems.iter();
        let systems = systems.map(|signal| signal.system.name_or_uuid());
        RenditionProtection {
            is_in_source: title.track(rendition).protection.is_some(),
            scheme: signaling.protection.scheme.name(),
            key_id: format_key_id(&signaling.protection.key_id),
            class: key_class_of(title, rendition),
            systems: systems.collect(),
        }
    }

    /// Describes the protection in one line.
    pub(super) fn format_protection_line(&self) -> String {
        let RenditionProtection {
            scheme,
            key_id,
            class,
            ..
        } = self;
        let by = match self.is_in_source {
            true => "encrypted in the source",
            false => "encrypted",
        };
        let systems = match &self.systems[..] {
            [] => "no system".to_owned(),
            systems => systems.join(", "),
        };
        format!("{by}: {scheme}, key id {key_id} ({class}), {systems}")
    }
}

/// Returns the class of a rendition. The classes are those that `drm-key-per = "resolution"`
/// distinguishes.
pub(super) fn key_class_of(title: &Presentation, rendition: &Rendition) -> &'static str {
    let facts = RuleTrackProperties::new(title.track(rendition), rendition.bandwidth.average);
    let applies = |media| {
        let rule = UsageRule {
            media,
            ..UsageRule::default()
        };
        rule.applies_to(&facts)
    };
    let classes = track_classes(KeyGranularity::Resolution).into_iter();
    let mut matching = classes.filter_map(|(class, media)| applies(media).then_some(class));
    matching.next().unwrap_or_default()
}
