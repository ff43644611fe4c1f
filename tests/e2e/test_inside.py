"""Tools at work inside a sandbox of the host image, as root's sandbox and as that of an account with nothing: more of what a tool
does than test_programs.py, which asks whether it runs at all. A tool that this machine lacks is skipped."""

import os
import shutil

import pytest

from harness.caller import caller_or_skip

pytestmark = pytest.mark.ours
SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/usr/local/go/bin:/usr/lib/go/bin"


def tool(name):
    """Its path, with links followed: what is below /usr is inside under the same name."""
    found = shutil.which(name, path=SEARCH)
    if not found or not os.path.realpath(found).startswith("/usr/"):
        pytest.skip(f"no {name} below /usr")
    return found


@pytest.fixture(scope="module", params=["root", "user"])
def who(request):
    caller = caller_or_skip(request.param)
    yield caller
    caller.remove()


@pytest.fixture
def volume(who):
    """A directory of the host, shown read-only at /in."""
    made = who.dir / "in"
    made.mkdir()
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def script(who, text, *options, volume=None):
    """What a shell script inside prints; every command of it must succeed."""
    shown = ["-v", f"{volume}:/in:ro"] if volume else []
    done = who.run(*options, *shown, "--", "sh", "-euc", text, timeout=100)
    assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout


def put(volume, name, text):
    (volume / name).write_text(text)
    (volume / name).chmod(0o644)


PYTHON_WORK = """
import asyncio, concurrent.futures, hashlib, mmap, multiprocessing, os, shutil, socket, sqlite3, ssl, subprocess, sys, tempfile, threading

def square(n):
    return n * n

def main():
    with multiprocessing.Pool(2) as pool:
        assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(square, range(5))) == 30
    assert subprocess.run(['sh', '-c', 'cat; exit 3'], input=b'in', capture_output=True).stdout == b'in'
    with tempfile.TemporaryDirectory() as d:
        base = sqlite3.connect(d + '/base')
        base.execute('pragma journal_mode=wal')
        base.execute('create table t(x)')
        base.execute('insert into t values(42)')
        base.commit()
        assert base.execute('select x from t').fetchone() == (42,)
        os.mkfifo(d + '/fifo')
        os.symlink('base', d + '/link')
        shutil.copytree(d, d + '2', symlinks=True, ignore=shutil.ignore_patterns('fifo'))
    server = socket.create_server(('127.0.0.1', 0))
    threading.Thread(target=lambda: server.accept()[0].sendall(b'over loopback')).start()
    with socket.create_connection(server.getsockname()) as s:
        assert s.recv(100) == b'over loopback'
    async def echo():
        p = await asyncio.create_subprocess_exec('echo', 'async', stdout=asyncio.subprocess.PIPE)
        return (await p.communicate())[0]
    assert asyncio.run(echo()) == b'async\\n'
    assert ssl.create_default_context().cert_store_stats()['x509_ca'] >= 0
    from multiprocessing import shared_memory
    shared_memory.SharedMemory(create=True, size=4096).unlink()
    print('done')

if __name__ == '__main__':
    main()
"""


def test_python_at_work(who, volume):
    put(volume, "work.py", PYTHON_WORK)
    assert script(who, f"{tool('python3')} /in/work.py", volume=volume) == "done\n"


def test_python_by_its_short_name(who):
    tool("python3")
    assert script(who, "python -c 'print(6 * 7)'") == "42\n"


NODE_WORK = """
const fs = require('fs'), http = require('http'), os = require('os'), { Worker } = require('worker_threads'), { execFileSync } = require('child_process');
fs.writeFileSync('a.txt', 'in a file');
if (execFileSync('cat', ['a.txt']).toString() !== 'in a file') throw new Error('child');
if (!os.networkInterfaces().lo) throw new Error('interfaces');
new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true }).on('message', (n) => {
    const server = http.createServer((request, response) => response.end('over http ' + n)).listen(0, '127.0.0.1', () => {
        http.get({ port: server.address().port, host: '127.0.0.1' }, (answer) => {
            answer.on('data', (data) => console.log(data.toString()));
            answer.on('end', () => server.close());
        });
    });
});
"""


def test_node(who, volume):
    put(volume, "work.js", NODE_WORK)
    assert script(who, f"{tool('node')} /in/work.js", volume=volume) == "over http 42\n"


def test_gcc_and_make(who, volume):
    tool("gcc"), tool("make")
    put(volume, "hello.c", '#include <pthread.h>\n#include <stdio.h>\nstatic void *run(void *p) { return p; }\n'
        'int main(void) { pthread_t t; void *got; pthread_create(&t, 0, run, "from a thread"); pthread_join(t, &got); return puts(got) < 0; }\n')
    put(volume, "Makefile", "all: one two\none two: hello.c\n\tgcc -O1 -Wall -o $@ $< -pthread\n")
    assert script(who, "cp /in/* . && make -s -j2 && ./one && ./two", volume=volume) == "from a thread\n" * 2


def test_git(who):
    git = tool("git")
    out = script(who, f"""
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
        {git} init -q -b trunk one && cd one
        echo text >file && {git} add file && {git} commit -q -m first && echo more >>file && {git} commit -q -a -m second
        cd .. && {git} clone -q one two && cd two && {git} gc -q && {git} fsck --strict && {git} log --format=%s && {git} status --short
    """)
    assert out.splitlines()[-2:] == ["second", "first"]


def test_archives_and_pipes(who):
    out = script(who, """
        mkdir -p tree/a && seq 1000 >tree/a/numbers && ln -s a tree/link && chmod 600 tree/a/numbers
        tar cf - tree | gzip | (mkdir out && cd out && tar xzf -)
        diff -r tree out/tree && stat -c %a out/tree/a/numbers && find out -type l | wc -l
    """)
    assert out == "600\n1\n"


def test_what_does_not_work(who):
    """docs/sandbox.md says so: nothing inside gains rights, and /usr is the host's."""
    out = script(who, """
        su -c true </dev/null 2>/dev/null && echo su
        touch /usr/x 2>&1 | grep -o 'Read-only file system'
        ping -c 1 127.0.0.1 >/dev/null 2>&1 && echo ping
        unshare --user true 2>/dev/null && echo unshare
        true
    """)
    assert out == "Read-only file system\n"
