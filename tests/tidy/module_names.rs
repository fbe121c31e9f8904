//! Collects the names that modules declare, import and mention, and finds the file that declares
//! the item of a name.

use super::rust_source::{blank_literals, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of consecutive re-exports to follow. A longer chain occurs only if imports form a
/// loop and no file of the crate declares the name.
const REEXPORTS_MAX: usize = 16;

/// Keywords whose next word is the name of an item.
const ITEM_KEYWORDS: &[&str] = &[
    "struct", "enum", "union", "trait", "fn", "type", "const", "static",
];

/// A module: a file, or a block `mod name { … }` within a file.
#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths in code outside of `use` statements.
    mentions: BTreeSet<Vec<String>>,
}

/// One name that a `use` statement imports, or `*` for all names.
struct Import {
    name: String,
    path: Vec<String>,
    is_visible: bool,
}

/// The modules of a crate by path. The root module has the empty path.
#[derive(Default)]
pub(crate) struct ModuleNames(BTreeMap<String, Module>);

/// The meaning of a path.
enum Meaning {
    /// An item. The text is the path of the module that contains the item.
    Item(String),
    Module(String),
    /// An item of another crate.
    External,
}

impl ModuleNames {
    /// Reads the text of a file. The caller has already removed the tests from the text.
    pub(crate) fn add_file(&mut self, module: &str, text: &str) {
        let code = blank_literals(text);
        self.read_block(module, module, &tokens(&code));
        let mentions = &mut self.0.entry(module.to_owned()).or_default().mentions;
        mentions.extend(attribute_paths(text));
    }

    fn read_block(&mut self, path: &str, file: &str, tokens: &[&str]) {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        let (mut at, mut depth) = (0, 0);
        while at < tokens.len() {
            match &tokens[at..] {
                ["mod", name, "{", rest @ ..] if depth == 0 => {
                    let length = block_length(rest);
                    self.read_block(&join(path, name), file, &rest[..length]);
                    at += 3 + length;
                }
                ["use", next, ..] if *next != "<" => {
                    let is_visible = at > 0 && ["pub", ")"].contains(&tokens[at - 1]);
                    at = module.read_use(tokens, at + 1, &[], is_visible);
                }
                [keyword, name, ..] if depth == 0 && ITEM_KEYWORDS.contains(keyword) => {
                    module.items.insert((*name).to_owned());
                    at += 1 + usize::from(!ITEM_KEYWORDS.contains(name));
                }
                ["macro_rules", "!", name, ..] => {
                    module.items.insert((*name).to_owned());
                    at += 3;
                }
                [token, ..] => {
                    depth += bracket(token);
                    at = module.read_mention(tokens, at);
                }
                [] => unreachable!("at is within the tokens"),
            }
        }
        self.0.insert(path.to_owned(), module);
    }

    /// Returns, for each file, the other files whose items the file uses.
    pub(crate) fn file_uses(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, module) in &self.0 {
            let used = uses.entry(module.file.clone()).or_default();
            let private = module.imports.iter().filter(|import| !import.is_visible);
            let paths = private.map(|import| &import.path).chain(&module.mentions);
            let files = paths.filter_map(|name| self.declaring_file(path, name));
            used.extend(files.filter(|file| *file != module.file));
        }
        uses
    }

    /// Returns the file that declares the item at a path. Returns None if the path is a module or
    /// leads to another crate. Attributes an unknown item to the module in the path, because a
    /// macro may declare the item.
    fn declaring_file(&self, module: &str, path: &[String]) -> Option<String> {
        match self.resolve(module, path, REEXPORTS_MAX)? {
            Meaning::Item(module) => Some(self.0.get(&module)?.file.clone()),
            Meaning::Module(_) | Meaning::External => None,
        }
    }

    fn resolve(&self, module: &str, path: &[String], depth: usize) -> Option<Meaning> {
        let depth = depth.checked_sub(1)?;
        let is_keyword = |word: &&String| ["crate", "self", "super"].contains(&word.as_str());
        let keywords = path.iter().take_while(is_keyword).count();
        let mut start = module;
        for keyword in &path[..keywords] {
            start = match keyword.as_str() {
                "crate" => "",
                "super" => start.rsplit_once("::").map_or("", |(parent, _)| parent),
                _ => start,
            };
        }
        let found = self.look_up(start, &path[keywords..], depth);
        let unknown = || Meaning::Item(start.to_owned());
        found.or_else(|| (keywords > 0).then(unknown))
    }

    /// Returns the meaning of a path that starts with a name in `module`.
    fn look_up(&self, module: &str, path: &[String], depth: usize) -> Option<Meaning> {
        let Some((name, rest)) = path.split_first() else {
            return Some(Meaning::Module(module.to_owned()));
        };
        let scope = self.0.get(module)?;
        let child = join(module, name);
        let has_child = self.0.contains_key(&child);
        if has_child && !rest.is_empty() {
            let unknown = || Meaning::Item(child.clone());
            return self
                .look_up(&child, rest, depth)
                .or_else(|| Some(unknown()));
        }
        if scope.items.contains(name) {
            return Some(Meaning::Item(module.to_owned()));
        }
        let is_import = |import: &&Import| import.name == *name;
        let meanings = scope.imports.iter().filter(is_import).map(|import| {
            let path: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            let found = self.resolve(module, &path, depth);
            found.unwrap_or(Meaning::External)
        });
        let imported = meanings.min_by_key(|found| matches!(found, Meaning::External));
        let by_glob = || {
            let globs = scope.imports.iter().filter(|import| import.name == "*");
            let mut modules = globs.filter_map(|glob| self.resolve(module, &glob.path, depth));
            modules.find_map(|found| match found {
                Meaning::Module(other) if other != module => self.look_up(&other, path, depth - 1),
                _ => None,
            })
        };
        let child = || has_child.then(|| Meaning::Module(child.clone()));
        imported.or_else(by_glob).or_else(child)
    }
}

