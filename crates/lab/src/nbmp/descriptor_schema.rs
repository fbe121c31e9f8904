//! The descriptors of the NBMP standard as data (ISO/IEC 23090-8:2022, section 8). Names that the
//! published schema misspells are corrected here. The misspelling `discription` is still accepted
//! in addition to `description`.

mod common_shapes;
mod processing;
mod running;

use super::DescriptionKind;
use super::field_shape::FieldNeed::{May, Must, Strict};
use super::field_shape::FieldShape::{
    Boolean, Checked, IntegerFrom, List, NonEmptyText, Number, Object, OneOf, Text,
};
use super::field_shape::{DescriptorField, FieldShape};
use super::{SCHEMES, cross_field_checks};

use common_shapes::{BRAND, COUNT, MEDIA_TYPE, TEXTS, TIME, URI, define_field};
use processing::{CONFIGURATION, PARAMETERS, PROCESSING, REQUIREMENT};
use running::{
    ACKNOWLEDGE, ASSERTION, CLIENT_ASSISTANT, EVENT, FAILOVER, MONITORING, NOTIFICATION, REPORTING,
    REQUEST, SCALE, SCHEDULE, SECURITY, STARTUP_DELAY, STEP, VARIABLE,
};

/// Returns the type of a whole description of this kind.
pub(super) fn description_shape(kind: DescriptionKind) -> FieldShape {
    match kind {
        DescriptionKind::Workflow => Object(&WORKFLOW),
        DescriptionKind::Task => Object(&TASK),
        DescriptionKind::Function => Object(&FUNCTION),
    }
}

static INPUT_SHAPE: FieldShape = Object(&INPUT);
const INPUT_FIELD: DescriptorField = define_field(
    "input",
    Strict,
    Checked(
        &INPUT_SHAPE,
        cross_field_checks::check_media_or_metadata_present,
    ),
);
static OUTPUT_SHAPE: FieldShape = Object(&OUTPUT);
const OUTPUT_FIELD: DescriptorField = define_field(
    "output",
    Strict,
    Checked(
        &OUTPUT_SHAPE,
        cross_field_checks::check_media_or_metadata_present,
    ),
);
static FAILOVER_SHAPE: FieldShape = Object(&FAILOVER);
const FAILOVER_FIELD: DescriptorField = define_field(
    "failover",
    May,
    Checked(&FAILOVER_SHAPE, cross_field_checks::check_failover),
);
static REPORTING_SHAPE: FieldShape = Object(&REPORTING);
const REPORTING_FIELD: DescriptorField = define_field(
    "reporting",
    May,
    Checked(&REPORTING_SHAPE, cross_field_checks::check_reporting),
);

static WORKFLOW: &[DescriptorField] = &[
    define_field("scheme", May, Object(&SCHEME)),
    define_field("general", Must, Object(&GENERAL)),
    define_field("repository", May, Object(&REPOSITORY)),
    INPUT_FIELD,
    OUTPUT_FIELD,
    define_field("processing", Strict, Object(&PROCESSING)),
    define_field("requirement", Strict, Object(&REQUIREMENT)),
    define_field("step", May, Object(&STEP)),
    define_field("client-assistant", May, Object(&CLIENT_ASSISTANT)),
    FAILOVER_FIELD,
    define_field("monitoring", May, Object(&MONITORING)),
    define_field("assertion", May, Object(&ASSERTION)),
    REPORTING_FIELD,
    define_field("notification", May, Object(&NOTIFICATION)),
    define_field("acknowledge", May, Object(&ACKNOWLEDGE)),
    define_field("security", May, Object(&SECURITY)),
    define_field("scale", May, Object(&SCALE)),
    define_field("schedule", May, Object(&SCHEDULE)),
];

static TASK: &[DescriptorField] = &[
    define_field("scheme", May, Object(&SCHEME)),
    define_field("general", Must, Object(&GENERAL)),
    INPUT_FIELD,
    OUTPUT_FIELD,
    define_field("processing", Strict, Object(&PROCESSING)),
    define_field("requirement", Strict, Object(&REQUIREMENT)),
    define_field("configuration", May, CONFIGURATION),
    define_field("startup-delay", May, Object(&STARTUP_DELAY)),
    define_field("request", Strict, Object(&REQUEST)),
    define_field("step", May, Object(&STEP)),
    define_field("client-assistant", May, Object(&CLIENT_ASSISTANT)),
    FAILOVER_FIELD,
    define_field("monitoring", May, Object(&MONITORING)),
    define_field("assertion", May, Object(&ASSERTION)),
    REPORTING_FIELD,
    define_field("notification", May, Object(&NOTIFICATION)),
    define_field("acknowledge", May, Object(&ACKNOWLEDGE)),
    define_field("security", May, Object(&SECURITY)),
    define_field("scale", May, Object(&SCALE)),
    define_field("schedule", May, Object(&SCHEDULE)),
];

static FUNCTION: &[DescriptorField] = &[
    define_field("scheme", May, Object(&SCHEME)),
    define_field("general", Must, Object(&GENERAL)),
    INPUT_FIELD,
    OUTPUT_FIELD,
    define_field("processing", May, Object(&PROCESSING)),
    define_field("requirement", May, Object(&REQUIREMENT)),
    define_field("configuration", May, CONFIGURATION),
    define_field("step", May, Object(&STEP)),
    define_field("client-assistant", May, Object(&CLIENT_ASSISTANT)),
    define_field("assertion", May, Object(&ASSERTION)),
    define_field("variables", May, List(&VARIABLE, 1)),
    define_field("events", May, List(&Object(&EVENT), 1)),
    define_field("security", May, Object(&SECURITY)),
];

