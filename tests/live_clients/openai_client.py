# SPDX-License-Identifier: Apache-2.0
"""The official openai client against `dynosim serve`: chat, completions, responses, streams, usage,
models, errors, and a stream that its client closes."""
import sys
import time

import openai

from server import Server, arguments

HELLO = [{"role": "user", "content": "hello"}]


def chat(client):
    answer = client.chat.completions.create(model="mock", messages=HELLO, max_tokens=5)
    assert answer.usage.completion_tokens == 5 and answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.content and answer.choices[0].message.role == "assistant"
    usage, pieces, reasons = None, 0, []
    for chunk in client.chat.completions.create(
            model="mock", messages=HELLO, max_completion_tokens=7, stream=True,
            stream_options={"include_usage": True}):
        for choice in chunk.choices:
            pieces += bool(choice.delta.content)
            reasons += [choice.finish_reason] if choice.finish_reason else []
        usage = chunk.usage or usage
    assert (pieces, reasons, usage.completion_tokens) == (7, ["length"], 7)
    assert usage.prompt_tokens == answer.usage.prompt_tokens


def completions(client):
    answer = client.completions.create(model="mock", prompt=["a", "b"], max_tokens=3)
    assert [c.index for c in answer.choices] == [0, 1] and answer.usage.completion_tokens == 6


def responses(client):
    answer = client.responses.create(model="mock", input="hello", max_output_tokens=4)
    assert answer.status == "incomplete" and answer.usage.output_tokens == 4 and answer.output_text
    events = [e.type for e in client.responses.create(
        model="mock", input="hello", max_output_tokens=4, stream=True)]
    assert events[0] == "response.created" and events[-1] == "response.incomplete"
    assert events.count("response.output_text.delta") == 4


def errors(client, server):
    for kind, text, request in [
            (openai.NotFoundError, "nope", {"model": "nope", "messages": HELLO}),
            (openai.BadRequestError, "empty", {"model": "mock", "messages": []}),
            (openai.RateLimitError, "", {"model": "mock", "messages": HELLO,
                                         "extra_headers": {"X-Return-Error": "429"}})]:
        try:
            client.chat.completions.create(**request)
            raise AssertionError(f"no {kind.__name__}")
        except kind as error:
            assert text in str(error), error
    for i in range(1000):
        try:
            client.chat.completions.create(model=f"unknown-{i}", messages=HELLO)
        except openai.NotFoundError:
            pass
    models = {s.labels.get("model") for f in server.metrics().values() for s in f.samples}
    assert len(models - {None}) <= 3, f"labels are not bounded: {len(models)}"


def closed_stream(client, server):
    stream = client.chat.completions.create(model="mock", messages=HELLO, max_tokens=50000,
                                            stream=True)
    pieces = iter(stream)
    next(pieces), next(pieces)
    stream.close()
    for _ in range(200):
        if server.total("vllm:num_requests_running") == 0:
            return
        time.sleep(0.02)
    raise AssertionError("a closed stream goes on")


def main():
    args = arguments(__doc__).parse_args()
    with Server(args.bin, ["--prefill-ms", "2", "--decode-ms", "1"]) as server:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
        chat(client)
        completions(client)
        responses(client)
        assert [m.id for m in client.models.list()] == ["mock"]
        errors(client, server)
        closed_stream(client, server)
        print(f"openai {openai.__version__}: ok, {len(server.metrics())} metric families")


if __name__ == "__main__":
    sys.exit(main())
