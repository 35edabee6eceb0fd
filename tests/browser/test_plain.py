"""Links without JavaScript, and the self-contained file of a link: readable, and inert whatever the texts are."""
import pytest
import requests
from playwright.sync_api import expect
from support.axe import ONLY_CONTRAST, violations
from support.compiler import pipeline
from support.marks import few
from support.paths import EXAMPLES
from support.payloads import KERNEL, SAMPLE, one_line

RMSNORM = next(p for p in EXAMPLES if p.name.startswith("04_")).read_text()
WATCHED = "window.__hits = 0; window.__ran = () => { window.__hits++ };"


@pytest.fixture(scope="module")
def made(stored):
    return stored.make(RMSNORM, title="My norm")


def test_a_link_without_javascript_is_a_note_and_a_readable_view(new_page, server, made):
    page = new_page(java_script_enabled=False)
    page.goto(server + made["url"])
    expect(page.get_by_role("button")).to_have_count(0)
    expect(page).to_have_title("My norm · Neuron Kernel Explorer")
    page.get_by_role("link", name="read without it").click()
    expect(page.locator("pre")).to_have_text(RMSNORM.rstrip("\n") + "\n")
    expect(page.locator("ol li")).to_have_count(len(pipeline()))
    page.get_by_role("link", name="linalg-to-nisa").click()
    expect(page.locator("body")).to_contain_text("nisa.activation")
    page.go_back()
    page.get_by_role("link", name="its source").click()
    expect(page.locator("body")).to_contain_text("def rmsnorm(x, weight):")


@pytest.mark.nightly
def test_the_page_without_javascript_has_no_dead_controls(new_page, server):
    page = new_page(java_script_enabled=False)
    page.goto(server)
    expect(page.get_by_role("button")).to_have_count(0)
    expect(page.locator(".noscript")).to_be_visible()


def save(page, server, made, tmp_path):
    with page.expect_download() as download:
        page.evaluate("(url) => { const a = document.createElement('a'); a.href = url; a.click(); }", f"{server}{made['url']}/page.html")
    path = tmp_path / "kernel.html"
    download.value.save_as(path)
    return path


@pytest.mark.parametrize("scheme", few(["light", "dark"], 1))
def test_axe_finds_nothing_in_either(new_page, page, server, made, scheme, tmp_path):
    path = save(page, server, made, tmp_path)
    view = new_page(scheme=scheme)
    view.goto(f"{server}{made['url']}?view=plain")
    expect(view.get_by_role("heading", name="Stages of rmsnorm")).to_be_visible()
    assert violations(view, "it", None if scheme == "light" else ONLY_CONTRAST) == []
    view.goto(path.as_uri())
    expect(view.locator("#text .line")).not_to_have_count(0)
    view.locator("#source .line.band").first.click()
    assert violations(view, "it", None if scheme == "light" else ONLY_CONTRAST) == []


def test_the_file_of_a_link_works_without_a_network(new_page, page, server, made, tmp_path):
    path = save(page, server, made, tmp_path)
    alone = new_page(offline=True)
    asked = []
    alone.on("request", lambda r: asked.append(r.url))
    alone.goto(path.as_uri())
    assert asked == [path.as_uri()]
    expect(alone).to_have_title("My norm · Neuron Kernel Explorer")
    expect(alone.locator("#stages button")).to_have_count(len(pipeline()))
    expect(alone.locator("#text .line")).not_to_have_count(0)
    # from the source to the stage
    alone.locator("#stages button", has_text="linalg-to-nisa").click()
    expect(alone.locator("#text-title")).to_have_text("linalg-to-nisa (nisa)")
    alone.locator("#source .line", has_text="np.square(x)").click()
    lit = alone.locator("#text .line.lit")
    expect(lit).not_to_have_count(0)
    assert any("nisa." in t for t in lit.all_text_contents())
    # and back
    alone.locator("#text .line.band", has_text="nisa.activation").first.click()
    expect(alone.locator("#source mark")).not_to_have_count(0)
    assert alone.locator("#source .line.lit").count() >= 1
    assert "".join(alone.locator("#source .words").all_text_contents()) == RMSNORM.replace("\n", "")


@pytest.mark.parametrize("payload", few(SAMPLE, 3, range(len(SAMPLE))))
def test_no_text_runs_in_any_view_of_a_link(new_page, page, server, stored, payload, tmp_path):
    source = f"# {one_line(payload)}\n{KERNEL}"
    made = stored.make(source, title=payload.replace("\0", "")[:60], view={"note": payload})
    kept = requests.get(f"{server}/api/v1/snippets/{made['id']}", timeout=60).json()["request"]["source"]
    path = save(page, server, made, tmp_path)
    for url in (f"{server}{made['raw_url']}", f"{server}{made['url']}?view=plain", f"{server}{made['raw_url']}?stage=linalg-to-nisa", path.as_uri()):
        view = new_page()
        view.add_init_script(WATCHED)
        view.goto(url)
        shown = view.evaluate("() => document.querySelector('#source .words, pre')?.textContent ?? ''")
        if "raw" not in url:
            assert shown.split("\n")[0] == kept.split("\n")[0] or "\x1b" in stored, url
        assert view.evaluate("() => window.__hits") == 0, url
        assert view.evaluate("() => document.querySelectorAll('img, iframe, object, embed, video, svg').length") == 0, url
        view.close()