static SCHEME: &[DescriptorField] = &[define_field("uri", Must, OneOf(&SCHEMES))];

static GENERAL: &[DescriptorField] = &[
    define_field("id", Must, NonEmptyText),
    define_field("name", Strict, Text),
    define_field("description", Strict, Text),
    define_field("rank", May, COUNT),
    define_field("nbmp-brand", May, BRAND),
    define_field("published-time", May, TIME),
    define_field("priority", May, Number),
    define_field("location", May, Text),
    define_field("task-group", May, List(&Object(&TASK_GROUP), 1)),
    define_field("input-ports", Strict, List(&Object(&PORT), 1)),
    define_field("output-ports", Strict, List(&Object(&PORT), 1)),
    define_field("is-group", May, Boolean),
    define_field("nonessential", May, Boolean),
    define_field("state", Strict, OneOf(&STATES)),
];

/// Values of `general.state`.
pub(super) const STATES: [&str; 6] = [
    "null",
    "instantiated",
    "idle",
    "running",
    "in-error",
    "destroyed",
];

static TASK_GROUP: &[DescriptorField] = &[
    define_field("group-id", Must, NonEmptyText),
    define_field("task-id", Must, TEXTS),
    define_field("group-type", May, OneOf(&["distance", "sync", "virtual"])),
    define_field("group-mode", May, OneOf(&["synchronous", "asynchronous"])),
    define_field("net-zero", May, Boolean),
];

static PORT: &[DescriptorField] = &[
    define_field("port-name", Must, NonEmptyText),
    define_field("bind", Must, Object(&BIND)),
];

static BIND: &[DescriptorField] = &[
    define_field("stream-id", Strict, NonEmptyText),
    define_field("name", Strict, Text),
    define_field("keywords", May, TEXTS),
];

static REPOSITORY: &[DescriptorField] = &[
    define_field("mode", May, OneOf(&["strict", "preferred", "available"])),
    define_field("location", Must, List(&Object(&LOCATION), 1)),
];

static LOCATION: &[DescriptorField] = &[
    define_field("url", Must, URI),
    define_field("name", Strict, Text),
    define_field("description", Strict, Text),
];

static INPUT: &[DescriptorField] = &[
    define_field("media-parameters", May, List(&Object(&MEDIA_IN), 0)),
    define_field("metadata-parameters", May, List(&Object(&METADATA_IN), 0)),
];

static OUTPUT: &[DescriptorField] = &[
    define_field("media-parameters", May, List(&Object(&MEDIA_OUT), 0)),
    define_field("metadata-parameters", May, List(&Object(&METADATA_OUT), 0)),
];

const MODE: DescriptorField = define_field("mode", May, OneOf(&["push", "pull"]));
const COMPLETION: DescriptorField = define_field("completion-timeout", May, COUNT);

const MEDIA: [DescriptorField; 16] = [
    // The input and output restrictions of connections have the same fields as streams, but often
    // lack this field. At the lenient level, only `graph.rs` requires the field, for streams only.
    define_field("stream-id", Strict, NonEmptyText),
    define_field("name", Strict, Text),
    define_field("keywords", Strict, TEXTS),
    define_field("mime-type", Strict, MEDIA_TYPE),
    define_field("protocol", Strict, NonEmptyText),
    define_field("caching-server-url", Strict, URI),
    MODE,
    define_field("throughput", May, COUNT),
    define_field("buffersize", May, COUNT),
    define_field("availability-duration", May, COUNT),
    define_field("timeout", May, IntegerFrom(1)),
    define_field("codec-type", May, Text),
    define_field("video-format", May, PARAMETERS),
    define_field("audio-format", May, PARAMETERS),
    define_field("image-format", May, PARAMETERS),
    COMPLETION,
];

const METADATA: [DescriptorField; 14] = [
    // The input and output restrictions of connections have the same fields as streams, but often
    // lack this field. At the lenient level, only `graph.rs` requires the field, for streams only.
    define_field("stream-id", Strict, NonEmptyText),
    define_field("name", Strict, Text),
    define_field("keywords", Strict, TEXTS),
    define_field("mime-type", Strict, MEDIA_TYPE),
    define_field("protocol", Strict, NonEmptyText),
    define_field("caching-server-url", May, URI),
    MODE,
    define_field("max-size", May, COUNT),
    define_field("min-interval", May, COUNT),
    define_field("availability-duration", May, COUNT),
    define_field("timeout", May, IntegerFrom(1)),
    define_field("codec-type", May, Text),
    define_field("scheme-uri", May, URI),
    COMPLETION,
];

static MEDIA_IN: &[DescriptorField] = &MEDIA;
static METADATA_IN: &[DescriptorField] = &METADATA;
// Removes the last field, `completion-timeout`, because outputs do not have this field.
static MEDIA_OUT: &[DescriptorField] = MEDIA_IN.split_at(15).0;
static METADATA_OUT: &[DescriptorField] = METADATA_IN.split_at(13).0;
