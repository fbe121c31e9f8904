//! `AudioSpecificConfig` (ISO/IEC 14496-3, 1.6.2.1) with its hierarchical and its
//! backward-compatible signalling of SBR and PS, and the program config element (4.5.1.1).

use super::bits::Bits;
use crate::error::{Error, Result};

/// Spectral band replication, as an audio object type.
const SBR: u32 = 5;
/// Parametric stereo, as an audio object type.
const PS: u32 = 29;
/// Object types whose configuration is `GASpecificConfig` (4.4.1).
const GENERAL_AUDIO: [u32; 12] = [1, 2, 3, 4, 6, 7, 17, 19, 20, 21, 22, 23];
/// Samples a second, by `samplingFrequencyIndex`.
const RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

/// What the configuration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioSpecificConfig {
    /// Audio object type of the core: 2 is AAC-LC.
    pub object_type: u32,
    /// Samples a second of the core.
    pub core_rate: u32,
    /// `channelConfiguration`; 0 where a program config element says it.
    pub channel_config: u8,
    /// Channels of the core; 0 if unknown.
    pub channels: u32,
    /// Samples a second after SBR, where SBR is signalled to be there.
    pub sbr_rate: Option<u32>,
    /// Whether SBR was spoken of at all (implicit signalling is ruled out then).
    pub sbr_known: bool,
    /// Whether PS is signalled.
    pub ps: bool,
}

impl AudioSpecificConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// `Malformed` if it is cut off, or has a sampling rate of zero or a reserved index.
    pub fn read(config: &[u8]) -> Result<AudioSpecificConfig> {
        let mut bits = Bits::new(config);
        let mut asc = AudioSpecificConfig {
            object_type: object_type(&mut bits),
            core_rate: rate(&mut bits),
            channel_config: bits.u8(4),
            channels: 0,
            sbr_rate: None,
            sbr_known: false,
            ps: false,
        };
        let extension = asc.object_type;
        if matches!(extension, SBR | PS) {
            asc.sbr_known = true;
            asc.sbr_rate = Some(rate(&mut bits));
            asc.ps = extension == PS;
            asc.object_type = object_type(&mut bits);
            if asc.object_type == 22 {
                bits.skip(4); // extensionChannelConfiguration
            }
        }
        asc.channels = channels(asc.channel_config);
        if GENERAL_AUDIO.contains(&asc.object_type) {
            asc.read_general_audio(&mut bits);
        }
        if bits.short() || asc.core_rate == 0 || asc.sbr_rate == Some(0) {
            let what = "the AudioSpecificConfig is cut off or has no sampling rate";
            return Err(Error::malformed(what));
        }
        asc.read_sync_extension(&mut bits);
        Ok(asc)
    }

    /// `samplingFrequencyIndex` of the core rate; none if it is not listed.
    pub fn rate_index(&self) -> Option<u8> {
        let index = RATES.iter().position(|rate| *rate == self.core_rate)?;
        Some(index as u8)
    }

    /// `GASpecificConfig`.
    fn read_general_audio(&mut self, bits: &mut Bits<'_>) {
        bits.skip(1); // frameLengthFlag
        if bits.bit() {
            bits.skip(14); // coreCoderDelay
        }
        let extension = bits.bit();
        if self.channel_config == 0 {
            self.channels = read_pce(bits);
        }
        if matches!(self.object_type, 6 | 20) {
            bits.skip(3); // layerNr
        }
        if extension {
            match self.object_type {
                22 => bits.skip(16),
                17 | 19 | 20 | 23 => bits.skip(3),
                _ => {}
            }
            bits.skip(1); // extensionFlag3
        }
        if matches!(self.object_type, 17 | 19..=23) {
            bits.skip(2); // epConfig
        }
    }

    /// The backward-compatible extension at the end: `syncExtensionType` 0x2b7 and 0x548.
    fn read_sync_extension(&mut self, bits: &mut Bits<'_>) {
        if self.sbr_known || bits.left() < 16 || bits.u(11) != 0x2b7 || object_type(bits) != SBR {
            return;
        }
        self.sbr_known = true;
        if !bits.bit() {
            return;
        }
        let rate = rate(bits);
        if !bits.short() && rate > 0 {
            self.sbr_rate = Some(rate);
            self.ps = bits.left() >= 12 && bits.u(11) == 0x548 && bits.bit();
        }
    }
}

/// `GetAudioObjectType` (1.6.2.1).
fn object_type(bits: &mut Bits<'_>) -> u32 {
    match bits.u(5) {
        31 => 32 + bits.u(6),
        short => short,
    }
}

/// A sampling rate by index or in full; 0 where the index is reserved.
fn rate(bits: &mut Bits<'_>) -> u32 {
    match bits.u(4) as usize {
        15 => bits.u(24),
        index => RATES.get(index).copied().unwrap_or(0),
    }
}

/// Channels by `channelConfiguration` (Table 1.19); 0 if not listed.
fn channels(config: u8) -> u32 {
    match config {
        1..=6 => u32::from(config),
        7 | 12 | 14 => 8,
        11 => 7,
        13 => 24,
        _ => 0,
    }
}

/// Counts the channels of a `program_config_element`.
fn read_pce(bits: &mut Bits<'_>) -> u32 {
    bits.skip(4 + 2 + 4); // element_instance_tag, object_type, sampling_frequency_index
    let [front, side, back] = [0; 3].map(|_: u8| bits.u(4));
    let (lfe, data, coupling) = (bits.u(2), bits.u(3), bits.u(4));
    for size in [4, 4, 3] {
        if bits.bit() {
            bits.skip(size); // mono and stereo mixdown elements, matrix mixdown
        }
    }
    let elements = front + side + back;
    let pairs: u32 = (0..elements)
        .map(|_| {
            let pair = u32::from(bits.bit());
            bits.skip(4);
            pair
        })
        .sum();
    bits.skip((lfe * 4 + data * 4 + coupling * 5) as usize);
    // byte_alignment() is relative to the start of AudioSpecificConfig here (1.6.2.1).
    bits.align();
    let comment = bits.u(8) as usize;
    bits.skip(comment * 8);
    elements + pairs + lfe
}
