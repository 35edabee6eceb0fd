"""The table of tests that `make test` runs in part names tests that exist."""
import re

from support.cases import EVERY
from support.paths import TESTS


def test_every_test_of_the_table_exists():
    for name, every in EVERY.items():
        path, function = name.split("::")
        assert every > 1 and re.search(rf"^def {function}\(", (TESTS / path).read_text(), re.M), name
