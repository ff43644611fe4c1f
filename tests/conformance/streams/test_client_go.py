"""client-go in our small program (conformance/kube/client-go): both executors, both kinds of port-forward, logs."""

import subprocess

import pytest

from lib import controlplane


def test_streams(server, pages):
    try:
        program = controlplane.peer("client-go")
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    ns = server.make_namespace()
    pod = server.make_pod(ns, "local")
    server.log_file(pod).write_text("2026-11-16T09:30:00.000000001Z stdout F a line\n")
    done = subprocess.run([program, "-kubeconfig", server.kubeconfig, "-namespace", ns, "-pod", "local", "-port", str(pages.port),
                           "streams"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    want = []
    for kind in ("spdy", "websocket"):
        want += [f'{kind}: "out\\n" "err\\n" <nil>', f"{kind}: exit true true", f"{kind}: echoed true <nil>",
                 f"{kind}: a long word of 100000 <nil>"]
    want += [f"{kind}: forwarded {5 * len(pages.blob)} bytes, <nil>" for kind in ("spdy", "websocket")]
    assert done.stdout.splitlines() == [*want, 'logs: "a line\\n" <nil>']
