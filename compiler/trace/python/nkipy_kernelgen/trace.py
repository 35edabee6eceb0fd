from nkigen.trace import trace

__all__ = ["trace"]
