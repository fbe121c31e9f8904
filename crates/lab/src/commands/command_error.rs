//! Errors of commands, grouped by exit status.

use crate::experiment::{ExperimentError, FileError, RecordFileError};
use crate::link::UnavailableError;
use crate::report::{FindingsError, ReportFileError};
use net::config::UsageError;

/// The reason why a command ends early.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The usage is wrong; the exit status is 2.
    Usage(UsageError),
    /// The command failed; the exit status is 1.
    Failed(String),
    /// The machine lacks a capability; the exit status is 3.
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
fail_from!(crate::agent::AgentStartError);

impl From<String> for CommandError {
    fn from(what: String) -> CommandError {
        CommandError::Failed(what)
    }
}
