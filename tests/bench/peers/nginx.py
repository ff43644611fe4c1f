"""nginx as the fastest known server of files: sendfile, one worker, a scratch configuration on loopback."""

import os
import shutil

from harness.server import Server, free_port

CONFIG = """
daemon off;
worker_processes 1;
pid {dir}/pid;
error_log {dir}/log;
{user}
events {{ worker_connections 512; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    default_type application/octet-stream;
    client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
    uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


class Nginx(Server):
    def __init__(self):
        super().__init__()
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        port = free_port()
        config = self.dir / "nginx.conf"
        config.write_text(CONFIG.format(dir=self.dir, port=port, root=self.root,
                                        user="user root;" if os.geteuid() == 0 else ""))
        self.spawn([program, "-p", str(self.dir), "-c", str(config)], dict(os.environ))
        self.ports = [port]
        self.wait_port(port)
