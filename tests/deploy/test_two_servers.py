"""Two servers on one PostgreSQL behind each proxy of docker/: what one stores the other serves, and either may end."""
import json
import subprocess

import pytest
import yaml

from support.clients import in_thread, read, remove, share
from support.paths import NKX, ROOT
from support.server import ADD_ONE, FLOAT_INPUT, JSON, OURS, Server
from support.site import ADDRESSES
from support.wait import wait_until


def source(n):
    return ADD_ONE.replace("+ 1", f"+ {n}")


def share_new(at, n):
    answer = share(at, source(n))
    assert answer.status == 201, answer.body
    return answer.json


def jobs_done(server):
    return sum("job_done" in line for line in server.log)


def test_a_link_made_by_one_server_is_served_by_the_other_and_by_the_proxy(site):
    link = share_new(site.servers[0], 11)
    for at in (site.servers[1], site.proxy):
        assert at.get(link["url"]).status == 200
        got = read(at, link).json
        assert got["request"]["source"] == source(11) and got["result"]["status"] == "ok"


def test_a_result_compiled_by_one_server_is_not_compiled_by_the_other(site):
    first = site.servers[0].compile(source(12), cache=None)
    stored = f"/api/v1/results/{first['key']}"
    wait_until(lambda: site.servers[1].get(stored).status == 200, "the result in the store")
    before = jobs_done(site.servers[1])
    assert site.servers[1].compile(source(12), cache=None) == first
    assert jobs_done(site.servers[1]) == before


def test_a_link_deleted_at_one_server_is_gone_at_the_other(site):
    link = share_new(site.servers[0], 13)
    assert read(site.servers[1], link).status == 200
    assert remove(site.servers[0], link).status == 204
    assert read(site.servers[0], link).status == read(site.servers[1], link).status == 404


def test_one_server_killed_and_the_other_goes_on_behind_the_proxy(site):
    link = share_new(site.proxy, 14)
    site.servers[0].kill()
    for i in range(20):
        assert read(site.proxy, link).json["request"]["source"] == source(14)
        assert site.proxy.get("/").status == 200
    assert site.proxy.compile(source(15))["status"] == "ok"
    assert site.proxy.get(share_new(site.proxy, 16)["url"]).status == 200
    site.restart(0)
    assert site.servers[0].get(link["url"]).status == 200


def test_a_clients_requests_go_to_one_server_and_others_to_another(site):
    site.wait_both()
    homes = [site.home_of(a) for a in ADDRESSES]
    assert homes == [site.home_of(a) for a in ADDRESSES] and set(homes) == {0, 1}


def test_a_compile_whose_server_dies_is_done_by_the_other(site):
    """Once: of what may have been stored nothing is repeated."""
    address = next(a for a in ADDRESSES if site.home_of(a) == 0)
    slow = {"source": f"import time\ntime.sleep(2)\n{source(18)}", "inputs": FLOAT_INPUT}
    for path, statuses in (("/api/v1/compile", {200}), ("/api/v1/snippets", {502})):
        wait_until(lambda: site.home_of(address) == 0, "its own server to be tried again")
        answer = in_thread(lambda p=path: site.proxy.request("POST", p, slow, {**OURS, "Cache-Control": "no-store"}, address=address))
        site.servers[0].wait_running()
        site.servers[0].kill()
        got = answer()
        assert got.status in statuses, got.body
        assert got.json["status"] == "ok" if path == "/api/v1/compile" else got.json["error"]["code"] == "no-answer"
        site.restart(0)


def test_what_a_server_refuses_without_beginning_it_another_one_does(site, proxy):
    """One of two servers is full: its worker is taken, and so is the place to wait.  The proxy gives what it sheds to the other one."""
    with Server("--store", site.postgres.url, "--workers", "1", "--queue", "1", "--job-timeout-ms", "8000") as full, proxy(full, site.servers[1]) as before:
        loops = []
        for state in ("running", "waiting"):
            loops.append(in_thread(full.post, {"source": f"while {len(loops) + 1}:\n    pass\n", "inputs": []}))
            wait_until(lambda: full.get("/healthz").json[state] == 1, f"one to be {state}", 20)
        refused = full.post({"source": source(101), "inputs": FLOAT_INPUT})
        assert refused.status == 503 and refused.headers["X-Nkx-Not-Begun"] == "1"
        shed = asked_of(full)
        for n in range(2, 6):  # clients of both servers
            body = {"source": source(110 + n), "inputs": FLOAT_INPUT}
            answer = before.request("POST", "/api/v1/compile", body, JSON, address=f"127.0.0.{n}")
            assert answer.status == 200 and answer.json["status"] == "ok", answer.body
        assert asked_of(full) > shed, "the full one was asked, too"
        assert [loop().status for loop in loops] == [200, 200]


