//! Reports combinations of protection and players that do not work together. Each rule is one
//! function.

use crate::check::protection::{CheckedProtection, key_class_of};
use crate::check::protection_remedies::choose_protection_remedy;
use crate::check::report::{Finding, FindingLevel};
use media::presentation::Presentation;
use media::protection::{
    ContentSystem, KeyId, ProtectionScheme, SystemSignaling, TrackSignaling, format_key_id,
};

/// The `place` of findings that do not concern a single rendition.
const PLACE: &str = "protection";
/// Classes of renditions. Each class needs at least as much protection as the previous class.
const CLASSES: [&str; 4] = ["AUDIO", "SD", "HD", "UHD"];

/// An encrypted rendition.
struct EncryptedRendition<'a> {
    class: &'static str,
    is_in_source: bool,
    signaling: &'a TrackSignaling,
}

/// A rule, which adds its findings to the list.
type ProtectionCheckFn = fn(&[EncryptedRendition<'_>], &mut Vec<Finding>);

/// Applies every rule to the protection of a title. `path` is the title's path in the library.
pub(in crate::check) fn find_protection_problems(
    title: &Presentation,
    path: &str,
    protection: &CheckedProtection,
    found: &mut Vec<Finding>,
) {
    if let Some(refusal) = &protection.refusal {
        let (what, fix) = choose_protection_remedy(refusal, path);
        found.push(Finding::new(FindingLevel::Error, PLACE, what, &fix));
    }
    report_unencrypted_renditions(title, protection, found);
    let renditions = title.renditions.iter().enumerate();
    let encrypted = renditions.filter_map(|(n, rendition)| {
        Some(EncryptedRendition {
            class: key_class_of(title, rendition),
            is_in_source: title.track(rendition).protection.is_some(),
            signaling: protection.signaling_of(n)?,
        })
    });
    let encrypted: Vec<_> = encrypted.collect();
    let rules: [ProtectionCheckFn; 5] = [
        report_scheme_unsupported_by_apple,
        report_scheme_unsupported_by_old_clients,
        report_missing_hls_keys,
        report_license_url_problems,
        report_shared_keys,
    ];
    rules.iter().for_each(|rule| rule(&encrypted, found));
}

fn report_unencrypted_renditions(
    title: &Presentation,
    protection: &CheckedProtection,
    found: &mut Vec<Finding>,
) {
    if !protection.is_required {
        return;
    }
    for (track, rendition) in protection.tracks.iter().zip(&title.renditions) {
        if track.is_none() {
            let what = "no key is mapped to it, so it is served unencrypted".to_owned();
            let fix = "map a key to it in the key document, unless that is intended";
            let finding = Finding::new(FindingLevel::Hint, &rendition.name, what, fix);
            found.push(finding);
        }
    }
}

/// FairPlay decrypts only `cbcs` (Apple, "About the Common Media Application Format with HTTP Live
/// Streaming").
fn report_scheme_unsupported_by_apple(
    encrypted: &[EncryptedRendition<'_>],
    found: &mut Vec<Finding>,
) {
    let mut with_cenc = encrypted
        .iter()
        .filter(|rendition| rendition.protection_scheme() == ProtectionScheme::Cenc);
    let Some(first) = with_cenc.next() else {
        return;
    };
    let what = "the scheme is cenc, and players of Apple's devices decrypt only cbcs (FairPlay)";
    let fix = match first.is_in_source {
        true => "encrypt the film with cbcs, or serve the unencrypted film with [drm]",
        false => "set drm-scheme to cbcs, unless only other devices play the title",
    };
    let finding = Finding::new(FindingLevel::Warning, PLACE, what.into(), fix);
    found.push(finding);
}

/// PlayReady supports `cbcs` from version 4.0 on (Microsoft, "PlayReady Content Encryption Modes").
/// Widevine supports `cbcs` from Android 7.1 on (Android, "ExoPlayer: Digital rights management").
fn report_scheme_unsupported_by_old_clients(
    encrypted: &[EncryptedRendition<'_>],
    found: &mut Vec<Finding>,
) {
    let clients = [
        (
            ContentSystem::PlayReady,
            "PlayReady clients older than version 4.0",
        ),
        (
            ContentSystem::Widevine,
            "Widevine on Android older than 7.1",
        ),
    ];
    let with_cbcs = |system| {
        encrypted.iter().any(|rendition| {
            rendition.protection_scheme() == ProtectionScheme::Cbcs
                && rendition.signaling_of_system(system).is_some()
        })
    };
    let refusing = clients.iter().filter(|(system, _)| with_cbcs(*system));
    let refusing: Vec<&str> = refusing.map(|(_, clients)| *clients).collect();
    if !refusing.is_empty() {
        let what = format!(
            "the scheme is cbcs, which {} cannot decrypt",
            refusing.join(" and ")
        );
        let fix = "if you support them, serve them the same films at a path with \
                   a [[drm.rule]] that sets scheme = \"cenc\"";
        found.push(Finding::new(FindingLevel::Hint, PLACE, what, fix));
    }
}

/// An HLS player finds a key only through an EXT-X-KEY tag (RFC 8216, 4.3.2.4).
fn report_missing_hls_keys(encrypted: &[EncryptedRendition<'_>], found: &mut Vec<Finding>) {
    let lacks_keys = |one: &EncryptedRendition<'_>| !one.signaling.has_hls_keys();
    if encrypted.iter().any(lacks_keys) {
        let what = "no signaled system has a key for HLS, so playlists contain no EXT-X-KEY and \
                    HLS players cannot decrypt the title";
        let fix = "set drm-systems, or add HLSSignalingData to the key document";
        let finding = Finding::new(FindingLevel::Warning, PLACE, what.into(), fix);
        found.push(finding);
    }
}

fn report_license_url_problems(encrypted: &[EncryptedRendition<'_>], found: &mut Vec<Finding>) {
    for system in ContentSystem::ALL {
        let signaled = encrypted.iter().filter_map(|rendition| {
            let key_id = &rendition.signaling.protection.key_id;
            find_license_url_problem(rendition.signaling_of_system(system)?, key_id)
        });
        // The signaling of a system differs between renditions only in the key, so one finding per
        // system is enough.
        found.extend(signaled.take(1));
    }
}

/// Reports a system without a configured license server, and FairPlay if its key URI is missing or
/// has the default form.
fn find_license_url_problem(signal: &SystemSignaling, key_id: &KeyId) -> Option<Finding> {
    let name = signal.system.name();
    let setting = format!("drm-license-url-{name}");
    let key_id = format_key_id(key_id).replace('-', "");
    let is_in_hls = signal.hls_media.is_some();
    let (level, what, fix) = match (signal.system, signal.license_url.as_deref()) {
        (ContentSystem::Widevine | ContentSystem::PlayReady, None)
            if signal.dash_content.is_none() =>
        {
            (
                FindingLevel::Hint,
                format!("MPDs contain no license URL of {name}"),
                format!("set {setting}, or configure the license server in the players"),
            )
        }
        (ContentSystem::FairPlay, Some(uri)) if !is_in_hls && uri == format!("skd://{key_id}") => (
            FindingLevel::Hint,
            "the key URI of fairplay is skd:// with the key id, as by default".to_owned(),
            "set drm-fairplay-uri, if the license server expects another form".to_owned(),
        ),
        (ContentSystem::FairPlay, None) if !is_in_hls => (
            FindingLevel::Warning,
            "fairplay has no key URI, so playlists contain no key for Apple's players".to_owned(),
            "set drm-fairplay-uri".to_owned(),
        ),
        (ContentSystem::ClearKey, None) if !is_in_hls => (
            FindingLevel::Warning,
            "clearkey has no license URL, so playlists contain no key of it".to_owned(),
            format!("set {setting}"),
        ),
        _ => return None,
    };
    Some(Finding::new(level, PLACE, what, &fix))
}

/// A license states its requirements per key, so renditions that share a key have the same
/// requirements (Unified Streaming, "Using DRM with Multiple Keys").
fn report_shared_keys(encrypted: &[EncryptedRendition<'_>], found: &mut Vec<Finding>) {
    let mut key_ids: Vec<&KeyId> = Vec::new();
    for rendition in encrypted {
        let key_id = &rendition.signaling.protection.key_id;
        if !key_ids.contains(&key_id) {
            key_ids.push(key_id);
        }
    }
    for key_id in key_ids {
        let sharing = |class: &&&str| {
            encrypted.iter().any(|rendition| {
                rendition.class == **class
                    && rendition.signaling.protection.key_id == *key_id
                    && !rendition.has_only_clear_key()
            })
        };
        let classes: Vec<&str> = CLASSES.iter().filter(sharing).copied().collect();
        found.extend(find_key_sharing_problem(key_id, &classes));
    }
}

/// Reports a key that encrypts both video and audio, or both UHD and a lower resolution.
fn find_key_sharing_problem(key_id: &KeyId, classes: &[&str]) -> Option<Finding> {
    let [lowest, .., highest] = classes else {
        return None;
    };
    if *lowest != "AUDIO" && *highest != "UHD" {
        return None;
    }
    let what = format!(
        "one key ({}) encrypts {}, so licenses cannot require hardware decryption (Widevine L1, \
         PlayReady SL3000) for {highest} without requiring it for {lowest}",
        format_key_id(key_id),
        classes.join(", ")
    );
    let fix = match *highest {
        "UHD" => "use one key per class: drm-key-per = \"resolution\", or usage rules of CPIX",
        _ => "use one key per type: drm-key-per = \"type\", or usage rules of CPIX",
    };
    Some(Finding::new(FindingLevel::Hint, PLACE, what, fix))
}

impl EncryptedRendition<'_> {
    fn protection_scheme(&self) -> ProtectionScheme {
        self.signaling.protection.scheme
    }

    fn signaling_of_system(&self, system: ContentSystem) -> Option<&SystemSignaling> {
        let mut signals = self.signaling.systems.iter();
        signals.find(|signal| signal.system == system)
    }

    /// Returns whether ClearKey is the only system. ClearKey licenses contain no requirements.
    fn has_only_clear_key(&self) -> bool {
        let mut signals = self.signaling.systems.iter();
        signals.all(|signal| signal.system == ContentSystem::ClearKey)
    }
}
