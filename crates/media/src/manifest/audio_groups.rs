//! Groups audio renditions into programmes with one or more bitrates, and programmes into families.

use super::audio_purpose::{is_for_all_viewers, media_characteristics};
use super::language_tag::shortest_tag;
use crate::codec::AudioFormat;
use crate::index::TrackRole;
use crate::presentation::{Presentation, Rendition};

/// One programme, such as a language or a commentary, with one codec and at one or more bitrates.
pub(super) struct AudioProgramme<'a> {
    /// Renditions in descending order of bitrate.
    pub(super) renditions: Vec<&'a Rendition>,
    /// Whether this is the first programme of its family with this language and purpose.
    pub(super) first_of_language: bool,
}

/// Programmes with the same codec and channel count. Players choose a family first, and then a
/// language.
pub(super) struct AudioFamily<'a> {
    pub(super) format: &'a AudioFormat,
    /// RFC 6381 codec string.
    pub(super) codec_string: &'a str,
    /// The default programme is first, then the other programmes for all viewers, then
    /// supplementary audio, commentary and accessibility audio. Within these groups, programmes
    /// keep the order of the presentation. Never empty.
    pub(super) programmes: Vec<AudioProgramme<'a>>,
}

/// Minimum difference between two bitrates of one programme, in percent of the higher bitrate.
/// Tracks with closer bitrates count as different programmes.
const LADDER_STEP_PERCENT: u64 = 15;

/// Groups audio renditions into families. Families that contain only supplementary audio,
/// commentary and accessibility audio are last.
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
                    first_of_language: false,
                }],
            }),
        }
    }
    families
        .iter_mut()
        .for_each(|family| family.sort_programmes(presentation));
    families.sort_by_key(|family| !family.has_audio_for_all_viewers(presentation));
    families
}

impl<'a> AudioFamily<'a> {
    /// Moves the default programme to the front, because some players start with the first
    /// programme. Moves supplementary audio, commentary and accessibility audio behind the other
    /// programmes.
    fn sort_programmes(&mut self, presentation: &Presentation) {
        let default = self.find_default_programme(presentation);
        let first = self.programmes.remove(default);
        let is_special = |programme: &AudioProgramme| {
            !is_for_all_viewers(presentation.track(programme.renditions[0]))
        };
        self.programmes.sort_by_key(is_special);
        self.programmes.insert(0, first);
        for n in 0..self.programmes.len() {
            self.programmes[n].first_of_language = self.is_first_of_language(presentation, n);
        }
    }

    /// Returns whether the family has a programme for all viewers. A family without such a
    /// programme contains only supplementary audio, commentary and accessibility audio.
    pub(super) fn has_audio_for_all_viewers(&self, presentation: &Presentation) -> bool {
        let first = self.programmes.first();
        first.is_some_and(|first| is_for_all_viewers(presentation.track(first.renditions[0])))
    }

    fn is_first_of_language(&self, presentation: &Presentation, n: usize) -> bool {
        let track_of = |programme: &AudioProgramme| presentation.track(programme.renditions[0]);
        let track = track_of(&self.programmes[n]);
        let has_same_purpose = |programme: &AudioProgramme| {
            let known_track = track_of(programme);
            known_track.language == track.language
                && is_for_all_viewers(known_track) == is_for_all_viewers(track)
                && media_characteristics(known_track).eq(media_characteristics(track))
        };
        !self.programmes[..n].iter().any(has_same_purpose)
    }

    fn add_rendition(&mut self, presentation: &'a Presentation, rendition: &'a Rendition) {
        let track = presentation.track(rendition);
        let same_programme = |programme: &&mut AudioProgramme| {
            let known_track = presentation.track(programme.renditions[0]);
            let steps = programme
                .renditions
                .iter()
                .all(|other| differ_by_bitrate_step(other, rendition));
            known_track.language == track.language
                && known_track.name == track.name
                && known_track.roles == track.roles
                && steps
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
                first_of_language: false,
            }),
        }
    }

    /// Returns the number of bitrates of the programme that has the most bitrates.
    pub(super) fn count_bitrate_steps(&self) -> usize {
        self.programmes
            .iter()
            .map(|programme| programme.renditions.len())
            .max()
            .unwrap_or(0)
    }

    /// Finds the programme that plays by default.
    ///
    /// The first criterion is that the audio is for all viewers. The next criteria are the
    /// operator's choice of a language, the enabled flag, and the role of the main programme, in
    /// this order. If several programmes rank equally, the first of them is the default.
    fn find_default_programme(&self, presentation: &Presentation) -> usize {
        let choice = presentation.manifest_rules.default_audio.as_deref();
        let rank = |n: &usize| {
            let track = presentation.track(self.programmes[*n].renditions[0]);
            (
                !is_for_all_viewers(track),
                choice.is_some_and(|choice| !is_default_audio_language(choice, &track.language)),
                !track.is_enabled,
                !track.roles.contains(&TrackRole::Main),
            )
        };
        (0..self.programmes.len()).min_by_key(rank).unwrap_or(0)
    }
}

/// Returns whether a language matches the operator's choice. The choice `pt` also matches the
/// language `pt-BR`.
fn is_default_audio_language(choice: &str, language: &str) -> bool {
    let (Some(choice), Some(tag)) = (shortest_tag(choice), shortest_tag(language)) else {
        return false;
    };
    let (choice, tag) = (choice.to_ascii_lowercase(), tag.to_ascii_lowercase());
    tag.strip_prefix(&choice)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn differ_by_bitrate_step(a: &Rendition, b: &Rendition) -> bool {
    let (a, b) = (a.bandwidth.average, b.bandwidth.average);
    a.abs_diff(b) * 100 > a.max(b) * LADDER_STEP_PERCENT
}
