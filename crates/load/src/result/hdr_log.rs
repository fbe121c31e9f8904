//! The HDR interval log, version 1.3 with V2 histograms, which other HDR tools can read. Each
//! interval line contains the latencies of one second, one step and one kind of request. The
//! latencies are measured either from the due time or from sending. A tag such as
//! `step1/segment/due` describes the line.

use super::latency_histogram::HdrLogSerializer;
use super::{HistogramError, LatencyHistogram};
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriter, IntervalLogWriterBuilder, LogEntry, Tag,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// The reason why a text is not a valid HDR interval log.
#[derive(Debug, thiserror::Error)]
pub enum HdrLogError {
    /// A malformed line, with the library's description of the error.
    #[error("invalid HDR interval log: {0}; expected the format written by --hdr")]
    Syntax(String),
    /// A line whose histogram cannot be decoded.
    #[error("invalid HDR interval log: {0}")]
    Histogram(#[from] HistogramError),
}

/// Start of the comment line that contains [`RunFacts`] as JSON.
const FACTS: &str = "headwater load: ";

/// Facts about a run that the log stores in a comment, because interval lines cannot contain them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Version of the program.
    pub program_version: String,
    /// The offered rate, as the user typed it.
    pub offered: String,
    /// The targets.
    pub targets: Vec<String>,
    /// Start of the run, as Unix time in milliseconds.
    pub started_unix_ms: u64,
    /// Start and end of each step, in seconds since the start of the run.
    pub steps: Vec<[f64; 2]>,
    /// Whether the run was a closed loop. A closed loop has no schedule, so latencies from the due
    /// time have no meaning.
    pub closed_loop: bool,
}

impl RunFacts {
    /// Returns facts with the version of this program, and with the current time as the start of
    /// the run.
    pub fn facts_starting_now() -> RunFacts {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        RunFacts {
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: since.unwrap_or_default().as_millis() as u64,
            ..RunFacts::default()
        }
    }
}

/// The content of a log.
#[derive(Debug, Default)]
pub struct HdrLogContent {
    /// Facts about the run, if this program wrote the log.
    pub facts: Option<RunFacts>,
    /// Histograms by tag, merged over all intervals.
    pub histograms: BTreeMap<String, LatencyHistogram>,
    /// End of the last interval, in seconds since the start of the run.
    pub end_s: f64,
}

/// Writes the log of a run.
pub struct HdrLogWriter<W: Write> {
    out: W,
    serializer: HdrLogSerializer,
    begun: bool,
    facts: RunFacts,
}

impl<W: Write> HdrLogWriter<W> {
    /// Creates the log of a run.
    pub fn new(out: W, facts: RunFacts) -> HdrLogWriter<W> {
        HdrLogWriter {
            out,
            serializer: HdrLogSerializer::new(),
            begun: false,
            facts,
        }
    }

    /// Writes the histogram of one interval.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_interval(
        &mut self,
        tag: &str,
        start_s: f64,
        length_s: f64,
        times: &LatencyHistogram,
    ) -> io::Result<()> {
        if times.count() == 0 {
            return Ok(());
        }
        let mut line = Vec::new();
        let mut writer = self.interval_writer(&mut line)?;
        let tag = Tag::new(tag).ok_or(io::ErrorKind::InvalidInput)?;
        let (start, length) = (
            Duration::from_secs_f64(start_s),
            Duration::from_secs_f64(length_s),
        );
        writer
            .write_histogram(times.as_histogram(), start, length, Some(tag))
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        drop(writer);
        // The library writes the header before every interval, but the log needs the header only
        // once.
        let from = match self.begun {
            true => line
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |end| {
                    line[..end]
                        .iter()
                        .rposition(|byte| *byte == b'\n')
                        .map_or(0, |at| at + 1)
                }),
            false => 0,
        };
        self.begun = true;
        self.out.write_all(&line[from..])
    }

    fn interval_writer<'a>(
        &mut self,
        line: &'a mut Vec<u8>,
    ) -> io::Result<IntervalLogWriter<'a, '_, Vec<u8>, HdrLogSerializer>> {
        let facts = serde_json::to_string(&self.facts)?;
        let started = SystemTime::UNIX_EPOCH + Duration::from_millis(self.facts.started_unix_ms);
        IntervalLogWriterBuilder::new()
            .add_comment("values in nanoseconds, times of intervals from the start")
            .add_comment(&format!("{FACTS}{facts}"))
            .with_start_time(started)
            .with_base_time(started)
            .with_max_value_divisor(1e6)
            .begin_log_with(line, &mut self.serializer)
    }

    /// Flushes the log.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush_log(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a log and merges its intervals by tag.
///
/// # Errors
/// The text is not an HDR interval log.
pub fn read_hdr_log(text: &[u8]) -> Result<HdrLogContent, HdrLogError> {
    let mut log = HdrLogContent {
        facts: parse_run_facts(text),
        ..HdrLogContent::default()
    };
    for entry in IntervalLogIterator::new(text) {
        let entry = entry.map_err(|error| HdrLogError::Syntax(format!("{error:?}")))?;
        if let LogEntry::Interval(interval) = entry {
            let tag = interval.tag().map_or("", |tag| tag.as_str());
            let times = LatencyHistogram::decode_histogram(interval.encoded_histogram())?;
            log.histograms
                .entry(tag.to_owned())
                .or_default()
                .merge(&times);
            let end = interval
                .start_timestamp()
                .saturating_add(interval.duration());
            log.end_s = log.end_s.max(end.as_secs_f64());
        }
    }
    Ok(log)
}

/// Returns the facts in the comments of a log. Logs of other programs contain no such comment.
fn parse_run_facts(text: &[u8]) -> Option<RunFacts> {
    let comments = text
        .split(|byte| *byte == b'\n')
        .take_while(|line| line.starts_with(b"#"));
    comments
        .filter_map(|line| {
            line.get(1..)?
                .trim_ascii_start()
                .strip_prefix(FACTS.as_bytes())
        })
        .find_map(|json| serde_json::from_slice(json).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_back_with_every_count() {
        let mut out = Vec::new();
        let facts = RunFacts {
            offered: "50".into(),
            targets: vec!["http://host/a".into()],
            started_unix_ms: 1_700_000_000_000,
            ..RunFacts::default()
        };
        let mut log = HdrLogWriter::new(&mut out, facts.clone());
        let mut times = LatencyHistogram::default();
        for n in 1..500 {
            times.record(Duration::from_micros(n * 10));
        }
        for second in 0..3 {
            log.write_interval("step1/segment/due", f64::from(second), 1.0, &times)
                .unwrap();
            log.write_interval("step1/segment/sent", f64::from(second), 1.0, &times)
                .unwrap();
        }
        log.flush_log().unwrap();
        let text = String::from_utf8(out.clone()).unwrap();
        assert_eq!(text.matches("#[StartTime").count(), 1, "{text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with("Tag=")).count(),
            6
        );
        let back = read_hdr_log(&out).unwrap();
        assert_eq!(back.histograms.len(), 2);
        assert_eq!((back.facts, back.end_s), (Some(facts), 3.0));
        let due = &back.histograms["step1/segment/due"];
        assert_eq!(due.count(), 3 * times.count());
        assert_eq!(due.quantile_ms(0.9), times.quantile_ms(0.9));
        assert!(read_hdr_log(b"nonsense").is_err());
    }
}
