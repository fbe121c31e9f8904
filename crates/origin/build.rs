//! Rebuilds the crate when a file that it embeds is added: the player page and the built-in film.

fn main() {
    println!("cargo::rerun-if-changed=../../player");
    println!("cargo::rerun-if-changed=../../media/demo");
}
