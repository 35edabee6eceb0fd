"""The picture of a link that other programs show beside it, and how the page names it."""
import re
import struct
import zlib

import pytest

from support.clients import remove, share
from support.server import Server


@pytest.fixture(scope="module")
def links():
    with Server() as s:
        yield s


def pixels(png):
    """The rows of a PNG, as indices of its palette; every checksum is right."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data, size = 8, b"", None
    while at < len(png):
        n, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + n]
        assert zlib.crc32(kind + body) == struct.unpack(">I", png[at + 8 + n : at + 12 + n])[0]
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        if kind == b"IDAT":
            data += body
        at += 12 + n
    assert size == (1200, 630)
    return zlib.decompress(data)


def picture(links, made, query=""):
    answer = links.get(f"{made['url']}/preview.png{query}")
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/png"
    return answer


def test_the_picture_shows_title_source_and_target(links):
    base = pixels(picture(links, share(links, title="one").json).body)
    assert len(base) == 1201 * 630
    assert base == pixels(picture(links, share(links, title="one").json).body)
    for other in ({"title": "two"}, {"title": "one", "target": "trn3"}, {"title": "one", "options": {"check": True}}):
        assert pixels(picture(links, share(links, **other).json).body) != base


@pytest.mark.parametrize("text", ["</title><script>alert(1)</script>", "日本語 🙂 \u202e", "x" * 200, "\"'&"])
def test_any_title_and_any_source_is_drawn(links, text):
    made = share(links, title=text, source=f"# {text}\n\t{text}\n" + "y" * 100_000).json
    pixels(picture(links, made).body)
    page = links.get(made["url"]).body.decode()
    assert "<script>alert" not in page


def test_the_page_names_its_picture(links):
    made = share(links).json
    page = links.get(made["url"], Host="nkx.example:8080").body.decode()
    assert f'<meta property="og:image" content="http://nkx.example:8080{made["url"]}/preview.png">' in page
    assert '<meta name="twitter:card" content="summary_large_image">' in page
    again = links.get(made["url"] + "?revision=1", Host="nkx.example").body.decode()
    assert f'content="http://nkx.example{made["url"]}/preview.png?revision=1"' in again


def test_a_client_that_has_the_picture_is_told_so(links):
    made = share(links).json
    first = picture(links, made)
    assert first.headers["Cache-Control"] == "no-cache"
    for _ in range(2):
        again = links.get(f"{made['url']}/preview.png", If_None_Match=first.headers["ETag"])
        assert again.status == 304 and not again.body
    assert "immutable" in picture(links, made, "?revision=1").headers["Cache-Control"]


def test_other_sites_may_show_the_picture(links):
    assert picture(links, share(links).json).headers["Cross-Origin-Resource-Policy"] == "cross-origin"


def test_without_a_link_there_is_no_picture(links):
    made = share(links).json
    assert links.get("/z/AAAAAAAAAAAAAAAAAAAAAA/preview.png").status == 404
    assert links.get(f"{made['url']}/preview.png?revision=2").status == 404
    assert links.get(f"{made['url']}/preview.png?revision=x").status == 400
    assert remove(links, made).status == 204
    assert links.get(f"{made['url']}/preview.png").status == 404


def test_the_source_and_the_picture_of_a_link_are_kept_apart(links):
    made = share(links).json
    for _ in range(2):
        assert picture(links, made).body[:4] == b"\x89PNG"
        assert re.match("import|def|from|#|\"|@", links.get(made["raw_url"]).body.decode())
