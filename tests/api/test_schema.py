"""explorer/api/openapi.json against the C code that reads requests and writes results, and against the page's types."""
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess

import jsonschema_rs
import pytest
from support.paths import ROOT
from support.server import ADD_ONE

DOCUMENT = json.loads((ROOT / "explorer/api/openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]
NODE = ROOT / os.environ.get("VENV", "build/venv") / "bin/node"

COMPILE = {"source": ADD_ONE, "filename": "a.py", "language": "nkipy", "target": "trn2", "kernel": "add_one", "scope": "a" * 16,
           "inputs": [{"name": "x", "shape": [2, 3], "dtype": "float32"}], "files": [{"name": "lib/b.py", "source": ""}],
           "options": {"stop_after": "trace", "check": False, "artifacts": False}}
BINARY = {"source_base64": "AAAA", "language": "hlo"}
SNIPPET = {**COMPILE, "title": "a", "view": {"a": 1}, "visibility": "unlisted", "expires_in": 60}


def validator(name):
    return jsonschema_rs.validator_for({"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]})


def resolve(schema):
    while "$ref" in schema:
        at = DOCUMENT
        for step in schema["$ref"].removeprefix("#/").split("/"):
            at = at[step]
        schema = at
    return schema


# ---- requests

SAMPLES = {"string": "text", "integer": 7, "number": 1.5, "boolean": True, "null": None, "array": [], "object": {}}


def repeats(schema):
    """The least and the greatest length in a pattern such as "^[a-z]{16,64}$"."""
    found = re.search(r"\{(\d+),(\d+)\}\$$", schema.get("pattern", ""))
    return [int(n) for n in found.groups()] if found else []


def wrong_values(schema):
    """Values that the schema refuses, one for each thing that it says."""
    kind = schema["type"]
    yield from (v for k, v in SAMPLES.items() if k != kind)
    if "enum" in schema:
        yield "no-such-name"
    if "pattern" in schema:
        yield "no\x01control" if "u0000" in schema["pattern"] else "not this pattern, surely"
    if repeats(schema):
        yield from ("a" * (repeats(schema)[0] - 1), "a" * (repeats(schema)[1] + 1))
    if "minLength" in schema:
        yield ""
    if "maxLength" in schema:
        yield "A" * (schema["maxLength"] + 4)
    if "minimum" in schema:
        yield schema["minimum"] - 1
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if "maxItems" in schema:
        yield [example(resolve(schema["items"]))] * (schema["maxItems"] + 1)


def limit_values(schema):
    """Values at the limits of the schema, which it allows."""
    yield from schema.get("enum", [])
    if "maxLength" in schema:
        yield "A" * schema["maxLength"]
    yield from ("a" * n for n in repeats(schema))
    if schema.get("minLength") == 1:
        yield "A"
    for key in ("minimum", "maximum"):
        if key in schema:
            yield schema[key]
    if "maxItems" in schema:
        yield [example(resolve(schema["items"]))] * schema["maxItems"]


def example(schema):
    if schema["type"] == "object":
        return {k: example(resolve(schema["properties"][k])) for k in schema.get("required", [])}
    return {"integer": 1, "string": "x", "array": [], "boolean": True}[schema["type"]]


def places(schema, request, path=""):
    """(its name in messages, its schema, a function that puts another value there) of everything in a request."""
    for key, sub in schema["properties"].items():
        if key not in request:
            continue
        sub = resolve(sub)
        name = f"{path}{key}"
        yield name, sub, (lambda v, key=key: {**request, key: v})
        inner = request[key]
        if sub["type"] == "object" and "properties" in sub:
            for n, s, put in places(sub, inner, f"{name}."):
                yield n, s, (lambda v, key=key, put=put: {**request, key: put(v)})
        if sub["type"] == "array" and inner:
            item = resolve(sub["items"])
            if item["type"] == "object":
                for n, s, put in places(item, inner[0], f"{name}[0]."):
                    yield n, s, (lambda v, key=key, put=put: {**request, key: [put(v)]})
            else:
                yield f"{name}[0]", item, (lambda v, key=key: {**request, key: [v]})


def objects(schema, request, path=""):
    """The closed objects in a request, likewise."""
    yield path, schema, lambda v: v
    for key, sub in schema["properties"].items():
        sub = resolve(sub)
        if key in request and sub["type"] == "object" and "properties" in sub:
            yield f"{path}{key}.", sub, (lambda v, key=key: {**request, key: v})
        if key in request and sub["type"] == "array" and resolve(sub["items"])["type"] == "object":
            yield f"{path}{key}[0].", resolve(sub["items"]), (lambda v, key=key: {**request, key: [v]})


def send(server, name, request):
    body = json.dumps(request)
    if name == "CompileRequest":
        return server.post(body)
    return server.request("POST", "/api/v1/snippets", body, {"Content-Type": "application/json", "X-Nkx-Request": "1"})


REQUESTS = [("CompileRequest", COMPILE), ("CompileRequest", BINARY), ("SnippetRequest", SNIPPET)]


@pytest.mark.parametrize("name,request_", REQUESTS, ids=["source", "source_base64", "snippet"])
def test_the_server_refuses_what_the_schema_refuses_and_names_the_field(server, name, request_):
    schema, is_valid, tried = SCHEMAS[name], validator(name).is_valid, 0
    assert is_valid(request_)
    for field, sub, put in places(schema, request_):
        for value in wrong_values(sub):
            request = put(value)
            if is_valid(request):  # a text that is another type's sample, say
                continue
            answer = send(server, name, request)
            assert answer.status in (400, 413), (field, str(value)[:80], answer.status, answer.body[:200])
            assert answer.error["field"].startswith(field), (field, str(value)[:80], answer.error)
            tried += 1
    assert tried > 3 * len(request_)


@pytest.mark.parametrize("name,request_", REQUESTS, ids=["source", "source_base64", "snippet"])
def test_the_server_takes_the_schemas_limits(server, name, request_):
    is_valid = validator(name).is_valid
    for field, sub, put in places(SCHEMAS[name], request_):
        for value in limit_values(sub):
            if field == "options.stop_after" or field == "language" and "source_base64" in request_:
                continue  # which of the names fits depends on the list of stages, and on the source
            if field == "language" and value != "nkipy" or field.startswith("files"):
                continue  # only Python has files, whose names differ and whose sizes count together: test_files.py
            if field == "visibility" and value == "private":
                continue  # only who has signed in makes those: test_sign_in.py
            request = put(value)
            assert is_valid(request), (field, str(value)[:80])
            answer = send(server, name, request)
            assert answer.status in (200, 201), (field, str(value)[:80], answer.status, answer.body[:300])


@pytest.mark.parametrize("name,request_", REQUESTS, ids=["source", "source_base64", "snippet"])
def test_the_server_refuses_fields_that_the_schema_does_not_have_and_misses_those_that_it_requires(server, name, request_):
    is_valid = validator(name).is_valid
    for path, sub, put in objects(SCHEMAS[name], request_):
        whole = copy.deepcopy(request_)
        at = whole
        for step in re.findall(r"\w+", path):
            at = at[int(step) if step.isdigit() else step]
        more = put({**at, "no_such_field": 1})
        assert not is_valid(more)
        answer = send(server, name, more)
        assert answer.status == 400 and answer.error["field"] == f"{path}no_such_field", (path, answer.body)
        for key in sub.get("required", []):
            less = put({k: v for k, v in at.items() if k != key})
            assert not is_valid(less)
            answer = send(server, name, less)
            assert answer.status == 400 and answer.error["field"] == f"{path}{key}", (path, key, answer.body)
    for sources in ({}, {"source": "", "source_base64": "AAAA"}):
        request = {k: v for k, v in request_.items() if not k.startswith("source")} | sources
        assert not is_valid(request)
        answer = send(server, name, request)
        assert answer.status == 400 and answer.error["field"] == "source"


def test_the_schema_has_every_field_that_the_server_reads():
    """What is refused by name needs no list of ours; what is read does."""
    code = "".join((ROOT / f"compiler/driver/{name}.c").read_text() for name in ("job", "job_value"))
    read = set(re.findall(r'strcmp\(key, "(\w+)"\)', code))
    compile_, options = SCHEMAS["CompileRequest"]["properties"], SCHEMAS["CompileRequest"]["properties"]["options"]
    watch = options["properties"]["watch"]["items"]
    inside = [SCHEMAS[name] for name in ("InputSpec", "SourceFile", "ValueQuery", "SliceQuery", "TuneBudget")] + [SCHEMAS[watch["$ref"].rsplit("/", 1)[1]] if "$ref" in watch else watch]
    assert read == {*compile_, *options["properties"], *(field for s in inside for field in s["properties"])}
    assert set(compile_) < set(SCHEMAS["SnippetRequest"]["properties"])


# ---- answers

def check_all(name, values):
    v = validator(name)
    for value in values:
        for error in v.iter_errors(value):
            raise AssertionError(f"{name}: {'/'.join(map(str, error.instance_path))}: {error.message[:400]}")


def example_requests():
    for path in sorted((ROOT / "explorer/examples").glob("*.py")):
        yield path.stem, {"source": path.read_text(), "options": {"check": path.stem[:2] in ("01", "03"), "artifacts": True}}
    yield "refused", {"source": "import numpy as np\ndef f(x):\n    return np.linalg.qr(x)\n", "inputs": [{"shape": [2, 3]}]}
    yield "no Python", {"source": "def"}


@pytest.mark.parametrize("name,request_", list(example_requests()))
def test_results_and_frames_are_as_the_schema_says(server, name, request_):
    result = server.post(request_).json
    check_all("Result", [result])
    lines = server.post(request_, accept="application/x-ndjson").body.decode().splitlines()
    check_all("Frame", map(json.loads, lines))


def test_lists_diffs_and_snippets_are_as_the_schema_says(server):
    for path, name in (("targets", "Target"), ("examples", "Example"), ("ops", "Operation"), ("pipeline", "StageDescription")):
        body = server.get(f"/api/v1/{path}").json
        check_all(name, body["stages" if path == "pipeline" else path])
    key = server.compile(ADD_ONE, cache=None)["key"]
    check_all("StageDiff", [server.get(f"/api/v1/results/{key}/diff?from=0&to=1").json])
    made = [send(server, "SnippetRequest", SNIPPET).json]
    made.append(send(server, "SnippetRequest", {**SNIPPET, "parent": made[0]["id"]}).json)
    check_all("SnippetMade", made)
    check_all("Snippet", [server.get(f"/api/v1/snippets/{m['id']}").json for m in made])


# ---- the page's types

def test_the_pages_types_are_those_of_the_document():
    r = subprocess.run([NODE, "web/types.mjs", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr


def test_types_of_another_document_are_noticed(tmp_path):
    for name in ("explorer/api/openapi.json", "web/types.mjs", "web/src/api/types.ts"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place)
    place = tmp_path / "explorer/api/openapi.json"
    place.write_text(place.read_text().replace('"is_current"', '"is_todays"'))
    r = subprocess.run([NODE, "web/types.mjs", "--check"], cwd=tmp_path, capture_output=True, text=True)
    assert r.returncode == 1 and "make types" in r.stderr
    subprocess.run([NODE, "web/types.mjs"], cwd=tmp_path, check=True)
    assert "is_todays: boolean" in (tmp_path / "web/src/api/types.ts").read_text()
