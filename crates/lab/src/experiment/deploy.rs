//! Deploys the places, links and functions of one run. Removes them when the run ends, even if the
//! run fails.

use super::arms::{Arm, fill_placeholders};
use super::check::find_link_setting;
use super::cpus::CpuList;
use super::document::ExperimentDocument;
use super::health::is_healthy;
use super::placeholders::{
    DEFAULT_PLACE, RunContext, place_name, place_or_default_if_unlinked, resolve_placeholder,
};
use super::run_error::{LinkFault, RunError};
use super::run_link::RunLink;
use super::run_processes::RunProcesses;
use super::shell_process::{last_output, shell_command};
use crate::link::{CleanupGuard, CompetingFlow, LinkShape, NetemLink, NetworkNamespace, TunLink};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use toml::{Spanned, Value};

/// Time limit for a function to become healthy.
const HEALTHY_WITHIN: Duration = Duration::from_secs(30);
pub(super) const PAUSE: Duration = Duration::from_millis(5);

/// A deployed run. Its fields are dropped in the order of their declaration. The guard is the first
/// field, so that the processes end while the links can still carry their last packets.
pub(crate) struct DeployedRun<'a> {
    _guard: CleanupGuard,
    pub(super) processes: RunProcesses,
    flows: Vec<CompetingFlow>,
    pub(super) links: BTreeMap<&'a str, RunLink>,
    places: BTreeMap<&'a str, NetworkNamespace>,
    pub(super) document: &'a ExperimentDocument,
    arm: &'a Arm,
    pub(super) at: RunContext<'a>,
}

