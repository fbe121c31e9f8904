//! The protection of one title version: its keys, mapped to its renditions.

use super::content_cipher::{ContentCipher, playready_checksum};
use super::key_set::{KeySet, TitleKey};
use super::library_drm::DrmPolicy;
use crate::error;
use crate::route::{self, LICENSE_NAME};
use media::error::ErrorKind;
use media::presentation::{Presentation, Rendition};
use media::protection::{
    ContentSystem, KeyId, ProtectionScheme, SourceProtection, SubsampleParser, SystemSignal,
    TitleProtection, TrackFacts, TrackProtection, TrackSignaling, format_key_id,
};
use net::Error;
use std::sync::Arc;
use store::Key;

/// The keys of one title version.
pub(crate) struct TitleDrm {
    pub(crate) scheme: ProtectionScheme,
    keys: Arc<KeySet>,
    /// In the order of the renditions; `None` for unencrypted ones.
    ciphers: Vec<Option<Arc<ContentCipher>>>,
    version: u64,
}

impl DrmPolicy {
    /// Loads the keys of a title and maps them to its renditions. Blocks.
    ///
    /// # Errors
    /// An error of the key source, or 415 if the keys do not fit the title.
    pub(crate) fn protect_title(
        &self,
        key: &Key,
        presentation: &Presentation,
    ) -> Result<(TitleDrm, TitleProtection), Error> {
        let tracks = || {
            presentation
                .renditions
                .iter()
                .map(|r| presentation.track(r))
        };
        // Tracks that are encrypted in the source need no key.
        let keys = match tracks().all(|track| track.protection.is_some()) {
            true => Arc::default(),
            false => self.source.load_keys(&self.settings, key)?,
        };
        let refuse = |why: String| {
            let bad = media::Error::new(ErrorKind::Unsupported, format!("keys: {why}"));
            error::from_media(key.as_str(), &bad)
        };
        let (mut protection, mut ciphers) = (TitleProtection::default(), Vec::new());
        for rendition in &presentation.renditions {
            if let Some(source) = &presentation.track(rendition).protection {
                let systems = self.list_source_systems(source, key);
                let signaling = TrackSignaling::from_source(source, &systems);
                protection.tracks.push(Some(signaling));
                ciphers.push(None);
                continue;
            }
            let facts = TrackFacts::new(presentation.track(rendition), rendition.bandwidth.average);
            let own = keys.key_of(&facts).map_err(refuse)?;
            if own.is_none() && !self.settings.allows_clear_tracks {
                let name = &rendition.name;
                let why = format!("no key for {name}; add one, or set drm-clear-tracks");
                return Err(refuse(why));
            }
            let signaling =
                own.map(|own| self.signal_track(&keys, own, (key, presentation, rendition)));
            let cipher = own.map(|own| ContentCipher::new(&own.key, self.settings.scheme));
            let from_media = |bad: media::Error| error::from_media(key.as_str(), &bad);
            protection
                .tracks
                .push(signaling.transpose().map_err(from_media)?);
            ciphers.push(cipher.transpose().map_err(from_media)?.map(Arc::new));
        }
        let drm = TitleDrm {
            scheme: self.settings.scheme,
            keys,
            ciphers,
            version: hash_protection(&protection),
        };
        Ok((drm, protection))
    }

    /// Returns whether a title version has the keys that its source currently provides. Blocks. It has
    /// not if the source fails and cached keys are too old.
    pub(crate) fn has_same_keys(&self, title: &Key, drm: &TitleDrm) -> bool {
        if drm.ciphers.iter().all(Option::is_none) {
            return true;
        }
        let current = self.source.load_keys(&self.settings, title);
        current.is_ok_and(|keys| *keys == *drm.keys)
    }

