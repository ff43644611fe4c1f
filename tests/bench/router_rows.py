"""Rows for the router: ours, the public project's in Go, and nginx as a proxy with one worker, in front of the same server.
None of them writes an access log. Tiny answers at 10, 50 and 200 connections, bodies of 10 MiB, and messages of WebSockets that
come back (tests/bench/ws_echo.c is both ends). The figures are of each alone, in turns. How we compare with nginx, which is a
matter of percents, is measured with both at work at the same time: in turns, neighbours on the host decide it."""

import contextlib
import os
import re
import shutil
import subprocess

import load
from harness.router import Router
from harness.server import Server, free_port, tool, wait_until

BIG_BYTES = 10 << 20
SECONDS = 1  # of one measurement; there are many
CONNECTIONS = (10, 50, 200)
LEVEL = 0.97  # two equal ones, the middle of 25 rounds, on a machine with neighbours
OURS, GO, NGINX = "silica router", "public router (Go)", "nginx, 1 worker"

CONFIG = """
daemon off;
worker_processes 1;
pid {dir}/pid;
error_log {dir}/log;
{user}
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 10000000;
    client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
    uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
    {rest}
}}
"""
BEHIND = "server {{ listen 127.0.0.1:{port} backlog=1024; location /tiny {{ return 200 'ok'; }} location / {{ root {root}; }} }}"
FRONT = """upstream behind {{ server 127.0.0.1:{behind}; keepalive 512; keepalive_requests 10000000; }}
    server {{ listen 127.0.0.1:{port} backlog=1024; location / {{ proxy_pass http://behind; proxy_http_version 1.1;
    proxy_set_header Connection ''; proxy_buffering off; }} }}"""
FRONT_WS = """server {{ listen 127.0.0.1:{port} backlog=1024; location / {{ proxy_pass http://127.0.0.1:{behind}; proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }} }}"""


class Nginx(Server):
    """rest is the inside of its http block, with {port}, {root} and {behind}."""

    def __init__(self, rest, behind=0):
        super().__init__()
        self.ports = [free_port()]
        config = self.dir / "nginx.conf"
        config.write_text(CONFIG.format(dir=self.dir, user="user root;" if os.geteuid() == 0 else "",
                                        rest=rest.format(port=self.port, root=self.root, behind=behind)))
        self.spawn([shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(self.dir), "-c", str(config)], dict(os.environ))
        self.wait_port(self.port)


class Go(Server):
    def __init__(self):
        super().__init__()
        self.ports = [free_port()]
        self.spawn([tool("peers", "sandbox-router"), f"--http-bind-address=127.0.0.1:{self.port}", "--metrics-bind-address=127.0.0.1:0",
                    "--health-probe-bind-address=127.0.0.1:0", "--allow-loopback-pod-ip", "--access-log=false"], dict(os.environ))
        self.wait_port(self.port)


class Echo(Server):
    def __init__(self, bench):
        super().__init__()
        self.ports = [free_port()]
        self.spawn([str(bench.tools / "ws_echo"), "serve", str(self.port)], dict(os.environ))
        self.wait_port(self.port)


def beside_nginx(bench, row, ports, measure, what, ratio, least=1):
    """The goal that asks for nginx's rate. A round of two that are equal is off by 6 % or so."""
    both = [(who, lambda p=ports[who]: measure(p)) for who in (OURS, NGINX)]
    rounds = load.abreast(both, 5 if bench.quick else 25)
    bench.goal(row, f"ours over nginx, {what}, both at once", ratio(rounds, OURS, NGINX), least)


def echoes(bench, keep, ports, interleave, ratio):
    """Messages a second, one under way on each connection. nginx's front for it is another: it knows one server behind it. Behind the
    handshake both make the same three calls for a message and 94 % of the time is the kernel's, so level is what can be asked."""
    echo = keep(Echo(bench))
    ports = {**ports, NGINX: keep(Nginx(FRONT_WS, echo.port)).port}

    def measure(port, connections):
        return bench.helper("ws_echo", "load", port, echo.port, connections, SECONDS * 1000)["rate"]

    for connections in CONNECTIONS:
        row = f"router-ws-{connections}"
        interleave(bench, row, [(who, lambda p=port, n=connections: measure(p, n)) for who, port in ports.items()], "msg/s")
        beside_nginx(bench, row, ports, lambda p, n=connections: measure(p, n), f"{connections} WebSockets", ratio, LEVEL)


def rate(port, behind, path, connections, seconds):
    out = load.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-H", "X-Sandbox-ID: box", "-H",
                    f"X-Sandbox-Port: {behind}", "-H", "X-Sandbox-Pod-IP: 127.0.0.1", f"http://127.0.0.1:{port}{path}"], seconds + 60)
    if bad := re.search(r"Non-2xx or 3xx responses: (\d+)|Socket errors: .*", out):
        raise load.Failed(bad[0])
    return float(re.search(r"Requests/sec: *([\d.]+)", out)[1])


def router(bench, _servers, interleave, ratio):
    with contextlib.ExitStack() as stack:
        def keep(server):
            stack.callback(lambda: (server.stop(5), server.remove()))
            return server

        behind = keep(Nginx(BEHIND))
        (behind.root / "big").write_bytes(b"x" * BIG_BYTES)
        ports = {OURS: stack.enter_context(Router(None, "--access-log=false", directory=bench.work)).port,
                 NGINX: keep(Nginx(FRONT, behind.port)).port}
        try:
            ports[GO] = keep(Go()).port
        except (AssertionError, OSError, subprocess.CalledProcessError) as e:
            bench.add("router-10", GO, None, "req/s", str(e)[-300:])
        for port in ports.values():
            wait_until(lambda p=port: rate(p, behind.port, "/tiny", 1, 1) > 0, 60)
        for connections in CONNECTIONS:
            row = f"router-{connections}"
            rounds = interleave(bench, row, [(who, lambda p=port, n=connections: rate(p, behind.port, "/tiny", n, SECONDS))
                                             for who, port in ports.items()], "req/s")
            bench.goal(row, f"ours over the public router, {connections} connections", ratio(rounds, OURS, GO), 4)
            beside_nginx(bench, row, ports, lambda p, n=connections: rate(p, behind.port, "/tiny", n, SECONDS), f"{connections} connections",
                         ratio)
        interleave(bench, "router-big", [(who, lambda p=port: rate(p, behind.port, "/big", 10, SECONDS) * BIG_BYTES / (1 << 20))
                                         for who, port in ports.items()], "MiB/s")
        echoes(bench, keep, ports, interleave, ratio)


ROWS = {"router": router}
TITLES = {**{f"router-{n}": f"router, tiny answers, {n} connections" for n in CONNECTIONS}, "router-big": "router, bodies of 10 MiB",
          **{f"router-ws-{n}": f"router, WebSocket echo, {n} connections" for n in CONNECTIONS}}
