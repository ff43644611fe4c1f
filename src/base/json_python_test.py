"""base/json beside Python's json: same verdicts, same fault texts and places, same values, same doubles.

    json_python_test.py PROBE [SEED [COUNT]]

Differences that are meant: we refuse NaN, Infinity, lone surrogates and byte order marks; before 3.13 Python has
another text for a trailing comma.
"""
import json
import math
import random
import re
import struct
import subprocess
import sys

PIECES = [
    "{", "}", "[", "]", ",", ":", '"', '"a"', '"b\\n"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00"',
    "1", "-", "0", "01", "1.5", "1.", "1e5", "1e", "1e+", "-0", "true", "false", "null", "nul", "NaN", "Infinity",
    "-Infinity", " ", "\n", "\t", "\r", "é", '"é😀"', "\\", "\\x", '"\\x"', '"\\u12"', '"\\u12G4"', '"\\u1234',
    '"\x01"', "\x00", '"abc', ".", "//", "\u2028", "\ufeff", '"\\ud83d\\u0041"', '"\\ud83d\\uZZZZ"', '"a":1',
    "12345678901234567890", '"k":[1,2]', '[1,{"x":null}]', '"%s"' % ("x" * 40), "  " * 10, '"\\"', '"\\', '"\\u',
    '"\\ud83d\\u',
]
WHOLE = [
    '{"a":[1,2.50,{"b":null,"c":"x\\ty\\u0041é"}],"d":true,"e":{"f":{}, "g":[]}}',
    "[1,2,3]",
    '"hello \\ud83d\\ude00"',
    '{"k": "v",\n "k2": [ 1 , 2 ], "k": "again"}',
]
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
OLD_COMMA = ("Expecting value", "Expecting property name enclosed in double quotes")


def make_text(rng):
    if rng.random() < 0.5:
        return "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 9))).encode()
    text = bytearray(rng.choice(WHOLE).encode())
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(text) + 1)
        change = rng.randrange(4)
        if change == 0:
            del text[at:at + rng.randint(1, 4)]
        elif change == 1:
            text[at:at] = rng.choice(PIECES).encode()
        elif change == 2:
            del text[at:]
        elif at < len(text):
            text[at] = rng.randrange(256)
    return bytes(text)


def spelled(text):
    """The value with members in order, duplicates kept, and numbers as they were spelled."""
    return json.loads(text, object_pairs_hook=lambda pairs: ("object", pairs),
                      parse_int=lambda s: ("number", s), parse_float=lambda s: ("number", s))


class Constant(Exception):
    pass


def refuse_constant(name):
    raise Constant(name)


def judge(raw, answer):
    """None when the answer is right, else what was wanted."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None if re.match(rb"E \d+ \d+ \d+ 1 ", answer) else "an encoding fault"
    refused_code = answer.startswith(b"E") and answer.endswith(b"Invalid \\uXXXX escape")
    try:
        json.loads(text, parse_constant=refuse_constant)
    except Constant:
        return None if answer.startswith(b"E") else "a refused constant"
    except json.JSONDecodeError as e:
        if text.startswith("\ufeff"):
            return None if answer == b"E 0 1 1 0 Unexpected UTF-8 BOM" else "a refused byte order mark"
        want = f"E {e.pos} {e.lineno} {e.colno} 0 {e.msg}"
        if answer.decode() == want or (refused_code and SURROGATE.search(text)):
            return None
        at = int(answer.split()[1]) if answer.startswith(b"E") else 0
        is_comma = b"Illegal trailing comma" in answer and text[at] == "," and at < e.pos
        if sys.version_info < (3, 13) and is_comma and e.msg in OLD_COMMA:
            return None
        return want
    if refused_code and SURROGATE.search(text):
        return None
    if not answer.startswith(b"O ") or spelled(answer[2:]) != spelled(text):
        return f"O {text}"
    return None


def run(probe, args, data):
    done = subprocess.run([probe, *args], input=data, stdout=subprocess.PIPE, check=True)
    return done.stdout.split(b"\n")[:-1]


def check_texts(probe, rng, count):
    texts = [make_text(rng) for _ in range(count)]
    answers = run(probe, [], b"".join(struct.pack("<I", len(t)) + t for t in texts))
    assert len(answers) == count, f"{len(answers)} answers to {count} texts"
    wrong = [(t, a, w) for t, a in zip(texts, answers) if (w := judge(t, a))]
    for text, answer, want in wrong[:10]:
        print(f"{text!r}\n    got  {answer!r}\n    want {want}")
    accepted = sum(a.startswith(b"O") for a in answers)
    print(f"{count} texts, {accepted} accepted, {len(wrong)} wrong")
    return not wrong and 0 < accepted < count


def check_doubles(probe, rng, count):
    doubles = [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.0, -0.0, 0.1, 1e16, 1e22, 1e23, 1e-4, 1e-5]
    doubles += [2.0 ** k for k in range(-1074, 1024)]
    doubles += [rng.randrange(10 ** rng.randint(1, 17)) / 10 ** rng.randint(0, 20) for _ in range(count // 3)]
    doubles += [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(count // 3)]
    doubles += [struct.unpack("<d", struct.pack("<Q", rng.getrandbits(rng.randint(1, 52))))[0] for _ in range(count // 3)]
    doubles = [d for d in doubles if math.isfinite(d)]
    answers = run(probe, ["doubles"], struct.pack(f"<{len(doubles)}d", *doubles))
    wrong = [(d, a) for d, a in zip(doubles, answers, strict=True) if repr(d) != a.decode()]
    for double, answer in wrong[:10]:
        print(f"{double!r}: got {answer!r}")
    print(f"{len(doubles)} doubles, {len(wrong)} wrong")
    return not wrong


def main():
    probe = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
    rng = random.Random(seed)
    texts_ok = check_texts(probe, rng, count)
    doubles_ok = check_doubles(probe, rng, count)
    return 0 if texts_ok and doubles_ok else 1


if __name__ == "__main__":
    sys.exit(main())
