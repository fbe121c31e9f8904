//! An error of a file access, with the path of the file.

use std::io;
use std::path::{Path, PathBuf};

/// A file or folder that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot access {}: {}", path.display(), net::describe_io_error(source))]
pub struct FileError {
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    pub(crate) fn new(path: &Path, source: io::Error) -> FileError {
        FileError {
            path: path.to_owned(),
            source,
        }
    }
}
