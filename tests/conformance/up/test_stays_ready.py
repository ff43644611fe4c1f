"""The readiness story: a command of half a minute, a probe every second, and the Pod never says that it is not ready.

The command begins with the session and is asked for last: the other tests are what the machine does meanwhile.
"""


def test_stays_ready(story, up):
    done = story.command.result(100)
    assert (done.exit_code, done.stdout) == (0, "worked\n"), done
    seen = story.settled()
    assert seen[0]["spec"]["containers"][0]["readinessProbe"]["periodSeconds"] == 1
    assert {ready(pod) for pod in seen} == {"True"}, "it was not ready at some moment"
    assert {c["restartCount"] for pod in seen for c in pod["status"]["containerStatuses"]} == {0}
    assert len({c["containerID"] for pod in seen for c in pod["status"]["containerStatuses"]}) == 1
    events = up.api.call("GET", "/api/v1/namespaces/default/events")["items"]
    assert [e["message"] for e in events if e["reason"] == "Unhealthy" and e["involvedObject"]["name"] == story.pod] == []


def ready(pod):
    return next(c["status"] for c in pod["status"]["conditions"] if c["type"] == "Ready")
