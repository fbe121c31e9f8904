//! Locates a segment by resolving the names in its URL within one version of a title.

use crate::error;
use crate::response::responder::ClientRequest;
use crate::route::{SegmentAddress, SegmentContainer, SegmentUrl};
use crate::segment::hls_aes128;
use crate::send::body_source::BodySource;
use crate::title::opened_title::Title;
use media::manifest::{SegmentFormat, hls};
use media::presentation::{Presentation, Rendition};
use net::Error;
use std::ops::Range;
use std::sync::Arc;
use store::{Object, RequestReason};

/// A segment that was found in the tables of its title.
pub(crate) struct LocatedSegment<'a> {
    pub(crate) title: &'a Arc<Title>,
    pub(crate) url: &'a SegmentUrl,
    pub(crate) presentation: &'a Arc<Presentation>,
    /// Index of the rendition within the presentation.
    pub(crate) rendition_index: usize,
    pub(crate) rendition: &'a Rendition,
    pub(crate) object: &'a Arc<Object>,
    pub(crate) position: RenditionPiece,
}

/// Position of a segment within its rendition.
#[derive(Clone, Copy)]
pub(crate) enum RenditionPiece {
    /// The CMAF header.
    Init,
    /// A CMAF segment that contains only the key frame with this sample number.
    KeyFrame(u32),
    /// The media segment with this index. The first index is 0.
    Media(usize, SegmentContainer),
}

impl<'a> LocatedSegment<'a> {
    /// Finds the presentation, rendition, file and position of the segment.
    ///
    /// # Errors
    /// Status 410 if the URL belongs to another version of the title. Status 404 if this version
    /// has no such segment, or if the segment is unavailable because the title is encrypted.
    pub(crate) fn locate_segment(
        title: &'a Arc<Title>,
        url: &'a SegmentUrl,
    ) -> Result<LocatedSegment<'a>, Error> {
        let presentation = title
            .find_presentation(url.set)
            .ok_or_else(error::version_gone)?;
        let found = presentation.find_rendition(&url.rendition);
        let (rendition_index, rendition) =
            found.ok_or_else(|| error::not_found("unknown rendition"))?;
        let is_encrypted = title.encryption.is_some();
        let position = match url.part {
            SegmentAddress::Number(_) | SegmentAddress::KeyFrame(_) if is_encrypted => {
                return Err(hls_aes128::unavailable_when_encrypted(
                    "this segment is unavailable",
                ));
            }
            SegmentAddress::Init => RenditionPiece::Init,
            SegmentAddress::KeyFrame(time) => {
                let sample = presentation.find_key_frame_by_time(rendition, time);
                RenditionPiece::KeyFrame(sample.ok_or_else(error::no_such_segment)?)
            }
            SegmentAddress::At(time, form) => {
                let index = presentation.find_segment(rendition, time);
                RenditionPiece::Media(index.ok_or_else(error::no_such_segment)?, form)
            }
            SegmentAddress::Number(number) => {
                let index = (number as usize).checked_sub(1);
                let index = index.filter(|index| *index < rendition.segment_count());
                RenditionPiece::Media(
                    index.ok_or_else(error::no_such_segment)?,
                    SegmentContainer::Cmaf,
                )
            }
        };
        let located = LocatedSegment {
            title,
            url,
            presentation,
            rendition_index,
            rendition,
            object: title.rendition_file(rendition.file_index)?,
            position,
        };
        located.check_container()?;
        Ok(located)
    }

    /// Returns an error if the segment is unavailable in the container that the URL names. For each
    /// codec, transmuxed segments exist in only one container.
    fn check_container(&self) -> Result<(), Error> {
        let RenditionPiece::Media(_, form) = self.position else {
            return Ok(());
        };
        if form == SegmentContainer::Cmaf {
            return Ok(());
        }
        if self.presentation.is_protected() {
            return Err(hls_aes128::unavailable_with_drm(
                "this segment is unavailable",
            ));
        }
        let codec = &self.presentation.track(self.rendition).codec;
        let extension = hls::segment_extension(SegmentFormat::Ts, codec).unwrap_or_default();
        match form.suffix().strip_prefix('.') == Some(extension) {
            true => Ok(()),
            false => Err(error::not_found(
                "the rendition has no segments of this type",
            )),
        }
    }

    /// Returns the source of the segment's bytes.
    pub(crate) fn segment_body_source(
        &self,
        sibling_ranges: Option<Arc<[Range<u64>]>>,
        request: &ClientRequest<'_>,
    ) -> BodySource {
        BodySource {
            object: self.object.clone(),
            reason: RequestReason::Segment,
            is_copied: request.is_copied,
            is_verified: false,
            sibling_ranges,
            following_objects: Arc::new([]),
        }
    }

    /// Returns the ranges of the segments with this index in the other renditions of the same
    /// remote file. A player that requests one rendition is likely to request another rendition as
    /// well.
    pub(crate) fn sibling_ranges(&self, index: usize) -> Option<Arc<[Range<u64>]>> {
        if !self.object.is_remote() {
            return None;
        }
        let (presentation, own) = (self.presentation, self.rendition);
        let siblings = presentation.renditions.iter();
        let siblings =
            siblings.filter(|r| r.file_index == own.file_index && r.track_index != own.track_index);
        let siblings = siblings.filter(|r| index < r.segment_count());
        Some(
            siblings
                .flat_map(|r| presentation.segment_ranges(r, index))
                .collect(),
        )
    }

    /// Starts to fetch the next segment of a remote file, together with the sibling ranges of that
    /// segment.
    pub(crate) fn read_ahead(&self) {
        let RenditionPiece::Media(index, _) = self.position else {
            return;
        };
        let next = index + 1;
        if next < self.rendition.segment_count()
            && let Object::Remote(object) = &**self.object
        {
            let ranges = self.presentation.segment_ranges(self.rendition, next);
            let siblings = self.sibling_ranges(next).unwrap_or_default();
            object.read_ahead(&ranges, &siblings);
        }
    }
}
