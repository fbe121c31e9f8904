//! Wrong numbers in sample tables.

use super::*;

#[test]
fn wrong_numbers_in_tables() {
    let all_ones = |at: usize| move |body: &mut [u8]| body[at..at + 4].fill(0xff);
    let zero = |at: usize| move |body: &mut [u8]| body[at..at + 4].fill(0);
    broken(
        b"mdhd",
        zero(12),
        Kind::Malformed,
        &["timescale of 0", "moov/trak/mdia/mdhd"],
    );
    for table in [b"stts", b"ctts", b"stsc", b"stco"] {
        let name = crate::error::fourcc(*table);
        broken(table, all_ones(4), Kind::Truncated, &["4294967295", &name]);
    }
    broken(
        b"stsz",
        all_ones(8),
        Kind::Truncated,
        &["4294967295 entries", "stsz"],
    );
    broken(
        b"stsd",
        all_ones(4),
        Kind::TooLarge,
        &["at most 64", "stsd"],
    );
    broken(
        b"stco",
        all_ones(8),
        Kind::Truncated,
        &["track 1", "sample 0", "4294967295"],
    );
    broken(b"stco", zero(4), Kind::Malformed, &["hold 0 of"]);
    broken(b"stsc", zero(8), Kind::Malformed, &["not in order"]);
    broken(
        b"stsc",
        zero(12),
        Kind::Malformed,
        &["hold", "of the 12 samples"],
    );
    broken(
        b"stsc",
        all_ones(16),
        Kind::Malformed,
        &["sample entry 4294967295 of 1"],
    );
    broken(
        b"stts",
        all_ones(12),
        Kind::Malformed,
        &["lasts 4294967295 ticks"],
    );
    broken(
        b"mdia",
        |body| body[..4].fill(0x7f),
        Kind::Truncated,
        &["mdia", "left"],
    );
    broken(
        b"trak",
        |body| body[3] = 2,
        Kind::Malformed,
        &["less than its own header"],
    );
}

#[test]
fn four_billion_samples_of_one_size() {
    let many = |size: u32| {
        move |body: &mut [u8]| {
            body[4..8].copy_from_slice(&size.to_be_bytes());
            body[8..12].fill(0xff);
        }
    };
    broken(
        b"stsz",
        many(1),
        Kind::TooLarge,
        &["4294967295 samples", "at most 50000000"],
    );
    let fifty_million = |body: &mut [u8]| {
        body[4..8].copy_from_slice(&1u32.to_be_bytes());
        body[8..12].copy_from_slice(&50_000_000u32.to_be_bytes());
    };
    broken(
        b"stsz",
        fifty_million,
        Kind::Truncated,
        &["50000000 samples", "track 1"],
    );
    let mut file = fragments();
    let run = body(&mut file, b"trun");
    run[1..4].fill(0);
    run[4..8].fill(0xff);
    fails(
        &file,
        Kind::TooLarge,
        &["4294967295 samples", "at most 50000000", "moof/traf/trun"],
    );
}
