#!/usr/bin/env python3
"""Writes a file's bytes as a C array: embed.py NAME INPUT OUTPUT.

The array is `const uint8_t NAME[]` and its size `const size_t NAME_bytes`; who uses it declares both. Where OUTPUT ends
in .S it is assembly that takes the file in whole when it is assembled: for what is too large to compile as numbers.
"""
import os
import sys


def assembly(name, source):
    return f"""    .section .rodata
    .balign 64
    .global {name}
{name}:
    .incbin "{os.path.abspath(source)}"
0:
    .balign 8
    .global {name}_bytes
{name}_bytes:
    .quad 0b - {name}
    .section .note.GNU-stack,"",@progbits
"""


def main():
    name, source, target = sys.argv[1:]
    with open(source, "rb") as f:
        data = f.read()
    if not data:
        sys.exit(f"embed.py: '{source}' is empty")
    if target.endswith(".S"):
        with open(target, "w", encoding="utf-8") as f:
            f.write(assembly(name, source))
        return
    rows = (data[at:at + 20] for at in range(0, len(data), 20))
    with open(target, "w", encoding="ascii") as f:
        f.write("#include <stddef.h>\n#include <stdint.h>\n\n")
        f.write(f"extern const uint8_t {name}[];\nextern const size_t {name}_bytes;\n")
        f.write(f"const size_t {name}_bytes = {len(data)};\n")
        f.write(f"const uint8_t {name}[] = {{\n")
        for row in rows:
            f.write("    " + " ".join(f"{byte}," for byte in row) + "\n")
        f.write("};\n")


main()
