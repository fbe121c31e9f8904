//! The records of a result folder. During the experiment, the records are in `runs.jsonl`. With the
//! report, a compressed copy is stored in `runs.jsonl.zst`.

use super::file_error::FileError;
use super::record::{RecordFileError, RunRecord, parse_json_lines};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
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
    /// A file cannot be read or written, or `runs.jsonl.zst` holds more records than `runs.jsonl`.
    pub fn compress_records(folder: &Path) -> Result<(), FileError> {
        let (plain, packed) = (folder.join("runs.jsonl"), folder.join("runs.jsonl.zst"));
        let mut from = match File::open(&plain) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(|error| FileError::new(&plain, error))?,
        };
        // Writes to a temporary file first, because another process may read the folder meanwhile.
        let part = folder.join("runs.jsonl.zst.part");
        check_no_record_is_lost(&mut from, &packed)
            .and_then(|()| write_compressed(&mut from, &part))
            .and_then(|()| std::fs::rename(&part, &packed))
            .map_err(|error| FileError::new(&packed, error))
    }
}

/// Restores `plain`, the file `runs.jsonl`, from `runs.jsonl.zst` if only the compressed file exists.
/// A resumed experiment then appends to its earlier records.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn restore_records(plain: &Path) -> Result<(), FileError> {
    let packed = plain.with_extension("jsonl.zst");
    if plain.exists() || !packed.exists() {
        return Ok(());
    }
    let text = read_compressed(&packed).map_err(|error| FileError::new(&packed, error))?;
    let part = plain.with_extension(format!("jsonl.{}.part", std::process::id()));
    let restored = std::fs::write(&part, text).and_then(|()| {
        // Unlike `rename`, `hard_link` does not replace a file that another process has created and
        // locked meanwhile.
        match std::fs::hard_link(&part, plain) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    });
    let _ = std::fs::remove_file(&part);
    restored.map_err(|error| FileError::new(plain, error))
}

/// Checks that the compressed file does not hold more records than the file that replaces it.
fn check_no_record_is_lost(plain: &mut File, packed: &Path) -> io::Result<()> {
    // A missing archive has no records. The records of a damaged archive cannot be read anyway.
    let archived = match File::open(packed) {
        Ok(file) => zstd::stream::read::Decoder::new(file)
            .and_then(|decoder| count_lines(decoder.take(BYTES_MAX)))
            .unwrap_or(0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let present = count_lines(&mut *plain)?;
    plain.rewind()?;
    match archived > present {
        true => Err(io::Error::other(format!(
            "it holds {archived} records and runs.jsonl only {present}; remove the wrong one of the two files"
        ))),
        false => Ok(()),
    }
}

fn count_lines(text: impl Read) -> io::Result<usize> {
    let mut reader = BufReader::new(text);
    let mut lines = 0;
    loop {
        let block = reader.fill_buf()?;
        let len = block.len();
        if len == 0 {
            return Ok(lines);
        }
        lines += block.iter().filter(|byte| **byte == b'\n').count();
        reader.consume(len);
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

    /// Writes `records` records to `runs.jsonl`.
    fn write_records(folder: &Path, records: usize) {
        let line = serde_json::to_string(&RunRecord::default()).unwrap() + "\n";
        std::fs::write(folder.join("runs.jsonl"), line.repeat(records)).unwrap();
    }

    #[test]
    fn only_missing_records_are_restored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        restore_records(&path.join("runs.jsonl")).unwrap();
        assert!(!path.join("runs.jsonl").exists());
        write_records(path, 2);
        RunRecord::compress_records(path).unwrap();
        write_records(path, 3);
        restore_records(&path.join("runs.jsonl")).unwrap();
        let records = || RunRecord::read_record_file(&path.join("runs.jsonl")).unwrap();
        assert_eq!(records().len(), 3);
        std::fs::remove_file(path.join("runs.jsonl")).unwrap();
        restore_records(&path.join("runs.jsonl")).unwrap();
        assert_eq!(records().len(), 2);
        assert_eq!(std::fs::read_dir(path).unwrap().count(), 2);
    }

    #[test]
    fn an_archive_is_not_replaced_by_fewer_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        write_records(path, 2);
        RunRecord::compress_records(path).unwrap();
        write_records(path, 1);
        let error = RunRecord::compress_records(path).unwrap_err().to_string();
        assert!(error.contains("2 records"), "{error}");
        std::fs::remove_file(path.join("runs.jsonl")).unwrap();
        assert_eq!(RunRecord::read_all_records(path).unwrap().len(), 2);
        // A damaged archive is replaced.
        write_records(path, 1);
        std::fs::write(path.join("runs.jsonl.zst"), "no zstd").unwrap();
        RunRecord::compress_records(path).unwrap();
    }
}
