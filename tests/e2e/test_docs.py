"""What is written down holds: --help, the manual page, README and docs/ agree with each other and with the program."""

import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from harness.server import TREE, binary

pytestmark = pytest.mark.ours

DOCS = sorted([TREE / "README.md", *(TREE / "docs").glob("*.md")])
UNITS_BYTES = {"": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}
UNITS_S = {"s": 1, "m": 60, "h": 3600}


def ask(*args):
    done = subprocess.run([binary(), *args], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def help_options():
    """Each flag of --help and its default, or None."""
    rows = re.findall(r"^  (--[a-z-]+)(?: ([A-Z:]+))? +(\S.*)$", ask("--help"), re.M)
    assert len(rows) > 20
    return {flag: (found[1] if argument and (found := re.search(r" \(([^()]+)\)$", text)) else None)
            for flag, argument, text in rows}


def silica_help():
    """Of all commands, one after another."""
    silica = TREE / "build" / "silica"
    overview = subprocess.run([silica, "--help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  (\w+) ", overview, re.M)
    assert {"run", "exec", "cp", "ps", "stats", "logs", "pause", "resume", "rm", "doctor"} <= set(names)
    return "".join(subprocess.run([silica, "help", name], capture_output=True, text=True, check=True).stdout for name in names)


def silica_options():
    return re.findall(r"^  (?:-\w, )?(--[a-z-]+)", silica_help(), re.M)


def silica_defaults():
    """Flag: the values it has where nothing is said, by command."""
    found = {}
    for flag, default in re.findall(r"^  (?:-\w, )?(--[a-z-]+) [^\n]*\(([^()]+)\)$", silica_help(), re.M):
        found.setdefault(flag, set()).add(value(default))
    return found


def man_page():
    return (TREE / "docs/man/silica-runtime.1").read_text()


def plain(roff):
    return re.sub(r"\\f.", "", roff).replace("\\-", "-").replace("\\e", "\\")


def man_options():
    items = re.findall(r"^\.TP\n\\fB(\\-\\-[a-z\\-]+)\\fR.*\n((?:[^.].*\n)+)", man_page(), re.M)
    return {plain(flag): (found[1] if (found := re.search(r"^Default: (.*)\.$", plain(text), re.M)) else None)
            for flag, text in items}


def value(text):
    """A size or a time as a number, so that `8 MiB` is 8MiB and `1,024` is 1024; else the text itself."""
    found = re.fullmatch(r"([\d,]+) ?([A-Za-z]*)", text.strip("`"))
    if not found:
        return text.strip("`")
    number = int(found[1].replace(",", ""))
    if found[2] in UNITS_S:
        return number * UNITS_S[found[2]]
    return number * UNITS_BYTES[found[2]] if found[2] in UNITS_BYTES else text


def words(path):
    return path.read_text(encoding="utf-8")


# ---- the option table ----

def test_help_fits_a_screen():
    lines = ask("--help").splitlines()
    assert len(lines) <= 60
    assert [line for line in lines if len(line) > 100] == []
    assert lines[2].startswith("  silica-runtime "), "the commonest call comes first"


def test_the_man_page_is_the_one_the_program_makes():
    made = subprocess.run([TREE / "tools/man", binary(), TREE / "docs/man/silica-runtime.1.in"],
                          capture_output=True, text=True, check=True)
    assert made.stdout == man_page(), "run `make man` and commit docs/man"


def test_the_man_page_of_silica_too():
    made = subprocess.run([TREE / "tools/man", TREE / "build/silica", TREE / "docs/man/silica.1.in"],
                          capture_output=True, text=True, check=True)
    assert made.stdout == words(TREE / "docs/man/silica.1"), "run `make man` and commit docs/man"
    assert all(plain(made.stdout).count(flag) for flag in silica_options())


def test_help_and_man_page_name_the_same_options_and_defaults():
    assert man_options() == help_options()


def test_the_man_page_names_nothing_that_is_not_there():
    for flag in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", plain(man_page()))) - set(help_options()):
        ask(f"{flag}=true", "--help")


@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.name)
def test_docs_name_no_stale_option(path):
    known = set(help_options()) | set(silica_options()) | {"--root-dir", "--zap-log-level", "--no-sandbox", "--clean"}
    told = set(re.findall(r"`(--[a-z][a-z-]+)", words(path)))
    told |= set(re.findall(r"silica-runtime.*? (--[a-z][a-z-]+)", words(path)))
    assert told - known == set()


def test_the_manual_names_every_option():
    told = set(re.findall(r"--[a-z][a-z-]+", words(TREE / "docs/runtime.md")))
    assert set(help_options()) - {"--version"} - told == set()


@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.name)
def test_docs_tell_the_real_defaults(path):
    """`8 MiB (`--output-limit`)` and `--rest-port` (8080): the number beside a flag is its default."""
    options = help_options()
    text = words(path)
    told = [(flag, number) for number, flag in re.findall(r"([\d,]+(?: (?:MiB|KiB|bytes|s|m|h|commands))?|`[\w.]+`) \(`(--[a-z-]+)`\)", text)]
    told += re.findall(r"`(--[a-z-]+)` \(([\d,]+)\)", text)
    of_silica = silica_defaults()
    for flag, number in told:
        real = {value(options[flag])} if flag in options else of_silica[flag]
        assert value(number.replace(" commands", "")) in real, f"{flag}: {number}"
    if path.name == "runtime.md":
        assert {flag for flag, _ in told} >= {flag for flag, default in options.items() if default}


