//! Parses `AudioSpecificConfig` (ISO/IEC 14496-3, 1.6.2.1) and its program config element
//! (4.5.1.1). Both the hierarchical and the backward-compatible signalling of SBR and PS are
//! supported.

use super::bit_reader::BitReader;
use crate::error::{Error, Result};

/// Audio object type of spectral band replication.
const SBR: u32 = 5;
/// Audio object type of parametric stereo.
const PS: u32 = 29;
/// Audio object types whose configuration is `GASpecificConfig` (4.4.1).
const GENERAL_AUDIO: [u32; 12] = [1, 2, 3, 4, 6, 7, 17, 19, 20, 21, 22, 23];
/// Sampling rates in Hz, indexed by `samplingFrequencyIndex`.
const RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

/// A parsed `AudioSpecificConfig` (ISO/IEC 14496-3, 1.6.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioSpecificConfig {
    /// Audio object type of the core, such as 2 for AAC-LC.
    pub object_type: u32,
    /// Sampling rate of the core, in Hz.
    pub core_sample_rate: u32,
    /// `channelConfiguration`; 0 if a program config element defines the channels.
    pub channel_configuration: u8,
    /// Number of channels of the core; 0 if unknown.
    pub channel_count: u32,
    /// Sampling rate after SBR in Hz, if the configuration signals that SBR is present.
    pub sbr_sample_rate: Option<u32>,
    /// Whether the configuration states explicitly that SBR is present or absent. If so, implicit
    /// signalling is ruled out.
    pub sbr_is_signalled: bool,
    /// Whether parametric stereo is signalled.
    pub has_parametric_stereo: bool,
}

impl AudioSpecificConfig {
    /// Parses a configuration.
    ///
    /// # Errors
    /// Returns `Malformed` if the configuration is truncated, or if a sampling rate is zero or has
    /// a reserved index.
    pub fn parse(config: &[u8]) -> Result<AudioSpecificConfig> {
        let mut bits = BitReader::new(config);
        let mut asc = AudioSpecificConfig {
            object_type: read_object_type(&mut bits),
            core_sample_rate: read_sample_rate(&mut bits),
            channel_configuration: bits.read_bits_u8(4),
            channel_count: 0,
            sbr_sample_rate: None,
            sbr_is_signalled: false,
            has_parametric_stereo: false,
        };
        let extension = asc.object_type;
        if matches!(extension, SBR | PS) {
            asc.sbr_is_signalled = true;
            asc.sbr_sample_rate = Some(read_sample_rate(&mut bits));
            asc.has_parametric_stereo = extension == PS;
            asc.object_type = read_object_type(&mut bits);
            if asc.object_type == 22 {
                bits.skip(4); // extensionChannelConfiguration
            }
        }
        asc.channel_count = channels_of_configuration(asc.channel_configuration);
        if GENERAL_AUDIO.contains(&asc.object_type) {
            asc.read_general_audio(&mut bits);
        }
        if bits.is_past_end() || asc.core_sample_rate == 0 || asc.sbr_sample_rate == Some(0) {
            let message = "the AudioSpecificConfig is truncated or has no sampling rate";
            return Err(Error::malformed(message));
        }
        asc.read_sync_extension(&mut bits);
        Ok(asc)
    }

    /// Returns the `samplingFrequencyIndex` of the core's sampling rate; `None` if the rate has no
    /// index.
    pub fn core_sample_rate_index(&self) -> Option<u8> {
        let index = RATES
            .iter()
            .position(|rate| *rate == self.core_sample_rate)?;
        Some(index as u8)
    }

    /// Reads `GASpecificConfig` (4.4.1).
    fn read_general_audio(&mut self, bits: &mut BitReader<'_>) {
        bits.skip(1); // frameLengthFlag
        if bits.read_bit() {
            bits.skip(14); // coreCoderDelay
        }
        let extension = bits.read_bit();
        if self.channel_configuration == 0 {
            self.channel_count = read_program_config_channels(bits);
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

    /// Reads the backward-compatible extension at the end of the configuration. The
    /// `syncExtensionType` is 0x2b7 for SBR and 0x548 for PS.
    fn read_sync_extension(&mut self, bits: &mut BitReader<'_>) {
        if self.sbr_is_signalled
            || bits.bits_left() < 16
            || bits.read_bits(11) != 0x2b7
            || read_object_type(bits) != SBR
        {
            return;
        }
        self.sbr_is_signalled = true;
        if !bits.read_bit() {
            return;
        }
        let rate = read_sample_rate(bits);
        if !bits.is_past_end() && rate > 0 {
            self.sbr_sample_rate = Some(rate);
            self.has_parametric_stereo =
                bits.bits_left() >= 12 && bits.read_bits(11) == 0x548 && bits.read_bit();
        }
    }
}

/// Reads `GetAudioObjectType` (1.6.2.1).
fn read_object_type(bits: &mut BitReader<'_>) -> u32 {
    match bits.read_bits(5) {
        31 => 32 + bits.read_bits(6),
        short => short,
    }
}

/// Reads a sampling rate, which is coded as an index or as a 24-bit number. Returns 0 for a
/// reserved index.
fn read_sample_rate(bits: &mut BitReader<'_>) -> u32 {
    match bits.read_bits(4) as usize {
        15 => bits.read_bits(24),
        index => RATES.get(index).copied().unwrap_or(0),
    }
}

/// Returns the number of channels for a `channelConfiguration` (Table 1.19); 0 if the table has no
/// number.
fn channels_of_configuration(config: u8) -> u32 {
    match config {
        1..=6 => u32::from(config),
        7 | 12 | 14 => 8,
        11 => 7,
        13 => 24,
        _ => 0,
    }
}

/// Counts the channels of a `program_config_element`.
fn read_program_config_channels(bits: &mut BitReader<'_>) -> u32 {
    bits.skip(4 + 2 + 4); // element_instance_tag, object_type, sampling_frequency_index
    let [front, side, back] = [0; 3].map(|_: u8| bits.read_bits(4));
    let (lfe, data, coupling) = (bits.read_bits(2), bits.read_bits(3), bits.read_bits(4));
    for size in [4, 4, 3] {
        if bits.read_bit() {
            bits.skip(size); // mono and stereo mixdown elements, matrix mixdown
        }
    }
    let elements = front + side + back;
    let pairs: u32 = (0..elements)
        .map(|_| {
            let pair = u32::from(bits.read_bit());
            bits.skip(4);
            pair
        })
        .sum();
    bits.skip((lfe * 4 + data * 4 + coupling * 5) as usize);
    // Here, byte_alignment() is relative to the start of AudioSpecificConfig (1.6.2.1).
    bits.align_to_byte();
    let comment = bits.read_bits(8) as usize;
    bits.skip(comment * 8);
    elements + pairs + lfe
}
