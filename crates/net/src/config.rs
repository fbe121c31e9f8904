//! Settings from flags, `HEADWATER_*` variables and a TOML file.
//!
//! A program declares each setting once, in a table of [`Setting`]. [`SettingLayers`] collects the
//! values and their sources. [`CommonSettings`] parses the settings that all servers share. Each
//! program parses its other settings itself.

mod address;
mod closest_name;
mod cmcd_collector;
mod common;
mod help;
mod key_values;
mod layers;
mod mask_secrets;
mod scoped_layers;
mod setting_declaration;
mod tracing_settings;
mod units;
mod unknown_variables;

pub use address::parse_listen_address;
pub use cmcd_collector::{COLLECTOR, CmcdCollectorSettings};
pub(crate) use common::SEND_MEMORY;
pub use common::{COMMON, CommonSettings, ProgramLogFormat, read_admin_port};
pub use help::{
    CLIENT_OPTIONS, COLLECTOR_OPTIONS, HelpGroup, PROXY_OPTIONS, TRACE_OPTIONS, group_flags,
    hide_unlisted_options,
};
pub use layers::{SettingLayers, SettingSources};
pub use mask_secrets::mask_secrets;
pub use scoped_layers::ScopedLayers;
pub use setting_declaration::{CONFIG, PRINT, Setting, build_command_args, build_setting_args};
pub use tracing_settings::{TRACING, TracingSettings};
pub use units::{parse_bytes, parse_count, parse_duration, parse_memory_bytes, parse_switch};
pub use unknown_variables::unknown_variables;

use std::fmt;

/// A usage error. The text contains the mistake, its place and the correct form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageError(pub String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
