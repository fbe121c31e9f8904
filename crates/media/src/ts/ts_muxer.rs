//! Muxing of frames of one video track into a segment of transport packets.

use super::annex_b::AnnexBConverter;
use super::packet_writer::{
    PACKET_BYTES, PacketWriter, PesOpening, count_packets_to_fill_cycle, count_ts_packets,
};
use super::pes::{clock_reference, write_pes_header};
use super::psi::{PAT_PACKET, pmt_packet};
use super::{FrameInfo, MuxFrame};
use crate::codec::{Codec, NalFormat};
use crate::error::{Error, ErrorKind, Result, format_fourcc};

/// Maximum time between clock references (ISO/IEC 13818-1, 2.7.2): 100 ms, in 90 kHz ticks.
const CLOCK_INTERVAL_90KHZ: u64 = 9_000;
/// Maximum number of clock packets between two frames. It is enough for a still picture of one
/// minute.
const CLOCKS_MAX: u64 = 600;
/// Number of packets for PAT and PMT.
const TABLE_PACKETS: usize = 2;

/// Muxes frames, in decode order, into a segment: PAT, PMT, then one PES packet per frame.
///
/// The first transport packet of each frame carries a clock reference. In gaps of more than 100 ms
/// between frames, packets that contain only a clock reference are added.
///
/// # Errors
/// `Unsupported` if the codec is neither AVC nor HEVC. `Malformed` if a NAL unit is longer than its
/// sample.
pub fn mux_video_segment(codec: &Codec, frames: &[MuxFrame<'_>]) -> Result<Vec<u8>> {
    let mut muxer = TsMuxer::new(codec)?;
    let size = |frame: &MuxFrame<'_>| FrameInfo {
        pts: frame.pts,
        dts: frame.dts,
        is_sync: frame.is_sync,
        size: u32::try_from(frame.data.len()).unwrap_or(u32::MAX),
    };
    let mut out = vec![0; muxer.len_max(frames.iter().map(size))];
    let len = muxer.write_frames(frames, true, &mut out)?;
    out.truncate(len);
    Ok(out)
}

/// Muxes a segment in several calls. The output equals the output of [`mux_video_segment`].
pub struct TsMuxer {
    stream: AnnexBConverter,
    is_hevc: bool,
    /// Size of the packets written so far.
    size: SegmentPacketCount,
    is_started: bool,
    counter: u8,
    /// Buffer for a PES header.
    pes_header: Vec<u8>,
}

impl TsMuxer {
    /// Starts a segment.
    ///
    /// # Errors
    /// `Unsupported` if the codec is neither AVC nor HEVC.
    pub fn new(codec: &Codec) -> Result<TsMuxer> {
        let nal = nal_format(codec).ok_or_else(|| {
            let code = format_fourcc(codec.fourcc);
            Error::unsupported(format!("{code} is not supported in TS; request CMAF"))
        })?;
        Ok(TsMuxer {
            stream: AnnexBConverter::new(nal),
            is_hevc: nal.is_hevc,
            size: SegmentPacketCount::default(),
            is_started: false,
            counter: 0,
            pes_header: Vec::with_capacity(19),
        })
    }

    /// Returns the maximum length of a segment of these frames, in bytes.
    pub fn len_max(&self, frames: impl IntoIterator<Item = FrameInfo>) -> usize {
        let mut size = SegmentPacketCount::default();
        for frame in frames {
            let len = self.stream.len_max(frame.size, frame.is_sync);
            size.add_pes_packet(frame.dts, pes_header_len(frame.pts, frame.dts) + len);
        }
        size.total_bytes()
    }

