//! Why an experiment cannot continue.

use super::file_error::FileError;
use super::folder::FolderError;
use super::record::RecordFileError;
use super::source::SourceError;

/// An error that concerns all runs. Errors of a single run are in its record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExperimentError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Records(#[from] RecordFileError),
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The agents cannot be reached.
    #[cfg(feature = "nats")]
    #[error("{0}")]
    Agents(Box<dyn std::error::Error + Send + Sync>),
}
