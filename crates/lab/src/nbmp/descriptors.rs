//! The standard's descriptors, as data (ISO/IEC 23090-8:2022, section 8; the misspelt words of the
//! published schema are put right, `discription` is taken beside `description`).

mod processing;
mod running;

use super::Kind;
use super::shape::Need::{May, Must, Strict};
use super::shape::Shape::{
    And, Count, Form, List, Name, Number, Object, OneOf, StrictForm, Text, Truth,
};
use super::shape::{Field, Need, Shape};
use super::words::{is_brand, is_date_time, is_media_type, is_placement, is_uri};
use super::{SCHEMES, among};

use processing::{CONFIGURATION, PARAMETERS, PROCESSING, REQUIREMENT};
use running::{
    ACKNOWLEDGE, ASSERTION, CLIENT_ASSISTANT, EVENT, FAILOVER, MONITORING, NOTIFICATION, REPORTING,
    REQUEST, SCALE, SCHEDULE, SECURITY, STARTUP_DELAY, STEP, VARIABLE,
};

const fn field(name: &'static str, need: Need, shape: Shape) -> Field {
    Field { name, need, shape }
}

const URI: Shape = Form(is_uri, "a URI, such as http://127.0.0.1:8080/film");
const TIME: Shape = Form(
    is_date_time,
    "a time, such as 2026-11-21T00:00:00Z (RFC 3339)",
);
const MEDIA_TYPE: Shape = Form(is_media_type, "a media type, such as video/mp4");
const BRAND: Shape = StrictForm(
    is_brand,
    "a brand, such as urn:mpeg:mpegi:nbmp:2023:loadtest",
);
const PLACEMENT: Shape = Form(
    is_placement,
    "a country or a part of it, such as NL or US-CA",
);
const TEXTS: Shape = List(&Name, 1);
const COUNT: Shape = Count(0);

/// A whole document.
pub(super) fn of(kind: Kind) -> Shape {
    match kind {
        Kind::Workflow => Object(&WORKFLOW),
        Kind::Task => Object(&TASK),
        Kind::Function => Object(&FUNCTION),
    }
}

static WORKFLOW: &[Field] = &[
    field("scheme", May, Object(&SCHEME)),
    field("general", Must, Object(&GENERAL)),
    field("repository", May, Object(&REPOSITORY)),
    field(
        "input",
        Strict,
        And(&Object(&INPUT), among::some_parameters),
    ),
    field(
        "output",
        Strict,
        And(&Object(&OUTPUT), among::some_parameters),
    ),
    field("processing", Strict, Object(&PROCESSING)),
    field("requirement", Strict, Object(&REQUIREMENT)),
    field("step", May, Object(&STEP)),
    field("client-assistant", May, Object(&CLIENT_ASSISTANT)),
    field("failover", May, And(&Object(&FAILOVER), among::failover)),
    field("monitoring", May, Object(&MONITORING)),
    field("assertion", May, Object(&ASSERTION)),
    field("reporting", May, And(&Object(&REPORTING), among::reporting)),
    field("notification", May, Object(&NOTIFICATION)),
    field("acknowledge", May, Object(&ACKNOWLEDGE)),
    field("security", May, Object(&SECURITY)),
    field("scale", May, Object(&SCALE)),
    field("schedule", May, Object(&SCHEDULE)),
];

static TASK: &[Field] = &[
    field("scheme", May, Object(&SCHEME)),
    field("general", Must, Object(&GENERAL)),
    field(
        "input",
        Strict,
        And(&Object(&INPUT), among::some_parameters),
    ),
    field(
        "output",
        Strict,
        And(&Object(&OUTPUT), among::some_parameters),
    ),
    field("processing", Strict, Object(&PROCESSING)),
    field("requirement", Strict, Object(&REQUIREMENT)),
    field("configuration", May, CONFIGURATION),
    field("startup-delay", May, Object(&STARTUP_DELAY)),
    field("request", Strict, Object(&REQUEST)),
    field("step", May, Object(&STEP)),
    field("client-assistant", May, Object(&CLIENT_ASSISTANT)),
    field("failover", May, And(&Object(&FAILOVER), among::failover)),
    field("monitoring", May, Object(&MONITORING)),
    field("assertion", May, Object(&ASSERTION)),
    field("reporting", May, And(&Object(&REPORTING), among::reporting)),
    field("notification", May, Object(&NOTIFICATION)),
    field("acknowledge", May, Object(&ACKNOWLEDGE)),
    field("security", May, Object(&SECURITY)),
    field("scale", May, Object(&SCALE)),
    field("schedule", May, Object(&SCHEDULE)),
];

