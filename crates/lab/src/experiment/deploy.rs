//! One run's places, links and functions: brought up, and down again however the run ends.

use super::arms::{Arm, fill};
use super::check::{asked, starting_order};
use super::document::{Document, Function};
use super::health::healthy;
use crate::link::{Flow, Guard, Link, Namespace, Shape};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where things run when there is no link.
const ONLY: &str = "here";
/// How long a function may take until it is healthy.
const HEALTHY_WITHIN: Duration = Duration::from_secs(30);
/// Lines of what a command said last, told with its failure.
const LAST_LINES: usize = 5;
pub(super) const PAUSE: Duration = Duration::from_millis(5);

/// What a text's names depend on besides the document and the arm.
#[derive(Debug, Clone, Default)]
pub(super) struct Where<'a> {
    /// The place, among those of links.
    pub(super) place: Option<&'a str>,
    /// The function's own port.
    pub(super) port: Option<u16>,
    /// The run's folder.
    pub(super) folder: PathBuf,
    /// Where sources lie.
    pub(super) sources: BTreeMap<String, PathBuf>,
    pub(super) round: u32,
    pub(super) seed: u64,
}

impl<'a> Where<'a> {
    /// Before anything stands: names stand for something, whatever it will be.
    pub(super) fn unbuilt(place: Option<&'a str>, port: Option<u16>) -> Where<'a> {
        Where {
            place,
            port,
            ..Where::default()
        }
    }
}

/// What `{name}` stands for in a command.
pub(super) fn stands_for(
    name: &str,
    document: &Document,
    arm: &Arm,
    at: &Where<'_>,
) -> Option<String> {
    if let Some(value) = arm.get(name) {
        return Some(value.clone());
    }
    if document.source.contains_key(name) {
        let path = at.sources.get(name).cloned().unwrap_or_default();
        return Some(path.display().to_string());
    }
    if let Some(function) = document.function.get(name) {
        let address = reached(document, at.place, function)?;
        return Some(format!("{address}:{}", function.port.get_ref()));
    }
    match name {
        "port" => at.port.map(|port| port.to_string()),
        "folder" => Some(at.folder.display().to_string()),
        "round" => Some(at.round.to_string()),
        "seed" => Some(at.seed.to_string()),
        _ => None,
    }
}

/// A function's address as seen from a place; none where no link joins them.
fn reached(document: &Document, from: Option<&str>, function: &Function) -> Option<Ipv4Addr> {
    let to = function.at.as_ref().map(|at| at.get_ref().as_str());
    if from == to {
        return Some(Ipv4Addr::LOCALHOST);
    }
    let (from, to) = (from?, to?);
    let mut numbered = (0u8..).zip(document.link.values());
    numbered.find_map(|(number, link)| {
        let [first, second] = link.between.get_ref();
        match () {
            () if first == from && second == to => Some(Ipv4Addr::new(10, 77, number, 2)),
            () if first == to && second == from => Some(Ipv4Addr::new(10, 77, number, 1)),
            () => None,
        }
    })
}

/// What stands. Its fields are dropped in this order: what runs is ended while links still carry
/// its farewells.
pub(super) struct Deployed<'a> {
    _guard: Guard,
    _flows: Vec<Flow>,
    pub(super) links: BTreeMap<&'a str, Link>,
    places: BTreeMap<&'a str, Namespace>,
    document: &'a Document,
    arm: &'a Arm,
    at: Where<'a>,
}

