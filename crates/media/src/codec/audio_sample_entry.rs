//! Parses the fixed fields of audio sample entries, and writes entries in ISO form (ISO/IEC
//! 14496-12, 12.2; QuickTime File Format, "Sound Sample Descriptions").

use super::child_boxes::{ChildBox, ChildBoxes};
use crate::bytes::{ByteReader, write_box};
use crate::error::Result;

/// An `AudioSampleEntry`, or QuickTime's sound sample description of version 0, 1 or 2.
#[derive(Debug, Clone)]
pub struct AudioSampleEntry<'a> {
    /// Four-letter code.
    pub code: [u8; 4],
    /// Declared number of channels; often wrong.
    pub channel_count: u32,
    /// Declared sampling rate in Hz; 0 if the rate does not fit the field.
    pub sample_rate: u32,
    /// Declared bits per sample.
    bits_per_sample: u16,
    /// Whether the entry has a layout of QuickTime that ISO readers do not understand.
    pub is_quicktime: bool,
    /// Child boxes, followed by the children of QuickTime's `wave` box.
    pub children: ChildBoxes<'a>,
}

impl<'a> AudioSampleEntry<'a> {
    /// Parses the body of an entry with this four-letter code.
    pub fn parse(code: [u8; 4], body: &'a [u8]) -> Result<AudioSampleEntry<'a>> {
        let mut reader = ByteReader::new(body);
        reader.skip(8); // reserved, data_reference_index
        let version = reader.u16();
        reader.skip(6); // revision, vendor
        let (channels, sample_bits) = (u32::from(reader.u16()), reader.u16());
        reader.skip(4);
        let sample_rate = reader.u32() >> 16;
        reader.check_no_short_read()?;
        let mut entry = AudioSampleEntry {
            code,
            channel_count: channels,
            sample_rate,
            bits_per_sample: sample_bits,
            is_quicktime: false,
            children: ChildBoxes::default(),
        };
        match version {
            1 => entry.read_version_1(reader.remaining_slice())?,
            2 => entry.read_version_2(reader)?,
            _ => entry.children = ChildBoxes::parse(reader.remaining_slice())?,
        }
        Ok(entry)
    }

    /// Reads the rest of a version 1 entry. In the QuickTime form, the rest starts with four
    /// numbers. ISO's `AudioSampleEntryV1` also has version 1, but contains boxes such as `srat`
    /// instead of these numbers. If `rest` consists of valid boxes, the entry is read in the ISO
    /// form.
    fn read_version_1(&mut self, rest: &'a [u8]) -> Result<()> {
        let iso = ChildBoxes::parse(rest);
        if let Ok(iso) = iso
            && let Some(first) = iso.0.first()
            && first.name.iter().all(u8::is_ascii_graphic)
        {
            if let Some(srat) = iso.find_body(b"srat") {
                let mut reader = ByteReader::new(srat);
                reader.skip(4);
                self.sample_rate = reader.u32();
            }
            self.children = iso;
            return Ok(());
        }
        let mut reader = ByteReader::new(rest);
        reader.skip(16); // samples per packet, and bytes per packet, frame and sample
        reader.check_no_short_read()?;
        self.read_quicktime_children(reader.remaining_slice())
    }

    fn read_version_2(&mut self, mut reader: ByteReader<'a>) -> Result<()> {
        reader.skip(4); // size of the structure
        let rate = f64::from_bits(reader.u64());
        self.sample_rate = rate.clamp(0.0, f64::from(u32::MAX)) as u32;
        self.channel_count = reader.u32();
        reader.skip(20);
        reader.check_no_short_read()?;
        self.read_quicktime_children(reader.remaining_slice())
    }

    fn read_quicktime_children(&mut self, rest: &'a [u8]) -> Result<()> {
        self.is_quicktime = true;
        let mut all = ChildBoxes::parse(rest)?;
        if let Some(wave) = all.find_body(b"wave") {
            all.0.extend(ChildBoxes::parse(wave)?.0);
        }
        self.children = all;
        Ok(())
    }

    /// Writes the entry in ISO form (version 0). An ISO entry keeps all its fields and boxes. A
    /// QuickTime entry keeps only `config`, the box with the decoder configuration.
    pub fn write_iso_entry(
        &self,
        config: ([u8; 4], &[u8]),
        channels: u32,
        sample_rate: u32,
    ) -> Vec<u8> {
        if !self.is_quicktime {
            return self.write_version_0_entry(
                self.code,
                &self.children,
                self.channel_count,
                self.sample_rate,
            );
        }
        let (name, body) = config;
        let child = ChildBoxes(vec![ChildBox { name, body }]);
        self.write_version_0_entry(self.code, &child, channels, sample_rate)
    }

    /// Writes a version 0 entry with this code, these child boxes, and this channel count and
    /// sampling rate.
    pub fn write_version_0_entry(
        &self,
        code: [u8; 4],
        children: &ChildBoxes<'_>,
        channels: u32,
        sample_rate: u32,
    ) -> Vec<u8> {
        let rate = u16::try_from(sample_rate).unwrap_or(0);
        let bits = if self.bits_per_sample == 0 {
            16
        } else {
            self.bits_per_sample
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
            children.write_boxes(out);
        });
        out
    }
}
