//! Merges the reports of all threads second by second, and writes the results to the output files.

use super::player_thread::{SharedViewerRun, run_thread};
use super::population_stats::{PopulationSample, PopulationStats, ViewerTrace};
use super::thread_stats::ViewerThreadReport;
use super::{DocumentCache, ViewerRunPlan};
use crate::generator_threads::{self, GeneratorError, GeneratorEvent, cpu_s};
use crate::rate::RequestKind;
use crate::result::{OutputError, RequestStats, RunOutputs, RunResult, SecondStats, StepResult};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};

/// Number of places whose viewers are traced individually, starting with place 0.
const TRACES: u64 = 12;

/// The state of a run at the end of a second.
#[derive(Debug)]
pub struct PopulationProgress<'a> {
    /// Request statistics of the finished second.
    pub second: &'a SecondStats,
    /// The viewers at the end of this second.
    pub sample: &'a PopulationSample,
}

/// Runs a plan to its end. Setting `stop` ends the run early and keeps its results. Calls `see`
/// once for every second that ends with at least one viewer.
///
/// # Errors
/// The run could not start, or an output file cannot be written.
pub fn run_viewer_plan(
    plan: Arc<ViewerRunPlan>,
    stop: &AtomicBool,
    mut outputs: RunOutputs,
    mut see: impl FnMut(&PopulationProgress<'_>),
) -> Result<(RunResult, PopulationStats), GeneratorError> {
    let common = Arc::new(SharedViewerRun {
        documents: DocumentCache::new(plan.audio_preference.clone(), plan.text_preference.clone()),
        start: OnceLock::new(),
        ready: Barrier::new(plan.threads),
        stop: AtomicBool::new(false),
        keep_records: outputs.records.is_some(),
        plan: plan.clone(),
    });
    let mut sum = ViewerCollector::new(plan.clone());
    let (cpu, memory) = (cpu_s(), resident_bytes());
    let shared = common.clone();
    let work = move |number, out: &Sender<_>| run_thread(&shared, number, out);
    generator_threads::run_threads("players", plan.threads, stop, work, |heard| {
        match heard {
            GeneratorEvent::Report(report) => sum.add_thread_report(*report, &mut outputs)?,
            GeneratorEvent::Nothing => {}
            GeneratorEvent::Stop => {
                common.stop.store(true, Ordering::Relaxed);
                sum.run.stopped = true;
            }
        }
        sum.memory = sum.memory.max(resident_bytes());
        Ok(sum.close_seconds(&mut outputs, &mut see)?)
    })?;
    sum.ended = true;
    sum.close_seconds(&mut outputs, &mut see)?;
    let wall = common.start.get().map_or(Duration::ZERO, Instant::elapsed);
    let ViewerCollector {
        mut run,
        mut viewing,
        memory: most,
        ..
    } = sum;
    run.wall_s = wall.as_secs_f64();
    run.cpu_s = cpu_s() - cpu;
    run.connections = plan.dialer.connection_counts().opened_total();
    let places = plan.arrivals.place_start_times().len().max(1) as u64;
    viewing.memory_bytes_per_place = most.saturating_sub(memory) / places;
    outputs.finish_files()?;
    Ok((run, viewing))
}

/// Returns the resident memory of this process in bytes, or 0 if the system does not report the
/// memory.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The merged reports on a second that some threads have not reported yet.
#[derive(Default)]
struct PendingViewerSecond {
    cells: BTreeMap<(u32, RequestKind), RequestStats>,
    viewers: u64,
    playing: u64,
    stalled: u64,
    buffers_us: Vec<u64>,
    bps: f64,
    threads: usize,
}

struct ViewerCollector {
    run: RunResult,
    viewing: PopulationStats,
    plan: Arc<ViewerRunPlan>,
    open: BTreeMap<u64, PendingViewerSecond>,
    ended: bool,
    memory: u64,
}

impl ViewerCollector {
    fn new(plan: Arc<ViewerRunPlan>) -> ViewerCollector {
        let step = |[start_s, end_s]: [f64; 2]| StepResult {
            start_s,
            end_s,
            ..StepResult::default()
        };
        let steps = plan.measured_steps().into_iter().map(step).collect();
        let run = RunResult::result_starting_now(&plan.offered, steps);
        ViewerCollector {
            run,
            viewing: PopulationStats::default(),
            plan,
            open: BTreeMap::new(),
            ended: false,
            memory: 0,
        }
    }

    fn add_thread_report(
        &mut self,
        report: ViewerThreadReport,
        outputs: &mut RunOutputs,
    ) -> Result<(), OutputError> {
        let number = report.second.saturating_sub(1);
        let second = self.open.entry(number).or_default();
        second.threads += 1;
        for ((step, kind), cell) in report.cells {
            self.run.add_stats(step, kind, &cell);
            second.cells.entry((step, kind)).or_default().merge(&cell);
        }
        for (place, snapshot) in &report.snapshots {
            second.viewers += 1;
            second.playing += u64::from(snapshot.playing);
            second.stalled += u64::from(snapshot.stalled);
            second.buffers_us.push(snapshot.buffer);
            second.bps += snapshot.bps;
            if *place < TRACES {
                add_playback_trace_point(
                    &mut self.viewing.traces,
                    *place,
                    (
                        number + 1,
                        snapshot.buffer as f32 / 1e6,
                        (snapshot.bps / 1e3) as f32,
                    ),
                );
            }
        }
        self.viewing.merge(&report.viewing);
        self.run.abandoned += report.abandoned;
        for (fault, example) in report.examples {
            self.run.examples.entry(fault).or_insert(example);
        }
        outputs.write_records(&report.records)?;
        outputs.write_records(&report.players)
    }

    /// Logs and stores each second that all threads have reported. After the run, also logs and
    /// stores seconds that only some threads have reported.
    fn close_seconds(
        &mut self,
        outputs: &mut RunOutputs,
        see: &mut impl FnMut(&PopulationProgress<'_>),
    ) -> Result<(), OutputError> {
        while let Some(entry) = self.open.first_entry() {
            if entry.get().threads < self.plan.threads && !self.ended {
                return Ok(());
            }
            let (number, mut open) = entry.remove_entry();
            outputs.log_second(number, &open.cells)?;
            let second = self.summarize_second(number, &open);
            let sample = open.population_sample(number);
            if sample.viewers > 0 {
                see(&PopulationProgress {
                    second: &second,
                    sample: &sample,
                });
                self.viewing.samples.push(sample);
            }
            self.run.seconds.push(second);
        }
        Ok(())
    }

    fn summarize_second(&self, number: u64, open: &PendingViewerSecond) -> SecondStats {
        let second = SecondStats::from_stats(number, open.cells.values());
        SecondStats {
            // Players have no schedule of requests, so `due` equals the number of ended requests.
            due: second.ended,
            open: self.plan.dialer.connection_counts().open_count(),
            ..second
        }
    }
}

impl PendingViewerSecond {
    fn population_sample(&mut self, number: u64) -> PopulationSample {
        self.buffers_us.sort_unstable();
        let buffer_quantile = |share: f64| {
            let at = (share * self.buffers_us.len().saturating_sub(1) as f64).round() as usize;
            self.buffers_us.get(at).map_or(0.0, |us| *us as f64 / 1e6)
        };
        PopulationSample {
            second: number + 1,
            viewers: self.viewers,
            playing: self.playing,
            stalled: self.stalled,
            buffer_p10_s: buffer_quantile(0.1),
            buffer_p50_s: buffer_quantile(0.5),
            buffer_p90_s: buffer_quantile(0.9),
            bitrate_kbps: if self.viewers > 0 {
                self.bps / 1e3 / self.viewers as f64
            } else {
                0.0
            },
        }
    }
}

fn add_playback_trace_point(traces: &mut Vec<ViewerTrace>, place: u64, point: (u64, f32, f32)) {
    match traces.iter_mut().find(|trace| trace.place == place) {
        Some(trace) => trace.points.push(point),
        None => traces.push(ViewerTrace {
            place,
            points: vec![point],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ClientSettings, Dialer, Url};
    use crate::players::abr::FixedLevel;
    use crate::players::drive::PlayerKind;
    use crate::players::population::{AbrSetting, Population, ViewerArrivals, WatchTime};
    use crate::result::{RecordWriter, read_records};

    /// Returns the plan of two workers on two threads. No server listens at their URL, so each worker
    /// sends one request per second.
    fn failing_plan() -> ViewerRunPlan {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let duration = Duration::from_secs(2);
        let micros = duration.as_micros() as u64;
        ViewerRunPlan {
            population: Population {
                seed: 1,
                titles: vec![Url::parse(&url).unwrap()],
                zipf: 1.0,
                watch: WatchTime::All,
                seeks_per_hour: 0.0,
                patience_s: None,
                devices: Vec::new(),
                rule: AbrSetting::Fixed(FixedLevel::Lowest),
            },
            arrivals: ViewerArrivals::parse_arrivals("2", 0, micros).unwrap(),
            offered: "2".into(),
            mode: PlayerKind::Sequence,
            settings: Arc::default(),
            audio_preference: Default::default(),
            text_preference: Default::default(),
            duration,
            dialer: Dialer::new(ClientSettings::default()).unwrap(),
            threads: 2,
        }
    }

    #[test]
    fn each_second_and_each_record_has_its_own_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.zst");
        let outputs = RunOutputs {
            hdr: None,
            records: Some(RecordWriter::create(&path).unwrap()),
        };
        let stop = AtomicBool::new(false);
        let plan = Arc::new(failing_plan());
        let (run, _) = run_viewer_plan(plan, &stop, outputs, |_| {}).unwrap();
        let seconds: Vec<u64> = run.seconds.iter().map(|second| second.second).collect();
        let expected: Vec<u64> = (0..seconds.len() as u64).collect();
        assert_eq!(seconds, expected);
        let mut numbers = Vec::new();
        read_records(&path, |record| numbers.push(record.n)).unwrap();
        assert!(numbers.len() >= 2, "{numbers:?}");
        numbers.sort_unstable();
        let count = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "{numbers:?}");
    }
}
