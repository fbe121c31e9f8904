//! Hours of viewing over links of virtual time: what is asked for, and how it was to watch.

mod manifests;
mod watching;
mod world;

use super::super::abr::{self, Fixed};
use super::super::device::Device;
use super::super::player::{Fetch, What};

use super::*;
use media::manifest::read::{Part, Url};
use world::{MANIFEST, World, title};

fn plan() -> Plan {
    Plan {
        manifest: Part {
            url: Url::parse(MANIFEST).unwrap(),
            range: None,
        },
        device: Device::named("any").unwrap(),
        leave_at: Micros::MAX,
        patience: None,
        seeks: Vec::new(),
        session: 7,
    }
}

fn viewer(plan: Plan, abr: impl Abr + 'static) -> Viewer {
    Viewer::new(Arc::new(Setup::default()), plan, Box::new(abr), 0)
}

fn constant(bps: f64) -> Vec<(Micros, f64)> {
    vec![(0, bps)]
}