impl Module {
    /// Reads a `use` tree that starts at a position. Returns the position after the tree.
    fn read_use(
        &mut self,
        tokens: &[&str],
        start: usize,
        prefix: &[String],
        is_visible: bool,
    ) -> usize {
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut at = start;
        loop {
            match tokens.get(at..).unwrap_or_default() {
                ["{", ..] => {
                    while !["}", ";"].contains(tokens.get(at).unwrap_or(&";")) {
                        at = self.read_use(tokens, at + 1, &path, is_visible);
                    }
                    return at + 1;
                }
                ["as", alias, ..] => {
                    name = Some((*alias).to_owned());
                    at += 1;
                }
                ["*", ..] => name = Some("*".to_owned()),
                ["::" | "#", ..] => {}
                [] | ["," | "}" | ";", ..] => break,
                [word, ..] => path.push((*word).to_owned()),
            }
            at += 1;
        }
        if path.len() > 1 {
            path.pop_if(|last| last == "self");
        }
        if at > start {
            let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
            self.imports.push(Import {
                name,
                path,
                is_visible,
            });
        }
        at
    }

    /// Reads a path that starts at a position, and returns the position after the path. Skips one
    /// token if no path starts there.
    fn read_mention(&mut self, tokens: &[&str], start: usize) -> usize {
        let is_word = |token: &str| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let before = start.checked_sub(1).map_or("", |before| tokens[before]);
        if !is_word(tokens[start]) || [".", "::", "'", "mod", "fn"].contains(&before) {
            return start + 1;
        }
        let mut path = vec![tokens[start].to_owned()];
        let mut at = start + 1;
        while let ["::", word, ..] = &tokens[at..]
            && is_word(word)
        {
            path.push((*word).to_owned());
            at += 2;
        }
        self.mentions.insert(path);
        at
    }
}

pub(crate) fn join(module: &str, name: &str) -> String {
    match module {
        "" => name.to_owned(),
        module => format!("{module}::{name}"),
    }
}

/// Returns the paths in attributes such as `#[serde(with = "super::json_number")]`. Adds the
/// component `*` to each path. If the path names a module, the `*` stands for an item of the
/// module.
fn attribute_paths(text: &str) -> impl Iterator<Item = Vec<String>> {
    let values = text
        .split("= \"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"'));
    let is_path = |value: &&str| {
        let is_word = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_');
        value.contains("::") && value.split("::").all(is_word)
    };
    let paths = values.map(|(value, _)| value).filter(is_path);
    paths.map(|path| path.split("::").chain(["*"]).map(String::from).collect())
}

fn bracket(token: &str) -> isize {
    match token {
        "(" | "[" | "{" => 1,
        ")" | "]" | "}" => -1,
        _ => 0,
    }
}

/// Returns the number of tokens before the bracket that closes a block.
fn block_length(tokens: &[&str]) -> usize {
    let mut depth = 1;
    let is_end = |token: &&str| {
        depth += bracket(token);
        depth == 0
    };
    tokens.iter().position(is_end).unwrap_or(tokens.len())
}
