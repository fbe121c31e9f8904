//! HLS playlists and DASH MPDs.
