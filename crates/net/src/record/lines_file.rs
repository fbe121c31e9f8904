//! Appends whole lines to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Approximate size of one write to the file.
const WRITE_BYTES: usize = 256 << 10;

/// A file to which whole lines are appended.
///
/// During a hand-over, two processes append to the same file. Each write therefore contains only
/// whole lines. If a write fails after a part of a line, the next line starts with a line break. So
/// does the first line that is appended to a file with an incomplete last line.
#[derive(Debug)]
pub(super) struct LinesFile {
    file: File,
    /// Lines that are not written yet.
    lines: Vec<u8>,
    /// Whether the file ends with a part of a line.
    is_torn: bool,
}

impl LinesFile {
    /// Opens a file for appending. Creates the file if it does not exist.
    pub(super) fn open(path: &Path) -> io::Result<LinesFile> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let len = file
            .metadata()
            .map_or(0, |metadata| match metadata.is_file() {
                true => metadata.len(),
                // A pipe or a device has no last line, and reading could take bytes from its reader.
                false => 0,
            });
        Ok(LinesFile {
            is_torn: has_incomplete_line(path, len),
            ..LinesFile::new(file)
        })
    }

    /// Takes a file that was opened for appending and does not end with a part of a line.
    pub(super) fn new(file: File) -> LinesFile {
        LinesFile {
            file,
            lines: Vec::new(),
            is_torn: false,
        }
    }

    /// Writes records. `format` appends the lines of one record. Returns the number of written
    /// records, and the error that prevented the write of further records.
    pub(super) fn write_lines<T>(
        &mut self,
        records: impl IntoIterator<Item = T>,
        format: impl Fn(T, &mut Vec<u8>) -> io::Result<()>,
    ) -> (u64, io::Result<()>) {
        let (mut formatted, mut written) = (0, 0);
        self.start_lines();
        for record in records {
            if let Err(error) = format(record, &mut self.lines) {
                return (written, Err(error));
            }
            formatted += 1;
            if self.lines.len() >= WRITE_BYTES {
                if let Err(error) = self.flush_lines() {
                    return (written, Err(error));
                }
                written = formatted;
            }
        }
        match self.flush_lines() {
            Ok(()) => (formatted, Ok(())),
            failed => (written, failed),
        }
    }

    /// Discards the lines of a failed call, and ends a line that is written in part.
    fn start_lines(&mut self) {
        self.lines.clear();
        if self.is_torn {
            self.lines.push(b'\n');
        }
    }

    fn flush_lines(&mut self) -> io::Result<()> {
        let mut rest = self.lines.as_slice();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    let (sent, unsent) = rest.split_at(count);
                    self.is_torn = sent.last() != Some(&b'\n');
                    rest = unsent;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.lines.clear();
        Ok(())
    }
}

/// Returns whether the first `len` bytes of a file end with a part of a line. Returns `false` if the
/// file cannot be read, because write permission is sufficient for appending.
fn has_incomplete_line(path: &Path, len: u64) -> bool {
    let mut last = [b'\n'];
    if let Some(last_at) = len.checked_sub(1)
        && let Ok(file) = File::open(path)
    {
        // Ignores the error. After an error, `last` still contains a line break.
        let _ = file.read_exact_at(&mut last, last_at);
    }
    last != [b'\n']
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    fn write_text(to: &mut LinesFile, lines: &[&str]) -> (u64, io::Result<()>) {
        to.write_lines(lines, |line, to| writeln!(to, "{line}"))
    }

    /// A full pipe accepts a part of a write, as a full disk does.
    #[test]
    fn a_line_after_a_failed_write_starts_on_a_new_line() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let mut read = File::from(read);
        let mut to = LinesFile::new(File::from(write));
        let long = "x".repeat(1 << 20);
        let (written, result) = write_text(&mut to, &["first", &long, "lost"]);
        assert_eq!(written, 0);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
        // The pipe is still full.
        assert!(write_text(&mut to, &["lost"]).1.is_err());
        let mut received = Vec::new();
        assert!(read.read_to_end(&mut received).is_err());
        let (written, result) = write_text(&mut to, &["second", "third"]);
        assert!(result.is_ok() && written == 2);
        drop(to);
        read.read_to_end(&mut received).unwrap();
        let text = String::from_utf8(received).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0] == "first" && long.starts_with(lines[1]));
        assert_eq!(lines[2..], ["second", "third"]);
    }

    #[test]
    fn a_line_after_an_incomplete_last_line_of_the_file_starts_on_a_new_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        for (before, after) in [
            ("", "next\n"),
            ("first\n", "first\nnext\n"),
            ("first\nsec", "first\nsec\nnext\n"),
        ] {
            std::fs::write(&path, before).unwrap();
            let mut to = LinesFile::open(&path).unwrap();
            assert!(write_text(&mut to, &["next"]).1.is_ok());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
        }
    }

    /// Each write to a datagram socket is one datagram.
    #[test]
    fn each_write_consists_of_whole_lines() {
        let (ours, theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
        socket2::SockRef::from(&ours)
            .set_send_buffer_size(2 * WRITE_BYTES)
            .unwrap();
        let line = "x".repeat(99);
        let writing = {
            let line = line.clone();
            std::thread::spawn(move || {
                let mut to = LinesFile::new(File::from(std::os::fd::OwnedFd::from(ours)));
                write_text(&mut to, &vec![line.as_str(); 10_000])
            })
        };
        let (mut datagram, mut count) = (vec![0; 2 * WRITE_BYTES], 0);
        while count < 10_000 {
            let len = theirs.recv(&mut datagram).unwrap();
            let text = std::str::from_utf8(&datagram[..len]).unwrap();
            assert!(text.ends_with('\n'));
            assert!(text.lines().all(|one| one == line));
            count += text.lines().count();
        }
        let (written, result) = writing.join().unwrap();
        assert!(result.is_ok() && written == 10_000);
    }
}
