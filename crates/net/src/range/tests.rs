// Clippy rejects lists with a single range, but these tests need such lists.
#![allow(clippy::single_range_in_vec_init)]

use http::header::{HeaderMap, HeaderValue, IF_RANGE, RANGE};
use proptest::prelude::*;

use super::*;

fn ranges_of(list: &[Range<u64>]) -> RequestedRanges {
    RequestedRanges::Ranges(list.to_vec())
}

#[test]
fn every_form_of_the_header() {
    let cases: &[(&str, u64, RequestedRanges)] = &[
        ("bytes=0-0", 10, ranges_of(&[0..1])),
        ("bytes=0-9", 10, ranges_of(&[0..10])),
        ("bytes=2-", 10, ranges_of(&[2..10])),
        ("bytes=-3", 10, ranges_of(&[7..10])),
        ("bytes=-30", 10, ranges_of(&[0..10])),
        ("bytes=5-99", 10, ranges_of(&[5..10])),
        ("bytes=9-18446744073709551615", 10, ranges_of(&[9..10])),
        ("bytes=9-99999999999999999999999", 10, ranges_of(&[9..10])),
        ("BYTES=0-0", 10, ranges_of(&[0..1])),
        (
            "bytes=0-0,  -1,\t4-5 ,",
            10,
            ranges_of(&[0..1, 9..10, 4..6]),
        ),
        ("bytes=0-0,50-60", 10, ranges_of(&[0..1])),
        ("bytes=10-", 10, RequestedRanges::Unsatisfiable),
        ("bytes=-0", 10, RequestedRanges::Unsatisfiable),
        (
            "bytes=99999999999999999999999-",
            10,
            RequestedRanges::Unsatisfiable,
        ),
        ("bytes=0-", 0, RequestedRanges::Unsatisfiable),
        ("bytes=-5", 0, RequestedRanges::Whole),
        ("bytes=5-4", 10, RequestedRanges::Whole),
        ("bytes=", 10, RequestedRanges::Whole),
        ("bytes=,,", 10, RequestedRanges::Whole),
        ("bytes=-", 10, RequestedRanges::Whole),
        ("bytes=1", 10, RequestedRanges::Whole),
        ("bytes=1-2-3", 10, RequestedRanges::Whole),
        ("bytes=--1", 10, RequestedRanges::Whole),
        ("bytes=+1-2", 10, RequestedRanges::Whole),
        ("bytes=a-b", 10, RequestedRanges::Whole),
        ("bytes= 1 - 2", 10, RequestedRanges::Whole),
        ("bytes=0x1-2", 10, RequestedRanges::Whole),
        ("bytes=١-٢", 10, RequestedRanges::Whole),
        ("items=0-1", 10, RequestedRanges::Whole),
        ("bytes 0-1", 10, RequestedRanges::Whole),
        ("", 10, RequestedRanges::Whole),
        // The ranges of the first two cases overlap and have more bytes in total than the
        // representation.
        ("bytes=0-,0-", 10, RequestedRanges::Whole),
        ("bytes=0-5,4-9", 10, RequestedRanges::Whole),
        ("bytes=0-4,5-9", 10, ranges_of(&[0..5, 5..10])),
    ];
    for (value, len, expected) in cases {
        assert_eq!(parse_ranges(value, *len), *expected, "{value} of {len}");
    }
}

#[test]
fn more_ranges_than_the_limit_get_the_whole() {
    let list = |count: u64| {
        let specs: Vec<String> = (0..count).map(|n| format!("{}-{}", 2 * n, 2 * n)).collect();
        format!("bytes={}", specs.join(","))
    };
    assert_eq!(parse_ranges(&list(1000), 10_000), RequestedRanges::Whole);
    assert_eq!(
        parse_ranges(&list(RANGES_MAX as u64 + 1), 10_000),
        RequestedRanges::Whole
    );
    let RequestedRanges::Ranges(most) = parse_ranges(&list(RANGES_MAX as u64), 10_000) else {
        panic!()
    };
    assert_eq!(most.len(), RANGES_MAX);
}

