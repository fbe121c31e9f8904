//! HLS playlists and DASH MPDs: written of our own titles, and read as any origin writes them.

pub mod dash;
pub mod hls;
pub mod read;
pub mod url;

mod audio;
mod facts;
mod language;
mod languages;
#[cfg(test)]
mod tests;
mod text;

/// How HLS segments are wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// CMAF: fragmented MP4.
    #[default]
    Cmaf,
    /// Transport streams for video, packed audio beside them.
    Ts,
}
