//! Errors that end a command, and their exit codes.

use crate::client::FailureKind;
use crate::generator_threads::GeneratorError;
use crate::rate::manifest_targets::ManifestError;
use crate::report::result_files::ResultFileError;
use net::config::UsageError;
use std::io;
use std::process::ExitCode;
use url::Url;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The usage or the configuration is wrong.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// A manifest's segments cannot be listed.
    #[error(transparent)]
    ListTargets(#[from] ManifestError),
    /// The request for a file's length failed. Contains the URL, the kind of the failure, and the
    /// details.
    #[error("cannot fetch {0}: {1}: {2}; check the URL, and that the server runs")]
    FetchLength(Box<Url>, FailureKind, Box<str>),
    /// The server does not support range requests.
    #[error("{url}: no 206 response to a range request (status {status}); use another server")]
    NoRanges {
        /// URL of the file.
        url: Box<Url>,
        /// Status of the received response.
        status: u16,
    },
    /// The run failed.
    #[error(transparent)]
    Generate(#[from] GeneratorError),
    /// A result file cannot be read.
    #[error(transparent)]
    ReadResult(#[from] ResultFileError),
    /// The result cannot be encoded as JSON.
    #[error("cannot encode the result: {0}")]
    EncodeResult(#[from] serde_json::Error),
    /// An output file cannot be written. Contains the path of the file and the cause.
    #[error("cannot write {0}: {cause}", cause = net::describe_io_error(.1))]
    WriteFile(String, io::Error),
    /// The event loop cannot be started.
    #[error("cannot start an event loop: {0}; allow more open files")]
    StartRuntime(io::Error),
    /// The thread that waits for signals cannot be started.
    #[error("cannot start the signal thread: {0}; allow more threads")]
    StartSignalThread(io::Error),
}

impl CommandError {
    /// Returns the exit code, which is 2 for wrong usage and 1 for any other error.
    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            CommandError::Usage(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}
