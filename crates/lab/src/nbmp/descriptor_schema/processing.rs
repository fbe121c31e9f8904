//! Descriptors of the processing and of the requirements.

use super::super::cross_field_checks;
use super::super::field_shape::FieldNeed::{May, Must, Strict};
use super::super::field_shape::FieldShape::{
    Any, AnyObject, Boolean, Checked, Integer, IntegerFrom, List, NonEmptyText, Object, OneOf, Text,
};
use super::super::field_shape::{DescriptorField, FieldShape};
use super::common_shapes::{COUNT, PLACEMENT, TEXTS, TIME, URI, define_field};
use super::running::{
    CLIENT_ASSISTANT, FAILOVER, MONITORING, NOTIFICATION, REPORTING, SECURITY, STEP, VARIABLE,
};
use super::{GENERAL, INPUT, OUTPUT};

pub(super) static PROCESSING: &[DescriptorField] = &[
    define_field("keywords", Strict, TEXTS),
    define_field("image", Strict, List(&Object(&IMAGE), 1)),
    define_field("start-time", May, TIME),
    define_field("connection-map", May, List(&Object(&CONNECTION), 1)),
    define_field("function-restrictions", May, List(&Object(&RESTRICTION), 0)),
];

static IMAGE: &[DescriptorField] = &[
    define_field("url", Strict, URI),
    define_field("is-dynamic", May, Boolean),
    define_field("static-image-info", May, Object(&STATIC_IMAGE)),
    define_field("dynamic-image-info", May, Object(&DYNAMIC_IMAGE)),
];

static STATIC_IMAGE: &[DescriptorField] = &[
    define_field("os", Strict, Text),
    define_field("version", Strict, Text),
    define_field("architecture", Strict, Text),
    define_field("environment", Strict, Text),
    define_field("patch-url", May, URI),
    define_field("patch-script", May, AnyObject),
];

static DYNAMIC_IMAGE: &[DescriptorField] = &[
    define_field("scheme", Must, URI),
    define_field("information", Must, AnyObject),
];

static CONNECTION: &[DescriptorField] = &[
    define_field("connection-id", Must, NonEmptyText),
    define_field("from", Must, Object(&FROM)),
    define_field("to", Must, Object(&TO)),
    define_field("flowcontrol", May, FLOWCONTROL),
    define_field("co-located", May, Boolean),
    define_field("breakable", May, Boolean),
    define_field("other-parameters", May, PARAMETERS),
];

static FROM: &[DescriptorField] = &[
    define_field("id", Must, NonEmptyText),
    define_field("instance", Strict, NonEmptyText),
    define_field("port-name", Strict, NonEmptyText),
    define_field("output-restrictions", May, Object(&OUTPUT)),
];

static TO: &[DescriptorField] = &[
    define_field("id", Must, NonEmptyText),
    define_field("instance", Strict, NonEmptyText),
    define_field("port-name", Strict, NonEmptyText),
    define_field("input-restrictions", May, Object(&INPUT)),
];

