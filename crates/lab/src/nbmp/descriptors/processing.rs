//! Descriptors of what a workflow does, and of what that needs.

use super::super::among;
use super::super::shape::Need::{May, Must, Strict};
use super::super::shape::Shape::{
    And, Any, Count, Free, List, Name, Object, OneOf, Text, Truth, Whole,
};
use super::super::shape::{Field, Shape};
use super::running::{
    CLIENT_ASSISTANT, FAILOVER, MONITORING, NOTIFICATION, REPORTING, SECURITY, STEP, VARIABLE,
};
use super::{COUNT, GENERAL, INPUT, OUTPUT, PLACEMENT, TEXTS, TIME, URI, field};

pub(super) static PROCESSING: &[Field] = &[
    field("keywords", Strict, TEXTS),
    field("image", Strict, List(&Object(&IMAGE), 1)),
    field("start-time", May, TIME),
    field("connection-map", May, List(&Object(&CONNECTION), 1)),
    field("function-restrictions", May, List(&Object(&RESTRICTION), 0)),
];

static IMAGE: &[Field] = &[
    field("url", Strict, URI),
    field("is-dynamic", May, Truth),
    field("static-image-info", May, Object(&STATIC_IMAGE)),
    field("dynamic-image-info", May, Object(&DYNAMIC_IMAGE)),
];

static STATIC_IMAGE: &[Field] = &[
    field("os", Strict, Text),
    field("version", Strict, Text),
    field("architecture", Strict, Text),
    field("environment", Strict, Text),
    field("patch-url", May, URI),
    field("patch-script", May, Free),
];

static DYNAMIC_IMAGE: &[Field] = &[field("scheme", Must, URI), field("information", Must, Free)];

static CONNECTION: &[Field] = &[
    field("connection-id", Must, Name),
    field("from", Must, Object(&FROM)),
    field("to", Must, Object(&TO)),
    field("flowcontrol", May, FLOWCONTROL),
    field("co-located", May, Truth),
    field("breakable", May, Truth),
    field("other-parameters", May, PARAMETERS),
];

static FROM: &[Field] = &[
    field("id", Must, Name),
    field("instance", Strict, Name),
    field("port-name", Strict, Name),
    field("output-restrictions", May, Object(&OUTPUT)),
];

static TO: &[Field] = &[
    field("id", Must, Name),
    field("instance", Strict, Name),
    field("port-name", Strict, Name),
    field("input-restrictions", May, Object(&INPUT)),
];

static RESTRICTION: &[Field] = &[
    field("instance", Must, Name),
    field("general", May, Object(&GENERAL)),
    field("processing", May, Object(&PROCESSING)),
    field("requirements", May, Object(&REQUIREMENT)),
    field("configuration", May, CONFIGURATION),
    field("client-assistant", May, Object(&CLIENT_ASSISTANT)),
    field("failover", May, And(&Object(&FAILOVER), among::failover)),
    field("monitoring", May, Object(&MONITORING)),
    field("reporting", May, And(&Object(&REPORTING), among::reporting)),
    field("notification", May, Object(&NOTIFICATION)),
    field("step", May, Object(&STEP)),
    field("security", May, Object(&SECURITY)),
    field("blacklist", May, List(&OneOf(&BLACKLIST), 1)),
];

const BLACKLIST: [&str; 7] = [
    "requirement",
    "client-assistant",
    "fail-over",
    "monitoring",
    "reporting",
    "notification",
    "security",
];

pub(super) static REQUIREMENT: &[Field] = &[
    field("flowcontrol", May, FLOWCONTROL),
    field("hardware", May, Object(&HARDWARE)),
    field("security", May, Object(&PROTECTION)),
    field("workflow-task", May, Object(&WORKFLOW_TASK)),
    field("resource-estimators", May, Object(&ESTIMATORS)),
];

const FLOWCONTROL: Shape = And(&Object(&FLOW), among::flowcontrol);

static FLOW: &[Field] = &[
    field("typical-delay", May, COUNT),
    field("min-delay", May, COUNT),
    field("max-delay", May, COUNT),
    field("min-throughput", May, COUNT),
    field("max-throughput", May, COUNT),
    field("averaging-window", May, COUNT),
];

static HARDWARE: &[Field] = &[
    field("vcpu", May, COUNT),
    field("vgpu", May, COUNT),
    field("ram", May, COUNT),
    field("disk", May, COUNT),
    field("placement", May, PLACEMENT),
];

static PROTECTION: &[Field] = &[
    field("tls", May, Truth),
    field("ipsec", May, Truth),
    field("cenc", May, Truth),
];

static WORKFLOW_TASK: &[Field] = &[
    field("function-fusible", May, Truth),
    field("function-enhancable", May, Truth),
    field(
        "execution-mode",
        May,
        OneOf(&["streaming", "step", "hybrid"]),
    ),
    field("proximity", May, List(&Object(&PROXIMITY), 1)),
    field("proximity-equation", May, Object(&EQUATION)),
    field("split-efficiency", May, Object(&SPLIT)),
];

static PROXIMITY: &[Field] = &[
    field("other-task-id", Must, Name),
    field("distance", Must, Count(-1)),
];

static EQUATION: &[Field] = &[
    field("distance-parameters", Must, List(&VARIABLE, 1)),
    field("distance-equation", Must, Text),
];

static SPLIT: &[Field] = &[
    field("split-norm", May, OneOf(&["pnorm", "custom"])),
    field("split-equation", May, Text),
    field("split-result", May, COUNT),
];

static ESTIMATORS: &[Field] = &[
    field("default-values", Must, List(&Object(&DEFAULT_VALUE), 1)),
    field("computational-estimator", May, Text),
    field("memory-estimator", May, Text),
    field("bandwidth-estimator", May, Text),
];

static DEFAULT_VALUE: &[Field] = &[field("name", Must, Name), field("value", Must, Text)];

pub(super) const CONFIGURATION: Shape = Object(&CONFIGURED);
static CONFIGURED: &[Field] = &[field("parameters", Must, PARAMETERS)];

pub(super) const PARAMETERS: Shape = And(
    &List(&And(&Object(&PARAMETER), among::parameter), 1),
    among::parameters,
);

static PARAMETER: &[Field] = &[
    field("name", Must, Name),
    field("id", Strict, Whole),
    field("datatype", Must, OneOf(&DATATYPES)),
    field("discription", May, Text),
    field("description", May, Text),
    field("conditions", May, List(&Whole, 0)),
    field("exclusions", May, List(&Whole, 0)),
    // By the datatype: `among::parameter`.
    field("values", May, List(&Object(&VALUE), 1)),
    field("schema", May, List(&Any, 0)),
];

const DATATYPES: [&str; 5] = ["boolean", "integer", "number", "string", "array"];

static VALUE: &[Field] = &[
    field("name", Strict, Text),
    field("id", Strict, Whole),
    field("restrictions", Must, Any),
];
