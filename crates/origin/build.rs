//! Rebuilds the crate when a file is added to the folders that are embedded in the crate. These
//! folders contain the player page and the built-in film.

fn main() {
    println!("cargo::rerun-if-changed=../../player");
    println!("cargo::rerun-if-changed=../../media/demo");
}