static RESTRICTION: &[DescriptorField] = &[
    define_field("instance", Must, NonEmptyText),
    define_field("general", May, Object(&GENERAL)),
    define_field("processing", May, Object(&PROCESSING)),
    define_field("requirements", May, Object(&REQUIREMENT)),
    define_field("configuration", May, CONFIGURATION),
    define_field("client-assistant", May, Object(&CLIENT_ASSISTANT)),
    define_field(
        "failover",
        May,
        Checked(&Object(&FAILOVER), cross_field_checks::check_failover),
    ),
    define_field("monitoring", May, Object(&MONITORING)),
    define_field(
        "reporting",
        May,
        Checked(&Object(&REPORTING), cross_field_checks::check_reporting),
    ),
    define_field("notification", May, Object(&NOTIFICATION)),
    define_field("step", May, Object(&STEP)),
    define_field("security", May, Object(&SECURITY)),
    define_field("blacklist", May, List(&OneOf(&BLACKLIST), 1)),
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

pub(super) static REQUIREMENT: &[DescriptorField] = &[
    define_field("flowcontrol", May, FLOWCONTROL),
    define_field("hardware", May, Object(&HARDWARE)),
    define_field("security", May, Object(&PROTECTION)),
    define_field("workflow-task", May, Object(&WORKFLOW_TASK)),
    define_field("resource-estimators", May, Object(&ESTIMATORS)),
];

const FLOWCONTROL: FieldShape = Checked(
    &Object(&FLOW),
    cross_field_checks::check_delays_and_throughputs,
);

static FLOW: &[DescriptorField] = &[
    define_field("typical-delay", May, COUNT),
    define_field("min-delay", May, COUNT),
    define_field("max-delay", May, COUNT),
    define_field("min-throughput", May, COUNT),
    define_field("max-throughput", May, COUNT),
    define_field("averaging-window", May, COUNT),
];

static HARDWARE: &[DescriptorField] = &[
    define_field("vcpu", May, COUNT),
    define_field("vgpu", May, COUNT),
    define_field("ram", May, COUNT),
    define_field("disk", May, COUNT),
    define_field("placement", May, PLACEMENT),
];

static PROTECTION: &[DescriptorField] = &[
    define_field("tls", May, Boolean),
    define_field("ipsec", May, Boolean),
    define_field("cenc", May, Boolean),
];

static WORKFLOW_TASK: &[DescriptorField] = &[
    define_field("function-fusible", May, Boolean),
    define_field("function-enhancable", May, Boolean),
    define_field(
        "execution-mode",
        May,
        OneOf(&["streaming", "step", "hybrid"]),
    ),
    define_field("proximity", May, List(&Object(&PROXIMITY), 1)),
    define_field("proximity-equation", May, Object(&EQUATION)),
    define_field("split-efficiency", May, Object(&SPLIT)),
];

static PROXIMITY: &[DescriptorField] = &[
    define_field("other-task-id", Must, NonEmptyText),
    define_field("distance", Must, IntegerFrom(-1)),
];

static EQUATION: &[DescriptorField] = &[
    define_field("distance-parameters", Must, List(&VARIABLE, 1)),
    define_field("distance-equation", Must, Text),
];

static SPLIT: &[DescriptorField] = &[
    define_field("split-norm", May, OneOf(&["pnorm", "custom"])),
    define_field("split-equation", May, Text),
    define_field("split-result", May, COUNT),
];

static ESTIMATORS: &[DescriptorField] = &[
    define_field("default-values", Must, List(&Object(&DEFAULT_VALUE), 1)),
    define_field("computational-estimator", May, Text),
    define_field("memory-estimator", May, Text),
    define_field("bandwidth-estimator", May, Text),
];

static DEFAULT_VALUE: &[DescriptorField] = &[
    define_field("name", Must, NonEmptyText),
    define_field("value", Must, Text),
];

pub(super) const CONFIGURATION: FieldShape = Object(&CONFIGURED);
static CONFIGURED: &[DescriptorField] = &[define_field("parameters", Must, PARAMETERS)];

pub(super) const PARAMETERS: FieldShape = Checked(
    &List(
        &Checked(&Object(&PARAMETER), cross_field_checks::check_parameter),
        1,
    ),
    cross_field_checks::check_parameter_ids,
);

static PARAMETER: &[DescriptorField] = &[
    define_field("name", Must, NonEmptyText),
    define_field("id", Strict, Integer),
    define_field("datatype", Must, OneOf(&DATATYPES)),
    define_field("discription", May, Text),
    define_field("description", May, Text),
    define_field("conditions", May, List(&Integer, 0)),
    define_field("exclusions", May, List(&Integer, 0)),
    // `cross_field_checks::check_parameter` checks the values against `datatype`.
    define_field("values", May, List(&Object(&VALUE), 1)),
    define_field("schema", May, List(&Any, 0)),
];

const DATATYPES: [&str; 5] = ["boolean", "integer", "number", "string", "array"];

static VALUE: &[DescriptorField] = &[
    define_field("name", Strict, Text),
    define_field("id", Strict, Integer),
    define_field("restrictions", Must, Any),
];
