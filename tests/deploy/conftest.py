"""The site of docker/compose.yaml, behind each of the proxies that docker/ has a configuration for, for the tests of one file."""
import pytest

from support.envoy import EnvoyProxy
from support.nginx import ComposeProxy
from support.postgres import Postgres
from support.site import Site


PROXIES = {"nginx": ComposeProxy, "envoy": EnvoyProxy}


@pytest.fixture(scope="module", params=PROXIES)
def proxy(request):
    """Makes a proxy before the servers that it is given."""
    return PROXIES[request.param]


@pytest.fixture(scope="module")
def site(proxy):
    postgres = Postgres()
    s = Site(postgres.url, proxy=proxy)
    s.postgres = postgres
    yield s
    s.end()
    postgres.end()