@pytest.mark.parametrize("name, shown, source", [
    ("HTTP_HEAD_MAX_BYTES", "request head, or one line of it | 64 KiB", "src/http/limits.h"),
    ("HTTP_SERVER_HEAD_TIMEOUT_MS", "time for a head | 10 s", "src/http/serve.h"),
    ("H2_MAX_STREAMS", "streams of an HTTP/2 connection | 1,000", "src/http/h2.h"),
    ("RUNTIME_EXECUTE_MAX_BYTES", "JSON body | 4 MiB", "src/runtime/limits.h"),
    ("RUNTIME_JSON_MAX_BYTES", "JSON body | 4 MiB; 64 MiB", "src/runtime/limits.h"),
    ("FILE_TEXT_MAX_BYTES", "text of one `/read` | 64 MiB", "src/runtime/files/file_read.h"),
    ("FILE_GLOB_MAX_ROWS", "rows of `/glob` and `/grep` | 10,000", "src/runtime/files/file_glob.h"),
    ("FILE_GREP_MAX_ROWS", "rows of `/glob` and `/grep` | 10,000", "src/runtime/files/file_grep.h"),
    ("SANDBOXD_MESSAGE_MAX_BYTES", "gRPC message | 4 MiB", "src/runtime/sandboxd/limits.h"),
    ("EXEC_STDIN_MAX_BYTES", "input waiting for one command | 8 MiB", "src/runtime/exec/exec.h"),
    ("EXEC_QUEUE_MAX", "run at once; 16,384", "src/runtime/exec/exec.h"),
])
def test_fixed_limits_are_the_sources_own(name, shown, source):
    assert shown in words(TREE / "docs/runtime.md")
    factors = re.search(rf"#define {name}\s+(?:\\\n\s*)?\(?([\d *]+)\)?", words(TREE / source))[1]
    number = 1
    for factor in factors.split("*"):
        number *= int(factor)
    told = re.findall(r"[\d,]+(?: (?:KiB|MiB|s))?", shown)[-1]
    assert number == value(told) * (1000 if name.endswith("_MS") else 1), f"{shown}: {number}"


# ---- what else is written ----

@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.name)
def test_links_and_paths_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)#]+)\)", words(path)):
        assert (path.parent / link).exists(), link
    for name in re.findall(r"`((?:src|docs|tools|tests)/[\w./-]+)`", words(path)):
        assert (TREE / name).exists(), name


@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.name)
def test_make_targets_exist(path):
    targets = set(re.findall(r"^([a-z-]+):", words(TREE / "Makefile"), re.M))
    assert set(re.findall(r"(?:`|\$ )make ([a-z-]+)", words(path))) - targets == set()


def test_make_help_lists_every_target_for_people():
    shown = subprocess.run(["make", "--no-print-directory", "-C", TREE, "help"], capture_output=True, text=True, check=True).stdout
    phony = re.search(r"^\.PHONY: (.*(?:\\\n.*)*)", words(TREE / "Makefile"), re.M)[1].replace("\\", "").split()
    assert set(re.findall(r"^make (\S+)", shown, re.M)) == {t for t in phony if not t.startswith("setup-")}
    assert "make help" in words(TREE / "README.md")


def test_the_readmes_commands_do_what_it_shows(runtime, tmp_path):
    """The calls of the runtime's block, against a server of our own."""
    (tmp_path / "report.csv").write_text("a,b\n1,2\n")
    blocks = re.findall(r"```console\n(.*?)```", words(TREE / "README.md"), re.S)
    block = next(b for b in blocks if "silica-runtime" in b)
    calls = re.findall(r"^\$ (curl .*)\n((?:[^$\n].*\n)*)", block, re.M)
    assert len(calls) == 3
    for call, shown in calls:
        argv = shlex.split(call.replace("127.0.0.1:8888", runtime.address))
        got = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=30).stdout
        assert got == (shown.rstrip("\n") or "a,b\n1,2\n"), call
    server = re.search(r"^\$ (build/silica-runtime .*) &$", block, re.M)[1]
    assert set(re.findall(r"--[a-z-]+", server)) <= set(help_options())


def test_every_proof_in_threats_exists():
    last = None
    proofs = re.findall(r"`([\w/.]*)::(\w+)`", words(TREE / "docs/threats.md"))
    assert len(proofs) > 30
    for path, name in proofs:
        last = path or last
        text = words(TREE / last)
        assert re.search(rf"def {name}\(", text) if last.endswith(".py") else re.search(rf"\b(cmocka_unit_test\w*|[A-Z_]+)\({name}\b", text), f"{last}::{name}"


def source_files():
    """What git tracks; where there is no git or no repository, everything but what a build leaves."""
    if shutil.which("git"):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=TREE, capture_output=True, text=True)
        if listed.returncode == 0:
            return [name for name in listed.stdout.split("\0") if name]
    made = {"build", ".git", ".cache", "__pycache__", ".pytest_cache"}
    return [str(p.relative_to(TREE)) for p in pathlib.Path(TREE).rglob("*")
            if p.is_file() and not made & set(p.relative_to(TREE).parts)]


def test_the_tree_names_no_machine_and_no_registry():
    """Nothing in the tree depends on where it was written, or on where somebody keeps packages and images."""
    hosts = ["ghcr", "gcr", "quay", "docker", "golang"]
    bad = re.compile("|".join([r"/tmp/w" + r"t\b", r"/work" + r"/(main|shared)", r"\b(%s)\.(io|org)/" % "|".join(hosts),
                               r"registry\.(?!example|h\b|c\b|npmjs)[a-z]+\.", "GOP" + "ROXY=", "--index" + "-url"]))
    for name in source_files():
        path = pathlib.Path(TREE, name)
        if "tests/corpus/" in name or not path.exists():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.name in ("go.mod", "go.sum"):  # the names of modules there are no hosts: a proxy serves them
            text = re.sub(r"\bgolang\.org/", "", text)
        found = bad.search(text)
        assert not found, f"{name}: {found[0]}"
