//! The HDR interval log, version 1.3 with V2 histograms, as other HDR tools read it. A line for each
//! second, step and kind of request, tagged `step1/segment/due` and the like.

use super::Times;
use super::histogram::LogSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriter, IntervalLogWriterBuilder, LogEntry, Tag,
};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// A log that is being written.
pub struct HdrLog<W: Write> {
    out: W,
    serializer: LogSerializer,
    begun: bool,
    started: SystemTime,
}

impl<W: Write> HdrLog<W> {
    /// A log of a run that starts at `started`.
    pub fn new(out: W, started: SystemTime) -> HdrLog<W> {
        HdrLog {
            out,
            serializer: LogSerializer::new(),
            begun: false,
            started,
        }
    }

    /// Writes one interval's histogram.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(
        &mut self,
        tag: &str,
        start_s: f64,
        length_s: f64,
        times: &Times,
    ) -> io::Result<()> {
        if times.count() == 0 {
            return Ok(());
        }
        let mut line = Vec::new();
        let mut writer = self.begin(&mut line)?;
        let tag = Tag::new(tag).ok_or(io::ErrorKind::InvalidInput)?;
        let (start, length) = (
            Duration::from_secs_f64(start_s),
            Duration::from_secs_f64(length_s),
        );
        writer
            .write_histogram(times.inner(), start, length, Some(tag))
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        drop(writer);
        // Only the first line needs the head that the library writes before data.
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

    fn begin<'a>(
        &mut self,
        line: &'a mut Vec<u8>,
    ) -> io::Result<IntervalLogWriter<'a, '_, Vec<u8>, LogSerializer>> {
        IntervalLogWriterBuilder::new()
            .add_comment("headwater load: values in nanoseconds, times of intervals from the start")
            .with_start_time(self.started)
            .with_base_time(self.started)
            .with_max_value_divisor(1e6)
            .begin_log_with(line, &mut self.serializer)
    }

    /// Writes out what is left.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a log: all its intervals together, by tag.
///
/// # Errors
/// What is no such log.
pub fn read(text: &[u8]) -> Result<BTreeMap<String, Times>, String> {
    let mut all: BTreeMap<String, Times> = BTreeMap::new();
    for entry in IntervalLogIterator::new(text) {
        let entry = entry.map_err(|error| format!("no HDR interval log: {error:?}"))?;
        if let LogEntry::Interval(interval) = entry {
            let tag = interval.tag().map_or("", |tag| tag.as_str());
            let times = Times::decode(interval.encoded_histogram())?;
            all.entry(tag.to_owned()).or_default().add(&times);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_back_with_every_count() {
        let mut out = Vec::new();
        let mut log = HdrLog::new(&mut out, SystemTime::UNIX_EPOCH);
        let mut times = Times::default();
        for n in 1..500 {
            times.record(Duration::from_micros(n * 10));
        }
        for second in 0..3 {
            log.write("step1/segment/due", f64::from(second), 1.0, &times)
                .unwrap();
            log.write("step1/segment/sent", f64::from(second), 1.0, &times)
                .unwrap();
        }
        log.finish().unwrap();
        let text = String::from_utf8(out.clone()).unwrap();
        assert_eq!(text.matches("#[StartTime").count(), 1, "{text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with("Tag=")).count(),
            6
        );
        let back = read(&out).unwrap();
        assert_eq!(back.len(), 2);
        let due = &back["step1/segment/due"];
        assert_eq!(due.count(), 3 * times.count());
        assert_eq!(due.quantile_ms(0.9), times.quantile_ms(0.9));
        assert!(read(b"nonsense").is_err());
    }
}
