"""Stored links that tests make: each is deleted when its test ends, and none is left at the end."""
import sqlite3

import requests
from playwright.sync_api import BrowserContext, expect

OURS = {"X-Nkx-Request": "1"}


def watch_links(context: BrowserContext) -> list[str]:
    """The addresses to which pages of the context send what they store, as they do so."""
    made: list[str] = []

    def answered(response) -> None:
        if response.status == 201 and response.request.method == "POST" and response.url.endswith("/api/v1/snippets"):
            made.append(response.url.removesuffix("/api/v1/snippets"))

    context.on("response", answered)
    return made


def delete_links(context: BrowserContext, server: str) -> None:
    """Deletes all links that were made in a context, in the page, as their owner does."""
    page = context.new_page()
    page.goto(server)
    page.get_by_role("button", name="Share", exact=True).click()
    box = page.locator(".my-links-box")
    expect(page.locator("#share-dialog")).to_be_visible()
    if box.is_visible():
        box.locator("summary").click()
        links = box.locator(".my-links li")
        for left in range(links.count() - 1, -1, -1):
            links.first.get_by_role("button", name="Delete").click()
            links.first.get_by_text("Delete for everyone?").click()
            expect(links).to_have_count(left)
    page.close()


class Stored:
    """Links that a test makes through the API."""

    def __init__(self, server: str):
        self.server = server
        self.made: list[dict] = []

    def make(self, source: str, **fields) -> dict:
        answer = requests.post(f"{self.server}/api/v1/snippets", json={"source": source, **fields}, headers=OURS, timeout=60)
        assert answer.status_code == 201, answer.text
        self.made.append(answer.json())
        return self.made[-1]

    def delete(self) -> None:
        for made in self.made:
            answer = requests.delete(f"{self.server}/api/v1/snippets/{made['id']}", headers={**OURS, "X-Nkx-Edit-Token": made["edit_token"]}, timeout=60)
            assert answer.status_code == 204, answer.text


def links_in(store) -> int:
    """How many links the store of a server has."""
    db = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return db.execute("SELECT COUNT(*) FROM snippets").fetchone()[0]
    finally:
        db.close()
