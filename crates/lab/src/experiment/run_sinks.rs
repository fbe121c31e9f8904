//! Runs the sinks of a run, and checks meanwhile that the functions keep running.

use super::check::LINK_QUANTITIES;
use super::deploy::{DeployedRun, PAUSE, missing_item_error};
use super::document::SinkSpec;
use super::machine_noise::{CpuTicks, MachineNoise};
use super::placeholders::place_name;
use super::quantity::{PartValue, QuantityError, QuantityLocator};
use super::run_error::{RunError, SinkOutputFault};
use super::series_and_histograms::SeriesAndHistograms;
use super::shell_process::last_output;
use super::sink_output::SinkStdout;
use net::config::parse_duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Default time limit of a sink.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Size limit of a sink's output, in bytes.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;

/// The measurement of one part of a run. Each part is executed by an agent or by this machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PartMeasurements {
    /// Values of the quantities, by name.
    pub(super) found: BTreeMap<String, PartValue>,
    /// Lateness that each sink reports, in milliseconds.
    pub(super) late_ms: BTreeMap<String, f64>,
    /// Link quantities such as `LINK.lost`.
    pub(super) links: BTreeMap<String, u64>,
    /// 99th percentile of each link's lateness, in microseconds.
    pub(super) link_late_us: BTreeMap<String, u64>,
    pub(super) noise: MachineNoise,
    /// Series and distributions.
    #[serde(default)]
    pub(super) shapes: SeriesAndHistograms,
}

#[cfg(feature = "nats")]
impl PartMeasurements {
    /// Creates a measurement that contains only the noise of a machine.
    pub(crate) fn from_noise(noise: MachineNoise) -> PartMeasurements {
        PartMeasurements {
            noise,
            ..PartMeasurements::default()
        }
    }
}

impl DeployedRun<'_> {
    /// Runs each of these sinks `warm_up` times, one sink after the other. Nothing is measured.
    pub(crate) fn warm_up(&self, sinks: &[&str], stop: &AtomicBool) -> Result<(), RunError> {
        for name in sinks {
            for _ in 0..self.find_sink(name)?.warm_up {
                self.start_sink(name, "warm-up")?;
                self.wait_for_sinks(stop)?;
            }
        }
        Ok(())
    }

    /// Runs these sinks concurrently, and collects their results and the counters of the links.
    pub(crate) fn run_sinks(
        &self,
        sinks: &[&str],
        stop: &AtomicBool,
    ) -> Result<PartMeasurements, RunError> {
        let (before, ticks) = (self.read_link_counters()?, CpuTicks::now());
        let started = sinks
            .iter()
            .map(|name| Ok((*name, self.start_sink(name, "out")?)));
        let outputs: Vec<(&str, PathBuf)> = started.collect::<Result<_, RunError>>()?;
        self.wait_for_sinks(stop)?;
        let mut measured = PartMeasurements {
            noise: ticks.noise_since_read(),
            ..PartMeasurements::default()
        };
        for (name, output) in outputs {
            let failed = |fault| RunError::Sink {
                name: name.to_owned(),
                fault: Box::new(fault),
                last_output: last_output(&output),
            };
            let sink = self.find_sink(name)?;
            let found = self.collect_sink_results((name, sink), &output, &mut measured);
            found.map_err(failed)?;
        }
        for (name, link) in &self.links {
            if let Some(late_us) = link.late_us() {
                measured.link_late_us.insert((*name).to_owned(), late_us);
            }
            let earlier = before.get(name).copied().unwrap_or_default();
            let counts = link
                .counts()
                .map_err(RunError::Counters)?
                .into_iter()
                .zip(earlier);
            for (what, (now, earlier)) in LINK_QUANTITIES.iter().zip(counts) {
                // netem's count of lost packets is the difference of two counters. The counters are
                // not read at the same instant, so the difference may appear to decrease.
                let since = now.saturating_sub(earlier);
                measured.links.insert(format!("{name}.{what}"), since);
            }
        }
        Ok(measured)
    }

    /// Collects the results of a sink that has exited.
    fn collect_sink_results(
        &self,
        (name, sink): (&str, &SinkSpec),
        output: &Path,
        measured: &mut PartMeasurements,
    ) -> Result<(), SinkOutputFault> {
        let folder = &self.at.folder;
        let printed = SinkStdout::new(read_output_file(output)?);
        for (quantity, text) in &sink.measure {
            let found = QuantityLocator::parse_locator(text.get_ref())
                .map_err(QuantityError::from)?
                .find_part_value(&printed, folder)?;
            measured.found.insert(quantity.get_ref().clone(), found);
        }
        measured
            .shapes
            .merge(&SeriesAndHistograms::read_results(sink, output)?)?;
        if let Some(text) = &sink.late_ms {
            let quantity =
                QuantityLocator::parse_locator(text.get_ref()).map_err(QuantityError::from)?;
            let late =
                quantity.merge_part_values(&[quantity.find_part_value(&printed, folder)?])?;
            let late = late.map(|late| (name.to_owned(), late));
            measured.late_ms.extend(late);
        }
        Ok(())
    }

    fn find_sink(&self, name: &str) -> Result<&SinkSpec, RunError> {
        let sink = self.document.sink.get(name);
        sink.ok_or_else(|| missing_item_error("sink", name))
    }

    fn start_sink(&self, name: &str, kind: &str) -> Result<PathBuf, RunError> {
        let sink = self.find_sink(name)?;
        let output = self.at.folder.join(format!("{name}.{kind}"));
        let place = place_name(sink.at.as_ref());
        let child =
            self.start_command(sink.run.get_ref(), place, None, sink.cpus.as_ref(), &output)?;
        self.processes
            .add_sink(name, child, &output, sink_timeout(sink));
        Ok(output)
    }

    fn wait_for_sinks(&self, stop: &AtomicBool) -> Result<(), RunError> {
        while !self.processes.all_sinks_ended()? {
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Reads the counters of all links.
    fn read_link_counters(&self) -> Result<BTreeMap<&str, [u64; 4]>, RunError> {
        let links = self.links.iter();
        links
            .map(|(name, link)| Ok((*name, link.counts().map_err(RunError::Counters)?)))
            .collect()
    }
}

/// Returns the time limit of a sink.
pub(crate) fn sink_timeout(sink: &SinkSpec) -> Duration {
    let configured = sink.timeout.as_ref();
    let configured = configured.and_then(|text| parse_duration(text.get_ref()).ok());
    configured.unwrap_or(TIMEOUT)
}

fn read_output_file(output: &Path) -> Result<String, SinkOutputFault> {
    let mut bytes = Vec::new();
    File::open(output)?
        .take(OUTPUT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > OUTPUT_BYTES_MAX {
        return Err(SinkOutputFault::TooLong(OUTPUT_BYTES_MAX));
    }
    String::from_utf8(bytes).map_err(|_| SinkOutputFault::NotUtf8)
}