#[test]
fn only_a_get_whose_if_range_still_holds_has_ranges() {
    let ours = Validators::from_etag("\"v1\"");
    let mut headers = HeaderMap::new();
    headers.insert(RANGE, HeaderValue::from_static("bytes=0-0"));
    assert_eq!(
        requested_ranges(&Method::GET, &headers, &ours, 10),
        ranges_of(&[0..1])
    );
    assert_eq!(
        requested_ranges(&Method::HEAD, &headers, &ours, 10),
        RequestedRanges::Whole
    );
    headers.insert(IF_RANGE, HeaderValue::from_static("\"v1\""));
    assert_eq!(
        requested_ranges(&Method::GET, &headers, &ours, 10),
        ranges_of(&[0..1])
    );
    headers.insert(IF_RANGE, HeaderValue::from_static("\"v2\""));
    assert_eq!(
        requested_ranges(&Method::GET, &headers, &ours, 10),
        RequestedRanges::Whole
    );
    headers.remove(IF_RANGE);
    headers.append(RANGE, HeaderValue::from_static("bytes=1-1"));
    assert_eq!(
        requested_ranges(&Method::GET, &headers, &ours, 10),
        RequestedRanges::Whole
    );
}

/// Returns the byte positions that one range specifier selects. Checks each position separately.
fn select_naively(spec: &str, len: u64) -> Vec<u64> {
    let (first, last) = spec.split_once('-').unwrap();
    let selected = |at: &u64| match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) => (first..=last).contains(at),
        (Ok(first), Err(_)) => *at >= first,
        (Err(_), Ok(suffix)) => at + suffix >= len,
        _ => false,
    };
    (0..len).filter(selected).collect()
}

fn range_spec() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u64..40, 0u64..40).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (0u64..40).prop_map(|a| format!("{a}-")),
        (0u64..40).prop_map(|a| format!("-{a}")),
    ]
}

proptest! {
    #[test]
    fn selects_the_same_bytes_as_a_naive_parser(
        specs in prop::collection::vec(range_spec(), 1..6),
        len in 1u64..30,
    ) {
        let expected: Vec<Vec<u64>> =
            specs.iter().map(|spec| select_naively(spec, len)).filter(|bytes| !bytes.is_empty()).collect();
        let total: usize = expected.iter().map(Vec::len).sum();
        match parse_ranges(&format!("bytes={}", specs.join(", ")), len) {
            RequestedRanges::Ranges(ranges) => {
                let found: Vec<Vec<u64>> = ranges.into_iter().map(Iterator::collect).collect();
                prop_assert_eq!(found, expected);
            }
            RequestedRanges::Unsatisfiable => prop_assert!(expected.is_empty()),
            RequestedRanges::Whole => prop_assert!(total as u64 > len),
        }
    }

    #[test]
    fn any_text_gives_ranges_within_bounds(value in "(bytes=)?[0-9,\\- ]{0,80}|.{0,40}", len in any::<u64>()) {
        if let RequestedRanges::Ranges(ranges) = parse_ranges(&value, len) {
            prop_assert!(!ranges.is_empty() && ranges.len() <= RANGES_MAX);
            prop_assert!(ranges.iter().all(|range| range.start < range.end && range.end <= len));
        }
    }

    #[test]
    fn a_slice_of_pieces_is_the_slice_of_their_concatenation(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9),
        a in 0u64..80,
        b in 0u64..80,
    ) {
        let whole = pieces.concat();
        let pieces: Vec<Bytes> = pieces.into_iter().map(Bytes::from).collect();
        let range = a.min(b)..a.max(b);
        let at = |n: u64| (n as usize).min(whole.len());
        prop_assert_eq!(slice_pieces(&pieces, &range).concat(), &whole[at(range.start)..at(range.end)]);
    }
}
