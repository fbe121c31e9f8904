//! The origin's settings, each declared once.

use super::help_groups::{FIRST_OPTIONS, GROUPS};
use super::remote_libraries::STORAGE;
use crate::drm::settings::DRM;
use clap::{Arg, Command};
use net::config::{
    COLLECTOR, COMMON, Setting, TRACING, build_command_args, group_flags, hide_unlisted_options,
};

/// Name of the setting for the library, which is the only positional argument on the command line.
const SOURCE: &str = "source";

/// All settings of `headwater serve`.
pub const SETTINGS: &[&[Setting]] = &[&[PLACE], OWN, DRM, STORAGE, COLLECTOR, TRACING, COMMON];

const PLACE: Setting = Setting::new(
    SOURCE,
    "SOURCE",
    "",
    "Film, folder of films, or URL (s3, gs, az, http, https) of a folder; none: built-in film",
)
.as_positional();

const OWN: &[Setting] = &[
    Setting::new(
        "listen",
        "HOST:PORT",
        "127.0.0.1:8080",
        "Address to listen on, or a port of 127.0.0.1; port 0 selects a free port",
    )
    .as_list(),
    Setting::new(
        "follow-links",
        "yes|no",
        "no",
        "Follow symbolic links that lead out of the library, such as to other disks",
    )
    .as_switch(),
    Setting::new(
        "segment",
        "DURATION",
        "6s",
        "Target segment length; boundaries are at the nearest common key frames",
    ),
    Setting::new(
        "hls-segment",
        "DURATION",
        "",
        "Target length of HLS segments; if it differs from DASH, caches store both kinds",
    ),
    Setting::new(
        "dash-segment",
        "DURATION",
        "",
        "Target length of DASH segments",
    ),
    Setting::new(
        "closed-captions",
        "unknown|none",
        "unknown",
        "For video without detected captions; with none, HLS playlists declare their absence",
    ),
    Setting::new(
        "default-audio",
        "LANGUAGE",
        "",
        "Language of the audio that plays by default [default: as the film's tracks are marked]",
    ),
    Setting::new(
        "hls-text",
        "vtt|stpp",
        "vtt",
        "Subtitles in HLS with CMAF segments: WebVTT, which most players support, or IMSC",
    ),
    Setting::new(
        "dash-text",
        "wvtt|stpp|file",
        "wvtt",
        "Subtitles in DASH: WebVTT or IMSC in CMAF, or one WebVTT file",
    ),
    Setting::new(
        "index-memory",
        "MEMORY",
        "20% up to 512MiB",
        "Memory limit of indexes and manifests; a two-hour film with two renditions takes 7 MiB",
    ),
    Setting::new(
        "index-cache",
        "off|memory|memory+disk",
        "memory",
        "Storage of indexes between requests; off reads the film's index for each request",
    ),
    Setting::new(
        "index-cache-dir",
        "FOLDER",
        "",
        "Folder of the index cache for memory+disk; created if missing",
    ),
    Setting::new(
        "index-disk",
        "BYTES",
        "4GiB",
        "Disk limit of the index cache; least recently used indexes are evicted first",
    ),
    Setting::new(
        "media-from",
        "URL=SOURCE",
        "",
        "In manifests and index MP4s, allow references below URL; read these from SOURCE",
    )
    .as_list(),
    Setting::new(
        "segment-memory",
        "MEMORY",
        "10% up to 128MiB",
        "Memory limit of the segment cache",
    ),
    Setting::new(
        "recheck",
        "DURATION",
        "",
        "Interval at which files are checked for changes [default: 1s, on a network 60s]",
    ),
    Setting::new(
        "admin",
        "HOST:PORT",
        "",
        "Address of the admin port; /metrics moves there from the main port",
    ),
    Setting::new(
        "admin-token-file",
        "FILE",
        "",
        "File with the token of the admin port",
    ),
    Setting::new(
        "edge-secret-file",
        "FILE",
        "",
        "File with the secret of the edges; requests without it get 403",
    ),
    Setting::new(
        "aes-secret",
        "FILE",
        "",
        "Encrypt segments (AES-128) with keys derived from the secret in FILE; HLS only",
    ),
    Setting::new(
        "aes-key-url",
        "URL",
        "",
        "Key server URL, such as https://keys/{title}; default: this server gives anyone the keys",
    ),
];

const AFTER: &str = "\
Each setting can also be set in the TOML file (`segment = \"4s\"`) or as an environment variable
(`HEADWATER_SEGMENT=4s`). Flags override variables, and variables override the file.

Examples:
  headwater serve                                    the built-in film, at http://127.0.0.1:8080
  headwater serve ~/films --listen 0.0.0.0:8080      your own films, reachable from the network
  headwater serve film.mp4 --segment 4s              one film, shorter segments
  headwater serve s3://bucket/films                  from S3; credentials as aws-cli finds them
  headwater serve https://host/films --storage-connections-max 16
  headwater serve ~/films --tls-cert c.pem --tls-key k.pem --listen 0.0.0.0:443
  headwater serve ~/films --aes-secret secret        encrypted; openssl rand -hex 32 > secret
  headwater serve --config headwater.toml --print-config";

/// Returns the command line of `headwater serve`.
pub fn define_serve_command() -> Command {
    let source = Arg::new(SOURCE).value_name(PLACE.value).help(PLACE.help);
    Command::new("serve")
        .about("Serve films as HLS and DASH, packaged on request")
        .after_help(AFTER)
        .arg(source)
        .args(group_flags(
            build_command_args(&[OWN, DRM, STORAGE, COLLECTOR, TRACING, COMMON]),
            GROUPS,
        ))
}

/// Reduces the help of `headwater serve` to the options that most users need, for the short help
/// (`-h`).
pub fn shorten_serve_help(command: Command) -> Command {
    hide_unlisted_options(command, FIRST_OPTIONS)
}
