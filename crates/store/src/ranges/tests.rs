use super::*;
use bytes::Bytes;
use proptest::prelude::*;

type Ranges = Cache<&'static str, &'static str>;

/// Byte `n` of every object.
fn byte(n: u64) -> u8 {
    (n * 7 % 251) as u8
}

fn bytes(range: Range<u64>) -> Bytes {
    range.map(byte).collect::<Vec<_>>().into()
}

fn cover(cache: &Ranges, key: &&'static str, range: Range<u64>) -> Cover<&'static str> {
    cache.cover(key, range, u64::MAX).unwrap()
}

fn kept(cache: &Ranges) -> u64 {
    cache.lock().bytes
}

/// Ends each missing flight in some way.
fn land(cache: &Ranges, cover: &Cover<&'static str>, end: impl Fn(&Flight<&'static str>)) {
    for flight in &cover.missing {
        end(flight);
        cache.ended(&"film", flight);
    }
}

fn whole(flight: &Flight<&'static str>) {
    let range = flight.range();
    let middle = range.start + (range.end - range.start) / 2;
    flight.push(bytes(range.start..middle));
    flight.push(bytes(middle..range.end));
    flight.end(Ok(()));
}

/// What the flights give for a range.
fn read(cover: &Cover<&'static str>, range: Range<u64>) -> Result<Vec<u8>, &'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (mut at, mut out) = (range.start, Vec::new());
        for flight in &cover.flights {
            let end = flight.range().end.min(range.end);
            while at < end {
                for slice in flight.some(&(at..end)).await? {
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
fn what_is_there_or_on_its_way_is_not_fetched_again() {
    let cache = Ranges::new(1000);
    let first = cover(&cache, &"film", 100..200);
    assert_eq!(first.missing.len(), 1);
    let second = cover(&cache, &"film", 100..200);
    assert!(second.missing.is_empty());
    land(&cache, &first, whole);
    assert_eq!(read(&second, 100..200).unwrap(), bytes(100..200));
    let around = cover(&cache, &"film", 50..250);
    let missing: Vec<_> = around.missing.iter().map(|flight| flight.range()).collect();
    assert_eq!(missing, [50..100, 200..250]);
    land(&cache, &around, whole);
    assert_eq!(read(&around, 60..240).unwrap(), bytes(60..240));
    assert!(cover(&cache, &"other", 100..101).missing.len() == 1);
}

#[test]
fn what_failed_is_told_and_fetched_again() {
    let cache = Ranges::new(1000);
    let first = cover(&cache, &"film", 0..10);
    let follower = cover(&cache, &"film", 0..10);
    land(&cache, &first, |flight| {
        flight.push(bytes(0..5));
        flight.end(Err("cut"));
    });
    assert_eq!(read(&follower, 0..5).unwrap(), bytes(0..5));
    assert_eq!(read(&follower, 0..10), Err("cut"));
    assert_eq!(cover(&cache, &"film", 0..10).missing.len(), 1);
    assert_eq!(kept(&cache), 0);
}

#[test]
fn the_least_used_goes_first() {
    let cache = Ranges::new(20);
    for start in [0, 10] {
        land(&cache, &cover(&cache, &"film", start..start + 10), whole);
    }
    assert!(cover(&cache, &"film", 0..10).missing.is_empty());
    land(&cache, &cover(&cache, &"film", 20..30), whole);
    assert_eq!(kept(&cache), 20);
    assert!(cover(&cache, &"film", 0..10).missing.is_empty());
    assert_eq!(cover(&cache, &"film", 10..20).missing.len(), 1);
}

#[test]
fn without_room_only_those_who_come_meanwhile_share() {
    let cache = Ranges::new(0);
    let first = cover(&cache, &"film", 0..10);
    let second = cover(&cache, &"film", 0..10);
    assert!(second.missing.is_empty());
    land(&cache, &first, whole);
    assert_eq!(read(&second, 0..10).unwrap(), bytes(0..10));
    assert_eq!(cover(&cache, &"film", 0..10).missing.len(), 1);
    assert_eq!(kept(&cache), 0);
}

#[test]
fn what_is_forgotten_is_gone() {
    let cache = Ranges::new(100);
    land(&cache, &cover(&cache, &"film", 0..10), whole);
    let late = cover(&cache, &"film", 10..20);
    cache.forget(&"film");
    land(&cache, &late, whole);
    assert_eq!(kept(&cache), 0);
    assert_eq!(cover(&cache, &"film", 0..20).missing.len(), 1);
}

proptest! {
    #[test]
    fn every_cover_holds_its_range(
        asks in prop::collection::vec((0u64..300, 1u64..80, any::<bool>()), 1..40),
        room in 0u64..400,
    ) {
        let cache = Ranges::new(room);
        for (start, len, fails) in asks {
            let range = start..start + len;
            let cover = cover(&cache, &"film", range.clone());
            let fetched: u64 = cover.missing.iter().map(|f| f.range().end - f.range().start).sum();
            prop_assert!(fetched <= len);
            if fails {
                land(&cache, &cover, |flight| flight.end(Err("no")));
            } else {
                land(&cache, &cover, whole);
                prop_assert_eq!(read(&cover, range.clone()).unwrap(), bytes(range));
            }
            prop_assert!(kept(&cache) <= room);
        }
    }
}

#[test]
fn what_is_held_is_counted_until_nobody_has_it() {
    let cache = Ranges::new(100);
    let held = || cache.holding().bytes();
    let first = cover(&cache, &"film", 0..80);
    assert_eq!(held(), 80);
    // Only what is missing needs room.
    assert!(cache.cover(&"film", 0..100, 19).is_none());
    assert_eq!(held(), 80);
    let second = cache.cover(&"film", 40..100, 20).unwrap();
    assert_eq!((second.missing.len(), held()), (1, 100));
    assert!(cache.cover(&"film", 10..90, 0).is_some());
    land(&cache, &first, whole);
    land(&cache, &second, whole);
    drop((first, second));
    assert_eq!(held(), 100, "kept");
    let other = cover(&cache, &"film", 200..250);
    land(&cache, &other, whole);
    assert_eq!(held(), 70, "what was used longest ago is gone");
    cache.forget(&"film");
    assert_eq!(held(), 50, "still read");
    drop(other);
    assert_eq!(held(), 0);
}
