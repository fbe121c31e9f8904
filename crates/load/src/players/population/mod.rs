//! The viewers of a run: when they arrive, what they watch, on which device, for how long, and when
//! they seek.
//!
//! Each viewer occupies a place. When a viewer leaves, another viewer takes the place. All
//! decisions depend only on the seed, the place, and the number of earlier viewers in this place.
//! The speed of the server has no influence, so the same seed leads to the same decisions with any
//! server.

mod viewer_arrivals;
pub mod viewer_options;

use super::abr::{self, AbrRule, FixedLevel};
use super::device_profile::DeviceProfile;
use super::player_interface::Micros;
use super::viewer::ViewerPlan;
use crate::random::Random;
use media::manifest::read::{ResourceRange, Url};

pub use viewer_arrivals::{PLACES_MAX, ViewerArrivals};

/// The watch time of a viewer, in seconds of real time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WatchTime {
    /// Until the end of the title.
    All,
    /// A fixed number of seconds.
    Fixed(f64),
    /// An exponential distribution with this mean. Most viewers leave early, and some stay long.
    Exponential(f64),
    /// A uniform distribution between these two values.
    Uniform(f64, f64),
}

/// The adaptive bitrate rule of a player.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AbrSetting {
    /// The same level for all segments.
    Fixed(FixedLevel),
    /// A random level for each segment.
    Random,
    /// [`abr::HlsJsRule`].
    HlsJs,
    /// [`abr::ShakaRule`].
    Shaka,
    /// [`abr::ThroughputRule`].
    Throughput,
    /// [`abr::BbaRule`].
    Bba,
    /// [`abr::BolaRule`].
    Bola,
    /// [`abr::DynamicRule`].
    Dynamic,
    /// [`abr::RobustMpc`].
    Mpc,
}

impl AbrSetting {
    /// Creates a rule in its initial state.
    pub fn create_rule(self, seed: u64) -> Box<dyn AbrRule> {
        match self {
            AbrSetting::Fixed(fixed) => Box::new(fixed),
            AbrSetting::Random => Box::new(abr::RandomLevel::new(seed)),
            AbrSetting::HlsJs => Box::new(abr::HlsJsRule::default()),
            AbrSetting::Shaka => Box::new(abr::ShakaRule::default()),
            AbrSetting::Throughput => Box::new(abr::ThroughputRule::default()),
            AbrSetting::Bba => Box::new(abr::BbaRule),
            AbrSetting::Bola => Box::new(abr::BolaRule::default()),
            AbrSetting::Dynamic => Box::new(abr::DynamicRule::default()),
            AbrSetting::Mpc => Box::new(abr::RobustMpc::default()),
        }
    }
}

/// All viewers of a run.
#[derive(Debug, Clone)]
pub struct Population {
    /// Seed of all random decisions.
    pub seed: u64,
    /// URLs of the manifests, the most popular first.
    pub titles: Vec<Url>,
    /// Exponent of Zipf's law. The probability of title k (from 1) is proportional to 1/k^zipf. If
    /// the exponent is 0, all titles have the same probability.
    pub zipf: f64,
    /// The watch time of viewers.
    pub watch: WatchTime,
    /// Mean number of seeks per hour, at random times to random positions.
    pub seeks_per_hour: f64,
    /// Seconds that a viewer waits for video before giving up.
    pub patience_s: Option<f64>,
    /// Devices and their weights. The list is never empty.
    pub devices: Vec<(DeviceProfile, f64)>,
    /// The adaptive bitrate rule.
    pub rule: AbrSetting,
}

/// Maximum number of seeks per viewer.
const SEEKS_MAX: usize = 1000;

impl Population {
    /// Plans the `nth` viewer of a place, who arrives at `start` in a run that ends at `end`. Also
    /// returns a seed for the player's random decisions.
    pub fn plan_viewer(
        &self,
        place: u64,
        nth: u64,
        start: Micros,
        end: Micros,
    ) -> (ViewerPlan, u64) {
        // Each viewer has a separate random stream, so that the decisions of one viewer do not
        // change the decisions of other viewers.
        let mut chance = Random::derive_stream(
            self.seed,
            place.wrapping_mul(0x1_0000_0001).wrapping_add(nth),
        );
        let session = u128::from(chance.next_bits()) << 64 | u128::from(chance.next_bits());
        let title = choose_title(self.titles.len(), self.zipf, chance.next_unit());
        let device = choose_device(&self.devices, chance.next_unit());
        let leave_at = self
            .watch
            .draw_watch_seconds(&mut chance)
            .map_or(Micros::MAX, |seconds| {
                start.saturating_add(to_micros(seconds))
            });
        let leave_at = leave_at.min(end);
        let seeks = self.plan_seeks(&mut chance, start, leave_at);
        let plan = ViewerPlan {
            manifest: ResourceRange {
                url: self.titles[title].clone(),
                range: None,
            },
            device,
            leave_at,
            patience: self.patience_s.map(to_micros),
            seeks,
            session: uuid_from_random_bits(session),
        };
        (plan, chance.next_bits())
    }

