"""A cluster per session (lib/cluster.py): a real control plane, its scheduler, and nodes that KWOK plays. Each test has
namespaces of its own. A test that fails carries the logs of everything."""

import pytest

from lib import controlplane
from lib.cluster import Cluster

clusters = []


@pytest.fixture(scope="session")
def cluster():
    try:
        made = Cluster()
    except controlplane.Unavailable as e:
        pytest.skip(str(e))
    with made:
        clusters.append(made)
        yield made
        clusters.remove(made)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for made in clusters:
            report.sections += [(f"log of {name}", text) for name, text in made.logs().items()]
    return report
