from nkigen.builder import __getattr__  # noqa: F401
