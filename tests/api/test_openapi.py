"""The OpenAPI document, tried against the server by schemathesis.  NKX_SCHEMATHESIS: examples per operation."""
import os
import subprocess
import sys

from support.server import Server


EXAMPLES = os.environ.get("NKX_SCHEMATHESIS", "3")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"


def test_the_document_is_openapi_and_served(server):
    answer = server.get("/api/openapi.json")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    assert answer.json["openapi"].startswith("3.1")


def test_every_answer_is_as_the_document_says(tmp_path):
    with Server("--job-timeout-ms", "3000") as server:
        r = subprocess.run([sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/api/openapi.json",
                            "--checks", CHECKS, "--max-examples", EXAMPLES, "--phases", "examples,fuzzing", "--seed", "1",
                            "--generation-database", "none", "--no-color", "--continue-on-failure"],
                           capture_output=True, text=True, cwd=tmp_path, timeout=int(EXAMPLES) * 200)
        assert r.returncode == 0, r.stdout[-6000:] + r.stderr[-2000:]
        assert server.get("/readyz").status == 200
