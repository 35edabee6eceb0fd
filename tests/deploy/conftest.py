"""What docker/compose.yaml describes, with processes: two servers, a PostgreSQL, and nginx with docker/nginx.conf."""
import types

import pytest

from support.nginx import ComposeProxy
from support.postgres import Postgres
from support.server import Server


@pytest.fixture(scope="module")
def site():
    """.servers (two), .proxy, .postgres; .restart(i) replaces a server that has ended, on its old port."""
    postgres = Postgres()
    flags = ["--store", postgres.url, "--workers", "1"]
    s = types.SimpleNamespace(postgres=postgres, servers=[Server(*flags), Server(*flags)])

    def restart(i):
        s.servers[i] = Server(*flags, "--port", str(s.servers[i].port))
    s.restart = restart
    with ComposeProxy(*s.servers) as s.proxy:
        yield s
    for x in s.servers:
        if x.process.poll() is None:
            x.stop()
    postgres.end()
