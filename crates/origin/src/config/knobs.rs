//! Every setting, declared once.

use super::storage::STORAGE;
use clap::{Arg, Command};
use net::config::{COMMON, Knob, flags};

/// The library's knob is the only one without dashes on the command line.
const SOURCE: &str = "source";

/// Every table of settings that `headwater serve` has.
pub const KNOBS: &[&[Knob]] = &[&[PLACE], OWN, STORAGE, COMMON];

const PLACE: Knob = Knob::new(
    SOURCE,
    "SOURCE",
    "",
    "Folder of films, one film, or s3://, gs://, az://, http(s):// URL; none: the built-in film",
);

const OWN: &[Knob] = &[
    Knob::new(
        "listen",
        "HOST:PORT",
        "127.0.0.1:8080",
        "Where to listen; port 0 takes a free one",
    )
    .list(),
    Knob::new(
        "segment",
        "DURATION",
        "6s",
        "Wished segment length; cuts go to the nearest common key frames",
    ),
    Knob::new(
        "hls-segment",
        "DURATION",
        "",
        "The same for HLS alone; two lengths mean two sets in caches",
    ),
    Knob::new("dash-segment", "DURATION", "", "The same for DASH alone"),
    Knob::new(
        "index-memory",
        "BYTES",
        "512MiB",
        "Most memory for indexes and manifests; a two-hour film takes about 5 MiB",
    ),
    Knob::new(
        "index-cache",
        "off|memory|memory+disk",
        "memory",
        "Where indexes are kept; off: each request reads what it needs of its film anew",
    ),
    Knob::new(
        "index-cache-dir",
        "FOLDER",
        "",
        "Where memory+disk keeps indexes over restarts; made if it is not there",
    ),
    Knob::new(
        "index-disk",
        "BYTES",
        "4GiB",
        "Most bytes of indexes on disk; those not used for longest leave first",
    ),
    Knob::new(
        "media-from",
        "URL=SOURCE",
        "",
        "Let server manifests and index MP4s name URLs below URL, whose bytes are in SOURCE",
    )
    .list(),
    Knob::new(
        "segment-memory",
        "BYTES",
        "128MiB",
        "Most memory for segments asked for lately: plans, and bytes gathered or packed",
    ),
    Knob::new(
        "recheck",
        "DURATION",
        "",
        "How long a path is trusted to lead to the same files: 1s, or 60s over a network",
    ),
    Knob::new(
        "aes-secret",
        "FILE",
        "",
        "Encrypt all segments with AES-128 and keys made of the secret in FILE; then HLS only, no clear file",
    ),
    Knob::new(
        "aes-key-url",
        "URL",
        "",
        "Where players ask for the key of {title}, if not here (then anybody gets it): https://keys/{title}",
    ),
];

const AFTER: &str = "\
Each setting is also a line of the TOML file (`segment = \"4s\"`) and an environment variable
(`HEADWATER_SEGMENT=4s`). Flags go before variables, variables before the file.

Examples:
  headwater serve                                    the built-in film, on http://127.0.0.1:8080
  headwater serve ~/films --listen 0.0.0.0:8080      your own films, for the whole network
  headwater serve film.mp4 --segment 4s              one film, shorter segments
  headwater serve s3://bucket/films                  from S3; credentials as aws-cli finds them
  headwater serve https://host/films --storage-connections-max 16
  headwater serve ~/films --tls-cert c.pem --tls-key k.pem --listen 0.0.0.0:443
  headwater serve ~/films --aes-secret secret        encrypted; openssl rand -hex 32 > secret
  headwater serve --config headwater.toml --print-config";

/// The words of `headwater serve`.
pub fn command() -> Command {
    let source = Arg::new(SOURCE).value_name(PLACE.value).help(PLACE.help);
    Command::new("serve")
        .about("Serve films as HLS and DASH, packaged as they are asked for")
        .after_help(AFTER)
        .arg(source)
        .args(flags(&[OWN, STORAGE, COMMON]))
}
