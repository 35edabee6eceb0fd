"""Certificates of tests."""
import pathlib
import subprocess


def make_certificate(folder):
    """One that signs itself, for 127.0.0.1; its key is beside it."""
    path = pathlib.Path(folder, "ca.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path.with_suffix(".key"), "-out", path,
                    "-days", "2", "-subj", "/CN=a test", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return path
