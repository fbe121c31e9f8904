//! Who watches: how many and when, what, on which device, for how long, and what they do meanwhile.
//!
//! Everything is decided by the seed, the viewer's place and how many sat there before: not by how
//! fast anything went. So the same seed decides the same, against any server.

mod arrivals;
pub mod words;

use super::abr::{self, Abr, Fixed};
use super::device::Device;
use super::player::Micros;
use super::viewer::Plan;
use crate::random::Random;
use media::manifest::read::{Part, Url};

pub use arrivals::{Arrivals, PLACES_MAX};

/// How long someone watches, seconds on the wall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Watch {
    /// To the end of the title.
    All,
    /// So many seconds.
    Fixed(f64),
    /// Exponentially distributed with this mean: most leave early, some stay long.
    Exponential(f64),
    /// Evenly between the two.
    Uniform(f64, f64),
}

/// Which rule a player uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// One level always.
    Fixed(Fixed),
    /// Any level, anew for each segment.
    Random,
    /// [`abr::Throughput`].
    Throughput,
    /// [`abr::Bba`].
    Bba,
    /// [`abr::Bola`].
    Bola,
    /// [`abr::Dynamic`].
    Dynamic,
    /// [`abr::RobustMpc`].
    Mpc,
}

impl Rule {
    /// A rule that has seen nothing yet.
    pub fn build(self, seed: u64) -> Box<dyn Abr> {
        match self {
            Rule::Fixed(fixed) => Box::new(fixed),
            Rule::Random => Box::new(abr::Random::new(seed)),
            Rule::Throughput => Box::new(abr::Throughput::default()),
            Rule::Bba => Box::new(abr::Bba),
            Rule::Bola => Box::new(abr::Bola::default()),
            Rule::Dynamic => Box::new(abr::Dynamic::default()),
            Rule::Mpc => Box::new(abr::RobustMpc::default()),
        }
    }
}

/// All viewers of a run.
#[derive(Debug, Clone)]
pub struct Population {
    /// What decides.
    pub seed: u64,
    /// Manifests, the most popular first.
    pub titles: Vec<Url>,
    /// Exponent of Zipf's law: title k is chosen in proportion to 1/k^this; 0: all alike.
    pub zipf: f64,
    /// How long they watch.
    pub watch: Watch,
    /// Seeks an hour of watching, on average; at random times to random places.
    pub seeks_per_hour: f64,
    /// Seconds that they wait for pictures before they give up.
    pub patience_s: Option<f64>,
    /// Devices with their weights; never empty.
    pub devices: Vec<(Device, f64)>,
    /// Which rule their players use.
    pub rule: Rule,
}

/// The most seeks of one viewer.
const SEEKS_MAX: usize = 1000;

impl Population {
    /// What the `nth` viewer in a place does, who comes at `start` in a run that ends at `end`; and
    /// a seed for what their player decides by chance.
    pub fn plan(&self, place: u64, nth: u64, start: Micros, end: Micros) -> (Plan, u64) {
        // One stream of chance for each viewer, so that one's choices move nobody else's.
        let mut chance = Random::of(
            self.seed,
            place.wrapping_mul(0x1_0000_0001).wrapping_add(nth),
        );
        let session = u128::from(chance.bits()) << 64 | u128::from(chance.bits());
        let title = zipf(self.titles.len(), self.zipf, chance.unit());
        let device = pick(&self.devices, chance.unit());
        let leave_at = self
            .watch
            .seconds(&mut chance)
            .map_or(Micros::MAX, |seconds| start.saturating_add(micros(seconds)));
        let leave_at = leave_at.min(end);
        let seeks = self.seeks(&mut chance, start, leave_at);
        let plan = Plan {
            manifest: Part {
                url: self.titles[title].clone(),
                range: None,
            },
            device,
            leave_at,
            patience: self.patience_s.map(micros),
            seeks,
            session: as_uuid(session),
        };
        (plan, chance.bits())
    }

    /// A Poisson process.
    fn seeks(&self, chance: &mut Random, start: Micros, end: Micros) -> Vec<(Micros, f64)> {
        let mut seeks = Vec::new();
        if self.seeks_per_hour <= 0.0 {
            return seeks;
        }
        let mean_s = 3600.0 / self.seeks_per_hour;
        let mut at = start;
        while seeks.len() < SEEKS_MAX {
            at = at.saturating_add(micros(chance.exponential() * mean_s).max(1));
            if at >= end {
                break;
            }
            seeks.push((at, chance.unit()));
        }
        seeks
    }
}

