use super::*;
use bytes::Bytes;
use proptest::prelude::*;

type TestCache = RangeCache<&'static str, &'static str>;

fn new_cache(bytes_max: u64) -> TestCache {
    TestCache::new(bytes_max, Arc::default())
}

/// Returns the byte at offset `n`, which is the same in all objects.
fn byte_at(n: u64) -> u8 {
    (n * 7 % 251) as u8
}

fn bytes_of(range: Range<u64>) -> Bytes {
    range.map(byte_at).collect::<Vec<_>>().into()
}

fn cover_range(
    cache: &TestCache,
    key: &&'static str,
    range: Range<u64>,
) -> FlightsCoveringRange<&'static str> {
    cache.cover_range(key, range, u64::MAX).unwrap()
}

fn cached_bytes(cache: &TestCache) -> u64 {
    cache.lock().bytes
}

/// Calls `end` for each missing flight, and then records the end of the flight in the cache.
fn land_flights(
    cache: &TestCache,
    cover: &FlightsCoveringRange<&'static str>,
    end: impl Fn(&RangeFlight<&'static str>),
) {
    for flight in &cover.missing {
        end(flight);
        cache.record_flight_end(&"film", flight);
    }
}

fn push_all(flight: &RangeFlight<&'static str>) {
    let range = flight.range();
    let middle = range.start + (range.end - range.start) / 2;
    flight.append_bytes(bytes_of(range.start..middle));
    flight.append_bytes(bytes_of(middle..range.end));
    flight.end_flight(Ok(()));
}

/// Reads a range from the flights.
fn read_cover(
    cover: &FlightsCoveringRange<&'static str>,
    range: Range<u64>,
) -> Result<Vec<u8>, &'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (mut at, mut out) = (range.start, Vec::new());
        for flight in &cover.flights {
            let end = flight.range().end.min(range.end);
            while at < end {
                for slice in flight.read_available(&(at..end)).await? {
                    at += slice.len() as u64;
                    out.extend_from_slice(&slice);
                }
            }
        }
        assert_eq!(at, range.end);
        Ok(out)
    })
}

#[test]
fn cached_and_running_ranges_are_not_fetched_again() {
    let cache = new_cache(1000);
    let first = cover_range(&cache, &"film", 100..200);
    assert_eq!(first.missing.len(), 1);
    let second = cover_range(&cache, &"film", 100..200);
    assert!(second.missing.is_empty());
    land_flights(&cache, &first, push_all);
    assert_eq!(read_cover(&second, 100..200).unwrap(), bytes_of(100..200));
    let around = cover_range(&cache, &"film", 50..250);
    let missing: Vec<_> = around.missing.iter().map(|flight| flight.range()).collect();
    assert_eq!(missing, [50..100, 200..250]);
    land_flights(&cache, &around, push_all);
    assert_eq!(read_cover(&around, 60..240).unwrap(), bytes_of(60..240));
    assert!(cover_range(&cache, &"other", 100..101).missing.len() == 1);
}

#[test]
fn a_failed_range_reports_its_error_and_is_fetched_again() {
    let cache = new_cache(1000);
    let first = cover_range(&cache, &"film", 0..10);
    let follower = cover_range(&cache, &"film", 0..10);
    land_flights(&cache, &first, |flight| {
        flight.append_bytes(bytes_of(0..5));
        flight.end_flight(Err("cut"));
    });
    assert_eq!(read_cover(&follower, 0..5).unwrap(), bytes_of(0..5));
    assert_eq!(read_cover(&follower, 0..10), Err("cut"));
    assert_eq!(cover_range(&cache, &"film", 0..10).missing.len(), 1);
    assert_eq!(cached_bytes(&cache), 0);
}

#[test]
fn the_least_recently_used_range_is_evicted_first() {
    let cache = new_cache(20);
    for start in [0, 10] {
        land_flights(
            &cache,
            &cover_range(&cache, &"film", start..start + 10),
            push_all,
        );
    }
    assert!(cover_range(&cache, &"film", 0..10).missing.is_empty());
    land_flights(&cache, &cover_range(&cache, &"film", 20..30), push_all);
    assert_eq!(cached_bytes(&cache), 20);
    assert!(cover_range(&cache, &"film", 0..10).missing.is_empty());
    assert_eq!(cover_range(&cache, &"film", 10..20).missing.len(), 1);
}

