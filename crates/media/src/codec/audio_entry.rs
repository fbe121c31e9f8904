//! Audio sample entries (ISO/IEC 14496-12, 12.2; QuickTime File Format, "Sound Sample
//! Descriptions"): their fixed fields, and how we write them.

use super::entry::{Child, Children};
use crate::bytes::{Reader, write_box};
use crate::error::Result;

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
