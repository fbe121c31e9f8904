//! Output that all commands share.

use std::fmt::Display;
use std::io::Write;

/// Prints to standard output and flushes. Ignores errors, because the reader may have closed the
/// pipe.
pub(super) fn print_output(what: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{what}").and_then(|()| out.flush());
}

/// Prints to standard error. Ignores errors, because the reader may have closed the pipe.
pub(super) fn print_message(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "headwater lab: {what}");
}
