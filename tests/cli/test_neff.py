"""nkx neff, and simulation packages: read by Python's own modules, and run."""
import hashlib
import io
import json
import struct
import subprocess
import tarfile

import numpy as np
import pytest

from support.neff import neff, small
from support.paths import NKX, ROOT

EXAMPLES = ROOT / "explorer" / "examples"
MARKED = pytest.mark.nightly
KERNELS = [pytest.param(p, marks=() if p.name[:2] in ("01", "04", "11") else MARKED, id=p.stem) for p in sorted(EXAMPLES.glob("*.py"))]


def nkx(*args, status=0):
    run = subprocess.run([NKX, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert run.returncode == status, run.stdout + run.stderr
    return run.stdout + run.stderr


def members(path):
    """The members of a NEFF, read as the vendor describes the format."""
    data = path.read_bytes()
    version, header_size, data_size = struct.unpack_from("<QQQ", data)
    assert (version, header_size, header_size + data_size) == (2, 1024, len(data))
    assert data[172:188] == hashlib.md5(data[header_size:]).digest()
    with tarfile.open(fileobj=io.BytesIO(data[header_size:]), mode="r:gz") as tar:
        return {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_package_of_an_example_computes_what_numpy_computes(kernel, tmp_path):
    package, out = tmp_path / "k.sim.neff", tmp_path / "result.json"
    nkx("neff", "pack", kernel, "-o", package)
    nkx("run", kernel, "--json", out, "--save-outputs", tmp_path / "of_kernel.npz")
    want = json.loads(out.read_text())["kernels"][0]
    assert all(o["pass"] for o in want["simulation"]["outputs"])

    rng = np.random.default_rng(1)
    arrays = {i["name"]: rng.standard_normal(i["shape"]).astype(i["dtype"]) if i["dtype"].startswith(("float", "bfloat")) else
              rng.integers(0, 3, i["shape"]).astype(i["dtype"]) for i in want["inputs"]}
    np.savez(tmp_path / "in.npz", **arrays)
    nkx("run", kernel, "--inputs", tmp_path / "in.npz", "--save-outputs", tmp_path / "kernel.npz")
    nkx("run", package, "--inputs", tmp_path / "in.npz", "--save-outputs", tmp_path / "package.npz", "--json", out)
    a, b = np.load(tmp_path / "kernel.npz"), np.load(tmp_path / "package.npz")
    assert a.files == b.files == [o["name"] for o in want["outputs"]]
    for name in a.files:
        np.testing.assert_array_equal(a[name], b[name])
    got = json.loads(out.read_text())["kernels"][0]
    for kind in ("inputs", "outputs"):
        assert [(t["name"], t["shape"], t["dtype"], t.get("alias_of")) for t in got[kind]] == \
               [(t["name"], t["shape"], t["dtype"], t.get("alias_of")) for t in want[kind]]


def test_a_package_says_that_no_device_executes_it(tmp_path):
    package = tmp_path / "k.sim.neff"
    assert "no device executes it" in nkx("neff", "pack", EXAMPLES / "01_matmul_bias_relu.py", "-o", package)
    assert struct.unpack_from("<Q", package.read_bytes(), 544)[0] >> 63 == 1
    info = json.loads(members(package)["info.json"])
    assert info["simulation"] is True and "no device" in info["executed_by"] and info["simulated_time_us"] > 0
    shown = nkx("neff", "info", package)
    assert shown.startswith("A simulation package") and f"\nsimulated time {info['simulated_time_us']:.2f} us\n" in shown
    described = json.loads(nkx("neff", "info", package, "--json"))
    assert described["kind"] == "simulation" and described["header"]["hash_matches"] is True


def test_the_descriptors_move_every_byte_of_the_inputs_and_outputs(tmp_path):
    """The descriptors of the transfers, carried out on arrays of bytes, read all inputs and write all outputs."""
    package = tmp_path / "k.sim.neff"
    nkx("neff", "pack", EXAMPLES / "01_matmul_bias_relu.py", "-o", package)
    parts = members(package)
    sizes = {k[4:]: v["size"] for k, v in json.loads(parts["sg00/def.json"]).items() if k.startswith("var.")}
    touched = {name: np.zeros(size, bool) for name, size in sizes.items()}

    def offsets(d, side):
        at = np.arange(d[f"{side}_sizes"][0]) + d[f"{side}_off"]
        for n, step in zip(d[f"{side}_sizes"][1:], d[f"{side}_steps"]):
            at = (at[None, :] + step * np.arange(n)[:, None]).ravel()
        return at

    for name, text in parts.items():
        if name.startswith("sg00/") and name != "sg00/def.json" and name.endswith(".json"):
            for transfer in json.loads(text)["dma"]:
                for d in transfer["desc"]:
                    source, target = offsets(d, "from"), offsets(d, "to")
                    assert len(source) == len(target) == len(set(target))
                    touched[d["from"]][source] = True
                    touched[d["to"]][target] = True
    for name in ("x", "w", "bias", "output0"):
        assert touched[name].all(), name


def test_unpacked_files_are_the_members_and_nothing_is_overwritten(tmp_path):
    package = tmp_path / "k.sim.neff"
    nkx("neff", "pack", EXAMPLES / "02_add_bias.py", "-o", package)
    nkx("neff", "unpack", package, "-o", tmp_path / "out")
    found = {str(p.relative_to(tmp_path / "out")): p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert found == members(package)
    assert "File exists" in nkx("neff", "unpack", package, "-o", tmp_path / "out", status=1)


def test_what_was_unpacked_is_packed_again(tmp_path):
    package, again, parts = tmp_path / "k.sim.neff", tmp_path / "again.sim.neff", tmp_path / "parts"
    nkx("neff", "pack", EXAMPLES / "02_add_bias.py", "-o", package)
    nkx("neff", "unpack", package, "-o", parts)
    nkx("neff", "pack", parts, "--like", package, "-o", again)
    assert again.read_bytes() == package.read_bytes()

    (parts / "notes").mkdir()
    (parts / "notes/why.txt").write_text("a note")
    (parts / "kelf-0.json").unlink()
    nkx("neff", "pack", parts, "--like", package, "-o", again)
    assert list(members(again)) == [n for n in members(package) if n != "kelf-0.json"] + ["notes/why.txt"]
    changes = {d["what"]: d["change"] for d in json.loads(nkx("neff", "diff", package, again, "--json", status=1))}
    assert changes == {"kelf-0.json": "removed", "notes/why.txt": "added"}
    nkx("run", again)
    assert struct.unpack_from("<Q", again.read_bytes(), 544)[0] >> 63 == 1

    (parts / "sg00/PE0.json").write_text("[]")
    assert "sg00/PE0.json is no JSON object" in nkx("neff", "pack", parts, "--like", package, "-o", tmp_path / "bad.neff", status=1)
    (parts / "sg00/PE0.json").unlink()
    (parts / "sg00/PE0.json").symlink_to("/etc/passwd")
    assert "neither a file nor a folder" in nkx("neff", "pack", parts, "--like", package, "-o", tmp_path / "bad.neff", status=1)
    assert not (tmp_path / "bad.neff").exists()
    assert "usage" in nkx("neff", "pack", parts, "--like", package, status=2)


def test_a_neff_of_the_vendor_is_packed_again_as_it_was(tmp_path):
    path, again = tmp_path / "k.neff", tmp_path / "again.neff"
    path.write_bytes(neff(small()))
    nkx("neff", "unpack", path, "-o", tmp_path / "parts")
    nkx("neff", "pack", tmp_path / "parts", "--like", path, "-o", again)
    assert nkx("neff", "diff", path, again) == "" and members(again) == members(path)


def test_packages_of_the_same_kernel_are_the_same_bytes_and_others_differ(tmp_path):
    a, b, c = (tmp_path / f"{n}.sim.neff" for n in "abc")
    nkx("neff", "pack", EXAMPLES / "02_add_bias.py", "-o", a)
    nkx("neff", "pack", EXAMPLES / "02_add_bias.py", "-o", b)
    nkx("neff", "pack", EXAMPLES / "02_add_bias.py", "-o", c, "--target", "trn1")
    assert a.read_bytes() == b.read_bytes()
    assert nkx("neff", "diff", a, b) == ""
    changes = {d["what"]: d["change"] for d in json.loads(nkx("neff", "diff", a, c, "--json", status=1))}
    assert changes["program.mlir"] == "changed" and "header.name" not in changes


def vendor_like(path, files):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as t:
        for name, text in files.items():
            info = tarfile.TarInfo("./" + name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text))
    data = tar.getvalue()
    header = bytearray(1024)
    struct.pack_into("<QQQQQ", header, 0, 2, 1024, len(data), 1, 0)
    header[172:188] = hashlib.md5(data).digest()
    path.write_bytes(bytes(header) + data)


def test_a_neff_of_the_vendor_is_shown_and_not_run_on_the_simulated_machine(tmp_path):
    path = tmp_path / "k.neff"
    definition = {"name": "sg00", "pe": "PE0.json", "pe_instr": "PE0.bin", "var.x": {"type": "input", "var_id": 1, "size": 8}}
    vendor_like(path, {"sg00/def.json": json.dumps(definition).encode(), "sg00/PE0.json": b'{"dma": []}', "sg00/PE0.bin": b"\1" * 64})
    shown = nkx("neff", "info", path)
    assert shown.startswith("A NEFF of the vendor's compiler") and "64 bytes of code" in shown
    assert "a Neuron device executes" in nkx("run", path, status=2)


def test_what_is_no_neff_is_refused_with_its_name(tmp_path):
    path = tmp_path / "k.neff"
    path.write_bytes(b"hello")
    assert "k.neff: not a NEFF" in nkx("neff", "info", path, status=1)
    assert "k.neff: not a NEFF" in nkx("run", path, status=2)
    assert "No such file" in nkx("neff", "info", tmp_path / "none.neff", status=1)
    assert "usage" in nkx("neff", "info", status=2)


def test_a_file_of_several_kernels_needs_a_choice(tmp_path):
    kernels = EXAMPLES / "nki" / "08_matmul_tiled.py"
    refused = nkx("neff", "pack", kernels, "-o", tmp_path / "k.sim.neff", status=1)
    assert "choose one by --kernel" in refused and not (tmp_path / "k.sim.neff").exists()


ESCAPES = "\x1b]0;title\x07\x1b[31mred\x7f\x85"


def test_names_in_a_file_cannot_command_the_terminal(tmp_path):
    parts = small()
    parts["sg00/def.json"]["var.z" + ESCAPES] = {"type": "input", "var_id": 3, "size": 4}
    good, more, bad = tmp_path / "good.neff", tmp_path / "more.neff", tmp_path / "bad.neff"
    good.write_bytes(neff(small()))
    more.write_bytes(neff(parts))
    bad.write_bytes(neff({**small(), "sg00/" + ESCAPES: b"x"}))
    for said in (nkx("neff", "info", more), nkx("neff", "diff", good, more, status=1), nkx("neff", "info", bad, status=1)):
        assert not set(said) & set("\x1b\x07\x7f\x85"), repr(said)
    assert "z\\x1b]0;title\\x07\\x1b[31mred\\x7f\\x85" in nkx("neff", "info", more)
