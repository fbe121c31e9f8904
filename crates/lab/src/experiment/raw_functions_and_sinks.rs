//! Functions and sinks as written in a document, either with a command or with the name of a
//! built-in function.

use super::built_in_servers_and_clients::{BuiltInFunctionError, find_built_in_function};
use super::document;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// A function as written in a document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawFunction {
    run: Option<Spanned<String>>,
    r#use: Option<Spanned<String>>,
    #[serde(default)]
    with: BTreeMap<String, Value>,
    at: Option<Spanned<String>>,
    port: Spanned<u16>,
    health: Option<Spanned<String>>,
    cpus: Option<Spanned<Value>>,
    #[serde(default)]
    input: Vec<Spanned<String>>,
}

/// A sink as written in a document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawSink {
    run: Option<Spanned<String>>,
    r#use: Option<Spanned<String>>,
    #[serde(default)]
    with: BTreeMap<String, Value>,
    at: Option<Spanned<String>>,
    cpus: Option<Spanned<Value>>,
    #[serde(default)]
    input: Vec<Spanned<String>>,
    #[serde(default)]
    measure: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    series: BTreeMap<Spanned<String>, document::SeriesSource>,
    #[serde(default)]
    histogram: BTreeMap<Spanned<String>, document::HistogramSource>,
    late_ms: Option<Spanned<String>>,
    #[serde(default)]
    warm_up: u32,
    timeout: Option<Spanned<String>>,
}

impl TryFrom<RawFunction> for document::FunctionSpec {
    type Error = FunctionOrSinkError;

    fn try_from(written: RawFunction) -> Result<document::FunctionSpec, FunctionOrSinkError> {
        let (run, health) =
            resolve_run_or_built_in(written.run, written.r#use, written.with, "command")?;
        Ok(document::FunctionSpec {
            run,
            at: written.at,
            port: written.port,
            cpus: written.cpus,
            health: written.health.or(health),
            input: written.input,
        })
    }
}

impl TryFrom<RawSink> for document::SinkSpec {
    type Error = FunctionOrSinkError;

    fn try_from(written: RawSink) -> Result<document::SinkSpec, FunctionOrSinkError> {
        let (run, _) =
            resolve_run_or_built_in(written.run, written.r#use, written.with, "measure")?;
        Ok(document::SinkSpec {
            run,
            at: written.at,
            input: written.input,
            cpus: written.cpus,
            measure: written.measure,
            series: written.series,
            histogram: written.histogram,
            late_ms: written.late_ms,
            warm_up: written.warm_up,
            timeout: written.timeout,
        })
    }
}

/// The reason why a function or a sink is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum FunctionOrSinkError {
    #[error("`with` needs a built-in function; name it with use = FUNCTION")]
    WithoutUse,
    #[error("both run and use are given; write run = COMMAND or use = FUNCTION")]
    RunAndUse,
    #[error("no command is given; write run = COMMAND or use = FUNCTION")]
    NeitherRunNorUse,
    #[error("invalid value of with.{0}; write a text, a number, or true or false")]
    ParameterType(String),
    #[error(transparent)]
    BuiltIn(#[from] BuiltInFunctionError),
}

type SpannedText = Spanned<String>;

/// Returns the command. For a built-in function, also returns its health check, if any.
fn resolve_run_or_built_in(
    run: Option<SpannedText>,
    name: Option<SpannedText>,
    with: BTreeMap<String, Value>,
    role: &str,
) -> Result<(SpannedText, Option<SpannedText>), FunctionOrSinkError> {
    match (run, name) {
        (Some(run), None) if with.is_empty() => Ok((run, None)),
        (Some(_), None) => Err(FunctionOrSinkError::WithoutUse),
        (Some(_), Some(_)) => Err(FunctionOrSinkError::RunAndUse),
        (None, None) => Err(FunctionOrSinkError::NeitherRunNorUse),
        (None, Some(name)) => {
            let found = find_built_in_function(name.get_ref(), role)?;
            let text = |(key, value)| match super::scalar_text(&value) {
                Some(text) => Ok((key, text)),
                None => Err(FunctionOrSinkError::ParameterType(key)),
            };
            let with: BTreeMap<String, String> =
                with.into_iter().map(text).collect::<Result<_, _>>()?;
            let spanned = |text: String| Spanned::new(name.span(), text);
            let health = found.health.clone().map(spanned);
            Ok((
                Spanned::new(name.span(), found.command_line(&with)?),
                health,
            ))
        }
    }
}
