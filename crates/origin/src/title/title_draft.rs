//! Builds a title version in three steps. The first step opens, indexes and segments the files, the
//! second step loads the keys, and the third step encrypts the title and reads its text. Only the
//! second step waits for a key server. The caller can therefore run the second step without the
//! resources that the other steps need.

use crate::drm::title_drm::OutputAndSourceKeys;
use crate::drm::{LibraryDrm, TitleDrm};
use crate::error;
use crate::response::compressible_text::ManifestTexts;
use crate::segment::hls_aes128::TitleAes128Key;
use crate::title::caption_channels::captions_of_title;
use crate::title::embedded_text::read_embedded_text;
use crate::title::index_cache::IndexCache;
use crate::title::left_out::{LeftOutPart, list_left_out_tracks, list_unsupported_sidecars};
use crate::title::opened_title::{LibraryPackagingRules, Title, TitleFile, TitlePartsToLoad};
use crate::title::progressive_layout::ProgressiveSlot;
use crate::title::sources::TitleSources;
use crate::title::stores::{FileLocation, MediaStores};
use crate::title::title_files::{TitleFiles, open_title};
use media::index::Index;
use media::presentation::{PackagingRules, Presentation};
use media::text::{TextRendition, TextSet};
use net::Error;
use net::conditional::LastModified;
use std::sync::Arc;
use store::{Key, ObjectVersion, Store};
use trace::SpanKind;

/// A title whose files are open, indexed and segmented.
pub(crate) struct TitleDraft {
    key: Key,
    files: Vec<TitleFile>,
    title_files: TitleFiles,
    content: TitlePartsToLoad,
    naming_files: Vec<(FileLocation, ObjectVersion)>,
    left_out: Vec<LeftOutPart>,
    encryption: Option<TitleAes128Key>,
    /// The presentation with HLS segments, which is not protected yet.
    hls: Presentation,
}

impl TitleDraft {
    /// Opens, indexes and segments a title. Blocks.
    pub(crate) fn open_draft(
        stores: &MediaStores,
        index_cache: &IndexCache,
        key: &Key,
        (rules, content): (&LibraryPackagingRules, TitlePartsToLoad),
    ) -> Result<TitleDraft, Error> {
        let encryption = rules.master_secret.as_ref();
        let encryption = encryption
            .map(|secret| secret.derive_title_key(key))
            .transpose()?;
        let (title_files, sources) = open_title(stores, index_cache, key, content)?;
        refuse_protected_files(rules, key, &sources)?;
        let (mut files, mut indexes) = (Vec::new(), Vec::new());
        for (location, object, index) in sources.media {
            files.push(TitleFile { location, object });
            indexes.push(index);
        }
        let version = encryption.as_ref();
        let version = version.map_or(0, TitleAes128Key::secret_version);
        let length_ms = rules.segment_durations.hls_ms;
        let hls = build_presentation((key, version), indexes, (rules, length_ms))?;
        refuse_double_encryption(rules, key, &hls)?;
        Ok(TitleDraft {
            key: key.clone(),
            files,
            title_files,
            content,
            naming_files: sources.naming_files,
            left_out: sources.left_out,
            encryption,
            hls,
        })
    }

    /// Loads the keys of the title. Returns `None` if the rules do not protect the title. Blocks
    /// until the key server has responded.
    pub(crate) fn load_keys(
        &self,
        drm: Option<&LibraryDrm>,
    ) -> Result<Option<OutputAndSourceKeys>, Error> {
        let policy = drm.and_then(|drm| drm.policy_of(&self.key));
        let load = policy.map(|policy| policy.load_keys(&self.key, &self.hls));
        load.transpose()
    }

    /// Protects the title with `keys`, reads its text and returns the completed title. Blocks.
    pub(crate) fn complete_title(
        mut self,
        stores: &MediaStores,
        rules: &LibraryPackagingRules,
        keys: Option<&OutputAndSourceKeys>,
    ) -> Result<Title, Error> {
        let durations = rules.segment_durations;
        // With AES-128, the segment number is the IV, and an IV may be used only once. DASH
        // segments of another length would use the same IVs again, so only HLS segments are built.
        let has_own_dash = durations.dash_ms != durations.hls_ms && self.encryption.is_none();
        let dash = has_own_dash.then(|| self.build_dash_presentation(rules, keys));
        let dash = dash.transpose()?;
        let drm = protect_presentation(rules, (&self.key, keys), &mut self.hls)?;
        let text = Arc::new(self.read_text_set(stores.library(), rules));
        let hls = Arc::new(self.hls.with_text(text.clone()));
        let dash = dash.map_or_else(|| hls.clone(), |dash| Arc::new(dash.with_text(text)));
        let names = self.files.iter().map(|file| file.location.key.name());
        let names: Vec<&str> = names.collect();
        self.left_out.extend(list_left_out_tracks(&hls, &names));
        if self.content == TitlePartsToLoad::MediaAndText {
            let beside = list_unsupported_sidecars(stores.library(), &self.key);
            self.left_out.extend(beside);
        }
        Ok(Title {
            modified: latest_modification(&self.files, &self.naming_files),
            key: self.key,
            left_out: self.left_out,
            files: self.files,
            hls,
            dash,
            encryption: self.encryption,
            drm,
            texts: ManifestTexts::default(),
            progressive_layout: ProgressiveSlot::new(),
            title_files: self.title_files,
            naming_files: self.naming_files,
        })
    }

