"""`%load_ext nkx` in a real kernel, and the notebook exported to HTML."""
import html.parser
import os
import re

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from support.mcp_client import TWO
from support.paths import BUILD, NKX

SOFTMAX = """%%nkx --target trn1
import numpy as np
from nkigen import trace

@trace(input_specs=[((256, 256), "f32")])
def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)
"""
PLAIN = "%%nkx --input x=8x16:f32 --no-run --lines 2\nimport numpy as np\ndef f(x):\n    '''<script>alert(1)</script>'''\n    return np.exp(x)\n"
WRONG = "%%nkx\n" + TWO.replace("x + 1", "x @ np.zeros((3, 3), np.float32)")


def executed(*cells):
    """The notebook after its cells ran in a kernel."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in ("%load_ext nkx", *cells)])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for cell in book.cells:
        cell.metadata["tags"] = ["raises-exception"] * ("/no-such-program" in cell.source)
    before = os.environ.get("PYTHONPATH")
    os.environ.update(PYTHONPATH=str(BUILD / "python"), NKX=str(NKX))
    try:
        NotebookClient(book, timeout=120).execute()
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)
        os.environ.pop("NKX")
    return book


def output(book, cell, kind="text/html"):
    (data,) = [o["data"] for o in book.cells[cell].outputs if o["output_type"] == "execute_result"]
    return data[kind]


class Page(html.parser.HTMLParser):
    """What a page refers to, its tags, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.refers, self.text, self.attributes = [], [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        self.refers += [v for k, v in attributes if k in ("src", "href", "xlink:href", "action", "data")]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def book():
    return executed(SOFTMAX, "report = _\n[s['name'] for s in report.result['kernels'][0]['stages']][-1]", PLAIN, WRONG, "%%nkx --no-such-option\nx = 1\n", "%%nkx --help\n0\n", "%%nkx --nkx /no-such-program\nx = 1\n")


def test_a_cell_shows_stages_check_and_timeline(book):
    page = Page(output(book, 1))
    assert "softmax on trn1" in page.text and re.search(r"check: 5\d stages agree with NumPy", page.text)
    assert re.search(r"simulated time: [\d.]+ µs, bound by \w+", page.text)
    assert "svg" in page.tags and page.tags.count("path") > 10 and {"vector", "scalar"} <= set(re.findall(r"\w+", page.text))
    for stage, text in (("trace", "HloModule softmax"), ("hlo-to-linalg", "linalg.exp"), ("linalg-to-nisa", "nisa.activation(")):
        assert stage in page.text and text in page.text
    assert "'engine-programs'" == output(book, 2, "text/plain")
    plain = output(book, 1, "text/plain")
    assert plain.startswith("softmax: 5") and "µs simulated; check: 5" in plain


def test_the_timeline_has_every_execution_of_the_run(book):
    """The bars of each lane cover as much of it as the profile says that it is busy."""
    page = Page(output(book, 1))
    bars = [v for k, v in page.attributes if k == "d"][::2]
    widths = [sum(float(w) for w in re.findall(r"M[\d.]+ \d+h([\d.]+)v", d)) for d in bars]
    assert len(widths) > 4 and all(0 <= w <= 780.5 for w in widths) and max(widths) > 50


def test_what_is_exported_needs_nothing_from_elsewhere_and_runs_no_script(book):
    for cell in (1, 3, 4):
        page = Page(output(book, cell))
        assert page.refers == [] and not {"script", "style", "link", "img", "iframe", "object"} & set(page.tags)
        assert not [k for k, _ in page.attributes if k.startswith("on")] and "url(" not in output(book, cell)
    exported, _ = HTMLExporter(template_name="basic").from_notebook_node(book)
    assert "nisa.activation(" in exported and "<svg" in exported


def test_options_choose_and_a_cut_says_how_much_is_left(book):
    page = Page(output(book, 3))
    assert "f on trn2" in page.text and "svg" not in page.tags and "simulated time" not in page.text
    assert re.search(r"… \d+ more lines \(--lines\)", page.text)


def test_a_refusal_is_shown_with_its_place_and_hint(book):
    page = Page(output(book, 4))
    assert "shape-mismatch" in page.text and ":6:" in page.text and "second on trn2" in page.text


def test_wrong_options_and_a_missing_program_say_so(book):
    said = ["".join(o.get("text", "") or o.get("evalue", "") for o in book.cells[i].outputs) for i in (5, 6, 7)]
    assert "unrecognized arguments: --no-such-option" in said[0] and "--target" in said[1] and "no-such-program" in said[2]
