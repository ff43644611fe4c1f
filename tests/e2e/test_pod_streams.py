"""Pod streams, judged by bytes: what a client of WebSocket or SPDY may do wrong, and what it must be told."""

import base64
import json
import os
import signal
import socket
import struct
import threading
import time
import urllib.parse
import zlib

import pytest
import websocket

from harness import podstream, raw
from harness.server import wait_until

pytestmark = pytest.mark.core

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


@pytest.fixture(scope="module")
def streams():
    s = podstream.Podstream()
    yield s
    was_alive = s.is_alive()
    status, log = s.stop(), s.log
    s.remove()
    assert was_alive and status == 0 and "Sanitizer" not in log, f"status {status}:\n{log[-20000:]}"


def exec_url(s, *command, scheme="ws", **flags):
    query = [("command", word) for word in command] + [(k, str(v).lower()) for k, v in flags.items()]
    return f"{scheme}://{s.address}{s.path('exec', urllib.parse.urlencode(query))}"


def connect(s, *command, protocols=("v5.channel.k8s.io",), **flags):
    flags = flags or {"stdout": True, "stderr": True}
    return websocket.create_connection(exec_url(s, *command, **flags), subprotocols=list(protocols), timeout=20)


def read_channels(ws):
    """All channels until the close frame; and its code."""
    channels = {}
    while True:
        opcode, data = ws.recv_data(control_frame=True)
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            return channels, struct.unpack("!H", data[:2])[0]
        if opcode in (websocket.ABNF.OPCODE_BINARY, websocket.ABNF.OPCODE_TEXT):
            channels[data[0]] = channels.get(data[0], b"") + data[1:]


def status_of(channels):
    return json.loads(channels[ERROR])


def frame(opcode, payload, fin=True, masked=True):
    mask = b"\x01\x02\x03\x04"
    head = bytes([(0x80 if fin else 0) | opcode])
    bit = 0x80 if masked else 0
    n = len(payload)
    head += bytes([bit | n]) if n < 126 else bytes([bit | 126]) + struct.pack("!H", n) if n < 65536 else \
        bytes([bit | 127]) + struct.pack("!Q", n)
    return head + (mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if masked else payload)


def upgrade_ws(s, path, protocol="v5.channel.k8s.io", extra=b""):
    """A WebSocket by hand: the socket behind the 101."""
    c = raw.connect(s)
    c.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
              f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n".encode() + extra)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += c.recv(1)
    assert head.startswith(b"HTTP/1.1 101 ") and b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, head
    return c


# ---- how a command ends ----

