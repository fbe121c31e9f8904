//! Input and output that all commands share: settings and messages.

use clap::ArgMatches;
use net::config::{Setting, SettingLayers, SettingSources, UsageError};
use std::fmt::Display;
use std::io::Write;

/// Prints to standard output and flushes. Ignores errors: the reader may have closed the pipe.
pub(super) fn print_output(what: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{what}").and_then(|()| out.flush());
}

/// Prints to standard error. Ignores errors for the same reason.
pub(super) fn print_message(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "headwater lab: {what}");
}

/// Reads the settings of a command from flags, the environment and a file.
pub(super) fn read_settings(
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