impl Watch {
    fn seconds(self, chance: &mut Random) -> Option<f64> {
        match self {
            Watch::All => None,
            Watch::Fixed(seconds) => Some(seconds),
            Watch::Exponential(mean) => Some(chance.exponential() * mean),
            Watch::Uniform(from, to) => Some(from + (to - from) * chance.unit()),
        }
    }
}

/// Which of `count` titles: Zipf's law, by its inverse distribution.
fn zipf(count: usize, exponent: f64, chance: f64) -> usize {
    let weight = |k: usize| ((k + 1) as f64).powf(-exponent);
    let total: f64 = (0..count).map(weight).sum();
    let mut left = chance * total;
    for k in 0..count {
        left -= weight(k);
        if left < 0.0 {
            return k;
        }
    }
    count.saturating_sub(1)
}

fn pick(devices: &[(Device, f64)], chance: f64) -> Device {
    let total: f64 = devices.iter().map(|(_, weight)| weight).sum();
    let mut left = chance * total;
    for (device, weight) in devices {
        left -= weight;
        if left < 0.0 {
            return *device;
        }
    }
    devices
        .last()
        .map_or(super::device::DEVICES[0], |(device, _)| *device)
}

/// A random UUID (RFC 9562, version 4).
fn as_uuid(bits: u128) -> u128 {
    let version = bits & !(0xf << 76) | (0x4 << 76);
    version & !(0x3 << 62) | (0x2 << 62)
}

fn micros(seconds: f64) -> Micros {
    (seconds.max(0.0) * 1e6).min(1e18) as Micros
}

#[cfg(test)]
mod tests {
    use super::*;

    fn population(seed: u64) -> Population {
        Population {
            seed,
            titles: (0..10)
                .map(|n| Url::parse(&format!("http://o.test/{n}.mpd")).unwrap())
                .collect(),
            zipf: 1.0,
            watch: Watch::Exponential(600.0),
            seeks_per_hour: 6.0,
            patience_s: Some(10.0),
            devices: ["phone", "tv"]
                .map(|name| (Device::named(name).unwrap(), 1.0))
                .into(),
            rule: Rule::Dynamic,
        }
    }

    fn all(seed: u64) -> Vec<Plan> {
        let population = population(seed);
        (0..10_000)
            .map(|place| population.plan(place, 0, 0, Micros::MAX).0)
            .collect()
    }

    #[test]
    fn the_same_seed_decides_the_same() {
        let (a, b, c) = (all(1), all(1), all(2));
        let told = |plans: &[Plan]| format!("{:?}", &plans[..100]);
        assert_eq!(told(&a), told(&b));
        assert_ne!(told(&a), told(&c));
        let population = population(1);
        let session = |nth| population.plan(3, nth, 0, 9).0.session;
        assert_ne!(session(0), session(1));
    }

    #[test]
    fn distributions_are_what_they_say() {
        let plans = all(7);
        let share = |found: usize| found as f64 / plans.len() as f64;
        let first = plans
            .iter()
            .filter(|plan| plan.manifest.url.path() == "/0.mpd")
            .count();
        // 1 of 1 + 1/2 + … + 1/10.
        assert!(
            (share(first) - 1.0 / 2.928_968).abs() < 0.015,
            "{}",
            share(first)
        );
        let phones = plans
            .iter()
            .filter(|plan| plan.device.name == "phone")
            .count();
        assert!((share(phones) - 0.5).abs() < 0.02);
        let mean = plans
            .iter()
            .map(|plan| plan.leave_at as f64 / 1e6)
            .sum::<f64>()
            / plans.len() as f64;
        assert!((mean - 600.0).abs() < 20.0, "{mean}");
        let seeks = plans.iter().map(|plan| plan.seeks.len()).sum::<usize>();
        assert!((share(seeks) - 1.0).abs() < 0.05, "{}", share(seeks));
        assert!(
            plans
                .iter()
                .all(|plan| plan.seeks.is_sorted_by_key(|seek| seek.0))
        );
    }

    #[test]
    fn one_title_and_no_law() {
        assert_eq!(zipf(1, 1.0, 0.999), 0);
        let counts = (0..1000).fold([0; 4], |mut counts, n| {
            counts[zipf(4, 0.0, f64::from(n) / 1000.0)] += 1;
            counts
        });
        assert_eq!(counts, [250; 4]);
    }

    #[test]
    fn sessions_are_uuids_of_version_4() {
        let text = super::super::cmcd::uuid(as_uuid(u128::MAX));
        assert_eq!(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
