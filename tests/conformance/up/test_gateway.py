"""Gateway mode: the SDK waits for a Gateway's address and speaks to the router there, on port 80."""

import socket

import pytest
from conftest import HAS_POOLS, RELEASE, create

GATEWAYS = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways"
ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes"


@pytest.fixture(scope="module")
def gateway(up):
    """The shape of the public manifests: any class, one HTTP listener, everything to the router."""
    up.api.call("POST", GATEWAYS, {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "external-http-gateway"},
        "spec": {"gatewayClassName": "any-class", "listeners": [{"name": "http", "protocol": "HTTP", "port": 80}]}})
    up.api.call("POST", ROUTES, {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "sandbox-router-route"},
        "spec": {"parentRefs": [{"name": "external-http-gateway"}],
                 "rules": [{"backendRefs": [{"name": "sandbox-router-svc", "port": 8080}]}]}})
    yield "external-http-gateway"
    up.api.call("DELETE", f"{GATEWAYS}/external-http-gateway")
    up.api.call("DELETE", f"{ROUTES}/sandbox-router-route")


def port_80_is_allowed():
    try:
        socket.create_server(("127.63.255.1", 80)).close()
        return True
    except OSError:
        return False


def test_a_session(up, gateway):
    from k8s_agent_sandbox import SandboxClient, models
    config = models.SandboxGatewayConnectionConfig(gateway_name=gateway, gateway_ready_timeout=60)
    if not port_80_is_allowed():
        pytest.skip("this account may not listen on port 80")
    client = SandboxClient(connection_config=config)
    box = create(client)
    try:
        assert box.commands.run("echo by gateway").stdout == "by gateway\n"
        box.files.write("note", "text")
        assert box.files.read("note") == b"text"
        assert box.commands.run("false").exit_code == 1
    finally:
        box.terminate()


def session_of_the_async_client(up, gateway):
    import asyncio

    from k8s_agent_sandbox import AsyncSandboxClient, models
    if not port_80_is_allowed():
        pytest.skip("this account may not listen on port 80")

    async def use():
        config = models.SandboxGatewayConnectionConfig(gateway_name=gateway, gateway_ready_timeout=60)
        async with AsyncSandboxClient(connection_config=config) as client:
            box = await client.create_sandbox("python-sandbox-pool" if HAS_POOLS else "python-sandbox-template")
            return (await box.commands.run("echo by gateway")).stdout

    assert asyncio.run(use()) == "by gateway\n"


if RELEASE >= (0, 4):
    test_async = session_of_the_async_client
