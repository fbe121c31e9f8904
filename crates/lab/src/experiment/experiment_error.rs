//! The reasons why an experiment cannot continue.

use super::file_error::FileError;
use super::record::RecordFileError;
use super::result_folder::ResultFolderError;
use super::source::SourceError;
use std::path::PathBuf;

/// An error that concerns all runs. The error of a single run is in the record of that run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExperimentError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Folder(#[from] ResultFolderError),
    #[error(transparent)]
    Records(#[from] RecordFileError),
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The first attempt of every arm failed in the same way.
    #[error(
        "the first attempt of every arm ({arms}) failed in the same way: {reason}; correct the program or the \
         document, remove {}, and repeat the command",
        out.display()
    )]
    EveryArmFailed {
        /// Number of arms.
        arms: usize,
        /// Reason of the last of these failures.
        reason: String,
        /// The result folder.
        out: PathBuf,
    },
    /// The agents cannot be reached.
    #[cfg(feature = "nats")]
    #[error("{0}")]
    Agents(Box<dyn std::error::Error + Send + Sync>),
}
