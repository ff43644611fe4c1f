"""`make image`: what it writes is a container image that others can read, and the same each time."""

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


def make(into, **env):
    subprocess.run([TREE / "tools/image", TREE / "build", into], check=True, capture_output=True, env={**os.environ, **env})
    return into / "silica-runtime.oci.tar", into / "silica-runtime.spdx.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    if not (TREE / "build/release/build.ninja").exists():
        pytest.skip("no release build")
    return make(tmp_path_factory.mktemp("image"))


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


def test_the_layout_holds_together(made):
    image = Image(made[0])
    assert json.loads(image.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert len(image.index["manifests"]) == len(image.manifest["layers"]) == 1
    assert image.config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(image.layer).hexdigest()]
    assert len([name for name in image.files if name.startswith("blobs/")]) == 3


def test_what_the_container_is_told(made):
    config = Image(made[0]).config
    assert config["os"] == "linux" and config["architecture"] in ("amd64", "arm64")
    told = config["config"]
    assert told["Entrypoint"] == ["/silica-runtime"] and told["User"] == "1000:1000"
    assert sorted(told["ExposedPorts"]) == ["8080/tcp", "8888/tcp", "9090/tcp"]
    assert told["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_the_root_file_system(made):
    with Image(made[0]).root() as root:
        entries = {m.name: m for m in root}
        assert root.extractfile("silica-runtime").read() == (TREE / "build/silica-runtime").read_bytes()
        assert "sandbox:x:1000:1000:" in root.extractfile("etc/passwd").read().decode()
    assert set(entries) == {"app", "etc", "etc/group", "etc/passwd", "silica-runtime", "tmp", "workspace"}
    assert entries["silica-runtime"].mode == 0o755 and entries["silica-runtime"].uid == 0
    for name in ("app", "workspace"):
        assert entries[name].isdir() and (entries[name].uid, entries[name].gid) == (1000, 1000)


def test_nothing_of_this_machine_is_in_it(made):
    image = Image(made[0])
    with image.root() as root:
        for m in [*image.members, *root.getmembers()]:
            assert (m.mtime, m.uname, m.gname) == (0, "", ""), m.name
    assert [m.name for m in image.members] == sorted(m.name for m in image.members)


def test_twice_is_the_same(made, tmp_path):
    again = make(tmp_path, TZ="Asia/Tokyo", HOME="/nowhere", LC_ALL="C")
    for first, second in zip(made, again):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_a_date_if_one_is_wanted(tmp_path, made):
    assert Image(make(tmp_path, SOURCE_DATE_EPOCH="86400")[0]).config["created"] == "1970-01-02T00:00:00Z"


def test_the_bill_names_what_is_linked(made):
    bill = json.loads(made[1].read_text())
    assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0"
    packages = {p["name"]: p for p in bill["packages"]}
    assert {"silica-runtime", "nghttp2", "protobuf-c", "glibc"} <= set(packages)
    assert "openssl" not in packages, "the runtime has no TLS, so it must not carry it"
    program = (TREE / "build/silica-runtime").read_bytes()
    assert packages["silica-runtime"]["checksums"] == [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(program).hexdigest()}]
    for library, package in (("nghttp2", "libnghttp2-dev"), ("protobuf-c", "libprotobuf-c-dev"), ("glibc", "libc6-dev")):
        version = subprocess.run(["dpkg-query", "-W", "-f", "${source:Version}", package], capture_output=True, text=True, check=True).stdout
        assert packages[library]["versionInfo"] == version
    ids = {p["SPDXID"] for p in bill["packages"]} | {"SPDXRef-DOCUMENT"}
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids) and len(ids) == len(packages) + 1
    for relation in bill["relationships"]:
        assert relation["spdxElementId"] in ids and relation["relatedSpdxElement"] in ids
    assert len([r for r in bill["relationships"] if r["relationshipType"] == "STATIC_LINK"]) == len(packages) - 1


def test_skopeo_reads_and_copies_it(made, tmp_path):
    if not shutil.which("skopeo"):
        pytest.skip("no skopeo on this machine")
    source = f"oci-archive:{made[0]}"
    told = json.loads(subprocess.run(["skopeo", "inspect", source], capture_output=True, check=True).stdout)
    assert told["Labels"]["org.opencontainers.image.title"] == "silica-runtime"
    subprocess.run(["skopeo", "--insecure-policy", "copy", source, f"oci:{tmp_path}/copy:x"], capture_output=True, check=True)
    assert json.loads((tmp_path / "copy/index.json").read_text())["manifests"][0]["digest"] == Image(made[0]).index["manifests"][0]["digest"]
