"""Hostile NEFF files (category 17): name, the file's bytes, the code with which it is refused.

The reader runs in the worker, within the limits of a job.
"""
import base64
import functools
import gzip
import io
import json
import struct
import tarfile

from support.neff import archive, container, neff, small

FILE, LIMIT = "neff-file", "neff-limit"


def with_member(name, content):
    return lambda: neff({**small(), name: content})


def deep(levels):
    return b'{"a":' * levels + b"1" + b"}" * levels


def bomb():
    """A member of 300 MiB in 300 KiB: gzip's parts are one after the other."""
    head = tarfile.TarInfo("sg00/zeros.bin")
    head.size = 300 << 20
    return container(gzip.compress(head.tobuf()) + gzip.compress(bytes(1 << 20)) * 300 + gzip.compress(bytes(1024)))



def header(offset, layout, *values):
    """A small file with other values in its header."""
    def make():
        data = bytearray(neff(small()))
        struct.pack_into(layout, data, offset, *values)
        return bytes(data)
    return make


def transfer(**changed):
    desc = {"from": "x", "from_off": 0, "from_sizes": [64], "from_steps": [1], "to": "y", "to_off": 0, "to_sizes": [64], "to_steps": [1], **changed}
    return with_member("sg00/PE0.json", {"dma": [{"queue": "q0", "desc": [desc]}]})


def member(kind, **fields):
    """An archive with one more member, of a kind that is no file."""
    def make():
        out = io.BytesIO(archive({k: v if isinstance(v, bytes) else json.dumps(v).encode() for k, v in small().items()}))
        with tarfile.open(fileobj=out, mode="a") as tar:
            info = tarfile.TarInfo("sg00/more")
            info.type = kind
            for k, v in fields.items():
                setattr(info, k, v)
            tar.addfile(info)
        return container(gzip.compress(out.getvalue(), mtime=0))
    return make


def negative_size():
    """A member whose length is written in tar's base-256 form, below zero."""
    data = bytearray(archive({"info.json": b"{}"}))
    data[124:136] = b"\xff" * 12
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return container(bytes(data))


DEF = small()["sg00/def.json"]
FILES = [
    ("no NEFF", lambda: b"import numpy as np\n" * 100, FILE),
    ("short", lambda: b"\x02", FILE),
    ("header alone", lambda: neff(small())[:1024], FILE),
    ("cut", lambda: neff(small())[:-40], FILE),
    ("no archive", lambda: container(b"\x00" * 64), FILE),
    ("header of 2^64 bytes", header(8, "<Q", 2**64 - 1), FILE),
    ("header of no bytes", header(8, "<Q", 0), FILE),
    ("data of 2^64 bytes", header(16, "<Q", 2**64 - 1), FILE),
    ("header and data overlap", header(8, "<2Q", 8, 2**63), FILE),
    ("name that leaves the folder", with_member("../../etc/passwd", b"x"), FILE),
    ("name from the root", with_member("/etc/passwd", b"x"), FILE),
    ("name with a control", with_member("sg00/a\x01b", b"x"), FILE),
    ("symbolic link", member(tarfile.SYMTYPE, linkname="/proc/self/mem"), FILE),
    ("hard link", member(tarfile.LNKTYPE, linkname="/etc/passwd"), FILE),
    ("device", member(tarfile.CHRTYPE, devmajor=1, devminor=1), FILE),
    ("FIFO", member(tarfile.FIFOTYPE), FILE),
    ("member below zero", negative_size, FILE),
    ("info is no object", with_member("info.json", [1]), FILE),
    ("definition is no JSON", with_member("sg00/def.json", b"{\"name\": \xff"), FILE),
    ("definition of another shape", with_member("sg00/def.json", {**DEF, "var.x": [1, 2]}), FILE),
    ("variable below zero", with_member("sg00/def.json", {**DEF, "var.x": {"type": "input", "var_id": 1, "size": -64}}), FILE),
    ("variable of 2^63 bytes", with_member("sg00/def.json", {**DEF, "var.x": {"type": "input", "var_id": 1, "size": 2**63}}), FILE),
    ("queues without end", with_member("sg00/def.json", {**DEF, "dma_queue.q0": {"type": "data", "num_queues": 2**40, "owner": "pe"}}), FILE),
    ("engine in another folder", with_member("sg00/def.json", {**DEF, "pe": "../../../etc/passwd"}), FILE),
    ("transfer outside", transfer(from_off=60), FILE),
    ("transfer below zero", transfer(to_off=-4), FILE),
    ("transfer that overflows", transfer(from_sizes=[2**32, 2**32], from_steps=[2**31, 2**31]), FILE),
    ("transfer that steps back", transfer(from_sizes=[4, 16], from_steps=[1, -4]), FILE),
    ("transfer that writes twice", transfer(to_sizes=[4, 16], to_steps=[1, 0]), FILE),
    ("transfer of no variable", transfer(**{"from": "z"}), FILE),
    ("deep info", with_member("info.json", deep(40)), LIMIT),
    ("bomb", bomb, LIMIT),
    ("many files", lambda: neff({f"f{i}": b"" for i in range(10001)}), LIMIT),
]


@functools.cache
def cases():
    """(name, request, the verdicts that are right)"""
    return [(name, {"source_base64": base64.b64encode(make()).decode(), "language": "neff"}, {code}) for name, make, code in FILES]
