"""Prints the spans in the OTLP requests of a folder (*.pb) as a JSON array."""

import json
import pathlib
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def attributes_of(message):
    pairs = ((one.key, one.value) for one in message.attributes)
    return {key: getattr(value, value.WhichOneof("value")) for key, value in pairs}


spans = []
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.pb")):
    request = ExportTraceServiceRequest()
    request.ParseFromString(file.read_bytes())
    for resource_spans in request.resource_spans:
        resource = attributes_of(resource_spans.resource)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                spans.append(
                    {
                        "service": resource["service.name"],
                        "host": resource["host.name"],
                        "trace_id": span.trace_id.hex(),
                        "span_id": span.span_id.hex(),
                        "parent_id": span.parent_span_id.hex(),
                        "name": span.name,
                        "start_ns": span.start_time_unix_nano,
                        "end_ns": span.end_time_unix_nano,
                        "attributes": attributes_of(span),
                        "links": [link.trace_id.hex() + "-" + link.span_id.hex() for link in span.links],
                    }
                )
print(json.dumps(spans))
