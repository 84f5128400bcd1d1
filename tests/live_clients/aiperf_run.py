# SPDX-License-Identifier: Apache-2.0
"""AIPerf against `dynosim serve`, chat and completions, with fixed times of 20 and 5 ms: checks
counts, usage and server metrics, and prints a table. "model" is a request alone: TTFT 20, ITL 5 ms;
the error columns are what AIPerf saw less that, the server columns what the workers measured. TTFTs
are medians, and "sent" is how long AIPerf took of it until the request had left."""
import glob
import json
import os
import subprocess
import sys
import tempfile

from server import Server, arguments

OUTPUT, TTFT_MS, ITL_MS = 128, 20.0, 5.0


def local_tokenizer(folder):
    """A byte-level tokenizer without merges, so that nothing is downloaded. Prompts are made with it;
    output tokens are those that the server counts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": letters[0],
                   "eos_token": letters[0], "model_max_length": 1000000}, file)
    return folder


def profile(server, kind, concurrency, requests, warmup, folder, tokenizer):
    command = ["aiperf", "profile", "-m", "mock", "-u", server.url, "--endpoint-type", kind,
               "--streaming", "--tokenizer", tokenizer, "--isl", "512", "--isl-stddev", "0",
               "--osl", str(OUTPUT), "--osl-stddev", "0", "--extra-inputs", "ignore_eos:true",
               "--extra-inputs", f"min_tokens:{OUTPUT}", "--concurrency", str(concurrency),
               "--request-count", str(requests), "--warmup-request-count", str(warmup),
               "--artifact-dir", folder, "--ui", "none",
               "--no-gpu-telemetry", "--use-server-token-count"]
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        subprocess.run(command, stdout=log, stderr=log, check=True, timeout=600,
                       env={"AIPERF_SERVICE_REGISTRATION_TIMEOUT": "300", **os.environ, "PATH": path})
    with open(glob.glob(folder + "/**/profile_export_aiperf.json", recursive=True)[0],
              encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--concurrency", type=int, nargs="*", default=[1, 8, 64])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--kinds", nargs="*", default=["chat", "completions"])
    parser.add_argument("--quiet-machine", action="store_true",
                        help="alone, TTFT is within 1 ms and ITL within 0.05 ms of the model")
    parser.add_argument("--tokenizer", help="for AIPerf (default: a local one of bytes)")
    args = parser.parse_args()
    made = tempfile.TemporaryDirectory()
    tokenizer = args.tokenizer or local_tokenizer(made.name)
    columns = ["kind", "workers", "concurrency", "requests", "output tokens", "server agrees",
               "TTFT", "sent", "error", "server", "ITL", "error", "server", "tokens/s"]
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))
    for kind in args.kinds:
        for workers in args.workers:
            for concurrency in args.concurrency:
                requests = {1: 20, 8: 80}.get(concurrency, 256)
                warmup = max(3, concurrency)  # the client opens its connections
                asked = requests + warmup
                flags = ["--num-workers", str(workers), "--prefill-ms", str(TTFT_MS),
                         "--decode-ms", str(ITL_MS)]
                with Server(args.bin, flags) as server, tempfile.TemporaryDirectory() as folder:
                    report = profile(server, kind, concurrency, requests, warmup, folder,
                                     tokenizer)
                    assert report["request_count"]["avg"] == requests, report["request_count"]
                    assert not (report.get("error_request_count") or {}).get("avg")
                    assert report["output_sequence_length"]["avg"] == OUTPUT
                    endpoint = {"chat": "chat_completions"}.get(kind, kind)
                    agrees = (
                        server.total("dynamo_frontend_requests", endpoint=endpoint,
                                     status="success") == asked
                        and server.total("vllm:generation_tokens") == asked * OUTPUT
                        and server.total("dynamo_frontend_output_tokens") == asked * OUTPUT
                        and server.total("vllm:num_requests_running") == 0)
                    worker_ttft = 1000 * server.mean("vllm:time_to_first_token_seconds")
                    worker_itl = 1000 * server.mean("vllm:inter_token_latency_seconds")
                ttft = report["time_to_first_token"]["p50"]
                sent = report["http_req_sending"]["p50"]
                error = ttft - sent - TTFT_MS
                itl = report["inter_token_latency"]["avg"]
                tokens = report["output_sequence_length"]["avg"] * requests
                print(f"| {kind} | {workers} | {concurrency} | {requests} | {tokens:.0f} "
                      f"| {'yes' if agrees else 'NO'} "
                      f"| {ttft:.2f} | {sent:.2f} | {error:+.2f} | {worker_ttft:.2f} "
                      f"| {itl:.3f} | {itl - ITL_MS:+.3f} | {worker_itl:.3f} "
                      f"| {report['output_token_throughput']['avg']:.0f} |", flush=True)
                assert agrees, "the server's counters differ"
                first = report["time_to_first_token"]
                last = first["avg"] - TTFT_MS + (OUTPUT - 1) * (itl - ITL_MS)
                assert first["min"] >= TTFT_MS and last >= 0.0, "tokens came earlier than the model says"
                if args.quiet_machine and concurrency == 1:
                    assert error <= 1.0 and itl <= ITL_MS + 0.05, "later than the model"


if __name__ == "__main__":
    sys.exit(main())
