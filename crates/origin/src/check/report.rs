//! The report of `headwater check`, with the facts, segments and findings of a title. The report is
//! printed as text with bar charts, or as JSON.

use super::protection::RenditionProtection;
use super::text_rendition_row::TextRenditionRow;
use media::presentation::{Presentation, Rendition};
use serde::Serialize;
use std::fmt::Write;

/// The report about one title.
#[derive(Debug, Serialize)]
pub struct TitleReport {
    /// Path or URL of the title, starting with the target of the command line.
    pub title: String,
    /// Duration in seconds.
    pub duration_s: f64,
    /// The renditions.
    pub renditions: Vec<RenditionRow>,
    /// The texts.
    pub texts: Vec<TextRenditionRow>,
    /// Playback problems, worst first.
    pub findings: Vec<Finding>,
}

/// A rendition.
#[derive(Debug, Serialize)]
pub struct RenditionRow {
    /// Name in URLs.
    pub name: String,
    /// Codec string (RFC 6381).
    pub codecs: String,
    /// Frame size of video, or language and channels of audio.
    pub what: String,
    /// Peak bitrate, in bits per second.
    pub bandwidth: u64,
    /// Average bitrate, in bits per second.
    pub average_bandwidth: u64,
    /// Number of segments.
    pub segments: usize,
    /// Durations of the shortest and the longest segment, in seconds.
    pub segment_s: (f64, f64),
    /// Bitrate of each segment, in bits per second, for the bar chart.
    pub bitrates: Vec<u64>,
    /// Protection of the rendition; `None` if it is unencrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protection: Option<RenditionProtection>,
}

/// A playback problem.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Severity.
    pub level: FindingLevel,
    /// The rendition or file that has the problem.
    pub place: String,
    /// The problem.
    pub what: String,
    /// The remedy.
    pub fix: String,
}

/// Severities of findings, from the worst to the least severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingLevel {
    /// The title does not play.
    Error,
    /// Some players have problems.
    Warning,
    /// A possible improvement.
    Hint,
}

impl Finding {
    /// Creates a finding.
    pub fn new(level: FindingLevel, place: &str, what: String, fix: &str) -> Finding {
        Finding {
            level,
            place: place.into(),
            what,
            fix: fix.into(),
        }
    }
}

impl TitleReport {
    /// Creates the report about a title that cannot be packaged.
    pub fn from_error(name: &str, what: String, fix: &str) -> TitleReport {
        // The title's name is removed from the start of the error, because the report prints the
        // name in front of the error.
        let what = match what
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(": "))
        {
            Some(rest) => rest.to_owned(),
            None => what,
        };
        let findings = vec![Finding::new(FindingLevel::Error, name, what, fix)];
        TitleReport {
            title: name.into(),
            duration_s: 0.0,
            renditions: Vec::new(),
            texts: Vec::new(),
            findings,
        }
    }

    /// Returns whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.has_finding_at_level(FindingLevel::Error)
    }

    /// Returns whether any finding has this level.
    pub fn has_finding_at_level(&self, level: FindingLevel) -> bool {
        self.findings.iter().any(|finding| finding.level == level)
    }

    /// Formats the report as text, with a row and a bar chart of the bitrate for each rendition.
    /// The findings follow. If `colors` is set, the text contains the escape sequences of a
    /// terminal.
    pub fn format_report(&self, colors: bool) -> String {
        let mut out = format!("{}: {:.3} s\n", self.title, self.duration_s);
        for row in &self.renditions {
            row.write_row(&mut out);
        }
        for row in &self.texts {
            row.write_row(&mut out);
        }
        for finding in &self.findings {
            let (level, color) = match finding.level {
                FindingLevel::Error => ("error", "\x1b[1;31m"),
                FindingLevel::Warning => ("warning", "\x1b[1;33m"),
                FindingLevel::Hint => ("hint", "\x1b[1;36m"),
            };
            let (color, end) = if colors { (color, "\x1b[0m") } else { ("", "") };
            let Finding {
                place, what, fix, ..
            } = finding;
            let _ = writeln!(out, "\n{color}{level}:{end} {place}: {what}\n  do: {fix}");
        }
        if self.findings.is_empty() {
            out.push_str("\nno problems found\n");
        }
        out
    }
}

