from nkigen.control_flow import fori_loop

__all__ = ["fori_loop"]
