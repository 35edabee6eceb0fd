"""Writes what the built product consists of as an SPDX 2.3 document: sbom.py BUILD OUTPUT

Its parts: the Debian packages whose libraries the programs load or contain, the Python packages that kernels run on, and the npm packages whose
code is in the page.  Equal inputs give equal bytes: the date is that of the commit (SOURCE_DATE_EPOCH wins).
"""
import base64
import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINKED_IN = ("libmicrohttpd-dev", "libmlir-22-dev")  # static libraries: their code is in our programs
PROGRAMS = ("bin/nkx", "bin/nkx-worker", "bin/nkx-runner")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def created():
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct").strip()
    return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def package(kind, name, version, licence, purl, checksum=None, where="NOASSERTION"):
    p = {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}-{version}"), "name": name, "versionInfo": version,
         "downloadLocation": where, "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": licence or "NOASSERTION",
         "copyrightText": "NOASSERTION",
         "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]}
    if checksum:
        p["checksums"] = [{"algorithm": checksum[0], "checksumValue": checksum[1]}]
    return p


def debian_packages(build):
    """Those whose files the loader finds for our programs, also indirectly.  What no package has is of the Python environment."""
    files = set()
    for program in PROGRAMS:
        files |= {str(pathlib.Path(f).resolve()) for f in re.findall(r"=> (/\S+)", run("ldd", str(build / program)))}
    files |= {f.removeprefix("/usr") for f in files}  # dpkg knows some files by their place before /lib became /usr/lib
    found = subprocess.run(["dpkg-query", "-S", *sorted(files)], capture_output=True, text=True).stdout
    return sorted({line.split(": ")[0].split(":")[0] for line in found.splitlines()} | set(LINKED_IN))


def debian(build):
    form = "${Package}\t${Version}\t${source:Package}\t${Architecture}\n"
    for line in sorted(set(run("dpkg-query", "-W", f"-f={form}", *debian_packages(build)).splitlines())):
        name, version, source, arch = line.split("\t")
        p = package("deb", name, version, None, f"pkg:deb/debian/{name}@{version}?arch={arch}")
        p["sourceInfo"] = f"built from the Debian source package {source}; licences in /usr/share/doc/{name}/copyright"
        yield p


def python():
    text = (ROOT / "docker/requirements.txt").read_text()
    for name in ("numpy", "ml_dtypes"):
        version, digest = re.search(rf"^{name}==(\S+) \\\n +--hash=sha256:([0-9a-f]{{64}})", text, re.M).groups()
        licence = importlib.metadata.metadata(name).get("License-Expression")  # older packages have text that is no expression
        yield package("pypi", name, version, licence, f"pkg:pypi/{name.replace('_', '-')}@{version}", ("SHA256", digest))


def npm():
    """What package.json needs at run time, and what that needs: its code is in the page's bundle."""
    lock = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    for path, entry in sorted(lock.items()):
        if not path or entry.get("dev") or entry.get("optional"):
            continue
        name = path.split("node_modules/")[-1]
        method, digest = entry["integrity"].split("-", 1)
        yield package("npm", name, entry["version"], entry.get("license"), f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}",
                      (method.upper(), base64.b64decode(digest).hex()), entry.get("resolved", "NOASSERTION"))


def document(build):
    version = (ROOT / "VERSION").read_text().strip()
    own = package("nkx", "nkx", version, "Apache-2.0", f"pkg:generic/nkx@{version}")
    parts = [*debian(build), *python(), *npm()]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"nkx-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/nkx-{version}-{digest[:32]}",
            "creationInfo": {"created": created(), "creators": ["Tool: nkx-sbom"]}, "packages": [own, *parts],
            "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": own["SPDXID"]},
                              *({"spdxElementId": own["SPDXID"], "relationshipType": "DEPENDS_ON", "relatedSpdxElement": p["SPDXID"]} for p in parts)]}


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text(json.dumps(document(pathlib.Path(sys.argv[1]).resolve()), indent=1) + "\n")
