"""A collector of OpenTelemetry: grpcio with the project's own messages. Whatever is sent to it must be what those can read.

    with Collector() as c:
        ... OTEL_EXPORTER_OTLP_ENDPOINT=c.url ...
        c.wait(1)      the spans, as Span
"""

import collections
import concurrent.futures
import threading

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service

# In words of Python: attributes is a dict, ids are hexadecimal.
Span = collections.namedtuple("Span", "name trace id parent state kind began_ns ended_ns attributes error flags resource scope")


def attributes(pairs):
    return {p.key: getattr(p.value, p.value.WhichOneof("value")) for p in pairs}


class Collector(service.TraceServiceServicer):
    def __init__(self, port=0, credentials=None):
        self.came, self.spans, self.calls = threading.Condition(), [], []
        self.refusals = []  # statuses that the next calls get, and what they say
        self.partial = None  # (number, words) of the next answer
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        service.add_TraceServiceServicer_to_server(self, self.server)
        address = f"localhost:{port}" if credentials else f"127.0.0.1:{port}"
        self.port = self.server.add_secure_port(address, credentials) if credentials else self.server.add_insecure_port(address)
        assert self.port, "no port"
        self.url = f"{'https://localhost' if credentials else 'http://127.0.0.1'}:{self.port}"

    def Export(self, request, context):  # noqa: N802, as the service calls it
        with self.came:
            self.calls.append(dict(context.invocation_metadata()))
            if self.refusals:
                status, words = self.refusals.pop(0)
                self.came.notify_all()
                context.abort(status, words)
            for of_resource in request.resource_spans:
                for of_scope in of_resource.scope_spans:
                    self.spans += [Span(s.name, s.trace_id.hex(), s.span_id.hex(), s.parent_span_id.hex(), s.trace_state, s.kind,
                                        s.start_time_unix_nano, s.end_time_unix_nano, attributes(s.attributes), s.status.code == 2,
                                        s.flags, attributes(of_resource.resource.attributes), of_scope.scope.name)
                                   for s in of_scope.spans]
            self.came.notify_all()
            answer = messages.ExportTraceServiceResponse()
            if self.partial:
                answer.partial_success.rejected_spans, answer.partial_success.error_message = self.partial
                self.partial = None
            return answer

    def until(self, what, timeout_s=30):
        with self.came:
            assert self.came.wait_for(what, timeout_s), f"{len(self.calls)} calls, {len(self.spans)} spans"
        return self

    def wait(self, count, timeout_s=30):
        return list(self.until(lambda: len(self.spans) >= count, timeout_s).spans)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()
