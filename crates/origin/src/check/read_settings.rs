//! The settings of `headwater check`. These are the settings of `serve` for storage and protection.

use crate::config::SETTINGS;
use crate::config::remote_libraries::{STORAGE, read_storage_options};
use crate::drm::LibraryDrm;
use crate::drm::open_drm::open_library_drm;
use crate::drm::rules::DrmRules;
use crate::drm::settings::DRM;
use clap::ArgMatches;
use net::config::{Setting, SettingLayers, SettingSources};
use net::metrics::Metrics;
use std::sync::LazyLock;

/// The declarations of the settings that `check` reads.
pub(super) const CHECKED: &[&[Setting]] = &[STORAGE, DRM];

/// Keys of a settings file that `serve` reads and `check` ignores, so that one file can serve both
/// commands.
static IGNORED_KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let is_checked = |name: &str| is_read_by_check(name).is_some();
    let names = SETTINGS.iter().copied().flatten().map(|one| one.name);
    let names = names.filter(|name| !is_checked(name));
    // A key such as `tls-cert` may also be written as `cert` in the table `tls`, so the name of the
    // table is ignored, too.
    let words = |name: &'static str| [Some(name), name.split('-').next()];
    names.flat_map(words).flatten().collect()
});

/// Prefixes of the settings that `check` reads.
const PREFIXES: [&str; 2] = ["storage-", "drm-"];

fn is_read_by_check(name: &str) -> Option<&'static str> {
    PREFIXES
        .into_iter()
        .find(|prefix| name.starts_with(*prefix))
}

/// Reads the flags, the environment variables and the settings file.
///
/// # Errors
/// A message that names the first invalid setting.
pub(super) fn read_check_settings(flags: &ArgMatches) -> Result<SettingLayers, String> {
    let is_checked = |name: &str| {
        let name = name.strip_prefix("HEADWATER_").unwrap_or_default();
        is_read_by_check(&name.to_lowercase().replace('_', "-")).is_some()
    };
    let layers = SettingLayers::new(&SettingSources {
        settings: CHECKED,
        tables: IGNORED_KEYS.as_slice(),
        flags,
        env: &|name| std::env::var(name).ok().filter(|_| is_checked(name)),
        read: &|path| std::fs::read_to_string(path),
    });
    layers.map_err(|wrong| wrong.to_string())
}

/// Parses the settings, and reads the secrets and credentials of the protection.
///
/// # Errors
/// A message that names the first invalid setting, or the file that cannot be used.
pub(super) fn open_storage_and_drm(
    layers: &SettingLayers,
) -> Result<(store::Options, Option<LibraryDrm>), String> {
    let storage = read_storage_options(layers).map_err(|wrong| wrong.to_string())?;
    let rules = DrmRules::parse_drm_rules(layers).map_err(|wrong| wrong.to_string())?;
    let drm = open_library_drm(rules.as_ref(), &Metrics::new());
    Ok((storage, drm.map_err(|error| error.to_string())?))
}
