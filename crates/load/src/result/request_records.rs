//! Raw records of requests. Each record is one line of JSON. The extension of the output file
//! selects the compression.

use crate::client::FailureKind;
use crate::rate::RequestKind;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// The record of one request. All times are in milliseconds since the start of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Number of the request.
    pub n: u64,
    /// Due time.
    pub due_ms: f64,
    /// Time when the request was sent; absent if the request was never sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_ms: Option<f64>,
    /// Time when the first byte of the response arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ms: Option<f64>,
    /// Time when the request completed or failed.
    pub end_ms: f64,
    /// Index of the step, from 0.
    pub step: u32,
    /// Kind of request.
    pub kind: RequestKind,
    /// Status of the response; 0 if there was no response.
    pub status: u16,
    /// Received bytes of the body.
    pub bytes: u64,
    /// Kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FailureKind>,
    /// Whether the request waited for a free connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Whether the player cancelled the request. If so, `bytes` counts the bytes received until
    /// then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abandoned: bool,
    /// The URL, without a password; empty in files of earlier versions.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub url: Box<str>,
    /// Identifies the viewer. For a simulated viewer, this is the `session` in the viewer's record.
    /// For a recorded request that `load rate` repeats, this is the viewer in the recording. Other
    /// requests have no viewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viewer: Option<Box<str>>,
}

/// Maximum length of the URL in a record, in bytes. The rest of a longer URL is cut off.
const URL_BYTES_MAX: usize = 8 << 10;
/// Maximum length of a line, in bytes. A line has room for a URL whose bytes are all escaped (6
/// bytes for each byte), and for 16 KiB of other fields.
const LINE_BYTES_MAX: u64 = 8 * URL_BYTES_MAX as u64;

impl RequestRecord {
    /// Returns a URL in the form that records contain, without its password.
    pub(crate) fn recorded_url(url: &url::Url) -> Box<str> {
        let text = match url.password() {
            Some(_) => {
                let mut url = url.clone();
                // This call fails only for URLs that cannot have a password.
                let _ = url.set_password(Some("***"));
                url.to_string()
            }
            None => url.to_string(),
        };
        text.get(..text.floor_char_boundary(URL_BYTES_MAX))
            .unwrap_or_default()
            .into()
    }
}

/// Start of the line of a viewer's record. One file contains the records of viewers and of
/// requests.
const PLAYER: &[u8] = b"{\"record\":\"player\"";

/// The reason why a file of records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be read or decompressed.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A line is not a record.
    #[error("line {number}: invalid record: {error}; expected a line written by --records")]
    Line {
        /// Number of the line, from 1.
        number: u64,
        /// The cause.
        error: serde_json::Error,
    },
}

/// Writes a file of records.
pub struct RecordWriter(RecordFileEncoder);

/// A file or standard output.
type BufferedOutput = BufWriter<Box<dyn Write + Send>>;

enum RecordFileEncoder {
    Plain(BufferedOutput),
    Gzip(Box<flate2::write::GzEncoder<BufferedOutput>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, BufferedOutput>>),
}

impl RecordWriter {
    /// Creates a file. The extension decides the compression, which is zstd for `.zst`, gzip for
    /// `.gz` and none otherwise. The name `-` means standard output without compression.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path) -> io::Result<RecordWriter> {
        let file = BufWriter::new(create_file_or_stdout(path)?);
        let extension = path.extension().and_then(|name| name.to_str());
        Ok(RecordWriter(match extension {
            Some("zst") => {
                RecordFileEncoder::Zstd(Box::new(zstd::stream::write::Encoder::new(file, 3)?))
            }
            Some("gz") => {
                let level = flate2::Compression::fast();
                RecordFileEncoder::Gzip(Box::new(flate2::write::GzEncoder::new(file, level)))
            }
            _ => RecordFileEncoder::Plain(file),
        }))
    }

    /// Writes records, one per line.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_lines<T: Serialize>(&mut self, records: &[T]) -> io::Result<()> {
        let mut text = Vec::with_capacity(records.len() * 160);
        for record in records {
            serde_json::to_writer(&mut text, record)?;
            text.push(b'\n');
        }
        match &mut self.0 {
            RecordFileEncoder::Plain(out) => out.write_all(&text),
            RecordFileEncoder::Gzip(out) => out.write_all(&text),
            RecordFileEncoder::Zstd(out) => out.write_all(&text),
        }
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish_file(self) -> io::Result<()> {
        match self.0 {
            RecordFileEncoder::Plain(mut out) => out.flush(),
            RecordFileEncoder::Gzip(out) => out.finish()?.flush(),
            RecordFileEncoder::Zstd(out) => out.finish()?.flush(),
        }
    }
}

/// Creates an output file. The name `-` means standard output.
///
/// # Errors
/// The file cannot be created.
pub fn create_file_or_stdout(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    Ok(match path.as_os_str() == "-" {
        true => Box::new(io::stdout()),
        false => Box::new(File::create(path)?),
    })
}

/// Reads a plain or compressed file, and passes each record of a request to `take`.
///
/// # Errors
/// The file cannot be read, or a line is not a record.
pub fn read_records(path: &Path, take: impl FnMut(RequestRecord)) -> Result<(), RecordError> {
    read_records_from(File::open(path)?, take)
}

/// Reads records from `input`, like [`read_records`].
///
/// # Errors
/// The input cannot be read, or a line is not a record.
pub fn read_records_from<'a>(
    input: impl Read + 'a,
    mut take: impl FnMut(RequestRecord),
) -> Result<(), RecordError> {
    let mut file = BufReader::new(input);
    let magic = file.fill_buf()?;
    let all: Box<dyn Read + 'a> = if magic.starts_with(&[0x1f, 0x8b]) {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::stream::read::Decoder::new(file)?)
    } else {
        Box::new(file)
    };
    let mut all = BufReader::new(all);
    let mut line = Vec::new();
    let mut number = 0u64;
    loop {
        line.clear();
        number += 1;
        // A line longer than `LINE_BYTES_MAX` is cut, and is therefore not a valid record.
        let got = all
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?;
        if got == 0 {
            return Ok(());
        }
        if line.starts_with(PLAYER) {
            continue;
        }
        let record = serde_json::from_slice(&line);
        take(record.map_err(|error| RecordError::Line { number, error })?);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_from_each_compression() {
        let folder = tempfile::tempdir().unwrap();
        let record = RequestRecord {
            n: 7,
            due_ms: 1.5,
            sent_ms: Some(1.6),
            first_ms: None,
            end_ms: 9.25,
            step: 2,
            kind: RequestKind::Segment,
            status: 0,
            bytes: 12,
            fault: Some(FailureKind::Truncated),
            late: true,
            abandoned: true,
            url: "http://host/a?b=\"c\"".into(),
            viewer: Some("5a".into()),
        };
        for name in ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"] {
            let path = folder.path().join(name);
            let mut out = RecordWriter::create(&path).unwrap();
            out.write_lines(&vec![record.clone(); 3]).unwrap();
            out.finish_file().unwrap();
            let mut found = Vec::new();
            read_records(&path, |record| found.push(record)).unwrap();
            assert_eq!(found, vec![record.clone(); 3], "{name}");
        }
        let path = folder.path().join("b");
        std::fs::write(&path, "{}\n").unwrap();
        assert!(
            read_records(&path, |_| {})
                .unwrap_err()
                .to_string()
                .starts_with("line 1")
        );
    }
}