def test_output_and_exit_code(streams):
    ws = connect(streams, "sh", "-c", "echo out; echo err >&2; exit 3")
    channels, code = read_channels(ws)
    assert channels[STDOUT] == b"out\n" and channels[STDERR] == b"err\n" and code == 1000
    assert status_of(channels) == {
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": "command terminated with non-zero exit code: exit status 3",
        "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}


def test_success_has_no_details(streams):
    channels, _ = read_channels(connect(streams, "true"))
    assert channels == {ERROR: b'{"metadata":{},"status":"Success"}'}


def test_a_signal_is_128_and_more(streams):
    channels, _ = read_channels(connect(streams, "sh", "-c", "kill -9 $$"))
    assert status_of(channels)["details"]["causes"][0]["message"] == "137"


def test_a_missing_program_is_127(streams):
    channels, _ = read_channels(connect(streams, "no-such-program"))
    assert channels[STDERR] == b"cannot run 'no-such-program': No such file or directory\n"
    status = status_of(channels)
    assert status["reason"] == "NonZeroExitCode" and status["details"]["causes"][0]["message"] == "127"


def test_it_ends_with_the_process_and_not_with_its_pipes(streams):
    began = time.monotonic()
    channels, _ = read_channels(connect(streams, "sh", "-c", "sleep 60 & echo $!"))
    os.kill(int(channels[STDOUT]), signal.SIGKILL)
    assert status_of(channels)["status"] == "Success" and time.monotonic() - began < 50


def test_all_output_comes_before_the_status(streams):
    channels, _ = read_channels(connect(streams, "sh", "-c", "head -c 3000000 /dev/zero; head -c 70000 /dev/zero >&2"))
    assert len(channels[STDOUT]) == 3000000 and len(channels[STDERR]) == 70000
    assert status_of(channels)["status"] == "Success"


@pytest.mark.parametrize("protocol,status", [("channel.k8s.io", b"command terminated with non-zero exit code: 4"),
                                             ("v4.channel.k8s.io", None)])
def test_older_protocols(streams, protocol, status):
    ws = connect(streams, "sh", "-c", "exit 4", protocols=[protocol])
    assert ws.getsubprotocol() == protocol
    channels, _ = read_channels(ws)
    if status:
        assert channels == {ERROR: status}
    else:
        assert status_of(channels)["details"]["causes"][0]["message"] == "4"


def test_base64(streams):
    ws = connect(streams, "cat", protocols=["v4.base64.channel.k8s.io"], stdin=True, stdout=True)
    ws.send("0" + base64.b64encode(b"h\xc3\xa4\xff").decode())
    assert ws.recv() == "1" + base64.b64encode(b"h\xc3\xa4\xff").decode()
    ws.send("0not base64!")
    assert read_channels(ws)[1] == 1007


def test_ours_is_the_choice_among_protocols(streams):
    ws = connect(streams, "true", protocols=["v4.channel.k8s.io", "v5.channel.k8s.io", "x"])
    assert ws.getsubprotocol() == "v5.channel.k8s.io"
    ws.close()


# ---- input ----

def test_stdin_and_its_end(streams):
    ws = connect(streams, "sh", "-c", "wc -c; echo done", stdin=True, stdout=True)
    for piece in (b"abc", "ä", b"x" * 200000):
        data = piece.encode() if isinstance(piece, str) else piece
        opcode = websocket.ABNF.OPCODE_TEXT if isinstance(piece, str) else websocket.ABNF.OPCODE_BINARY
        ws.send(bytes([STDIN]) + data, opcode=opcode)
    ws.send_binary(bytes([CLOSE, STDIN]))
    channels, _ = read_channels(ws)
    assert channels[STDOUT] == b"200005\ndone\n"


def test_without_stdin_it_is_at_its_end(streams):
    ws = connect(streams, "cat", stdout=True)
    ws.send_binary(b"\x00ignored")
    channels, _ = read_channels(ws)
    assert channels == {ERROR: b'{"metadata":{},"status":"Success"}'}


def test_a_message_in_fragments(streams):
    with upgrade_ws(streams, streams.path("exec", "command=head&command=-c4&stdin=1&stdout=1")) as c:
        c.sendall(frame(2, b"\0a", fin=False) + frame(9, b"ping") + frame(0, b"b", fin=False) + frame(0, b"cd"))
        got = raw.read_all(c)
    assert b"\x8a\x04ping" in got and b"\x82\x05\x01abcd" in got and got.endswith(b"\x88\x02\x03\xe8")


def test_bytes_behind_the_request(streams):
    with upgrade_ws(streams, streams.path("exec", "command=head&command=-c2&stdin=1&stdout=1"), extra=frame(2, b"\0hi")) as c:
        assert b"\x01hi" in raw.read_all(c)


def test_output_waits_for_a_slow_reader(streams):
    """A command that writes without end is held up: memory stays where it is."""
    with upgrade_ws(streams, streams.path("exec", "command=yes&stdout=1")) as c:
        time.sleep(0.3)
        before = streams.memory_kib()
        time.sleep(0.7)
        assert streams.memory_kib() < before + 20 * 1024
        c.sendall(frame(8, b"\x03\xe8"))


def test_input_waits_for_a_slow_command(streams):
    """So is a client that sends more than the command reads."""
    before = streams.memory_kib()
    with upgrade_ws(streams, streams.path("exec", "command=sleep&command=2&stdin=1&stdout=1")) as c:
        c.settimeout(0.5)
        sent, piece = 0, frame(2, b"\0" + b"x" * 60000)
        with pytest.raises(socket.timeout):
            while sent < 200 << 20:
                c.sendall(piece)
                sent += len(piece)
        assert streams.memory_kib() < before + 30 * 1024, sent


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v5.channel.k8s.io"])
def test_no_character_is_cut(streams, protocol):
    """Frames are decoded one by one, whatever the pieces were that the command wrote."""
    text = "aä€😀" * 20000
    code = f"import os,time\nd={'aä€😀'!r}.encode()*20000\nwhile d: d=d[os.write(1,d[:4093]):]"
    ws = connect(streams, "python3", "-c", code, protocols=[protocol], stdout=True)
    got = ""
    while True:
        opcode, data = ws.recv_data(control_frame=True)
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            break
        if data and data[0] == STDOUT:  # else a ping
            got += data[1:].decode()  # strict
    assert got == text


def test_half_a_character_is_not_kept_for_ever(streams):
    ws = connect(streams, "sh", "-c", r"printf 'a\303'; read x", stdin=True, stdout=True)
    assert ws.recv() == b"\x01a"
    assert ws.recv() == b"\x01\xc3"
    ws.send_binary(b"\0\n")
    read_channels(ws)


# ---- terminals ----

def test_a_terminal_and_its_size(streams):
    ws = connect(streams, "sh", "-c", "read x; stty size; test -t 0 && test -t 1 && echo yes", stdin=True, stdout=True,
                 stderr=True, tty=True)
    ws.send_binary(bytes([RESIZE]) + b'{"Width":91,"Height":33}\n')
    ws.send_binary(b"\0go\n")
    channels, _ = read_channels(ws)
    assert b"33 91\r\nyes\r\n" in channels[STDOUT] and STDERR not in channels


def test_nonsense_sizes_change_nothing(streams):
    ws = connect(streams, "sh", "-c", "read x; stty size", stdin=True, stdout=True, tty=True)
    for size in (b"{", b"}" * 1000, b'{"Width":0,"Height":5}', b"x" * 5000, b'{"Width":70,"Height":7}'):
        ws.send_binary(bytes([RESIZE]) + size)
    ws.send_binary(b"\0go\n")
    assert b"7 70\r\n" in read_channels(ws)[0][STDOUT]


def test_a_client_that_goes_hangs_the_terminal_up(streams):
    ws = connect(streams, "sh", "-c", "echo $$; exec sleep 1000", stdin=True, stdout=True, tty=True)
    pid = int(ws.recv()[1:])
    ws.sock.close()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), what="the end of the command")


