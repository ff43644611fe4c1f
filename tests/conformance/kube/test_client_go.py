"""client-go in a small program of ours: what it saw of the API, line by line."""

import subprocess

import pytest

from lib import controlplane

WANTED = {
    "typed": [
        "created a map[k:v] map[b:[0 1 255]]",
        "created with a version: resourceVersion should not be set on objects to be created",
        "created again: exists true",
        'missing: not found true: configmaps "none" not found',
        "stale update: conflict true",
        "patched map[k:w n:1]",
        "applied b by me",
        "listed 1",
        "deleted with another uid: conflict true",
        "watched MODIFIED a, wanted MODIFIED",
        "watched MODIFIED a, wanted MODIFIED",
        "watched DELETED a, wanted DELETED",
        "pod true Pending Always Always",
        "pod Running",
        "invalid pod: true",
        "may create pods true",
        "token of system:serviceaccount:NS:default",
    ],
    "dynamic": [
        "created s Running generation 1",
        "updated to generation 2",
        "status node-1 generation 2",
        "status node-2",
        "invalid: true",
        "pages of 4 and 2, 2 more said",
        "applied, labels map[applied:yes x:y]",
        "left 0",
    ],
    "informers": [
        "watch-list true",
        "filled 3 3",
        "cache holds 2",
        "c0 has map[k:v]",
        "index holds 3",
    ],
    "election": [
        "one leads: holder one, 0 transitions",
        "one ends",
        "two leads: holder two, 1 transitions",
        "two ends",
    ],
}


@pytest.mark.parametrize("part", WANTED)
def test_part(api, ns, part):
    try:
        program = controlplane.peer("client-go")
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    done = subprocess.run([program, "-kubeconfig", api.kubeconfig, "-namespace", ns, part], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == WANTED[part]
