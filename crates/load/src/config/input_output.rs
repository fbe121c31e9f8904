//! Input and output that all commands share.

use clap::ArgMatches;
use net::config::{Setting, SettingLayers, SettingSources, UsageError};
use std::fmt::Display;
use std::io::Write as _;

/// Prints to standard output. Ignores errors: the reader may have closed the pipe.
pub(super) fn print_out(text: impl Display) {
    let _ = write!(std::io::stdout().lock(), "{text}");
}

/// Reads a command's settings from its flags, the environment and a file.
///
/// # Errors
/// Same as [`SettingLayers::new`].
pub fn read_layers(
    settings: &'static [&'static [Setting]],
    flags: &ArgMatches,
) -> Result<SettingLayers, UsageError> {
    SettingLayers::new(&SettingSources {
        settings,
        tables: &[],
        flags,
        env: &|name| std::env::var(name).ok(),
        read: &|path| std::fs::read_to_string(path),
    })
}
