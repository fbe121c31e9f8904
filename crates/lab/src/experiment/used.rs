//! Functions and sinks as they are written: with a command, or the name of one that is built in.

use super::document;
use crate::nbmp::functions::find;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// A function as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Function {
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

/// A sink as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Sink {
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
    series: BTreeMap<Spanned<String>, document::Series>,
    #[serde(default)]
    histogram: BTreeMap<Spanned<String>, document::Histogram>,
    late_ms: Option<Spanned<String>>,
    #[serde(default)]
    warm_up: u32,
    timeout: Option<Spanned<String>>,
}

impl TryFrom<Function> for document::Function {
    type Error = String;

    fn try_from(written: Function) -> Result<document::Function, String> {
        let (run, health) = command(written.run, written.r#use, written.with, "command")?;
        Ok(document::Function {
            run,
            at: written.at,
            port: written.port,
            cpus: written.cpus,
            health: written.health.or(health),
            input: written.input,
        })
    }
}

impl TryFrom<Sink> for document::Sink {
    type Error = String;

    fn try_from(written: Sink) -> Result<document::Sink, String> {
        let (run, _) = command(written.run, written.r#use, written.with, "measure")?;
        Ok(document::Sink {
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

type Text = Spanned<String>;

/// The command, and where a function that is built in says it is healthy.
fn command(
    run: Option<Text>,
    name: Option<Text>,
    with: BTreeMap<String, Value>,
    role: &str,
) -> Result<(Text, Option<Text>), String> {
    match (run, name) {
        (Some(run), None) if with.is_empty() => Ok((run, None)),
        (Some(_), None) => {
            Err("with is of functions that are built in: say which, with use".into())
        }
        (Some(_), Some(_)) => Err("either run = COMMAND or use = FUNCTION, not both".into()),
        (None, None) => Err("say run = COMMAND or use = FUNCTION".into()),
        (None, Some(name)) => {
            let found = find(name.get_ref(), role)?;
            let text = |(key, value)| match super::arms::plain(&value) {
                Some(text) => Ok((key, text)),
                None => Err(format!("with.{key} is a text, a number or a truth")),
            };
            let with: BTreeMap<String, String> =
                with.into_iter().map(text).collect::<Result<_, _>>()?;
            let spanned = |text: String| Spanned::new(name.span(), text);
            let health = found.health.clone().map(spanned);
            Ok((Spanned::new(name.span(), found.command(&with)?), health))
        }
    }
}
