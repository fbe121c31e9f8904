mod hls;
mod mpd;
