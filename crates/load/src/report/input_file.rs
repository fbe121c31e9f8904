//! Opens the input of reports, which is a file, or standard input for the path `-`.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// Number of bytes that are read from the start of the input to recognize the format.
const START_BYTES: u64 = 64;

/// An open input whose start has already been read.
pub(super) struct InputFile {
    /// The first bytes of the input.
    pub(super) start: Vec<u8>,
    rest: Box<dyn Read>,
}

impl InputFile {
    /// Opens a file, or standard input if the path is `-`.
    ///
    /// # Errors
    /// The input cannot be opened or read.
    pub(super) fn open_input(path: &Path) -> io::Result<InputFile> {
        let mut rest: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path)?),
        };
        let mut start = Vec::new();
        rest.by_ref().take(START_BYTES).read_to_end(&mut start)?;
        Ok(InputFile { start, rest })
    }

    /// Returns a reader of the whole input, including its start.
    pub(super) fn into_reader(self) -> impl Read {
        Cursor::new(self.start).chain(self.rest)
    }
}
