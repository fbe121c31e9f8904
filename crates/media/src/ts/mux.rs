//! Frames of one video track into one segment of transport packets.

use super::annexb::Stream;
use super::packet::{Opening, PACKET, Packets, packets_of, packets_to_cycle};
use super::pes::{clock_reference, write_header};
use super::psi::{PAT, program_map};
use super::{Frame, FrameSize};
use crate::codec::{Codec, Nal};
use crate::error::{Error, Kind, Result, fourcc};

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
    let mut muxer = Muxer::new(codec)?;
    let size = |frame: &Frame<'_>| FrameSize {
        pts: frame.pts,
        dts: frame.dts,
        sync: frame.sync,
        size: u32::try_from(frame.data.len()).unwrap_or(u32::MAX),
    };
    let mut out = vec![0; muxer.len_max(frames.iter().map(size))];
    let len = muxer.write(frames, true, &mut out)?;
    out.truncate(len);
    Ok(out)
}

/// A segment in the making, some frames at a time: the same bytes as [`video_segment`]'s.
pub struct Muxer {
    stream: Stream,
    hevc: bool,
    /// Of what is written.
    size: Size,
    begun: bool,
    counter: u8,
    /// Room for a PES header.
    header: Vec<u8>,
}

impl Muxer {
    /// Begins a segment.
    ///
    /// # Errors
    /// `Unsupported` if the codec is neither AVC nor HEVC.
    pub fn new(codec: &Codec) -> Result<Muxer> {
        let nal = nal(codec).ok_or_else(|| {
            let code = fourcc(codec.fourcc);
            Error::unsupported(format!("{code} cannot go into TS; ask for CMAF"))
        })?;
        Ok(Muxer {
            stream: Stream::new(nal),
            hevc: nal.hevc,
            size: Size::default(),
            begun: false,
            counter: 0,
            header: Vec::with_capacity(19),
        })
    }

    /// No more bytes than this come of a segment of such frames.
    pub fn len_max(&self, frames: impl IntoIterator<Item = FrameSize>) -> usize {
        let mut size = Size::default();
        for frame in frames {
            let len = self.stream.len_max(frame.size, frame.sync);
            size.add(frame.dts, header_len(frame.pts, frame.dts) + len);
        }
        size.bytes()
    }

    /// Writes the next frames, and says how many bytes they became. `last`: no frames follow; such
    /// a call has one at least, unless the segment has none. After an error nothing more is written.
    ///
    /// # Errors
    /// `Malformed` where the length of a NAL unit passes the end of its sample; `TooLarge` where
    /// `out` is too short, which [`Muxer::len_max`] bytes never are.
    pub fn write(&mut self, frames: &[Frame<'_>], last: bool, out: &mut [u8]) -> Result<usize> {
        let room = out.len();
        let mut packets = Packets::new(out, self.counter);
        if !std::mem::replace(&mut self.begun, true) {
            packets.put(&PAT);
            packets.put(program_map(self.hevc));
        }
        for (n, frame) in frames.iter().enumerate() {
            let unit = self.stream.read(frame)?;
            write_clocks(&mut packets, self.size.before, frame.dts);
            let len = header_len(frame.pts, frame.dts) + unit.len;
            self.size.add(frame.dts, len);
            let last = last && n + 1 == frames.len();
            let spread = if last { self.size.spread() } else { 0 };
            open_frame(&mut packets, frame, len, spread);
            self.header.clear();
            write_header(&mut self.header, frame.pts, frame.dts.min(frame.pts));
            packets.write(&self.header);
            self.stream.write(&unit, |bytes| packets.write(bytes));
        }
        self.counter = packets.counter;
        match packets.len {
            len if len <= room => Ok(len),
            len => {
                let what = format!("{len} bytes of a transport stream in a buffer of {room}");
                Err(Error::new(Kind::TooLarge, what))
            }
        }
    }
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

fn write_clocks(packets: &mut Packets<'_>, before: Option<u64>, dts: u64) {
    for n in 1..=clocks_between(before, dts) {
        let time = before.unwrap_or(dts).wrapping_add(n * CLOCK_STEP);
        packets.write_clock(clock_reference(time));
    }
}

/// Bytes of the PES header: a decode time is only written before a presentation time.
fn header_len(pts: u64, dts: u64) -> usize {
    if dts < pts { 19 } else { 14 }
}

/// Begins the PES packet of a frame, of `len` bytes.
fn open_frame(packets: &mut Packets<'_>, frame: &Frame<'_>, len: usize, spread: usize) {
    packets.open(&Opening {
        len,
        packets: packets_of(len) + spread,
        clock: clock_reference(frame.dts),
        random_access: frame.sync,
    });
}
