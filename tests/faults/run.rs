//! Runs the plan of a seed.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::client::{self, ClientExchange};
use crate::judge::RunJudge;
use crate::origin::FaultyOrigin;
use crate::plan::{DiskDamage, FaultPlan, PlanStep, PlannedRequest};
use crate::random::SeededRandom;
use crate::support::{HeadwaterServer, TempFolder};

/// Pause of a plan. It is longer than the sum of the lifetime of the policy `Brief` and the delay
/// that the judge permits, which are one second each.
const PAUSE: Duration = Duration::from_millis(2500);

struct FaultRun<'a> {
    plan: &'a FaultPlan,
    origin: &'a FaultyOrigin,
    folder: TempFolder,
    bug: Option<&'a str>,
    random: SeededRandom,
}

/// Runs a seed. `bug` selects a planted bug, if the build contains planted bugs. Returns the broken
/// invariants.
pub fn run_seed(seed: u64, bug: Option<&str>) -> Vec<String> {
    let plan = FaultPlan::new(seed);
    let origin = FaultyOrigin::start(seed, &plan.resources, plan.fault_percent);
    let mut judge = RunJudge::new(&origin.state, &plan.resources);
    let mut run = FaultRun {
        plan: &plan,
        origin: &origin,
        folder: TempFolder::new(),
        bug,
        random: SeededRandom::new(!seed),
    };
    let mut edge = run.start_edge();
    for step in &plan.steps {
        match step {
            PlanStep::Pause => std::thread::sleep(PAUSE),
            PlanStep::Replace(resource) => origin.state.replace(&plan.resources[*resource].path),
            PlanStep::Restart {
                is_graceful,
                damage,
            } => {
                if *is_graceful {
                    edge.terminate();
                }
                drop(edge);
                run.damage_disk(*damage);
                edge = run.start_edge();
            }
            PlanStep::Requests(requests, kill) => {
                let exchanges = run.send_requests(&mut edge, requests, *kill);
                for exchange in &exchanges {
                    judge.judge(exchange, kill.is_some());
                }
            }
        }
        if !judge.violations.is_empty() {
            break;
        }
    }
    judge.violations
}

impl FaultRun<'_> {
    fn start_edge(&self) -> HeadwaterServer {
        let (origin, disk) = (format!("http://{}", self.origin.address), self.disk());
        let flags = [
            ["--origin", &origin],
            ["--disk-dir", disk.to_str().unwrap()],
            ["--memory", "16MiB"],
            ["--workers", "2"],
            // The edge never takes the origin out of rotation. Otherwise, a fault could also make
            // later requests fail.
            ["--origin-failures", "1000000"],
            ["--origin-first-byte-timeout", "5s"],
            ["--origin-between-timeout", "5s"],
            ["--header-timeout", "5s"],
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        if let Some(bug) = self.bug {
            command.env("PLANTED_BUG", bug);
        }
        HeadwaterServer::spawn(command, "edge", flags.as_flattened())
    }

    fn disk(&self) -> PathBuf {
        self.folder.0.join("disk")
    }

    /// Sends requests at the same time. If a kill is planned, kills the edge during the requests,
    /// and starts a new edge afterwards.
    fn send_requests(
        &self,
        edge: &mut HeadwaterServer,
        requests: &[PlannedRequest],
        kill_after_ms: Option<u64>,
    ) -> Vec<ClientExchange> {
        let address = edge.addr;
        let exchanges = std::thread::scope(|scope| {
            let threads: Vec<_> = requests
                .iter()
                .map(|request| {
                    let resource = &self.plan.resources[request.resource];
                    scope.spawn(move || client::run_exchange(address, resource, request))
                })
                .collect();
            if let Some(milliseconds) = kill_after_ms {
                std::thread::sleep(Duration::from_millis(milliseconds));
                edge.send_signal("KILL");
            }
            let join = |thread: std::thread::ScopedJoinHandle<_>| thread.join().unwrap();
            threads.into_iter().map(join).collect()
        });
        if kill_after_ms.is_some() {
            edge.wait_for_exit();
            *edge = self.start_edge();
        }
        exchanges
    }

    /// Damages one file of the disk tier.
    fn damage_disk(&mut self, damage: DiskDamage) {
        let mut files = list_files(&self.disk());
        files.sort();
        if files.is_empty() {
            return;
        }
        let index = self.random.below(files.len() as u64);
        let path = &files[usize::try_from(index).unwrap()];
        let len = fs::metadata(path).unwrap().len();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        match damage {
            DiskDamage::None => {}
            DiskDamage::Delete => fs::remove_file(path).unwrap(),
            DiskDamage::Truncate => file.set_len(self.random.below(len.max(1))).unwrap(),
            DiskDamage::Append => {
                file.seek(SeekFrom::End(0)).unwrap();
                file.write_all(b"more").unwrap();
            }
            DiskDamage::FlipBytes => {
                let at = self.random.below(len.max(1));
                file.seek(SeekFrom::Start(at)).unwrap();
                file.write_all(&self.random.next().to_le_bytes()).unwrap();
            }
        }
    }
}

/// Returns the files below a folder that contain objects. Files of 100 bytes or less contain no
/// object.
fn list_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let files = paths.flat_map(|path| match path.is_dir() {
        true => list_files(&path),
        false => vec![path],
    });
    files
        .filter(|path| fs::metadata(path).is_ok_and(|data| data.len() > 100))
        .collect()
}