impl<'a> DeployedRun<'a> {
    /// Creates the places, the links and the folder of a run.
    pub(crate) fn deploy_network(
        document: &'a ExperimentDocument,
        arm: &'a Arm,
        at: RunContext<'a>,
    ) -> Result<DeployedRun<'a>, RunError> {
        let places = create_places(document, &at)?;
        let mut guard = CleanupGuard::start()?;
        for place in places.values() {
            guard.register_namespace(place)?;
        }
        // Registers the folder before creating it. The guard then removes the folder even if this
        // process is killed between the two steps.
        guard.delete_at_exit(&at.folder)?;
        let _ = fs::remove_dir_all(&at.folder);
        fs::create_dir_all(&at.folder)?;
        let mut deployed = DeployedRun {
            _guard: guard,
            flows: Vec::new(),
            processes: RunProcesses::default(),
            links: BTreeMap::new(),
            places,
            document,
            arm,
            at,
        };
        for (number, (name, link)) in (0u8..).zip(&document.link) {
            if !deployed.at.is_local_place(&link.between.get_ref()[0]) {
                continue;
            }
            deployed.deploy_link(number, name.get_ref())?;
        }
        Ok(deployed)
    }

    fn deploy_link(&mut self, number: u8, name: &'a str) -> Result<(), RunError> {
        let link = self.document.link.get(name);
        let link = link.ok_or_else(|| missing_item_error("link", name))?;
        let ends = self.find_end_namespaces(link.between.get_ref())?;
        let (started, flows) =
            self.start_link(number, link, ends)
                .map_err(|fault| RunError::Link {
                    name: name.to_owned(),
                    fault,
                })?;
        self.flows.extend(flows);
        self.links.insert(name, started);
        Ok(())
    }

    fn find_end_namespaces(
        &self,
        [first, second]: &[String; 2],
    ) -> Result<[&NetworkNamespace; 2], RunError> {
        Ok([
            self.find_place(Some(first))?,
            self.find_place(Some(second))?,
        ])
    }

    fn start_link(
        &self,
        number: u8,
        link: &super::document::LinkSpec,
        [first, second]: [&NetworkNamespace; 2],
    ) -> Result<(RunLink, Vec<CompetingFlow>), LinkFault> {
        let filled = |text: &str| fill_placeholders(text, &|name| self.arm.get(name).cloned());
        let get = |key: &str| match key {
            "seed" => Some(self.at.seed.to_string()),
            key => filled(find_link_setting(link, key)?.get_ref()).ok(),
        };
        let shape = LinkShape::from_settings(&get)?;
        let by = link.by.as_ref().map(|by| by.get_ref().as_str());
        let started = match by {
            Some("netem") => {
                let link = NetemLink::start(first, second, number, &shape);
                RunLink::Netem(Box::new(link.map_err(LinkFault::Start)?))
            }
            _ => {
                let link = TunLink::start(first, second, number, shape);
                RunLink::Tun(Box::new(link.map_err(LinkFault::Start)?))
            }
        };
        let mut flows = Vec::new();
        for algorithm in &link.compete {
            let algorithm = filled(algorithm.get_ref())?;
            if algorithm == "none" {
                continue;
            }
            let flow = CompetingFlow::start(started.addresses()[1], first, second, &algorithm);
            flows.push(flow.map_err(|source| LinkFault::Compete { algorithm, source })?);
        }
        Ok((started, flows))
    }

    /// Starts a function and waits until it is healthy.
    pub(crate) fn start_function(&self, name: &str, stop: &AtomicBool) -> Result<(), RunError> {
        let Some(function) = self.document.function.get(name) else {
            return Ok(());
        };
        let (place, port) = (place_name(function.at.as_ref()), *function.port.get_ref());
        let log = self.at.folder.join(format!("{name}.log"));
        self.check_port_free(name, place, port)?;
        let cpus = function.cpus.as_ref();
        let child = self.start_command(function.run.get_ref(), place, Some(port), cpus, &log)?;
        self.processes.add_function_process(name, child, &log);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let path = function.health.as_ref().map(|path| path.get_ref().as_str());
        let waiting_since = Instant::now();
        loop {
            self.processes.all_sinks_ended()?;
            let health = self
                .find_place(place)?
                .run_in_namespace(|| Ok(is_healthy(address, path)));
            if health? {
                return Ok(());
            }
            if stop.load(Ordering::Relaxed) || waiting_since.elapsed() > HEALTHY_WITHIN {
                return Err(RunError::Unhealthy {
                    name: name.to_owned(),
                    port,
                    last_output: last_output(&log),
                });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Checks that all functions are still running.
    ///
    /// # Errors
    /// A function has exited; the error contains its last output.
    #[cfg(feature = "nats")]
    pub(crate) fn check_functions_running(&self) -> Result<(), RunError> {
        self.processes.all_sinks_ended().map(drop)
    }

    /// Starts a command at a place. The command's output is written to files.
    pub(super) fn start_command(
        &self,
        text: &str,
        place: Option<&str>,
        port: Option<u16>,
        cpus: Option<&Spanned<Value>>,
        output: &Path,
    ) -> Result<Child, RunError> {
        let at = RunContext {
            place,
            port,
            ..self.at.clone()
        };
        let text = fill_placeholders(text, &|name| {
            resolve_placeholder(name, self.document, self.arm, &at)
        })?;
        let mut command = shell_command(&text, &at.folder, output)?;
        let cpus = cpus
            .map(|cpus| CpuList::parse_cpu_list(cpus.get_ref()))
            .transpose()?;
        let start = || {
            cpus.as_ref().map_or(Ok(()), CpuList::pin_thread)?;
            let mut child = command.spawn()?;
            let held = cpus
                .as_ref()
                .map_or(Ok(()), |cpus| cpus.check_process_pinned(child.id()));
            if held.is_err() {
                let _ = child.kill();
                let _ = child.wait();
            }
            held.map(|()| child)
        };
        let started = self.find_place(place)?.run_in_namespace(start);
        started.map_err(|source| RunError::Start {
            command: text,
            source,
        })
    }

    /// Checks that a port is free. Otherwise, the health check could mistake another server for
    /// this function.
    fn check_port_free(&self, name: &str, place: Option<&str>, port: u16) -> Result<(), RunError> {
        let bound = self
            .find_place(place)?
            .run_in_namespace(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)));
        bound.map(drop).map_err(|source| RunError::Port {
            name: name.to_owned(),
            port,
            source,
        })
    }

    fn find_place(&self, name: Option<&str>) -> Result<&NetworkNamespace, RunError> {
        let place = self
            .places
            .get(place_or_default_if_unlinked(self.document, name));
        place.ok_or_else(|| missing_item_error("place", name.unwrap_or(DEFAULT_PLACE)))
    }
}

/// Creates the namespaces of the places on this machine.
fn create_places<'a>(
    document: &'a ExperimentDocument,
    at: &RunContext<'_>,
) -> io::Result<BTreeMap<&'a str, NetworkNamespace>> {
    let mut places = BTreeMap::new();
    let functions = document.function.values().map(|function| &function.at);
    let sinks = document.sink.values().map(|sink| &sink.at);
    let ends = document
        .link
        .values()
        .flat_map(|link| link.between.get_ref());
    let used = functions
        .chain(sinks)
        .map(|at| place_name(at.as_ref()).unwrap_or(DEFAULT_PLACE));
    for name in used.chain(ends.map(String::as_str)) {
        let joined = place_or_default_if_unlinked(document, Some(name));
        if !at.is_local_place(name) || places.contains_key(joined) {
            continue;
        }
        // On an agent, a place that is not the end of a link uses the host's network.
        let place = match joined == DEFAULT_PLACE && at.share.is_some() {
            true => NetworkNamespace::create_uts_namespace()?,
            false => NetworkNamespace::new()?,
        };
        places.insert(joined, place);
    }
    Ok(places)
}

pub(super) fn missing_item_error(kind: &'static str, name: &str) -> RunError {
    RunError::Missing {
        kind,
        name: name.to_owned(),
    }
}
