//! The protection of one title version, which maps keys to renditions.

use super::content_key::KEY_BYTES;
use super::content_key_cipher::{ContentKeyCipher, playready_checksum};
use super::key_set::{KeySet, TitleContentKey};
use super::library_drm::DrmPolicy;
use super::source_cipher::{SourceCipher, TrackCiphers};
use super::source_keys::find_source_key;
use crate::error;
use crate::route::{self, LICENSE_NAME};
use media::error::ErrorKind;
use media::index::Track;
use media::presentation::{Presentation, Rendition};
use media::protection::{
    ContentSystem, KeyId, ProtectionParameters, ProtectionScheme, RuleTrackProperties,
    SourceProtection, SubsampleParser, SystemSignaling, TitleSignaling, TrackSignaling,
    format_key_id,
};
use net::Error;
use std::sync::Arc;
use store::Key;

/// The keys of one title version.
pub(crate) struct TitleDrm {
    pub(crate) scheme: ProtectionScheme,
    keys: Arc<KeySet>,
    /// Keys with which sources are decrypted, if the title has encrypted sources and
    /// `drm-source-keys` is set.
    source_keys: Option<Arc<KeySet>>,
    /// The ciphers of each rendition. `None` if the samples of the rendition are served as they
    /// are.
    ciphers: Vec<Option<TrackCiphers>>,
    version_hash: u64,
}

/// The keys that encrypt a title, and the keys that decrypt its sources.
pub(crate) struct OutputAndSourceKeys {
    title_keys: Arc<KeySet>,
    source: Option<Arc<KeySet>>,
}

/// The protection of one rendition.
#[derive(Default)]
struct TrackDrm {
    /// `None` for an unencrypted rendition.
    signaling: Option<TrackSignaling>,
    ciphers: Option<TrackCiphers>,
    /// Fingerprint of the key of a decrypted source, which does not reveal the key.
    source_mark: Option<SourceKeyFingerprint>,
}

type SourceKeyFingerprint = [u8; KEY_BYTES];

impl DrmPolicy {
    /// Maps the keys of a title to its renditions. Creates the ciphers and the signaling of each
    /// rendition.
    ///
    /// # Errors
    /// 415 if a rendition has no key or several keys, or cannot be encrypted.
    pub(crate) fn protect_title(
        &self,
        title: &Key,
        presentation: &Presentation,
        keys: &OutputAndSourceKeys,
    ) -> Result<(TitleDrm, TitleSignaling), Error> {
        let (mut protection, mut ciphers) = (TitleSignaling::default(), Vec::new());
        let mut source_marks = Vec::new();
        for rendition in &presentation.renditions {
            let track = self.protect_track(keys, (title, presentation, rendition))?;
            protection.tracks.push(track.signaling);
            ciphers.push(track.ciphers);
            source_marks.extend(track.source_mark);
        }
        let drm = TitleDrm {
            scheme: self.settings.scheme,
            keys: keys.title_keys.clone(),
            source_keys: keys.source.clone(),
            ciphers,
            version_hash: hash_protection(&protection, &source_marks),
        };
        Ok((drm, protection))
    }

    /// Loads the keys that a title needs. Tracks that keep the encryption of their source need no
    /// keys. Blocks.
    ///
    /// # Errors
    /// An error of the key source.
    pub(crate) fn load_keys(
        &self,
        title: &Key,
        presentation: &Presentation,
    ) -> Result<OutputAndSourceKeys, Error> {
        let renditions = || presentation.renditions.iter();
        let tracks = || renditions().map(|rendition| presentation.track(rendition));
        let has_sources = tracks().any(|track| track.protection.is_some());
        let source = self.source_keys.as_ref().filter(|_| has_sources);
        let mut keys = OutputAndSourceKeys {
            title_keys: Arc::default(),
            source: source.map(|keys| keys.load_keys(title)).transpose()?,
        };
        let is_encrypted_here = |track: &Track| {
            let source = track.protection.as_deref();
            source.is_none_or(|source| keys.source_key(source).is_some())
        };
        if tracks().any(is_encrypted_here) {
            keys.title_keys = self.source.load_keys(&self.settings, title)?;
        }
        Ok(keys)
    }

