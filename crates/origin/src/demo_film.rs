//! The built-in film, a small bitrate ladder that is embedded in the program. With this film, users
//! can try the program without a film of their own.

use std::io;
use std::path::{Path, PathBuf};

#[derive(rust_embed::RustEmbed)]
#[folder = "../../media/demo"]
#[include = "*.mp4"]
#[include = "*.m4a"]
#[allow_missing = true]
struct EmbeddedFilm;

/// A library that contains the built-in film, in the system's folder for temporary files. The files
/// are removed when the library is dropped.
#[derive(Debug)]
pub(crate) struct DemoFilm {
    path: PathBuf,
}

/// Folder name of the title.
const TITLE_NAME: &str = "Headwater";

impl DemoFilm {
    /// Writes the film's files into a new library.
    pub(crate) fn new() -> io::Result<DemoFilm> {
        let unique = format!(
            "headwater-demo-{}-{:x}",
            std::process::id(),
            random_suffix()
        );
        let demo = DemoFilm {
            path: std::env::temp_dir().join(unique),
        };
        let film = demo.path.join(TITLE_NAME);
        std::fs::create_dir_all(&film)?;
        for name in EmbeddedFilm::iter() {
            if let Some(file) = EmbeddedFilm::get(&name) {
                std::fs::write(film.join(&*name), file.data)?;
            }
        }
        Ok(demo)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DemoFilm {
    fn drop(&mut self) {
        // Ignores the error, because the system cleans its folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn random_suffix() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}
