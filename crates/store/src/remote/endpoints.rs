//! Endpoints of a library. Routes select a server by the object's name, and weights distribute the
//! objects among several endpoints.

use super::storage_builder::{self, LibraryStorage};
use super::{Options, WeightedEndpoint};
use crate::http::{ConnectionPool, StorageHttpClient};
use crate::{Error, Key};
use object_store::ObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use regex::Regex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Consecutive failures after which an endpoint counts as down.
const FAILURES_MAX: u32 = 3;
/// Length of the first pause of an endpoint that is down. During a pause, other endpoints are
/// preferred. Each failed trial doubles the length of the next pause.
const DOWN: Duration = Duration::from_secs(1);
const DOWN_MAX: Duration = Duration::from_secs(30);

/// One server or bucket with the objects of the library.
pub(super) struct Endpoint {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) name: Arc<str>,
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    prefix: Path,
    weight: f64,
    health: Mutex<EndpointHealth>,
    /// Whether the endpoint's last response was unencrypted HTTP/1.1.
    plain: AtomicBool,
}

#[derive(Debug, Default)]
struct EndpointHealth {
    failures: u32,
    /// The time of the next attempt and the length of the current pause, if the endpoint is down.
    down: Option<(Instant, Duration)>,
}

/// All endpoints, and the routes that select them.
pub(super) struct EndpointTable {
    via: Vec<(Regex, Vec<Arc<Endpoint>>)>,
    direct: Vec<Arc<Endpoint>>,
}

impl EndpointTable {
    /// Creates the endpoints that `source` and the options describe.
    pub(super) fn new(
        source: &str,
        options: &Options,
        pool: &Arc<ConnectionPool>,
    ) -> Result<EndpointTable, String> {
        let mut configs = vec![WeightedEndpoint {
            url: source.to_owned(),
            weight: 1.0,
        }];
        let mut configured = options.endpoints.iter();
        if let Some(same) = configured.find(|other| other.url == source) {
            configs[0].weight = same.weight;
        }
        let others = options.endpoints.iter().filter(|other| other.url != source);
        configs.extend(others.cloned());
        let open = |through: Option<&str>| {
            let endpoints = configs.iter().map(|place| {
                let mut client = StorageHttpClient::new(
                    pool.clone(),
                    storage_builder::follows_redirects(&place.url),
                );
                if let Some(url) = through {
                    let uri = url
                        .parse()
                        .ok()
                        .and_then(|uri| client.with_fixed_server(&uri));
                    client = uri.ok_or_else(|| format!("via {url:?}: not an http or https URL"))?;
                }
                Endpoint::new(place, &options.settings, client)
            });
            endpoints.collect::<Result<Vec<_>, String>>()
        };
        let via = options.via.iter().map(|via| {
            let endpoints = open(Some(&via.url))?;
            Ok((via.matches.clone(), endpoints))
        });
        Ok(EndpointTable {
            via: via.collect::<Result<_, String>>()?,
            direct: open(None)?,
        })
    }

    /// Returns the endpoints for an object, best first. Endpoints that are up precede endpoints
    /// that are down. As long as no endpoint goes down or recovers, the order for an object does
    /// not change. A cache in front of an endpoint therefore always gets requests for the same
    /// objects.
    pub(super) fn ordered_endpoints(&self, key: &Key) -> Vec<Arc<Endpoint>> {
        let route = self.via.iter().find(|(is, _)| is.is_match(key.as_str()));
        let all = route.map_or(&self.direct, |(_, endpoints)| endpoints);
        if let [only] = &all[..] {
            return vec![only.clone()];
        }
        let now = Instant::now();
        let mut ranked: Vec<_> = all
            .iter()
            .map(|endpoint| {
                (
                    endpoint.is_up(now),
                    endpoint.weighted_rank(key),
                    endpoint.clone(),
                )
            })
            .collect();
        ranked.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        ranked
            .into_iter()
            .map(|(_, _, endpoint)| endpoint)
            .collect()
    }

    /// Returns whether the last response of the best endpoint for an object was unencrypted
    /// HTTP/1.1.
    pub(super) fn is_best_unencrypted(&self, key: &Key) -> bool {
        let order = self.ordered_endpoints(key);
        let first = order.first();
        first.is_some_and(|endpoint| endpoint.plain.load(Relaxed))
    }

    /// The number of endpoints that are down. Endpoints that are reached through a route are not
    /// counted.
    pub(super) fn down_count(&self) -> usize {
        let now = Instant::now();
        let down = |endpoint: &&Arc<Endpoint>| !endpoint.is_up(now);
        self.direct.iter().filter(down).count()
    }
}

impl Endpoint {
    fn new(
        place: &WeightedEndpoint,
        settings: &[(String, String)],
        client: StorageHttpClient,
    ) -> Result<Arc<Endpoint>, String> {
        let LibraryStorage {
            store,
            pages,
            prefix,
            name,
        } = storage_builder::open_storage(&place.url, settings, client)?;
        Ok(Arc::new(Endpoint {
            store,
            name,
            pages,
            prefix,
            weight: place.weight,
            health: Mutex::default(),
            plain: AtomicBool::new(false),
        }))
    }

    /// The object's path at the endpoint.
    pub(super) fn object_path(&self, key: &Key) -> Result<Path, Error> {
        let prefix = self.prefix.as_ref();
        let full = match (prefix.is_empty(), key.is_root()) {
            (true, _) => key.as_str().to_owned(),
            (false, true) => prefix.to_owned(),
            (false, false) => format!("{prefix}/{key}"),
        };
        Path::parse(full).map_err(|_| Error::NotFound)
    }

