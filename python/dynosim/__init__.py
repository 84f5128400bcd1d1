# SPDX-License-Identifier: Apache-2.0
"""Simulates LLM serving: latency, throughput and cache reuse of a deployment, in virtual time.

    import dynosim
    report = dynosim.run_synthetic_trace_replay(1024, 128, 1000, replay_concurrency=64)
    report.summary["mean_ttft_ms"]

Times are virtual milliseconds (`_ms`), lengths are tokens, rates are per second. Equal arguments and
seeds give equal results, bit for bit. What the caller gave and cannot be is a ValueError that names
the argument; a run that fails on its input (a trace that cannot be read, a model that does not fit)
is a RuntimeError. Ctrl-C stops a run of the main thread; other threads go on while a run computes.
"""
__version__ = "0.1.0"

from ._estimate import estimate
from ._recommend import Recommendation, recommend
from ._replay import predict, run_synthetic_trace_replay, run_trace_replay
from ._report import ReplayReport, TelemetryOptions

__all__ = ["Recommendation", "ReplayReport", "TelemetryOptions", "estimate", "predict", "recommend",
           "run_synthetic_trace_replay", "run_trace_replay", "__version__"]
