//! Adds up what the threads see, second by second, and writes it down as it comes.

use super::tally::Tick;
use super::thread::{Common, work};
use super::viewing::{Sample, Trace, Viewing};
use super::{Catalog, Plan};
use crate::rate::Kind;
use crate::result::{Cell, HdrLog, Records, Run, Second, Stretch, VERSION};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Places that are traced one by one.
const TRACES: u64 = 12;

/// Files that are written while the run goes on.
#[derive(Default)]
pub struct Outputs {
    /// The HDR interval log.
    pub hdr: Option<HdrLog<BufWriter<File>>>,
    /// Raw records.
    pub records: Option<Records>,
}

/// What there is to see of a run at a second's end.
#[derive(Debug)]
pub struct Sight<'a> {
    /// The second that ended.
    pub second: &'a Second,
    /// Its viewers.
    pub sample: &'a Sample,
}

/// Plays a plan to its end; `stop` ends it early, with what it has. `see` is called every second.
///
/// # Errors
/// What kept it from running, or its files from being written.
pub fn run(
    plan: Arc<Plan>,
    stop: &AtomicBool,
    mut outputs: Outputs,
    mut see: impl FnMut(&Sight<'_>),
) -> Result<(Run, Viewing), String> {
    let threads = plan.threads;
    let common = Arc::new(Common {
        catalog: Catalog::new(plan.wish.clone()),
        start: OnceLock::new(),
        ready: Barrier::new(threads),
        stop: AtomicBool::new(false),
        keep_records: outputs.records.is_some(),
        plan: plan.clone(),
    });
    let (out, ticks) = channel();
    let mut sum = Sum::new(plan.clone(), SystemTime::now());
    let (cpu, memory) = (cpu_s(), resident_bytes());
    let mut workers = Vec::new();
    for number in 0..threads {
        let (common, out) = (common.clone(), out.clone());
        let worker = std::thread::Builder::new().name(format!("players-{number}"));
        let worker = worker.spawn(move || work(&common, number, &out));
        workers.push(worker.map_err(|error| format!("no thread: {error}"))?);
    }
    drop(out);
    loop {
        if stop.load(Ordering::Relaxed) {
            common.stop.store(true, Ordering::Relaxed);
            sum.run.stopped = true;
        }
        match ticks.recv_timeout(Duration::from_millis(50)) {
            Ok(tick) => sum.take(*tick, &mut outputs)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        sum.close(threads, &mut outputs, &mut see)?;
        sum.memory = sum.memory.max(resident_bytes());
    }
    for worker in workers {
        worker
            .join()
            .map_err(|_| "a thread of the generator ended in panic")??;
    }
    sum.ended = true;
    sum.close(threads, &mut outputs, &mut see)?;
    let wall = common.start.get().map_or(Duration::ZERO, Instant::elapsed);
    let Sum {
        mut run,
        mut viewing,
        memory: most,
        ..
    } = sum;
    run.wall_s = wall.as_secs_f64();
    run.cpu_s = cpu_s() - cpu;
    run.connections = plan.dialer.connections().opened();
    let places = plan.arrivals.starts().len().max(1) as u64;
    viewing.memory_bytes_per_place = most.saturating_sub(memory) / places;
    let wrong = |error: std::io::Error| format!("what was measured could not be written: {error}");
    outputs.hdr.map_or(Ok(()), HdrLog::finish).map_err(wrong)?;
    outputs
        .records
        .map_or(Ok(()), Records::finish)
        .map_err(wrong)?;
    Ok((run, viewing))
}

/// Processor time of this process so far, in seconds.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Memory of this process; nothing where the system does not say.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// A second whose reports are not all in.
#[derive(Default)]
struct Open {
    cells: BTreeMap<(u32, Kind), Cell>,
    viewers: u64,
    playing: u64,
    stalled: u64,
    buffers_us: Vec<u64>,
    bps: f64,
    threads: usize,
}

struct Sum {
    run: Run,
    viewing: Viewing,
    plan: Arc<Plan>,
    open: BTreeMap<u64, Open>,
    ended: bool,
    memory: u64,
}

impl Sum {
    fn new(plan: Arc<Plan>, started: SystemTime) -> Sum {
        let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let steps = &plan.arrivals.steps;
        let end_s = |n: usize| {
            steps
                .get(n + 1)
                .map_or(plan.duration.as_secs_f64(), |(at, _)| *at as f64 / 1e6)
        };
        let stretch = |(n, (at, _)): (usize, &(u64, u64))| Stretch {
            start_s: *at as f64 / 1e6,
            end_s: end_s(n),
            ..Stretch::default()
        };
        let run = Run {
            headwater_load: VERSION,
            offered: plan.offered.clone(),
            started_unix_ms: since.as_millis() as u64,
            generators: 1,
            steps: steps.iter().enumerate().map(stretch).collect(),
            ..Run::default()
        };
        Sum {
            run,
            viewing: Viewing::default(),
            plan,
            open: BTreeMap::new(),
            ended: false,
            memory: 0,
        }
    }

    fn take(&mut self, tick: Tick, outputs: &mut Outputs) -> Result<(), String> {
        let number = tick.second.saturating_sub(1);
        let second = self.open.entry(number).or_default();
        second.threads += 1;
        for ((step, kind), cell) in tick.cells {
            if let Some(stretch) = self.run.steps.get_mut(step as usize) {
                stretch.kinds.entry(kind).or_default().add(&cell);
            }
            second.cells.entry((step, kind)).or_default().add(&cell);
        }
        for (place, glance) in &tick.glances {
            second.viewers += 1;
            second.playing += u64::from(glance.playing);
            second.stalled += u64::from(glance.stalled);
            second.buffers_us.push(glance.buffer);
            second.bps += glance.bps;
            if *place < TRACES {
                trace(
                    &mut self.viewing.traces,
                    *place,
                    (
                        number + 1,
                        glance.buffer as f32 / 1e6,
                        (glance.bps / 1e3) as f32,
                    ),
                );
            }
        }
        self.viewing.add(&tick.viewing);
        self.run.abandoned += tick.abandoned;
        for (fault, example) in tick.examples {
            self.run.examples.entry(fault).or_insert(example);
        }
        let wrong = |error: std::io::Error| format!("records could not be written: {error}");
        match &mut outputs.records {
            Some(out) => {
                out.write(&tick.records).map_err(wrong)?;
                out.write(&tick.players).map_err(wrong)
            }
            None => Ok(()),
        }
    }

    /// Closes the seconds that every thread has reported.
    fn close(
        &mut self,
        threads: usize,
        outputs: &mut Outputs,
        see: &mut impl FnMut(&Sight<'_>),
    ) -> Result<(), String> {
        while let Some(entry) = self.open.first_entry() {
            if entry.get().threads < threads && !self.ended {
                return Ok(());
            }
            let (number, mut open) = entry.remove_entry();
            self.log(number, &open, outputs)?;
            let second = self.second(number, &open);
            let sample = open.sample(number);
            if sample.viewers > 0 {
                see(&Sight {
                    second: &second,
                    sample: &sample,
                });
                self.viewing.samples.push(sample);
            }
            self.run.seconds.push(second);
        }
        Ok(())
    }

    fn second(&self, number: u64, open: &Open) -> Second {
        let mut total = Cell::default();
        open.cells.values().for_each(|cell| total.add(cell));
        Second {
            second: number,
            // Players' requests are due when they are made.
            due: total.requests,
            ended: total.requests,
            errors: total.errors(),
            bytes: total.bytes,
            open: self.plan.dialer.connections().open(),
            due_p50_ms: total.from_due.quantile_ms(0.5),
            due_p90_ms: total.from_due.quantile_ms(0.9),
            due_p99_ms: total.from_due.quantile_ms(0.99),
            due_max_ms: total.from_due.max_ms(),
            sent_p50_ms: total.from_sent.quantile_ms(0.5),
            sent_p99_ms: total.from_sent.quantile_ms(0.99),
        }
    }

    fn log(&self, number: u64, open: &Open, outputs: &mut Outputs) -> Result<(), String> {
        let Some(log) = &mut outputs.hdr else {
            return Ok(());
        };
        for ((step, kind), cell) in &open.cells {
            for (what, times) in [("due", &cell.from_due), ("sent", &cell.from_sent)] {
                let tag = format!("step{}/{}/{what}", step + 1, kind.name());
                log.write(&tag, number as f64, 1.0, times)
                    .map_err(|error| format!("the HDR log could not be written: {error}"))?;
            }
        }
        Ok(())
    }
}

impl Open {
    fn sample(&mut self, number: u64) -> Sample {
        self.buffers_us.sort_unstable();
        let held = |share: f64| {
            let at = (share * self.buffers_us.len().saturating_sub(1) as f64).round() as usize;
            self.buffers_us.get(at).map_or(0.0, |us| *us as f64 / 1e6)
        };
        Sample {
            second: number + 1,
            viewers: self.viewers,
            playing: self.playing,
            stalled: self.stalled,
            buffer_p10_s: held(0.1),
            buffer_p50_s: held(0.5),
            buffer_p90_s: held(0.9),
            bitrate_kbps: if self.viewers > 0 {
                self.bps / 1e3 / self.viewers as f64
            } else {
                0.0
            },
        }
    }
}

fn trace(traces: &mut Vec<Trace>, place: u64, point: (u64, f32, f32)) {
    match traces.iter_mut().find(|trace| trace.place == place) {
        Some(trace) => trace.points.push(point),
        None => traces.push(Trace {
            place,
            points: vec![point],
        }),
    }
}
