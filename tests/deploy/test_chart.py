"""The Helm chart and what goes with it: every flag is the server's, every metric is told, and a server runs under the seccomp profile."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

from support import seccomp
from support.paths import NKX, ROOT
from support.server import Server, free_port

CHART = ROOT / "docker/helm/nkx"
HELM = shutil.which(os.environ.get("NKX_HELM", "helm"))
KINDS = {"Deployment", "Service", "Ingress", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor",
         "PrometheusRule", "ConfigMap"}

SETS = [(), ("autoscaling.enabled=false",), ("image.digest=sha256:00",), ("ingress.tlsSecret=",), ("settings.user-header=X-Forwarded-User", "settings.anonymous=none"),
        ("objects.url=https://s3.example.org/nkx",), ("objects.url=https://s3.example.org/nkx", "objects.caKey=ca.pem")]
OLDEST = "1.30.0"  # Chart.yaml's kubeVersion
OPERATOR = pathlib.Path(os.environ.get("NKX_PROMETHEUS_OPERATOR", "/nowhere"), "example/prometheus-operator-crd")
DEFINITIONS = {  # of its release 0.85.0, with their SHA-256
    "ServiceMonitor": ("monitoring.coreos.com_servicemonitors.yaml", "1dae27b7189b5ce7b9ab764656c18b4c75a45cde1e6f3af6a5e84c4317628919"),
    "PrometheusRule": ("monitoring.coreos.com_prometheusrules.yaml", "98fd16c9ab79fba8dcd6ef62c957c98cd6546ab74ce0a4ecf09ddf2fda03020e"),
}


@pytest.fixture(scope="module")
def flags():
    text = subprocess.run([NKX, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (--[a-z0-9-]+) ", text, re.M))


def files():
    return [p for p in CHART.rglob("*") if p.is_file()]


def test_every_flag_in_the_chart_is_one_of_the_servers(flags):
    template = (CHART / "templates/deployment.yaml").read_text()
    named = set(re.findall(r"- (--[a-z0-9-]+)=", template))
    values = (CHART / "values.yaml").read_text()
    settings = values[values.index("\nsettings:"):values.index("\nworkers:")]
    named |= {"--" + name for name in re.findall(r"^[ #]+([a-z0-9-]+): ", settings, re.M)}
    assert len(named) >= 12 and named <= flags, named - flags


def test_every_metric_in_alerts_and_dashboard_is_told_by_the_server(tmp_path):
    key = tmp_path / "key"
    key.write_text("aws_access_key_id = a\naws_secret_access_key = b\n")
    with Server("--workers", "1", "--s3-url", f"http://127.0.0.1:{free_port()}/results", "--s3-credentials", str(key)) as s:  # nobody need answer there
        told = set(re.findall(r"^(nkx_[a-z_]+)", s.get("/metrics").body.decode(), re.M))
    assert told
    for path in (CHART / "templates/monitoring.yaml", CHART / "templates/scaling.yaml", CHART / "dashboard.json"):
        named = set(re.findall(r"\bnkx_[a-z_]+", path.read_text()))
        assert named and named <= told, named - told
    assert len(json.loads((CHART / "dashboard.json").read_text())["panels"]) >= 10


def test_all_objects_are_there():
    kinds = {kind for p in files() for kind in re.findall(r"^kind: (\w+)$", p.read_text(), re.M)}
    assert kinds == KINDS
    pod = (CHART / "templates/deployment.yaml").read_text()
    assert "hostUsers: {{ .Values.jail.hostUsers }}" in pod and yaml.safe_load((CHART / "values.yaml").read_text())["jail"]["hostUsers"] is False


def render(sets, kubernetes=OLDEST):
    """What helm makes of the chart."""
    r = subprocess.run([HELM, "template", "site", CHART, "--kube-version", kubernetes, "--api-versions", "monitoring.coreos.com/v1",
                        *(x for s in sets for x in ("--set", s))], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return [o for o in yaml.safe_load_all(r.stdout) if o]


needs_helm = pytest.mark.skipif(not HELM, reason="helm is not installed (NKX_HELM names it; CONTRIBUTING.md)")


@needs_helm
@pytest.mark.parametrize("sets", SETS)
def test_helm_renders_the_chart(sets, flags):
    found = render(sets)
    objects = {o["kind"]: o for o in found}
    assert set(objects) == KINDS - ({"HorizontalPodAutoscaler"} if "autoscaling.enabled=false" in sets else set())
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    assert pod["hostUsers"] is False and pod["securityContext"]["seccompProfile"]["localhostProfile"] == "nkx.json"
    args = pod["containers"][0]["args"]
    assert {a.split("=")[0] for a in args} <= flags and "--ops-port=10241" in args
    assert ("--s3-url=https://s3.example.org/nkx" in args) == ("objects.url=https://s3.example.org/nkx" in sets)
    assert ("--anonymous=none" in args) == ("settings.anonymous=none" in sets)
    labels = objects["Service"]["spec"]["selector"].items()
    assert labels <= objects["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    if "objects.caKey=ca.pem" in sets:
        assert "--s3-ca-file=/etc/nkx/ca.pem" in args
    json.loads(objects["ConfigMap"]["data"]["nkx.json"])
    compiles, rest = sorted((o for o in found if o["kind"] == "Ingress"), key=lambda o: -len(o["metadata"]["name"]))
    again = "nginx.ingress.kubernetes.io/proxy-next-upstream"
    assert "non_idempotent" in compiles["metadata"]["annotations"][again] and again not in rest["metadata"]["annotations"]
    assert compiles["spec"]["rules"][0]["http"]["paths"][0]["path"] == "/api/v1/compile"


@needs_helm
@pytest.mark.parametrize("sets", SETS)
def test_what_helm_renders_satisfies_the_schemas_of_kubernetes(sets):
    """Of the oldest version that the chart allows and of the newest that is known; no member that they do not know, either."""
    schemas = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed (CONTRIBUTING.md)")
    for version in OLDEST, schemas.latest_version():
        checked = set()
        for o in render(sets, version):
            if o["kind"] not in DEFINITIONS:  # objects of an operator, not of Kubernetes
                assert schemas.validate(o, version, strict=True) == version.rsplit(".", 1)[0]
                checked.add(o["kind"])
        assert checked >= KINDS - {*DEFINITIONS, "HorizontalPodAutoscaler"}
    wrong = next(o for o in render(("podDisruptionBudget.maxUnavailble=1",)) if o["kind"] == "PodDisruptionBudget")
    with pytest.raises(schemas.ValidationError, match="maxUnavailble"):
        schemas.validate(wrong, OLDEST, strict=True)


def strict(schema):
    """The same, which allows no member that it does not name: Kubernetes would drop such a one without a word."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    if isinstance(out.get("properties"), dict) and out.get("type") == "object" and not out.get("x-kubernetes-preserve-unknown-fields"):
        out.setdefault("additionalProperties", False)
    return out


