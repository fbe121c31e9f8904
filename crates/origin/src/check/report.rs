//! What `check` says of a title: facts, grid and findings; as text with a picture, or as JSON.

use media::presentation::{Presentation, Rendition};
use serde::Serialize;
use std::fmt::Write;

/// All that `check` says of one title.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The title, as it was asked for.
    pub title: String,
    /// Length of the film, in seconds.
    pub duration_s: f64,
    /// One row a rendition.
    pub renditions: Vec<Row>,
    /// What a player may stumble over, worst first.
    pub findings: Vec<Finding>,
}

/// Facts of one rendition.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name in URLs.
    pub name: String,
    /// RFC 6381.
    pub codecs: String,
    /// Size of the picture, or channels and language of the sound.
    pub what: String,
    /// Measured over the segments as served, in bits a second.
    pub bandwidth: u64,
    /// The same, all bytes over all time.
    pub average_bandwidth: u64,
    /// How many segments.
    pub segments: usize,
    /// The shortest and the longest, in seconds.
    pub segment_s: (f64, f64),
    /// Bits a second of each segment's media, for the picture.
    pub bitrates: Vec<u64>,
}

/// Something a player may stumble over.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad.
    pub level: Level,
    /// Which rendition or file.
    pub place: String,
    /// What is the matter.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

/// How bad a finding is; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It will not play.
    Error,
    /// Some players will show it.
    Warning,
    /// It could be better.
    Hint,
}

impl Finding {
    /// A finding at `place`, with its remedy.
    pub fn new(level: Level, place: &str, what: String, fix: &str) -> Finding {
        Finding {
            level,
            place: place.into(),
            what,
            fix: fix.into(),
        }
    }
}

impl Report {
    /// Examines a title that could be opened.
    pub fn of(name: &str, title: &Presentation) -> Report {
        Report {
            title: name.into(),
            duration_s: title.duration.seconds(),
            renditions: title.renditions.iter().map(|r| Row::of(title, r)).collect(),
            findings: super::findings::all(title),
        }
    }

    /// A title that cannot be packaged at all.
    pub fn refused(name: &str, what: String) -> Report {
        let fix = "see the message; `ffmpeg -i IN -c copy -movflags +faststart OUT.mp4` mends \
                   many broken or foreign containers";
        let findings = vec![Finding::new(Level::Error, name, what, fix)];
        Report {
            title: name.into(),
            duration_s: 0.0,
            renditions: Vec::new(),
            findings,
        }
    }

    /// Whether anything will not play.
    pub fn failed(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.level == Level::Error)
    }

    /// For people: a table, a line of bars a rendition (bits a second over time), findings.
    pub fn text(&self) -> String {
        let mut out = format!("{}: {:.3} s\n", self.title, self.duration_s);
        for row in &self.renditions {
            row.write(&mut out);
        }
        for finding in &self.findings {
            let level = match finding.level {
                Level::Error => "error",
                Level::Warning => "warning",
                Level::Hint => "hint",
            };
            let Finding {
                place, what, fix, ..
            } = finding;
            let _ = writeln!(out, "\n{level}: {place}: {what}\n  do: {fix}");
        }
        if self.findings.is_empty() {
            out.push_str("\nnothing to stumble over\n");
        }
        out
    }
}

impl Row {
    fn of(title: &Presentation, rendition: &Rendition) -> Row {
        let track = title.track(rendition);
        let seconds = |ticks: u64| ticks as f64 / f64::from(track.timescale);
        let lengths = rendition.cuts.windows(2);
        let lengths: Vec<f64> = lengths
            .map(|cut| seconds(track.samples.dts(cut[1]) - track.samples.dts(cut[0])))
            .collect();
        let bits = rendition
            .cuts
            .windows(2)
            .map(|cut| track.samples.bytes(cut[0]..cut[1]) * 8);
        let bitrates = bits
            .zip(&lengths)
            .map(|(bits, s)| (bits as f64 / s.max(0.001)) as u64);
        let what = match (track.codec.video(), track.codec.audio()) {
            (Some(video), _) => format!("{}x{}", video.width, video.height),
            (_, Some(audio)) => format!("{} {} ch", track.language, audio.hls_channels),
            _ => String::new(),
        };
        Row {
            name: rendition.name.clone(),
            codecs: track.codec.string.clone(),
            what,
            bandwidth: rendition.bandwidth.peak,
            average_bandwidth: rendition.bandwidth.average,
            segments: rendition.segments(),
            segment_s: (
                lengths.iter().copied().fold(f64::INFINITY, f64::min),
                lengths.iter().copied().fold(0.0, f64::max),
            ),
            bitrates: bitrates.collect(),
        }
    }

    fn write(&self, out: &mut String) {
        let Row {
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
             {segments} segments of {:.3} to {:.3} s\n{}",
            segment_s.0,
            segment_s.1,
            bars(&self.bitrates, 72),
        );
    }
}

/// Values over time as a line of at most `width` bars; where several share one, the highest shows.
fn bars(values: &[u64], width: usize) -> String {
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
    fn bars_keep_the_peak_when_there_are_more_values_than_room() {
        let mut values = vec![10; 1000];
        values[500] = 700;
        let line = bars(&values, 72);
        assert!(line.chars().count() <= 72);
        assert_eq!(line.chars().filter(|c| *c == '█').count(), 1);
    }

    #[test]
    fn a_refused_title_fails_and_says_why() {
        let report = Report::refused("x.mp4", "the file is empty".into());
        assert!(report.failed());
        assert!(report.text().contains("the file is empty"));
        assert!(
            serde_json::to_string(&report)
                .unwrap()
                .contains("\"level\":\"error\"")
        );
    }
}
