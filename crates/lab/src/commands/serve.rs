//! `headwater lab serve`.

use super::command_error::CommandError;
use crate::serve::{WorkflowManagerSettings, start_manager};
use clap::{ArgMatches, Command};
use net::config::{
    CommonSettings, Setting, SettingLayers, UsageError, build_command_args, parse_count,
    parse_listen_address,
};
use net::{Cidr, FatalError, Shutdown};
use std::process::ExitCode;

const SETTINGS: &[&[Setting]] = &[&[
    Setting::new(
        "listen",
        "HOST:PORT",
        "127.0.0.1:8090",
        "Address; port 0 selects a free port; other than loopback requires --token-file",
    )
    .as_list(),
    Setting::new(
        "token-file",
        "FILE",
        "",
        "Require the token in FILE, at least 16 characters",
    ),
    Setting::new(
        "host",
        "NAME",
        "",
        "Host name to accept in requests, in addition to localhost and IP addresses",
    )
    .as_list(),
    Setting::new(
        "out",
        "DIR",
        "lab",
        "Folder of results, with a subfolder for each workflow",
    ),
    Setting::new("base", "DIR", ".", "Base folder of relative source paths"),
    Setting::new(
        "workflows-max",
        "N",
        "64",
        "Maximum number of workflows and tasks",
    ),
    Setting::new(
        "report-to",
        "NETWORK",
        "127.0.0.0/8",
        "Network that may receive reports, such as 10.0.0.0/8",
    )
    .as_list(),
    Setting::new(
        "log-format",
        "text|json",
        "text",
        "Format of the log on standard error",
    ),
    Setting::new(
        "log",
        "FILTER",
        "info",
        "Log level: error, warn, info, debug, or tracing directives",
    ),
]];

const AFTER: &str = "\
The Workflow Manager of NBMP (ISO/IEC 23090-8): POST, GET, PATCH and DELETE at /workflows and
/tasks, /discover-functions, /openapi.json, and a page at /. Posted workflows run commands, one
after the other, as `lab run` would. Results are in DIR/workflows/ID until the workflow is deleted.

Examples:
  headwater lab serve --out results &
  headwater lab convert experiments/congestion.toml -o congestion.wdd.json
  curl --data-binary @congestion.wdd.json -H 'Content-Type: application/mpeg-nbmp-wdd+json' \\
      'http://127.0.0.1:8090/workflows?scale=small'";

fn read_workflow_manager_settings(
    layers: &SettingLayers,
) -> Result<WorkflowManagerSettings, UsageError> {
    let token = layers
        .setting_path("token-file")
        .map(|path| net::access_token::read_token_file(&path));
    let networks = layers.setting_texts("report-to");
    let network = |text: &String| {
        Cidr::parse_network(text).map_err(|why| UsageError(format!("report-to: {why}")))
    };
    Ok(WorkflowManagerSettings {
        listen: layers.parse_list_setting("listen", parse_listen_address)?,
        token: token
            .transpose()
            .map_err(|error| UsageError(error.to_string()))?,
        hosts: layers.setting_texts("host"),
        out: layers.setting_path("out").unwrap_or_default(),
        base: layers.setting_path("base").unwrap_or_default(),
        workflows_max: layers
            .parse_setting("workflows-max", parse_count)?
            .unwrap_or_default(),
        report_to: networks.iter().map(network).collect::<Result<_, _>>()?,
    })
}

/// Defines the command.
pub(super) fn define_command() -> Command {
    Command::new("serve")
        .about("Run posted workflows: the Workflow Manager of MPEG NBMP over HTTP")
        .after_help(AFTER)
        .args(build_command_args(SETTINGS))
}

/// Serves requests until a stop signal arrives. Then stops the running workflow.
pub(super) fn run_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let layers = SettingLayers::read_settings(SETTINGS, &[], flags)?;
    if layers.print {
        super::output::print_output(&layers);
        return Ok(ExitCode::SUCCESS);
    }
    CommonSettings::new(&layers)?.start_log()?;
    let settings = read_workflow_manager_settings(&layers)?;
    let shutdown = Shutdown::on_signals().map_err(|error| error.to_string())?;
    let running = start_manager(settings, shutdown).map_err(from_server_error)?;
    running.announce();
    running.join().map_err(from_server_error)?;
    Ok(ExitCode::SUCCESS)
}

fn from_server_error(failed: FatalError) -> CommandError {
    match failed {
        FatalError::Usage(wrong) => CommandError::Usage(wrong),
        FatalError::Cannot(..) => CommandError::Failed(failed.to_string()),
    }
}
