"""A python runtime in the shape of the public example, as the bench's peer.

FastAPI on uvicorn: one event loop for HTTP, commands waited for on asyncio's default thread pool, files on the
loop. It keeps the public server's routes, bodies and status codes, so contract tests can be checked against it.
"""

import asyncio
import math
import os
import shlex
import signal
import subprocess
import urllib.parse

from fastapi import FastAPI, File, UploadFile
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel

app = FastAPI(title="Agentic Sandbox Runtime", version="1.0.0")


class Command(BaseModel):
    command: str


class Outcome(BaseModel):
    stdout: str
    stderr: str
    exit_code: int


class Outside(Exception):
    pass


def base_dir():
    return os.environ.get("SANDBOX_BASE_DIR", "").strip() or "/app"


def time_limit():
    try:
        seconds = float(os.environ.get("SANDBOX_EXEC_TIMEOUT_SECONDS", "300"))
    except ValueError:
        return 300.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 300.0


def inside(path):
    base = os.path.realpath(base_dir())
    try:
        full = os.path.realpath(os.path.join(base, path.lstrip("/")))
    except ValueError as e:
        raise Outside from e
    if os.path.commonpath([base, full]) != base:
        raise Outside
    return full


def run(command):
    argv = shlex.split(command)
    child = subprocess.Popen([argv[0], *argv[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=base_dir(), start_new_session=True)
    try:
        out, err = child.communicate(timeout=time_limit())
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise
    return Outcome(stdout=out, stderr=err, exit_code=child.returncode)


def denied():
    return JSONResponse({"message": "Access denied"}, 403)


@app.get("/")
async def health():
    return {"status": "ok", "message": "Sandbox Runtime is active."}


@app.post("/execute", response_model=Outcome)
async def execute(request: Command):
    try:
        return await asyncio.get_running_loop().run_in_executor(None, run, request.command)
    except Exception as e:
        return Outcome(stdout="", stderr=f"Failed to execute command: {e}", exit_code=1)


@app.post("/upload")
async def upload(file: UploadFile = File(...)):
    try:
        full = inside(file.filename)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as out:
            out.write(await file.read())
    except Outside:
        return denied()
    except Exception as e:
        return JSONResponse({"message": f"File upload failed: {e}"}, 500)
    return {"message": f"File '{file.filename}' uploaded successfully."}


@app.get("/download/{path:path}")
async def download(path: str):
    path = urllib.parse.unquote(path)
    try:
        full = inside(path)
    except Outside:
        return denied()
    if not os.path.isfile(full):
        return JSONResponse({"message": "File not found"}, 404)
    return FileResponse(full, media_type="application/octet-stream", filename=path)


@app.get("/list/{path:path}")
async def list_files(path: str):
    try:
        full = inside(urllib.parse.unquote(path))
    except Outside:
        return denied()
    if not os.path.isdir(full):
        return JSONResponse({"message": "Path is not a directory"}, 404)
    rows = []
    try:
        for entry in os.scandir(full):
            st = entry.stat()
            rows.append({"name": entry.name, "size": st.st_size,
                         "type": "directory" if entry.is_dir() else "file", "mod_time": st.st_mtime})
    except OSError as e:
        return JSONResponse({"message": f"List files failed: {e}"}, 500)
    return JSONResponse(rows)


@app.get("/exists/{path:path}")
async def exists(path: str):
    path = urllib.parse.unquote(path)
    try:
        return {"path": path, "exists": os.path.exists(inside(path))}
    except Outside:
        return denied()