    /// Returns the endpoint's rank for an object by weighted rendezvous hashing. Each object has
    /// its own order of endpoints, and each endpoint is first for its weighted share of objects.
    fn weighted_rank(&self, key: &Key) -> f64 {
        let mut hasher = DefaultHasher::new();
        (&self.name, self.prefix.as_ref(), key).hash(&mut hasher);
        // `place` is greater than 0 and less than 1.
        let place = ((hasher.finish() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        -self.weight.max(f64::MIN_POSITIVE) / place.ln()
    }

    pub(super) fn is_up(&self, now: Instant) -> bool {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.down.is_none_or(|(until, _)| until <= now)
    }

    /// Prepares a request to this endpoint. If the endpoint was down and its pause has passed, the
    /// request is a trial. The endpoint then starts another pause, so that other requests prefer
    /// other endpoints until the trial succeeds. Without this rule, all requests would wait for a
    /// server that does not respond.
    pub(super) fn begin_trial(&self) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some((until, pause)) = health.down
            && until <= now
        {
            health.down = Some(lengthen_outage(now, pause));
        }
    }

    /// Records whether a response was unencrypted HTTP/1.1.
    pub(super) fn record_unencrypted(&self, plain: bool) {
        self.plain.store(plain, Relaxed);
    }

    pub(super) fn can_list(&self) -> bool {
        self.pages.is_some()
    }

    pub(super) fn record_success(&self) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if health.down.is_some() {
            tracing::info!(endpoint = &*self.name, "the storage is back");
        }
        *health = EndpointHealth::default();
    }

    pub(super) fn count_failure(&self) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.failures += 1;
        let now = Instant::now();
        let outage = match health.down {
            // The endpoint is already paused. A further failure does not extend the pause.
            Some((until, _)) if until > now => return,
            Some((_, before)) => lengthen_outage(now, before),
            None if health.failures >= FAILURES_MAX => (now + DOWN, DOWN),
            None => return,
        };
        let name = &*self.name;
        tracing::warn!(endpoint = name, next_attempt_in = ?outage.1, "the storage is down");
        health.down = Some(outage);
    }
}

/// Returns the time of the next attempt and the length of the pause until then. The pause is twice
/// as long as `last_pause`, but at most [`DOWN_MAX`].
fn lengthen_outage(now: Instant, last_pause: Duration) -> (Instant, Duration) {
    let pause = (last_pause * 2).min(DOWN_MAX);
    (now + pause, pause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportOptions;
    use upstream::ConnectionCounts;

    fn build_table(endpoints: &[(&str, f64)]) -> EndpointTable {
        let weighted = endpoints.iter().map(|(url, weight)| WeightedEndpoint {
            url: (*url).to_owned(),
            weight: *weight,
        });
        let options = Options {
            endpoints: weighted.collect(),
            ..Options::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        let connections = Arc::new(ConnectionCounts::default());
        let pool = ConnectionPool::new(TransportOptions::default(), connections).unwrap();
        EndpointTable::new(endpoints[0].0, &options, &pool).unwrap()
    }

    #[test]
    fn objects_stick_to_an_endpoint_and_weights_are_shares() {
        let routes = build_table(&[("http://a/x", 3.0), ("http://b/x", 1.0)]);
        let mut first = 0;
        for n in 0..1000 {
            let key = Key::parse(&format!("film{n}.mp4")).unwrap();
            let order = routes.ordered_endpoints(&key);
            assert_eq!(order.len(), 2);
            assert_eq!(order[0].name, routes.ordered_endpoints(&key)[0].name);
            first += usize::from(&*order[0].name == "http://a");
        }
        assert!(
            (700..800).contains(&first),
            "{first} of 1000 at three quarters"
        );
    }

    #[test]
    fn a_failing_endpoint_is_tried_last_and_recovers() {
        let routes = build_table(&[("http://a/x", 1.0), ("http://b/x", 1.0)]);
        let key = Key::parse("film.mp4").unwrap();
        let best = routes.ordered_endpoints(&key)[0].clone();
        for _ in 0..FAILURES_MAX {
            assert_eq!(routes.ordered_endpoints(&key)[0].name, best.name);
            best.count_failure();
        }
        assert_ne!(routes.ordered_endpoints(&key)[0].name, best.name);
        assert_eq!(routes.down_count(), 1);
        best.record_success();
        assert_eq!(routes.ordered_endpoints(&key)[0].name, best.name);
    }

    #[test]
    fn an_endpoint_that_was_down_gets_one_request_at_first() {
        let routes = build_table(&[("http://a/x", 1.0), ("http://b/x", 1.0)]);
        let endpoint = &routes.direct[0];
        let is_up = || endpoint.is_up(Instant::now());
        endpoint.health.lock().unwrap().down = Some((Instant::now(), DOWN));
        assert!(is_up(), "the pause has passed");
        endpoint.begin_trial();
        assert!(!is_up(), "others wait for the result");
        endpoint.record_success();
        assert!(is_up());
    }

    #[test]
    fn object_paths_start_with_the_prefix() {
        let routes = build_table(&[("http://a/x/y", 1.0)]);
        let endpoint = &routes.direct[0];
        let path = |key: &str| {
            endpoint
                .object_path(&Key::parse(key).unwrap())
                .unwrap()
                .to_string()
        };
        assert_eq!(path("f 1/é.mp4"), "f 1/é.mp4");
        let key = Key::parse("100%.mp4").unwrap();
        assert_eq!(endpoint.object_path(&key).unwrap().as_ref(), "100%.mp4");
    }
}
