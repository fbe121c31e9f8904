//! Errors of commands, by exit status.

use crate::experiment::{ExperimentError, FileError, RecordFileError};
use crate::link::UnavailableError;
use crate::report::{FindingsError, ReportFileError};
use net::config::UsageError;

/// The reason why a command ends early.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// Wrong usage: exit status 2.
    Usage(UsageError),
    /// Failure: exit status 1.
    Failed(String),
    /// The machine lacks a capability: exit status 3.
    Unable(String),
}

impl From<UsageError> for CommandError {
    fn from(wrong: UsageError) -> CommandError {
        CommandError::Usage(wrong)
    }
}

impl CommandError {
    pub(super) fn from_unavailable(error: UnavailableError) -> CommandError {
        CommandError::Unable(error.to_string())
    }
}

macro_rules! fail_from {
    ($($error:ty),*) => {$(
        impl From<$error> for CommandError {
            fn from(error: $error) -> CommandError {
                CommandError::Failed(error.to_string())
            }
        }
    )*};
}

fail_from!(
    ExperimentError,
    FileError,
    RecordFileError,
    ReportFileError,
    FindingsError,
    serde_json::Error
);
#[cfg(feature = "nats")]
fail_from!(crate::agent::AgentError);

impl From<String> for CommandError {
    fn from(what: String) -> CommandError {
        CommandError::Failed(what)
    }
}
