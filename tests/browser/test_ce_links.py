"""Links of Compiler Explorer's page open on ours, in each encoding of their fragment."""
import json
from urllib.parse import quote

import lzstring
import prison
import pytest
from playwright.sync_api import expect

from support.marks import few
from support.page import compiled, source_of

SOURCE = 'import numpy as np\n\n\ndef shared(x):\n    # it\'s "so!": ä + (b), 100 %, √2\n    return np.exp(x) * 2\n'
LAYOUT = {"version": 4, "content": [{"type": "row", "isClosable": True, "content": [
    {"type": "component", "componentName": "codeEditor", "componentState": {"id": 1, "lang": "nki", "source": SOURCE, "fontScale": 14, "x": "y"}},
    {"type": "component", "componentName": "compiler",
     "componentState": {"source": 1, "compiler": "nki-trn1", "options": "--input=x=8x16:float32", "filters": {"trim": True, "labels": False}}}]}]}
KEYS = {"content": "g", "componentName": "h", "componentState": "i", "id": "j", "type": "l", "isClosable": "n"}
VALUES = {True: "0", False: "1", "row": "2", "component": "5"}


def cut(value):
    """The layout as that page shortens it."""
    if isinstance(value, list):
        return [cut(v) for v in value]
    if isinstance(value, dict):
        return {KEYS.get(k, f"___{k}" if len(k) == 1 else k): cut(v) for k, v in value.items()}
    if isinstance(value, bool) or (isinstance(value, str) and value in VALUES):
        return VALUES[value]
    return f"___{value}" if isinstance(value, str) and len(value) == 1 else value


def as_rison(value):
    text = prison.dumps(cut(value))
    assert text[0] == "(" and text[-1] == ")"
    return text[1:-1]


ENCODINGS = {
    "json": lambda: quote(json.dumps(LAYOUT)),
    "rison": lambda: quote(as_rison(LAYOUT), safe=":!(),'/*$@"),
    "lz": lambda: "z:" + quote(lzstring.LZString().compressToBase64(as_rison(LAYOUT)), safe=""),
}


@pytest.mark.parametrize("encoding", few(ENCODINGS, 2))
def test_a_layout_in_the_fragment_opens(new_page, server, encoding):
    page = new_page()
    page.goto(f"{server}/#{ENCODINGS[encoding]()}")
    expect(page.locator("#source-editor")).to_contain_text("def shared")
    compiled(page)
    assert source_of(page).rstrip() == SOURCE.rstrip()
    expect(page.locator("#target")).to_have_value("trn1")
    assert page.url.startswith(f"{server}/#") and "target=trn1" in page.url


@pytest.mark.parametrize("fragment", few(["z:AAAA", "g:'abc", "%7Bx", "g:" + "(a:" * 500], 2))
def test_a_damaged_layout_is_reported_and_the_page_works(new_page, server, fragment):
    page = new_page()
    page.goto(f"{server}/#{fragment}")
    expect(page.locator(".toast")).to_contain_text("The link is damaged")
    compiled(page)
