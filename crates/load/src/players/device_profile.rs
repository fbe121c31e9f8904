//! Devices of viewers, with limits on the bitrate and the video height that players request.

use super::title_ladder::TitleLadder;

/// A kind of device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceProfile {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// Highest bitrate that the player requests, in bits per second.
    pub bps_max: f64,
    /// Largest video height that the player requests, in lines. For portrait video, this is the
    /// largest width.
    pub lines_max: u32,
    /// Height of the screen in lines, for quality scores.
    pub screen_lines: u32,
    /// Whether quality scores use the mapping of P.1203 for handheld devices.
    pub handheld: bool,
}

/// The device presets. A preset limits the levels that a player requests. A preset does not limit
/// the throughput of connections.
pub const DEVICES: [DeviceProfile; 5] = [
    DeviceProfile {
        name: "any",
        bps_max: f64::INFINITY,
        lines_max: u32::MAX,
        screen_lines: 1080,
        handheld: false,
    },
    DeviceProfile {
        name: "tv4k",
        bps_max: f64::INFINITY,
        lines_max: 2160,
        screen_lines: 2160,
        handheld: false,
    },
    DeviceProfile {
        name: "tv",
        bps_max: 12e6,
        lines_max: 1080,
        screen_lines: 1080,
        handheld: false,
    },
    DeviceProfile {
        name: "desktop",
        bps_max: 8e6,
        lines_max: 1080,
        screen_lines: 1080,
        handheld: false,
    },
    DeviceProfile {
        name: "phone",
        bps_max: 3e6,
        lines_max: 720,
        screen_lines: 720,
        handheld: true,
    },
];

impl DeviceProfile {
    /// Returns the device with this name.
    pub fn find_by_name(name: &str) -> Option<DeviceProfile> {
        DEVICES.into_iter().find(|device| device.name == name)
    }

    /// Returns the levels of a title that the device may play. The lowest level is always included.
    pub fn allowed_levels(&self, stream: &TitleLadder) -> Vec<u16> {
        let fits = |n: &usize| {
            let level = &stream.levels[*n];
            let lines = level
                .resolution
                .map_or(0, |(width, height)| width.min(height));
            *n == 0 || (level.bps <= self.bps_max && lines <= self.lines_max)
        };
        let levels = (0..stream.levels.len()).filter(fits);
        levels.filter_map(|n| u16::try_from(n).ok()).collect()
    }
}
