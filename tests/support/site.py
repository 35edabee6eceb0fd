"""What docker/compose.yaml describes, with processes: two servers, a PostgreSQL, and nginx with docker/nginx.conf, or Envoy in its place."""
import os
import re
import signal

from support.clients import in_threads
from support.nginx import ComposeProxy
from support.server import Server
from support.wait import wait_until

ADDRESSES = [f"127.0.0.{n}" for n in range(2, 14)]  # of clients; both servers are the home of some


class Site:
    """Two servers on the store at `url`, behind .proxy, made by `proxy`."""

    def __init__(self, url, *flags, proxy=ComposeProxy):
        self.flags = ["--store", url, "--workers", "1", *flags]
        self.servers = in_threads(2, lambda _: Server(*self.flags))
        self.proxy = proxy(*self.servers)

    def restart(self, i):
        """A server in place of one that has ended, on its old port."""
        self.servers[i] = Server(*self.flags, "--port", str(self.servers[i].port))

    def kill(self, i):
        """kill -9 of the service and of its launcher, which would start another one."""
        pid = self.servers[i].pid
        self.servers[i].kill()
        os.kill(pid, signal.SIGKILL)

    def end(self):
        self.proxy.end()
        for s in self.servers:
            if s.process.poll() is None:
                s.stop()

    def home_of(self, address):
        """The server to which the proxy gives all requests of this address; None: they go to both."""
        before = [_asked(s) for s in self.servers]
        for _ in range(4):
            assert self.proxy.request("GET", "/api/v1/pipeline", address=address).status == 200
        grown = [_asked(s) - b for s, b in zip(self.servers, before)]
        return grown.index(4) if sorted(grown) == [0, 4] else None

    def addresses_of(self, homes):
        """An address of its own for each client, whose requests go to this server."""
        found, free = [], iter(f"127.0.1.{n}" for n in range(1, 255))
        spare = {0: [], 1: [], None: []}
        for home in homes:
            while not spare[home]:
                address = next(free)
                spare[self.home_of(address)].append(address)
            found.append(spare[home].pop())
        return found

    def wait_both(self):
        """Until the proxy gives requests to both servers again."""
        wait_until(lambda: {self.home_of(a) for a in ADDRESSES} == {0, 1}, "both servers to be tried again")


def _asked(server):
    """How often the server was asked for its pipeline."""
    text = server.get("/metrics").body.decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(r'nkx_http_requests_total{route="/api/v1/pipeline"', line))
