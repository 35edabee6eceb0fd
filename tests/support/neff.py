"""NEFF containers, written by Python's own modules as the vendor describes the format."""
import gzip
import hashlib
import io
import json
import struct
import tarfile


def archive(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def container(data, name="made by a test", major=1, minor=0):
    """The header, and an archive as it is."""
    head = bytearray(1024)
    struct.pack_into("<5Q", head, 0, 2, 1024, len(data), major, minor)
    head[40:49] = b"2.21.1234"
    struct.pack_into("<I", head, 168, 1)
    head[172:188] = hashlib.md5(data).digest()
    head[220:220 + len(name)] = name.encode()
    struct.pack_into("<I", head, 552, 1)
    return bytes(head) + data


def neff(members, compressed=True):
    """members: {name: bytes, or what becomes JSON}."""
    data = archive({k: v if isinstance(v, bytes) else json.dumps(v).encode() for k, v in members.items()})
    return container(gzip.compress(data, mtime=0) if compressed else data)


def small():
    """One subgraph with one engine and one transfer."""
    return {
        "info.json": {"tool_version": "2.21"},
        "kelf-0.json": {"graphs": [{"definition": "sg00/def.json", "name": "sg00"}], "version": "0.5"},
        "sg00/def.json": {
            "name": "sg00", "pe": "PE0.json", "pe_instr": "PE0.bin",
            "dma_queue.q0": {"type": "data", "num_queues": 2, "owner": "pe"},
            "var.x": {"type": "input", "var_id": 1, "size": 64},
            "var.y": {"type": "output", "var_id": 2, "size": 64},
        },
        "sg00/PE0.json": {"dma": [{"queue": "q0", "desc": [{"from": "x", "from_off": 0, "from_sizes": [64], "from_steps": [1],
                                                           "to": "y", "to_off": 0, "to_sizes": [64], "to_steps": [1]}]}]},
        "sg00/PE0.bin": bytes(48),
    }