#[test]
fn without_room_only_concurrent_readers_share_a_fetch() {
    let cache = new_cache(0);
    let first = cover_range(&cache, &"film", 0..10);
    let second = cover_range(&cache, &"film", 0..10);
    assert!(second.missing.is_empty());
    land_flights(&cache, &first, push_all);
    assert_eq!(read_cover(&second, 0..10).unwrap(), bytes_of(0..10));
    assert_eq!(cover_range(&cache, &"film", 0..10).missing.len(), 1);
    assert_eq!(cached_bytes(&cache), 0);
}

#[test]
fn a_removed_object_has_no_cached_ranges() {
    let cache = new_cache(100);
    land_flights(&cache, &cover_range(&cache, &"film", 0..10), push_all);
    let late = cover_range(&cache, &"film", 10..20);
    cache.remove_object(&"film");
    land_flights(&cache, &late, push_all);
    assert_eq!(cached_bytes(&cache), 0);
    assert_eq!(cover_range(&cache, &"film", 0..20).missing.len(), 1);
}

proptest! {
    #[test]
    fn every_cover_contains_its_range(
        requests in prop::collection::vec((0u64..300, 1u64..80, any::<bool>()), 1..40),
        room in 0u64..400,
    ) {
        let cache = new_cache(room);
        for (start, len, fails) in requests {
            let range = start..start + len;
            let cover = cover_range(&cache, &"film", range.clone());
            let fetched: u64 = cover.missing.iter().map(|f| f.range().end - f.range().start).sum();
            prop_assert!(fetched <= len);
            if fails {
                land_flights(&cache, &cover, |flight| flight.end_flight(Err("no")));
            } else {
                land_flights(&cache, &cover, push_all);
                prop_assert_eq!(read_cover(&cover, range.clone()).unwrap(), bytes_of(range));
            }
            prop_assert!(cached_bytes(&cache) <= room);
        }
    }
}

#[test]
fn memory_is_counted_until_its_last_reader_is_dropped() {
    let cache = new_cache(100);
    let held = || cache.reserved_memory().reserved_bytes();
    let first = cover_range(&cache, &"film", 0..80);
    assert_eq!(held(), 80);
    // `room` limits only the missing bytes.
    assert!(cache.cover_range(&"film", 0..100, 19).is_none());
    assert_eq!(held(), 80);
    let second = cache.cover_range(&"film", 40..100, 20).unwrap();
    assert_eq!((second.missing.len(), held()), (1, 100));
    assert!(cache.cover_range(&"film", 10..90, 0).is_some());
    land_flights(&cache, &first, push_all);
    land_flights(&cache, &second, push_all);
    drop((first, second));
    assert_eq!(held(), 100, "all ranges are cached");
    let other = cover_range(&cache, &"film", 200..250);
    land_flights(&cache, &other, push_all);
    assert_eq!(held(), 70, "the least recently used range was evicted");
    cache.remove_object(&"film");
    assert_eq!(held(), 50, "a reader still holds it");
    drop(other);
    assert_eq!(held(), 0);
}

#[test]
fn a_suspended_cache_drops_its_ranges_and_stores_none() {
    let is_suspended = Arc::new(AtomicBool::new(false));
    let cache = TestCache::new(1000, is_suspended.clone());
    let fetch = |range: Range<u64>| {
        let cover = cover_range(&cache, &"film", range);
        land_flights(&cache, &cover, push_all);
    };
    fetch(0..100);
    assert_eq!(cached_bytes(&cache), 100);
    is_suspended.store(true, Relaxed);
    fetch(100..200);
    assert_eq!(cached_bytes(&cache), 0);
    is_suspended.store(false, Relaxed);
    fetch(0..100);
    assert_eq!(cached_bytes(&cache), 100);
}

#[test]
fn small_appends_share_a_chunk() {
    let cache = new_cache(5000);
    let cover = cover_range(&cache, &"film", 0..5000);
    let flight = &cover.missing[0];
    for n in 0..2000 {
        flight.append_bytes(bytes_of(n..n + 1));
    }
    flight.append_bytes(bytes_of(2000..5000));
    flight.end_flight(Ok(()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let chunks = runtime.block_on(flight.read_available(&(0..5000))).unwrap();
    assert_eq!(chunks.len(), 5);
    for range in [0..5000, 511..513, 700..2100] {
        assert_eq!(read_cover(&cover, range.clone()).unwrap(), bytes_of(range));
    }
}