def definition(kind):
    """(group/version, strict schema) by the operator's definition of its kind of object."""
    jsonschema = pytest.importorskip("jsonschema", reason="kubernetes-validate brings it")  # jsonschema_rs refuses Go's patterns
    name, digest = DEFINITIONS[kind]
    data = (OPERATOR / name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == digest, f"{name} is not that of the release"
    spec = yaml.safe_load(data)["spec"]
    version = next(v for v in spec["versions"] if v["storage"])
    return f"{spec['group']}/{version['name']}", jsonschema.Draft7Validator(strict(version["schema"]["openAPIV3Schema"]))


@needs_helm
@pytest.mark.skipif(not OPERATOR.is_dir(), reason="the Prometheus operator's module is not there (NKX_PROMETHEUS_OPERATOR names it; CONTRIBUTING.md)")
@pytest.mark.parametrize("kind", DEFINITIONS)
def test_monitoring_satisfies_the_definitions_of_the_prometheus_operator(kind):
    version, schema = definition(kind)
    for sets in SETS:
        (found,) = [o for o in render(sets) if o["kind"] == kind]
        assert found["apiVersion"] == version and not list(schema.iter_errors(found))
    wrong = {"ServiceMonitor": ["spec", "endpoints", 0, "intervall"], "PrometheusRule": ["spec", "groups", 0, "rules", 0, "form"]}[kind]
    at = found
    for step in wrong[:-1]:
        at = at[step]
    at[wrong[-1]] = "1m"
    assert any(wrong[-1] in e.message for e in schema.iter_errors(found)), "a misspelt member is found"


@needs_helm
def test_helm_lint_has_nothing_to_say_and_an_older_kubernetes_is_refused():
    r = subprocess.run([HELM, "lint", "--strict", "--kube-version", OLDEST, CHART], capture_output=True, text=True)
    assert r.returncode == 0 and "1 chart(s) linted, 0 chart(s) failed" in r.stdout, r.stdout + r.stderr
    r = subprocess.run([HELM, "template", "site", CHART, "--kube-version", "1.29.0"], capture_output=True, text=True)
    assert r.returncode and "requires kubeVersion" in r.stderr


@pytest.mark.skipif(not seccomp.IS_INSTALLED, reason="libseccomp is not installed")
def test_a_server_under_the_seccomp_profile_has_the_same_jail(server, tmp_path, monkeypatch):
    wrapper = tmp_path / "nkx"
    wrapper.write_text(f"#!/bin/sh\nPYTHONPATH={ROOT / 'tests'} exec python3 -m support.seccomp {NKX} \"$@\"\n")
    wrapper.chmod(0o755)
    monkeypatch.setattr("support.server.NKX", wrapper)
    monkeypatch.setenv("PATH", str(ROOT / "build/venv/bin"), prepend=":")
    with Server() as s:
        status = pathlib.Path(f"/proc/{s.process.pid}/status").read_text()
        assert "Seccomp:\t2" in status
        assert s.get("/healthz").json["jail"] == server.get("/healthz").json["jail"]
        assert s.get("/readyz").status == 200


def test_envoy_gives_to_another_server_what_was_not_begun_and_keeps_operations_to_itself():
    conf = yaml.safe_load((ROOT / "docker/envoy.yaml").read_text())["static_resources"]
    manager = conf["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    refused, compiles, reads, passed = manager["route_config"]["virtual_hosts"][0]["routes"]
    assert all(re.fullmatch(refused["match"]["safe_regex"]["regex"], p) for p in ("/metrics", "/readyz/", "/healthz"))
    retry = passed["route"]["retry_policy"]
    assert retry["retriable_headers"][0]["name"] == "x-nkx-not-begun" and "5xx" not in retry["retry_on"]
    again = compiles["route"]["retry_policy"]
    assert reads["route"] == compiles["route"] and reads["match"]["headers"][0]["string_match"]["safe_regex"]["regex"] == "GET|HEAD"
    assert compiles["match"] == {"path": "/api/v1/compile"} and "reset" in again["retry_on"].split(",") and "reset" not in retry["retry_on"].split(",")
    assert again["num_retries"] == 1 and compiles["route"]["hash_policy"] == passed["route"]["hash_policy"], "the same server first"
    assert {"x-forwarded-user", "forwarded"} <= set(manager["route_config"]["request_headers_to_remove"])
    (cluster,) = conf["clusters"]
    assert cluster["name"] == passed["route"]["cluster"] and cluster["lb_policy"] == "RING_HASH" and passed["route"]["hash_policy"]
