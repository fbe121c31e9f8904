//! Executes each command once, and reports the result.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use async_nats::Client;
use http::{HeaderMap, Uri};
use net::metrics::{CounterFamily, Gauge, MetricSpec, Metrics};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::command::{COMMANDS, CommandMessage, FleetCommand};
use super::recent_ids::RecentIds;
use crate::reload::ReloadableEdge;

const RECEIVED: MetricSpec = MetricSpec {
    name: "fleet_commands",
    unit: "",
    help: "Commands to all edges that this edge received through NATS, by result",
};
const CONNECTED: MetricSpec = MetricSpec {
    name: "fleet_connected",
    unit: "",
    help: "1 while the edge is connected to the NATS server of the fleet",
};

/// Maximum number of remembered command ids. The server may deliver some commands again, but far
/// fewer than this number at a time.
const IDS_MAX: usize = 4096;
/// Maximum number of queued warm-ups. Each warm-up contains a list of URLs.
const WARM_UPS_MAX: usize = 16;

/// Metrics of the fleet commands.
#[derive(Debug, Clone)]
pub struct FleetMetrics {
    commands: CounterFamily,
    pub connected: Gauge,
}

impl FleetMetrics {
    pub fn new(metrics: &Metrics) -> FleetMetrics {
        let commands = metrics.counter_family(&RECEIVED, &["command", "result"]);
        for command in COMMANDS {
            for result in ["ok", "failed", "duplicate", "refused"] {
                commands.with_labels(&[command, result]);
            }
        }
        FleetMetrics {
            commands,
            connected: metrics.gauge(&CONNECTED),
        }
    }

    /// Counts a result. All unknown command names share one label value, so that senders cannot
    /// create new time series.
    fn count_command_result(&self, name: &str, result: &str) {
        let known = COMMANDS.into_iter().find(|command| *command == name);
        self.commands
            .with_labels(&[known.unwrap_or("unknown"), result])
            .inc();
    }
}

/// Executes the commands of one edge.
pub struct CommandExecutor {
    edge: Arc<ReloadableEdge>,
    node: String,
    client: Client,
    ids: RecentIds,
    metrics: FleetMetrics,
    warm_ups: mpsc::Sender<WarmUp>,
}

/// A queued warm-up. A warm-up may take minutes. Warm-ups therefore have a separate queue, so that
/// a purge does not wait for them.
struct WarmUp {
    urls: Vec<Uri>,
    id: String,
    reply: Option<String>,
}

impl CommandExecutor {
    /// Creates an executor, and starts the task that runs warm-ups in the current runtime. `worker`
    /// is the index of the upstream connection pool that the warm-ups use.
    pub fn new(
        edge: Arc<ReloadableEdge>,
        node: String,
        client: Client,
        metrics: FleetMetrics,
        worker: usize,
    ) -> CommandExecutor {
        let (warm_ups, queue) = mpsc::channel(WARM_UPS_MAX);
        let reports = CommandResultSender {
            client: client.clone(),
            node: node.clone(),
        };
        let warmer = run_warm_ups(edge.clone(), queue, reports, metrics.clone(), worker);
        tokio::spawn(warmer);
        CommandExecutor {
            edge,
            node,
            client,
            ids: RecentIds::new(IDS_MAX),
            metrics,
            warm_ups,
        }
    }

    /// Executes the command of a message and sends the result. A command with a known id is not
    /// executed again.
    pub async fn execute(&mut self, name: &str, bytes: &[u8]) {
        let message = match CommandMessage::parse_message(bytes) {
            Ok(message) => message,
            Err(why) => return self.log_refusal(name, &why),
        };
        let reply = message.reply_subject().map(str::to_owned);
        let reports = CommandResultSender {
            client: self.client.clone(),
            node: self.node.clone(),
        };
        let sent = match message.into_command(name) {
            Err(why) => {
                self.log_refusal(name, &why);
                json!({ "ok": false, "error": format!("{name}: {why}") })
            }
            Ok(command) if !self.ids.insert_id(&command.id) => {
                self.metrics.count_command_result(name, "duplicate");
                json!({ "id": command.id, "ok": true, "duplicate": true })
            }
            Ok(command) => {
                tracing::info!(name, id = command.id, "command of the fleet");
                let (id, result) = (
                    command.id.clone(),
                    self.dispatch_command(command.id, command.command, &reply),
                );
                match result {
                    None => return,
                    Some(Ok(result)) => {
                        self.metrics.count_command_result(name, "ok");
                        json!({ "id": id, "ok": true, "result": result })
                    }
                    Some(Err(why)) => {
                        self.metrics.count_command_result(name, "failed");
                        json!({ "id": id, "ok": false, "error": why })
                    }
                }
            }
        };
        reports.send_result(reply.as_deref(), name, sent).await;
    }

    /// Runs a command. Returns `None` if the result is sent later.
    fn dispatch_command(
        &self,
        id: String,
        command: FleetCommand,
        reply: &Option<String>,
    ) -> Option<Result<Value, String>> {
        match command {
            FleetCommand::Purge { target, soft } => {
                let purged = self.edge.current_edge().purge_objects(&target, soft);
                Some(Ok(json!({ "purged": purged })))
            }
            FleetCommand::Reload => {
                let reloaded = self
                    .edge
                    .reload_settings()
                    .map_err(|wrong| wrong.to_string());
                Some(reloaded.map(|fixed| json!({ "takes_a_restart": fixed })))
            }
            FleetCommand::Warm(urls) => {
                let reply = reply.clone();
                let queued = self.warm_ups.try_send(WarmUp { urls, id, reply });
                let full = |_| format!("{WARM_UPS_MAX} warm-ups are waiting; repeat it later");
                queued.map_err(full).err().map(Err)
            }
        }
    }

    fn log_refusal(&self, name: &str, why: &str) {
        // The sender chooses the command name, so the name may be very long.
        let name: String = name.chars().take(64).collect();
        tracing::warn!(name, why, "refused a command of the fleet");
        self.metrics.count_command_result(&name, "refused");
    }
}

/// Sends results to the senders of commands.
struct CommandResultSender {
    client: Client,
    node: String,
}

impl CommandResultSender {
    async fn send_result(&self, reply: Option<&str>, command: &str, mut result: Value) {
        let Some(reply) = reply else {
            return;
        };
        result["edge"] = json!(self.node);
        result["command"] = json!(command);
        let sent = self
            .client
            .publish(reply.to_owned(), result.to_string().into());
        if let Err(error) = sent.await {
            tracing::warn!(%error, "cannot send the result of a command");
        }
    }
}

/// Runs warm-ups one after the other.
async fn run_warm_ups(
    edge: Arc<ReloadableEdge>,
    mut queue: mpsc::Receiver<WarmUp>,
    reports: CommandResultSender,
    metrics: FleetMetrics,
    worker: usize,
) {
    while let Some(WarmUp { urls, id, reply }) = queue.recv().await {
        let edge = edge.current_edge();
        // A warm-up has no client, so the rules are evaluated with the loopback address as the
        // client's address.
        let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let warmed = edge
            .warm_urls(worker, urls, &HeaderMap::new(), client)
            .await;
        let is_complete = warmed.failed == 0;
        metrics.count_command_result("warm", if is_complete { "ok" } else { "failed" });
        let sent = json!({ "id": id, "ok": is_complete, "result": warmed });
        reports.send_result(reply.as_deref(), "warm", sent).await;
    }
}
