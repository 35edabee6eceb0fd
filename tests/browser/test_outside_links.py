"""Links that `nkx mcp` and `nkx lsp` make open in the page."""
import json
import subprocess

from playwright.sync_api import expect

from support.page import compiled, source_of
from support.paths import NKX

SOURCE = "import numpy as np\nfrom util import twice\n\ndef f(x, y):\n    return np.exp(twice(x)) + y  # ä😀\n"


def test_a_link_of_an_assistant_opens_files_shapes_target_and_changes(new_page, server):
    arguments = {"source": SOURCE, "filename": "main.py", "files": [{"name": "util.py", "source": "def twice(x):\n    return x * 2\n"}], "target": "trn1",
                 "inputs": [{"name": n, "shape": [6, 7], "dtype": "float32"} for n in "xy"], "by_hand": ["without cse:2"]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "share", "arguments": arguments}}
    said = subprocess.run([NKX, "mcp", "--server", server], input=json.dumps(call) + "\n", capture_output=True, text=True, check=True).stdout
    page = new_page()
    page.goto(json.loads(said)["result"]["structuredContent"]["url"])
    compiled(page)
    assert source_of(page) == SOURCE and page.locator("#target").input_value() == "trn1"
    expect(page.locator("#signature")).to_contain_text("f(x f32[6×7], y f32[6×7])")
    expect(page.get_by_role("tab", name="util.py")).to_be_visible()
    assert "hand=without%20cse:2" in page.url
