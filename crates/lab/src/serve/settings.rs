//! Settings of the Workflow Manager.

use net::Cidr;
use std::path::PathBuf;
use std::sync::Arc;

/// Settings of the Workflow Manager.
#[derive(Debug, Clone)]
pub(crate) struct WorkflowManagerSettings {
    pub(crate) listen: Vec<String>,
    pub(crate) token: Option<Arc<str>>,
    pub(crate) hosts: Vec<String>,
    pub(crate) out: PathBuf,
    pub(crate) base: PathBuf,
    pub(crate) workflows_max: usize,
    pub(crate) report_to: Vec<Cidr>,
}
