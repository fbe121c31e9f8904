//! Sample entries (ISO/IEC 14496-12, 8.5.2 and 12; QuickTime File Format, "Media Data Atom
//! Types"): their fixed fields and child boxes, and how we write them.

use crate::bytes::{Reader, write_box};
use crate::error::{Error, Kind, Result, fourcc};

/// The largest sample entry read, in bytes: real ones have a few hundred.
const SIZE_MAX: usize = 1 << 20;
/// The most child boxes read in one sample entry: real ones have up to ten.
const CHILDREN_MAX: usize = 256;

/// A box inside a sample entry.
#[derive(Debug, Clone, Copy)]
pub struct Child<'a> {
    /// Four-letter code.
    pub name: [u8; 4],
    /// What follows the box header.
    pub body: &'a [u8],
}

/// The child boxes of a sample entry, in their order.
#[derive(Debug, Clone, Default)]
pub struct Children<'a>(pub Vec<Child<'a>>);

/// Splits the whole box `entry` into code and body.
pub fn open(entry: &[u8]) -> Result<([u8; 4], &[u8])> {
    if entry.len() > SIZE_MAX {
        let what = format!(
            "a sample entry of {} bytes; at most {SIZE_MAX}",
            entry.len()
        );
        return Err(Error::new(Kind::TooLarge, what));
    }
    match next(entry) {
        Some((child, [])) => Ok((child.name, child.body)),
        _ => Err(Error::malformed(
            "the size of the sample entry is not that of its box",
        )),
    }
}

/// The first box of `bytes` and what follows it; none if it does not fit.
fn next(bytes: &[u8]) -> Option<(Child<'_>, &[u8])> {
    let mut reader = Reader::new(bytes);
    let (size, name) = (reader.u32() as usize, reader.array());
    let (size, header) = match size {
        0 => (bytes.len(), 8),
        1 => (usize::try_from(reader.u64()).ok()?, 16),
        size => (size, 8),
    };
    let (whole, rest) = bytes.split_at_checked(size)?;
    let body = whole.get(header..)?;
    Some((Child { name, body }, rest))
}

impl<'a> Children<'a> {
    /// Reads the boxes of `bytes`. QuickTime ends some lists with four zero bytes: they end it.
    pub fn read(bytes: &'a [u8]) -> Result<Children<'a>> {
        let mut list = Vec::new();
        let mut rest = bytes;
        while rest.len() >= 8 && rest[..4] != [0; 4] {
            let Some((child, after)) = next(rest) else {
                return Err(Error::malformed("a box in the sample entry is cut off"));
            };
            list.push(child);
            rest = after;
            if list.len() > CHILDREN_MAX {
                let what = format!("more than {CHILDREN_MAX} boxes in a sample entry");
                return Err(Error::new(Kind::TooLarge, what));
            }
        }
        Ok(Children(list))
    }

    /// The body of the first child called `name`.
    pub fn find(&self, name: &[u8; 4]) -> Option<&'a [u8]> {
        self.0
            .iter()
            .find(|child| child.name == *name)
            .map(|child| child.body)
    }

    /// The body of the child called `name`, which the entry `of` cannot do without.
    pub fn need(&self, name: &[u8; 4], of: [u8; 4]) -> Result<&'a [u8]> {
        let what = || format!("{} has no {} box", fourcc(of), fourcc(*name));
        self.find(name).ok_or_else(|| Error::malformed(what()))
    }

    fn write(&self, out: &mut Vec<u8>) {
        for child in &self.0 {
            write_box(out, &child.name, |out| out.extend_from_slice(child.body));
        }
    }
}

/// A `VisualSampleEntry`.
#[derive(Debug, Clone)]
pub struct VisualEntry<'a> {
    /// Four-letter code.
    pub code: [u8; 4],
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// From frame size to depth: what we copy as it is.
    fixed: &'a [u8],
    /// Boxes.
    pub children: Children<'a>,
}

impl<'a> VisualEntry<'a> {
    /// Reads the body of the entry `code`.
    pub fn read(code: [u8; 4], body: &'a [u8]) -> Result<VisualEntry<'a>> {
        let mut reader = Reader::new(body);
        reader.skip(24); // reserved, data_reference_index, QuickTime's version and vendor
        let fixed = reader.take(54);
        reader.done()?;
        let mut size = Reader::new(fixed);
        Ok(VisualEntry {
            code,
            width: u32::from(size.u16()),
            height: u32::from(size.u16()),
            fixed,
            children: Children::read(reader.rest())?,
        })
    }

    /// The entry in ISO form: data_reference_index 1, QuickTime's fields zero, its `nclc` as
    /// `nclx`, its `gama` and list terminator gone; everything else as it was.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_box(&mut out, &self.code, |out| {
            out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
            out.extend_from_slice(&[0; 16]);
            out.extend_from_slice(self.fixed);
            for child in &self.children.0 {
                match (&child.name, child.body) {
                    (b"gama", _) => {}
                    (b"colr", [b'n', b'c', b'l', b'c', rest @ ..]) => {
                        write_box(out, b"colr", |out| {
                            out.extend_from_slice(b"nclx");
                            out.extend_from_slice(rest.get(..6).unwrap_or(rest));
                            out.push(0); // full_range_flag: QuickTime's colours are of video range
                        })
                    }
                    _ => Children(vec![*child]).write(out),
                }
            }
        });
        out
    }
}

