//! What viewers watch on: what their screens and contracts allow.

use super::stream::Stream;

/// A kind of device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device {
    /// As it is called on the command line and in records.
    pub name: &'static str,
    /// Levels above are not asked for, in bits a second.
    pub bps_max: f64,
    /// Levels of more lines are not asked for.
    pub lines_max: u32,
    /// Lines of the screen, for judging how it looks.
    pub screen_lines: u32,
    /// Looked at from near by: judged by P.1203's handheld mapping.
    pub handheld: bool,
}

/// Presets. Nothing is slowed down: a cap is what the player would not ask for.
pub const DEVICES: [Device; 5] = [
    Device {
        name: "any",
        bps_max: f64::INFINITY,
        lines_max: u32::MAX,
        screen_lines: 1080,
        handheld: false,
    },
    Device {
        name: "tv4k",
        bps_max: f64::INFINITY,
        lines_max: 2160,
        screen_lines: 2160,
        handheld: false,
    },
    Device {
        name: "tv",
        bps_max: 12e6,
        lines_max: 1080,
        screen_lines: 1080,
        handheld: false,
    },
    Device {
        name: "desktop",
        bps_max: 8e6,
        lines_max: 1080,
        screen_lines: 1080,
        handheld: false,
    },
    Device {
        name: "phone",
        bps_max: 3e6,
        lines_max: 720,
        screen_lines: 720,
        handheld: true,
    },
];

impl Device {
    /// By its name.
    pub fn named(name: &str) -> Option<Device> {
        DEVICES.into_iter().find(|device| device.name == name)
    }

    /// The levels of a stream that it asks for; the lowest at least.
    pub fn levels(&self, stream: &Stream) -> Vec<u16> {
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
