"""The site of docker/compose.yaml, for the tests of one file."""
import pytest

from support.postgres import Postgres
from support.site import Site


@pytest.fixture(scope="module")
def site():
    postgres = Postgres()
    s = Site(postgres.url)
    s.postgres = postgres
    yield s
    s.end()
    postgres.end()