static FUNCTION: &[Field] = &[
    field("scheme", May, Object(&SCHEME)),
    field("general", Must, Object(&GENERAL)),
    field(
        "input",
        Strict,
        And(&Object(&INPUT), among::some_parameters),
    ),
    field(
        "output",
        Strict,
        And(&Object(&OUTPUT), among::some_parameters),
    ),
    field("processing", May, Object(&PROCESSING)),
    field("requirement", May, Object(&REQUIREMENT)),
    field("configuration", May, CONFIGURATION),
    field("step", May, Object(&STEP)),
    field("client-assistant", May, Object(&CLIENT_ASSISTANT)),
    field("assertion", May, Object(&ASSERTION)),
    field("variables", May, List(&VARIABLE, 1)),
    field("events", May, List(&Object(&EVENT), 1)),
    field("security", May, Object(&SECURITY)),
];

static SCHEME: &[Field] = &[field("uri", Must, OneOf(&SCHEMES))];

static GENERAL: &[Field] = &[
    field("id", Must, Name),
    field("name", Strict, Text),
    field("description", Strict, Text),
    field("rank", May, COUNT),
    field("nbmp-brand", May, BRAND),
    field("published-time", May, TIME),
    field("priority", May, Number),
    field("location", May, Text),
    field("task-group", May, List(&Object(&TASK_GROUP), 1)),
    field("input-ports", Strict, List(&Object(&PORT), 1)),
    field("output-ports", Strict, List(&Object(&PORT), 1)),
    field("is-group", May, Truth),
    field("nonessential", May, Truth),
    field("state", Strict, OneOf(&STATES)),
];

/// What `general.state` may say.
pub(super) const STATES: [&str; 6] = [
    "null",
    "instantiated",
    "idle",
    "running",
    "in-error",
    "destroyed",
];

static TASK_GROUP: &[Field] = &[
    field("group-id", Must, Name),
    field("task-id", Must, TEXTS),
    field("group-type", May, OneOf(&["distance", "sync", "virtual"])),
    field("group-mode", May, OneOf(&["synchronous", "asynchronous"])),
    field("net-zero", May, Truth),
];

static PORT: &[Field] = &[
    field("port-name", Must, Name),
    field("bind", Must, Object(&BIND)),
];

static BIND: &[Field] = &[
    field("stream-id", Strict, Name),
    field("name", Strict, Text),
    field("keywords", May, TEXTS),
];

static REPOSITORY: &[Field] = &[
    field("mode", May, OneOf(&["strict", "preferred", "available"])),
    field("location", Must, List(&Object(&LOCATION), 1)),
];

static LOCATION: &[Field] = &[
    field("url", Must, URI),
    field("name", Strict, Text),
    field("description", Strict, Text),
];

static INPUT: &[Field] = &[
    field("media-parameters", May, List(&Object(&MEDIA_IN), 0)),
    field("metadata-parameters", May, List(&Object(&METADATA_IN), 0)),
];

static OUTPUT: &[Field] = &[
    field("media-parameters", May, List(&Object(&MEDIA_OUT), 0)),
    field("metadata-parameters", May, List(&Object(&METADATA_OUT), 0)),
];

const MODE: Field = field("mode", May, OneOf(&["push", "pull"]));
const COMPLETION: Field = field("completion-timeout", May, COUNT);

const MEDIA: [Field; 16] = [
    // Of streams, `graph.rs` asks everybody; of restrictions, nobody writes it.
    field("stream-id", Strict, Name),
    field("name", Strict, Text),
    field("keywords", Strict, TEXTS),
    field("mime-type", Strict, MEDIA_TYPE),
    field("protocol", Strict, Name),
    field("caching-server-url", Strict, URI),
    MODE,
    field("throughput", May, COUNT),
    field("buffersize", May, COUNT),
    field("availability-duration", May, COUNT),
    field("timeout", May, Count(1)),
    field("codec-type", May, Text),
    field("video-format", May, PARAMETERS),
    field("audio-format", May, PARAMETERS),
    field("image-format", May, PARAMETERS),
    COMPLETION,
];

const METADATA: [Field; 14] = [
    // Of streams, `graph.rs` asks everybody; of restrictions, nobody writes it.
    field("stream-id", Strict, Name),
    field("name", Strict, Text),
    field("keywords", Strict, TEXTS),
    field("mime-type", Strict, MEDIA_TYPE),
    field("protocol", Strict, Name),
    field("caching-server-url", May, URI),
    MODE,
    field("max-size", May, COUNT),
    field("min-interval", May, COUNT),
    field("availability-duration", May, COUNT),
    field("timeout", May, Count(1)),
    field("codec-type", May, Text),
    field("scheme-uri", May, URI),
    COMPLETION,
];

static MEDIA_IN: &[Field] = &MEDIA;
static METADATA_IN: &[Field] = &METADATA;
// Outputs know no completion, which stands last.
static MEDIA_OUT: &[Field] = MEDIA_IN.split_at(15).0;
static METADATA_OUT: &[Field] = METADATA_IN.split_at(13).0;
