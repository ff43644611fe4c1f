"""kill -9 of the API server under write load: what was acknowledged is there, versions never go back, watches go on.

SILICA_API_KILLS is how many kills there are; `make soak-apiserver` asks for 300.
"""

import os
import random

import pytest

from lib import controlplane
from lib.writers import Connection, Writers

pytestmark = pytest.mark.ours
KILLS = int(os.environ.get("SILICA_API_KILLS", "30"))
CLIENTS = 4


def token_of(api):
    answer = api.call("POST", "/api/v1/namespaces/default/serviceaccounts/default/token",
                      {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}})
    return answer["status"]["token"]


def whoami(api, token):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    return api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]["user"]["username"]


@pytest.mark.timeout(60 + 10 * KILLS)
def test_killed_under_load():
    rng = random.Random(KILLS)
    with controlplane.Silica("--log-level", "warn") as api:
        token, url = token_of(api), api.url
        old = Connection(api)  # with the certificate of the first kubeconfig, to the end
        old_files = [f.read_bytes() for f in (api.ca_file, api.client_cert, api.client_key)]
        with Writers(api, CLIENTS) as writers:
            unanswered = 0
            for _ in range(KILLS):
                writers.lost.wait(rng.uniform(0.02, 0.4))  # long enough for a few writes, or none
                api.kill()
                unanswered += writers.lost.wait(10)
                writers.pause()
                api.start()
                assert api.url == url, "the port was not remembered"
                writers.judge()
                writers.go_on()
            writers.lost.wait(0.5)
            writers.pause()
            writers.judge()
            writers.judge_followers()
            print(f"{KILLS} kills, {writers.writes} acknowledged writes, {unanswered} requests cut, "
                  f"{sum(f.resumed for f in writers.followers)} watches resumed, seed {writers.seed}")
            assert writers.writes > 5 * KILLS and unanswered > KILLS // 2
        assert whoami(api, token) == "system:serviceaccount:default:default"
        assert old_files[0] == api.ca_file.read_bytes()
        for path, text in zip((api.client_cert, api.client_key), old_files[1:]):
            path.write_bytes(text)
        assert old.call("GET", "/api/v1/namespaces/default")[0] == 200
