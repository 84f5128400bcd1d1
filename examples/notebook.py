# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # How does a chat service behave on H200, and where does its time go?
#
# Cells for VS Code, Spyder or Jupyter (`jupytext --to ipynb examples/notebook.py` makes a notebook
# of them), and a script: `python3 examples/notebook.py`, from the top of the repository. Needs
# pandas.

# %%
import dynosim

TRACE = "examples/conversation_trace.jsonl.zst"


def service(workers, router="round_robin"):
    """Llama-3.1-8B on so many H200, under the first two minutes of a public conversation trace."""
    return {
        "traffic": {"source": {"type": "trace", "paths": [TRACE]},
                    "load": {"type": "trace_timestamps"},
                    "stop": {"max_virtual_time_seconds": 120}},
        "engine": {"model": "meta-llama/Meta-Llama-3.1-8B", "hardware": "h200_sxm",
                   "backend": "vllm",
                   "workers": {"aggregated": {"parallelism": {"replicas": workers}}}},
        "evaluation": {"sla": {"ttft_ms": 2000, "itl_ms": 25}},
        "router": {"policy": router},
    }


# %% [markdown]
# ## One deployment
# `summary_frame` has a row per metric, in ms (tokens/s for the throughput of a user).

# %%
report = dynosim.predict(service(4), stack="dynamo", capture_per_request=True)
print(report)
print(report.summary_frame()[["mean", "median", "p99"]].round(1))

# %% [markdown]
# ## The slowest requests
# A row per request. `ttft_parts_ms` says where the wait was: in the queue, or in its own long prompt.

# %%
requests = report.frame()
slowest = requests.nlargest(5, "ttft_ms")
print(slowest[["arrival_time_ms", "input_length", "reused_input_tokens", "ttft_ms"]].round(0))
parts = {row["uuid"]: row["ttft_parts_ms"] for row in report.per_request}
queued = sum(part["queue"] for part in parts.values() if part)
print(f"{queued / requests['ttft_ms'].sum():.0%} of the time to the first token is queueing")

# %% [markdown]
# ## More workers, or a router that knows the caches?

# %%
for router in ("round_robin", "kv_router"):
    for workers in (3, 4, 6):
        s = dynosim.predict(service(workers, router), stack="dynamo").summary
        print(f"{router:12} {workers} GPUs: p99 time to first token {s['p99_ttft_ms']:6.0f} ms, "
              f"{s['goodput_completed_requests'] / s['completed_requests']:.0%} within the bounds, "
              f"{s['prefix_cache_reused_ratio']:.0%} of prompt tokens from the cache")

# %% [markdown]
# ## Over time
# The same run with a sample every ten virtual seconds. `run_trace_replay` takes the engine that
# `predict` resolved.

# %%
resolved = report.configuration["extra_engine_args"]
sampled = dynosim.run_trace_replay(
    TRACE, extra_engine_args=resolved, num_workers=4, max_sim_time_ms=120_000.0,
    telemetry_options=dynosim.TelemetryOptions(sample_interval_ms=10_000.0))
samples = sampled.telemetry_frame().rename(columns=lambda name: name.removeprefix("decode_"))
print(samples[["sampled_at_ms", "arriving_requests", "running_requests", "waiting_requests"]])
assert sampled.summary["mean_ttft_ms"] == report.summary["mean_ttft_ms"]
