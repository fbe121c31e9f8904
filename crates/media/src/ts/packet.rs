//! Transport packets (ISO/IEC 13818-1, 2.4.3.2): 188 bytes each, cut from a PES packet whose
//! length is known, so that stuffing is where it belongs and bytes are copied once.

/// Bytes of a transport packet.
pub const PACKET: usize = 188;
/// PID of the video.
pub const VIDEO_PID: u16 = 0x100;
/// Bytes after the header of a packet.
const BODY: usize = PACKET - 4;
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

/// Writes the packets of one stream. The continuity counter starts at 0.
pub struct Packets {
    /// What is written so far.
    pub out: Vec<u8>,
    counter: u8,
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

impl Packets {
    /// Writes after what `out` has.
    pub fn new(out: Vec<u8>) -> Packets {
        Packets {
            out,
            counter: 0,
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
        self.out.push((BODY - payload - 1) as u8);
        self.out.push(flags);
        self.out.extend_from_slice(&opening.clock);
        self.stuff(BODY - CLOCK - payload);
    }

    /// Adds bytes of the PES packet.
    pub fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.room == 0 {
                self.open_next();
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.room.max(1)));
            self.out.extend_from_slice(now);
            self.room = self.room.saturating_sub(now.len());
            self.left = self.left.saturating_sub(now.len());
            bytes = later;
        }
    }

    /// Writes a packet with nothing but the clock, between PES packets.
    pub fn write_clock(&mut self, clock: [u8; 6]) {
        // No payload: the counter stays where it was.
        self.counter = self.counter.wrapping_sub(1);
        self.write_header(0, 0x20);
        self.out.extend_from_slice(&[(BODY - 1) as u8, 0x10]);
        self.out.extend_from_slice(&clock);
        self.stuff(BODY - CLOCK);
    }

    /// A packet of the PES packet after its first: an adaptation field only to stuff it.
    fn open_next(&mut self) {
        let payload = self.next_payload(BODY);
        match BODY - payload {
            0 => self.write_header(0, 0x10),
            stuffing => {
                self.write_header(0, 0x30);
                self.out.push((stuffing - 1) as u8);
                if stuffing > 1 {
                    self.out.push(0);
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
        let [high, low] = VIDEO_PID.to_be_bytes();
        let control = control | self.counter & 15;
        self.out
            .extend_from_slice(&[0x47, start | high, low, control]);
        self.counter = self.counter.wrapping_add(1);
    }

    fn stuff(&mut self, len: usize) {
        self.out.resize(self.out.len() + len, 0xff);
    }
}