def test_a_client_that_goes_closes_the_pipes(streams):
    ws = connect(streams, "sh", "-c", "echo $$; exec yes", stdout=True)
    pid = int(ws.recv()[1:].split(b"\n")[0])
    ws.close()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), what="the end of the command")


# ---- what a WebSocket client may do wrong ----

@pytest.mark.parametrize("sent,code", [
    (frame(2, b"\0x", masked=False), 1002),
    (b"\xc2\x80\x01\x02\x03\x04", 1002),
    (b"\x83\x80\x01\x02\x03\x04", 1002),
    (b"\x82\xfe\x00\x05\x01\x02\x03\x04", 1002),
    (b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04", 1002),
    (b"\x82\xff\x00\x00\x00\x00\x7f\xff\xff\xff\x01\x02\x03\x04", 1009),
    (frame(0, b"x"), 1002),
    (frame(2, b"\0x", fin=False) + frame(2, b"\0x"), 1002),
    (frame(9, b"x" * 126), 1002),
    (frame(9, b"x", fin=False), 1002),
    (frame(1, b"\0\xff"), 1007),
    (frame(1, b"\0\xed\xa0\x80"), 1007),
    (frame(8, b"\x03"), 1002),
    (frame(8, b"\x03\xed"), 1002),
    (frame(8, b"\x03\xe8\xff"), 1007),
])
def test_broken_frames(streams, sent, code):
    with upgrade_ws(streams, streams.path("exec", "command=cat&stdin=1&stdout=1")) as c:
        c.sendall(sent)
        got = raw.read_all(c)
    at = got.rindex(b"\x88")
    assert struct.unpack("!H", got[at + 2:at + 4])[0] == code, got


@pytest.mark.parametrize("sent", [frame(2, b""), frame(2, b"\x09nobody reads this"), frame(2, b"\xff"), frame(10, b"pong"),
                                  frame(2, b"\xff\x07"), frame(2, b"\x01to stdout")])
def test_odd_messages_are_let_be(streams, sent):
    with upgrade_ws(streams, streams.path("exec", "command=head&command=-c2&stdin=1&stdout=1")) as c:
        c.sendall(sent + frame(2, b"\0ok"))
        assert b"\x82\x03\x01ok" in raw.read_all(c)


def test_a_close_is_answered(streams):
    with upgrade_ws(streams, streams.path("exec", "command=cat&stdin=1&stdout=1")) as c:
        c.sendall(frame(8, b"\x0f\xa0bye") + b"what follows is not read")
        assert raw.read_all(c) == b"\x88\x02\x0f\xa0"


# ---- requests ----

def ask(s, method, path, fields=""):
    return raw.exchange(s, f"{method} {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n".encode())


WEBSOCKET = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


@pytest.mark.parametrize("method,path,fields,status,message", [
    ("GET", "exec?command=a&stdout=1", "", 400, "Upgrade request required"),
    ("POST", "exec?command=a&stdout=1", "", 400, "Upgrade request required"),
    ("PUT", "exec?command=a&stdout=1", WEBSOCKET, 405, "streams are opened by GET or POST, logs by GET"),
    ("POST", "log", "", 405, "streams are opened by GET or POST, logs by GET"),
    ("GET", "log", "", 501, "no logs are kept here"),
    ("GET", "log?tailLines=x", "", 400, "tailLines is not a number: 'x'"),
    ("GET", "exec?command=a", WEBSOCKET, 400, "you must specify at least 1 of stdin, stdout, stderr"),
    ("GET", "exec?stdout=1", WEBSOCKET, 400, "you must specify at least one command for the container"),
    ("GET", "exec?command=a&stdout=1&container=other", WEBSOCKET, 400, "container other is not valid for pod local"),
    ("GET", "portforward", WEBSOCKET, 400, 'query parameter "ports" is required'),
    ("GET", "portforward?ports=0", WEBSOCKET, 400, "not a port: '0'"),
    ("GET", "exec?command=a&stdout=1", WEBSOCKET + "Sec-WebSocket-Protocol: v9\r\n", 400,
     "none of the offered WebSocket subprotocols is served here"),
    ("GET", "exec?command=a&stdout=1", WEBSOCKET.replace("13", "8"), 426, "WebSocket version 13 is the only one"),
    ("GET", "exec?command=a&stdout=1", WEBSOCKET.replace("dGhl", ""), 400, "sec-websocket-key is not 16 bytes in base64"),
    ("POST", "exec?command=a&stdout=1", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v9\r\n", 403,
     "none of the offered stream protocols is served here"),
    ("GET", "exec?command=a&stdout=1", "Connection: Upgrade\r\nUpgrade: h2c\r\n", 400,
     "unable to upgrade: only websocket and SPDY/3.1 are served"),
])
def test_refusals(streams, method, path, fields, status, message):
    head, _, body = ask(streams, method, streams.path(path), fields).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), head
    told = json.loads(body)
    assert told["kind"] == "Status" and told["status"] == "Failure" and told["code"] == status and told["message"] == message
    assert told["reason"] == {400: "BadRequest", 403: "Forbidden", 405: "MethodNotAllowed", 426: "BadRequest", 501: "MethodNotAllowed"}[status]


