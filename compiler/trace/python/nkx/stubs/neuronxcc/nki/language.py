from nki.language import *  # noqa: F403
from nki.language import bool_  # noqa: F401
from nki.language import __getattr__  # noqa: F401
