//! Receives commands while the edge runs.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::{self, ErrorCode, stream};
use async_nats::{Client, Event};
use futures_util::StreamExt;
use net::metrics::Metrics;
use net::{FatalError, RunningProgram};

use super::executor::{CommandExecutor, FleetMetrics};
use super::nats_connection::{connect_to_nats, read_connect_options};
use super::{STREAM, SUBJECT_PREFIX, SUBJECTS};
use crate::config::NatsSettings;
use crate::reload::ReloadableEdge;

/// Time for which the stream stores a command. An edge that was down or disconnected for longer
/// misses the expired commands, so its disk tier may still contain purged objects.
const COMMAND_AGE_MAX: Duration = Duration::from_secs(3600);
/// Maximum total size of the stored commands, in bytes.
const STREAM_BYTES_MAX: i64 = 64 << 20;
/// Time after which the NATS server deletes the consumer of an edge that is down or disconnected.
const EDGE_ABSENCE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Time from a failure to connect or to receive commands until the next attempt.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

type CommandReceiveError = Box<dyn std::error::Error + Send + Sync>;

/// Starts the task that receives commands. `worker` is the index of the upstream connection pool
/// that the commands use.
///
/// # Errors
/// [`FatalError::Cannot`] when the system cannot create a thread.
pub(crate) fn start_fleet_commands(
    running: &mut RunningProgram,
    edge: &Arc<ReloadableEdge>,
    settings: Option<NatsSettings>,
    metrics: &Metrics,
    worker: usize,
) -> Result<(), FatalError> {
    let metrics = FleetMetrics::new(metrics);
    let Some(settings) = settings else {
        return Ok(());
    };
    let (edge, shutdown) = (edge.clone(), running.shutdown().clone());
    running.spawn_async_thread("fleet", move || async move {
        tokio::select! {
            () = shutdown.wait_until_draining() => {}
            () = receive_forever(edge, settings, metrics, worker) => {}
        }
    })
}

async fn receive_forever(
    edge: Arc<ReloadableEdge>,
    settings: NatsSettings,
    metrics: FleetMetrics,
    worker: usize,
) {
    let client = connect_with_retries(&settings, &metrics).await;
    let node = settings.node.clone();
    let mut executor = CommandExecutor::new(edge, node, client.clone(), metrics, worker);
    loop {
        let received = receive_commands(&client, &settings.node, &mut executor).await;
        if let Err(error) = received {
            tracing::warn!(error, "cannot receive commands of the fleet");
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Connects to the NATS server, and retries until the server is available. Reads the credential
/// files again before each attempt.
async fn connect_with_retries(settings: &NatsSettings, metrics: &FleetMetrics) -> Client {
    loop {
        let attempt = async {
            let connected = metrics.connected.clone();
            let options = read_connect_options(settings).await?.name(&settings.node);
            let options = options.event_callback(move |event| {
                match event {
                    Event::Connected => connected.set(1),
                    Event::Disconnected | Event::Closed => connected.set(0),
                    _ => connected.get(),
                };
                std::future::ready(())
            });
            connect_to_nats(settings, options).await
        };
        match attempt.await {
            Ok(client) => return client,
            Err(error) => tracing::warn!(%error, "cannot receive commands of the fleet yet"),
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Executes commands until the subscription ends.
async fn receive_commands(
    client: &Client,
    node: &str,
    executor: &mut CommandExecutor,
) -> Result<(), String> {
    let context = jetstream::new(client.clone());
    match context.get_or_create_stream(command_stream_config()).await {
        Ok(stream) => receive_from_jetstream(client, stream, node, executor).await,
        Err(error) if is_jetstream_unavailable(&error.kind()) => {
            tracing::warn!("no JetStream: an edge that is away misses commands");
            receive_without_jetstream(client, executor).await
        }
        Err(error) => Err(error.into()),
    }
    .map_err(|error: CommandReceiveError| error.to_string())
}

fn command_stream_config() -> stream::Config {
    stream::Config {
        name: STREAM.into(),
        subjects: vec![SUBJECTS.into()],
        max_age: COMMAND_AGE_MAX,
        max_bytes: STREAM_BYTES_MAX,
        ..stream::Config::default()
    }
}

fn is_jetstream_unavailable(kind: &CreateStreamErrorKind) -> bool {
    match kind {
        CreateStreamErrorKind::JetStreamUnavailable => true,
        CreateStreamErrorKind::JetStream(error) => matches!(
            error.error_code(),
            ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
        ),
        _ => false,
    }
}

async fn receive_from_jetstream(
    client: &Client,
    stream: stream::Stream,
    node: &str,
    executor: &mut CommandExecutor,
) -> Result<(), CommandReceiveError> {
    let name = consumer_name(node);
    let config = pull::Config {
        durable_name: Some(name.clone()),
        // A new edge does not need commands that were sent before the edge existed.
        deliver_policy: DeliverPolicy::New,
        ack_policy: AckPolicy::Explicit,
        inactive_threshold: EDGE_ABSENCE_MAX,
        ..pull::Config::default()
    };
    let consumer = stream.get_or_create_consumer(&name, config).await?;
    let mut messages = consumer.messages().await?;
    while let Some(message) = messages.next().await {
        let message = message?;
        execute_message(&message.message, executor).await;
        message.ack().await?;
        flush_nats_client(client).await;
    }
    Ok(())
}

async fn receive_without_jetstream(
    client: &Client,
    executor: &mut CommandExecutor,
) -> Result<(), CommandReceiveError> {
    let mut messages = client.subscribe(SUBJECTS).await?;
    while let Some(message) = messages.next().await {
        execute_message(&message, executor).await;
        flush_nats_client(client).await;
    }
    Ok(())
}

async fn execute_message(message: &async_nats::Message, executor: &mut CommandExecutor) {
    let subject = message.subject.as_str();
    let name = subject.strip_prefix(SUBJECT_PREFIX).unwrap_or(subject);
    executor.execute(name, &message.payload).await;
}

/// Flushes the client's buffer, so that results and acknowledgements are sent without delay. If an
/// acknowledgement is lost, the server delivers the command again. The second delivery is harmless,
/// because the executor executes each id only once.
async fn flush_nats_client(client: &Client) {
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, client.flush()).await;
}

/// Returns the name of an edge's consumer. NATS does not allow dots in consumer names. A dot becomes
/// `=`, which the name of an edge cannot contain, so that no two edges share a consumer.
fn consumer_name(node: &str) -> String {
    format!("edge-{}", node.replace('.', "="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_edges_never_share_a_consumer() {
        assert_ne!(consumer_name("a.b"), consumer_name("a_b"));
        assert_eq!(consumer_name("a_b-1"), "edge-a_b-1");
    }
}
