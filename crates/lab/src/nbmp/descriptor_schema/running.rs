//! Descriptors that apply while a workflow runs.

use super::super::cross_field_checks;
use super::super::field_shape::FieldNeed::{May, Must, Strict};
use super::super::field_shape::FieldShape::{
    Any, AnyObject, Boolean, Checked, Integer, IntegerFrom, List, NonEmptyText, Object, OneOf, Text,
};
use super::super::field_shape::{DescriptorField, FieldShape};
use super::common_shapes::{COUNT, TEXTS, TIME, URI, define_field};

pub(super) static STARTUP_DELAY: &[DescriptorField] =
    &[define_field("startup-delay-value", Must, COUNT)];

pub(super) static REQUEST: &[DescriptorField] = &[
    define_field("request-id", Must, COUNT),
    define_field("priority", May, COUNT),
    define_field("task-id", Must, NonEmptyText),
];

pub(super) static CLIENT_ASSISTANT: &[DescriptorField] = &[
    define_field("client-assistance-flag", Must, Boolean),
    define_field("measurement-collection-list", May, AnyObject),
    define_field("source-assistance-information", May, AnyObject),
];

pub(super) static FAILOVER: &[DescriptorField] = &[
    define_field("failover-mode", Must, OneOf(&FAILOVERS)),
    define_field("failover-delay", Must, COUNT),
    define_field("backup-deployment-url", May, URI),
    define_field("persistence-url", May, URI),
    define_field("persistence-interval", May, COUNT),
];

const FAILOVERS: [&str; 5] = [
    "restart-immediately",
    "restart-with-delay",
    "continue-with-last-good-state",
    "execute-backup-deployment",
    "exit",
];

pub(super) static EVENT: &[DescriptorField] = &[
    define_field("name", Must, NonEmptyText),
    define_field("definition", Must, Text),
    define_field("url", May, URI),
];

pub(super) const VARIABLE: FieldShape = Checked(
    &Object(&VARIABLE_FIELDS),
    cross_field_checks::check_variable_value,
);

static VARIABLE_FIELDS: &[DescriptorField] = &[
    define_field("name", Must, NonEmptyText),
    define_field("definition", Must, Text),
    define_field("unit", Must, Text),
    define_field(
        "var-type",
        Must,
        OneOf(&["string", "integer", "float", "boolean", "number"]),
    ),
    define_field("value", May, Text),
    define_field("min", May, Integer),
    define_field("max", May, Integer),
    define_field("url", May, URI),
    // The children are also variables, but the fields of the children are not checked.
    define_field("children", May, List(&AnyObject, 0)),
];

pub(super) static MONITORING: &[DescriptorField] = &[
    define_field("event", May, List(&Object(&EVENT), 1)),
    define_field("variable", May, List(&VARIABLE, 1)),
    define_field("system-events", May, List(&AnyObject, 1)),
    define_field("system-variables", May, List(&AnyObject, 1)),
];

pub(super) static REPORTING: &[DescriptorField] = &[
    define_field("event", May, List(&Object(&EVENT), 1)),
    define_field("variable", May, List(&VARIABLE, 1)),
    define_field("system-events", May, List(&AnyObject, 1)),
    define_field("system-variables", May, List(&AnyObject, 1)),
    define_field("report-type", May, Text),
    define_field("reporting-type", Strict, NonEmptyText),
    define_field("reporting-interval", Strict, COUNT),
    define_field("report-start-time", Strict, TIME),
    define_field("url", Must, URI),
    define_field("delivery-method", Strict, OneOf(&["HTTP POST"])),
];

pub(super) static NOTIFICATION: &[DescriptorField] = &[
    define_field("event", May, List(&Object(&EVENT), 1)),
    define_field("variable", May, List(&VARIABLE, 1)),
    define_field("system-events", May, List(&AnyObject, 1)),
    define_field("system-variables", May, List(&AnyObject, 1)),
    define_field("notification-time", Strict, TIME),
    define_field("severity-level", Strict, NonEmptyText),
    define_field(
        "notification-type",
        Must,
        List(&OneOf(&["congestion", "application", "system"]), 1),
    ),
    define_field("urls", Must, List(&URI, 1)),
    define_field("notification-interval", May, COUNT),
];