impl<'a> Deployed<'a> {
    /// Places, links and functions of one run, each function healthy before the next starts.
    pub(super) fn start(
        document: &'a Document,
        arm: &'a Arm,
        at: Where<'a>,
        stop: &AtomicBool,
    ) -> Result<Deployed<'a>, String> {
        let failed = |error: std::io::Error| format!("could not be deployed: {error}");
        let mut places: BTreeMap<&str, Namespace> = BTreeMap::new();
        let named = document
            .link
            .values()
            .flat_map(|link| link.between.get_ref());
        let named: Vec<&str> = named.map(String::as_str).collect();
        for place in if named.is_empty() { vec![ONLY] } else { named } {
            if !places.contains_key(place) {
                places.insert(place, Namespace::new().map_err(failed)?);
            }
        }
        let mut guard = Guard::start().map_err(failed)?;
        for place in places.values() {
            guard.watch(place).map_err(failed)?;
        }
        let (mut links, mut flows) = (BTreeMap::new(), Vec::new());
        for (number, (name, link)) in (0u8..).zip(&document.link) {
            let filled = |text: &str| fill(text, &|name| arm.get(name).cloned());
            let get = |key: &str| match key {
                "seed" => Some(at.seed.to_string()),
                key => filled(asked(link, key)?.get_ref()).ok(),
            };
            let shape = Shape::read(&get).map_err(|(key, what)| format!("{key}: {what}"))?;
            let ends = link
                .between
                .get_ref()
                .each_ref()
                .map(|end| places.get(end.as_str()));
            let [Some(first), Some(second)] = ends else {
                return Err(format!("link {} has no ends", name.get_ref()));
            };
            let started = Link::start(first, second, number, shape).map_err(failed)?;
            for algorithm in &link.compete {
                let algorithm = filled(algorithm.get_ref())?;
                if algorithm == "none" {
                    continue;
                }
                let flow = Flow::start(&started, first, second, &algorithm);
                flows.push(flow.map_err(|error| format!("compete {algorithm}: {error}"))?);
            }
            links.insert(name.get_ref().as_str(), started);
        }
        let deployed = Deployed {
            _guard: guard,
            _flows: flows,
            links,
            places,
            document,
            arm,
            at,
        };
        for name in starting_order(document).unwrap_or_default() {
            deployed.function(name, stop)?;
        }
        Ok(deployed)
    }

    fn function(&self, name: &str, stop: &AtomicBool) -> Result<(), String> {
        let Some(function) = self.document.function.get(name) else {
            return Ok(());
        };
        let (place, port) = (place_of(function.at.as_ref()), *function.port.get_ref());
        let log = self.at.folder.join(format!("{name}.log"));
        let mut child = self.command(function.run.get_ref(), place, Some(port), &log)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let path = function.health.as_ref().map(|path| path.get_ref().as_str());
        let began = Instant::now();
        let mut wait = || loop {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("it has ended: {status}"));
            }
            if healthy(address, path) {
                return Ok(());
            }
            if stop.load(Ordering::Relaxed) || began.elapsed() > HEALTHY_WITHIN {
                return Err(format!("it is not healthy on port {port}"));
            }
            std::thread::sleep(PAUSE);
        };
        let waited = self.namespace(place)?.within(|| Ok(wait()));
        let waited = waited.map_err(|error| error.to_string())?;
        waited.map_err(|what| format!("function {name}: {what}{}", last_words(&log)))
    }

    /// Starts a command at a place, its standard output and error in a file.
    pub(super) fn command(
        &self,
        text: &str,
        place: Option<&str>,
        port: Option<u16>,
        output: &Path,
    ) -> Result<Child, String> {
        let at = Where {
            place,
            port,
            ..self.at.clone()
        };
        let text = fill(text, &|name| stands_for(name, self.document, self.arm, &at))?;
        let file =
            File::create(output).map_err(|error| format!("{}: {error}", output.display()))?;
        let errors = File::create(output.with_extension("errors")).map_err(|e| e.to_string())?;
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(&text)
            .current_dir(&at.folder)
            .env("PATH", path());
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        let started = self.namespace(place)?.within(|| command.spawn());
        started.map_err(|error| format!("{text}: {error}"))
    }

    fn namespace(&self, place: Option<&str>) -> Result<&Namespace, String> {
        let place = place.unwrap_or(ONLY);
        self.places
            .get(place)
            .ok_or_else(|| format!("there is no place {place}"))
    }
}

/// A place's name as it is written.
pub(super) fn place_of(at: Option<&toml::Spanned<String>>) -> Option<&str> {
    at.map(|at| at.get_ref().as_str())
}

/// This program's own folder first, so that `headwater` in a document is this one.
pub(super) fn path() -> std::ffi::OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe()
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned));
    let all = own.into_iter().chain(std::env::split_paths(&others));
    std::env::join_paths(all).unwrap_or(others)
}

/// The end of what a command said, for whoever looks for the reason.
pub(super) fn last_words(output: &Path) -> String {
    let read = |path: &Path| std::fs::read(path).unwrap_or_default();
    let said = [read(output), read(&output.with_extension("errors"))].concat();
    let said = String::from_utf8_lossy(&said).trim_end().to_owned();
    let mut words: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    words.drain(..words.len().saturating_sub(LAST_LINES));
    if words.is_empty() {
        return String::new();
    }
    format!("; it said: {}", words.join(" | "))
}
