# SPDX-License-Identifier: Apache-2.0
"""A real etcd as the discovery store: workers are found, forgotten when they leave or die, and
served while the store is away."""
import json
import subprocess
import sys
import tempfile
import time
import urllib.request

from server import Server, arguments, free_ports


def ask(url, path, body=None):
    data = json.dumps(body).encode() if body else None
    with urllib.request.urlopen(url + path, data, timeout=20) as answer:
        return json.load(answer)


def await_models(frontend, names):
    for _ in range(200):
        if [m["id"] for m in ask(frontend.url, "/v1/models")["data"]] == names:
            return
        time.sleep(0.1)
    raise AssertionError(f"the frontend does not list {names}")


def complete(frontend):
    answer = ask(frontend.url, "/v1/completions", {"model": "mock", "prompt": "a", "max_tokens": 3})
    assert answer["usage"]["completion_tokens"] == 3, answer


def main():
    args = arguments(__doc__).parse_args()
    clients, peers = free_ports(2)
    url, peer_url = f"http://127.0.0.1:{clients}", f"http://127.0.0.1:{peers}"
    with tempfile.TemporaryDirectory() as folder:
        etcd = subprocess.Popen(
            ["etcd", "--data-dir", folder, "--listen-client-urls", url,
             "--advertise-client-urls", url, "--listen-peer-urls", peer_url,
             "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}"],
            stderr=subprocess.DEVNULL)
        store = ["--etcd-endpoint", url]
        try:
            with Server(args.bin, store, "frontend") as frontend:
                with Server(args.bin, [*store, "--num-workers", "2"], "mocker"):
                    await_models(frontend, ["mock"])
                    time.sleep(7)  # longer than the lease
                    complete(frontend)
                await_models(frontend, [])
                with Server(args.bin, store, "mocker") as victim:
                    await_models(frontend, ["mock"])
                    victim.process.kill()
                    await_models(frontend, [])
                with Server(args.bin, store, "mocker"):
                    await_models(frontend, ["mock"])
                    etcd.kill()
                    time.sleep(2)
                    complete(frontend)
        finally:
            etcd.kill()
            etcd.wait()
    print("etcd: ok")


if __name__ == "__main__":
    sys.exit(main())