    fn build_dash_presentation(
        &self,
        rules: &LibraryPackagingRules,
        keys: Option<&OutputAndSourceKeys>,
    ) -> Result<Presentation, Error> {
        let indexes = self.hls.files.clone();
        let length_ms = rules.segment_durations.dash_ms;
        let mut dash = build_presentation((&self.key, 0), indexes, (rules, length_ms))?;
        protect_presentation(rules, (&self.key, keys), &mut dash)?;
        Ok(dash)
    }

    /// Reads the text of the title and finds the captions of its video. Appends the text that
    /// cannot be read to `left_out`.
    fn read_text_set(&mut self, store: &Store, rules: &LibraryPackagingRules) -> TextSet {
        let text = match self.content {
            TitlePartsToLoad::Media => Vec::new(),
            TitlePartsToLoad::MediaAndText => self.read_texts(store),
        };
        let captions = match rules.manifest_rules.has_no_captions {
            true => Vec::new(),
            false => captions_of_title(&self.hls),
        };
        TextSet::new(text).with_caption_channels(captions)
    }

    /// Reads the text tracks in the films of the title and the text files beside the films.
    fn read_texts(&mut self, store: &Store) -> Vec<TextRendition> {
        let films = self.files.iter();
        let films = films.map(|file| (file.location.key.name(), &*file.object));
        let mut text = read_embedded_text(&self.hls, films, &mut self.left_out);
        let film_end_ms = self.hls.duration.round_to(1000);
        let left_out = &mut self.left_out;
        let beside = self
            .title_files
            .read_text_renditions(store, &self.key, film_end_ms, left_out);
        text.extend(beside);
        text
    }
}

/// Segments a title. `version` becomes a part of the name of the segment set.
fn build_presentation(
    (key, version): (&Key, u64),
    indexes: Vec<Arc<Index>>,
    (rules, segment_duration_ms): (&LibraryPackagingRules, u32),
) -> Result<Presentation, Error> {
    let span = trace::start_span("present", SpanKind::Internal);
    let packaging = PackagingRules {
        segment_duration_ms,
    };
    let presentation = Presentation::new(indexes, &packaging);
    drop(span);
    let mut presentation = presentation.map_err(|e| error::from_media(key.as_str(), &e))?;
    presentation.version_hash ^= version;
    presentation.manifest_rules = rules.manifest_rules.clone();
    Ok(presentation)
}

/// Adds Common Encryption to a presentation, if the rules require it or if the source is encrypted.
/// Both presentations of a title get the same keys and IVs.
fn protect_presentation(
    rules: &LibraryPackagingRules,
    (key, keys): (&Key, Option<&OutputAndSourceKeys>),
    presentation: &mut Presentation,
) -> Result<Option<TitleDrm>, Error> {
    let policy = rules.drm.as_ref().and_then(|drm| drm.policy_of(key));
    let Some((policy, keys)) = policy.zip(keys) else {
        let source = presentation.source_protection();
        source
            .into_iter()
            .for_each(|source_protection| presentation.protect(source_protection));
        return Ok(None);
    };
    let (drm, protection) = policy.protect_title(key, presentation, keys)?;
    presentation.version_hash ^= drm.version_hash();
    presentation.protect(protection);
    Ok(Some(drm))
}

/// Returns an error if AES-128 encryption is configured and the source is already encrypted.
fn refuse_double_encryption(
    rules: &LibraryPackagingRules,
    key: &Key,
    presentation: &Presentation,
) -> Result<(), Error> {
    if rules.master_secret.is_none() || presentation.source_protection().is_none() {
        return Ok(());
    }
    let what = "the film is already encrypted, which excludes aes-secret";
    let bad = media::Error::unsupported(what);
    Err(error::from_media(key.as_str(), &bad))
}

/// Returns the latest modification time of the media files and of the files that name the media.
/// Files without a known modification time are ignored.
fn latest_modification(
    files: &[TitleFile],
    naming_files: &[(FileLocation, ObjectVersion)],
) -> Option<LastModified> {
    let named = naming_files.iter().map(|(_, identity)| identity);
    let opened = files.iter().map(|file| file.object.version());
    let modified = opened
        .chain(named)
        .filter_map(ObjectVersion::modified)
        .max();
    modified.and_then(LastModified::from_time)
}

/// Returns an error if an unprotected title refers to protected files of the library. These files
/// are media, and index MP4s that name media.
fn refuse_protected_files(
    rules: &LibraryPackagingRules,
    key: &Key,
    sources: &TitleSources,
) -> Result<(), Error> {
    match &rules.drm {
        Some(drm) if drm.policy_of(key).is_none() => {
            drm.refuse_references_to_protected(key, sources.library_keys())
        }
        _ => Ok(()),
    }
}
