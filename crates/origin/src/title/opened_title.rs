//! A title version, with open files, their indexes, and the segment grids.

use crate::drm::{LibraryDrm, TitleDrm};
use crate::error;
use crate::response::compressible_text::ManifestTexts;
use crate::route::SegmentSetId;
use crate::segment::hls_aes128::{MasterSecret, TitleAes128Key};
use crate::title::file_names::display_name_of;
use crate::title::left_out::LeftOutPart;
use crate::title::progressive_layout::ProgressiveSlot;
use crate::title::stores::{FileLocation, MediaStores};
use crate::title::title_files::TitleFiles;
use media::presentation::{ManifestOptions, Presentation};
use net::Error;
use net::conditional::LastModified;
use std::sync::Arc;
use store::{Key, Object, ObjectVersion};

/// Target durations of segments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetSegmentDurations {
    /// Target duration of HLS segments, in milliseconds.
    pub(crate) hls_ms: u32,
    /// Target duration of DASH segments, in milliseconds.
    pub(crate) dash_ms: u32,
}

/// Packaging rules shared by all titles of a library.
pub(crate) struct LibraryPackagingRules {
    pub(crate) segment_durations: TargetSegmentDurations,
    /// Secret from which content keys are derived, if segments are encrypted with AES-128.
    pub(crate) master_secret: Option<MasterSecret>,
    pub(crate) manifest_rules: ManifestOptions,
    /// Rules for Common Encryption, if titles are protected with it.
    pub(crate) drm: Option<LibraryDrm>,
}

/// The parts of a title that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TitlePartsToLoad {
    /// Only video and audio. This is enough for requests for segments.
    Media,
    MediaAndText,
}

/// One version of a title. A version is immutable. When a file changes, a new version replaces the
/// old version.
pub(crate) struct Title {
    pub(crate) key: Key,
    /// The files of the title, in the order of [`Presentation::files`].
    pub(crate) files: Vec<TitleFile>,
    /// The presentation with HLS segments.
    pub(crate) hls: Arc<Presentation>,
    /// The presentation with DASH segments. It is the same as `hls` if both target durations are
    /// equal.
    pub(crate) dash: Arc<Presentation>,
    /// AES-128 encryption of the segments, if any. A title with AES-128 encryption has no DASH
    /// manifest, because DASH does not support this encryption.
    pub(crate) encryption: Option<TitleAes128Key>,
    /// Tracks and files that are not served.
    pub(crate) left_out: Vec<LeftOutPart>,
    /// Common Encryption of the segments, if any.
    pub(crate) drm: Option<TitleDrm>,
    /// Latest modification time of the title's files.
    pub(crate) modified: Option<LastModified>,
    /// Manifests that have been generated so far.
    pub(crate) texts: ManifestTexts,
    /// Layout as one progressive MP4, computed on first use.
    pub(crate) progressive_layout: ProgressiveSlot,
    pub(super) title_files: TitleFiles,
    /// Server manifests and index MP4s that name the media, with their versions.
    pub(super) naming_files: Vec<(FileLocation, ObjectVersion)>,
}

/// One file of a title.
pub(crate) struct TitleFile {
    pub(crate) location: FileLocation,
    pub(crate) object: Arc<Object>,
}

/// Estimated memory for the entries of one segment in all manifests, including the compressed
/// copies, in bytes. The estimate is generous, because manifests are generated only after the cache
/// has determined the title's size.
const MANIFEST_BYTES_PER_SEGMENT: usize = 600;
/// Memory of an open file in addition to its index, in bytes. This is the memory of the descriptor
/// and of the page tables of the mapping.
const OPEN_FILE_BYTES: usize = 32 << 10;

