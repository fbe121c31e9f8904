//! Grouping of audio renditions: bitrates of one programme, and alternative programmes.

use crate::codec::AudioFormat;
use crate::presentation::{Presentation, Rendition};

/// One programme in one coding, such as a language or a commentary, at one or more bitrates.
pub(super) struct AudioProgramme<'a> {
    /// Renditions by falling bitrate.
    pub(super) renditions: Vec<&'a Rendition>,
    /// Whether no earlier programme of its family has its language.
    pub(super) first_of_language: bool,
}

/// Programmes with one coding and channel count. Players choose a family before the language.
pub(super) struct AudioFamily<'a> {
    pub(super) format: &'a AudioFormat,
    /// RFC 6381 string.
    pub(super) codec_string: &'a str,
    /// Programmes in the order of the presentation. Never empty.
    pub(super) programmes: Vec<AudioProgramme<'a>>,
}

/// Minimum difference between two bitrates of one programme, in percent. Tracks with closer
/// bitrates are different programmes.
const LADDER_STEP_PERCENT: u64 = 15;

/// Groups audio renditions into families.
pub(super) fn group_audio<'a>(
    presentation: &'a Presentation,
    of: impl Iterator<Item = &'a Rendition>,
) -> Vec<AudioFamily<'a>> {
    let mut families: Vec<AudioFamily> = Vec::new();
    for rendition in of {
        let codec = &presentation.track(rendition).codec;
        let Some(audio) = codec.audio() else {
            continue;
        };
        let same_family = |family: &&mut AudioFamily| {
            family.codec_string == codec.codec_string
                && family.format.hls_channels == audio.hls_channels
        };
        match families.iter_mut().find(same_family) {
            Some(family) => family.add_rendition(presentation, rendition),
            None => families.push(AudioFamily {
                format: audio,
                codec_string: &codec.codec_string,
                programmes: vec![AudioProgramme {
                    renditions: vec![rendition],
                    first_of_language: true,
                }],
            }),
        }
    }
    families
}

impl<'a> AudioFamily<'a> {
    fn add_rendition(&mut self, presentation: &'a Presentation, rendition: &'a Rendition) {
        let track = presentation.track(rendition);
        let language =
            |programme: &AudioProgramme| &presentation.track(programme.renditions[0]).language;
        let first_of_language = !self
            .programmes
            .iter()
            .any(|v| *language(v) == track.language);
        let same_programme = |programme: &&mut AudioProgramme| {
            let known_track = presentation.track(programme.renditions[0]);
            let steps = programme
                .renditions
                .iter()
                .all(|other| is_other_quality(other, rendition));
            known_track.language == track.language && known_track.name == track.name && steps
        };
        match self.programmes.iter_mut().find(same_programme) {
            Some(programme) => {
                programme.renditions.push(rendition);
                programme
                    .renditions
                    .sort_by_key(|r| std::cmp::Reverse(r.bandwidth.average));
            }
            None => self.programmes.push(AudioProgramme {
                renditions: vec![rendition],
                first_of_language,
            }),
        }
    }

    /// Returns the largest number of bitrates of a programme.
    pub(super) fn bitrate_steps(&self) -> usize {
        self.programmes
            .iter()
            .map(|programme| programme.renditions.len())
            .max()
            .unwrap_or(0)
    }

    /// Returns the programme that plays by default: the first with an enabled track.
    pub(super) fn default_programme(&self, presentation: &Presentation) -> usize {
        let enabled =
            |programme: &AudioProgramme| presentation.track(programme.renditions[0]).is_enabled;
        self.programmes.iter().position(enabled).unwrap_or(0)
    }
}

fn is_other_quality(a: &Rendition, b: &Rendition) -> bool {
    let (a, b) = (a.bandwidth.average, b.bandwidth.average);
    a.abs_diff(b) * 100 > a.max(b) * LADDER_STEP_PERCENT
}
