//! Transport packets (ISO/IEC 13818-1, 2.4.3.2) of 188 bytes each. The length of each PES packet is
//! known in advance. The writer can therefore place the stuffing correctly and copy each byte only
//! once.

/// Size of a transport packet, in bytes.
pub const PACKET_BYTES: usize = 188;
/// PID of the video stream.
pub const VIDEO_PID: u16 = 0x100;
/// Size of a packet header, and of the rest of the packet, in bytes.
const PACKET_HEADER_BYTES: usize = 4;
const PACKET_BODY_BYTES: usize = PACKET_BYTES - PACKET_HEADER_BYTES;
/// Number of bytes that are copied at once. Compilers copy this number of bytes inline. A function
/// call would take longer than the copy.
const COPY_BYTES: usize = PACKET_BODY_BYTES / 2;
/// Size of the adaptation field with the clock reference at the start of each PES packet, in bytes.
const CLOCK_FIELD_BYTES: usize = 8;
/// The number of video packets in a segment is a multiple of this number, so that the continuity
/// counter returns to 0.
const COUNTER_CYCLE: usize = 16;

/// Returns the number of transport packets for a PES packet of `len` bytes.
pub fn count_ts_packets(len: usize) -> usize {
    1 + len
        .saturating_sub(PACKET_BODY_BYTES - CLOCK_FIELD_BYTES)
        .div_ceil(PACKET_BODY_BYTES)
}

/// Returns the number of packets that must be added to `packets` to reach a multiple of 16.
pub fn count_packets_to_fill_cycle(packets: usize) -> usize {
    packets.next_multiple_of(COUNTER_CYCLE) - packets
}

/// Writes the packets of one stream. Bytes that do not fit into the buffer are counted but not
/// written.
pub struct PacketWriter<'a> {
    out: &'a mut [u8],
    /// Number of bytes so far, including bytes that did not fit into the buffer.
    pub len: usize,
    /// Continuity counter of the next packet.
    pub counter: u8,
    /// Remaining bytes of the PES packet, and number of transport packets that remain for these
    /// bytes.
    left: usize,
    packets: usize,
    /// Free payload bytes in the current transport packet.
    room: usize,
}

/// Properties of a PES packet that must be known when the packet is started.
pub struct PesOpening {
    /// Length in bytes, including the PES header.
    pub len: usize,
    /// Number of transport packets. At least the result of [`count_ts_packets`] for `len`, and at
    /// most `len`, because each packet carries at least one byte.
    pub packets: usize,
    /// Programme clock reference.
    pub clock: [u8; 6],
    /// `random_access_indicator`.
    pub random_access: bool,
}

