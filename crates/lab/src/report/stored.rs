//! Reads reports that are stored as JSON or as compressed JSON.

use super::ExperimentReport;
use crate::experiment::FileError;
use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Maximum length of a decompressed report in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// The reason why a stored report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportFileError {
    /// A folder or file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A report that is longer than the limit.
    #[error("{} is longer than {BYTES_MAX} bytes", .0.display())]
    TooLong(PathBuf),
    /// A file that is not a report.
    #[error("invalid report {}: {source}; run the experiment of an earlier version again", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
}

/// Reads `report.json.gz` or `report.json` of a folder. Returns `None` if neither file exists.
///
/// # Errors
/// The file cannot be read, is too long, or is not a report.
pub fn read_report(folder: &Path) -> Result<Option<ExperimentReport>, ReportFileError> {
    read_report_as(folder)
}

/// Reads a stored report as the type `T`, such as generic JSON.
pub(super) fn read_report_as<T: DeserializeOwned>(
    folder: &Path,
) -> Result<Option<T>, ReportFileError> {
    for name in ["report.json.gz", "report.json"] {
        let path = folder.join(name);
        match File::open(&path) {
            Ok(file) => {
                let text = match name.ends_with(".gz") {
                    true => read_bounded(GzDecoder::new(file), &path)?,
                    false => read_bounded(file, &path)?,
                };
                let report = serde_json::from_slice(&text);
                let invalid = |source| ReportFileError::Json { path, source };
                return report.map(Some).map_err(invalid);
            }
            Err(error) if is_not_found_error(&error) => {}
            Err(error) => return Err(FileError::new(&path, error).into()),
        }
    }
    Ok(None)
}

/// Returns whether the error means that the file does not exist, or that its parent is not a
/// folder.
fn is_not_found_error(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn read_bounded(file: impl Read, path: &Path) -> Result<Vec<u8>, ReportFileError> {
    let mut text = Vec::new();
    let read = file.take(BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| FileError::new(path, error))?;
    match text.len() as u64 > BYTES_MAX {
        true => Err(ReportFileError::TooLong(path.to_owned())),
        false => Ok(text),
    }
}
