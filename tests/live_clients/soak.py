# SPDX-License-Identifier: Apache-2.0
"""Clients that ask, read and disappear at random, for a while; at the end every gauge and block is
at zero, and memory has not grown."""
import json
import random
import socket
import sys
import threading
import time

from server import Server, arguments

GAUGES = ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
          "dynamo_frontend_inflight_requests", "dynamo_frontend_queued_requests"]


def client(port, seed, end, counts):
    dice = random.Random(seed)
    while time.time() < end:
        body = json.dumps({"model": "mock", "stream": dice.random() < 0.7,
                           "max_tokens": dice.choice([1, 5, 50, 3000]),
                           "n": dice.choice([1, 1, 2]),
                           "messages": [{"role": "user", "content": "hello " * dice.randint(1, 400)}]})
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
                      f"content-length: {len(body)}\r\n\r\n{body}".encode())
            # Half of them leave in the middle of the answer, or before it.
            leaves_at = time.time() + (dice.random() * 0.5 if dice.random() < 0.5 else 60)
            try:
                while (left := leaves_at - time.time()) > 0:
                    s.settimeout(left)
                    if not s.recv(65536):
                        counts[1] += 1
                        break
                else:
                    counts[0] += 1
            except TimeoutError:
                counts[0] += 1


def main():
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--pools", action="store_true", help="a prefill and a decode pool")
    args = parser.parse_args()
    flags = ["--num-workers", "2", "--router-mode", "kv", "--num-gpu-blocks-override", "2000",
             "--speedup-ratio", "10"]
    if args.pools:
        engine = '{"engine":{"num_gpu_blocks":2000,"speedup_ratio":10,"kv_transfer_bytes_per_token":1000,' \
                 '"kv_transfer_bandwidth":0.01,"worker_type":"%s"}}'
        flags = ["--prefill-engine-args", engine % "prefill", "--decode-engine-args",
                 engine % "decode", "--num-decode-workers", "2", "--router-mode", "kv"]
    with Server(args.bin, flags) as server:
        counts, end = [0, 0], time.time() + args.seconds
        threads = [threading.Thread(target=client, args=(server.port, i, end, counts))
                   for i in range(16)]
        for t in threads:
            t.start()
        time.sleep(min(30, args.seconds / 4))
        before = server.resident_mb()
        for t in threads:
            t.join()
        after = server.resident_mb()
        left = {}
        for _ in range(100):
            left = {name: server.total(name) for name in GAUGES}
            if not any(left.values()):
                break
            time.sleep(0.1)
        blocks = server.total("dynosim_kv_blocks", state="active")
        left["dynosim_kv_blocks active"] = blocks
        print(f"{args.seconds:.0f} s: {counts[0]} clients left, {counts[1]} answers whole; "
              f"memory {before:.0f} MB, then {after:.0f} MB; {left}")
        assert not any(left.values()), left


if __name__ == "__main__":
    sys.exit(main())
