//! Declarations of settings.

use clap::{Arg, ArgAction};

/// The declaration of a setting. The flag is `--NAME` and the TOML key is `NAME`. The environment
/// variable is `HEADWATER_NAME`, in capitals and with underscores instead of dashes.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The name, in lower case with dashes.
    pub name: &'static str,
    /// The placeholder for the value in the help.
    pub value: &'static str,
    /// The default value, or an empty text if there is no default.
    pub default: &'static str,
    /// Whether the setting may have several values. A flag is then repeated, the TOML value is an
    /// array, and commas separate the values in the environment variable.
    pub list: bool,
    /// The keys of the tables, if the values may be written as an array of tables. Each table
    /// becomes one text, which contains the values of these keys in this order, separated by
    /// spaces.
    pub fields: &'static [&'static str],
    /// Whether the values may be written as an array of tables with optional keys. Each table
    /// becomes one value, namely the table's text as a TOML inline table. An environment variable
    /// then contains only one value, and commas do not split it.
    pub inline_tables: bool,
    /// Whether each value is `KEY=VALUE` and sets the setting `NAME-KEY`. A settings file contains
    /// a table `NAME` with these keys instead.
    pub key_values: bool,
    /// Whether the flag without a value means `yes`. `--NAME=no` is also allowed.
    pub switch: bool,
    /// Whether the setting is a positional argument on the command line.
    pub positional: bool,
    /// The help text: a sentence without a final period.
    pub help: &'static str,
}

impl Setting {
    /// Declares a setting with one value.
    pub const fn new(
        name: &'static str,
        value: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Setting {
        Setting {
            name,
            value,
            default,
            list: false,
            fields: &[],
            inline_tables: false,
            key_values: false,
            switch: false,
            positional: false,
            help,
        }
    }

    /// Makes the setting repeatable.
    #[must_use]
    pub const fn as_list(self) -> Setting {
        Setting { list: true, ..self }
    }

    /// Makes the setting repeatable. The values may be written as an array of tables with these
    /// keys.
    #[must_use]
    pub const fn as_tables(self, fields: &'static [&'static str]) -> Setting {
        Setting {
            list: true,
            fields,
            ..self
        }
    }

    /// Makes the setting repeatable. The values may be written as an array of tables, which
    /// [`SettingLayers::read_scoped_layers`] reads.
    ///
    /// [`SettingLayers::read_scoped_layers`]: super::SettingLayers::read_scoped_layers
    #[must_use]
    pub const fn accept_inline_tables(self) -> Setting {
        Setting {
            list: true,
            inline_tables: true,
            ..self
        }
    }

    /// Makes the setting repeatable. Each value is `KEY=VALUE` and sets the setting `NAME-KEY`.
    #[must_use]
    pub const fn as_key_values(self) -> Setting {
        Setting {
            list: true,
            key_values: true,
            ..self
        }
    }

    /// Makes the setting a switch, whose flag needs no value. Declare the setting with the
    /// placeholder `yes|no` and the default `no`.
    #[must_use]
    pub const fn as_switch(self) -> Setting {
        Setting {
            switch: true,
            ..self
        }
    }

    /// Makes the setting a positional argument. The program declares the argument itself.
    #[must_use]
    pub const fn as_positional(self) -> Setting {
        Setting {
            positional: true,
            ..self
        }
    }

    fn build_arg(&self) -> Arg {
        if self.switch {
            // The flag accepts a value only after `=`, so that the next argument is never mistaken
            // for the value.
            return Arg::new(self.name)
                .long(self.name)
                .value_name(self.value)
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("yes")
                .help(self.help.to_owned());
        }
        let action = if self.list {
            ArgAction::Append
        } else {
            ArgAction::Set
        };
        Arg::new(self.name)
            .value_name(self.value)
            .help(self.help_text())
            .action(action)
            .long(self.name)
    }

    fn help_text(&self) -> String {
        match (self.default, self.list) {
            ("", _) => self.help.to_owned(),
            (default, false) => format!("{} [default: {default}]", self.help),
            (default, true) => format!("{}; may be repeated [default: {default}]", self.help),
        }
    }
}

/// The name of the flag for the TOML file.
pub const CONFIG: &str = "config";
/// The name of the flag that prints the effective settings.
pub const PRINT: &str = "print-config";

/// Returns the flags of the settings in `tables`, and the flags [`CONFIG`] and [`PRINT`], which
/// every program has.
pub fn build_command_args(tables: &[&[Setting]]) -> Vec<Arg> {
    let config = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .help("Read settings from a TOML file");
    let print = Arg::new(PRINT)
        .long(PRINT)
        .action(ArgAction::SetTrue)
        .help("Print the effective settings and their sources, and exit");
    let own = tables.iter().copied().flat_map(build_setting_args);
    own.chain([config, print]).collect()
}

/// Returns the flags of one table, for a group of the help text.
pub fn build_setting_args(table: &[Setting]) -> Vec<Arg> {
    table.iter().map(Setting::build_arg).collect()
}
