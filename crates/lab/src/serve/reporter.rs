//! Posts reports of a run's variables to the address in the workflow's description.

use super::describe;
use super::nbmp_resource_key::NbmpResourceKey;
use super::workflow_registry::{WorkflowEntry, WorkflowRegistry};
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Posts reports at regular intervals until this value is dropped, and then posts a last report.
pub(super) struct RunReporter(Option<(Sender<()>, JoinHandle<()>)>);

impl RunReporter {
    pub(super) fn start(
        registry: &Arc<WorkflowRegistry>,
        key: &NbmpResourceKey,
        entry: &WorkflowEntry,
    ) -> RunReporter {
        let Some(target) = entry.prepared.report.clone() else {
            return RunReporter(None);
        };
        let (end, ended) = channel::<()>();
        let (registry, key) = (Arc::clone(registry), key.clone());
        let work = move || {
            loop {
                let last = ended.recv_timeout(target.interval()) != Err(RecvTimeoutError::Timeout);
                let Ok(entry) = registry.find_entry(&key) else {
                    return;
                };
                let report = format_report(&key.id, target.report_type(), &entry);
                if target.post_report(&report).is_err() {
                    registry.update_figures(&key, |figures| figures.reports_lost += 1);
                }
                if last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("reporter".into())
            .spawn(work);
        RunReporter(thread.ok().map(|thread| (end, thread)))
    }
}

impl Drop for RunReporter {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

fn format_report(id: &str, report_type: Option<&str>, entry: &WorkflowEntry) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    json!({
        "id": id, "state": entry.state.name(), "unix_s": now.as_secs_f64(),
        "report-type": report_type, "variable": describe::figures_as_nbmp_variables(entry),
    })
    .to_string()
}