    /// Draws the times of seeks from a Poisson process, and a random position for each seek.
    fn plan_seeks(&self, chance: &mut Random, start: Micros, end: Micros) -> Vec<(Micros, f64)> {
        let mut seeks = Vec::new();
        if self.seeks_per_hour <= 0.0 {
            return seeks;
        }
        let mean_s = 3600.0 / self.seeks_per_hour;
        let mut at = start;
        while seeks.len() < SEEKS_MAX {
            at = at.saturating_add(to_micros(chance.exponential() * mean_s).max(1));
            if at >= end {
                break;
            }
            seeks.push((at, chance.next_unit()));
        }
        seeks
    }
}

impl WatchTime {
    fn draw_watch_seconds(self, chance: &mut Random) -> Option<f64> {
        match self {
            WatchTime::All => None,
            WatchTime::Fixed(seconds) => Some(seconds),
            WatchTime::Exponential(mean) => Some(chance.exponential() * mean),
            WatchTime::Uniform(from, to) => Some(from + (to - from) * chance.next_unit()),
        }
    }
}

/// Chooses one of `count` titles by Zipf's law. `chance` is a random number from 0 to 1.
fn choose_title(count: usize, exponent: f64, chance: f64) -> usize {
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

fn choose_device(devices: &[(DeviceProfile, f64)], chance: f64) -> DeviceProfile {
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
        .map_or(super::device_profile::DEVICES[0], |(device, _)| *device)
}

/// Converts random bits to a UUID (RFC 9562, version 4).
fn uuid_from_random_bits(bits: u128) -> u128 {
    let version = bits & !(0xf << 76) | (0x4 << 76);
    version & !(0x3 << 62) | (0x2 << 62)
}

fn to_micros(seconds: f64) -> Micros {
    (seconds.max(0.0) * 1e6).min(1e18) as Micros
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_population(seed: u64) -> Population {
        Population {
            seed,
            titles: (0..10)
                .map(|n| Url::parse(&format!("http://o.test/{n}.mpd")).unwrap())
                .collect(),
            zipf: 1.0,
            watch: WatchTime::Exponential(600.0),
            seeks_per_hour: 6.0,
            patience_s: Some(10.0),
            devices: ["phone", "tv"]
                .map(|name| (DeviceProfile::find_by_name(name).unwrap(), 1.0))
                .into(),
            rule: AbrSetting::Dynamic,
        }
    }

    fn plan_all(seed: u64) -> Vec<ViewerPlan> {
        let population = test_population(seed);
        (0..10_000)
            .map(|place| population.plan_viewer(place, 0, 0, Micros::MAX).0)
            .collect()
    }

    #[test]
    fn the_same_seed_leads_to_the_same_plans() {
        let (a, b, c) = (plan_all(1), plan_all(1), plan_all(2));
        let describe_plans = |plans: &[ViewerPlan]| format!("{:?}", &plans[..100]);
        assert_eq!(describe_plans(&a), describe_plans(&b));
        assert_ne!(describe_plans(&a), describe_plans(&c));
        let population = test_population(1);
        let session = |nth| population.plan_viewer(3, nth, 0, 9).0.session;
        assert_ne!(session(0), session(1));
    }

    #[test]
    fn plans_follow_their_distributions() {
        let plans = plan_all(7);
        let share = |found: usize| found as f64 / plans.len() as f64;
        let first = plans
            .iter()
            .filter(|plan| plan.manifest.url.path() == "/0.mpd")
            .count();
        // The first of ten titles has a weight of 1. The sum of all weights is 1 + 1/2 + … + 1/10.
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
    fn one_title_and_a_zero_exponent_are_chosen_uniformly() {
        assert_eq!(choose_title(1, 1.0, 0.999), 0);
        let counts = (0..1000).fold([0; 4], |mut counts, n| {
            counts[choose_title(4, 0.0, f64::from(n) / 1000.0)] += 1;
            counts
        });
        assert_eq!(counts, [250; 4]);
    }

    #[test]
    fn sessions_have_ids_of_uuid_version_4() {
        let text = super::super::cmcd::format_uuid(uuid_from_random_bits(u128::MAX));
        assert_eq!(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
