#!/usr/bin/env python3
"""Strips a program, but for the names of its functions: names.py STRIP OBJCOPY INPUT OUTPUT.

They go into the section .silica.names, which is not loaded: profiles that the program takes of itself then say names (src/controller/
symbols.c), for a third of what the symbol table would take. Two little-endian numbers of 4 bytes, the rows and their bytes; then,
by zlib: for each row, by address, the distance from the one before and the size (LEB128), and the name with a zero.
"""
import struct
import subprocess
import sys
import tempfile
import zlib

STT_FUNC, SHT_SYMTAB = 2, 2


def functions(image):
    """(address, bytes, name) of each in the symbol table of an ELF file of 64 bits, little-endian."""
    if image[:6] != b"\x7fELF\x02\x01":
        sys.exit("names.py: no ELF file of 64 bits")
    (at,), (size, count) = struct.unpack_from("<Q", image, 0x28), struct.unpack_from("<HH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, at + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, link, _, _, each in sections:
        if kind != SHT_SYMTAB:
            continue
        names = sections[link][4]
        for row in range(offset, offset + length, each):
            name, info, _, _, value, extent = struct.unpack_from("<IBBHQQ", image, row)
            if info & 15 == STT_FUNC and value:
                yield value, extent, image[names + name:image.index(b"\0", names + name)]


def leb(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def packed(image):
    rows, out, last = sorted({row[0]: row for row in sorted(functions(image), reverse=True)}.values()), bytearray(), 0
    for address, extent, name in rows:
        out += leb(address - last) + leb(extent) + name + b"\0"
        last = address
    return struct.pack("<II", len(rows), len(out)) + zlib.compress(bytes(out), 9)


def main():
    strip, objcopy, source, target = sys.argv[1:]
    with open(source, "rb") as f, tempfile.NamedTemporaryFile() as names:
        names.write(packed(f.read()))
        names.flush()
        subprocess.run([strip, "-o", target, source], check=True)
        subprocess.run([objcopy, "--add-section", f".silica.names={names.name}", target], check=True)


main()
