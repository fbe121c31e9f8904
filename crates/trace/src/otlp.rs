//! Spans as an `ExportTraceServiceRequest` of OTLP 1 in protobuf
//! (opentelemetry-proto: collector/trace/v1, trace/v1, resource/v1, common/v1).

use crate::context::TraceContext;

/// Kind of a span, with its number in protobuf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work within the process.
    Internal = 1,
    /// A request that the process serves.
    Server = 2,
    /// A request that the process sends.
    Client = 3,
}

/// The value of an attribute.
#[derive(Debug, Clone)]
pub(crate) enum AttributeValue {
    Text(String),
    Number(i64),
}

/// A finished span.
#[derive(Debug)]
pub(crate) struct FinishedSpan {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
    pub(crate) parent_id: Option<u64>,
    pub(crate) name: &'static str,
    pub(crate) kind: SpanKind,
    pub(crate) started_unix_ns: u64,
    pub(crate) ended_unix_ns: u64,
    pub(crate) attributes: Vec<(&'static str, AttributeValue)>,
    /// A span of another request, on which this span depends.
    pub(crate) link: Option<TraceContext>,
    pub(crate) is_error: bool,
}

const STATUS_ERROR: u64 = 2;

/// An attribute with its name.
pub(crate) type Attribute = (&'static str, AttributeValue);

/// Encodes `spans`. `service` contains the attributes of the service that recorded the spans.
pub(crate) fn encode_spans(service: &[Attribute], spans: &[FinishedSpan]) -> Vec<u8> {
    let mut resource = ProtobufMessage::default();
    for (key, value) in service {
        resource.append_bytes_field(1, &encode_attribute(key, value).0);
    }
    let mut scope = ProtobufMessage::default();
    scope.append_bytes_field(1, b"headwater");
    scope.append_bytes_field(2, env!("CARGO_PKG_VERSION").as_bytes());
    let mut scope_spans = ProtobufMessage::default();
    scope_spans.append_bytes_field(1, &scope.0);
    for span in spans {
        scope_spans.append_bytes_field(2, &encode_span(span).0);
    }
    let mut resource_spans = ProtobufMessage::default();
    resource_spans.append_bytes_field(1, &resource.0);
    resource_spans.append_bytes_field(2, &scope_spans.0);
    let mut request = ProtobufMessage::default();
    request.append_bytes_field(1, &resource_spans.0);
    request.0
}

fn encode_span(span: &FinishedSpan) -> ProtobufMessage {
    let mut message = ProtobufMessage::default();
    message.append_bytes_field(1, &span.trace_id.to_be_bytes());
    message.append_bytes_field(2, &span.span_id.to_be_bytes());
    if let Some(parent) = span.parent_id {
        message.append_bytes_field(4, &parent.to_be_bytes());
    }
    message.append_bytes_field(5, span.name.as_bytes());
    message.append_varint_field(6, span.kind as u64);
    message.append_fixed64_field(7, span.started_unix_ns);
    message.append_fixed64_field(8, span.ended_unix_ns);
    for (key, value) in &span.attributes {
        message.append_bytes_field(9, &encode_attribute(key, value).0);
    }
    if let Some(linked) = span.link {
        let mut link = ProtobufMessage::default();
        link.append_bytes_field(1, &linked.trace_id.to_be_bytes());
        link.append_bytes_field(2, &linked.span_id.to_be_bytes());
        message.append_bytes_field(13, &link.0);
    }
    if span.is_error {
        let mut status = ProtobufMessage::default();
        status.append_varint_field(3, STATUS_ERROR);
        message.append_bytes_field(15, &status.0);
    }
    message
}

fn encode_attribute(key: &str, value: &AttributeValue) -> ProtobufMessage {
    let mut any = ProtobufMessage::default();
    match value {
        AttributeValue::Text(text) => any.append_bytes_field(1, text.as_bytes()),
        AttributeValue::Number(number) => any.append_varint_field(3, number.cast_unsigned()),
    }
    let mut message = ProtobufMessage::default();
    message.append_bytes_field(1, key.as_bytes());
    message.append_bytes_field(2, &any.0);
    message
}

/// The encoded fields of a protobuf message.
#[derive(Default)]
struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    /// Appends a field of varint type.
    fn append_varint_field(&mut self, field: u64, value: u64) {
        self.append_varint(field << 3);
        self.append_varint(value);
    }

    fn append_fixed64_field(&mut self, field: u64, value: u64) {
        self.append_varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a field that contains a string, bytes or a message.
    fn append_bytes_field(&mut self, field: u64, value: &[u8]) {
        self.append_varint(field << 3 | 2);
        self.append_varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn append_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
