//! Elementary stream descriptors (ISO/IEC 14496-1, 7.2.6; ISO/IEC 14496-14, 6.7): the esds box.

use crate::bytes::{Reader, write_full_box};
use crate::error::{Error, Result};

/// Tags of the descriptors that we read.
const ES: u8 = 3;
const DECODER_CONFIG: u8 = 4;
const DECODER_SPECIFIC: u8 = 5;

/// What an esds box says of the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Esds<'a> {
    /// `objectTypeIndication`: 0x40 is MPEG-4 audio.
    pub object_type: u8,
    /// `DecoderSpecificInfo`: for AAC its `AudioSpecificConfig`; may be empty.
    pub config: &'a [u8],
}

impl<'a> Esds<'a> {
    /// Reads the body of an esds box.
    pub fn read(body: &'a [u8]) -> Result<Esds<'a>> {
        let mut reader = Reader::new(body);
        reader.skip(4); // version and flags
        let mut es = Reader::new(descriptor(&mut reader, ES)?);
        es.skip(2); // ES_ID
        let flags = es.u8();
        es.skip(if flags & 0x80 != 0 { 2 } else { 0 }); // dependsOn_ES_ID
        let url = if flags & 0x40 != 0 { es.u8() } else { 0 };
        es.skip(usize::from(url));
        es.skip(if flags & 0x20 != 0 { 2 } else { 0 }); // OCR_ES_Id
        let mut decoder = Reader::new(descriptor(&mut es, DECODER_CONFIG)?);
        let object_type = decoder.u8();
        decoder.skip(12); // stream type, buffer size, bit rates
        decoder.done()?;
        let config = match decoder.rest() {
            [DECODER_SPECIFIC, ..] => descriptor(&mut decoder, DECODER_SPECIFIC)?,
            _ => &[],
        };
        Ok(Esds {
            object_type,
            config,
        })
    }
}

/// The next descriptor, which must have `tag`; one that claims too much is taken to the end.
fn descriptor<'a>(reader: &mut Reader<'a>, tag: u8) -> Result<&'a [u8]> {
    let found = reader.u8();
    let mut size = 0usize;
    for _ in 0..4 {
        let byte = reader.u8();
        size = size << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    reader.done()?;
    if found != tag {
        let what = format!("descriptor {found} in esds where {tag} belongs");
        return Err(Error::malformed(what));
    }
    Ok(reader.take(size.min(reader.rest().len())))
}

/// Writes the body of an esds box for a stream without `DecoderSpecificInfo`, such as MP3.
pub fn write_plain(object_type: u8) -> Vec<u8> {
    let mut out = Vec::new();
    write_full_box(&mut out, b"esds", 0, 0, |out| {
        out.extend_from_slice(&[ES, 21, 0, 0, 0, DECODER_CONFIG, 13, object_type, 0x15]);
        out.extend_from_slice(&[0; 11]); // buffer size and bit rates: unknown
        out.extend_from_slice(&[6, 1, 2]); // SLConfigDescriptor: predefined for MP4
    });
    out.split_off(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let body = write_plain(0x6b);
        assert_eq!(body.len(), 4 + 2 + 21);
        let esds = Esds::read(&body).unwrap();
        assert_eq!((esds.object_type, esds.config), (0x6b, &[][..]));
    }

    #[test]
    fn other_descriptors_and_cut_ones_are_refused() {
        assert!(Esds::read(&[0, 0, 0, 0, 4, 1, 0]).is_err());
        assert!(Esds::read(&[0, 0, 0, 0, 3, 0x80, 0x80]).is_err());
    }

    #[test]
    fn optional_fields_are_passed_over() {
        let mut body = vec![0, 0, 0, 0, 3, 40, 0, 1, 0xe0, 9, 9, 2, b'u', b'r', 8, 8];
        body.extend_from_slice(&[4, 17, 0x40, 0x15]);
        body.extend_from_slice(&[0; 11]);
        body.extend_from_slice(&[5, 2, 0x12, 0x10]);
        let esds = Esds::read(&body).unwrap();
        assert_eq!((esds.object_type, esds.config), (0x40, &[0x12, 0x10][..]));
    }
}
