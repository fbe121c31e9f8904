//! What is built in from outside this crate: a new file there must mean a new build here.

fn main() {
    println!("cargo::rerun-if-changed=../../player");
    println!("cargo::rerun-if-changed=../../media/demo");
}
