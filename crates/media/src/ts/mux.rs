//! Frames of one video track into one segment of transport packets.

use super::annexb::{AccessUnit, Stream};
use super::packet::{Opening, PACKET, Packets, packets_of, packets_to_cycle};
use super::pes::{clock_reference, write_header};
use super::psi::{PAT, program_map};
use super::{Frame, FrameSize};
use crate::codec::{Codec, Nal};
use crate::error::{Error, Result, fourcc};

/// Longest time between clock references, in 90 kHz (ISO/IEC 13818-1, 2.7.2: 100 ms).
const CLOCK_STEP: u64 = 9_000;
/// Most packets with nothing but a clock between two frames: a still of a minute needs as many.
const CLOCKS_MAX: u64 = 600;
/// Packets of PAT and PMT.
const TABLES: usize = 2;

/// Muxes the frames, in decode order, into a segment: PAT, PMT, one PES packet a frame.
///
/// Each frame carries a clock reference; where frames are more than 100 ms apart, packets with
/// only a clock are put between them.
///
/// # Errors
/// `Unsupported` if the codec is neither AVC nor HEVC; `Malformed` where the length of a NAL
/// unit passes the end of its sample.
pub fn video_segment(codec: &Codec, frames: &[Frame<'_>]) -> Result<Vec<u8>> {
    let nal = nal(codec).ok_or_else(|| {
        let code = fourcc(codec.fourcc);
        Error::unsupported(format!("{code} cannot go into TS; ask for CMAF"))
    })?;
    let stream = Stream::new(nal);
    let units: Result<Vec<AccessUnit<'_>>> =
        frames.iter().map(|frame| stream.read(frame)).collect();
    let units = units?;
    let mut size = Size::default();
    for (frame, unit) in frames.iter().zip(&units) {
        size.add(frame.dts, header_len(frame.pts, frame.dts) + unit.len);
    }
    let mut out = Vec::with_capacity(size.bytes());
    out.extend_from_slice(&PAT);
    out.extend_from_slice(program_map(nal.hevc));
    let mut packets = Packets::new(out);
    let mut before = None;
    for (n, (frame, unit)) in frames.iter().zip(&units).enumerate() {
        write_clocks(&mut packets, before, frame.dts);
        let last = n + 1 == frames.len();
        let spread = if last { size.spread() } else { 0 };
        write_frame(&mut packets, &stream, frame, unit, spread);
        before = Some(frame.dts);
    }
    debug_assert_eq!(packets.out.len(), size.bytes());
    Ok(packets.out)
}

/// Bytes that [`video_segment`] makes of frames with these sizes; 0 if it cannot.
///
/// Exact for NAL units with lengths of four bytes, as nearly all files have, if the frames have
/// neither delimiters nor parameter sets of their own; with those it is too long by at most 7
/// bytes a frame and the parameter sets a key frame. With lengths of one or two bytes it is too
/// short by three or two bytes for each NAL unit after a frame's first.
pub fn video_segment_len_estimate(
    codec: &Codec,
    frames: impl IntoIterator<Item = FrameSize>,
) -> u64 {
    let Some(nal) = nal(codec) else { return 0 };
    let stream = Stream::new(nal);
    let mut size = Size::default();
    for frame in frames {
        let len = stream.len_estimate(frame.size, frame.sync);
        size.add(frame.dts, header_len(frame.pts, frame.dts) + len);
    }
    size.bytes() as u64
}

fn nal(codec: &Codec) -> Option<&Nal> {
    codec.video()?.nal.as_ref()
}

/// Counts the packets of a segment.
#[derive(Debug, Default)]
struct Size {
    packets: usize,
    clocks: usize,
    before: Option<u64>,
}

impl Size {
    /// Adds a PES packet of `len` bytes.
    fn add(&mut self, dts: u64, len: usize) {
        self.packets += packets_of(len);
        self.clocks += clocks_between(self.before, dts) as usize;
        self.before = Some(dts);
    }

    /// Packets that the last PES packet gets more than it needs.
    fn spread(&self) -> usize {
        packets_to_cycle(self.packets)
    }

    fn bytes(&self) -> usize {
        (TABLES + self.packets + self.spread() + self.clocks) * PACKET
    }
}

/// How many clock packets go between two frames.
fn clocks_between(before: Option<u64>, dts: u64) -> u64 {
    let gap = before.map_or(0, |before| dts.saturating_sub(before));
    (gap.saturating_sub(1) / CLOCK_STEP).min(CLOCKS_MAX)
}

fn write_clocks(packets: &mut Packets, before: Option<u64>, dts: u64) {
    for n in 1..=clocks_between(before, dts) {
        let time = before.unwrap_or(dts).wrapping_add(n * CLOCK_STEP);
        packets.write_clock(clock_reference(time));
    }
}

/// Bytes of the PES header: a decode time is only written before a presentation time.
fn header_len(pts: u64, dts: u64) -> usize {
    if dts < pts { 19 } else { 14 }
}

fn write_frame(
    packets: &mut Packets,
    stream: &Stream,
    frame: &Frame<'_>,
    unit: &AccessUnit<'_>,
    spread: usize,
) {
    let dts = frame.dts.min(frame.pts);
    let len = header_len(frame.pts, frame.dts) + unit.len;
    packets.open(&Opening {
        len,
        packets: packets_of(len) + spread,
        clock: clock_reference(frame.dts),
        random_access: frame.sync,
    });
    let mut header = Vec::with_capacity(19);
    write_header(&mut header, frame.pts, dts);
    packets.write(&header);
    stream.write(unit, |bytes| packets.write(bytes));
}
