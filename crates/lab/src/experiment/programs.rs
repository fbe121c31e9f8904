//! Finds the programs that a document's shell commands start, and reports the missing programs.

use super::shell_process::program_search_path;
use super::{DocumentFault, ExperimentDocument};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use toml::Spanned;

/// Words of a shell script after which a command follows.
const PREFIXES: [&str; 14] = [
    "!", "{", "command", "do", "elif", "else", "exec", "if", "nohup", "setsid", "then", "time",
    "until", "while",
];
/// Commands that the shell executes itself, and words after which no command follows.
const BUILT_IN: [&str; 44] = [
    ".", ":", "[", "alias", "bg", "break", "builtin", "case", "cd", "continue", "declare", "done",
    "echo", "esac", "eval", "exit", "export", "false", "fc", "fg", "fi", "for", "getopts", "hash",
    "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift",
    "source", "test", "times", "trap", "true", "type", "ulimit", "umask", "unset", "wait",
];

/// Returns a fault for each program that a command starts but this machine lacks. `text` is the
/// text of the document; `None` if the document is not TOML.
pub(crate) fn find_missing_programs(
    document: &ExperimentDocument,
    text: Option<&str>,
) -> Vec<DocumentFault> {
    let mut commands: Vec<(String, &Spanned<String>)> = Vec::new();
    for (name, source) in &document.source {
        let make = source.make.as_ref();
        commands.extend(make.map(|make| (format!("source.{}.make", name.get_ref()), make)));
    }
    for (name, function) in &document.function {
        commands.push((format!("function.{}.run", name.get_ref()), &function.run));
    }
    for (name, sink) in &document.sink {
        commands.push((format!("sink.{}.run", name.get_ref()), &sink.run));
    }
    let mut faults = Vec::new();
    for (path, command) in commands {
        for program in list_programs(command.get_ref()) {
            if !is_installed(program) {
                let what =
                    format!("program not found: {program}; install it, or correct the command");
                faults.push(match text {
                    Some(text) => DocumentFault::at_span(text, Some(command.span()), &path, what),
                    None => DocumentFault::at_key(&path, what),
                });
            }
        }
    }
    faults
}

/// Returns whether a program is installed, either in the search path of runs or at its absolute
/// path.
fn is_installed(program: &str) -> bool {
    let is_program = |path: &Path| {
        let mode = path
            .metadata()
            .map(|found| (found.is_file(), found.permissions().mode()));
        mode.is_ok_and(|(is_file, mode)| is_file && mode & 0o111 != 0)
    };
    match program.contains('/') {
        true => is_program(Path::new(program)),
        false => std::env::split_paths(&program_search_path())
            .any(|folder| is_program(&folder.join(program))),
    }
}

/// Lists the programs that a shell command certainly starts, without duplicates. Ignores programs
/// that only the shell can determine, such as words with expansions or placeholders. Also ignores
/// paths relative to a folder.
fn list_programs(command: &str) -> Vec<&str> {
    // Ignores scripts with here-documents or shell functions, because they would need a complete
    // parser.
    if command.contains("<<") || command.contains("()") {
        return Vec::new();
    }
    let mut programs = Vec::new();
    for simple in split_commands(command) {
        // A quoted value may contain spaces, so its second word would look like a program.
        let has_quotes = |word: &&str| is_assignment(word) && word.contains(['\'', '"']);
        let words = simple.split_whitespace();
        let found = words.take_while(|word| !has_quotes(word)).find(|word| {
            let is_pattern = word.ends_with(')') && !word.contains('(');
            !PREFIXES.contains(word) && !is_pattern && !is_assignment(word)
        });
        let plain = |word: &&str| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "._+-/".contains(c);
            !BUILT_IN.contains(word)
                && word.chars().all(is_name)
                && word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
                && (word.starts_with('/') || !word.contains('/'))
        };
        programs.extend(found.filter(plain).filter(|word| !programs.contains(word)));
    }
    programs
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Splits a script into simple commands at line ends and operators that are not quoted. The program
/// after an assignment with quotes, such as `A='x y' program`, is not found, because the words are
/// later split at spaces.
fn split_commands(command: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quote) = (Vec::new(), 0, None);
    let mut is_comment = false;
    let mut previous = '\n';
    let mut escaped = false;
    for (at, c) in command.char_indices() {
        let was_escaped = escaped;
        escaped = c == '\\' && !was_escaped;
        match (quote, c) {
            _ if was_escaped => {}
            (None, '\n') => {
                parts.extend(command.get(start..at).filter(|_| !is_comment));
                (start, is_comment) = (at + 1, false);
            }
            _ if is_comment => {}
            (None, '#') if previous.is_whitespace() => {
                parts.extend(command.get(start..at));
                is_comment = true;
            }
            (None, '\'' | '"' | '`') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ';' | '|' | '&') => {
                parts.extend(command.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
        previous = c;
    }
    parts.extend(command.get(start..).filter(|_| !is_comment));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_a_script_are_listed() {
        for (script, programs) in [
            ("exec nginx -c x", &["nginx"][..]),
            (
                "A=1 B=2 python3 x.py | sort && rm y; echo z",
                &["python3", "sort", "rm"],
            ),
            (
                "case {a} in\n  one)  set -- 1 ;;\n  two) curl x ;;\nesac\nexec {tools}/run",
                &["curl"],
            ),
            (
                "if test -e x; then chromium; else ./own; fi # not this",
                &["chromium"],
            ),
            (
                "sh -c 'missing; \"other\"' && \"$program\" && $other",
                &["sh"],
            ),
            ("wrk \\\n  --latency; wrk", &["wrk"]),
            ("f() { missing; }\nf", &[]),
            // Regression test: the word `y` in the quoted value was reported as a program.
            ("A='x y z' unknown; B=1 sort", &["sort"]),
            ("cat <<END\nmissing\nEND", &[]),
        ] {
            assert_eq!(list_programs(script), programs, "{script}");
        }
    }

    #[test]
    fn missing_programs_are_faults_at_their_command() {
        let text = "name='x'\nquestion='x'\nrounds=1\n[sink.s]\nrun='''\nsh -c true\nno-such-program --x'''\n";
        let document = ExperimentDocument::parse_toml(text).unwrap();
        let faults = find_missing_programs(&document, Some(text));
        let found: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "5:5: sink.s.run: program not found: no-such-program; install it, or correct the command"
            ]
        );
    }
}
