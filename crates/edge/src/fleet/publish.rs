//! `headwater edge purge`, `warm` and `reload`: send a command to all edges.

use std::io::{self, Write};
use std::path::PathBuf;

use async_nats::jetstream;
use async_nats::{Client, HeaderMap, Subscriber};
use clap::{Arg, ArgAction, ArgMatches, Command};
use futures_util::StreamExt;
use net::FatalError;
use net::config::{UsageError, parse_duration};
use serde_json::{Value, json};

use super::command::{COMMANDS, CommandMessage};
use super::nats_connection::{connect_to_nats, read_connect_options};
use super::{STREAM, SUBJECT_PREFIX};
use crate::config::NatsSettings;

/// Defines the subcommands of `headwater edge` that send commands to the fleet.
pub fn define_fleet_commands() -> [Command; 3] {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let purge = Command::new("purge")
        .about("Remove objects from the caches of all edges")
        .after_help("Example:\n  headwater edge purge --prefix /films/tos/ --nats nats://nats:4222")
        .arg(text(
            "url",
            "PATH",
            "Object to remove, with all its variants",
        ))
        .arg(text("prefix", "PATH", "Beginning of the paths to remove"))
        .arg(text("tag", "TAG", "Surrogate-Key of the objects to remove"))
        .arg(
            Arg::new("soft")
                .long("soft")
                .action(ArgAction::SetTrue)
                .help("Revalidate the objects at their next use instead of removing them"),
        );
    let warm = Command::new("warm")
        .about("Fetch URLs into the caches of all edges")
        .arg(
            Arg::new("urls")
                .value_name("URL")
                .num_args(1..)
                .required(true)
                .help("Paths or URLs to fetch"),
        )
        .arg(text(
            "base",
            "PATH",
            "Folder of relative URLs, such as /film/",
        ));
    let reload = Command::new("reload").about("Make all edges read their settings again");
    [purge, warm, reload].map(|command| {
        command
            .arg(
                text(
                    "nats",
                    "URL",
                    "NATS server: nats://HOST:PORT or tls://HOST:PORT",
                )
                .env("HEADWATER_NATS")
                .hide_env(true)
                .required(true),
            )
            .arg(text(
                "nats-creds",
                "FILE",
                "Credentials file of NATS, as written by nsc",
            ))
            .arg(text(
                "nats-token-file",
                "FILE",
                "File with the token of the NATS server",
            ))
            .arg(text(
                "nats-ca",
                "FILE",
                "Authorities for the NATS server [default: the system's]",
            ))
            .arg(text(
                "edges",
                "N",
                "Number of edges to wait for; fail if fewer respond",
            ))
            .arg(text("wait", "DURATION", "Time to wait for results").default_value("5s"))
    })
}

/// Publishes a command, and prints the result of each edge as a line of JSON. Returns `None` if
/// there is no command with this name.
///
/// # Errors
/// [`FatalError`] when the command is invalid, the server is unavailable, an edge failed, or too
/// few edges responded.
pub fn run_fleet_command(name: &str, flags: &ArgMatches) -> Option<Result<(), FatalError>> {
    COMMANDS.contains(&name).then(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(FatalError::cannot(name))?;
        runtime.block_on(publish_and_collect_results(name, flags))
    })
}

async fn publish_and_collect_results(name: &str, flags: &ArgMatches) -> Result<(), FatalError> {
    let one = |name: &str| flags.get_one::<String>(name).cloned();
    let number = |text: String| text.parse().ok().filter(|edges| *edges > 0);
    let edges: Option<usize> = match one("edges") {
        None => None,
        Some(text) => {
            Some(number(text).ok_or_else(|| usage_error("--edges must be a number above 0"))?)
        }
    };
    let wait = parse_duration(&one("wait").unwrap_or_default());
    let wait = wait.map_err(|why| usage_error(&format!("--wait {why}")))?;
    let settings = NatsSettings {
        url: one("nats").unwrap_or_default(),
        creds: one("nats-creds").map(PathBuf::from),
        token_file: one("nats-token-file").map(PathBuf::from),
        ca: one("nats-ca").map(PathBuf::from),
        node: String::new(),
    };
    let failed = |error: io::Error| FatalError::cannot("--nats")(error);
    let options = read_connect_options(&settings).await.map_err(failed)?;
    let client = connect_to_nats(&settings, options).await.map_err(failed)?;
    let inbox = client.new_inbox();
    let results = client.subscribe(inbox.clone()).await;
    let results = results.map_err(|error| failed(io::Error::other(error)))?;
    let message = build_message(name, flags, &inbox)?;
    publish_message(&client, name, &message)
        .await
        .map_err(failed)?;
    let mut tally = CommandResultTally::default();
    let _ = tokio::time::timeout(wait, tally.print_results(results, edges)).await;
    tally.check_all_succeeded(edges).map_err(failed)
}

