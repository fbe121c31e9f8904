//! Rejects commands and options that need a cargo feature which this build lacks.

/// Returns the error message for a command or an option that needs a missing feature.
#[cfg(not(all(feature = "nats", feature = "nbmp")))]
pub(crate) fn missing_feature_message(what: &str, feature: &str) -> String {
    format!("{what}, which this build does not support; build headwater with --features {feature}")
}

/// Defines a command that accepts any arguments and always fails. The error message contains the
/// remedy.
macro_rules! refused_command {
    ($module:ident, $name:literal, $feature:literal) => {
        #[cfg(not(feature = $feature))]
        pub(super) mod $module {
            use crate::commands::command_error::CommandError;
            use clap::{Arg, ArgMatches, Command};
            use std::process::ExitCode;

            pub(in crate::commands) fn define_command() -> Command {
                let any = Arg::new("arguments").num_args(0..).trailing_var_arg(true);
                let any = any.allow_hyphen_values(true).hide(true);
                Command::new($name)
                    .about(concat!("Not in this build: needs the feature ", $feature))
                    .disable_help_flag(true)
                    .arg(any)
            }

            pub(in crate::commands) fn run_command(
                _: &ArgMatches,
            ) -> Result<ExitCode, CommandError> {
                let what = concat!("lab ", $name, " needs the feature ", $feature);
                let message = super::missing_feature_message(what, $feature);
                Err(CommandError::Usage(net::config::UsageError(message)))
            }
        }
    };
}

refused_command!(lacks_nats, "agent", "nats");
refused_command!(lacks_convert, "convert", "nbmp");
refused_command!(lacks_serve, "serve", "nbmp");
