//! ARCHITECTURE.md lists the functions that handle a request, in the order of the journey. Checks
//! that these functions exist.

use crate::{project_root, read_text};

/// A step of a journey: a function, and the file that contains the function.
struct JourneyStep {
    function: String,
    file: String,
}

#[test]
fn each_step_of_a_journey_is_a_function_of_its_file() {
    let page = read_text(&project_root().join("ARCHITECTURE.md"));
    let steps = [
        ("origin", "## One request at the origin"),
        ("edge", "## One request at the edge"),
    ]
    .map(|(program, heading)| {
        let section = page.split(heading).nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        (program, section.lines().filter_map(parse_step).collect())
    });
    let mut missing = Vec::new();
    for (program, steps) in steps {
        let steps: Vec<JourneyStep> = steps;
        assert!(steps.len() > 15, "{program}: {} steps", steps.len());
        for step in steps {
            if !has_function(program, &step) {
                missing.push(format!("{program}: {} in {}", step.function, step.file));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Parses a row such as "| 3 | `handle_request` | `request_handler.rs` | … |".
fn parse_step(line: &str) -> Option<JourneyStep> {
    let mut cells = line.strip_prefix('|')?.split('|').skip(1);
    let quoted = |cell: &str| cell.split('`').nth(1).map(str::to_owned);
    Some(JourneyStep {
        function: quoted(cells.next()?)?,
        file: quoted(cells.next()?)?,
    })
}

/// Returns whether the file of a step contains the function. The file's path is relative to `src`
/// of the program's crate, or to `crates`.
fn has_function(program: &str, step: &JourneyStep) -> bool {
    let crates = project_root().join("crates");
    let name = step.function.rsplit("::").next().unwrap_or_default();
    let declared = [format!("fn {name}("), format!("fn {name}<")];
    let own = crates.join(program).join("src").join(&step.file);
    [own, crates.join(&step.file)].into_iter().any(|path| {
        // If the path names the folder of a module, the functions are in the folder's `mod.rs`.
        let file = if path.is_dir() {
            path.join("mod.rs")
        } else {
            path
        };
        let text = std::fs::read_to_string(file).unwrap_or_default();
        declared.iter().any(|start| text.contains(start))
    })
}
