//! Request targets with their encoded requests, and the choice of a target for each request.

use super::RequestKind;
use super::url_groups::UrlGroups;
use crate::client::{ClientRequest, ExpectedBody, RequestFailure, http1_exchange, http2_exchange};
use crate::random::Random;
use crate::result::RequestRecord;
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::ops::Range;
use url::Url;

/// Byte ranges at random positions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomRanges {
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Length of each range in bytes.
    pub size: u64,
}

/// A URL that a run requests, with the method, the header fields and the body of the request.
#[derive(Debug, Clone)]
pub struct RequestTarget {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// Header fields.
    pub headers: HeaderMap,
    /// Request body.
    pub body: Bytes,
    /// The kind of the request.
    pub kind: RequestKind,
    /// Weight of the target, relative to the weights of the other targets.
    pub weight: f64,
    /// The expected length and hash of the response body.
    pub check: Option<ExpectedBody>,
    /// If set, each request is for a random range.
    pub ranges: Option<RandomRanges>,
    /// Time of the recorded request, in seconds since 1970; none if the target is not from a
    /// recording.
    pub recorded_at_s: Option<f64>,
    /// Identifies the viewer who sent the recorded request, for example by the IP address.
    pub viewer: Option<Box<str>>,
}

impl RequestTarget {
    /// Creates a target with the method `GET` and weight 1.
    pub fn from_url(url: Url) -> RequestTarget {
        RequestTarget {
            method: Method::GET,
            kind: RequestKind::kind_from_path(url.path()),
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            weight: 1.0,
            check: None,
            ranges: None,
            recorded_at_s: None,
            viewer: None,
        }
    }

    /// Returns the request for the general HTTP client, without checks of the response.
    pub(super) fn to_client_request(&self, range: Option<Range<u64>>) -> ClientRequest {
        let request = ClientRequest {
            method: self.method.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            ..ClientRequest::new(self.url.clone())
        };
        match range {
            Some(range) => request.with_range(range),
            None => request,
        }
    }
}

/// A target with its encoded request.
pub(crate) struct PreparedTarget {
    pub(crate) target: RequestTarget,
    /// Index in [`TargetSet::origins`].
    pub(crate) origin: usize,
    /// Index in [`TargetSet::groups`].
    pub(crate) group: usize,
    /// The whole encoded request for HTTP/1.1. For random ranges, the bytes end before the `Range`
    /// field, which is added for each request.
    pub(crate) bytes: Vec<u8>,
    /// The request head for HTTP/2.
    pub(crate) head: http::Request<()>,
}

/// All targets of a run.
pub(crate) struct TargetSet {
    pub(crate) all: Vec<PreparedTarget>,
    /// One URL for each origin.
    pub(crate) origins: Vec<Url>,
    pub(crate) groups: UrlGroups,
    /// Cumulative weights of the targets. `None` if all weights are equal. The targets are then
    /// used in turn.
    sums: Option<Vec<f64>>,
    seed: u64,
}

impl TargetSet {
    /// Encodes the requests of all targets. `targets` must not be empty.
    pub(crate) fn new(
        targets: Vec<RequestTarget>,
        seed: u64,
        defaults: &http1_exchange::DefaultHeaders<'_>,
    ) -> Result<TargetSet, RequestFailure> {
        let mut origins: Vec<Url> = Vec::new();
        let mut groups = UrlGroups::default();
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
            let mut bytes = http1_exchange::encode_request(
                &target.method,
                &target.url,
                &target.headers,
                &target.body,
                defaults,
            );
            if target.ranges.is_some() {
                bytes.truncate(bytes.len() - target.body.len() - 2);
            }
            let head = http2_exchange::build_request(
                &target.method,
                &target.url,
                &target.headers,
                defaults,
            )?;
            all.push(PreparedTarget {
                group: groups.group_index(&RequestRecord::recorded_url(&target.url)),
                target,
                origin,
                bytes,
                head,
            });
        }
        let sums = (!alike).then(|| {
            let mut sum = 0.0;
            let sums = all.iter().map(|prepared: &PreparedTarget| {
                sum += prepared.target.weight.max(0.0);
                sum
            });
            sums.collect()
        });
        Ok(TargetSet {
            all,
            origins,
            groups,
            sums,
            seed,
        })
    }

    /// Returns the index of the target for request `n`.
    pub(crate) fn choose_target(&self, n: u64) -> usize {
        let count = self.all.len();
        match &self.sums {
            None => (n % count as u64) as usize,
            Some(sums) => {
                let goal = Random::derive_stream(self.seed, n).next_unit()
                    * sums.last().copied().unwrap_or(0.0);
                sums.partition_point(|sum| *sum <= goal).min(count - 1)
            }
        }
    }

    /// Returns the positions of the first and the last byte of the random range for request `n`.
    pub(crate) fn random_range(&self, n: u64, ranges: RandomRanges) -> (u64, u64) {
        let size = ranges.size.clamp(1, ranges.file_bytes.max(1));
        let places = ranges.file_bytes.saturating_sub(size) + 1;
        let first = Random::derive_stream(self.seed.wrapping_add(1), n).next_below(places);
        (first, first + size - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_targets(weights: &[f64]) -> TargetSet {
        let target = |weight: &f64| RequestTarget {
            weight: *weight,
            ..RequestTarget::from_url(Url::parse("http://a/b.m4s").unwrap())
        };
        let defaults = http1_exchange::DefaultHeaders {
            user_agent: "x",
            keep_alive: true,
        };
        TargetSet::new(weights.iter().map(target).collect(), 1, &defaults).unwrap()
    }

    #[test]
    fn targets_are_chosen_in_turn_or_by_weight() {
        let even = test_targets(&[1.0; 3]);
        let chosen: Vec<_> = (0..6).map(|n| even.choose_target(n)).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2]);
        let heavy = test_targets(&[1.0, 0.0, 3.0]);
        let mut counts = [0; 3];
        (0..40_000).for_each(|n| counts[heavy.choose_target(n)] += 1);
        assert_eq!(counts[1], 0);
        assert!(
            (counts[2] as f64 / 30_000.0 - 1.0).abs() < 0.03,
            "{counts:?}"
        );
    }

    #[test]
    fn random_ranges_cover_the_whole_file() {
        let all = test_targets(&[1.0]);
        let ranges = RandomRanges {
            file_bytes: 10,
            size: 4,
        };
        let pieces: Vec<_> = (0..1000).map(|n| all.random_range(n, ranges)).collect();
        assert!(
            pieces
                .iter()
                .all(|(first, last)| last - first == 3 && *last < 10)
        );
        assert!(pieces.contains(&(0, 3)) && pieces.contains(&(6, 9)));
        assert_eq!(
            all.random_range(
                5,
                RandomRanges {
                    file_bytes: 3,
                    size: 9
                }
            ),
            (0, 2)
        );
    }
}
