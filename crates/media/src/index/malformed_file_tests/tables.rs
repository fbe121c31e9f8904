//! Wrong numbers in sample tables.

use super::*;

#[test]
fn wrong_numbers_in_tables_are_refused() {
    let all_ones = |at: usize| move |body: &mut [u8]| body[at..at + 4].fill(0xff);
    let zero = |at: usize| move |body: &mut [u8]| body[at..at + 4].fill(0);
    expect_error_after(
        b"mdhd",
        zero(12),
        ErrorKind::Malformed,
        &["timescale of 0", "moov/trak/mdia/mdhd"],
    );
    for table in [b"stts", b"ctts", b"stsc", b"stco"] {
        let name = crate::error::format_fourcc(*table);
        expect_error_after(
            table,
            all_ones(4),
            ErrorKind::Truncated,
            &["4294967295", &name],
        );
    }
    expect_error_after(
        b"stsz",
        all_ones(8),
        ErrorKind::Truncated,
        &["4294967295 entries", "stsz"],
    );
    expect_error_after(
        b"stsd",
        all_ones(4),
        ErrorKind::TooLarge,
        &["at most 64", "stsd"],
    );
    expect_error_after(
        b"stco",
        all_ones(8),
        ErrorKind::Truncated,
        &["track 1", "sample 0", "4294967295"],
    );
    expect_error_after(b"stco", zero(4), ErrorKind::Malformed, &["hold 0 of"]);
    expect_error_after(b"stsc", zero(8), ErrorKind::Malformed, &["not in order"]);
    expect_error_after(
        b"stsc",
        zero(12),
        ErrorKind::Malformed,
        &["hold", "of the 12 samples"],
    );
    expect_error_after(
        b"stsc",
        all_ones(16),
        ErrorKind::Malformed,
        &["sample entry 4294967295;"],
    );
    expect_error_after(
        b"stts",
        all_ones(12),
        ErrorKind::Malformed,
        &["lasts 4294967295 ticks"],
    );
    expect_error_after(
        b"mdia",
        |body| body[..4].fill(0x7f),
        ErrorKind::Truncated,
        &["mdia", "left"],
    );
    expect_error_after(
        b"trak",
        |body| body[3] = 2,
        ErrorKind::Malformed,
        &["less than its own header"],
    );
}

#[test]
fn four_billion_samples_of_one_size_are_refused() {
    let many = |size: u32| {
        move |body: &mut [u8]| {
            body[4..8].copy_from_slice(&size.to_be_bytes());
            body[8..12].fill(0xff);
        }
    };
    expect_error_after(
        b"stsz",
        many(1),
        ErrorKind::TooLarge,
        &["4294967295 samples", "at most 50000000"],
    );
    let fifty_million = |body: &mut [u8]| {
        body[4..8].copy_from_slice(&1u32.to_be_bytes());
        body[8..12].copy_from_slice(&50_000_000u32.to_be_bytes());
    };
    expect_error_after(
        b"stsz",
        fifty_million,
        ErrorKind::Truncated,
        &["50000000 samples", "track 1"],
    );
    let mut file = build_fragmented();
    let run = body_of(&mut file, b"trun");
    run[1..4].fill(0);
    run[4..8].fill(0xff);
    expect_error(
        &file,
        ErrorKind::TooLarge,
        &["4294967295 samples", "at most 50000000", "moof/traf/trun"],
    );
}
