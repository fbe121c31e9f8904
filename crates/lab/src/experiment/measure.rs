//! Sinks at work, beside functions that are watched meanwhile.

use super::check::OF_LINKS;
use super::command::last_words;
use super::deploy::{Deployed, PAUSE};
use super::document::Sink;
use super::names::place_of;
use super::noise::{Noise, Ticks};
use super::printed::Printed;
use super::quantity::{Found, Quantity};
use super::shapes::Shapes;
use net::config::duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a sink may take that does not say so.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Most that a sink may print.
const SAID_MAX: u64 = 16 << 20;

/// What came of it, at one of perhaps several agents.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Quantities.
    pub(super) found: BTreeMap<String, Found>,
    /// What sinks say of their own lateness, in milliseconds.
    pub(super) late_ms: BTreeMap<String, f64>,
    /// `LINK.lost` and its like.
    pub(super) links: BTreeMap<String, u64>,
    /// 99th percentile of each link's lateness, in microseconds.
    pub(super) link_late_us: BTreeMap<String, u64>,
    pub(super) noise: Noise,
    /// Series and distributions.
    #[serde(default)]
    pub(super) shapes: Shapes,
}

impl Measured {
    /// Where there was nothing but noise.
    pub(crate) fn noise_of(noise: Noise) -> Measured {
        Measured {
            noise,
            ..Measured::default()
        }
    }
}

impl Deployed<'_> {
    /// Runs these sinks as often as they ask to be, one after the other, unmeasured.
    pub(crate) fn warm_up(&self, sinks: &[&str], stop: &AtomicBool) -> Result<(), String> {
        for name in sinks {
            for _ in 0..self.sink(name)?.warm_up {
                self.start_sink(name, "warm-up")?;
                self.until_ended(stop)?;
            }
        }
        Ok(())
    }

    /// Runs these sinks beside each other.
    pub(crate) fn measure(&self, sinks: &[&str], stop: &AtomicBool) -> Result<Measured, String> {
        let (before, ticks) = (self.counts()?, Ticks::now());
        let started = sinks
            .iter()
            .map(|name| Ok((*name, self.start_sink(name, "out")?)));
        let outputs: Vec<(&str, PathBuf)> = started.collect::<Result<_, String>>()?;
        self.until_ended(stop)?;
        let mut measured = Measured {
            noise: ticks.since(),
            ..Measured::default()
        };
        for (name, output) in outputs {
            let failed = |what| format!("sink {name}: {what}{}", last_words(&output));
            self.find(name, &output, &mut measured).map_err(failed)?;
        }
        for (name, link) in &self.links {
            if let Some(late_us) = link.late_us() {
                measured.link_late_us.insert((*name).to_owned(), late_us);
            }
            let earlier = before.get(name).copied().unwrap_or_default();
            let counts = link.counts()?.into_iter().zip(earlier);
            for (what, (now, earlier)) in OF_LINKS.iter().zip(counts) {
                // Of netem they are not all of one moment.
                let since = now.saturating_sub(earlier);
                measured.links.insert(format!("{name}.{what}"), since);
            }
        }
        Ok(measured)
    }

    /// What a sink has measured.
    fn find(&self, name: &str, output: &Path, measured: &mut Measured) -> Result<(), String> {
        let (sink, folder) = (self.sink(name)?, &self.at.folder);
        let printed = Printed::new(said(output)?);
        for (quantity, text) in &sink.measure {
            let found = Quantity::read(text.get_ref())?.find(&printed, folder)?;
            measured.found.insert(quantity.get_ref().clone(), found);
        }
        measured.shapes.join(&Shapes::find(sink, output)?)?;
        if let Some(text) = &sink.late_ms {
            let quantity = Quantity::read(text.get_ref())?;
            let late = quantity.value(&[quantity.find(&printed, folder)?])?;
            measured.late_ms.insert(name.to_owned(), late);
        }
        Ok(())
    }

    fn sink(&self, name: &str) -> Result<&Sink, String> {
        let sink = self.document.sink.get(name);
        sink.ok_or_else(|| format!("there is no sink {name}"))
    }

    fn start_sink(&self, name: &str, kind: &str) -> Result<PathBuf, String> {
        let sink = self.sink(name)?;
        let output = self.at.folder.join(format!("{name}.{kind}"));
        let place = place_of(sink.at.as_ref());
        let child = self.command(sink.run.get_ref(), place, None, sink.cpus.as_ref(), &output)?;
        self.processes.sink(name, child, &output, longest(sink));
        Ok(output)
    }

    fn until_ended(&self, stop: &AtomicBool) -> Result<(), String> {
        while !self.processes.all_sinks_ended()? {
            if stop.load(Ordering::Relaxed) {
                return Err("stopped".into());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// What links have done so far.
    fn counts(&self) -> Result<BTreeMap<&str, [u64; 4]>, String> {
        let links = self.links.iter();
        links
            .map(|(name, link)| Ok((*name, link.counts()?)))
            .collect()
    }
}

/// How long a sink may take.
pub(crate) fn longest(sink: &Sink) -> Duration {
    let asked = sink.timeout.as_ref();
    let asked = asked.and_then(|text| duration(text.get_ref()).ok());
    asked.unwrap_or(TIMEOUT)
}

fn said(output: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut bytes = Vec::new();
    let file = File::open(output).map_err(failed)?;
    file.take(SAID_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > SAID_MAX {
        return Err(format!("it printed more than {SAID_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it printed what is no text".into())
}