    /// Writes the next frames and returns the number of written bytes.
    ///
    /// `last` means that no frames follow. In the last call, `frames` must contain at least one
    /// frame, unless the segment has no frames. Do not write more frames after an error.
    ///
    /// # Errors
    /// `Malformed` if a NAL unit is longer than its sample. `TooLarge` if `out` is too short.
    /// [`TsMuxer::len_max`] bytes are always enough.
    pub fn write_frames(
        &mut self,
        frames: &[MuxFrame<'_>],
        last: bool,
        out: &mut [u8],
    ) -> Result<usize> {
        let room = out.len();
        let mut packets = PacketWriter::new(out, self.counter);
        if !std::mem::replace(&mut self.is_started, true) {
            packets.write_raw(&PAT_PACKET);
            packets.write_raw(pmt_packet(self.is_hevc));
        }
        for (n, frame) in frames.iter().enumerate() {
            let unit = self.stream.scan_frame(frame)?;
            write_clock_packets(&mut packets, self.size.last_dts, frame.dts);
            let len = pes_header_len(frame.pts, frame.dts) + unit.len;
            self.size.add_pes_packet(frame.dts, len);
            let last = last && n + 1 == frames.len();
            let spread = if last { self.size.padding_packets() } else { 0 };
            open_frame(&mut packets, frame, len, spread);
            self.pes_header.clear();
            write_pes_header(&mut self.pes_header, frame.pts, frame.dts.min(frame.pts));
            packets.write_pes_bytes(&self.pes_header);
            self.stream
                .write_frame(&unit, |bytes| packets.write_pes_bytes(bytes));
        }
        self.counter = packets.counter;
        match packets.len {
            len if len <= room => Ok(len),
            len => {
                let message = format!("{len} bytes of a transport stream in a buffer of {room}");
                Err(Error::new(ErrorKind::TooLarge, message))
            }
        }
    }
}

/// Estimates the length of the segment that [`mux_video_segment`] returns for frames of these
/// sizes, in bytes. Returns 0 if the codec is unsupported.
///
/// In nearly all files, the length fields of NAL units have four bytes. The estimate is then exact
/// if the frames contain neither delimiters nor parameter sets. For a frame with its own delimiter,
/// the assumed length is up to 7 bytes too long. For a key frame with its own parameter sets, the
/// assumed length is too long by the length of the track's parameter sets. With length fields
/// of one or two bytes, the estimate is too short. Each NAL unit of a frame, except the first, then
/// adds an error of three or two bytes, respectively.
pub fn estimate_video_segment_len(
    codec: &Codec,
    frames: impl IntoIterator<Item = FrameInfo>,
) -> u64 {
    let Some(nal) = nal_format(codec) else {
        return 0;
    };
    let stream = AnnexBConverter::new(nal);
    let mut size = SegmentPacketCount::default();
    for frame in frames {
        let len = stream.len_estimate(frame.size, frame.is_sync);
        size.add_pes_packet(frame.dts, pes_header_len(frame.pts, frame.dts) + len);
    }
    size.total_bytes() as u64
}

fn nal_format(codec: &Codec) -> Option<&NalFormat> {
    codec.video()?.nal.as_ref()
}

/// Counts the packets of a segment.
#[derive(Debug, Default)]
struct SegmentPacketCount {
    packets: usize,
    clock_packets: usize,
    last_dts: Option<u64>,
}

impl SegmentPacketCount {
    /// Adds a PES packet of `len` bytes.
    fn add_pes_packet(&mut self, dts: u64, len: usize) {
        self.packets += count_ts_packets(len);
        self.clock_packets += count_clock_packets(self.last_dts, dts) as usize;
        self.last_dts = Some(dts);
    }

    /// Returns the number of extra packets over which the last PES packet is spread.
    fn padding_packets(&self) -> usize {
        count_packets_to_fill_cycle(self.packets)
    }

    fn total_bytes(&self) -> usize {
        (TABLE_PACKETS + self.packets + self.padding_packets() + self.clock_packets) * PACKET_BYTES
    }
}

/// Returns the number of clock packets between two frames.
fn count_clock_packets(before: Option<u64>, dts: u64) -> u64 {
    let gap = before.map_or(0, |before| dts.saturating_sub(before));
    (gap.saturating_sub(1) / CLOCK_INTERVAL_90KHZ).min(CLOCKS_MAX)
}

fn write_clock_packets(packets: &mut PacketWriter<'_>, before: Option<u64>, dts: u64) {
    for n in 1..=count_clock_packets(before, dts) {
        let time = before.unwrap_or(dts).wrapping_add(n * CLOCK_INTERVAL_90KHZ);
        packets.write_clock(clock_reference(time));
    }
}

/// Returns the length of the PES header, in bytes. The header contains a decode time only if the
/// decode time is before the presentation time.
fn pes_header_len(pts: u64, dts: u64) -> usize {
    if dts < pts { 19 } else { 14 }
}

/// Starts the PES packet of a frame. The PES packet has `len` bytes and takes `spread` more
/// transport packets than necessary.
fn open_frame(packets: &mut PacketWriter<'_>, frame: &MuxFrame<'_>, len: usize, spread: usize) {
    packets.open_pes_packet(&PesOpening {
        len,
        packets: count_ts_packets(len) + spread,
        clock: clock_reference(frame.dts),
        random_access: frame.is_sync,
    });
}
