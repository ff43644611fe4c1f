"""Two replicas of the controller on a cluster: replicas are killed and asked to go, kube-apiserver is killed, while claims come
and go. Judged from a journal of the API and by nothing else (lib/journal.py).

SILICA_CHAOS_S is how long the kills go on; `make soak-cluster` says 300.
"""

import os
import random

import pytest

from lib import chaos

CHAOS_S = int(os.environ.get("SILICA_CHAOS_S", "20"))


@pytest.mark.timeout(600 + CHAOS_S)
def test_two_replicas_under_claims(cluster):
    figures = chaos.run_cluster(cluster, CHAOS_S, int(os.environ.get("SILICA_SEED", random.randrange(1 << 32))))
    print(figures)
    assert figures["claims served"] >= chaos.CLUSTER_CLAIMS // 2
    assert figures[chaos.SERVER_KILLS] == 1
    assert figures[chaos.LEADER_KILLS] + figures[chaos.HANDED_OVER] > 0
