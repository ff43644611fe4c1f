"""Server reflection as grpcurl-like clients use it, protocol versions v1 and v1alpha."""

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_reflection.v1alpha import reflection_pb2

from harness import process_pb as pb

pytestmark = pytest.mark.contract("B")
VERSIONS = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]


@pytest.fixture(params=VERSIONS)
def ask(request, runtime):
    """Asks a list of questions on one stream. v1 and v1alpha have the same messages, only the name differs."""
    with grpc.insecure_channel(runtime.grpc_address) as channel:
        call = channel.stream_stream(f"/{request.param}/ServerReflectionInfo",
                                     request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
                                     response_deserializer=reflection_pb2.ServerReflectionResponse.FromString)
        yield lambda *questions: list(call(iter([reflection_pb2.ServerReflectionRequest(**q) for q in questions]),
                                           timeout=20))


def files(answer):
    assert answer.WhichOneof("message_response") == "file_descriptor_response", answer
    return [descriptor_pb2.FileDescriptorProto.FromString(f)
            for f in answer.file_descriptor_response.file_descriptor_proto]


def resolve(ask, answer):
    """A pool with the answer's files and, asked for by name, whatever they import."""
    pool = descriptor_pool.DescriptorPool()
    have = {f.name: f for f in files(answer)}
    while True:
        missing = {d for f in have.values() for d in f.dependency} - set(have)
        if not missing:
            break
        for name in missing:
            for f in files(ask({"file_by_filename": name})[0]):
                have[f.name] = f
    added = set()
    while len(added) < len(have):
        for name, f in have.items():
            if name not in added and set(f.dependency) <= added:
                pool.Add(f)
                added.add(name)
    return pool


def test_list_services(ask):
    answer = ask({"list_services": "*"})[0]
    names = {s.name for s in answer.list_services_response.service}
    assert pb.SERVICE in names
    assert set(VERSIONS) <= names


@pytest.mark.parametrize("symbol", [pb.SERVICE, pb.SERVICE + ".Start", "process.v1.ProcessConfig", "process.v1.Signal"])
def test_file_containing_symbol(ask, symbol):
    pool = resolve(ask, ask({"file_containing_symbol": symbol})[0])
    service = pool.FindServiceByName(pb.SERVICE)
    for name, (request, response, is_stream) in pb.METHODS.items():
        method = service.methods_by_name[name]
        assert method.input_type.full_name == f"{pb.PACKAGE}.{request}"
        assert method.output_type.full_name == f"{pb.PACKAGE}.{response}"
        assert method.server_streaming == is_stream and not method.client_streaming


def test_schema_is_the_contract(ask):
    pool = resolve(ask, ask({"file_containing_symbol": pb.SERVICE})[0])
    for name in pb.MESSAGES:
        theirs = pool.FindMessageTypeByName(f"{pb.PACKAGE}.{name}")
        ours = pb.pool.FindMessageTypeByName(f"{pb.PACKAGE}.{name}")
        assert [(f.number, f.name, f.type, f.is_repeated, f.has_presence) for f in theirs.fields] == \
               [(f.number, f.name, f.type, f.is_repeated, f.has_presence) for f in ours.fields], name
    values = pool.FindEnumTypeByName(f"{pb.PACKAGE}.Signal").values_by_name
    assert {n: v.number for n, v in values.items()} == pb.SIGNALS


def test_unknown_symbol_and_file(ask):
    for question in ({"file_containing_symbol": "no.such.Thing"}, {"file_by_filename": "no/such.proto"}):
        answer = ask(question)[0]
        assert answer.WhichOneof("message_response") == "error_response"
        assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_several_questions_on_one_stream(ask):
    answers = ask({"list_services": ""}, {"file_containing_symbol": "no.such.Thing"}, {"list_services": ""})
    assert [a.WhichOneof("message_response") for a in answers] == \
           ["list_services_response", "error_response", "list_services_response"]
    assert answers[1].original_request.file_containing_symbol == "no.such.Thing"