    fn protect_track(
        &self,
        keys: &OutputAndSourceKeys,
        (title, presentation, rendition): (&Key, &Presentation, &Rendition),
    ) -> Result<TrackDrm, Error> {
        let track = presentation.track(rendition);
        let source = track.protection.as_deref();
        let source_key = source.and_then(|source| keys.source_key(source));
        if let (Some(source), None) = (source, source_key) {
            return Ok(self.signal_source_encryption(source, title));
        }
        let refuse = |why: String| {
            let bad = media::Error::new(ErrorKind::Unsupported, format!("keys: {why}"));
            error::from_media(title.as_str(), &bad)
        };
        let facts = RuleTrackProperties::new(track, rendition.bandwidth.average);
        let title_key = keys.title_keys.key_for_track(&facts).map_err(refuse)?;
        match (title_key, source) {
            (Some(title_key), _) => {
                let place = (title, presentation, rendition);
                let track =
                    self.prepare_track_encryption(&keys.title_keys, (title_key, source_key), place);
                track.map_err(|bad| error::from_media(title.as_str(), &bad))
            }
            (None, _) if !self.settings.allows_clear_tracks => {
                let name = &rendition.name;
                let why = format!("no key for {name}; add one, or set drm-clear-tracks");
                Err(refuse(why))
            }
            // `drm-clear-tracks` allows tracks to stay unencrypted, but does not decrypt tracks of
            // encrypted sources.
            (None, Some(source)) => Ok(self.signal_source_encryption(source, title)),
            (None, None) => Ok(TrackDrm::default()),
        }
    }

    /// Returns the signaling of the source's own encryption. The result contains no ciphers,
    /// because the samples are served as they are.
    fn signal_source_encryption(&self, source: &SourceProtection, title: &Key) -> TrackDrm {
        let systems = self.list_source_systems(source, title);
        TrackDrm {
            signaling: Some(TrackSignaling::from_source(source, &systems)),
            ..TrackDrm::default()
        }
    }

    /// Returns the signaling and the ciphers for encryption with a title's own key.
    fn prepare_track_encryption(
        &self,
        keys: &KeySet,
        (title_key, source_key): (&TitleContentKey, Option<&TitleContentKey>),
        place: (&Key, &Presentation, &Rendition),
    ) -> Result<TrackDrm, media::Error> {
        let (_, presentation, rendition) = place;
        let source = presentation.track(rendition).protection.as_deref();
        let open = |(source, key): (&SourceProtection, &TitleContentKey)| {
            SourceCipher::new(&key.key, source.entry.protection.scheme).map(Arc::new)
        };
        let mark = source_key.map(fingerprint_source_key);
        Ok(TrackDrm {
            signaling: Some(self.build_track_signaling(keys, (title_key, mark), place)?),
            ciphers: Some(TrackCiphers {
                content: Arc::new(ContentKeyCipher::new(&title_key.key)?),
                source: source.zip(source_key).map(open).transpose()?,
            }),
            source_mark: mark,
        })
    }

    /// Returns whether the keys of a title version are those that the key sources currently
    /// provide. Returns false if a key source fails and the cached keys are too old. Blocks.
    pub(crate) fn is_title_drm_current(&self, title: &Key, drm: &TitleDrm) -> bool {
        let is_same_source = match (&self.source_keys, &drm.source_keys) {
            (Some(keys), Some(known)) => keys.load_keys(title).is_ok_and(|now| now == *known),
            _ => true,
        };
        if !is_same_source || drm.ciphers.iter().all(Option::is_none) {
            return is_same_source;
        }
        let current = self.source.load_keys(&self.settings, title);
        current.is_ok_and(|keys| *keys == *drm.keys)
    }

    fn build_track_signaling(
        &self,
        keys: &KeySet,
        (title_key, source_mark): (&TitleContentKey, Option<SourceKeyFingerprint>),
        (title, presentation, rendition): (&Key, &Presentation, &Rendition),
    ) -> Result<TrackSignaling, media::Error> {
        let scheme = self.settings.scheme;
        let content = presentation.files.get(rendition.file_index);
        let content = content.map_or(0, |index| index.fingerprint).to_be_bytes();
        let iv = match scheme {
            ProtectionScheme::Cbcs => title_key.explicit_iv.unwrap_or_else(|| {
                title_key
                    .key
                    .derive_bytes(&[b"headwater cbcs iv", &title_key.key_id])
            }),
            // If the same key and counter encrypted two different plaintexts, both plaintexts could
            // be recovered. The initial counter therefore depends on the rendition and on the
            // version of its content. For an encrypted source, the counter also depends on the
            // source's key.
            ProtectionScheme::Cenc => title_key.key.derive_bytes(&[
                b"headwater cenc iv",
                &title_key.key_id,
                &content,
                rendition.name.as_bytes(),
                source_mark.as_ref().map_or(&[], |mark| &mark[..]),
            ]),
        };
        let protection = ProtectionParameters {
            scheme,
            key_id: title_key.key_id,
            iv,
        };
        let systems = self.list_signaled_systems(keys, title_key, title)?;
        // Refuses an unsupported codec or parameter set before the first segment is requested.
        SubsampleParser::check_protectable_track(&presentation.track(rendition).codec)?;
        let signaling = TrackSignaling::new(protection, &systems, self.settings.pssh);
        Ok(signaling.with_hdcp_level(title_key.hdcp_level))
    }

