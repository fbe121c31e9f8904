//! Descriptors of what happens while a workflow runs.

use super::super::among;
use super::super::shape::Need::{May, Must, Strict};
use super::super::shape::Shape::{
    And, Any, Count, Free, List, Name, Object, OneOf, Text, Truth, Whole,
};
use super::super::shape::{Field, Shape};
use super::{COUNT, TEXTS, TIME, URI, field};

pub(super) static STARTUP_DELAY: &[Field] = &[field("startup-delay-value", Must, COUNT)];

pub(super) static REQUEST: &[Field] = &[
    field("request-id", Must, COUNT),
    field("priority", May, COUNT),
    field("task-id", Must, Name),
];

pub(super) static CLIENT_ASSISTANT: &[Field] = &[
    field("client-assistance-flag", Must, Truth),
    field("measurement-collection-list", May, Free),
    field("source-assistance-information", May, Free),
];

pub(super) static FAILOVER: &[Field] = &[
    field("failover-mode", Must, OneOf(&FAILOVERS)),
    field("failover-delay", Must, COUNT),
    field("backup-deployment-url", May, URI),
    field("persistence-url", May, URI),
    field("persistence-interval", May, COUNT),
];

const FAILOVERS: [&str; 5] = [
    "restart-immediately",
    "restart-with-delay",
    "continue-with-last-good-state",
    "execute-backup-deployment",
    "exit",
];

pub(super) static EVENT: &[Field] = &[
    field("name", Must, Name),
    field("definition", Must, Text),
    field("url", May, URI),
];

pub(super) const VARIABLE: Shape = And(&Object(&VARIABLE_FIELDS), among::variable);

static VARIABLE_FIELDS: &[Field] = &[
    field("name", Must, Name),
    field("definition", Must, Text),
    field("unit", Must, Text),
    field(
        "var-type",
        Must,
        OneOf(&["string", "integer", "float", "boolean", "number"]),
    ),
    field("value", May, Text),
    field("min", May, Whole),
    field("max", May, Whole),
    field("url", May, URI),
    // Not themselves again, so that no document is deeper than the standard's own.
    field("children", May, List(&Free, 0)),
];

pub(super) static MONITORING: &[Field] = &[
    field("event", May, List(&Object(&EVENT), 1)),
    field("variable", May, List(&VARIABLE, 1)),
    field("system-events", May, List(&Free, 1)),
    field("system-variables", May, List(&Free, 1)),
];

pub(super) static REPORTING: &[Field] = &[
    field("event", May, List(&Object(&EVENT), 1)),
    field("variable", May, List(&VARIABLE, 1)),
    field("system-events", May, List(&Free, 1)),
    field("system-variables", May, List(&Free, 1)),
    field("report-type", May, Text),
    field("reporting-type", Strict, Name),
    field("reporting-interval", Strict, COUNT),
    field("report-start-time", Strict, TIME),
    field("url", Must, URI),
    field("delivery-method", Strict, OneOf(&["HTTP POST"])),
];

pub(super) static NOTIFICATION: &[Field] = &[
    field("event", May, List(&Object(&EVENT), 1)),
    field("variable", May, List(&VARIABLE, 1)),
    field("system-events", May, List(&Free, 1)),
    field("system-variables", May, List(&Free, 1)),
    field("notification-time", Strict, TIME),
    field("severity-level", Strict, Name),
    field(
        "notification-type",
        Must,
        List(&OneOf(&["congestion", "application", "system"]), 1),
    ),
    field("urls", Must, List(&URI, 1)),
    field("notification-interval", May, COUNT),
];

pub(super) static ASSERTION: &[Field] = &[
    field("min-priority", Must, COUNT),
    field("min-priority-action", Must, Text),
    field("support-verification", May, Truth),
    field("verification-acknowledgement", May, Text),
    field("certificate", May, Text),
    field("assertion", Must, List(&Object(&ASSERTED), 1)),
];

static ASSERTED: &[Field] = &[
    field("name", Must, Name),
    field("value-predicate", Must, Object(&PREDICATE)),
];

static PREDICATE: &[Field] = &[
    field(
        "evaluation-condition",
        Must,
        OneOf(&["quality", "computational", "input", "output"]),
    ),
    field("check-value", Must, Free),
    field("aggregation", Must, OneOf(&["sum", "min", "max", "avg"])),
    field("offset", May, Text),
    field("priority", Must, COUNT),
    field("action", Must, OneOf(&["rebuild", "restart", "wait"])),
    field("action-parameters", May, TEXTS),
];

pub(super) static ACKNOWLEDGE: &[Field] = &[
    field("status", Must, OneOf(&STATUSES)),
    field("unsupported", May, TEXTS),
    field("failed", May, TEXTS),
    field("partial", May, TEXTS),
];

const STATUSES: [&str; 4] = [
    "fulfilled",
    "failed",
    "not-supported",
    "partially-fulfilled",
];

pub(super) static SECURITY: &[Field] = &[
    field("name", Must, Name),
    field("scope", May, OneOf(&["data", "function", "task"])),
    field("authentication-method", Must, Text),
    field("authority-url", May, URI),
    field("certificate", May, Text),
    field("auth-token", May, Text),
    field("client-grants", May, Text),
    field("auth-token-expires", May, TIME),
    field("auth-token-renew", May, Any),
    field("auth-token-rotation", May, Truth),
];

pub(super) static SCALE: &[Field] = &[
    field("id", Must, Name),
    field("description", May, Text),
    field("scaling-type", May, OneOf(&["MPE", "split-merge"])),
    field("scaling-factor", May, Count(1)),
    field("status", Must, OneOf(&REQUESTED)),
    field("target-id", May, Text),
];

const REQUESTED: [&str; 5] = ["capabilities", "consider", "request", "passed", "failed"];

pub(super) static SCHEDULE: &[Field] = &[
    field("id", Must, Name),
    field("description", May, Text),
    field("schedule-type", May, OneOf(&["duration", "segment"])),
    field("schedule-table", May, List(&Object(&SCHEDULED), 1)),
    field("number-of-segments", May, Count(1)),
    field("loop", May, Truth),
    field("status", Must, OneOf(&REQUESTED)),
];

static SCHEDULED: &[Field] = &[
    field("task-id", May, Text),
    field("start-time", May, Text),
    field("duration", May, COUNT),
    field("timescale", May, COUNT),
];

pub(super) static STEP: &[Field] = &[
    field(
        "step-mode",
        May,
        OneOf(&["stream", "stateful", "stateless"]),
    ),
    field("variable-duration", May, Truth),
    field("segment-duration", May, COUNT),
    field("segment-location", May, Truth),
    field("segment-sequence", May, Truth),
    field("segment-metadata-supported-formats", May, TEXTS),
    field("operating-units", May, COUNT),
    field("temporal-overlap", May, COUNT),
    field("number-of-dimensions", May, COUNT),
    field("higher-dimension-segment-divisors", May, List(&Count(1), 1)),
    field("higher-dimensions-descriptions", May, TEXTS),
    field("higher-dimensions-segment-order", May, List(&COUNT, 1)),
    field("higher-dimension-overlap", May, List(&COUNT, 1)),
    field("higher-dimension-operation-units", May, List(&Count(1), 1)),
];
