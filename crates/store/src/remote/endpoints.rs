//! Where objects are asked for: routes by name, and several endpoints that share them.

use super::address::{self, Address};
use super::{Options, Weighted};
use crate::http::{Client, Pool};
use crate::{Error, Key};
use object_store::ObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use regex::Regex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row after which an endpoint is taken to be down.
const FAILURES_MAX: u32 = 3;
/// How long it is left alone then; doubled each time it fails again.
const DOWN: Duration = Duration::from_secs(1);
const DOWN_MAX: Duration = Duration::from_secs(30);

/// One place that holds the library.
pub(super) struct Endpoint {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) name: Arc<str>,
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    prefix: Path,
    weight: f64,
    health: Mutex<Health>,
    /// Whether its last answer came by HTTP/1.1 without TLS.
    plain: AtomicBool,
}

#[derive(Debug, Default)]
struct Health {
    failures: u32,
    /// When it may be tried again, and how long it was left alone.
    down: Option<(Instant, Duration)>,
}

/// Which requests go where.
pub(super) struct Routes {
    via: Vec<(Regex, Vec<Arc<Endpoint>>)>,
    direct: Vec<Arc<Endpoint>>,
}

impl Routes {
    /// The library at `source`, and wherever else the options say.
    pub(super) fn new(source: &str, options: &Options, pool: &Arc<Pool>) -> Result<Routes, String> {
        let mut places = vec![Weighted {
            url: source.to_owned(),
            weight: 1.0,
        }];
        let mut again = options.endpoints.iter();
        if let Some(same) = again.find(|other| other.url == source) {
            places[0].weight = same.weight;
        }
        let others = options.endpoints.iter().filter(|other| other.url != source);
        places.extend(others.cloned());
        let open = |through: Option<&str>| {
            let endpoints = places.iter().map(|place| {
                let mut client = Client::new(pool.clone(), address::follows(&place.url));
                if let Some(url) = through {
                    let uri = url.parse().ok().and_then(|uri| client.through(&uri));
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
        Ok(Routes {
            via: via.collect::<Result<_, String>>()?,
            direct: open(None)?,
        })
    }

    /// The endpoints for an object, best first: those that are up in an order that is always the
    /// same for the same object, so that caches there and here see it again; then the others.
    pub(super) fn order(&self, key: &Key) -> Vec<Arc<Endpoint>> {
        let route = self.via.iter().find(|(is, _)| is.is_match(key.as_str()));
        let all = route.map_or(&self.direct, |(_, endpoints)| endpoints);
        if let [only] = &all[..] {
            return vec![only.clone()];
        }
        let now = Instant::now();
        let mut ranked: Vec<_> = all
            .iter()
            .map(|endpoint| (endpoint.is_up(now), endpoint.rank(key), endpoint.clone()))
            .collect();
        ranked.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        ranked
            .into_iter()
            .map(|(_, _, endpoint)| endpoint)
            .collect()
    }

    /// Whether bytes of an object come as they are, with neither TLS nor HTTP/2 around them, as far
    /// as is known.
    pub(super) fn are_plain(&self, key: &Key) -> bool {
        let order = self.order(key);
        let first = order.first();
        first.is_some_and(|endpoint| endpoint.plain.load(Relaxed))
    }

    /// How many are taken to be down now.
    pub(super) fn down(&self) -> usize {
        let now = Instant::now();
        let down = |endpoint: &&Arc<Endpoint>| !endpoint.is_up(now);
        self.direct.iter().filter(down).count()
    }
}

impl Endpoint {
    fn new(
        place: &Weighted,
        settings: &[(String, String)],
        client: Client,
    ) -> Result<Arc<Endpoint>, String> {
        let Address {
            store,
            pages,
            prefix,
            name,
        } = address::open(&place.url, settings, client)?;
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

    /// An object's name there.
    pub(super) fn path(&self, key: &Key) -> Result<Path, Error> {
        let prefix = self.prefix.as_ref();
        let full = match (prefix.is_empty(), key.is_root()) {
            (true, _) => key.as_str().to_owned(),
            (false, true) => prefix.to_owned(),
            (false, false) => format!("{prefix}/{key}"),
        };
        Path::parse(full).map_err(|_| Error::NotFound)
    }

    /// Weighted rendezvous: each object has its own order of endpoints, and an endpoint's share of
    /// first places is its weight's.
    fn rank(&self, key: &Key) -> f64 {
        let mut hasher = DefaultHasher::new();
        (&self.name, self.prefix.as_ref(), key).hash(&mut hasher);
        // Between 0 and 1, neither included.
        let place = ((hasher.finish() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        -self.weight.max(f64::MIN_POSITIVE) / place.ln()
    }

    fn is_up(&self, now: Instant) -> bool {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.down.is_none_or(|(until, _)| until <= now)
    }

    /// An answer of it came plain, or did not.
    pub(super) fn came_plain(&self, plain: bool) {
        self.plain.store(plain, Relaxed);
    }

    pub(super) fn succeeded(&self) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if health.down.is_some() {
            tracing::info!(endpoint = &*self.name, "the storage is back");
        }
        *health = Health::default();
    }

    pub(super) fn failed(&self) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.failures += 1;
        let now = Instant::now();
        let alone = match health.down {
            // The first request after a pause, or one that was sent before it began.
            Some((until, _)) if until > now => return,
            Some((_, before)) => (before * 2).min(DOWN_MAX),
            None if health.failures >= FAILURES_MAX => DOWN,
            None => return,
        };
        tracing::warn!(endpoint = &*self.name, ?alone, "the storage is down");
        health.down = Some((now + alone, alone));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transport;
    use crate::http::Connections;

    fn routes(endpoints: &[(&str, f64)]) -> Routes {
        let weighted = endpoints.iter().map(|(url, weight)| Weighted {
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
        let connections = Arc::new(Connections::default());
        let pool = Pool::new(Transport::default(), connections).unwrap();
        Routes::new(endpoints[0].0, &options, &pool).unwrap()
    }

    #[test]
    fn an_object_stays_where_it_is_and_weights_are_shares() {
        let routes = routes(&[("http://a/x", 3.0), ("http://b/x", 1.0)]);
        let mut first = 0;
        for n in 0..1000 {
            let key = Key::parse(&format!("film{n}.mp4")).unwrap();
            let order = routes.order(&key);
            assert_eq!(order.len(), 2);
            assert_eq!(order[0].name, routes.order(&key)[0].name);
            first += usize::from(&*order[0].name == "http://a");
        }
        assert!(
            (700..800).contains(&first),
            "{first} of 1000 at three quarters"
        );
    }

    #[test]
    fn one_that_fails_goes_last_and_comes_back() {
        let routes = routes(&[("http://a/x", 1.0), ("http://b/x", 1.0)]);
        let key = Key::parse("film.mp4").unwrap();
        let best = routes.order(&key)[0].clone();
        for _ in 0..FAILURES_MAX {
            assert_eq!(routes.order(&key)[0].name, best.name);
            best.failed();
        }
        assert_ne!(routes.order(&key)[0].name, best.name);
        assert_eq!(routes.down(), 1);
        best.succeeded();
        assert_eq!(routes.order(&key)[0].name, best.name);
    }

    #[test]
    fn names_lie_behind_the_prefix() {
        let routes = routes(&[("http://a/x/y", 1.0)]);
        let endpoint = &routes.direct[0];
        let path = |key: &str| {
            endpoint
                .path(&Key::parse(key).unwrap())
                .unwrap()
                .to_string()
        };
        assert_eq!(path("f 1/é.mp4"), "f 1/é.mp4");
        let key = Key::parse("100%.mp4").unwrap();
        assert_eq!(endpoint.path(&key).unwrap().as_ref(), "100%.mp4");
    }
}
