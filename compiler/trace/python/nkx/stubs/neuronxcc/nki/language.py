from nki.language import *  # noqa: F403
from nki.language import bool_  # noqa: F401
