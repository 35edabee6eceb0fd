"""Runs a source on the simulated machine by `nkx run`."""
import json
import pathlib
import tempfile

import ml_dtypes
import numpy as np

from support import warm


def simulated(source, inputs=None, *arguments, timeout=120, beside=()):
    """What its only kernel, or that of --kernel, returns: ({name: array}, the kernel's part of the result).

    inputs: {parameter: array}, or None for the product's own.  beside: files and folders that the source imports.
    """
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        for path in beside:
            (directory / path.name).symlink_to(path)
        (directory / "kernel.py").write_text(source)
        if inputs is not None:
            np.savez(directory / "in.npz", **inputs)
            arguments = ("--inputs", directory / "in.npz", *arguments)
        done = warm.run("run", directory / "kernel.py", "--save-outputs", directory / "out.npz", "--json", "-", *arguments, timeout=timeout)
        assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()[:3000]
        [kernel] = json.loads(done.stdout)["kernels"]
        assert kernel["simulation"]["status"] == "ok" and all(o["pass"] for o in kernel["simulation"]["outputs"])
        with np.load(directory / "out.npz") as outputs:
            return {name: _typed(outputs[name]) for name in outputs.files}, kernel


def _typed(array):
    """NumPy's format has no name for bfloat16."""
    return array.view(ml_dtypes.bfloat16) if array.dtype == "V2" else array
