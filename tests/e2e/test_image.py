"""`make image`: what it writes are container images that others can read, and the same each time."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile

import pytest

from harness.server import TREE

pytestmark = pytest.mark.ours


def make(into, *names, **env):
    subprocess.run([TREE / "tools/image", TREE / "build", into, *names], check=True, capture_output=True, env={**os.environ, **env})
    return into


NAMES = ["silica-controller", "silica-router", "silica-runtime"]
SERVES = {"silica-controller": ["8080/tcp", "8081/tcp", "9443/tcp"], "silica-router": ["8080/tcp", "8081/tcp", "9090/tcp"],
          "silica-runtime": ["8080/tcp", "8888/tcp", "9090/tcp"]}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    if not (TREE / "build/release/build.ninja").exists():
        pytest.skip("no release build")
    return make(tmp_path_factory.mktemp("image"))


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def archive(directory, name):
    return directory / f"{name}.oci.tar"


@pytest.fixture
def image(archive):
    return Image(archive)


class Image:
    """Reads the archive, and believes no digest and no size that it has not checked."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
            self.members = tar.getmembers()
        self.index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layer = gzip.decompress(self.blob(self.manifest["layers"][0]))

    def blob(self, descriptor):
        kind, digest = descriptor["digest"].split(":")
        data = self.files[f"blobs/{kind}/{digest}"]
        assert kind == "sha256" and hashlib.sha256(data).hexdigest() == digest and len(data) == descriptor["size"]
        return data

    def root(self):
        return tarfile.open(fileobj=io.BytesIO(self.layer))


def test_the_layout_holds_together(image):
    assert json.loads(image.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert len(image.index["manifests"]) == len(image.manifest["layers"]) == 1
    assert image.config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(image.layer).hexdigest()]
    assert len([name for name in image.files if name.startswith("blobs/")]) == 3


def test_what_the_container_is_told(image, name):
    assert image.config["os"] == "linux" and image.config["architecture"] in ("amd64", "arm64")
    told = image.config["config"]
    role = name.removeprefix("silica-")
    assert told["Entrypoint"] == (["/silica-runtime"] if role == "runtime" else ["/silica", role])
    assert told["User"] == ("1000:1000" if role == "runtime" else "65532:65532")
    assert sorted(told["ExposedPorts"]) == SERVES[name]
    assert told["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_the_root_file_system(image, name):
    program = "silica-runtime" if name == "silica-runtime" else "silica"
    owned = {"app", "workspace"} if name == "silica-runtime" else set()
    with image.root() as root:
        entries = {m.name: m for m in root}
        assert root.extractfile(program).read() == (TREE / "build" / program).read_bytes()
        assert re.search(r"^(sandbox:x:1000:1000|nonroot:x:65532:65532):", root.extractfile("etc/passwd").read().decode(), re.M)
    assert set(entries) == {"etc", "etc/group", "etc/passwd", program, "tmp"} | owned
    assert entries[program].mode == 0o755 and entries[program].uid == 0
    for each in owned:
        assert entries[each].isdir() and (entries[each].uid, entries[each].gid) == (1000, 1000)


def test_its_program_runs_where_nothing_else_is(image, tmp_path):
    with image.root() as root:
        root.extractall(tmp_path, members=[m for m in root if m.isdir() or m.isfile()])
    entry = image.config["config"]["Entrypoint"]
    told = subprocess.run(["unshare", "--map-root-user", "chroot", tmp_path, *entry, "--help"], capture_output=True, text=True)
    assert told.returncode == 0 and " ".join(entry).strip("/") in told.stdout, told.stderr


def test_nothing_of_this_machine_is_in_it(image):
    with image.root() as root:
        for m in [*image.members, *root.getmembers()]:
            assert (m.mtime, m.uname, m.gname) == (0, "", ""), m.name
    assert [m.name for m in image.members] == sorted(m.name for m in image.members)


def test_twice_is_the_same(directory, tmp_path):
    make(tmp_path, TZ="Asia/Tokyo", HOME="/nowhere", LC_ALL="C")
    files = sorted(path.name for path in directory.iterdir())
    assert files == sorted(f"{name}.{kind}" for name in NAMES for kind in ("oci.tar", "spdx.json"))
    for each in files:
        assert (directory / each).read_bytes() == (tmp_path / each).read_bytes(), each


def test_a_date_if_one_is_wanted(tmp_path, directory):
    made = make(tmp_path, "silica-runtime", SOURCE_DATE_EPOCH="86400")
    assert Image(made / "silica-runtime.oci.tar").config["created"] == "1970-01-02T00:00:00Z"


def test_the_bill_names_what_is_linked(directory, name):
    bill = json.loads((directory / f"{name}.spdx.json").read_text())
    assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0"
    packages = {p["name"]: p for p in bill["packages"]}
    linked = {"nghttp2": "libnghttp2-dev", "protobuf-c": "libprotobuf-c-dev", "glibc": "libc6-dev"}
    more = {"openssl": "libssl-dev", "sqlite3": "libsqlite3-dev", "c-ares": "libc-ares-dev", "libyaml": "libyaml-dev", "zlib": "zlib1g-dev"}
    if name == "silica-runtime":
        assert not more.keys() & packages.keys(), "the runtime has no TLS, so it must not carry it"
    else:
        linked |= more
    assert {name, *linked} <= packages.keys()
    program = (TREE / "build" / ("silica-runtime" if name == "silica-runtime" else "silica")).read_bytes()
    assert packages[name]["checksums"] == [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(program).hexdigest()}]
    for library, package in linked.items():
        version = subprocess.run(["dpkg-query", "-W", "-f", "${source:Version}", package], capture_output=True, text=True, check=True).stdout
        assert packages[library]["versionInfo"] == version and packages[library]["licenseDeclared"] != "NOASSERTION"
    ids = {p["SPDXID"] for p in bill["packages"]} | {"SPDXRef-DOCUMENT"}
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids) and len(ids) == len(packages) + 1
    for relation in bill["relationships"]:
        assert relation["spdxElementId"] in ids and relation["relatedSpdxElement"] in ids
    assert len([r for r in bill["relationships"] if r["relationshipType"] == "STATIC_LINK"]) == len(packages) - 1


def test_skopeo_reads_and_copies_it(archive, image, name, tmp_path):
    if not shutil.which("skopeo"):
        pytest.skip("no skopeo on this machine")
    source = f"oci-archive:{archive}"
    told = json.loads(subprocess.run(["skopeo", "inspect", source], capture_output=True, check=True).stdout)
    assert told["Labels"]["org.opencontainers.image.title"] == name
    subprocess.run(["skopeo", "--insecure-policy", "copy", source, f"oci:{tmp_path}/copy:x"], capture_output=True, check=True)
    assert json.loads((tmp_path / "copy/index.json").read_text())["manifests"][0]["digest"] == image.index["manifests"][0]["digest"]
