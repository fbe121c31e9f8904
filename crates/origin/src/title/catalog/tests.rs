//! Tests of the catalog with the demo film in a temporary folder.

use super::*;
use crate::title::opened_title::TargetSegmentDurations;
use futures_util::FutureExt;
use media::presentation::ManifestOptions;
use std::path::Path;
use std::sync::mpsc::channel;
use store::Options;

const HOUR: Duration = Duration::from_secs(3600);

/// Creates a catalog of the library at `place`.
pub(crate) fn create_catalog(
    place: &Path,
    recheck: Duration,
    memory_bytes: Option<u64>,
) -> Arc<Catalog> {
    let store = Store::new(place.to_str().unwrap(), Options::default()).unwrap();
    let rules = LibraryPackagingRules {
        segment_durations: TargetSegmentDurations {
            hls_ms: 6000,
            dash_ms: 6000,
        },
        master_secret: None,
        manifest_rules: ManifestOptions::default(),
        drm: None,
    };
    let stores = MediaStores::new(Arc::new(store), Vec::new());
    Arc::new(Catalog::new(
        Arc::new(stores),
        IndexCache::default(),
        rules,
        recheck,
        memory_bytes,
    ))
}

/// Copies a file of the demo film to `folder`.
fn copy_demo_file(demo: &str, folder: &Path, name: &str) -> Key {
    let demo_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../media/demo");
    std::fs::copy(demo_folder.join(demo), folder.join("next")).unwrap();
    std::fs::rename(folder.join("next"), folder.join(name)).unwrap();
    Key::parse(name).unwrap()
}

#[tokio::test]
async fn a_title_that_is_larger_than_a_shard_is_built_once() {
    let folder = tempfile::tempdir().unwrap();
    let title = copy_demo_file("audio-eng.m4a", folder.path(), "film.m4a");
    let catalog = create_catalog(folder.path(), HOUR, Some(64 << 10));
    for _ in 0..3 {
        let title = catalog.load_title(&title).await.unwrap();
        assert!(title.memory_bytes() > (64 << 10) / SHARDS);
    }
    assert_eq!(catalog.build_count(), 1);
}

#[tokio::test]
async fn the_memory_of_cached_failures_includes_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = create_catalog(folder.path(), HOUR, Some(1 << 20));
    let long = vec!["x".repeat(200); 18].join("/");
    const COUNT: usize = 20;
    for n in 0..COUNT {
        let missing = Key::parse(&format!("{long}/{n}")).unwrap();
        assert!(catalog.load_title(&missing).await.is_err());
    }
    assert_eq!(catalog.cached_count(), COUNT);
    assert!(catalog.memory_bytes() >= (COUNT * long.len()) as u64);
}

#[tokio::test]
async fn titles_are_evicted_while_memory_is_short() {
    const MEMORY: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let catalog = create_catalog(folder.path(), HOUR, Some(MEMORY));
    let titles: Vec<Key> = (0..8)
        .map(|n| copy_demo_file("audio-eng.m4a", folder.path(), &format!("{n}.m4a")))
        .collect();
    for title in &titles {
        catalog.load_title(title).await.unwrap();
    }
    let full = catalog.memory_bytes();
    assert!(full > MEMORY / KEPT_SHARE, "{full}");
    catalog.evict_if_memory_is_short(OverloadLevel::Normal);
    assert_eq!(catalog.memory_bytes(), full);
    for _ in 0..100 {
        catalog.evict_if_memory_is_short(OverloadLevel::Constrained);
    }
    let kept = catalog.memory_bytes();
    assert!(kept <= MEMORY / KEPT_SHARE, "{kept}");
    // A title is also cached while memory is short.
    let builds = catalog.build_count();
    for _ in 0..3 {
        catalog.load_title(&titles[0]).await.unwrap();
    }
    assert!(catalog.build_count() <= builds + 1);
}

#[tokio::test]
async fn a_check_removes_a_changed_title_even_if_the_client_disconnects() {
    let folder = tempfile::tempdir().unwrap();
    let title = copy_demo_file("audio-eng.m4a", folder.path(), "film.m4a");
    let catalog = create_catalog(folder.path(), Duration::ZERO, Some(1 << 20));
    catalog.load_title(&title).await.unwrap();
    copy_demo_file("audio-fra.m4a", folder.path(), "film.m4a");
    // The future is dropped after the check has started.
    let _ = Box::pin(catalog.load_title(&title)).now_or_never();
    for _ in 0..1000 {
        if catalog.peek_title(&title).is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the title was not removed");
}

#[tokio::test]
async fn a_build_step_holds_its_permit_even_if_the_client_disconnects() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = create_catalog(folder.path(), HOUR, None);
    let count = catalog.build_permits.available_permits();
    let (started, has_started) = channel();
    let (resume, resumed) = channel();
    let step = catalog.run_build_step(move |_| {
        started.send(()).unwrap();
        resumed.recv().unwrap();
        Ok(())
    });
    // The future is dropped after the step has started.
    assert!(Box::pin(step).now_or_never().is_none());
    has_started.recv().unwrap();
    assert_eq!(catalog.build_permits.available_permits(), count - 1);
    resume.send(()).unwrap();
    let all = catalog.build_permits.acquire_many(count as u32).await;
    assert!(all.is_ok());
}

/// Counts the warnings that the catalog logs.
#[derive(Default)]
struct WarningCounter(Arc<AtomicU64>);

impl tracing::Subscriber for WarningCounter {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN && metadata.target().ends_with("::catalog")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Relaxed);
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn only_the_first_of_several_failed_checks_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let key = copy_demo_file("audio-eng.m4a", folder.path(), "film.m4a");
    let working = create_catalog(folder.path(), HOUR, Some(1 << 20));
    let title = working.load_title(&key).await.unwrap();
    let entry = working.entries.peek(&key).unwrap();
    // After the listener is dropped, connections to its port are refused.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let failing = create_catalog(Path::new(&url), HOUR, Some(1 << 20));
    let counter = WarningCounter::default();
    let warnings = counter.0.clone();
    tracing::subscriber::with_default(counter, || {
        for expected in [1, 2] {
            for _ in 0..3 {
                assert!(failing.has_same_files(&entry, &title));
            }
            assert_eq!(warnings.load(Relaxed), expected);
            // The next failure after a successful check is logged again.
            assert!(working.has_same_files(&entry, &title));
        }
    });
}

#[tokio::test]
async fn a_task_that_panicked_can_be_started_again() {
    let flag = Arc::<AtomicBool>::default();
    let running = RunningTaskFlag::try_set(&flag).unwrap();
    assert!(RunningTaskFlag::try_set(&flag).is_none());
    let task = tokio::task::spawn_blocking(move || {
        let _running = running;
        panic!("a panic of this test");
    });
    assert!(task.await.is_err());
    assert!(RunningTaskFlag::try_set(&flag).is_some());
}
