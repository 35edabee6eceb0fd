"""Compiles a source with the product, and what its result says of inputs, outputs and stages."""
import json

import ml_dtypes
import numpy as np

from support import source_map, warm
from support.paths import ROOT

CONSTANTS = ("--constants", "4096")  # texts that are run have the elements of all but the largest


def compile(source, *arguments, check=False, timeout=120):
    """The result object of `nkx compile`, with places instead of numbers (source_map.expanded); raises only if the product itself fails (exit status 4, a crash)."""
    done = warm.run("compile", "-", "--quiet", "--json", "-", *CONSTANTS, *(["--check"] if check else []), *arguments, input=source.encode(), timeout=timeout)
    assert done.returncode in (0, 1, 3), (done.returncode, done.stderr.decode()[-2000:])
    return source_map.expanded(json.loads(done.stdout))


def is_checked(stage):
    """True if the stage was run and computes what NumPy computes."""
    return stage["check"]["status"] == "pass"


def assert_equal_at_every_stage(source, n, timeout=300):
    """The source has n kernels, none with an error, and no stage of theirs computes anything else than NumPy."""
    result = compile(source, check=True, timeout=timeout)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert not errors, f"{errors}\n{source}"
    assert len(result["kernels"]) == n
    for kernel in result["kernels"]:
        wrong = [s["name"] for s in kernel["stages"] if s["check"]["status"] == "fail"]
        assert not wrong, f"{kernel['name']}: {wrong[0]}\n{source}"


def checked_kernel(source, *arguments, timeout=300):
    """The only kernel of the source, which has no error and all stages of which compute what NumPy computes."""
    result = compile(source, *arguments, check=True, timeout=timeout)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert not errors, f"{errors}\n{source}"
    (kernel,) = result["kernels"]
    wrong = [s["name"] for s in kernel["stages"] if s["check"]["status"] == "fail"]
    assert not wrong, f"{wrong[0]}\n{source}"
    return kernel


def rules(kernel):
    """The rules of the kernel's remarks, each once."""
    return {r["rule"] for s in kernel["stages"] for r in s.get("remarks", [])}


def stage(kernel, name):
    """The stage of this name, which the kernel has."""
    (found,) = (s for s in kernel["stages"] if s["name"] == name)
    return found


def pipeline(name="default"):
    """The lines of stages.def, or those of the stages that the reference has."""
    text = (ROOT / "compiler/driver/stages.def").read_text()
    heads = ("STAGE(",) if name == "reference" else ("STAGE(", "STAGE_OWN(")
    return [line for line in text.splitlines() if line.startswith(heads)]


def stage_names(name="default"):
    """The names of the stages in order; a name may occur more than once."""
    return [line.split('"')[1] for line in pipeline(name)]


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" or name.startswith("float8") else np.dtype(name)


def random_inputs(kernel, seed=7):
    rng = np.random.default_rng(seed)
    arrays = []
    for tensor in kernel["inputs"]:
        t = dtype(tensor["dtype"])
        if t.kind in "iu":
            arrays.append(rng.integers(0, 8, tensor["shape"]).astype(t))
        elif t.kind == "b":
            arrays.append(rng.integers(0, 2, tensor["shape"]).astype(t))
        else:
            arrays.append(rng.uniform(-1, 1, tensor["shape"]).astype(np.float32).astype(t))
    return arrays


def output_types(kernel):
    return [(tuple(t["shape"]), dtype(t["dtype"])) for t in kernel["outputs"]]