pub(super) static ASSERTION: &[DescriptorField] = &[
    define_field("min-priority", Must, COUNT),
    define_field("min-priority-action", Must, Text),
    define_field("support-verification", May, Boolean),
    define_field("verification-acknowledgement", May, Text),
    define_field("certificate", May, Text),
    define_field("assertion", Must, List(&Object(&ASSERTED), 1)),
];

static ASSERTED: &[DescriptorField] = &[
    define_field("name", Must, NonEmptyText),
    define_field("value-predicate", Must, Object(&PREDICATE)),
];

static PREDICATE: &[DescriptorField] = &[
    define_field(
        "evaluation-condition",
        Must,
        OneOf(&["quality", "computational", "input", "output"]),
    ),
    define_field("check-value", Must, AnyObject),
    define_field("aggregation", Must, OneOf(&["sum", "min", "max", "avg"])),
    define_field("offset", May, Text),
    define_field("priority", Must, COUNT),
    define_field("action", Must, OneOf(&["rebuild", "restart", "wait"])),
    define_field("action-parameters", May, TEXTS),
];

pub(super) static ACKNOWLEDGE: &[DescriptorField] = &[
    define_field("status", Must, OneOf(&STATUSES)),
    define_field("unsupported", May, TEXTS),
    define_field("failed", May, TEXTS),
    define_field("partial", May, TEXTS),
];

const STATUSES: [&str; 4] = [
    "fulfilled",
    "failed",
    "not-supported",
    "partially-fulfilled",
];

pub(super) static SECURITY: &[DescriptorField] = &[
    define_field("name", Must, NonEmptyText),
    define_field("scope", May, OneOf(&["data", "function", "task"])),
    define_field("authentication-method", Must, Text),
    define_field("authority-url", May, URI),
    define_field("certificate", May, Text),
    define_field("auth-token", May, Text),
    define_field("client-grants", May, Text),
    define_field("auth-token-expires", May, TIME),
    define_field("auth-token-renew", May, Any),
    define_field("auth-token-rotation", May, Boolean),
];

pub(super) static SCALE: &[DescriptorField] = &[
    define_field("id", Must, NonEmptyText),
    define_field("description", May, Text),
    define_field("scaling-type", May, OneOf(&["MPE", "split-merge"])),
    define_field("scaling-factor", May, IntegerFrom(1)),
    define_field("status", Must, OneOf(&REQUESTED)),
    define_field("target-id", May, Text),
];

const REQUESTED: [&str; 5] = ["capabilities", "consider", "request", "passed", "failed"];

pub(super) static SCHEDULE: &[DescriptorField] = &[
    define_field("id", Must, NonEmptyText),
    define_field("description", May, Text),
    define_field("schedule-type", May, OneOf(&["duration", "segment"])),
    define_field("schedule-table", May, List(&Object(&SCHEDULED), 1)),
    define_field("number-of-segments", May, IntegerFrom(1)),
    define_field("loop", May, Boolean),
    define_field("status", Must, OneOf(&REQUESTED)),
];

static SCHEDULED: &[DescriptorField] = &[
    define_field("task-id", May, Text),
    define_field("start-time", May, Text),
    define_field("duration", May, COUNT),
    define_field("timescale", May, COUNT),
];

pub(super) static STEP: &[DescriptorField] = &[
    define_field(
        "step-mode",
        May,
        OneOf(&["stream", "stateful", "stateless"]),
    ),
    define_field("variable-duration", May, Boolean),
    define_field("segment-duration", May, COUNT),
    define_field("segment-location", May, Boolean),
    define_field("segment-sequence", May, Boolean),
    define_field("segment-metadata-supported-formats", May, TEXTS),
    define_field("operating-units", May, COUNT),
    define_field("temporal-overlap", May, COUNT),
    define_field("number-of-dimensions", May, COUNT),
    define_field(
        "higher-dimension-segment-divisors",
        May,
        List(&IntegerFrom(1), 1),
    ),
    define_field("higher-dimensions-descriptions", May, TEXTS),
    define_field("higher-dimensions-segment-order", May, List(&COUNT, 1)),
    define_field("higher-dimension-overlap", May, List(&COUNT, 1)),
    define_field(
        "higher-dimension-operation-units",
        May,
        List(&IntegerFrom(1), 1),
    ),
];
