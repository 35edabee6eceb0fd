"""FileCheck's lines are tried beside the stages as one types; a link keeps them."""
from playwright.sync_api import expect

from support.axe import violations
from support.page import SCREENS


def test_lines_are_tried_as_one_types_and_a_link_keeps_them(page, new_page):
    page.get_by_role("option", name="15 hlo-to-linalg").first.click()
    page.get_by_role("button", name="Lines that this stage's text should have").click()
    text = page.get_by_role("textbox", name="Lines that the texts of stages should have")
    expect(text).to_be_focused()
    expect(text).to_have_value("// STAGE: hlo-to-linalg\n// CHECK: ")
    results = page.get_by_role("list", name="What was found")
    page.keyboard.type("linalg.matmul")
    expect(results).to_contain_text("✓ 15 hlo-to-linalg all lines found (line→line of the text: 2→", timeout=20_000)
    page.keyboard.type("\n// CHECK-NEXT: linalg.tanh")
    expect(results).to_contain_text("✕ 15 hlo-to-linalg line 3: it is not there, from line", timeout=20_000)
    page.screenshot(path=SCREENS / "patterns.png")
    assert violations(page, "patterns") == []
    expect(page.locator("#problems")).to_contain_text("it is not there")
    page.wait_for_function("location.hash.includes('find=')")
    other = new_page()
    other.goto(page.url)
    expect(other.get_by_role("textbox", name="Lines that the texts of stages should have")).to_have_value("// STAGE: hlo-to-linalg\n// CHECK: linalg.matmul\n// CHECK-NEXT: linalg.tanh")
    expect(other.get_by_role("list", name="What was found")).to_contain_text("✕ 15 hlo-to-linalg line 3")
    text.fill("")
    expect(page.locator("#problems")).not_to_contain_text("it is not there", timeout=20_000)
