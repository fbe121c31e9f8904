//! One open file: its bytes, and whether they are still the same.

use crate::map::Map;
use crate::residence::Residence;
use crate::{Error, Identity, Meter, Reason};
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

/// An open file, as it was when it was opened.
///
/// A file that is replaced by renaming another over it stays readable here to the end. One that
/// is overwritten or cut in place does not, and [`LocalFile::changed`] says so.
pub struct LocalFile {
    file: File,
    identity: Identity,
    map: OnceLock<Option<Map>>,
    residence: Residence,
    meter: Arc<Meter>,
}

/// Distance between the bytes that [`LocalFile::resident`] tries: pages come and go in larger runs.
const PROBE_STRIDE: u64 = 64 * 1024;
/// How much is read at once where pages cannot be populated.
const WARM_BYTES: usize = 256 * 1024;

impl std::fmt::Debug for LocalFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LocalFile({} bytes)", self.len())
    }
}

impl AsFd for LocalFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl LocalFile {
    pub(crate) fn new(file: File, identity: Identity, meter: Arc<Meter>) -> LocalFile {
        let map = OnceLock::new();
        LocalFile {
            file,
            identity,
            map,
            residence: Residence::default(),
            meter,
        }
    }

    /// What it was when it was opened.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Length in bytes, when it was opened.
    pub fn len(&self) -> u64 {
        self.identity.len
    }

    /// Whether it held no byte when it was opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the file was overwritten, cut or lengthened since it was opened: one `fstat`.
    pub fn changed(&self) -> bool {
        match rustix::fs::fstat(&self.file) {
            Ok(stat) => {
                let now = Identity::of(&stat);
                // Not ctime: a link made, an owner changed or the name taken by another file
                // leave the bytes as they are.
                now.len != self.identity.len || now.mtime_ns != self.identity.mtime_ns
            }
            Err(_) => true,
        }
    }

