"""A stand-in for neuronx-cc: checks its arguments, reads the HLO, writes a log and a container without code.

    neuronx_cc.py BEHAVIOUR RECORD compile --framework XLA hlo_module.pb …

BEHAVIOUR: "works", or how it fails; "package:FILE" writes that file as the NEFF.  RECORD gets what it has seen as JSON.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tarfile
import time


def fields(data):
    """(number, value) of each field of a protobuf message; a value is an integer or bytes."""
    def varint(at):
        n = shift = 0
        while True:
            n |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if not data[at - 1] & 128:
                return n, at
    at = 0
    while at < len(data):
        key, at = varint(at)
        if key & 7 == 0:
            value, at = varint(at)
        else:
            n, at = varint(at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at : at + n], at + n
        yield key >> 3, value


def read_hlo(path):
    """The module's name, and (name, opcode) of the entry's instructions."""
    with open(path, "rb") as f:
        module = list(fields(f.read()))
    entry = dict(module).get(6, 0)  # a zero is not written
    computations = [list(fields(v)) for n, v in module if n == 3]
    body = next(c for c in computations if dict(c).get(5, 0) == entry)
    instructions = [dict(fields(v)) for n, v in body if n == 2]
    return dict(module)[1].decode(), [(i[1].decode(), i[2].decode()) for i in instructions]


def parse(argv):
    p = argparse.ArgumentParser(prog="neuronx-cc", allow_abbrev=False)
    p.add_argument("command", choices=["compile"])
    p.add_argument("file")
    p.add_argument("--framework", choices=["XLA"], required=True)
    p.add_argument("--target", choices=["trn1", "trn2", "trn3"], required=True)
    p.add_argument("--pipeline", nargs="+", choices=["compile", "tensorize", "SaveTemps"], required=True)
    p.add_argument("--output", default="file.neff")
    p.add_argument("--lnc", choices=["1", "2"], default="1")
    p.add_argument("--optlevel", "-O", choices=["1", "2"])
    p.add_argument("--auto-cast", choices=["none", "matmult", "all"])
    p.add_argument("--tensorizer-options", default="")
    return p.parse_args(argv)


def log(text):
    line = time.strftime("%Y-%m-%dT%H:%M:%SZ ") + text
    print(line, flush=True)
    with open("log-neuron-cc.txt", "a") as f:
        f.write(line + "\n")


def write_neff(path, name, is_cut=False):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as t:
        for member, data in {"sg00/def.json": json.dumps({"name": "sg00", "pe_instr": "PE0.bin"}).encode(), "sg00/PE0.bin": bytes(64)}.items():
            info = tarfile.TarInfo(member)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    data = gzip.compress(tar.getvalue(), mtime=0)
    header = bytearray(1024)
    struct.pack_into("<QQQQQ", header, 0, 2, 1024, len(data), 1, 0)
    header[172:188] = hashlib.md5(data).digest()
    header[220 : 220 + len(name)] = name.encode()
    with open(path, "wb") as f:
        f.write(bytes(header) + data[: 40 if is_cut else None])


def main(behaviour, record, argv):
    args = parse(argv)
    name, instructions = read_hlo(args.file)
    os.mkdir("neuronxcc-scratch")
    daemon = subprocess.Popen(["sleep", "300"], start_new_session=True)  # keeps our output open
    with open(record, "a") as f:
        f.write(json.dumps({"arguments": argv, "module": name, "instructions": instructions, "cwd": os.getcwd(), "daemon": daemon.pid,
                            "environment": sorted(os.environ)}) + "\n")
    log(f"INFO compiling {name} for {args.target}")
    if behaviour == "internal":
        culprit = next(n for n, op in instructions if op == "multiply")
        log(f"ERROR [Tensorizer]: [NCC_ITEN404] Internal tensorizer error in instruction '{culprit}': no layout")
        log("INFO Artifacts stored in neuronxcc-scratch")
        sys.exit(70)
    elif behaviour == "memory":
        log("ERROR [F137] neuronx-cc was forcibly killed - this most commonly occurs due to insufficient system memory")
        sys.exit(70)
    elif behaviour == "allocates":
        print(len(bytearray(1 << 40)))
    elif behaviour in ("forks", "shares"):  # four processes of 100 MiB each, or that share 100 MiB
        mine = bytearray(os.urandom(1 << 20) * 100) if behaviour == "shares" else None
        children = []
        for _ in range(4):
            pid = os.fork()
            if not pid:
                mine = mine or bytearray(os.urandom(1 << 20) * 100)
                time.sleep(60 if behaviour == "forks" else 1)
                os._exit(len(mine) == 0)
            children.append(pid)
        for pid in children:
            os.waitpid(pid, 0)
    elif behaviour == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif behaviour == "hangs":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(300)
    elif behaviour == "nothing":
        return
    if "tensorize" in args.pipeline:
        with open("nki.py", "w") as f:
            f.write(f"import neuronxcc.nki.language as nl\n\n\ndef {name}():\n")
            for n, op in instructions:
                f.write(f"    {op}({n})  # %{n}\n" if op == "parameter" else f"    {n} = nl.{op}()\n")
    elif behaviour.startswith("package:"):
        with open(behaviour.removeprefix("package:"), "rb") as f, open(args.output, "wb") as g:
            g.write(f.read())
    else:
        write_neff(args.output, name, behaviour == "cut")
    log("INFO Compiler status PASS")


main(sys.argv[1], sys.argv[2], sys.argv[3:])
