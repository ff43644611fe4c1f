#!/usr/bin/env python3
"""Generates protobuf-c code from .proto files: proto_c.py PROTOC INCLUDE_DIR OUT_DIR FILE...

Two things stand between our files and protoc-gen-c 1.4, so it gets edited copies:
- it refuses proto3's `optional`; without the word the wire is the same, a message field keeps its presence
  (a pointer), and a string that is absent reads as empty;
- Meson wants all outputs in one folder, so imports lose their path.
Imports that are not among the files are taken from INCLUDE_DIR.
"""
import os
import re
import subprocess
import sys
import tempfile


def flatten(path, into):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"^(\s*)optional\s+", r"\1", text, flags=re.M)
    text = re.sub(r'^import\s+"(?:[^"]*/)?([^"/]+)"', r'import "\1"', text, flags=re.M)
    with open(os.path.join(into, os.path.basename(path)), "w", encoding="utf-8") as f:
        f.write(text)


def main():
    protoc, include, out, *files = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        for path in files:
            flatten(path if os.path.exists(path) else os.path.join(include, path), work)
        names = [os.path.basename(path) for path in files]
        subprocess.run([protoc, f"--proto_path={work}", f"--c_out={out}", *names], check=True)


main()