    /// Reads `range`. Blocks.
    ///
    /// # Errors
    /// [`Error::Changed`] when the file ends before `range` does; [`Error::Io`] when the storage
    /// fails.
    pub fn read(&self, range: Range<u64>, reason: Reason) -> Result<Bytes, Error> {
        let len = self.check(&range)?;
        self.meter.count(reason, len as u64);
        let mut buffer = Vec::with_capacity(len);
        while buffer.len() < len {
            let at = range.start + buffer.len() as u64;
            match rustix::io::pread(&self.file, spare_capacity(&mut buffer), at) {
                Ok(0) => return Err(Error::Changed),
                Ok(_) => {}
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        buffer.truncate(len);
        Ok(Bytes::from(buffer))
    }

    /// Makes sure that the file had all of `ranges`, and counts them as one request;
    /// [`LocalFile::read_into`] then reads them, in whatever parts.
    ///
    /// # Errors
    /// [`Error::Changed`] when the file ends before one of them does.
    pub fn ask(&self, ranges: &[Range<u64>], reason: Reason) -> Result<(), Error> {
        for range in ranges {
            self.check(range)?;
        }
        let bytes = ranges.iter().map(|range| range.end - range.start);
        self.meter.count(reason, bytes.fold(0, u64::saturating_add));
        Ok(())
    }

    /// Reads from `start` on until `buffer` is full. Blocks, and counts nothing: see
    /// [`LocalFile::ask`].
    ///
    /// # Errors
    /// As [`LocalFile::read`].
    pub fn read_into(&self, mut start: u64, mut buffer: &mut [u8]) -> Result<(), Error> {
        while !buffer.is_empty() {
            match rustix::io::pread(&self.file, &mut *buffer, start) {
                Ok(0) => return Err(Error::Changed),
                Ok(count) => {
                    start += count as u64;
                    buffer = buffer.get_mut(count..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Parts of the mapped file, without a copy and without waiting: one request of the storage.
    /// `None` where the file cannot be mapped, and when a range is not inside it.
    ///
    /// The bytes are for the kernel alone (`writev`). Code that looks at them must [`read`]
    /// instead: if the file is cut, the kernel says `EFAULT`, but a look would end the process.
    ///
    /// [`read`]: LocalFile::read
    pub fn slices<'a>(
        &self,
        ranges: impl Iterator<Item = &'a Range<u64>>,
        reason: Reason,
    ) -> Option<Vec<Bytes>> {
        let map = self.map()?;
        let slice = |range: &Range<u64>| {
            self.check(range).ok()?;
            map.slice(range.start as usize..range.end as usize)
        };
        let slices: Vec<Bytes> = ranges.map(slice).collect::<Option<_>>()?;
        let bytes = slices.iter().map(|slice| slice.len() as u64).sum();
        self.meter.count(reason, bytes);
        Some(slices)
    }

    /// Where in memory the file is mapped, if it is: what [`LocalFile::slices`] gives lies there, so
    /// that who sends a slice can tell which bytes of which file it is.
    pub fn address(&self) -> Option<usize> {
        self.map().map(Map::address)
    }

    /// Whether `range` can be had without waiting for the storage, as far as can be told cheaply:
    /// what was found in memory less than a second ago is taken to be there still.
    pub fn resident(&self, range: &Range<u64>) -> bool {
        self.residence
            .holds(self.len(), range, |part| self.probe(part))
    }

    fn probe(&self, range: &Range<u64>) -> bool {
        let last = range.end.saturating_sub(1);
        let stride = PROBE_STRIDE as usize;
        (range.start..last)
            .step_by(stride)
            .all(|at| self.in_memory(at))
            && self.in_memory(last)
    }

    /// Brings `range` into memory. Blocks.
    ///
    /// # Errors
    /// As [`LocalFile::read`].
    pub fn warm(&self, range: Range<u64>, reason: Reason) -> Result<(), Error> {
        self.check(&range)?;
        self.meter.count_wait(reason);
        let populated = self
            .map()
            .map(|map| map.populate(range.start as usize..range.end as usize));
        match populated {
            Some(Ok(())) => Ok(()),
            _ => self.read_through(range),
        }
    }

    fn read_through(&self, range: Range<u64>) -> Result<(), Error> {
        let mut buffer = vec![0; WARM_BYTES.min((range.end - range.start) as usize)];
        let mut at = range.start;
        while at < range.end {
            match rustix::io::pread(&self.file, &mut buffer[..], at) {
                Ok(0) => return Err(Error::Changed),
                Ok(n) => at += n as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn map(&self) -> Option<&Map> {
        self.map
            .get_or_init(|| Map::new(&self.file, self.len()).ok())
            .as_ref()
    }

    fn in_memory(&self, at: u64) -> bool {
        let mut byte = [0];
        let mut buffers = [IoSliceMut::new(&mut byte)];
        rustix::io::preadv2(&self.file, &mut buffers, at, ReadWriteFlags::NOWAIT) == Ok(1)
    }

    fn check(&self, range: &Range<u64>) -> Result<usize, Error> {
        if range.start > range.end || range.end > self.len() {
            return Err(Error::Changed);
        }
        usize::try_from(range.end - range.start)
            .map_err(|_| Error::Refused("a range over the address space"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Folder, Key};
    use std::fs;
    use std::io::Write;
    use std::time::{Duration, SystemTime};

    const LEN: usize = 300_000;

    fn film(dir: &std::path::Path) -> (std::path::PathBuf, Vec<u8>, Arc<LocalFile>) {
        let bytes: Vec<u8> = (0..LEN).map(|n| (n * 7 % 251) as u8).collect();
        let path = dir.join("film.mp4");
        fs::write(&path, &bytes).unwrap();
        let folder = Folder::new(dir).unwrap();
        let object = folder.open(&Key::parse("film.mp4").unwrap()).unwrap();
        (path, bytes, object)
    }

    fn slice(object: &LocalFile, range: Range<u64>) -> Option<Bytes> {
        object.slices([&range].into_iter(), Reason::Plain)?.pop()
    }

    #[test]
    fn read_and_slice_give_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let (_, bytes, object) = film(dir.path());
        for range in [
            0..0,
            0..1,
            1..4097,
            4095..4097,
            0..LEN,
            LEN - 1..LEN,
            LEN..LEN,
        ] {
            let asked = range.start as u64..range.end as u64;
            let read = object.read(asked.clone(), Reason::Plain).unwrap();
            assert_eq!(read, &bytes[range.clone()]);
            let mut into = vec![0; range.len()];
            object.read_into(asked.start, &mut into).unwrap();
            assert_eq!(into, &bytes[range.clone()]);
            let slice = slice(&object, asked).unwrap();
            assert_eq!(slice, &bytes[range]);
        }
        object.ask(&[0..1, 5..9], Reason::Plain).unwrap();
        assert_eq!(object.meter.requests(Reason::Plain), 15);
        assert_eq!(object.meter.requests(Reason::Index), 0);
    }

    #[test]
    fn a_range_beyond_the_end_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (_, _, object) = film(dir.path());
        let len = object.len();
        #[allow(clippy::reversed_empty_ranges)]
        for range in [0..len + 1, len..len + 1, u64::MAX - 1..u64::MAX, 2..1] {
            assert!(slice(&object, range.clone()).is_none());
            let mut more = vec![0; LEN + 1];
            assert!(object.read_into(range.start, &mut more).is_err());
            assert!(object.ask(&[0..1, range.clone()], Reason::Index).is_err());
            assert!(matches!(
                object.read(range, Reason::Plain),
                Err(Error::Changed)
            ));
        }
    }

    #[test]
    fn bytes_are_resident_after_warming() {
        let dir = tempfile::tempdir().unwrap();
        let (path, _, object) = film(dir.path());
        let file = fs::File::open(path).unwrap();
        file.sync_all().unwrap();
        let all = 0..object.len();
        object.warm(all.clone(), Reason::Segment).unwrap();
        assert_eq!(object.meter.waits(Reason::Segment), 1);
        if !object.resident(&all) {
            eprintln!("skipped: this file system does not say what is in memory");
        }
    }

    #[test]
    fn overwriting_cutting_and_growing_are_noticed() {
        type Change = fn(&std::path::Path);
        let changes: [Change; 3] = [
            |path| fs::write(path, vec![1; LEN]).unwrap(),
            |path| {
                fs::OpenOptions::new()
                    .write(true)
                    .open(path)
                    .unwrap()
                    .set_len(10)
                    .unwrap()
            },
            |path| {
                let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
                file.write_all(b"more").unwrap();
            },
        ];
        for change in changes {
            let dir = tempfile::tempdir().unwrap();
            let (path, ..) = film(dir.path());
            // A file system's clock may tick as rarely as every 10 ms: date it back.
            let old = SystemTime::now() - Duration::from_secs(60);
            fs::File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(old)
                .unwrap();
            let folder = Folder::new(dir.path()).unwrap();
            let object = folder.open(&Key::parse("film.mp4").unwrap()).unwrap();
            assert!(!object.changed());
            change(&path);
            assert!(object.changed());
        }
    }

    #[test]
    fn a_cut_file_is_an_error_and_not_a_signal() {
        let dir = tempfile::tempdir().unwrap();
        let (path, _, object) = film(dir.path());
        let slice = slice(&object, 200_000..LEN as u64).unwrap();
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(10)
            .unwrap();
        assert!(matches!(
            object.read(0..100, Reason::Segment),
            Err(Error::Changed)
        ));
        assert!(object.warm(200_000..LEN as u64, Reason::Segment).is_err());
        // What becomes of a slice of a cut file: the kernel says EFAULT.
        let mut sink = fs::File::create(dir.path().join("sink")).unwrap();
        assert!(sink.write_all(&slice).is_err());
    }

    #[test]
    fn a_replaced_file_stays_what_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes, object) = film(dir.path());
        let new = dir.path().join("new");
        fs::write(&new, b"another film").unwrap();
        fs::rename(&new, &path).unwrap();
        assert!(!object.changed());
        assert_eq!(object.read(0..object.len(), Reason::Plain).unwrap(), bytes);
        let folder = Folder::new(dir.path()).unwrap();
        let now = folder.look(&Key::parse("film.mp4").unwrap()).unwrap();
        assert_ne!(now.as_ref(), Some(object.identity()));
    }
}