    fn signal_track(
        &self,
        keys: &KeySet,
        own: &TitleKey,
        (title, presentation, rendition): (&Key, &Presentation, &Rendition),
    ) -> Result<TrackSignaling, media::Error> {
        let scheme = self.settings.scheme;
        let content = presentation.files.get(rendition.file_index);
        let content = content.map_or(0, |index| index.fingerprint).to_be_bytes();
        let iv = match scheme {
            ProtectionScheme::Cbcs => own
                .explicit_iv
                .unwrap_or_else(|| own.key.derive_bytes(&[b"headwater cbcs iv", &own.key_id])),
            // The same key and counter for different bytes would reveal both, so the start depends
            // on the rendition and on the version of its content.
            ProtectionScheme::Cenc => own.key.derive_bytes(&[
                b"headwater cenc iv",
                &own.key_id,
                &content,
                rendition.name.as_bytes(),
            ]),
        };
        let protection = TrackProtection {
            scheme,
            key_id: own.key_id,
            iv,
        };
        let systems = self.list_systems(keys, own, title)?;
        // Refuses a codec or a parameter set before the first segment is requested.
        SubsampleParser::check(&presentation.track(rendition).codec)?;
        Ok(TrackSignaling::new(
            protection,
            &systems,
            self.settings.pssh,
        ))
    }

    /// Returns the systems of a film's own `pssh` boxes, and those of the settings, with the license
    /// URLs of the settings.
    fn list_source_systems(&self, source: &SourceProtection, title: &Key) -> Vec<SystemSignal> {
        let mut systems = source.systems();
        for system in &self.settings.systems {
            if systems.iter().all(|known| known.system != *system) {
                systems.push(SystemSignal::new(*system));
            }
        }
        for signal in &mut systems {
            let url = self.settings.license_url(signal.system);
            let key_id = &source.entry.protection.key_id;
            signal.license_url = url.map(|url| expand_license_url(url, title, key_id));
        }
        systems
    }

    /// Returns the systems of the settings, with what the key's source defines for them, and the
    /// systems that only the source defines.
    fn list_systems(
        &self,
        keys: &KeySet,
        own: &TitleKey,
        title: &Key,
    ) -> Result<Vec<SystemSignal>, media::Error> {
        let of_source = |system| own.systems.iter().find(|signal| signal.system == system);
        let mut systems = Vec::new();
        for system in ContentSystem::ALL {
            let known = of_source(system);
            if known.is_none() && !self.settings.systems.contains(&system) {
                continue;
            }
            let mut signal = known.cloned().unwrap_or_else(|| SystemSignal::new(system));
            let url = self.settings.license_url(system);
            let url = url.map(|url| expand_license_url(url, title, &own.key_id));
            signal.license_url = signal.license_url.or(url);
            if system == ContentSystem::ClearKey && keys.is_served && signal.license_url.is_none() {
                let folder = route::title_folder_url(title);
                signal.license_url = Some(format!("{folder}{LICENSE_NAME}"));
            }
            if system == ContentSystem::PlayReady && self.settings.scheme == ProtectionScheme::Cenc
            {
                let guid = media::protection::to_guid(&own.key_id);
                signal.checksum = Some(playready_checksum(&own.key, guid)?);
            }
            systems.push(signal);
        }
        Ok(systems)
    }
}

/// Replaces `{title}`, `{kid}` and `{uuid}`.
fn expand_license_url(url: &str, title: &Key, key_id: &KeyId) -> String {
    let uuid = format_key_id(key_id);
    url.replace("{title}", &route::escape_strictly(title))
        .replace("{kid}", &uuid.replace('-', ""))
        .replace("{uuid}", &uuid)
}

/// Returns a hash of schemes, key ids and IVs, for segment URLs. It does not depend on keys.
fn hash_protection(protection: &TitleProtection) -> u64 {
    let tracks = protection.tracks.iter().map(|track| {
        track.as_ref().map_or(Vec::new(), |track| {
            let scheme = track.protection.scheme.name().as_bytes();
            [scheme, &track.protection.key_id, &track.protection.iv].concat()
        })
    });
    let bytes = tracks.flat_map(|track| [vec![track.len() as u8], track].concat());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl TitleDrm {
    /// Returns a hash of everything that changes the bytes of segments, except for keys.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the cipher of a rendition, if it is encrypted.
    pub(crate) fn cipher_of(&self, rendition: usize) -> Option<Arc<ContentCipher>> {
        self.ciphers.get(rendition)?.clone()
    }

    /// Returns the keys that this server gives to players; none if a license server does.
    pub(crate) fn served_keys(&self) -> &[TitleKey] {
        match self.keys.is_served {
            true => &self.keys.keys,
            false => &[],
        }
    }
}
