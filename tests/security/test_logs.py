"""What another account can ask of a daemon without end leaves few lines in its log."""

import re
import subprocess
import sys
import time
import urllib.parse

import pytest

from lib import up as ups

pytestmark = pytest.mark.ours
OTHER = 65533
REQUESTS = 3000

# So many requests with a token that is none, on one connection.
FLOOD = r"""
import http.client, ssl, sys
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
there = http.client.HTTPSConnection(sys.argv[1], int(sys.argv[2]), context=context, timeout=60)
for _ in range(int(sys.argv[3])):
    there.request("GET", "/api/v1/pods", headers={"Authorization": "Bearer none"})
    answer = there.getresponse()
    answer.read()
    assert answer.status == 401, answer.status
"""


@pytest.fixture(scope="module", params=["root", "user"])
def up(request):
    with ups.as_caller(request.param) as started:
        yield started


def lines(up, event):
    texts = [path.read_text(errors="replace") for path in (up.data / "logs").glob("control*/*log*")]
    return [line for text in texts for line in text.splitlines() if f"event={event} " in line]


def test_requests_without_a_token(up):
    url = urllib.parse.urlparse(up.api.url)
    began = time.monotonic()
    subprocess.run(["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", sys.executable, "-c", FLOOD, url.hostname,
                    str(url.port), str(REQUESTS)], check=True, cwd="/", timeout=120)
    seconds = time.monotonic() - began
    said = lines(up, "api.unauthorized")
    assert said and len(said) <= seconds + 5
    assert int(re.search(r"count=(\d+)", said[-1])[1]) > 0