    /// Returns the DRM systems of a film's own `pssh` boxes, and the systems of the settings. The
    /// license URLs are those of the settings.
    fn list_source_systems(&self, source: &SourceProtection, title: &Key) -> Vec<SystemSignaling> {
        let mut systems = source.systems();
        for system in &self.settings.systems {
            if systems.iter().all(|known| known.system != *system) {
                systems.push(SystemSignaling::new(*system));
            }
        }
        for signal in &mut systems {
            let url = self.settings.license_url(signal.system);
            let key_id = &source.entry.protection.key_id;
            signal.license_url = url.map(|url| expand_license_url(url, title, key_id));
        }
        systems
    }

    /// Returns the DRM systems of the settings, and the DRM systems that the key source defines. If
    /// the key source defines the signaling of a system, that signaling is used.
    fn list_signaled_systems(
        &self,
        keys: &KeySet,
        title_key: &TitleContentKey,
        title: &Key,
    ) -> Result<Vec<SystemSignaling>, media::Error> {
        let of_source = |system| {
            title_key
                .systems
                .iter()
                .find(|signal| signal.system == system)
        };
        let mut systems = Vec::new();
        for system in ContentSystem::ALL {
            let known = of_source(system);
            if known.is_none() && !self.settings.systems.contains(&system) {
                continue;
            }
            let mut signal = known
                .cloned()
                .unwrap_or_else(|| SystemSignaling::new(system));
            let url = self.settings.license_url(system);
            let url = url.map(|url| expand_license_url(url, title, &title_key.key_id));
            signal.license_url = signal.license_url.or(url);
            if system == ContentSystem::ClearKey && keys.is_served && signal.license_url.is_none() {
                let folder = route::title_folder_url(title);
                signal.license_url = Some(format!("{folder}{LICENSE_NAME}"));
            }
            if system == ContentSystem::PlayReady && self.settings.scheme == ProtectionScheme::Cenc
            {
                let guid = media::protection::to_guid(&title_key.key_id);
                signal.checksum = Some(playready_checksum(&title_key.key, guid)?);
            }
            systems.push(signal);
        }
        // This server cannot generate the signaling of unknown systems, so the signaling of the key
        // source is used.
        for signal in &title_key.systems {
            if let ContentSystem::Other(_) = signal.system
                && systems.iter().all(|known| known.system != signal.system)
            {
                systems.push(signal.clone());
            }
        }
        Ok(systems)
    }
}

/// Replaces the placeholders `{title}`, `{kid}` and `{uuid}` in a license URL.
fn expand_license_url(url: &str, title: &Key, key_id: &KeyId) -> String {
    let uuid = format_key_id(key_id);
    url.replace("{title}", &route::escape_strictly(title))
        .replace("{kid}", &uuid.replace('-', ""))
        .replace("{uuid}", &uuid)
}

/// Returns bytes that identify the key of a source without revealing it.
fn fingerprint_source_key(source: &TitleContentKey) -> SourceKeyFingerprint {
    let label = b"headwater source key";
    source.key.derive_bytes(&[label, &source.key_id])
}

/// Returns a hash of schemes, key ids, IVs, `pssh` boxes and source key fingerprints. The hash is
/// part of the URLs of segments and init segments. No key can be derived from the hash.
fn hash_protection(protection: &TitleSignaling, source_marks: &[SourceKeyFingerprint]) -> u64 {
    let tracks = protection.tracks.iter().map(|track| {
        track.as_ref().map_or(Vec::new(), |track| {
            let scheme = track.protection.scheme.name().as_bytes();
            let boxes = track.pssh_boxes().concat();
            [
                scheme,
                &track.protection.key_id,
                &track.protection.iv,
                &boxes,
            ]
            .concat()
        })
    });
    let bytes = tracks.flat_map(|track| [&track.len().to_be_bytes()[..], &track].concat());
    let bytes = bytes.chain(source_marks.iter().flatten().copied());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl OutputAndSourceKeys {
    fn source_key(&self, source: &SourceProtection) -> Option<&TitleContentKey> {
        find_source_key(self.source.as_deref()?, source)
    }
}

impl TitleDrm {
    /// Returns a hash of everything in the protection that changes the bytes of segments, except
    /// for the title's keys.
    pub(crate) fn version_hash(&self) -> u64 {
        self.version_hash
    }

    /// Returns the ciphers of a rendition, if this server encrypts the rendition.
    pub(crate) fn ciphers_of(&self, rendition: usize) -> Option<TrackCiphers> {
        self.ciphers.get(rendition)?.clone()
    }

    /// Returns the keys that this server gives to players. Returns no keys if players receive their
    /// keys from a license server.
    pub(crate) fn served_keys(&self) -> &[TitleContentKey] {
        match self.keys.is_served {
            true => &self.keys.keys,
            false => &[],
        }
    }
}
