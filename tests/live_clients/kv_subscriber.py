# SPDX-License-Identifier: Apache-2.0
"""A vLLM-style KV event subscriber (pyzmq, msgspec): it rebuilds the cache of each worker from
events alone and compares it with the worker's pool, also when it is restarted and asks for what it
missed. Forward-pass metrics are read on the way."""
import json
import random
import struct
import sys
import threading
import time
import urllib.request

import msgspec
import zmq

from server import Server, arguments, free_ports

WORKERS = 2
BLOCKS = 120
END = 2**64 - 1


class Mirror:
    """The cache of one rank."""

    def __init__(self, context, port, replay_port):
        self.blocks, self.next = {}, 0
        self.sub = context.socket(zmq.SUB)
        self.sub.connect(f"tcp://127.0.0.1:{port}")
        self.sub.setsockopt(zmq.SUBSCRIBE, b"")
        self.dealer = context.socket(zmq.DEALER)
        self.dealer.setsockopt(zmq.RCVTIMEO, 20000)
        self.dealer.connect(f"tcp://127.0.0.1:{replay_port}")

    def close(self):
        self.sub.close(0)
        self.dealer.close(0)

    def apply(self, number, payload):
        if number < self.next:
            return  # came twice: live and replayed
        assert number == self.next, f"message {self.next} is missing, got {number}"
        self.next += 1
        stamp, events, rank = msgspec.msgpack.decode(payload)
        assert stamp > 1e9 and rank == 0
        for event in events:
            hashes = event["block_hashes"]
            if event["type"] == "BlockRemoved":
                for block in hashes:
                    del self.blocks[block]
                continue
            assert event["type"] == "BlockStored"
            size, parent = event["block_size"], event["parent_block_hash"]
            assert parent is None or parent in self.blocks, "an orphan"
            assert len(event["token_ids"]) == size * len(hashes)
            for i, block in enumerate(hashes):
                self.blocks[block] = tuple(event["token_ids"][i * size:(i + 1) * size])

    def replay(self):
        self.dealer.send_multipart([b"", struct.pack(">Q", self.next)])
        while True:
            *_, number, payload = self.dealer.recv_multipart()
            if struct.unpack(">Q", number)[0] == END:
                return
            self.apply(struct.unpack(">Q", number)[0], payload)

    def listen(self, seconds):
        end = time.time() + seconds
        while time.time() < end:
            if self.sub.poll(20):
                _, number, payload = self.sub.recv_multipart()
                number = struct.unpack(">Q", number)[0]
                if number > self.next:
                    self.replay()
                self.apply(number, payload)


def load(server, requests, seed):
    """Requests with shared beginnings, several at a time."""

    def ask(number):
        dice = random.Random(seed * 1000 + number)
        prompt = [dice.randrange(4)] * 40 + [dice.randrange(1000) for _ in range(60)]
        body = json.dumps({"model": "mock", "prompt": prompt, "max_tokens": dice.randint(1, 40)})
        urllib.request.urlopen(urllib.request.Request(
            server.url + "/v1/completions", body.encode())).read()

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(requests)]
    for i in range(0, requests, 16):
        for t in threads[i:i + 16]:
            t.start()
        for t in threads[i:i + 16]:
            t.join()


def pool_blocks(server, worker):
    """Blocks in the cache of an idle worker. Two requests that computed one block at the same time
    have left two copies of it."""
    assert server.total("dynosim_kv_blocks", worker_id=str(worker), state="active") == 0
    return server.total("dynosim_kv_blocks", worker_id=str(worker), state="inactive")


def main():
    args = arguments(__doc__).parse_args()
    events, replays, passes = (free_ports(WORKERS) for _ in range(3))
    flags = ["--num-workers", str(WORKERS), "--block-size", "4", "--prefill-ms", "1",
             "--decode-ms", "0.3", "--num-gpu-blocks-override", str(BLOCKS),
             "--zmq-kv-events-ports", ",".join(map(str, events)),
             "--zmq-replay-ports", ",".join(map(str, replays)),
             "--forward-pass-metrics-ports", ",".join(map(str, passes))]
    context = zmq.Context()
    with Server(args.bin, flags) as server:
        metrics = context.socket(zmq.SUB)
        metrics.connect(f"tcp://127.0.0.1:{passes[0]}")
        metrics.setsockopt(zmq.SUBSCRIBE, b"")
        mirrors = [Mirror(context, e, r) for e, r in zip(events, replays)]
        load(server, 100, 1)
        for mirror in mirrors:
            mirror.listen(0.5)
            mirror.replay()
        seen = [dict(m.blocks) for m in mirrors]
        for m in mirrors:
            m.close()
        load(server, 100, 2)  # nobody listens
        mirrors = [Mirror(context, e, r) for e, r in zip(events, replays)]
        for worker, mirror in enumerate(mirrors):
            mirror.replay()
            mirror.listen(0.3)
            assert mirror.blocks != seen[worker] and len(mirror.blocks) <= BLOCKS
            cached = pool_blocks(server, worker)
            assert 0.9 * cached <= len(mirror.blocks) <= cached, (cached, len(mirror.blocks))
            print(f"worker {worker}: {mirror.next} messages, {len(mirror.blocks)} blocks, "
                  f"{cached:.0f} in the pool with copies")
        counters, modelled = [], 0
        while metrics.poll(1500) and len(counters) < 2000:
            _, number, payload = metrics.recv_multipart()
            fpm = msgspec.msgpack.decode(payload)
            assert fpm["version"] == 1 and fpm["dp_rank"] == 0
            assert {"num_prefill_requests", "sum_decode_kv_tokens"} <= set(fpm["scheduled_requests"])
            counters.append(fpm["counter_id"])
            modelled += fpm["wall_time"] > 0
            if not fpm["wall_time"] and modelled:
                break  # the first heartbeat
        assert counters == list(range(counters[0], counters[0] + len(counters)))
        print(f"forward-pass metrics: {len(counters)} messages without a gap, {modelled} passes")


if __name__ == "__main__":
    sys.exit(main())
