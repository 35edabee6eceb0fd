"""The stores are tested through the server and through the command line; the server's helpers are those of the API's
tests."""
import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("api_conftest", HERE.parent / "api/conftest.py")
api = importlib.util.module_from_spec(spec)
sys.modules["api_conftest"] = api
spec.loader.exec_module(api)
sys.path.insert(0, str(HERE))
from postgres import Postgres  # noqa: E402

OURS = {"Content-Type": "application/json", "X-Nkx-Request": "1"}


def share(server, source=api.ADD_ONE, **fields):
    return server.request("POST", "/api/v1/snippets",
                          json.dumps({"source": source, "inputs": api.FLOAT_INPUT, **fields}), OURS)


def read(server, snippet_id):
    return server.get(f"/api/v1/snippets/{snippet_id}")


def nkx(*args):
    return subprocess.run([api.BUILD / "bin/nkx", *map(str, args)], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="session")
def postgres():
    p = Postgres()
    yield p
    p.end()
