"""pydantic-ai-backend, unmodified, with a kubeconfig of `silica up`: release 0.2.29 in both of its modes, 0.2.37 with pydantic-ai's own
suite for workspaces, and the SessionManager of both.

Calls of 0.2.37 come from several threads, and kubernetes.stream exchanges a method of the shared ApiClient for as long as it
connects: of two at once, one may send a plain GET, which any server refuses. Here they connect one after the other; all
else stays at once.
"""

import importlib.metadata
import threading

import kubernetes.stream
import pytest

from lib.up import Up

RELEASE = tuple(map(int, importlib.metadata.version("pydantic-ai-backend").split(".")))
collect_ignore = ["test_workspace.py" if RELEASE < (0, 2, 30) else "test_modes.py"]
connecting, stream = threading.Lock(), kubernetes.stream.stream


def one_by_one(*args, **kw):
    with connecting:
        return stream(*args, **kw)


kubernetes.stream.stream = one_by_one


@pytest.fixture(scope="session")
def up():
    with Up("--pod-addresses") as started:  # 0.2.29 speaks HTTP to the address of a Pod
        yield started
