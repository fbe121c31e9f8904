//! Adds up what the threads see, second by second, and writes it down as it comes.

use super::tally::Tick;
use super::thread::{Common, work};
use super::viewing::{Sample, Trace, Viewing};
use super::{Catalog, Plan};
use crate::generator::{self, Heard, cpu_s};
use crate::rate::Kind;
use crate::result::{Cell, Outputs, Run, Second, Stretch};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};

/// Places that are traced one by one.
const TRACES: u64 = 12;

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
    let common = Arc::new(Common {
        catalog: Catalog::new(plan.wish.clone()),
        start: OnceLock::new(),
        ready: Barrier::new(plan.threads),
        stop: AtomicBool::new(false),
        keep_records: outputs.records.is_some(),
        plan: plan.clone(),
    });
    let mut sum = Sum::new(plan.clone());
    let (cpu, memory) = (cpu_s(), resident_bytes());
    let shared = common.clone();
    let work = move |number, out: &Sender<_>| work(&shared, number, out);
    generator::run("players", plan.threads, stop, work, |heard| {
        match heard {
            Heard::Report(tick) => sum.take(*tick, &mut outputs)?,
            Heard::Nothing => {}
            Heard::Stop => {
                common.stop.store(true, Ordering::Relaxed);
                sum.run.stopped = true;
            }
        }
        sum.memory = sum.memory.max(resident_bytes());
        sum.close(&mut outputs, &mut see)
    })?;
    sum.ended = true;
    sum.close(&mut outputs, &mut see)?;
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
    outputs.finish()?;
    Ok((run, viewing))
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
    fn new(plan: Arc<Plan>) -> Sum {
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
        let steps = steps.iter().enumerate().map(stretch).collect();
        let run = Run::begin(&plan.offered, steps);
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
            self.run.count(step, kind, &cell);
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
        outputs.record(&tick.records)?;
        outputs.record(&tick.players)
    }

    /// Closes the seconds that every thread has reported.
    fn close(
        &mut self,
        outputs: &mut Outputs,
        see: &mut impl FnMut(&Sight<'_>),
    ) -> Result<(), String> {
        while let Some(entry) = self.open.first_entry() {
            if entry.get().threads < self.plan.threads && !self.ended {
                return Ok(());
            }
            let (number, mut open) = entry.remove_entry();
            outputs.log(number, &open.cells)?;
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
        let second = Second::of(number, open.cells.values());
        Second {
            // Players' requests are due when they are made.
            due: second.ended,
            open: self.plan.dialer.connections().open(),
            ..second
        }
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
