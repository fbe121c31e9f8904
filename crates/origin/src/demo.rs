//! The built-in film: a small ladder inside the program, for whoever has no film at hand.

use std::io;
use std::path::{Path, PathBuf};

#[derive(rust_embed::RustEmbed)]
#[folder = "../../media/demo"]
#[include = "*.mp4"]
#[include = "*.m4a"]
#[allow_missing = true]
struct Film;

/// A library of our own in the file system's place for temporary files; gone when dropped.
#[derive(Debug)]
pub(crate) struct Demo {
    path: PathBuf,
}

/// The title's name.
const NAME: &str = "Headwater";

impl Demo {
    /// Writes the film's files where they can be served like any other's.
    pub(crate) fn new() -> io::Result<Demo> {
        let unique = format!("headwater-demo-{}-{:x}", std::process::id(), random());
        let demo = Demo {
            path: std::env::temp_dir().join(unique),
        };
        let film = demo.path.join(NAME);
        std::fs::create_dir_all(&film)?;
        for name in Film::iter() {
            if let Some(file) = Film::get(&name) {
                std::fs::write(film.join(&*name), file.data)?;
            }
        }
        Ok(demo)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Left to whoever cleans temporary files, if it cannot be removed.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}
