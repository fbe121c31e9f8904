//! One run's places, links and functions: brought up, and down again however the run ends.

use super::arms::{Arm, fill};
use super::check::asked;
use super::command::{last_words, shell};
use super::cpus::Cpus;
use super::document::Document;
use super::health::healthy;
use super::joint::Joint;
use super::names::{ONLY, Where, joined, place_of, stands_for};
use super::process::Processes;
use crate::link::{Flow, Guard, Link, Namespace, Netem, Shape};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use toml::{Spanned, Value};

/// How long a function may take until it is healthy.
const HEALTHY_WITHIN: Duration = Duration::from_secs(30);
pub(super) const PAUSE: Duration = Duration::from_millis(5);

/// What stands. Its fields are dropped in this order: what runs is ended while links still carry
/// its farewells.
pub(crate) struct Deployed<'a> {
    _guard: Guard,
    pub(super) processes: Processes,
    flows: Vec<Flow>,
    pub(super) links: BTreeMap<&'a str, Joint>,
    places: BTreeMap<&'a str, Namespace>,
    pub(super) document: &'a Document,
    arm: &'a Arm,
    pub(super) at: Where<'a>,
}

impl<'a> Deployed<'a> {
    /// Places and links of one run, and its folder, which goes with it.
    pub(crate) fn start(
        document: &'a Document,
        arm: &'a Arm,
        at: Where<'a>,
    ) -> Result<Deployed<'a>, String> {
        let places = places(document, &at).map_err(failed)?;
        let mut guard = Guard::start().map_err(failed)?;
        for place in places.values() {
            guard.watch(place).map_err(failed)?;
        }
        // Told first and made then: it goes even if we are killed in between.
        guard.remove(&at.folder).map_err(failed)?;
        let _ = fs::remove_dir_all(&at.folder);
        fs::create_dir_all(&at.folder).map_err(failed)?;
        let mut deployed = Deployed {
            _guard: guard,
            flows: Vec::new(),
            processes: Processes::default(),
            links: BTreeMap::new(),
            places,
            document,
            arm,
            at,
        };
        for (number, (name, link)) in (0u8..).zip(&document.link) {
            if !deployed.at.holds(&link.between.get_ref()[0]) {
                continue;
            }
            let link = deployed.link(number, name.get_ref());
            link.map_err(|what| format!("link {}: {what}", name.get_ref()))?;
        }
        Ok(deployed)
    }

    fn link(&mut self, number: u8, name: &'a str) -> Result<(), String> {
        let link = self.document.link.get(name).ok_or("it is not there")?;
        let filled = |text: &str| fill(text, &|name| self.arm.get(name).cloned());
        let get = |key: &str| match key {
            "seed" => Some(self.at.seed.to_string()),
            key => filled(asked(link, key)?.get_ref()).ok(),
        };
        let shape = Shape::read(&get).map_err(|(key, what)| format!("{key}: {what}"))?;
        let [first, second] = link.between.get_ref();
        let [first, second] = [self.place(Some(first))?, self.place(Some(second))?];
        let by = link.by.as_ref().map(|by| by.get_ref().as_str());
        let started = match by {
            Some("netem") => {
                let link = Netem::start(first, second, number, &shape);
                Joint::Netem(Box::new(link.map_err(failed)?))
            }
            _ => {
                let link = Link::start(first, second, number, shape);
                Joint::Ours(Box::new(link.map_err(failed)?))
            }
        };
        let mut flows = Vec::new();
        for algorithm in &link.compete {
            let algorithm = filled(algorithm.get_ref())?;
            if algorithm == "none" {
                continue;
            }
            let flow = Flow::start(started.addresses()[1], first, second, &algorithm);
            flows.push(flow.map_err(|error| format!("compete {algorithm}: {error}"))?);
        }
        self.flows.extend(flows);
        self.links.insert(name, started);
        Ok(())
    }

    /// Starts a function, and waits until it is healthy.
    pub(crate) fn function(&self, name: &str, stop: &AtomicBool) -> Result<(), String> {
        let Some(function) = self.document.function.get(name) else {
            return Ok(());
        };
        let (place, port) = (place_of(function.at.as_ref()), *function.port.get_ref());
        let log = self.at.folder.join(format!("{name}.log"));
        self.free(place, port)
            .map_err(|what| format!("function {name}: {what}"))?;
        let cpus = function.cpus.as_ref();
        let child = self.command(function.run.get_ref(), place, Some(port), cpus, &log)?;
        self.processes.function(name, child, &log);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let path = function.health.as_ref().map(|path| path.get_ref().as_str());
        let began = Instant::now();
        loop {
            self.processes.all_sinks_ended()?;
            let asked = self.place(place)?.within(|| Ok(healthy(address, path)));
            if asked.map_err(failed)? {
                return Ok(());
            }
            if stop.load(Ordering::Relaxed) || began.elapsed() > HEALTHY_WITHIN {
                let said = last_words(&log);
                return Err(format!(
                    "function {name}: it is not healthy on port {port}{said}"
                ));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether all functions still run.
    ///
    /// # Errors
    /// One that has ended, and what it said.
    pub(crate) fn runs(&self) -> Result<(), String> {
        self.processes.all_sinks_ended().map(drop)
    }

    /// Starts a command at a place, its standard output and error in a file.
    pub(super) fn command(
        &self,
        text: &str,
        place: Option<&str>,
        port: Option<u16>,
        cpus: Option<&Spanned<Value>>,
        output: &Path,
    ) -> Result<Child, String> {
        let at = Where {
            place,
            port,
            ..self.at.clone()
        };
        let text = fill(text, &|name| stands_for(name, self.document, self.arm, &at))?;
        let mut command = shell(&text, &at.folder, output)?;
        let cpus = cpus.map(|cpus| Cpus::read(cpus.get_ref())).transpose()?;
        let start = || {
            cpus.as_ref().map_or(Ok(()), Cpus::pin)?;
            let mut child = command.spawn()?;
            let held = cpus.as_ref().map_or(Ok(()), |cpus| cpus.hold(child.id()));
            if held.is_err() {
                let _ = child.kill();
                let _ = child.wait();
            }
            held.map(|()| child)
        };
        let started = self.place(place)?.within(start);
        started.map_err(|error| format!("{text}: {error}"))
    }

    /// Whether a port is to be had: else another's server would be taken for ours.
    fn free(&self, place: Option<&str>, port: u16) -> Result<(), String> {
        let bound = self
            .place(place)?
            .within(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)));
        bound
            .map(drop)
            .map_err(|error| format!("port {port}: {error}"))
    }

    fn place(&self, name: Option<&str>) -> Result<&Namespace, String> {
        let place = self.places.get(joined(self.document, name));
        place.ok_or_else(|| format!("there is no place {}", name.unwrap_or(ONLY)))
    }
}

/// Those that are here.
fn places<'a>(document: &'a Document, at: &Where<'_>) -> io::Result<BTreeMap<&'a str, Namespace>> {
    let mut places = BTreeMap::new();
    let functions = document.function.values().map(|function| &function.at);
    let sinks = document.sink.values().map(|sink| &sink.at);
    let ends = document
        .link
        .values()
        .flat_map(|link| link.between.get_ref());
    let used = functions
        .chain(sinks)
        .map(|at| place_of(at.as_ref()).unwrap_or(ONLY));
    for name in used.chain(ends.map(String::as_str)) {
        let joined = joined(document, Some(name));
        if !at.holds(name) || places.contains_key(joined) {
            continue;
        }
        // Agents reach each other by the networks of their hosts.
        let place = match joined == ONLY && at.share.is_some() {
            true => Namespace::same_network()?,
            false => Namespace::new()?,
        };
        places.insert(joined, place);
    }
    Ok(places)
}

fn failed(error: io::Error) -> String {
    format!("could not be deployed: {error}")
}