/// An `AudioSampleEntry`, or QuickTime's sound sample description of version 0, 1 or 2.
#[derive(Debug, Clone)]
pub struct AudioEntry<'a> {
    /// Four-letter code.
    pub code: [u8; 4],
    /// As declared; often wrong.
    pub channels: u32,
    /// Samples a second, as declared; 0 when it does not fit the field.
    pub sample_rate: u32,
    /// Bits a sample, as declared.
    sample_bits: u16,
    /// Whether it is QuickTime's own layout, which ISO readers do not know.
    pub quicktime: bool,
    /// Boxes; those inside QuickTime's `wave` are put beside the others.
    pub children: Children<'a>,
}

impl<'a> AudioEntry<'a> {
    /// Reads the body of the entry `code`.
    pub fn read(code: [u8; 4], body: &'a [u8]) -> Result<AudioEntry<'a>> {
        let mut reader = Reader::new(body);
        reader.skip(8); // reserved, data_reference_index
        let version = reader.u16();
        reader.skip(6); // revision, vendor
        let (channels, sample_bits) = (u32::from(reader.u16()), reader.u16());
        reader.skip(4);
        let sample_rate = reader.u32() >> 16;
        reader.done()?;
        let mut entry = AudioEntry {
            code,
            channels,
            sample_rate,
            sample_bits,
            quicktime: false,
            children: Children::default(),
        };
        match version {
            1 => entry.read_version_1(reader.rest())?,
            2 => entry.read_version_2(reader)?,
            _ => entry.children = Children::read(reader.rest())?,
        }
        Ok(entry)
    }

    /// QuickTime's version 1 has four more numbers; ISO's `AudioSampleEntryV1` has the same
    /// version and none, but a `srat` box. Only what follows tells them apart.
    fn read_version_1(&mut self, rest: &'a [u8]) -> Result<()> {
        let iso = Children::read(rest);
        if let Ok(iso) = iso
            && let Some(first) = iso.0.first()
            && first.name.iter().all(u8::is_ascii_graphic)
        {
            if let Some(srat) = iso.find(b"srat") {
                let mut reader = Reader::new(srat);
                reader.skip(4);
                self.sample_rate = reader.u32();
            }
            self.children = iso;
            return Ok(());
        }
        let mut reader = Reader::new(rest);
        reader.skip(16); // samples a packet, bytes a packet, a frame, a sample
        reader.done()?;
        self.read_quicktime(reader.rest())
    }

    fn read_version_2(&mut self, mut reader: Reader<'a>) -> Result<()> {
        reader.skip(4); // size of this structure
        let rate = f64::from_bits(reader.u64());
        self.sample_rate = rate.clamp(0.0, f64::from(u32::MAX)) as u32;
        self.channels = reader.u32();
        reader.skip(20);
        reader.done()?;
        self.read_quicktime(reader.rest())
    }

    fn read_quicktime(&mut self, rest: &'a [u8]) -> Result<()> {
        self.quicktime = true;
        let mut all = Children::read(rest)?;
        if let Some(wave) = all.find(b"wave") {
            all.0.extend(Children::read(wave)?.0);
        }
        self.children = all;
        Ok(())
    }

    /// The entry in ISO form (version 0). An ISO one keeps all its fields and boxes; of a
    /// QuickTime one only the box that configures the decoder stays, as `config`.
    pub fn write(&self, config: ([u8; 4], &[u8]), channels: u32, sample_rate: u32) -> Vec<u8> {
        if !self.quicktime {
            return self.write_as(self.code, &self.children, self.channels, self.sample_rate);
        }
        let (name, body) = config;
        let child = Children(vec![Child { name, body }]);
        self.write_as(self.code, &child, channels, sample_rate)
    }

    /// A version 0 entry of another `code` with these boxes.
    pub fn write_as(
        &self,
        code: [u8; 4],
        children: &Children<'_>,
        channels: u32,
        sample_rate: u32,
    ) -> Vec<u8> {
        let rate = u16::try_from(sample_rate).unwrap_or(0);
        let bits = if self.sample_bits == 0 {
            16
        } else {
            self.sample_bits
        };
        let mut out = Vec::new();
        write_box(&mut out, &code, |out| {
            out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
            out.extend_from_slice(&[0; 8]);
            out.extend_from_slice(&(channels.min(0xffff) as u16).to_be_bytes());
            out.extend_from_slice(&bits.to_be_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&rate.to_be_bytes());
            out.extend_from_slice(&[0; 2]);
            children.write(out);
        });
        out
    }
}