def asked_of(server):
    return sum(float(line.split()[-1]) for line in server.get("/metrics").body.decode().splitlines()
               if line.startswith('nkx_http_requests_total{route="/api/v1/compile",status="503"'))


def test_stages_pass_the_proxy_as_they_come(site):
    c = site.proxy.connect()
    c.request("POST", "/api/v1/compile", json.dumps({"source": source(17), "inputs": FLOAT_INPUT}),
              {**JSON, "Accept": "application/x-ndjson"})
    r = c.getresponse()
    frames = [json.loads(line)["frame"] for line in r]
    assert r.headers["Transfer-Encoding"] == "chunked" and frames[0] == "start" and frames[-1] == "end"
    c.close()


def test_the_compose_file_asks_for_what_the_servers_and_the_jail_need():
    compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
    services = compose["services"]
    assert set(services) == {"nkx1", "nkx2", "postgres", "proxy"}
    conf = (ROOT / "docker/nginx.conf").read_text()
    for name in ("nkx1", "nkx2"):
        s = services[name]
        assert {"seccomp=seccomp.json", "apparmor=unconfined", "no-new-privileges:true"} <= set(s["security_opt"])
        assert (ROOT / "docker/seccomp.json").exists(), "beside the compose file, to which its path is relative"
        assert s["cap_drop"] == ["ALL"] and not s.get("privileged")
        assert (ROOT / "docker" / s["build"]["context"] / s["build"]["dockerfile"]).exists()
        assert f"server {name}:10240" in conf
    assert all("healthcheck" in s for s in services.values())


def test_the_servers_flags_of_the_compose_file_are_flags_of_the_server():
    compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
    known = subprocess.run([NKX, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    for word in compose["services"]["nkx1"]["command"]:
        assert not word.startswith("--") or f"{word} " in known


NAMES = ["User", "Email", "Groups"]


@pytest.mark.parametrize("form", ["X-Forwarded-", "X-Auth-Request-"])
def test_no_client_signs_itself_in_through_the_proxy(proxy, form):
    """Nor names its address or its request, on any of the proxy's ways to a server."""
    flags = [x for name in NAMES for x in (f"--{name.lower()}-header", form + name)]
    forged = {form + "User": "ada", form + "Email": "ada@example.org", form + "Groups": "sre", "X-Forwarded-For": "192.0.2.7", "Forwarded": "for=192.0.2.7",
              "X-Request-Id": "forged"}
    with Server("--trusted-proxies", "127.0.0.1", "--operator-groups", "sre", *flags, "--log-requests", "yes", "--log-clients", "address", "--queue", "0") as s, \
            proxy(s) as before:
        assert s.request("GET", "/api/v1/me", headers=forged).json["role"] == "operator", "whoever reaches the server as the proxy is believed"
        own = "127.0.0.7"  # Envoy has the machine's address in place of 127.0.0.1
        me = before.request("GET", "/api/v1/me", headers=forged, address=own)
        assert me.json["kind"] == "anonymous" and me.headers["X-Request-Id"] != "forged"
        n = len(s.log)
        for method, path in (("POST", "/api/v1/compile"), ("POST", "/api/v1/runner/files/x/y"), ("GET", "/api/v1/snippets/AAAAAAAA")):
            before.request(method, path, {"source": source(1), "inputs": FLOAT_INPUT} if method == "POST" else None, {**JSON, **forged}, address=own)
        wait_until(lambda: sum(f"client={own}" in line for line in s.log[n:]) >= 4, "the lines: a compile that is refused comes a second time")
        assert not any("192.0.2.7" in line or "ada" in line or "request=forged" in line for line in s.log[n:])


def test_the_proxy_keeps_the_operators_pages_to_itself(site):
    for path in ("/metrics", "/readyz", "/healthz", "//metrics", "/metrics/"):
        assert site.proxy.get(path).status == 404, path
    assert site.servers[0].get("/metrics").status == 200 and site.proxy.get("/").status == 200
