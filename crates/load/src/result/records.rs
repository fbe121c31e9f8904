//! Raw records: one JSON object a line and request, compressed as the file's name says.

use crate::client::Fault;
use crate::rate::Kind;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// A request, in milliseconds of the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its number.
    pub n: u64,
    /// When it was due.
    pub due_ms: f64,
    /// When it was sent; none: it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_ms: Option<f64>,
    /// When the answer's first byte came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ms: Option<f64>,
    /// When it ended.
    pub end_ms: f64,
    /// Its step, from 0.
    pub step: u32,
    /// What it asked for.
    pub kind: Kind,
    /// The answer's status; 0: none.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// How it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// It waited for a free connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// How records of viewers begin, which stand between those of their requests.
const PLAYER: &[u8] = b"{\"record\":\"player\"";

/// A file of records that is being written.
pub struct Records(Out);

enum Out {
    Plain(BufWriter<File>),
    Gzip(Box<flate2::write::GzEncoder<BufWriter<File>>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, BufWriter<File>>>),
}

impl Records {
    /// Begins a file: compressed by zstd (`.zst`) or gzip (`.gz`), or plain.
    ///
    /// # Errors
    /// Those of the file.
    pub fn create(path: &Path) -> io::Result<Records> {
        let file = BufWriter::new(File::create(path)?);
        let extension = path.extension().and_then(|name| name.to_str());
        Ok(Records(match extension {
            Some("zst") => Out::Zstd(Box::new(zstd::stream::write::Encoder::new(file, 3)?)),
            Some("gz") => {
                let level = flate2::Compression::fast();
                Out::Gzip(Box::new(flate2::write::GzEncoder::new(file, level)))
            }
            _ => Out::Plain(file),
        }))
    }

    /// Writes records.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write<T: Serialize>(&mut self, records: &[T]) -> io::Result<()> {
        let mut text = Vec::with_capacity(records.len() * 160);
        for record in records {
            serde_json::to_writer(&mut text, record)?;
            text.push(b'\n');
        }
        match &mut self.0 {
            Out::Plain(out) => out.write_all(&text),
            Out::Gzip(out) => out.write_all(&text),
            Out::Zstd(out) => out.write_all(&text),
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Out::Plain(mut out) => out.flush(),
            Out::Gzip(out) => out.finish()?.flush(),
            Out::Zstd(out) => out.finish()?.flush(),
        }
    }
}

/// Reads records, whatever their compression, and shows each.
///
/// # Errors
/// The line, and what is wrong with it.
pub fn read(path: &Path, mut take: impl FnMut(Record)) -> Result<(), String> {
    let wrong = |error: io::Error| error.to_string();
    let mut file = BufReader::new(File::open(path).map_err(wrong)?);
    let magic = file.fill_buf().map_err(wrong)?;
    let all: Box<dyn Read> = if magic.starts_with(&[0x1f, 0x8b]) {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::stream::read::Decoder::new(file).map_err(wrong)?)
    } else {
        Box::new(file)
    };
    // A record has some 300 bytes: a longer line is none.
    let mut all = BufReader::new(all);
    let mut line = Vec::new();
    let mut number = 0u64;
    loop {
        line.clear();
        number += 1;
        let got = all
            .by_ref()
            .take(4096)
            .read_until(b'\n', &mut line)
            .map_err(wrong)?;
        if got == 0 {
            return Ok(());
        }
        if line.starts_with(PLAYER) {
            continue;
        }
        let record = serde_json::from_slice(&line);
        take(record.map_err(|error| format!("line {number}: no record: {error}"))?);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_from_each_kind_of_file() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record {
            n: 7,
            due_ms: 1.5,
            sent_ms: Some(1.6),
            first_ms: None,
            end_ms: 9.25,
            step: 2,
            kind: Kind::Segment,
            status: 0,
            bytes: 12,
            fault: Some(Fault::Truncated),
            late: true,
        };
        for name in ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"] {
            let path = folder.path().join(name);
            let mut out = Records::create(&path).unwrap();
            out.write(&[record; 3]).unwrap();
            out.finish().unwrap();
            let mut found = Vec::new();
            read(&path, |record| found.push(record)).unwrap();
            assert_eq!(found, [record; 3], "{name}");
        }
        let path = folder.path().join("b");
        std::fs::write(&path, "{}\n").unwrap();
        assert!(read(&path, |_| {}).unwrap_err().starts_with("line 1"));
    }
}
