//! Replays the corpus of a fuzz target, and mutations of the corpus. The mutations are the same in
//! each run.

use std::path::{Path, PathBuf};

/// Number of mutations of each file in a corpus.
const MUTATIONS: usize = 1000;

/// Runs `body` on each file in the corpus of `target`, and on mutations of the file. Saves the
/// input if the test fails.
pub fn replay_corpus(target: &str, body: impl Fn(&[u8])) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = std::fs::read_dir(project.join("fuzz/corpus").join(target)).unwrap();
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let inputs: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    assert!(inputs.len() > 2, "the corpus of {target} is missing");
    let mut saved = SavedOnPanic {
        path: project.join(format!("target/fuzz-finds/replay-{target}")),
        input: Vec::new(),
    };
    let mut random = Random(1);
    for input in &inputs {
        saved.input.clone_from(input);
        body(&saved.input);
        for _ in 0..MUTATIONS {
            saved.input = mutate(input, &inputs, &mut random);
            body(&saved.input);
        }
    }
}

/// Changes a few bytes, truncates the input, or removes or repeats a range. May also replace a
/// range with bytes of another input.
fn mutate(input: &[u8], inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        let end = bytes.len().min(at + 1 + random.below(16));
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let repeated = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, repeated));
            }
            3 => {
                let other = &inputs[random.below(inputs.len())];
                let from = random.below(other.len() + 1);
                let to = other.len().min(from + random.below(64));
                drop(bytes.splice(at..end, other[from..to].iter().copied()));
            }
            4 => bytes[at..end].fill([0, 1, 0x7f, 0x80, 0xff][random.below(5)]),
            _ if at < end => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
    bytes
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    /// Returns a number below `n`, which must be at least 1.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// The current input, which is written to a file if the test panics.
struct SavedOnPanic {
    path: PathBuf,
    input: Vec<u8>,
}

impl Drop for SavedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let folder = self.path.parent().unwrap();
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(&self.path, &self.input).unwrap();
            eprintln!("the input is in {}", self.path.display());
        }
    }
}
