//! Adds up what the threads see, second by second, and writes it down as it comes.

use super::tally::Tick;
use super::worker::{Common, work};
use super::{Kind, Plan};
use crate::result::{Cell, HdrLog, Records, Run, Second, Stretch, VERSION};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Files that are written while the run goes on.
#[derive(Default)]
pub struct Outputs {
    /// The HDR interval log.
    pub hdr: Option<HdrLog<BufWriter<File>>>,
    /// Raw records.
    pub records: Option<Records>,
}

/// What there is to see of a run at a second's end.
pub struct Sight<'a> {
    /// The second that ended.
    pub second: &'a Second,
    /// The run's length in seconds.
    pub of_s: f64,
    /// Requests that were never sent, so far.
    pub unsent: u64,
}

/// Runs a plan to its end; `stop` ends it early, with what it has. `see` is called every second.
///
/// # Errors
/// What kept it from running, or its files from being written.
pub fn run(
    plan: Arc<Plan>,
    stop: &AtomicBool,
    mut outputs: Outputs,
    mut see: impl FnMut(&Sight<'_>),
) -> Result<Run, String> {
    let threads = plan.threads;
    let common = Arc::new(Common {
        targets: Arc::new(plan.prepare().map_err(|failure| failure.to_string())?),
        start: OnceLock::new(),
        ready: Barrier::new(threads),
        stop: AtomicBool::new(false),
        keep_records: outputs.records.is_some(),
        plan: plan.clone(),
    });
    let (out, ticks) = channel();
    let started = SystemTime::now();
    let cpu = cpu_s();
    let mut workers = Vec::new();
    for number in 0..threads {
        let (common, out) = (common.clone(), out.clone());
        let worker = std::thread::Builder::new()
            .name(format!("load-{number}"))
            .spawn(move || work(common, number, &out));
        workers.push(worker.map_err(|error| format!("no thread: {error}"))?);
    }
    drop(out);
    let mut sum = Sum::new(&plan, started);
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
        sum.close(&mut outputs, &mut see)?;
    }
    for worker in workers {
        worker
            .join()
            .map_err(|_| "a thread of the generator ended in panic")??;
    }
    let mut run = sum.run;
    let begun = common.start.get().copied();
    run.wall_s = begun.map_or(0.0, |start: Instant| start.elapsed().as_secs_f64());
    run.cpu_s = cpu_s() - cpu;
    run.connections = plan.dialer.connections().opened();
    let wrong = |error: std::io::Error| format!("what was measured could not be written: {error}");
    outputs.hdr.map_or(Ok(()), HdrLog::finish).map_err(wrong)?;
    outputs
        .records
        .map_or(Ok(()), Records::finish)
        .map_err(wrong)?;
    Ok(run)
}

/// Processor time of this process so far, in seconds.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A second whose reports are not all in.
#[derive(Default)]
struct Open {
    cells: BTreeMap<(u32, Kind), Cell>,
    due: u64,
    /// Connections at its end.
    open: u64,
}

struct Sum {
    run: Run,
    plan: Arc<Plan>,
    open: BTreeMap<u64, Open>,
    /// Seconds that each thread has reported.
    reported: Vec<u64>,
}

impl Sum {
    fn new(plan: &Arc<Plan>, started: SystemTime) -> Sum {
        let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let steps = plan.profile.steps().into_iter().map(|step| Stretch {
            start_s: step.start_s,
            end_s: step.end_s,
            ..Stretch::default()
        });
        let run = Run {
            headwater_load: VERSION,
            offered: plan.offered.clone(),
            started_unix_ms: since.as_millis() as u64,
            generators: 1,
            steps: steps.collect(),
            ..Run::default()
        };
        Sum {
            run,
            plan: plan.clone(),
            open: BTreeMap::new(),
            reported: vec![0; plan.threads],
        }
    }

    fn take(&mut self, tick: Tick, outputs: &mut Outputs) -> Result<(), String> {
        let second = self.open.entry(tick.second.saturating_sub(1)).or_default();
        self.reported[tick.thread] = if tick.last { u64::MAX } else { tick.second };
        for ((step, kind), cell) in tick.cells {
            if let Some(stretch) = self.run.steps.get_mut(step as usize) {
                stretch.kinds.entry(kind).or_default().add(&cell);
            }
            second.cells.entry((step, kind)).or_default().add(&cell);
        }
        second.open = second.open.max(tick.open);
        for (step, count) in tick.due {
            second.due += count;
            if let Some(stretch) = self.run.steps.get_mut(step as usize) {
                stretch.due += count;
            }
        }
        self.run.unsent += tick.unsent;
        self.run.abandoned += tick.abandoned;
        self.run.lag.add(&tick.lag);
        self.run.connect.add(&tick.connect);
        for (fault, example) in tick.examples {
            self.run.examples.entry(fault).or_insert(example);
        }
        match &mut outputs.records {
            Some(out) => out
                .write(&tick.records)
                .map_err(|error| format!("records could not be written: {error}")),
            None => Ok(()),
        }
    }

    /// Closes the seconds that every thread has reported.
    fn close(
        &mut self,
        outputs: &mut Outputs,
        see: &mut impl FnMut(&Sight<'_>),
    ) -> Result<(), String> {
        while let Some(entry) = self.open.first_entry() {
            if self.reported.iter().any(|seconds| *seconds <= *entry.key()) {
                return Ok(());
            }
            let (number, open) = entry.remove_entry();
            self.log(number, &open, outputs)?;
            let second = self.second(number, &open);
            if self.is_over()
                && second
                    == (Second {
                        second: number,
                        ..Second::default()
                    })
            {
                continue;
            }
            see(&Sight {
                second: &second,
                of_s: self.plan.profile.duration_s(),
                unsent: self.run.unsent,
            });
            self.run.seconds.push(second);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.reported.iter().all(|seconds| *seconds == u64::MAX)
    }

    fn second(&self, number: u64, open: &Open) -> Second {
        let mut total = Cell::default();
        open.cells.values().for_each(|cell| total.add(cell));
        Second {
            second: number,
            due: open.due,
            ended: total.requests,
            errors: total.errors(),
            bytes: total.bytes,
            open: open.open,
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
