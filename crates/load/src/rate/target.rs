//! What is asked for, prepared so that asking costs nothing, and which comes when.

use crate::client::{Check, Failure, h1, h2};
use crate::random::Random;
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde::{Deserialize, Serialize};
use url::Url;

/// What sort of thing a request asks for; histograms are kept apart by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A playlist or MPD.
    Manifest,
    /// An init segment.
    Init,
    /// A media segment.
    Segment,
    /// A range of a file.
    Range,
    /// Anything else.
    Other,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 5] = [
        Kind::Manifest,
        Kind::Init,
        Kind::Segment,
        Kind::Range,
        Kind::Other,
    ];

    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Manifest => "manifest",
            Kind::Init => "init",
            Kind::Segment => "segment",
            Kind::Range => "range",
            Kind::Other => "other",
        }
    }

    /// The kind that a path's extension speaks of.
    pub fn of_path(path: &str) -> Kind {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "m3u8" | "mpd" => Kind::Manifest,
            "m4s" | "ts" | "m4v" | "m4a" | "cmfv" | "cmfa" | "cmft" | "aac" | "vtt" => {
                Kind::Segment
            }
            _ => Kind::Other,
        }
    }
}

/// Pieces of a file, at random places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranges {
    /// The file's length in bytes.
    pub file_bytes: u64,
    /// Each piece's length.
    pub size: u64,
}

/// One thing to ask for.
#[derive(Debug, Clone)]
pub struct Target {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// Fields of the head.
    pub headers: HeaderMap,
    /// The body that is sent.
    pub body: Bytes,
    /// Its sort.
    pub kind: Kind,
    /// How often, beside the others.
    pub weight: f64,
    /// What the answer's body should be.
    pub check: Option<Check>,
    /// A random piece of it, anew each time.
    pub ranges: Option<Ranges>,
}

impl Target {
    /// A `GET`, as often as others.
    pub fn get(url: Url) -> Target {
        Target {
            method: Method::GET,
            kind: Kind::of_path(url.path()),
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            weight: 1.0,
            check: None,
            ranges: None,
        }
    }
}

/// A target that is ready to be sent.
pub(crate) struct Prepared {
    pub(crate) target: Target,
    /// Its place in [`Targets::origins`].
    pub(crate) origin: usize,
    /// HTTP/1.1: the whole request; for random ranges all but the `Range` line and the end.
    pub(crate) bytes: Vec<u8>,
    /// HTTP/2: its head.
    pub(crate) head: http::Request<()>,
}

/// All targets of a run.
pub(crate) struct Targets {
    pub(crate) all: Vec<Prepared>,
    /// One URL for each origin among them.
    pub(crate) origins: Vec<Url>,
    /// Sums of weights up to each target; none: all alike, in turn.
    sums: Option<Vec<f64>>,
    seed: u64,
}

impl Targets {
    /// Prepares targets; there is at least one.
    pub(crate) fn new(
        targets: Vec<Target>,
        seed: u64,
        defaults: &h1::Defaults<'_>,
    ) -> Result<Targets, Failure> {
        let mut origins: Vec<Url> = Vec::new();
        let mut all = Vec::with_capacity(targets.len());
        let first = targets.first().map_or(1.0, |target| target.weight);
        let alike = targets.iter().all(|target| target.weight == first);
        for target in targets {
            let of = target.url.origin();
            let origin = origins.iter().position(|known| known.origin() == of);
            let origin = origin.unwrap_or_else(|| {
                origins.push(target.url.clone());
                origins.len() - 1
            });
            let mut bytes = h1::encode(
                &target.method,
                &target.url,
                &target.headers,
                &target.body,
                defaults,
            );
            if target.ranges.is_some() {
                bytes.truncate(bytes.len() - target.body.len() - 2);
            }
            let head = h2::encode(&target.method, &target.url, &target.headers, defaults)?;
            all.push(Prepared {
                target,
                origin,
                bytes,
                head,
            });
        }
        let sums = (!alike).then(|| {
            let mut sum = 0.0;
            let sums = all.iter().map(|prepared: &Prepared| {
                sum += prepared.target.weight.max(0.0);
                sum
            });
            sums.collect()
        });
        Ok(Targets {
            all,
            origins,
            sums,
            seed,
        })
    }

    /// Which target request `n` asks for.
    pub(crate) fn choose(&self, n: u64) -> usize {
        let count = self.all.len();
        match &self.sums {
            None => (n % count as u64) as usize,
            Some(sums) => {
                let goal = Random::of(self.seed, n).unit() * sums.last().copied().unwrap_or(0.0);
                sums.partition_point(|sum| *sum <= goal).min(count - 1)
            }
        }
    }

    /// First and last byte of request `n`'s random piece.
    pub(crate) fn piece(&self, n: u64, ranges: Ranges) -> (u64, u64) {
        let size = ranges.size.clamp(1, ranges.file_bytes.max(1));
        let places = ranges.file_bytes.saturating_sub(size) + 1;
        let first = Random::of(self.seed.wrapping_add(1), n).below(places);
        (first, first + size - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(weights: &[f64]) -> Targets {
        let target = |weight: &f64| Target {
            weight: *weight,
            ..Target::get(Url::parse("http://a/b.m4s").unwrap())
        };
        let defaults = h1::Defaults {
            user_agent: "x",
            keep_alive: true,
        };
        Targets::new(weights.iter().map(target).collect(), 1, &defaults).unwrap()
    }

    #[test]
    fn targets_come_in_turn_or_by_weight() {
        let even = targets(&[1.0; 3]);
        let chosen: Vec<_> = (0..6).map(|n| even.choose(n)).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2]);
        let heavy = targets(&[1.0, 0.0, 3.0]);
        let mut counts = [0; 3];
        (0..40_000).for_each(|n| counts[heavy.choose(n)] += 1);
        assert_eq!(counts[1], 0);
        assert!(
            (counts[2] as f64 / 30_000.0 - 1.0).abs() < 0.03,
            "{counts:?}"
        );
    }

    #[test]
    fn random_pieces_lie_in_the_file_and_reach_both_ends() {
        let all = targets(&[1.0]);
        let ranges = Ranges {
            file_bytes: 10,
            size: 4,
        };
        let pieces: Vec<_> = (0..1000).map(|n| all.piece(n, ranges)).collect();
        assert!(
            pieces
                .iter()
                .all(|(first, last)| last - first == 3 && *last < 10)
        );
        assert!(pieces.contains(&(0, 3)) && pieces.contains(&(6, 9)));
        assert_eq!(
            all.piece(
                5,
                Ranges {
                    file_bytes: 3,
                    size: 9
                }
            ),
            (0, 2)
        );
    }
}
