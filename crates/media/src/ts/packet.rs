//! Transport packets (ISO/IEC 13818-1, 2.4.3.2): 188 bytes each, cut from a PES packet whose
//! length is known, so that stuffing is where it belongs and bytes are copied once.

/// Bytes of a transport packet.
pub const PACKET: usize = 188;
/// PID of the video.
pub const VIDEO_PID: u16 = 0x100;
/// Bytes of the header of a packet, and after it.
const HEADER: usize = 4;
const BODY: usize = PACKET - HEADER;
/// As much as compilers copy without a call, which takes longer than the copying.
const HALF: usize = BODY / 2;
/// Bytes of the adaptation field with the clock, which opens every PES packet.
const CLOCK: usize = 8;
/// Packets of the video are a multiple of this, so that the continuity counter comes round.
const CYCLE: usize = 16;

/// How many packets a PES packet of `len` bytes needs.
pub fn packets_of(len: usize) -> usize {
    1 + len.saturating_sub(BODY - CLOCK).div_ceil(BODY)
}

/// How many packets more make `packets` a multiple of 16.
pub fn packets_to_cycle(packets: usize) -> usize {
    packets.next_multiple_of(CYCLE) - packets
}

/// Writes the packets of one stream. What does not fit is counted and left out.
pub struct Packets<'a> {
    out: &'a mut [u8],
    /// Bytes written so far.
    pub len: usize,
    /// Continuity counter of the next packet.
    pub counter: u8,
    /// Bytes of the PES packet that are still to come, and packets to put them in.
    left: usize,
    packets: usize,
    /// Bytes that still go into the packet that is open.
    room: usize,
}

/// How a PES packet begins.
pub struct Opening {
    /// Its bytes, header included.
    pub len: usize,
    /// In how many packets: at least [`packets_of`] its bytes, at most one for each byte.
    pub packets: usize,
    /// Programme clock reference.
    pub clock: [u8; 6],
    /// `random_access_indicator`.
    pub random_access: bool,
}

impl Packets<'_> {
    /// Writes to `out`, from a PES packet's begin on.
    pub fn new(out: &mut [u8], counter: u8) -> Packets<'_> {
        Packets {
            out,
            len: 0,
            counter,
            left: 0,
            packets: 0,
            room: 0,
        }
    }

    /// Begins a PES packet; the one before must have got all its bytes.
    pub fn open(&mut self, opening: &Opening) {
        debug_assert_eq!((self.left, self.room), (0, 0));
        self.left = opening.len;
        self.packets = opening.packets;
        let payload = self.next_payload(BODY - CLOCK);
        self.write_header(0x40, 0x30);
        let flags = 0x10 | u8::from(opening.random_access) << 6;
        self.put(&[(BODY - payload - 1) as u8, flags]);
        self.put(&opening.clock);
        self.stuff(BODY - CLOCK - payload);
    }

    /// Adds bytes of the PES packet.
    pub fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.room == 0 {
                bytes = self.write_whole(bytes);
                if bytes.is_empty() {
                    return;
                }
                self.open_next();
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.room.max(1)));
            self.put(now);
            self.room = self.room.saturating_sub(now.len());
            self.left = self.left.saturating_sub(now.len());
            bytes = later;
        }
    }

    /// Writes the packets that these bytes fill without stuffing, nearly all there are, and gives back
    /// the bytes after those.
    fn write_whole<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        let room = self.out.get_mut(self.len..).unwrap_or_default();
        for packet in room.as_chunks_mut::<PACKET>().0 {
            let Some((payload, later)) = bytes.split_first_chunk::<BODY>() else {
                break;
            };
            // Each packet after this one gets a byte at least.
            if self.packets == 0 || self.left < BODY + self.packets - 1 {
                break;
            }
            let (head, body) = packet.split_at_mut(HEADER);
            head.copy_from_slice(&header(0, 0x10, self.counter));
            let halves = body.as_chunks_mut::<HALF>().0.iter_mut();
            for (to, from) in halves.zip(payload.as_chunks::<HALF>().0) {
                *to = *from;
            }
            self.counter = self.counter.wrapping_add(1);
            self.len += PACKET;
            self.left -= BODY;
            self.packets -= 1;
            bytes = later;
        }
        bytes
    }

    /// Writes a packet with nothing but the clock, between PES packets.
    pub fn write_clock(&mut self, clock: [u8; 6]) {
        // No payload: the counter stays where it was.
        self.counter = self.counter.wrapping_sub(1);
        self.write_header(0, 0x20);
        self.put(&[(BODY - 1) as u8, 0x10]);
        self.put(&clock);
        self.stuff(BODY - CLOCK);
    }

    /// A packet of the PES packet after its first: an adaptation field only to stuff it.
    fn open_next(&mut self) {
        let payload = self.next_payload(BODY);
        match BODY - payload {
            0 => self.write_header(0, 0x10),
            stuffing => {
                self.write_header(0, 0x30);
                self.put(&[(stuffing - 1) as u8]);
                if stuffing > 1 {
                    self.put(&[0]);
                }
                self.stuff(stuffing.saturating_sub(2));
            }
        }
    }

    /// How many bytes the next packet takes, so that each later one gets at least one.
    fn next_payload(&mut self, most: usize) -> usize {
        self.packets = self.packets.saturating_sub(1);
        self.room = most.min(self.left.saturating_sub(self.packets)).max(1);
        self.room
    }

    fn write_header(&mut self, start: u8, control: u8) {
        self.put(&header(start, control, self.counter));
        self.counter = self.counter.wrapping_add(1);
    }

    fn stuff(&mut self, len: usize) {
        const STUFFING: [u8; PACKET] = [0xff; PACKET];
        self.put(STUFFING.get(..len).unwrap_or(&STUFFING));
    }

    /// Adds bytes as they are: from outside whole packets only, as tables are.
    pub fn put(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(to) = self.out.get_mut(self.len..end) {
            to.copy_from_slice(bytes);
        }
        self.len = end;
    }
}

/// How a packet of the video begins.
fn header(start: u8, control: u8, counter: u8) -> [u8; HEADER] {
    let [high, low] = VIDEO_PID.to_be_bytes();
    [0x47, start | high, low, control | counter & 15]
}
