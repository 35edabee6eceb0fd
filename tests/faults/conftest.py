"""What goes wrong below the service: clocks, allocations, system calls, disks.  The server's helpers are those of the API's
tests."""
import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("api_conftest", HERE.parent / "api/conftest.py")
api = importlib.util.module_from_spec(spec)
sys.modules["api_conftest"] = api
spec.loader.exec_module(api)