impl RenditionRow {
    /// Describes a rendition without its protection.
    pub(super) fn from_rendition(title: &Presentation, rendition: &Rendition) -> RenditionRow {
        let track = title.track(rendition);
        let seconds = |ticks: u64| ticks as f64 / f64::from(track.timescale);
        let lengths: Vec<f64> = (0..rendition.segment_count())
            .map(|n| seconds(title.segment_duration_ticks(rendition, n)))
            .collect();
        let bits = rendition
            .segment_cuts
            .windows(2)
            .map(|cut| track.samples.byte_count(cut[0]..cut[1]) * 8);
        let bitrates = bits
            .zip(&lengths)
            .map(|(bits, s)| (bits as f64 / s.max(0.001)) as u64);
        let what = match (track.codec.video(), track.codec.audio()) {
            (Some(video), _) => format!("{}x{}", video.width, video.height),
            (_, Some(audio)) => format!("{} {} ch", track.language, audio.hls_channels),
            _ => String::new(),
        };
        RenditionRow {
            name: rendition.name.clone(),
            codecs: track.codec.codec_string.clone(),
            what,
            bandwidth: rendition.bandwidth.peak,
            average_bandwidth: rendition.bandwidth.average,
            segments: rendition.segment_count(),
            segment_s: (
                lengths.iter().copied().fold(f64::INFINITY, f64::min),
                lengths.iter().copied().fold(0.0, f64::max),
            ),
            bitrates: bitrates.collect(),
            protection: None,
        }
    }

    fn write_row(&self, out: &mut String) {
        let RenditionRow {
            name,
            codecs,
            what,
            segments,
            segment_s,
            ..
        } = self;
        let (average, peak) = (self.average_bandwidth / 1000, self.bandwidth / 1000);
        let _ = writeln!(
            out,
            "\n{name}  {codecs}  {what}  {average} kbit/s (peak {peak})  \
             {}\n{}",
            describe_segments(*segments, *segment_s),
            draw_bar_chart(&self.bitrates, 72),
        );
        if let Some(protection) = &self.protection {
            let _ = writeln!(out, "{}", protection.format_protection_line());
        }
    }
}

/// Describes the number of segments, and the shortest and the longest duration in seconds.
fn describe_segments(count: usize, (shortest, longest): (f64, f64)) -> String {
    let unit = if count == 1 { "segment" } else { "segments" };
    match format!("{shortest:.3}") == format!("{longest:.3}") {
        true => format!("{count} {unit} of {shortest:.3} s"),
        false => format!("{count} {unit} of {shortest:.3} to {longest:.3} s"),
    }
}

/// Draws values as a line of at most `width` bars. If several values share a bar, the bar shows
/// their maximum.
fn draw_bar_chart(values: &[u64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let top = values.iter().copied().max().unwrap_or(0).max(1);
    let each = values.len().div_ceil(width).max(1);
    let highest = values
        .chunks(each)
        .map(|some| some.iter().copied().max().unwrap_or(0));
    highest
        .map(|value| BARS[(value * 7 / top) as usize])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_segments_have_one_duration() {
        assert_eq!(describe_segments(1, (4.64, 4.64)), "1 segment of 4.640 s");
        assert_eq!(
            describe_segments(2, (4.0, 6.0)),
            "2 segments of 4.000 to 6.000 s"
        );
    }

    #[test]
    fn bars_show_the_peak_of_merged_values() {
        let mut values = vec![10; 1000];
        values[500] = 700;
        let line = draw_bar_chart(&values, 72);
        assert!(line.chars().count() <= 72);
        assert_eq!(line.chars().filter(|c| *c == '█').count(), 1);
    }

    #[test]
    fn a_title_that_cannot_be_packaged_fails_with_its_reason() {
        let report = TitleReport::from_error("x.mp4", "the file is empty".into(), "copy it again");
        assert!(report.has_errors());
        let text = report.format_report(false);
        assert!(text.contains("error: x.mp4: the file is empty\n  do: copy it again"));
        assert!(!text.contains('\x1b'));
        assert!(
            report
                .format_report(true)
                .contains("\x1b[1;31merror:\x1b[0m x.mp4")
        );
        assert!(
            serde_json::to_string(&report)
                .unwrap()
                .contains("\"level\":\"error\"")
        );
    }
}
