"""The jail is tested from inside: servers are those of the API's tests, the prober is a C library that a kernel loads
through ctypes, as an attacker would."""
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("api_conftest", HERE.parent / "api/conftest.py")
api = importlib.util.module_from_spec(spec)
sys.modules["api_conftest"] = api
spec.loader.exec_module(api)
sys.path.insert(0, str(HERE))


@pytest.fixture(scope="session")
def prober_dir(tmp_path_factory):
    """The kernels' packages with the prober beside them: what a job sees, it may load."""
    place = tmp_path_factory.mktemp("python")
    for p in (place, *place.parents):  # a job without namespaces is nobody, and must get there
        if p.stat().st_mode & 0o005 != 0o005 and p.name:
            p.chmod(p.stat().st_mode | 0o005)
    shutil.copytree(api.BUILD / "python", place, dirs_exist_ok=True)
    subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
                    place / "prober.so", HERE / "prober.c"], check=True)
    return place


@pytest.fixture(scope="session")
def probed(prober_dir):
    """A server whose jobs can load the prober."""
    s = api.Server("--python-dir", str(prober_dir), "--workers", "4", "--job-timeout-ms", "10000")
    s.prober = prober_dir / "prober.so"
    s.settle()
    yield s
    if s.process.poll() is None:
        assert s.stop() == 0


def run_inside(server, code):
    """Runs Python code in a worker, with `prober` being the library; what it assigns to `said` (of JSON) comes back."""
    source = ("import ctypes, json\n"
              f"prober = ctypes.CDLL({str(server.prober)!r})\nsaid = None\n{code}\n"
              "raise SystemError('<<' + json.dumps(said) + '>>')\n")
    result = server.compile(source, inputs=[])
    texts = [d["message"] for d in result["diagnostics"]]
    for text in texts:
        if "<<" in text:
            return json.loads(text[text.index("<<") + 2:text.rindex(">>")])
    raise AssertionError(f"the code in the worker did not come to its end: {texts}")
