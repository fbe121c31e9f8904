//! The reasons why the results of a run are not used.

use super::arms::UnknownPlaceholder;
use super::cpus::InvalidCpus;
use super::disturbance_bounds::BoundExceeded;
use super::file_error::FileError;
use super::quantity::QuantityError;
use super::series_and_histograms::SinkResultError;
use crate::link::LinkSettingError;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// The reason why a run was aborted or discarded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("stopped")]
    Stopped,
    #[error("cannot deploy the run: {0}")]
    Deploy(#[from] io::Error),
    #[error("link {name}: {fault}")]
    Link { name: String, fault: LinkFault },
    #[error("no such {kind}: {name}")]
    Missing { kind: &'static str, name: String },
    #[error("function {name}: port {port} is not free: {source}")]
    Port {
        name: String,
        port: u16,
        source: io::Error,
    },
    #[error("cannot start `{command}`: {source}")]
    Start { command: String, source: io::Error },
    #[error(transparent)]
    Output(#[from] FileError),
    #[error(transparent)]
    Placeholder(#[from] UnknownPlaceholder),
    #[error(transparent)]
    Cpus(#[from] InvalidCpus),
    #[error("function {name}: not healthy on port {port}{last_output}")]
    Unhealthy {
        name: String,
        port: u16,
        last_output: String,
    },
    #[error("function {name}: exited: {status}{last_output}")]
    FunctionEnded {
        name: String,
        status: ExitStatus,
        last_output: String,
    },
    #[error("sink {name}: {status}{last_output}")]
    SinkFailed {
        name: String,
        status: ExitStatus,
        last_output: String,
    },
    #[error("sink {name}: not finished within {timeout:?}{last_output}; set a longer timeout")]
    SinkTimeout {
        name: String,
        timeout: Duration,
        last_output: String,
    },
    #[error("cannot watch {name}: {source}")]
    Watch { name: String, source: io::Error },
    #[error("cannot count the packets of a link: {0}")]
    Counters(io::Error),
    #[error("sink {name}: {fault}{last_output}")]
    Sink {
        name: String,
        fault: Box<SinkOutputFault>,
        last_output: String,
    },
    #[error("sink {sink}: {quantity}: {source}")]
    QuantityLocator {
        sink: String,
        quantity: String,
        source: QuantityError,
    },
    #[error(transparent)]
    Results(#[from] SinkResultError),
    #[error(transparent)]
    Bound(#[from] BoundExceeded),
    #[error(transparent)]
    Records(#[from] super::record::RecordFileError),
    /// An agent failed or was lost, or the agents cannot execute the run.
    #[cfg(feature = "nats")]
    #[error("{0}")]
    Agents(Box<dyn std::error::Error + Send + Sync>),
}

impl RunError {
    /// Returns whether the next attempt may succeed without any correction. That is possible if the
    /// machine was disturbed or if an agent failed.
    pub(super) fn can_succeed_on_retry(&self) -> bool {
        match self {
            RunError::Bound(_) => true,
            #[cfg(feature = "nats")]
            RunError::Agents(_) => true,
            _ => false,
        }
    }
}

/// The reason why a link cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkFault {
    #[error(transparent)]
    Setting(#[from] LinkSettingError),
    #[error(transparent)]
    Placeholder(#[from] UnknownPlaceholder),
    #[error("cannot be started: {0}")]
    Start(io::Error),
    #[error("cannot start a competing {algorithm} flow: {source}")]
    Compete {
        algorithm: String,
        source: io::Error,
    },
}

/// The reason why the results of a sink cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SinkOutputFault {
    #[error("cannot read the output: {0}")]
    Read(#[from] io::Error),
    #[error("the output is longer than {0} bytes")]
    TooLong(u64),
    #[error("the output is not UTF-8")]
    NotUtf8,
    #[error(transparent)]
    QuantityLocator(#[from] QuantityError),
    #[error(transparent)]
    Results(#[from] SinkResultError),
}
