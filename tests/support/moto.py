"""moto's server: an S3 store on this machine, which checks who asks and what they signed.

    with Moto() as store:
        Server(*store.flags())

with_tls: it speaks TLS, with a certificate of its own that only --s3-ca-file makes trustworthy.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import boto3
from botocore.config import Config

from support.certificate import make_certificate
from support.server import free_port
from support.wait import wait_until

BUCKET = "results"
SET_UP = 7  # requests that anyone may make: those of __init__


class Moto:
    def __init__(self, with_tls=False):
        self.port, self.scheme = free_port(), "https" if with_tls else "http"
        self.log = tempfile.TemporaryFile()
        self.dir = tempfile.TemporaryDirectory(prefix="nkx-moto-")
        self.ca = make_certificate(self.dir.name) if with_tls else None
        tls = ["-s", "-c", self.ca, "-k", self.ca.with_suffix(".key")] if with_tls else []
        self.process = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(self.port), *tls], stdout=self.log, stderr=self.log,
                                        env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(SET_UP)})
        wait_until(self._listens, "moto's server", 60)
        self.client("s3").create_bucket(Bucket=BUCKET)
        self.admin = self._make_user("admin", ["*"], self.client("iam"))
        self.key = self._make_user("nkx", ["s3:*"], self.client("iam"))
        self.credentials = self.write_credentials("good", self.key["SecretAccessKey"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def _listens(self):
        assert self.process.poll() is None, "moto's server ended"
        return f":{self.port:04X}" in "".join(line.split()[1] for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A")

    def client(self, service, key=None):
        key = key or {"AccessKeyId": "nobody", "SecretAccessKey": "nothing"}
        return boto3.client(service, region_name="us-east-1", endpoint_url=f"{self.scheme}://127.0.0.1:{self.port}", verify=self.ca and str(self.ca), aws_access_key_id=key["AccessKeyId"],
                            aws_secret_access_key=key["SecretAccessKey"], config=Config(proxies={}, retries={"max_attempts": 0}))

    def _make_user(self, name, actions, iam):
        """Its key."""
        iam.create_user(UserName=name)
        self._permit(name, actions, iam)
        return iam.create_access_key(UserName=name)["AccessKey"]

    def _permit(self, name, actions, iam):
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
        iam.put_user_policy(UserName=name, PolicyName="what it may", PolicyDocument=json.dumps(policy))

    def permit(self, *actions):
        """What the server's key may do from now on, such as "s3:GetObject"."""
        self._permit("nkx", actions, self.client("iam", self.admin))

    def write_credentials(self, name, secret):
        path = pathlib.Path(self.dir.name, name)
        path.write_text(f"[default]\naws_access_key_id = {self.key['AccessKeyId']}\naws_secret_access_key = {secret}\n")
        return path

    def flags(self, credentials=None, port=None, bucket=BUCKET):
        return ["--s3-url", f"{self.scheme}://127.0.0.1:{port or self.port}/{bucket}/nkx", "--s3-credentials", str(credentials or self.credentials),
                *(["--s3-ca-file", str(self.ca)] if self.ca else [])]

    def objects(self, bucket=BUCKET):
        """{name: bytes} of those that are not deleted meanwhile"""
        s3, found = self.client("s3", self.admin), {}
        for o in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
            try:
                found[o["Key"]] = s3.get_object(Bucket=bucket, Key=o["Key"])["Body"].read()
            except s3.exceptions.NoSuchKey:
                pass
        return found

    def create_bucket(self, name):
        self.client("s3", self.admin).create_bucket(Bucket=name)

    def put(self, name, data):
        self.client("s3", self.admin).put_object(Bucket=BUCKET, Key=name, Body=data)

    def delete(self, name):
        self.client("s3", self.admin).delete_object(Bucket=BUCKET, Key=name)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.dir.cleanup()
