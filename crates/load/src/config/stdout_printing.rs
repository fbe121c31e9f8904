//! Standard output of all commands.

use std::fmt::Display;
use std::io::Write as _;

/// Prints to standard output. Ignores errors, because the reader may have closed the pipe.
pub(super) fn print_out(text: impl Display) {
    let _ = write!(std::io::stdout().lock(), "{text}");
}
