"""What a scenario asked and what the API answered, as data that can be compared.

A scenario is a test that speaks HTTP through a Transcript. The transcript of the real kube-apiserver is committed as
golden/NAME.json and is the specification: the real server must still give it, and ours must give it too, but for the
rows of differences.py. SILICA_RECORD=1 writes the goldens anew from the real target.

What no two runs share is replaced before it is compared: the namespace by NS, times by <time>, the n-th uid met by
<uidN>, the n-th resourceVersion of an object by <rvN> (so "unchanged" and "changed" are part of the answer),
resourceVersions of lists by <rv>, ages in tables by <age>. managedFields are left out unless the step keeps them.
"""

import difflib
import fnmatch
import json
import os
import pathlib
import re
import shlex
import time

from differences import DIFFERENCES

GOLDEN = pathlib.Path(__file__).parent / "golden"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
AGE = re.compile(r"(\d+[smhd])+|<invalid>")
VERSION_IN_TEXT = [(re.compile(r"ResourceVersion in record \(\d+\)"), "ResourceVersion in record (<rv>)"),
                   (re.compile(r"too old resource version: (\d+) \(\d+\)"), r"too old resource version: \1 (<rv>)"),
                   (re.compile(r'"resourceVersion":"\d+"'), '"resourceVersion":"<rv>"'),
                   (re.compile(r'\\"resourceVersion\\":\\"\d+\\"'), '\\\\"resourceVersion\\\\":\\\\"<rv>\\\\"'),
                   (re.compile(r"kube-api-access-[a-z0-9]{5}"), "kube-api-access-<random>")]
LIST_VERSION_IN_YAML = re.compile(r'(?m)^(kind: \w+List\nmetadata:\n(?:  continue: .*\n)?  resourceVersion: ")\d+"')
VERSION_IN_YAML = re.compile(r'("?resourceVersion"?: "|Resource Version:\s+)(\d+)\b')
LOG_LINE = re.compile(r"[IWE]\d{4} \d\d:\d\d:\d\d")  # kubectl's own log: when it speaks is a matter of time
AGE_IN_LINE = re.compile(r"(?<=\s)\d+[smh](\d+s)?(?=\s|$)")
DATE = re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")
LONG_CHARACTERS = 4000  # more is written as its length
IN_STEPS = 20  # seconds that a scenario waits for something to become true
NEVER = set()  # what was waited for in vain: the next test need not wait for it again


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.bytes = response.status_code, response.headers, response.content
        self.type = (response.headers.get("content-type") or "").partition(";")[0]
        self.json = None
        if self.type == "application/json" or self.bytes[:1] == b"{":
            try:
                self.json = json.loads(self.bytes)
            except ValueError:
                pass

    def __getitem__(self, key):
        return self.json[key]

    @property
    def rv(self):
        return self.json["metadata"]["resourceVersion"]

    @property
    def uid(self):
        return self.json["metadata"]["uid"]