impl Title {
    /// Returns whether the title's path still leads to the same, unchanged files. Blocks.
    ///
    /// # Errors
    /// If the storage fails for now, so that the current files are unknown.
    pub(crate) fn has_unchanged_files(&self, stores: &MediaStores) -> Result<bool, Error> {
        if self.is_overwritten() {
            return Ok(false);
        }
        let found = TitleFiles::find_media_and_text(stores.library(), &self.key, &self.title_files);
        let Some((found, text_failure)) = error::require_storage(found)? else {
            return Ok(false);
        };
        if found != self.title_files {
            return Ok(false);
        }
        let is_found = |place: &FileLocation| {
            self.title_files
                .media_keys()
                .any(|key| *place == FileLocation::locate_in_library(key))
        };
        let now = |place: &FileLocation| {
            let version = stores.stat(place).map_err(|e| error::from_store(&e));
            error::require_storage(version).map(Option::flatten)
        };
        for file in self.files.iter().filter(|file| !is_found(&file.location)) {
            let is_same = |now| file.object.is_same_version(&now);
            if !now(&file.location)?.is_some_and(is_same) {
                return Ok(false);
            }
        }
        for (place, then) in &self.naming_files {
            if !is_found(place) && now(place)? != Some(*then) {
                return Ok(false);
            }
        }
        match text_failure {
            None => Ok(true),
            Some(error) => Err(error::from_store(&error)),
        }
    }

    /// Returns whether text of the title could not be read, but may be readable later.
    pub(crate) fn has_unread_text(&self) -> bool {
        self.left_out.iter().any(|part| part.unread.is_some())
    }

    /// Returns whether the storage can now deliver text that it could not deliver before. Blocks.
    pub(crate) fn can_read_more_text(&self, stores: &MediaStores) -> bool {
        let films = || self.files.iter().map(|file| &*file.object);
        let mut unread = self.left_out.iter().filter_map(|part| part.unread.as_ref());
        unread.any(|bytes| bytes.is_readable(stores, films()))
    }

    /// Returns whether any open file was overwritten in place. Makes one `fstat` call per local
    /// file.
    pub(crate) fn is_overwritten(&self) -> bool {
        self.files.iter().any(|file| file.object.changed())
    }

    /// Returns the segment set of the HLS presentation.
    pub(crate) fn hls_segment_set_id(&self) -> SegmentSetId {
        SegmentSetId {
            segment_ms: self.hls.segment_duration_ms,
            version: self.hls.version_hash,
        }
    }

    /// Returns the presentation with this segment set.
    pub(crate) fn find_presentation(&self, set: SegmentSetId) -> Option<&Arc<Presentation>> {
        let is = |p: &&Arc<Presentation>| {
            p.segment_duration_ms == set.segment_ms && p.version_hash == set.version
        };
        [&self.hls, &self.dash].into_iter().find(is)
    }

    /// Returns the file of a rendition.
    pub(crate) fn rendition_file(&self, file: usize) -> Result<&Arc<Object>, Error> {
        let file = self.files.get(file).map(|file| &file.object);
        file.ok_or_else(|| Error::new_internal_error("the rendition has no file"))
    }

    /// Returns the display name, which is the last name of the path without its suffix.
    pub(crate) fn display_name(&self) -> &str {
        display_name_of(&self.key)
    }

    /// Returns the kind of the title's path: `file` for a film, `folder` for a folder, and `index`
    /// for a file that names other files.
    pub(crate) fn path_kind(&self) -> &'static str {
        let title_file = FileLocation::locate_in_library(&self.key);
        match () {
            () if self
                .naming_files
                .iter()
                .any(|(place, _)| *place == title_file) =>
            {
                "index"
            }
            () if self
                .files
                .first()
                .is_some_and(|file| file.location == title_file) =>
            {
                "file"
            }
            () => "folder",
        }
    }

    /// Returns the estimated memory use of the title, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let indexes = self
            .hls
            .files
            .iter()
            .map(|index| index.heap_bytes() + OPEN_FILE_BYTES);
        let segments = |p: &Presentation| {
            p.renditions
                .iter()
                .map(|r| r.segment_count())
                .sum::<usize>()
        };
        let segments = segments(&self.hls) + segments(&self.dash);
        // The progressive layout of a title with an index MP4 contains the sample tables a second
        // time, so the size of the index MP4 is added.
        let naming = self
            .naming_files
            .iter()
            .map(|(_, identity)| identity.len as usize);
        indexes.sum::<usize>()
            + segments * MANIFEST_BYTES_PER_SEGMENT
            + naming.sum::<usize>()
            + self.hls.text.heap_bytes()
    }
}
