//! Plans of protected segments, whose heads also contain the subsamples of each sample.

use super::Plan;
use super::moof::FragmentWriter;
use crate::error::{Error, Result};
use crate::presentation::{Presentation, Rendition};
use crate::protection::{
    Aes128Cipher, SampleAuxiliary, SubsampleMap, SubsampleParser, encrypt_samples,
};
use std::ops::Range;

/// A protected fragment, which is a media segment or a key frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentOrKeyFrame {
    /// The media segment with this number, counted from 0.
    Segment(usize),
    /// The key frame with this sample number.
    KeyFrame(u32),
}

/// The subsamples of a fragment, if they are known before the fragment's media is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownSubsamples {
    /// Samples are protected as a whole.
    WholeSamples,
    /// The index contains the subsamples.
    Map(SubsampleMap),
    /// The media must be read to find the subsamples.
    Unknown,
}

impl Presentation {
    /// Returns the subsamples of a fragment, if they are known before the fragment's media is read.
    pub fn known_subsamples(
        &self,
        rendition: &Rendition,
        fragment: SegmentOrKeyFrame,
    ) -> KnownSubsamples {
        let track = self.track(rendition);
        let Some(signaling) = self.track_signaling(rendition) else {
            return KnownSubsamples::WholeSamples;
        };
        if track.codec.video().is_none() {
            return KnownSubsamples::WholeSamples;
        }
        let samples = self.fragment_samples(rendition, fragment);
        // The subsamples of an encrypted source are not used, because they may leave fewer bytes
        // unencrypted than the served scheme requires.
        let stored = track.subsamples.as_ref();
        let stored = stored.filter(|_| track.protection.is_none());
        let map =
            stored.and_then(|own| own.build_subsample_map(samples, signaling.protection.scheme));
        map.map_or(KnownSubsamples::Unknown, KnownSubsamples::Map)
    }

    /// Plans a protected fragment. `map` contains the subsamples of the fragment's samples. Without
    /// a map, each sample is encrypted completely. The plan of an unencrypted rendition contains no
    /// encryption boxes.
    pub fn plan_protected(
        &self,
        rendition: &Rendition,
        fragment: SegmentOrKeyFrame,
        map: Option<&SubsampleMap>,
    ) -> Plan {
        let samples = self.fragment_samples(rendition, fragment);
        let mut plan = match fragment {
            SegmentOrKeyFrame::Segment(n) => self.segment_fragment(rendition, n),
            SegmentOrKeyFrame::KeyFrame(key) => self.key_frame_fragment(rendition, key),
        };
        if let Some(signaling) = self.track_signaling(rendition) {
            let count = samples.end.saturating_sub(samples.start);
            let auxiliary = SampleAuxiliary::new(&signaling.protection, samples.start, count, map);
            plan = FragmentWriter {
                auxiliary: Some(auxiliary),
                ..plan
            };
        }
        plan.assemble_plan(rendition.file_index)
    }

    /// Finds the subsamples of a fragment. `payload` contains the samples of the fragment one after
    /// the other. Returns `None` if the samples are protected as a whole.
    ///
    /// # Errors
    /// `Unsupported` or `Malformed` if the samples cannot be protected.
    pub fn find_subsamples(
        &self,
        rendition: &Rendition,
        fragment: SegmentOrKeyFrame,
        payload: &[u8],
    ) -> Result<Option<SubsampleMap>> {
        let Some(signaling) = self.track_signaling(rendition) else {
            return Ok(None);
        };
        let codec = &self.track(rendition).codec;
        let Some(mut parser) = SubsampleParser::new(codec, &signaling.protection)? else {
            return Ok(None);
        };
        let mut rest = payload;
        for size in self.fragment_sample_sizes(rendition, fragment) {
            let split = rest.split_at_checked(size as usize);
            let outside = || Error::malformed("a sample lies outside its segment");
            let (sample, after) = split.ok_or_else(outside)?;
            parser.add_sample(sample)?;
            rest = after;
        }
        Ok(Some(parser.finish()))
    }

    /// Encrypts a range of samples of a track in place. The payload and the map start at the first
    /// sample of the range. Does nothing for an unencrypted rendition.
    ///
    /// # Errors
    /// An error of the cipher, or `Malformed` if payload and map do not match the samples.
    pub fn encrypt_samples_of(
        &self,
        rendition: &Rendition,
        samples: Range<u32>,
        (payload, map): (&mut [u8], Option<&SubsampleMap>),
        cipher: &impl Aes128Cipher,
    ) -> Result<()> {
        let Some(signaling) = self.track_signaling(rendition) else {
            return Ok(());
        };
        let sizes = self.track(rendition).samples.iter_range(samples.clone());
        encrypt_samples(
            payload,
            (samples.start, sizes.map(|sample| sample.size)),
            map,
            (&self.track(rendition).codec, &signaling.protection),
            cipher,
        )
    }

    /// Estimates how many bytes protection adds to a fragment. The number is exact if the source's
    /// own encryption is served.
    #[inline]
    pub(super) fn estimate_auxiliary_len(&self, rendition: &Rendition, samples: Range<u32>) -> u64 {
        // Returns early, because this function is called for all segments of a playlist.
        if self.protection.is_none() && self.track(rendition).protection.is_none() {
            return 0;
        }
        self.estimate_protection_overhead(rendition, samples)
    }

    #[cold]
    fn estimate_protection_overhead(&self, rendition: &Rendition, samples: Range<u32>) -> u64 {
        let count = samples.len() as u64;
        if let Some(source) = self.served_source_protection(rendition) {
            return SampleAuxiliary::from_source(&source.auxiliary, samples).len();
        }
        let is_video = self.track(rendition).codec.video().is_some();
        let signaling = self.track_signaling(rendition);
        signaling.map_or(0, |signaling| {
            SampleAuxiliary::estimate_len(&signaling.protection, is_video, count)
        })
    }

    /// Returns the sample numbers of a fragment within its track.
    pub fn fragment_samples(
        &self,
        rendition: &Rendition,
        fragment: SegmentOrKeyFrame,
    ) -> Range<u32> {
        match fragment {
            SegmentOrKeyFrame::Segment(n) => self.segment_samples(rendition, n),
            SegmentOrKeyFrame::KeyFrame(key) => key..key.saturating_add(1),
        }
    }

    fn fragment_sample_sizes<'a>(
        &'a self,
        rendition: &'a Rendition,
        fragment: SegmentOrKeyFrame,
    ) -> impl Iterator<Item = u32> + 'a {
        let samples = self.fragment_samples(rendition, fragment);
        let samples = self.track(rendition).samples.iter_range(samples);
        samples.map(|sample| sample.size)
    }
}
