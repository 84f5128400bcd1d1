# SPDX-License-Identifier: Apache-2.0
"""A dynosim server for a client script: with server.Server([...flags]) as s: s.port, s.metrics()."""
import argparse
import re
import signal
import socket
import subprocess
import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", default="build/release/dynosim", help="the program")
    return parser


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Server:
    def __init__(self, program, flags, command="serve"):
        self.process = subprocess.Popen(
            [program, command, "--http-port", "0", *flags], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.search(r":(\d+)$", line.strip())
        if not found:
            raise RuntimeError(f"the server did not start: {line!r}")
        self.port = int(found.group(1))
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096 / 1e6

    def metrics(self):
        """Families by name, after a check of what a scraper relies on."""
        text = urllib.request.urlopen(self.url + "/metrics").read().decode()
        families = {f.name: f for f in text_string_to_metric_families(text)}
        for family in families.values():
            if family.type == "histogram":
                check_histogram(family)
        return families

    def total(self, family, **labels):
        """Sum of the samples of a gauge or counter that have these labels."""
        families = self.metrics()
        if family not in families:
            return None
        return sum(s.value for s in families[family].samples
                   if all(s.labels.get(k) == v for k, v in labels.items())
                   and not s.name.endswith("_created"))

    def mean(self, family):
        """Mean over all series of a histogram."""
        samples = self.metrics()[family].samples
        total, count = (sum(s.value for s in samples if s.name.endswith(end))
                        for end in ("_sum", "_count"))
        return total / count


def check_histogram(family):
    buckets, counts = {}, {}
    for s in family.samples:
        key = tuple(sorted((k, v) for k, v in s.labels.items() if k != "le"))
        if s.name.endswith("_bucket"):
            buckets.setdefault(key, []).append((float(s.labels["le"]), s.value))
        elif s.name.endswith("_count"):
            counts[key] = s.value
    for key, series in buckets.items():
        values = [value for _, value in sorted(series)]
        assert values == sorted(values), f"{family.name}: buckets are not cumulative"
        assert values[-1] == counts[key], f"{family.name}: the +Inf bucket is not the count"
