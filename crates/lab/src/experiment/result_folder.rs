//! The result folder of an experiment.

use super::compressed_records::restore_records;
use super::file_error::FileError;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

/// Folders of an experiment.
pub(crate) struct DocumentAndOutputFolders {
    /// Folder of the document.
    pub(crate) base: PathBuf,
    pub(crate) out: PathBuf,
}

impl DocumentAndOutputFolders {
    /// Makes the paths absolute, because commands run in other working folders.
    pub(super) fn from_paths(
        base: &Path,
        out: &Path,
    ) -> Result<DocumentAndOutputFolders, FileError> {
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(|error| FileError::new(path, error));
        Ok(DocumentAndOutputFolders {
            base: absolute(base)?,
            out: absolute(out)?,
        })
    }
}

/// Opens and locks the records of the runs for appending. Restores a missing file from the compressed
/// records.
pub(super) fn open_run_records(records: &Path) -> Result<File, FileError> {
    restore_records(records)?;
    open_records_for_append(records).map_err(|error| FileError::new(records, error))
}

/// Opens and locks a file of records for appending. Removes an incomplete last line.
pub(super) fn open_records_for_append(records: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(records)?;
    if file.try_lock().is_err() {
        return Err(std::io::Error::other("another run is using this folder"));
    }
    let text = fs::read(records)?;
    let last_newline = text.iter().rposition(|byte| *byte == b'\n');
    file.set_len(last_newline.map_or(0, |at| at as u64 + 1))?;
    Ok(file)
}

/// The reason why a folder cannot hold the results of a document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultFolderError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "{} holds runs of another document, or of an older version of this one; give another --out, \
         or remove it",
        .0.display()
    )]
    OtherDocument(PathBuf),
}

/// Returns whether a folder holds the results of this document.
#[cfg(feature = "nbmp")]
pub(crate) fn holds_results_of_document(out: &Path, text: &str) -> bool {
    fs::read_to_string(out.join("document.toml")).is_ok_and(|held| held == text)
}

/// Reserves a result folder for a document.
pub(super) fn reserve_folder_for_document(out: &Path, text: &str) -> Result<(), ResultFolderError> {
    let failed = |error| FileError::new(out, error);
    fs::create_dir_all(out).map_err(failed)?;
    let document_path = out.join("document.toml");
    match fs::read_to_string(&document_path) {
        Ok(same) if same == text => Ok(()),
        // A process that is killed before it writes the document leaves an empty file.
        Ok(other) if !other.is_empty() => Err(ResultFolderError::OtherDocument(out.to_owned())),
        _ => Ok(fs::write(document_path, text).map_err(failed)?),
    }
}
