"""The published Python SDK as a stopwatch, run in its own virtualenv: create_sandbox, commands.run, terminate, in direct mode.

usage: sdk_session.py ROUTER POOL SESSIONS RUNS          KUBECONFIG says where; prints one line of JSON, times in ms
"""

import json
import statistics
import sys
import time

from k8s_agent_sandbox import SandboxClient, models


def main():
    router, pool, sessions, runs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    client = SandboxClient(connection_config=models.SandboxDirectConnectionConfig(api_url=router))
    created, first, each = [], [], []
    for _ in range(sessions + 1):
        began = time.perf_counter()
        box = client.create_sandbox(pool)
        made = time.perf_counter()
        assert box.commands.run("echo 1").stdout == "1\n"
        said = time.perf_counter()
        for _ in range(runs):
            at = time.perf_counter()
            assert box.commands.run("echo 1").stdout == "1\n"
            each.append(time.perf_counter() - at)
        box.terminate()
        created.append(made - began)
        first.append(said - began)
        time.sleep(0.1)  # the pool fills up again
    # The first session also reads the kubeconfig and connects.
    print(json.dumps({"create_ms": statistics.median(created[1:]) * 1000, "first_ms": statistics.median(first[1:]) * 1000,
                      "run_ms": statistics.median(each) * 1000}))


main()
