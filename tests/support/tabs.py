"""Pages for tests, each as good as new.  A page is used again if a reload forgets all that its test did.

A second load in the same process of the browser takes half of the time of the first one: the scripts are compiled.
"""
import functools

from playwright.sync_api import Browser, BrowserContext, Error, Page

from support.links import delete_links, watch_links

# what a reload does not forget; who asks a page for its context may change anything
_LASTING = ("add_init_script", "add_locator_handler", "close", "context", "emulate_media", "expect_popup", "expose_binding",
            "expose_function", "on", "once", "pause", "route", "route_from_har", "route_web_socket", "set_extra_http_headers", "clock",
            "touchscreen")
_FORGET = """async () => {
  localStorage.clear(); sessionStorage.clear();
  for (const { name } of await indexedDB.databases()) {
    await new Promise((done) => { const gone = indexedDB.deleteDatabase(name); gone.onsuccess = gone.onerror = gone.onblocked = done; });
  }
}"""
_USES = 25  # of a page; then its process ends
_FREE = 3   # pages that wait for a test


def _noted(found):
    """The method or property of Page, which also notes that it was used."""
    if isinstance(found, property):
        return property(lambda self: _noted(found.fget)(self), doc=found.__doc__)

    @functools.wraps(found)
    def call(self, *args, **kw):
        self.is_changed = True
        return found(self, *args, **kw)
    return call


for _name in _LASTING:
    setattr(Page, _name, _noted(getattr(Page, _name)))


class Tab:
    """A page in a context of its own."""

    def __init__(self, browser: Browser, options: dict):
        self.context: BrowserContext = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.options = options
        self.made = watch_links(self.context)
        self.watch = None  # of the test that has it
        self.uses = 0
        self.page.on("console", lambda m: self.watch and self.watch.console(m))
        self.page.on("pageerror", lambda e: self.watch and self.watch.error(e))
        self.session = self.context.new_cdp_session(self.page)

    def begin(self, watch) -> Page:
        self.watch = watch
        self.uses += 1
        self.page.is_changed = False
        return self.page

    def end(self) -> bool:
        """Deletes the links that the test made.  Returns whether the page is as good as new; otherwise it is closed."""
        for address in set(self.made):
            delete_links(self.context, address)
        self.made.clear()
        self.watch = None
        is_new = not self.page.is_changed and not self.page.is_closed() and len(self.context.pages) == 1
        if not is_new or self.uses >= _USES or not self.page.url.startswith("http"):
            self.context.close()
            return False
        self.page.mouse.move(-10, -10)
        try:
            self.page.goto("/".join(self.page.url.split("/")[:3]) + "/readyz")  # no script of ours runs there
        except Error:  # the server has ended
            self.context.close()
            return False
        self.page.evaluate(_FORGET)
        self.context.clear_cookies()
        self.page.set_viewport_size(self.options["viewport"])
        self.session.send("Page.resetNavigationHistory")
        return True


class Tabs:
    """The pages that are not in use."""

    def __init__(self, browser: Browser):
        self.browser = browser
        self.free: list[Tab] = []

    def take(self, options: dict, cold: bool) -> Tab:
        """A page whose context has these options; cold: with an empty cache."""
        for tab in [] if cold else self.free:
            if tab.options == options:
                self.free.remove(tab)
                return tab
        return Tab(self.browser, options)

    def give_back(self, tab: Tab) -> None:
        if tab.end():
            self.free.append(tab)
        if len(self.free) > _FREE:
            self.free.pop(0).context.close()
