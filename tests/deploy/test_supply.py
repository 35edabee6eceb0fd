"""What the product is made of: every dependency is pinned by a hash where its ecosystem has one, and the list of parts is true."""
import json
import re
import subprocess
import sys

import pytest

from support.paths import BUILD, NKX, ROOT

def pinned(file):
    """{name: version} of a list in which every package has its hashes."""
    text = re.sub(r"\\\n", " ", (ROOT / "docker" / file).read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9a-z.]+( +--hash=sha256:[0-9a-f]{64})+", line), line
    return dict(re.match("([^=]+)==([^ ]+)", line).group(1, 2) for line in lines)


@pytest.mark.parametrize("file, at_least", [("requirements.txt", 6), ("requirements-test.txt", 80)])
def test_every_python_package_is_pinned_with_its_hashes(file, at_least):
    assert len(pinned(file)) >= at_least
    r = subprocess.run([sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--require-hashes", "--disable-pip-version-check", "-q", "-r", ROOT / "docker" / file],
                       capture_output=True, text=True)
    assert r.returncode == 0, r.stderr  # nothing that they need is missing from the list


def test_the_test_tools_are_those_that_were_asked_for():
    lock = pinned("requirements-test.txt")
    for line in (line for line in (ROOT / "docker/requirements-test.in").read_text().splitlines() if line and not line.startswith("#")):
        name, _, version = line.partition("==")
        name = re.sub("[-_.]+", "-", name.split("[")[0]).lower()
        assert name in lock and version in ("", lock[name]), f"{line}: run dev/lock_tests.py"
    for name, version in pinned("requirements.txt").items():
        assert lock.get(name.replace("_", "-"), version) == version


def test_every_npm_and_cargo_package_has_its_hash():
    packages = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    assert len(packages) > 20 and all(p.get("integrity", "").startswith("sha512-") for path, p in packages.items() if path)
    cargo = (ROOT / "tests/api/clients/godbolt/Cargo.lock").read_text().split("[[package]]")
    assert all("checksum = " in p for p in cargo if "registry+" in p) and len(cargo) > 2


def test_the_list_of_parts_is_spdx_and_the_same_each_time(tmp_path):
    texts = []
    for name in ("a", "b"):
        subprocess.run([sys.executable, ROOT / "dev/sbom.py", BUILD, tmp_path / name], check=True)
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]
    d = json.loads(texts[0])
    ids = [p["SPDXID"] for p in d["packages"]]
    assert d["spdxVersion"] == "SPDX-2.3" and len(ids) == len(set(ids)) and all(re.fullmatch("SPDXRef-[A-Za-z0-9.-]+", i) for i in ids)
    assert {r["relatedSpdxElement"] for r in d["relationships"]} == set(ids)
    for p in d["packages"]:
        assert {"name", "versionInfo", "downloadLocation", "licenseDeclared", "licenseConcluded"} <= set(p)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", d["creationInfo"]["created"])


def test_the_list_names_the_libraries_the_packages_and_the_pages_modules(tmp_path):
    subprocess.run([sys.executable, ROOT / "dev/sbom.py", BUILD, tmp_path / "list"], check=True)
    versions = {p["name"]: p["versionInfo"] for p in json.loads((tmp_path / "list").read_text())["packages"]}
    release = subprocess.run([NKX, "--version"], capture_output=True, text=True).stdout.split()[1].rstrip(",")
    assert versions["nkx"] == release
    for name in ("libmicrohttpd-dev", "libmlir-22-dev", "libpq5", "libssl3", "libc6", "libcurl4", "libpython3.11"):
        assert versions[name] == subprocess.run(["dpkg-query", "-W", "-f=${Version}", name], capture_output=True, text=True).stdout
    static = set(re.findall(r"print-file-name=(\w+)\.a|\$\(LLVM\)/lib/(lib\w+)\*\.a", (ROOT / "Makefile").read_text()))
    assert {a or b for a, b in static} == {"libmicrohttpd", "libMLIRCAPI"}, "a static library that dev/sbom.py must know"
    page = json.loads((ROOT / "web/package.json").read_text())["dependencies"]
    assert all(versions[name] == version for name, version in page.items()) and "numpy" in versions


def test_the_program_has_only_the_parts_of_its_http_library_that_advisories_spare():
    """docs/operating.md says so: no parser of forms, no WebSockets, no digests, none of which anything calls."""
    names = subprocess.run(["nm", NKX], capture_output=True, text=True, check=True).stdout
    parts = set(re.findall(r" [tT] (MHD_\w+)", names))
    assert len(parts) > 50, "otherwise this shows nothing"
    assert not [p for p in parts if re.match("MHD_(create_post|post_process|destroy_post|digest|websocket)", p)]
    callers = [str(f) for f in (ROOT / "explorer").rglob("*.[ch]") if re.search(r"MHD_\w*upgrade|post_process|websocket", f.read_text())]
    assert not callers, callers
    version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libmicrohttpd-dev"], capture_output=True, text=True).stdout
    assert subprocess.run(["dpkg", "--compare-versions", version, "ge", "0.9.75-6"]).returncode == 0, version
