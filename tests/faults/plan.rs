//! The plan of a run, which the seed determines.

use crate::random::SeededRandom;
use crate::resource::{BODY_BYTES_MIN, CachingPolicy, LARGE_BYTES, POLICIES, Resource};

/// A client's request and its behavior.
#[derive(Debug, Clone)]
pub struct PlannedRequest {
    /// Index of the resource.
    pub resource: usize,
    pub language: &'static str,
    pub kind: RequestKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Whole,
    Head,
    /// A GET request for a range. The fields are the positions of the range's first and last byte.
    Range(u64, u64),
    /// A conditional request with the entity tag of this version.
    IfNoneMatch(u64),
    /// A request that accepts a stale response.
    MaxStale,
    /// Reads the response slowly.
    Slow,
    /// Disconnects after this number of body bytes.
    Disconnect(usize),
    /// Uploads a body with an invalid chunk.
    BrokenUpload,
}

/// Damage to one file of the disk tier while no edge runs.
#[derive(Debug, Clone, Copy)]
pub enum DiskDamage {
    None,
    FlipBytes,
    Truncate,
    Delete,
    Append,
}

#[derive(Debug, Clone)]
pub enum PlanStep {
    /// Sends these requests at the same time. The number is the time in milliseconds until the edge
    /// is killed.
    Requests(Vec<PlannedRequest>, Option<u64>),
    /// Waits for longer than the lifetime of the policy `Brief`.
    Pause,
    /// Replaces a resource at the origin.
    Replace(usize),
    /// Ends the edge with SIGTERM or SIGKILL, and starts the edge again with the same disk folder.
    Restart {
        is_graceful: bool,
        damage: DiskDamage,
    },
}

#[derive(Debug)]
pub struct FaultPlan {
    pub resources: Vec<Resource>,
    pub steps: Vec<PlanStep>,
    /// Percentage of the origin's responses that have a fault.
    pub fault_percent: u64,
}

const STEPS: usize = 24;
const PAUSES_MAX: usize = 2;
const REQUESTS_AT_ONCE_MAX: u64 = 8;

impl FaultPlan {
    pub fn new(seed: u64) -> FaultPlan {
        let mut random = SeededRandom::new(seed);
        let count = 2 + random.below(4);
        let resources: Vec<Resource> = (0..count)
            .map(|number| {
                // If two consecutive resources have the same policy, their paths may be equal
                // except for the query.
                let policy = random.pick(&POLICIES);
                Resource::new(usize::try_from(number).unwrap(), policy)
            })
            .collect();
        let fault_percent = random.pick(&[0, 5, 20, 50]);
        let mut pauses = 0;
        let steps = (0..STEPS)
            .map(|_| match random.below(100) {
                0..10 if pauses < PAUSES_MAX => {
                    pauses += 1;
                    PlanStep::Pause
                }
                0..22 => PlanStep::Replace(pick_index(&mut random, resources.len())),
                22..28 => PlanStep::Restart {
                    is_graceful: random.has_chance(60),
                    damage: random.pick(&[
                        DiskDamage::None,
                        DiskDamage::None,
                        DiskDamage::FlipBytes,
                        DiskDamage::FlipBytes,
                        DiskDamage::Truncate,
                        DiskDamage::Delete,
                        DiskDamage::Append,
                    ]),
                },
                _ => plan_requests(&mut random, &resources),
            })
            .collect();
        FaultPlan {
            resources,
            steps,
            fault_percent,
        }
    }
}

fn pick_index(random: &mut SeededRandom, len: usize) -> usize {
    usize::try_from(random.below(len as u64)).unwrap()
}

fn plan_requests(random: &mut SeededRandom, resources: &[Resource]) -> PlanStep {
    let (count, is_same) = (
        1 + random.below(REQUESTS_AT_ONCE_MAX),
        random.has_chance(60),
    );
    let one = pick_index(random, resources.len());
    let requests = (0..count).map(|_| {
        let resource = match is_same {
            true => one,
            false => pick_index(random, resources.len()),
        };
        PlannedRequest {
            resource,
            language: random.pick(&["de", "fr"]),
            kind: plan_kind(random, resources[resource].policy),
        }
    });
    let requests = requests.collect();
    let kill = random.has_chance(3).then(|| random.below(40));
    PlanStep::Requests(requests, kill)
}

fn plan_kind(random: &mut SeededRandom, policy: CachingPolicy) -> RequestKind {
    // Most requests for a large resource need only one or two blocks, so that later requests fetch
    // other blocks.
    if policy == CachingPolicy::Large && random.has_chance(80) {
        let first = random.below(LARGE_BYTES - BODY_BYTES_MIN);
        return RequestKind::Range(first, first + random.pick(&[10, 100_000]));
    }
    match random.below(100) {
        0..50 => RequestKind::Whole,
        50..55 => RequestKind::Head,
        55..75 => {
            let first = random.below(BODY_BYTES_MIN);
            let len = random.pick(&[1, 10, 1000, 700_000]);
            RequestKind::Range(first, first + len - 1)
        }
        75..82 => RequestKind::IfNoneMatch(random.below(3)),
        82..86 => RequestKind::MaxStale,
        86..90 => RequestKind::Slow,
        90..96 => RequestKind::Disconnect(pick_index(random, 3000)),
        _ => RequestKind::BrokenUpload,
    }
}
