//! One declaration a setting.

use clap::{Arg, ArgAction};

/// One setting. Its flag is `--NAME`, its TOML key `NAME`, its variable `HEADWATER_NAME` in
/// capitals with underscores.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// In lower case, with dashes.
    pub name: &'static str,
    /// What its value looks like.
    pub value: &'static str,
    /// In force when nobody says otherwise; empty: nothing.
    pub default: &'static str,
    /// Whether it may be given several times (in TOML: an array; in the environment: commas).
    pub list: bool,
    /// For lists that may be written as an array of tables: the tables' keys. A value is then
    /// theirs in this order, with spaces between.
    pub fields: &'static [&'static str],
    /// A sentence without a full stop.
    pub help: &'static str,
}

impl Knob {
    /// A setting with one value.
    pub const fn new(
        name: &'static str,
        value: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Knob {
        Knob {
            name,
            value,
            default,
            list: false,
            fields: &[],
            help,
        }
    }

    /// The same, that may be given several times.
    #[must_use]
    pub const fn list(self) -> Knob {
        Knob { list: true, ..self }
    }

    /// The same, that may be written as an array of tables with these keys.
    #[must_use]
    pub const fn tables(self, fields: &'static [&'static str]) -> Knob {
        Knob {
            list: true,
            fields,
            ..self
        }
    }

    fn flag(&self) -> Arg {
        let action = if self.list {
            ArgAction::Append
        } else {
            ArgAction::Set
        };
        Arg::new(self.name)
            .value_name(self.value)
            .help(self.text())
            .action(action)
            .long(self.name)
    }

    fn text(&self) -> String {
        match (self.default, self.list) {
            ("", _) => self.help.to_owned(),
            (default, false) => format!("{} [default: {default}]", self.help),
            (default, true) => format!("{}; may be repeated [default: {default}]", self.help),
        }
    }
}

/// The flag that names the TOML file.
pub const CONFIG: &str = "config";
/// The flag that only prints what is in force.
pub const PRINT: &str = "print-config";

/// The flags of these tables, and the two that every program has: the file, and printing.
pub fn flags(tables: &[&[Knob]]) -> Vec<Arg> {
    let config = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .help("Read settings from a TOML file");
    let print = Arg::new(PRINT)
        .long(PRINT)
        .action(ArgAction::SetTrue)
        .help("Print the settings in force and who set them, and end");
    let own = tables.iter().copied().flatten().map(Knob::flag);
    own.chain([config, print]).collect()
}
