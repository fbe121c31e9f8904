//! Which audio renditions are the same programme at other bitrates, and which are alternatives.

use crate::codec::Audio;
use crate::presentation::{Presentation, Rendition};

/// One programme in one coding: a language, a commentary; at one or more bitrates.
pub(super) struct Voice<'a> {
    /// From the highest bitrate down.
    pub(super) renditions: Vec<&'a Rendition>,
    /// Whether no earlier voice of its family has its language.
    pub(super) first_of_language: bool,
}

/// Voices of one coding and channel count: what a player chooses before the language.
pub(super) struct Family<'a> {
    pub(super) audio: &'a Audio,
    /// RFC 6381 string.
    pub(super) codec: &'a str,
    /// In the order of the presentation. Never empty.
    pub(super) voices: Vec<Voice<'a>>,
}

/// Bitrates that differ by less are the same quality of different programmes, in per cent.
const LADDER_STEP: u64 = 15;

/// The audio renditions `of` a presentation, by family.
pub(super) fn families<'a>(
    presentation: &'a Presentation,
    of: impl Iterator<Item = &'a Rendition>,
) -> Vec<Family<'a>> {
    let mut families: Vec<Family> = Vec::new();
    for rendition in of {
        let codec = &presentation.track(rendition).codec;
        let Some(audio) = codec.audio() else {
            continue;
        };
        let alike = |family: &&mut Family| {
            family.codec == codec.string && family.audio.hls_channels == audio.hls_channels
        };
        match families.iter_mut().find(alike) {
            Some(family) => family.add(presentation, rendition),
            None => families.push(Family {
                audio,
                codec: &codec.string,
                voices: vec![Voice {
                    renditions: vec![rendition],
                    first_of_language: true,
                }],
            }),
        }
    }
    families
}

impl<'a> Family<'a> {
    fn add(&mut self, presentation: &'a Presentation, rendition: &'a Rendition) {
        let track = presentation.track(rendition);
        let language = |voice: &Voice| &presentation.track(voice.renditions[0]).language;
        let first_of_language = !self.voices.iter().any(|v| *language(v) == track.language);
        let same = |voice: &&mut Voice| {
            let of = presentation.track(voice.renditions[0]);
            let steps = voice
                .renditions
                .iter()
                .all(|other| is_step(other, rendition));
            of.language == track.language && of.name == track.name && steps
        };
        match self.voices.iter_mut().find(same) {
            Some(voice) => {
                voice.renditions.push(rendition);
                voice
                    .renditions
                    .sort_by_key(|r| std::cmp::Reverse(r.bandwidth.average));
            }
            None => self.voices.push(Voice {
                renditions: vec![rendition],
                first_of_language,
            }),
        }
    }

    /// How many bitrates the voice with the most has.
    pub(super) fn steps(&self) -> usize {
        self.voices
            .iter()
            .map(|voice| voice.renditions.len())
            .max()
            .unwrap_or(0)
    }

    /// The voice that plays unless the viewer chooses: the first that its file marks as enabled.
    pub(super) fn default_voice(&self, presentation: &Presentation) -> usize {
        let enabled = |voice: &Voice| presentation.track(voice.renditions[0]).enabled;
        self.voices.iter().position(enabled).unwrap_or(0)
    }
}

fn is_step(a: &Rendition, b: &Rendition) -> bool {
    let (a, b) = (a.bandwidth.average, b.bandwidth.average);
    a.abs_diff(b) * 100 > a.max(b) * LADDER_STEP
}
