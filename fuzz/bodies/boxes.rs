//! Checks that no bytes make a box parser panic, or return more data than the bytes contain.

use media::bmff::stco::ChunkOffsets;
use media::bmff::stsz::SampleSizes;
use media::bmff::trun::Trun;
use media::bmff::*;

/// Maximum number of table entries to check.
const ENTRIES_MAX: usize = 1000;

pub fn run(data: &[u8]) {
    check_headers(data);
    check_tables(data);
    if let Ok(run) = Trun::parse(data) {
        let rows = run.samples().take(ENTRIES_MAX).count();
        assert_eq!(rows, ENTRIES_MAX.min(run.sample_count as usize));
        if run.sample_count < 1_000_000 {
            run.total_bytes(7);
        }
    }
    for child in BoxIterator::new(data, 0).flatten() {
        assert!(child.offset + child.bytes.len() as u64 <= data.len() as u64);
        let _ = stsd::parse_stsd(&child);
        let _ = dref::find_data_reference(&child, 1);
        let _ = udta::find_track_name(&child);
        let _ = media::codec::Codec::from_sample_entry(child.bytes);
    }
}

fn check_headers(data: &[u8]) {
    let _ = ftyp::Ftyp::parse(data);
    let _ = mvhd::Mvhd::parse(data);
    let _ = tkhd::Tkhd::parse(data).map(|tkhd| tkhd.is_upright());
    if let Ok(mdhd) = mdhd::Mdhd::parse(data) {
        for quicktime in [false, true] {
            assert!(
                mdhd.decode_language(quicktime)
                    .is_none_or(|letters| letters.len() == 3)
            );
        }
    }
    let _ = hdlr::Hdlr::parse(data);
    let _ = elng::parse_elng(data);
    let _ = tfhd::Tfhd::parse(data);
    let _ = tfdt::parse_tfdt(data);
    let _ = trex::Trex::parse(data);
}

fn check_tables(data: &[u8]) {
    let room = data.len();
    assert!(stts::parse_stts(data).map_or(0, Iterator::count) * 8 <= room);
    assert!(ctts::parse_ctts(data).map_or(0, Iterator::count) * 8 <= room);
    assert!(stsc::parse_stsc(data).map_or(0, Iterator::count) * 12 <= room);
    assert!(stss::parse_stss(data).map_or(0, Iterator::count) * 4 <= room);
    assert!(elst::parse_elst(data).map_or(0, |edits| edits.len()) * 12 <= room);
    assert!(sidx::Sidx::parse(data).map_or(0, |sidx| sidx.references.len()) * 12 <= room);
    for sizes in [SampleSizes::parse_stsz(data), SampleSizes::parse_stz2(data)]
        .into_iter()
        .flatten()
    {
        let some = sizes.len().min(ENTRIES_MAX as u32);
        (0..some).for_each(|n| assert!(u64::from(sizes.get(n)) <= sizes.total_bytes()));
        assert_eq!(sizes.get(sizes.len()), 0);
    }
    for offsets in [
        ChunkOffsets::parse_stco(data),
        ChunkOffsets::parse_co64(data),
    ]
    .into_iter()
    .flatten()
    {
        assert!(offsets.len() as usize * 4 <= room);
        assert_eq!(offsets.get(offsets.len()), None);
    }
}