def test_a_pod_that_is_not_there(streams):
    answer = ask(streams, "GET", "/api/v1/namespaces/default/pods/other/exec?command=a&stdout=1", WEBSOCKET)
    assert b"404 Not Found" in answer and b'pods \\"other\\" not found' in answer


def test_a_request_line_of_a_megabyte(streams):
    words = ["x" * 100000 for _ in range(10)]
    channels, _ = read_channels(connect(streams, "sh", "-c", "echo $# $0", *words, stdout=True))
    assert channels[STDOUT].startswith(b"9 xxxx")


# ---- SPDY, by hand ----

DICTIONARY_WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges
age allow authorization cache-control connection content-base content-encoding content-language content-length
content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since
if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate
proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning
www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin"""
DICTIONARY = b"".join(struct.pack("!I", len(w)) + w.replace("_", " ").encode() for w in DICTIONARY_WORDS.split()) + (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    b"Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal "
    b"Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, "
    b"Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,"
    b"text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.")


class Spdy:
    """A SPDY/3.1 client: streams by number, frames as they come."""

    def __init__(self, s, path, protocol):
        self.socket = raw.connect(s)
        self.socket.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: Upgrade\r\n"
                            f"Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: {protocol}\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        assert head.startswith(b"HTTP/1.1 101 ") and f"x-stream-protocol-version: {protocol}".encode() in head, head
        self.packer = zlib.compressobj(9, zlib.DEFLATED, 15, 8, 0, DICTIONARY)
        self.unpacker = zlib.decompressobj(zdict=DICTIONARY)
        self.next = 1
        self.data, self.ended, self.reset, self.goaway, self.pings = {}, set(), {}, None, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def control(self, kind, payload, flags=0):
        self.socket.sendall(struct.pack("!HHI", 0x8003, kind, flags << 24 | len(payload)) + payload)

    def open(self, fin=False, **fields):
        plain = struct.pack("!I", len(fields))
        for name, value in fields.items():
            plain += struct.pack("!I", len(name)) + name.encode() + struct.pack("!I", len(value)) + value.encode()
        block = self.packer.compress(plain) + self.packer.flush(zlib.Z_SYNC_FLUSH)
        stream, self.next = self.next, self.next + 2
        self.control(1, struct.pack("!IIBB", stream, 0, 0, 0) + block, 1 if fin else 0)
        return stream

    def send(self, stream, data, fin=False):
        self.socket.sendall(struct.pack("!II", stream, (1 if fin else 0) << 24 | len(data)) + data)

    def exactly(self, n):
        got = b""
        while len(got) < n:
            more = self.socket.recv(n - len(got))
            if not more:
                raise EOFError
            got += more
        return got

    def read(self):
        """One frame."""
        first, second = struct.unpack("!II", self.exactly(8))
        flags, payload = second >> 24, self.exactly(second & 0xffffff)
        if not first >> 31:
            self.data[first] = self.data.get(first, b"") + payload
            if flags & 1:
                self.ended.add(first)
            return
        kind, numbers = first & 0xffff, struct.unpack(f"!{min(2, len(payload) // 4)}I", payload[:8])
        if kind == 2:
            self.unpacker.decompress(payload[4:])
            self.data.setdefault(numbers[0], b"")
        elif kind == 3:
            self.reset[numbers[0]] = numbers[1]
        elif kind == 6:
            self.pings.append(numbers[0])
        elif kind == 7:
            self.goaway = numbers

    def until(self, check):
        while not check():
            self.read()

    def until_closed(self):
        try:
            while True:
                self.read()
        except (EOFError, ConnectionResetError):
            pass


def spdy_exec(s, query, protocol="v4.channel.k8s.io", types=("error", "stdout", "stderr")):
    c = Spdy(s, s.path("exec", query), protocol)
    return c, {t: c.open(streamtype=t) for t in types}


def test_spdy_exec(streams):
    c, ids = spdy_exec(streams, "command=sh&command=-c&command=cat;echo+e+>%262;exit+5&stdin=1&stdout=1&stderr=1",
                       types=("error", "stdin", "stdout", "stderr"))
    with c:
        c.send(ids["stdin"], b"hello ")
        c.send(ids["stdin"], b"world", fin=True)
        c.until_closed()
        assert c.data[ids["stdout"]] == b"hello world" and c.data[ids["stderr"]] == b"e\n"
        assert json.loads(c.data[ids["error"]])["details"]["causes"][0]["message"] == "5"
        assert c.ended == set(ids.values())


@pytest.mark.parametrize("protocol", ["channel.k8s.io", "v2.channel.k8s.io", "v3.channel.k8s.io"])
def test_spdy_before_status_objects(streams, protocol):
    c, ids = spdy_exec(streams, "command=sh&command=-c&command=exit+5&stdout=1&stderr=1", protocol)
    with c:
        c.until_closed()
        assert c.data[ids["error"]] == b"command terminated with non-zero exit code: 5"


def test_spdy_starts_when_all_streams_have_come(streams, tmp_path):
    mark = tmp_path / "mark"
    with Spdy(streams, streams.path("exec", f"command=touch&command={mark}&stdout=1&stderr=1"), "v4.channel.k8s.io") as c:
        c.open(streamtype="error")
        c.open(streamtype="stdout")
        c.control(6, struct.pack("!I", 1))
        c.until(lambda: c.pings == [1])
        assert not mark.exists()
        c.open(streamtype="stderr")
        c.until_closed()
    assert mark.exists()


def test_spdy_input_before_its_command(streams):
    with Spdy(streams, streams.path("exec", "command=cat&stdin=1&stdout=1"), "v4.channel.k8s.io") as c:
        stdin = c.open(streamtype="stdin")
        c.send(stdin, b"early", fin=True)
        out = c.open(streamtype="stdout")
        c.open(streamtype="error")
        c.until_closed()
        assert c.data[out] == b"early"


def test_spdy_streams_nobody_asked_for(streams):
    c, ids = spdy_exec(streams, "command=sleep&command=1000&stdout=1", types=("error",))
    with c:
        odd = [c.open(streamtype="error"), c.open(streamtype="stdin"), c.open(streamtype="x"), c.open()]
        c.until(lambda: len(c.reset) == 4)
        assert c.reset == {s: 3 for s in odd} and ids["error"] not in c.reset


@pytest.mark.parametrize("sent", [
    b"\x80\x02\x00\x01\x00\x00\x00\x00",                                      # another version
    b"\x80\x03\x00\x01\x00\xff\xff\xff",                                      # a head of 16 MiB
    b"\x80\x03\x00\x01\x00\x00\x00\x0e\0\0\0\x01\0\0\0\0\0\0zlib",            # not zlib
    b"\x80\x03\x00\x06\x00\x00\x00\x05\0\0\0\0\0",                            # a long ping
    b"\x80\x03\x00\x04\x00\x00\x00\x04\0\0\0\x09",                            # settings that miscount
])
def test_spdy_violations_end_the_connection(streams, sent):
    with Spdy(streams, streams.path("portforward"), "portforward.k8s.io") as c:
        c.socket.sendall(sent)
        c.until_closed()
        assert c.goaway == (0, 1)


def test_spdy_a_head_that_unpacks_to_a_megabyte(streams):
    with Spdy(streams, streams.path("portforward"), "portforward.k8s.io") as c:
        before = streams.memory_kib()
        c.open(streamtype="x" * 1000000)
        c.until_closed()
        assert c.goaway == (0, 1) and streams.memory_kib() < before + 4096


# ---- port-forward ----

@pytest.fixture
def echo():
    """A server that sends back what it gets, in capitals, until the client has ended its side."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(c):
        with c:
            while data := c.recv(65536):
                c.sendall(data.upper())

    def accept():
        while True:
            try:
                c, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(c,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def open_pair(c, port, number):
    error = c.open(fin=True, streamtype="error", port=str(port), requestid=str(number))
    return error, c.open(streamtype="data", port=str(port), requestid=str(number))


def test_forward(streams, echo):
    with Spdy(streams, streams.path("portforward"), "portforward.k8s.io") as c:
        pairs = [open_pair(c, echo, i) for i in range(20)]
        for i, (_, data) in enumerate(pairs):
            c.send(data, f"hello {i}".encode(), fin=True)
        c.until(lambda: all(e in c.ended and d in c.ended for e, d in pairs))
        for i, (error, data) in enumerate(pairs):
            assert c.data[data] == f"HELLO {i}".encode() and c.data[error] == b""
        error, data = open_pair(c, echo, 20)  # the connection goes on
        c.send(data, b"x" * 3000000)
        c.send(data, b"", fin=True)
        c.until(lambda: error in c.ended)
        assert c.data[data] == b"X" * 3000000


def test_forward_to_nobody(streams, echo):
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    with Spdy(streams, streams.path("portforward"), "portforward.k8s.io") as c:
        error, data = open_pair(c, port, 0)
        c.until(lambda: error in c.ended and data in c.ended)
        assert c.data[error] == (f"cannot forward to port {port} of pod 'local': cannot connect to '127.0.0.1:{port}': "
                                 "Connection refused").encode()
        error, data = open_pair(c, echo, 1)
        c.send(data, b"a", fin=True)
        c.until(lambda: error in c.ended)
        assert c.data[data] == b"A"


def test_a_server_that_comes_late_is_waited_for(streams):
    late = socket.socket()
    late.bind(("127.0.0.1", 0))
    with Spdy(streams, streams.path("portforward"), "portforward.k8s.io") as c:
        error, data = open_pair(c, late.getsockname()[1], 0)
        c.send(data, b"early")
        time.sleep(0.1)
        late.listen()
        peer, _ = late.accept()
        assert peer.recv(100) == b"early"
        peer.close()
        c.until(lambda: error in c.ended)
        assert c.data[error] == b""
    late.close()


@pytest.mark.parametrize("fields", [{"streamtype": "data", "port": "0", "requestid": "1"}, {"streamtype": "data"},
                                    {"streamtype": "other", "port": "80", "requestid": "1"},
                                    {"streamtype": "data", "port": "80", "requestid": "1" * 40},
                                    {"streamtype": "data", "port": "99999", "requestid": "1"}])
def test_forward_refuses_what_is_no_port(streams, fields):
    with Spdy(streams, streams.path("portforward"), "portforward.k8s.io") as c:
        stream = c.open(**fields)
        c.until(lambda: c.reset)
        assert c.reset == {stream: 3}


def test_forward_holds_up_who_is_not_read(streams):
    """A pod that reads nothing: its client is held up, memory stays bounded, and so does a client that reads nothing."""
    deaf = socket.create_server(("127.0.0.1", 0))
    before = streams.memory_kib()
    with Spdy(streams, streams.path("portforward"), "portforward.k8s.io") as c:
        _, data = open_pair(c, deaf.getsockname()[1], 0)
        c.socket.settimeout(0.7)
        sent = 0
        with pytest.raises(socket.timeout):
            while sent < 200 << 20:
                c.send(data, b"x" * 60000)
                sent += 60000
        assert streams.memory_kib() < before + 30 * 1024, sent
    deaf.close()


def test_forward_in_a_websocket(streams, echo):
    """The same frames, carried in binary messages."""
    ws = websocket.create_connection(f"ws://{streams.address}{streams.path('portforward')}",
                                     subprotocols=["SPDY/3.1+portforward.k8s.io"], timeout=20)
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 8, 0, DICTIONARY)
    wire = b""
    for stream, kind in ((1, "error"), (3, "data")):
        plain = struct.pack("!I", 3)
        for name, value in (("streamtype", kind), ("port", str(echo)), ("requestid", "0")):
            plain += struct.pack("!I", len(name)) + name.encode() + struct.pack("!I", len(value)) + value.encode()
        block = struct.pack("!IIBB", stream, 0, 0, 0) + packer.compress(plain) + packer.flush(zlib.Z_SYNC_FLUSH)
        wire += struct.pack("!HHI", 0x8003, 1, (1 if kind == "error" else 0) << 24 | len(block)) + block
    wire += struct.pack("!II", 3, 1 << 24 | 5) + b"hello"
    for byte in wire[:40]:
        ws.send_binary(bytes([byte]))  # messages are no borders
    ws.send_binary(wire[40:])
    got = b""
    while not (b"HELLO" in got and got.endswith(struct.pack("!II", 1, 1 << 24))):
        got += ws.recv()
    ws.send("text is an error")
    opcode, data = ws.recv_data(control_frame=True)
    assert opcode == websocket.ABNF.OPCODE_CLOSE and struct.unpack("!H", data[:2])[0] == 1003