impl PacketWriter<'_> {
    /// Creates a writer to `out`. `counter` is the continuity counter of the first packet.
    pub fn new(out: &mut [u8], counter: u8) -> PacketWriter<'_> {
        PacketWriter {
            out,
            len: 0,
            counter,
            left: 0,
            packets: 0,
            room: 0,
        }
    }

    /// Starts a PES packet. The previous PES packet must be complete.
    pub fn open_pes_packet(&mut self, opening: &PesOpening) {
        debug_assert_eq!((self.left, self.room), (0, 0));
        self.left = opening.len;
        self.packets = opening.packets;
        let payload = self.reserve_payload(PACKET_BODY_BYTES - CLOCK_FIELD_BYTES);
        self.write_packet_header(0x40, 0x30);
        let flags = 0x10 | u8::from(opening.random_access) << 6;
        self.write_raw(&[(PACKET_BODY_BYTES - payload - 1) as u8, flags]);
        self.write_raw(&opening.clock);
        self.write_stuffing(PACKET_BODY_BYTES - CLOCK_FIELD_BYTES - payload);
    }

    /// Writes the next bytes of the PES packet.
    pub fn write_pes_bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.room == 0 {
                bytes = self.write_full_packets(bytes);
                if bytes.is_empty() {
                    return;
                }
                self.open_continuation();
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.room.max(1)));
            self.write_raw(now);
            self.room = self.room.saturating_sub(now.len());
            self.left = self.left.saturating_sub(now.len());
            bytes = later;
        }
    }

    /// Writes the packets that `bytes` fill without stuffing, and returns the remaining bytes. This
    /// function writes nearly all packets.
    fn write_full_packets<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        let room = self.out.get_mut(self.len..).unwrap_or_default();
        for packet in room.as_chunks_mut::<PACKET_BYTES>().0 {
            let Some((payload, later)) = bytes.split_first_chunk::<PACKET_BODY_BYTES>() else {
                break;
            };
            // Each later packet needs at least one byte.
            if self.packets == 0 || self.left < PACKET_BODY_BYTES + self.packets - 1 {
                break;
            }
            let (head, body) = packet.split_at_mut(PACKET_HEADER_BYTES);
            head.copy_from_slice(&packet_header(0, 0x10, self.counter));
            let halves = body.as_chunks_mut::<COPY_BYTES>().0.iter_mut();
            for (to, from) in halves.zip(payload.as_chunks::<COPY_BYTES>().0) {
                *to = *from;
            }
            self.counter = self.counter.wrapping_add(1);
            self.len += PACKET_BYTES;
            self.left -= PACKET_BODY_BYTES;
            self.packets -= 1;
            bytes = later;
        }
        bytes
    }

    /// Writes a packet that contains only a clock reference, between two PES packets.
    pub fn write_clock(&mut self, clock: [u8; 6]) {
        // The continuity counter does not advance in a packet without payload.
        self.counter = self.counter.wrapping_sub(1);
        self.write_packet_header(0, 0x20);
        self.write_raw(&[(PACKET_BODY_BYTES - 1) as u8, 0x10]);
        self.write_raw(&clock);
        self.write_stuffing(PACKET_BODY_BYTES - CLOCK_FIELD_BYTES);
    }

    /// Starts a transport packet that continues the PES packet. The adaptation field, if any,
    /// contains only stuffing.
    fn open_continuation(&mut self) {
        let payload = self.reserve_payload(PACKET_BODY_BYTES);
        match PACKET_BODY_BYTES - payload {
            0 => self.write_packet_header(0, 0x10),
            stuffing => {
                self.write_packet_header(0, 0x30);
                self.write_raw(&[(stuffing - 1) as u8]);
                if stuffing > 1 {
                    self.write_raw(&[0]);
                }
                self.write_stuffing(stuffing.saturating_sub(2));
            }
        }
    }

    /// Reserves the payload of the next packet and returns the length of this payload, which is at
    /// most `most` bytes. Leaves at least one byte of the PES packet for each later transport
    /// packet.
    fn reserve_payload(&mut self, most: usize) -> usize {
        self.packets = self.packets.saturating_sub(1);
        self.room = most.min(self.left.saturating_sub(self.packets)).max(1);
        self.room
    }

    fn write_packet_header(&mut self, start: u8, control: u8) {
        self.write_raw(&packet_header(start, control, self.counter));
        self.counter = self.counter.wrapping_add(1);
    }

    fn write_stuffing(&mut self, len: usize) {
        const STUFFING: [u8; PACKET_BYTES] = [0xff; PACKET_BYTES];
        self.write_raw(STUFFING.get(..len).unwrap_or(&STUFFING));
    }

    /// Writes raw bytes. Callers outside this file write only whole packets, such as tables.
    pub fn write_raw(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(to) = self.out.get_mut(self.len..end) {
            to.copy_from_slice(bytes);
        }
        self.len = end;
    }
}

/// Builds the header of a video packet.
fn packet_header(start: u8, control: u8, counter: u8) -> [u8; PACKET_HEADER_BYTES] {
    let [high, low] = VIDEO_PID.to_be_bytes();
    [0x47, start | high, low, control | counter & 15]
}
