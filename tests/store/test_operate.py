"""What an operator does about links, by `nkx store`, beside a server that runs and without one."""
import os
import pathlib
import stat
import subprocess

import pytest

from support.clients import nkx, read, share
from support.marks import needs_reach
from support.paths import NKX
from support.server import ADD_ONE, FLOAT_INPUT, OURS, Server


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


def store(server, what, *args):
    return nkx("store", what, "--store", f"sqlite:{server.data}/nkx.sqlite", *args)


def listed(server):
    lines = store(server, "list").stdout.splitlines()
    return [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]


def name_of(server, made):
    return store(server, "show", made["id"]).stdout.split("\t")[0]


def test_a_link_is_deleted_by_its_id_while_the_server_runs(server):
    made = share(server, title="to be taken down").json
    assert read(server, made).status == 200, "and the answer is kept in memory"
    done = store(server, "delete", made["id"])
    assert done.returncode == 0 and done.stdout.startswith("deleted "), done
    assert read(server, made).status == server.get(made["url"]).status == 404
    again = store(server, "delete", made["id"])
    assert again.returncode == 1 and "no such link" in again.stderr


def test_links_are_listed_with_names_by_which_they_are_shown_and_deleted(server):
    unlisted, public = share(server, title="unlisted").json, share(server, title="public", visibility="public").json
    share(server, {"source": ADD_ONE + "# 2\n"}["source"], headers=OURS)
    revised = server.request("POST", f"/api/v1/snippets/{unlisted['id']}", {"source": ADD_ONE + "# revised\n", "inputs": FLOAT_INPUT},
                             {**OURS, "X-Nkx-Edit-Token": unlisted["edit_token"]})
    assert revised.status == 201
    name = name_of(server, unlisted)
    row = next(r for r in listed(server) if r["link"] == name)
    assert row["id"] == "unlisted" and row["revisions"] == "2" and row["expires"] == "never" and int(row["bytes"]) > 1000
    assert [r["id"] for r in listed(server)].count(public["id"]) == 1
    assert not any(unlisted["id"] in str(r) for r in listed(server)), "the id of an unlisted link is a secret"
    shown = store(server, "show", name)
    assert "# revised" in shown.stdout and '"request"' in shown.stdout
    assert store(server, "delete", name).returncode == 0
    assert read(server, unlisted).status == 404 and read(server, public).status == 200
    assert name not in [r["link"] for r in listed(server)]


def test_a_link_expires_when_the_operator_says(server):
    made = share(server, title="expires").json
    done = store(server, "expire", "--after", "3600", f"{server.url}/z/{made['id']}?revision=1")
    assert done.returncode == 0 and done.stdout.startswith("expires ")
    assert 3500_000 < read(server, made).json["expires_ms"] - made["created_ms"] < 3700_000
    assert store(server, "expire", "--after", "1", made["id"]).returncode == 0
    server.wait_until(lambda: read(server, made).status == 404, "its end", 10)


def test_what_an_author_wrote_cannot_reach_the_terminal_as_a_control_character(server):
    made = share(server, title="\x1b[2J\x7f\x9b31m").json
    shown = store(server, "show", made["id"])
    assert shown.returncode == 0 and "\\u009b31m" in shown.stdout and not set("\x1b\x7f\x9b") & set(shown.stdout)


@pytest.mark.parametrize("args", [["delete"], ["show"], ["expire", "--after", "0", "x"], ["expire", "--after", "soon", "x"], ["list", "x"], ["delete", "--all"]])
def test_a_wrong_command_changes_nothing(server, args):
    before = listed(server)
    assert nkx("store", *args).returncode == 2 and listed(server) == before


@needs_reach
def test_only_the_servers_user_reaches_its_control_socket(server):
    at = pathlib.Path(server.data, "nkx.sqlite-control")
    assert stat.S_ISSOCK(at.stat().st_mode) and not at.stat().st_mode & 0o077
    if os.getuid():
        pytest.skip("another user is tried as root only")
    made = share(server, title="of others").json
    asked = subprocess.run([NKX, "store", "delete", "--store", f"sqlite:{server.data}/nkx.sqlite", made["id"]], capture_output=True, text=True, user=65531, group=65531)
    assert asked.returncode == 4 and read(server, made).status == 200


def test_without_a_server_the_command_writes_itself(tmp_path):
    with Server(data=tmp_path) as s:
        made = share(s, title="left").json
    assert not (tmp_path / "nkx.sqlite-control").exists()
    assert store(s, "delete", made["id"]).returncode == 0
    with Server(data=tmp_path) as s:
        assert read(s, made).status == 404


def test_after_a_killed_server_the_socket_is_made_anew(tmp_path):
    s = Server(data=tmp_path)
    made = share(s, title="kept").json
    s.kill()
    with Server(data=tmp_path) as s:
        assert store(s, "delete", made["id"]).returncode == 0 and read(s, made).status == 404