def test_forward_over_channels(streams, echo):
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    ws = websocket.create_connection(f"ws://{streams.address}{streams.path('portforward', f'ports={echo},{port}')}",
                                     subprotocols=["v5.channel.k8s.io", "v4.channel.k8s.io"], timeout=20)
    assert ws.getsubprotocol() == "v4.channel.k8s.io"
    for channel in range(4):
        assert ws.recv() == bytes([channel]) + struct.pack("<H", port if channel > 1 else echo)
    ws.send_binary(b"\0hello")
    messages = [ws.recv(), ws.recv()]
    assert b"\0HELLO" in messages and any(m.startswith(b"\x03cannot forward to port") for m in messages)
    ws.close()


# ---- whatever comes ----

def spdy_bytes(*fields):
    """Streams with these fields, some data, a ping and a farewell, as one run of bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 8, 0, DICTIONARY)
    wire = b""
    for i, given in enumerate(fields):
        plain = struct.pack("!I", len(given))
        for name, value in given.items():
            plain += struct.pack("!I", len(name)) + name.encode() + struct.pack("!I", len(value)) + value.encode()
        block = struct.pack("!IIBB", 2 * i + 1, 0, 0, 0) + packer.compress(plain) + packer.flush(zlib.Z_SYNC_FLUSH)
        wire += struct.pack("!HHI", 0x8003, 1, len(block)) + block
    for i in range(len(fields)):
        wire += struct.pack("!II", 2 * i + 1, 5) + b"hello" + struct.pack("!II", 2 * i + 1, 1 << 24)
    return wire + struct.pack("!HHII", 0x8003, 6, 4, 1) + struct.pack("!HHIII", 0x8003, 7, 8, 0, 0)


def mutate(random, data):
    data = bytearray(data)
    for _ in range(random.randrange(4)):
        at = random.randrange(len(data))
        kind = random.randrange(4)
        if kind == 0:
            data[at] = random.randrange(256)
        elif kind == 1:
            del data[at:at + random.randrange(1, 20)]
        elif kind == 2:
            data[at:at] = random.randbytes(random.randrange(1, 20))
        else:
            data[at:at] = data[at:at + random.randrange(1, 60)]
        if not data:
            return b""
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_conversations(streams, echo, seed):
    """Good conversations, damaged at random, cut at random, left at random: the server goes on, and lets all of it go."""
    import random as randoms
    random = randoms.Random(seed)
    ws_talk = frame(2, b"\0hi\n") + frame(9, b"p") + frame(2, b"\x04" + b'{"Width":80,"Height":24}') + frame(1, b"\0x") + \
        frame(2, b"\xff\0") + frame(8, b"\x03\xe8")
    pair = [{"streamtype": t, "port": str(echo), "requestid": "0"} for t in ("error", "data")]
    talks = [
        ("websocket", "v5.channel.k8s.io", streams.path("exec", "command=cat&stdin=1&stdout=1&tty=1"), ws_talk),
        ("websocket", "v4.channel.k8s.io", streams.path("portforward", f"ports={echo}"), ws_talk),
        ("websocket", "SPDY/3.1+portforward.k8s.io", streams.path("portforward"), frame(2, spdy_bytes(*pair))),
        ("SPDY/3.1", "portforward.k8s.io", streams.path("portforward"), spdy_bytes(*pair)),
        ("SPDY/3.1", "v4.channel.k8s.io", streams.path("exec", "command=cat&stdin=1&stdout=1"),
         spdy_bytes(*({"streamtype": t} for t in ("error", "stdin", "stdout")))),
    ]
    for _ in range(40):
        upgrade, protocol, path, talk = random.choice(talks)
        field = "Sec-WebSocket-Protocol" if upgrade == "websocket" else "X-Stream-Protocol-Version"
        head = (f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n"
                f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{field}: {protocol}\r\n\r\n")
        with raw.connect(streams) as c:
            c.settimeout(0.05)
            wire = head.encode() + mutate(random, talk)
            try:
                while wire:
                    n = random.randrange(1, len(wire) + 1)
                    c.sendall(wire[:n])
                    wire = wire[n:]
                while random.randrange(4) and c.recv(4096):
                    pass
            except OSError:
                pass  # the server hung up, or has nothing to say
    channels, code = read_channels(connect(streams, "echo", "alive"))
    assert channels[STDOUT] == b"alive\n" and code == 1000


# ---- many, and the end of the server ----

def test_many_at_once(streams):
    sockets = [connect(streams, "sh", "-c", f"read x; echo $x {i}", stdin=True, stdout=True) for i in range(60)]
    for i, ws in enumerate(sockets):
        ws.send_binary(b"\0go\n")
    for i, ws in enumerate(sockets):
        assert read_channels(ws)[0][STDOUT] == f"go {i}\n".encode()


def test_nothing_is_left_behind(streams, echo):
    def descriptors():
        return len(os.listdir(f"/proc/{streams.pid}/fd"))

    wait_until(lambda: descriptors() < 20, 30, "the sockets of earlier tests")
    before = descriptors()
    for _ in range(10):
        read_channels(connect(streams, "true"))
        c, _ = spdy_exec(streams, "command=true&stdout=1&stderr=1")
        with c:
            c.until_closed()
        with Spdy(streams, streams.path("portforward"), "portforward.k8s.io") as c:
            error, data = open_pair(c, echo, 0)
            c.send(data, b"x")
            c.until(lambda: data in c.data)
        with upgrade_ws(streams, streams.path("exec", "command=cat&stdin=1&stdout=1")):
            pass  # gone without a word
    wait_until(lambda: descriptors() <= before, 30, "no descriptor more than before")


def test_a_server_that_ends_takes_its_commands_along():
    s = podstream.Podstream()
    try:
        ws = connect(s, "sh", "-c", "echo $$; exec sleep 1000", stdout=True)
        pid = int(ws.recv()[1:])
        s.signal(signal.SIGTERM)
        assert s.wait() == 0
        assert read_channels(ws)[1] == 1001
        assert not os.path.exists(f"/proc/{pid}")
    finally:
        s.stop()
        log = s.log
        s.remove()
    assert "Sanitizer" not in log, log


def test_it_is_for_tests_only():
    import subprocess
    done = subprocess.run([podstream.binary()], env={k: v for k, v in os.environ.items() if k != "SILICA_TEST"},
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and done.stderr == "podstream_testserver: for tests only: set SILICA_TEST=1\n"
