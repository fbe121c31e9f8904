//! Bandwidth of text renditions in DASH. It is measured once per presentation.

use super::cmaf::wvtt_segment_len;
use super::{TextRendition, TextSegmentTimes, write_imsc_segment, write_vtt};
use crate::presentation::{DashTextForm, Presentation};

impl Presentation {
    /// Returns the bandwidth of each text rendition in this form, in bits per second. For segments,
    /// the bandwidth is the peak bit rate. For a file, the bandwidth is the average bit rate.
    pub(crate) fn text_bandwidths(&self, form: DashTextForm) -> &[u64] {
        self.text_bandwidths
            .bandwidths_of_form(form)
            .get_or_init(|| {
                let renditions = self.text.renditions();
                let measured = renditions.map(|(_, text)| measure_text_bandwidth(self, text, form));
                measured.collect()
            })
    }
}

fn measure_text_bandwidth(
    presentation: &Presentation,
    text: &TextRendition,
    form: DashTextForm,
) -> u64 {
    let peak = |len: &dyn Fn(&TextSegmentTimes<'_>, usize) -> usize| {
        let grid = presentation.text_segment_times();
        grid.map_or(0, |grid| {
            grid.measure_bandwidth(|n| len(&grid, n) as u64).peak
        })
    };
    match form {
        DashTextForm::Wvtt => peak(&|grid, n| wvtt_segment_len(grid, &text.cues, n)),
        DashTextForm::Imsc => {
            let tag = text.language_tag();
            peak(&|grid, n| write_imsc_segment(grid, tag.as_deref(), &text.cues, n).len())
        }
        DashTextForm::File => whole_file_bandwidth(presentation, text),
    }
}

/// Returns the average bits per second of a WebVTT file with all cues.
fn whole_file_bandwidth(presentation: &Presentation, text: &TextRendition) -> u64 {
    let bits = write_vtt(&text.cues).len() as u64 * 8;
    let ms = presentation.duration.round_to(1000);
    bits.saturating_mul(1000) / u64::try_from(ms).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, build_index_of_tracks};
    use crate::manifest::dash::{TemplateAddressing, write_mpd};
    use crate::presentation::PackagingRules;
    use crate::text::{TextSet, parse_vtt};
    use std::sync::Arc;

    const CUES: &str = "WEBVTT\n\n00:01.000 --> 00:13.500\nlong\n\na\n00:02.000 --> 00:03.000 line:0\nshort\n\n00:08.000 --> 00:09.000\nof the second segment\n";

    fn film() -> Presentation {
        let rules = PackagingRules {
            segment_duration_ms: 6000,
        };
        let track = fixtures::build_video_track(20, 50, 1000);
        Presentation::new(vec![build_index_of_tracks(vec![track])], &rules).unwrap()
    }

    fn text(cues: &str) -> Arc<TextSet> {
        let rendition = |language: &str, cues: &str| TextRendition {
            language: language.to_owned(),
            cues: parse_vtt(cues, &mut Vec::new()),
            ..TextRendition::default()
        };
        let longer = format!("{cues}\n00:01.000 --> 00:20.000\nMore for one language\n");
        Arc::new(TextSet::new(vec![
            rendition("en", cues),
            rendition("de", &longer),
        ]))
    }

    /// Returns the `bandwidth` attribute of each text representation in the MPD.
    fn declared(film: &mut Presentation, form: DashTextForm) -> Vec<String> {
        film.manifest_rules.dash_text = form;
        let mpd = write_mpd(film, TemplateAddressing::Time);
        let texts = mpd.split("<Representation id=\"text=").skip(1);
        let bandwidth = texts.map(|text| text.split('"').nth(2).unwrap().to_owned());
        bandwidth.collect()
    }

    #[test]
    fn the_bandwidth_of_each_form_of_text_is_declared() {
        let mut film = film().with_text(text(CUES));
        // The second MPD repeats the values that were measured for the first MPD.
        for _ in 0..2 {
            assert_eq!(declared(&mut film, DashTextForm::Wvtt), ["400", "596"]);
            assert_eq!(declared(&mut film, DashTextForm::Imsc), ["1067", "1345"]);
            assert_eq!(declared(&mut film, DashTextForm::File), ["57", "78"]);
        }
    }

    #[test]
    fn other_text_is_measured_again() {
        let mut film = film().with_text(text(CUES));
        let before = declared(&mut film, DashTextForm::Wvtt);
        let mut film = film.with_text(text(&CUES.replace("long", "a much longer cue")));
        assert_ne!(declared(&mut film, DashTextForm::Wvtt), before);
    }
}
