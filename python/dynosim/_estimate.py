# SPDX-License-Identifier: Apache-2.0
"""Questions to the performance model."""
import json
import os

from . import _core

_kept: dict = {}  # Estimates by their data folders


def estimate(phase, *, model, system, backend, backend_version=None, batch=1, isl=None, prefix=0,
             ctx=None, block_size=None, max_num_tokens=None, max_batch_size=None,
             memory_fraction=None, cuda_graph_reserved_bytes=None, perfdata=(), tp_size=None,
             pp_size=None, attention_dp_size=None, moe_tp_size=None, moe_ep_size=None, nextn=None,
             gemm_quant_mode=None, moe_quant_mode=None, fmha_quant_mode=None,
             kvcache_quant_mode=None, comm_quant_mode=None):
    """Time of one pass, or the KV capacity, of a model on a system.

    phase: "prefill" (batch sequences of isl tokens each, prefix of them cached), "decode" (batch
      sequences of ctx tokens each, the current one included), "capacity" or "operations".
    model: a packaged model (`dynosim models`) or a folder with config.json.  system, backend: as
      `dynosim systems` lists them; backend_version: a version, or current, previous, next.
    tp_size, pp_size, attention_dp_size, moe_tp_size, moe_ep_size: ranks of each kind (1).  nextn:
      draft tokens per step (0).  *_quant_mode: data types, otherwise those of the checkpoint.
    block_size (tokens), max_num_tokens, max_batch_size, memory_fraction (0 to 1),
      cuda_graph_reserved_bytes: of "capacity"; otherwise those of the engine.
    perfdata: data folders in front of the usual ones.

    Prefill and decode give {"ms": float}; capacity gives num_gpu_blocks, total_kv_size_tokens,
    total_kv_size_bytes and where the memory goes; operations the list of operations of a pass.
    ValueError: the question is not valid. RuntimeError: the data has no answer.
    """
    folders = [perfdata] if isinstance(perfdata, (str, os.PathLike)) else list(perfdata)
    key = (tuple(os.fspath(folder) for folder in folders), os.environ.get("DYNOSIM_PERFDATA"))
    if key not in _kept:
        _kept[key] = _core.Estimates(list(key[0]))
    parallel = {"tp_size": tp_size, "pp_size": pp_size, "attention_dp_size": attention_dp_size,
                "moe_tp_size": moe_tp_size, "moe_ep_size": moe_ep_size, "nextn": nextn,
                "gemm_quant_mode": gemm_quant_mode, "moe_quant_mode": moe_quant_mode,
                "fmha_quant_mode": fmha_quant_mode, "kvcache_quant_mode": kvcache_quant_mode,
                "comm_quant_mode": comm_quant_mode}
    question = {"phase": phase, "model": os.fspath(model), "system": system, "backend": backend,
                "backend_version": backend_version, "parallel": _given(parallel), "batch": batch,
                "isl": isl, "prefix": prefix, "ctx": ctx, "block_size": block_size,
                "max_num_tokens": max_num_tokens, "max_batch_size": max_batch_size,
                "memory_fraction": memory_fraction,
                "cuda_graph_reserved_bytes": cuda_graph_reserved_bytes}
    return json.loads(_kept[key].answer(json.dumps(_given(question))))


def _given(values):
    return {name: value for name, value in values.items() if value is not None}
