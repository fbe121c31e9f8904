//! Embeds the chart library uPlot in reports, if `vendor/fetch.sh` has fetched uPlot.

use std::path::Path;

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../vendor");
    let variable = |name| std::env::var(name).map_err(std::io::Error::other);
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../vendor/uPlot");
    let files = ["uPlot.iife.min.js", "uPlot.min.css"].map(|name| folder.join(name));
    let value = match files.iter().all(|file| file.exists()) {
        true => format!(
            "Some((include_str!({:?}), include_str!({:?})))",
            files[0], files[1]
        ),
        false => "None".to_owned(),
    };
    let code = format!("const UPLOT: Option<(&str, &str)> = {value};\n");
    std::fs::write(Path::new(&variable("OUT_DIR")?).join("uplot.rs"), code)
}
