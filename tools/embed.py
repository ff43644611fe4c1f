#!/usr/bin/env python3
"""Writes a file's bytes as a C array: embed.py NAME INPUT OUTPUT.

The array is `const uint8_t NAME[]` and its size `const size_t NAME_bytes`; who uses it declares both.
"""
import sys


def main():
    name, source, target = sys.argv[1:]
    with open(source, "rb") as f:
        data = f.read()
    if not data:
        sys.exit(f"embed.py: '{source}' is empty")
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