class Transcript:
    def __init__(self, api, name, ns):
        self.api, self.name, self.ns = api, name, ns
        self.steps, self.numbers, self.aliases = [], {}, {}

    # Asking.

    def call(self, step, method, path, body=None, raw=None, headers=None, keep=(), only=None, **query):
        """One request, recorded. body is sent as JSON; raw as it is, with no content type unless headers give one.
        keep names what is not left out: "managedFields", "warning". only(json) picks the part that is compared."""
        answer = self.ask(method, path, body, raw, headers, **query)
        row = {"step": step, "request": self.request_line(method, path, query)}
        if headers:
            row["headers"] = self.clean(headers)
        if body is not None:
            row["send"] = self.clean(body)
        row["status"], row["type"] = answer.status, answer.type
        if "warning" in keep or answer.headers.get("warning"):
            row["warning"] = self.clean(answer.headers.get("warning"))
        shown = answer.json if answer.json is not None else answer.bytes.decode("utf-8", "replace")
        row["body"] = self.clean(only(shown) if only and answer.status < 400 else shown, keep)
        self.steps.append(row)
        return answer

    def ask(self, method, path, body=None, raw=None, headers=None, token=None, **query):
        """One request that is not part of the record."""
        headers = dict(headers or {})
        if body is not None:
            raw = json.dumps(body).encode()
            headers.setdefault("content-type", "application/json")
        return Answer(self.api.request(method, self.path(path), data=raw, headers=headers, params=query, token=token))

    def get(self, step, path, **kw):
        return self.call(step, "GET", path, **kw)

    def post(self, step, path, body=None, **kw):
        return self.call(step, "POST", path, body, **kw)

    def put(self, step, path, body=None, **kw):
        return self.call(step, "PUT", path, body, **kw)

    def delete(self, step, path, body=None, **kw):
        return self.call(step, "DELETE", path, body, **kw)

    def patch(self, step, path, kind, body, headers=None, **kw):
        """kind: json, merge, strategic or apply."""
        name = {"json": "json-patch", "merge": "merge-patch", "strategic": "strategic-merge-patch", "apply": "apply-patch"}[kind]
        form = "yaml" if kind == "apply" else "json"
        return self.call(step, "PATCH", path, body, headers={"content-type": f"application/{name}+{form}", **(headers or {})}, **kw)

    def watch(self, step, path, count=None, until=None, keep=(), headers=None, seconds=10, **query):
        """The events of one watch, up to count of them or the first for which until(event) is true, recorded."""
        events = []
        with self.api.watch(self.path(path), {"timeoutSeconds": seconds, **query}, headers) as stream:
            row = {"step": step, "request": self.request_line("GET", path, query), "status": stream.status_code}
            if stream.status_code != 200:
                row["body"] = self.clean(Answer(stream).json)
                self.steps.append(row)
                return []
            for line in stream.iter_lines():
                event = json.loads(line)
                events.append(event)
                if len(events) == count or until and until(event):
                    break
        row["events"] = [self.clean(e, keep) for e in events]
        self.steps.append(row)
        return events

    def wait(self, what, check):
        """Asks again, unrecorded, until check() is true: for what controllers do in their own time."""
        key = (self.api.kind, self.text(what))
        assert key not in NEVER or check(), f"{what}: was not so for an earlier test"
        deadline = time.monotonic() + IN_STEPS
        while not check():
            if time.monotonic() > deadline:
                NEVER.add(key)
                raise AssertionError(f"{what}: not within {IN_STEPS} s")
            time.sleep(0.05)

    def wait_gone(self, path):
        self.wait(f"{path} is gone", lambda: self.ask("GET", path).status == 404)

    def note(self, step, value):
        """Records something that is not the answer to one request."""
        self.steps.append({"step": step, "value": self.clean(value)})

    def alias(self, value, name):
        """From here on value is written as <name>: for names that the server made."""
        self.aliases[value] = f"<{name}>"

    def cli(self, step, kubectl, line, stdin=None, env=None, sort=False):
        """One run of kubectl, recorded with its exit status and both streams. sort: the order of lines says nothing."""
        done = kubectl.run(*shlex.split(line), stdin=stdin, env=env)
        out, err = self.lines(done.stdout), self.lines(done.stderr)
        self.steps.append({"step": step, "request": self.text(f"kubectl {line}"), "status": done.returncode,
                           "out": sorted(out) if sort else out, "err": err})
        return done.stdout

    # Making it comparable.

    def lines(self, text):
        """What a program printed: columns two blanks apart, ages and dates as marks."""
        text = LIST_VERSION_IN_YAML.sub(r'\1<rv>"', text)  # of the whole server: others write meanwhile
        text = VERSION_IN_YAML.sub(lambda m: m.group(1) + self.number("rv", m.group(2)), text)
        out = []
        for line in text.splitlines():
            line = DATE.sub("<time>", self.text(line))
            line = re.sub(r"(?<=\S)\s{2,}", "  ", AGE_IN_LINE.sub("<age>", line)).rstrip()
            if not LOG_LINE.match(line):
                out.append(line)
        return out

    def path(self, path):
        return path.replace("{ns}", self.ns)

    def request_line(self, method, path, query):
        for value, name in self.aliases.items():
            path = path.replace(value, name)
        shown = "&".join(f"{k}={self.text(str(v)) if k not in ('resourceVersion', 'continue') else self.version(v)}"
                         for k, v in query.items())
        return f"{method} {path.replace('{ns}', 'NS').replace(self.ns, 'NS')}{'?' + shown if shown else ''}"

    @staticmethod
    def version(value):
        """What a request says of versions: those of the scenario as they are, those of the server as a mark."""
        if str(value).isdigit():
            return value if int(value) < 10 else "<rv>"
        return value if len(value) < 20 else "<continue>"

    def number(self, kind, value):
        return self.numbers.setdefault((kind, value), f"<{kind}{sum(k == kind for k, _ in self.numbers) + 1}>")

    def text(self, value):
        if len(value) > LONG_CHARACTERS:
            return f"<{len(value)} characters>"
        if self.ns:
            value = value.replace(self.ns, "NS")
        for known, name in self.aliases.items():
            value = value.replace(known, name)
        value = value.replace(self.api.url, "<server>").replace(self.api.url.split("//")[1], "<server>")
        value = UID.sub(lambda m: self.number("uid", m.group()), value)
        for pattern, plain in VERSION_IN_TEXT:
            value = pattern.sub(plain, value)
        if AGE.fullmatch(value):
            return "<age>"
        return TIME.sub("<time>", value)

    def clean(self, value, keep=()):
        if isinstance(value, dict):
            value, out = in_order(value), {}
            for k, v in value.items():
                if k == "managedFields" and k not in keep:
                    continue
                out[self.text(k)] = self.member(k, v, value, keep)
            return out
        if isinstance(value, list):
            return [self.clean(v, keep) for v in value]
        return self.text(value) if isinstance(value, str) else value

    def member(self, key, value, parent, keep):
        if key == "resourceVersion" and isinstance(value, str) and value.isdigit():
            if int(value) < 10:  # made up by the scenario
                return value
            return self.number("rv", value) if {"name", "uid", "creationTimestamp"} & set(parent) else "<rv>"
        if key == "value" and parent.get("path") == "/metadata/resourceVersion":
            return "<rv>"
        if key == "continue" and value:
            return "<continue>"
        if key == "token" and isinstance(value, str) and value.count(".") == 2:
            return "<token>"
        if key == "managedFields" and isinstance(value, list):
            # Servers put the earlier second first: whether two writes fall into one is the machine's doing.
            value = sorted(value, key=lambda m: [m.get(k, "") for k in ("operation", "manager", "apiVersion", "subresource")])
        if key == "ca.crt" and value:
            return "<certificate>"
        return self.clean(value, keep)

    # Judging.

    def finish(self):
        golden = GOLDEN / f"{self.name}.json"
        if os.environ.get("SILICA_RECORD") and self.api.kind == "real":
            golden.write_text(json.dumps(self.steps, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
            return
        assert golden.exists(), f"{golden.name} is not recorded; see transcript.py"
        wanted = json.loads(golden.read_text())
        got = json.loads(json.dumps(self.steps))
        if self.api.kind != "real":
            succeeded = [g["step"] for w, g in zip(wanted, got) if w.get("status", 0) >= 400 > g.get("status", 0) and "request" in g and not g["request"].startswith("kubectl")]
            assert not succeeded, f"{self.name}: {self.api.kind} does what is to be refused: {succeeded}"
            wanted, got = allow(self.name, wanted), allow(self.name, got)
        if wanted != got:
            raise AssertionError(f"{self.name}: {self.api.kind} does not answer as golden/{golden.name} says\n{differ(wanted, got)}")


def in_order(value):
    """A Status with its causes sorted: kube-apiserver itself gives several of them in any order."""
    causes = (value.get("details") or {}).get("causes") if value.get("kind") == "Status" else None
    if not causes or len(causes) < 2:
        return value
    details = {**value["details"], "causes": sorted(causes, key=lambda c: (c.get("field", ""), c["message"]))}
    return {**value, "details": details, "message": value["message"].partition("[")[0] + "[<causes>]"}


def allow(name, steps):
    """Takes out what may differ: rows of (scenario, step, path, reason), the first three as shell patterns."""
    kept = []
    for s in steps:
        rows = [d for d in DIFFERENCES if fnmatch.fnmatchcase(name, d[0]) and fnmatch.fnmatchcase(s["step"], d[1])]
        if any(d[2] == "*" for d in rows):
            s = {"step": s["step"]}
        for d in rows:
            remove(s, d[2].split("."))
        kept.append(s)
    return kept


def remove(value, path):
    """Removes the member at path; `*` stands for every member or element."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        if fnmatch.fnmatchcase(str(key), path[0]):
            if len(path) > 1:
                remove(value[key], path[1:])
            elif isinstance(value, dict):
                del value[key]


def differ(wanted, got):
    out = []
    for i in range(max(len(wanted), len(got))):
        w, g = (json.dumps(side[i], indent=1, sort_keys=True).splitlines() if i < len(side) else [] for side in (wanted, got))
        if w != g:
            step = (wanted[i] if i < len(wanted) else got[i])
            out += [f"step '{step['step']}': {step.get('request', '')}", *difflib.unified_diff(w, g, "wanted", "got", lineterm="", n=2)]
    return "\n".join(out[:400])


def field(number, payload):
    """One length-delimited protobuf field; texts are sent as UTF-8."""
    payload = payload.encode() if isinstance(payload, str) else payload
    size, n = b"", len(payload)
    while n > 127:
        size, n = size + bytes([n & 127 | 128]), n >> 7
    return bytes([number << 3 | 2]) + size + bytes([n]) + payload


def protobuf(api_version, kind, raw):
    """Kubernetes' protobuf envelope around the bytes of one message: 'k8s\\0', then runtime.Unknown."""
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)
