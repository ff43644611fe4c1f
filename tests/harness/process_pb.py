"""process.v1 as foreign clients know it: message classes and a stub built from the contract's field tables.

Written apart from src/, so a wrong field number in the runtime's own schema cannot agree with itself here.
Needs protobuf and grpcio.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, empty_pb2, message_factory

F = descriptor_pb2.FieldDescriptorProto
TYPES = {"string": F.TYPE_STRING, "bytes": F.TYPE_BYTES, "int32": F.TYPE_INT32, "uint32": F.TYPE_UINT32}
PACKAGE = "process.v1"
SERVICE = "process.v1.ProcessService"

# message: [(number, name, type, group)]; a type with a capital is a message, group a oneof or "repeated"
MESSAGES = {
    "PTY": [(1, "cols", "uint32", ""), (2, "rows", "uint32", "")],
    "ProcessConfig": [(1, "command", "string", "repeated"), (2, "env_vars", "map", ""),
                      (3, "cwd", "string", "optional")],
    "StartRequest": [(1, "config", "ProcessConfig", ""), (2, "pty", "PTY", "optional")],
    "InitEvent": [(1, "process_id", "int32", "")],
    "ExitEvent": [(1, "exit_code", "int32", "")],
    "StartResponse": [(1, "init", "InitEvent", "event"), (2, "stdout", "bytes", "event"),
                      (3, "stderr", "bytes", "event"), (4, "exit", "ExitEvent", "event")],
    "ExecuteRequest": [(1, "config", "ProcessConfig", "")],
    "ExecuteResponse": [(1, "exit_code", "int32", ""), (2, "stdout", "bytes", ""), (3, "stderr", "bytes", "")],
    "WriteStdinRequest": [(1, "process_id", "int32", ""), (2, "input", "bytes", "payload"),
                          (3, "eof", "google.protobuf.Empty", "payload")],
    "WriteStdinResponse": [],
    "SendSignalRequest": [(1, "process_id", "int32", ""), (2, "signal", "Signal", "")],
    "SendSignalResponse": [],
    "ResizeTTYRequest": [(1, "process_id", "int32", ""), (2, "cols", "uint32", ""), (3, "rows", "uint32", "")],
    "ResizeTTYResponse": [],
}
SIGNALS = {"SIGNAL_UNSPECIFIED": 0, "SIGNAL_SIGINT": 2, "SIGNAL_SIGKILL": 9, "SIGNAL_SIGTERM": 15}
METHODS = {"Start": ("StartRequest", "StartResponse", True),
           "Execute": ("ExecuteRequest", "ExecuteResponse", False),
           "WriteStdin": ("WriteStdinRequest", "WriteStdinResponse", False),
           "SendSignal": ("SendSignalRequest", "SendSignalResponse", False),
           "ResizeTTY": ("ResizeTTYRequest", "ResizeTTYResponse", False)}


def add_field(message, number, name, kind, group):
    f = message.field.add(name=name, number=number, label=F.LABEL_OPTIONAL)
    if kind == "map":
        entry = message.nested_type.add(name="EnvVarsEntry")
        entry.options.map_entry = True
        add_field(entry, 1, "key", "string", "")
        add_field(entry, 2, "value", "string", "")
        f.label, f.type, f.type_name = F.LABEL_REPEATED, F.TYPE_MESSAGE, f".{PACKAGE}.{message.name}.EnvVarsEntry"
        return
    if kind == "Signal":
        f.type, f.type_name = F.TYPE_ENUM, f".{PACKAGE}.Signal"
    elif kind in TYPES:
        f.type = TYPES[kind]
    else:
        f.type, f.type_name = F.TYPE_MESSAGE, f".{kind}" if "." in kind else f".{PACKAGE}.{kind}"
    if group == "repeated":
        f.label = F.LABEL_REPEATED
    elif group == "optional":
        f.proto3_optional = True
        f.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name="_" + name)
    elif group:
        names = [o.name for o in message.oneof_decl]
        if group not in names:
            message.oneof_decl.add(name=group)
        f.oneof_index = [o.name for o in message.oneof_decl].index(group)


def file_proto():
    f = descriptor_pb2.FileDescriptorProto(name="judge/process.proto", package=PACKAGE, syntax="proto3",
                                           dependency=["google/protobuf/empty.proto"])
    signal = f.enum_type.add(name="Signal")
    for name, number in SIGNALS.items():
        signal.value.add(name=name, number=number)
    for name, fields in MESSAGES.items():
        message = f.message_type.add(name=name)
        for field in fields:
            add_field(message, *field)
    service = f.service.add(name="ProcessService")
    for name, (request, response, is_stream) in METHODS.items():
        service.method.add(name=name, input_type=f".{PACKAGE}.{request}", output_type=f".{PACKAGE}.{response}",
                           server_streaming=is_stream)
    return f


pool = descriptor_pool.DescriptorPool()
pool.AddSerializedFile(empty_pb2.DESCRIPTOR.serialized_pb)
pool.AddSerializedFile(file_proto().SerializeToString())
for _name in MESSAGES:
    globals()[_name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{_name}"))
Empty = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.Empty"))


class Stub:
    """One callable per method, as a generated stub would have."""

    def __init__(self, channel):
        for name, (request, response, is_stream) in METHODS.items():
            make = channel.unary_stream if is_stream else channel.unary_unary
            setattr(self, name, make(f"/{SERVICE}/{name}", request_serializer=globals()[request].SerializeToString,
                                     response_deserializer=globals()[response].FromString))


def config(*command, env=None, cwd=None):
    c = globals()["ProcessConfig"](command=command, env_vars=env or {})
    if cwd is not None:
        c.cwd = cwd
    return c


def execute(*command, **kw):
    return globals()["ExecuteRequest"](config=config(*command, **kw))


def start(*command, pty=None, **kw):
    """pty is (cols, rows); (0, 0) asks for a terminal of unstated size."""
    request = globals()["StartRequest"](config=config(*command, **kw))
    if pty is not None:
        request.pty.SetInParent()
        request.pty.cols, request.pty.rows = pty
    return request
