//! Tests of viewers over simulated links, in virtual time.

mod abandoned_segments;
mod hls_playlists;
mod playback;
mod simulated_origin;
mod text;
mod track_lead;

use super::super::abr::{self, FixedLevel};
use super::super::device_profile::DeviceProfile;
use super::super::player_interface::{FetchPurpose, MediaFetch};

use super::*;
use media::manifest::read::{ResourceRange, Url};
use simulated_origin::{MANIFEST, SimulatedOrigin, test_manifest};

fn test_plan() -> ViewerPlan {
    ViewerPlan {
        manifest: ResourceRange {
            url: Url::parse(MANIFEST).unwrap(),
            range: None,
        },
        device: DeviceProfile::find_by_name("any").unwrap(),
        leave_at: Micros::MAX,
        patience: None,
        seeks: Vec::new(),
        session: 7,
    }
}

fn test_viewer(plan: ViewerPlan, abr: impl AbrRule + 'static) -> Viewer {
    Viewer::new(
        Arc::new(PlaybackSettings::default()),
        plan,
        Box::new(abr),
        0,
    )
}

fn constant_rate(bps: f64) -> Vec<(Micros, f64)> {
    vec![(0, bps)]
}