fn usage_error(why: &str) -> FatalError {
    FatalError::Usage(UsageError(why.into()))
}

/// Builds the message. The name of the inbox is unique, so its last part also serves as the
/// command's id.
fn build_message(name: &str, flags: &ArgMatches, inbox: &str) -> Result<Value, FatalError> {
    let id = inbox.rsplit('.').next().unwrap_or(inbox);
    let mut message = json!({ "id": id, "reply": inbox });
    let given = |field: &str| flags.try_get_one::<String>(field).ok().flatten();
    for field in ["url", "prefix", "tag", "base"] {
        if let Some(value) = given(field) {
            message[field] = json!(value);
        }
    }
    if let Ok(Some(true)) = flags.try_get_one::<bool>("soft") {
        message["soft"] = json!(true);
    }
    if let Ok(Some(urls)) = flags.try_get_many::<String>("urls") {
        message["urls"] = json!(urls.collect::<Vec<_>>());
    }
    // Checks the message as the edges do, so that an invalid message is not sent.
    let parsed = CommandMessage::parse_message(message.to_string().as_bytes());
    let parsed = parsed.and_then(|message| message.into_command(name));
    parsed.map_err(|why| usage_error(&format!("edge {name}: {why}")))?;
    Ok(message)
}

/// Sends the command. If a stream exists, waits until the stream has stored the command.
async fn publish_message(client: &Client, name: &str, message: &Value) -> io::Result<()> {
    let context = jetstream::new(client.clone());
    let (subject, bytes) = (format!("{SUBJECT_PREFIX}{name}"), message.to_string());
    if context.get_stream(STREAM).await.is_err() {
        client
            .publish(subject, bytes.into())
            .await
            .map_err(io::Error::other)?;
        return client.flush().await.map_err(io::Error::other);
    }
    let mut headers = HeaderMap::new();
    let id = message["id"].as_str().unwrap_or_default();
    headers.insert(async_nats::header::NATS_MESSAGE_ID, id);
    let stored = context.publish_with_headers(subject, headers, bytes.into());
    let stored = stored.await.map_err(io::Error::other)?;
    stored.await.map_err(io::Error::other)?;
    Ok(())
}

/// The number of edges that have responded, and the number of edges that failed.
#[derive(Default)]
struct CommandResultTally {
    responded: usize,
    failed: usize,
}

impl CommandResultTally {
    /// Prints the results as they arrive, until `edges` edges have responded. If `edges` is `None`,
    /// only the caller's timeout ends the output.
    async fn print_results(&mut self, mut results: Subscriber, edges: Option<usize>) {
        while edges.is_none_or(|edges| self.responded < edges)
            && let Some(message) = results.next().await
        {
            let result: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
            // The error is ignored, because the reader may have closed the pipe.
            let _ = writeln!(io::stdout(), "{result}");
            self.responded += 1;
            self.failed += usize::from(result["ok"] != json!(true));
        }
    }

    fn check_all_succeeded(&self, edges: Option<usize>) -> io::Result<()> {
        let (responded, failed) = (self.responded, self.failed);
        if failed > 0 {
            return Err(io::Error::other(format!("{failed} edges failed")));
        }
        match edges {
            Some(edges) if responded < edges => {
                let why = format!("{responded} of {edges} edges responded; see --wait");
                Err(io::Error::other(why))
            }
            _ => Ok(()),
        }
    }
}
