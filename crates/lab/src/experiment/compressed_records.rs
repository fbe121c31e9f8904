//! The records of a result folder. During the experiment, the records are in `runs.jsonl`. With the
//! report, a compressed copy is stored in `runs.jsonl.zst`.

use super::file_error::FileError;
use super::record::{RecordFileError, RunRecord, parse_json_lines};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Size limit of the decompressed records, in bytes.
const BYTES_MAX: u64 = 1 << 30;
/// Compression level of zstd. The records are compressed only once per report, so a small file
/// matters more than a short time.
const COMPRESSION_LEVEL: i32 = 12;

impl RunRecord {
    /// Reads the records of a result folder. If `runs.jsonl` does not exist, reads
    /// `runs.jsonl.zst`.
    ///
    /// # Errors
    /// The file cannot be read or is too long, or a line is not a record.
    pub fn read_all_records(folder: &Path) -> Result<Vec<RunRecord>, RecordFileError> {
        let (plain, packed) = (folder.join("runs.jsonl"), folder.join("runs.jsonl.zst"));
        if plain.exists() || !packed.exists() {
            return RunRecord::read_record_file(&plain);
        }
        let text = read_compressed(&packed).map_err(|error| FileError::new(&packed, error))?;
        parse_json_lines(&packed, &text)
    }

    /// Compresses `runs.jsonl` to `runs.jsonl.zst`, so that the report can be reproduced from a
    /// small file. Does nothing if `runs.jsonl` does not exist.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn compress_records(folder: &Path) -> Result<(), FileError> {
        let (plain, packed) = (folder.join("runs.jsonl"), folder.join("runs.jsonl.zst"));
        let mut from = match File::open(&plain) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(|error| FileError::new(&plain, error))?,
        };
        // Writes to a temporary file first, because another process may read the folder meanwhile.
        let part = folder.join("runs.jsonl.zst.part");
        write_compressed(&mut from, &part)
            .and_then(|()| std::fs::rename(&part, &packed))
            .map_err(|error| FileError::new(&packed, error))
    }
}

fn read_compressed(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let decoder = zstd::stream::read::Decoder::new(File::open(path)?)?;
    decoder.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 > BYTES_MAX {
        true => Err(io::Error::other(format!("longer than {BYTES_MAX} bytes"))),
        false => Ok(text),
    }
}

fn write_compressed(from: &mut File, path: &Path) -> io::Result<()> {
    let mut out = zstd::stream::write::Encoder::new(File::create(path)?, COMPRESSION_LEVEL)?;
    io::copy(from, &mut out)?;
    out.finish()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_records_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(RunRecord::read_all_records(path).unwrap(), []);
        RunRecord::compress_records(path).unwrap();
        let record = RunRecord {
            round: 3,
            ..RunRecord::default()
        };
        let line = serde_json::to_string(&record).unwrap() + "\n";
        std::fs::write(path.join("runs.jsonl"), line.repeat(2)).unwrap();
        RunRecord::compress_records(path).unwrap();
        std::fs::remove_file(path.join("runs.jsonl")).unwrap();
        assert_eq!(
            RunRecord::read_all_records(path).unwrap(),
            [record.clone(), record]
        );
        std::fs::write(path.join("runs.jsonl.zst"), "no zstd").unwrap();
        assert!(RunRecord::read_all_records(path).is_err());
    }
}
