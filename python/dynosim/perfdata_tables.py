# SPDX-License-Identifier: Apache-2.0
"""What becomes of each measured table: its key, its coordinates, and the rules of its rows.

A pack holds every table in one shape: rows sorted by key columns, then by coordinate columns, each
combination once, with a latency in milliseconds. The rules here turn a source file into columns of
that shape; perfdata.py merges the files of one table.
"""
import numpy as np

# Heads of the whole model behind the rows of the MLA module tables.
NATIVE_HEADS = {
    "deepseek-ai/DeepSeek-V3": 128,
    "deepseek-ai/DeepSeek-R1": 128,
    "nvidia/DeepSeek-V3.1-NVFP4": 128,
    "moonshotai/Kimi-K3": 96,
}
# Rows of one data type whose kernel makes them a mode of their own.
MOE_DTYPES = {
    ("w4a8_mxfp4_mxfp8", "sglang_mxfp4_flashinfer_trtllm_moe"): "w4a8_mxfp4_mxfp8_trtllm",
    ("w4a16_mxfp4", "sglang_flashinfer_cutlass_moe"): "w4a16_mxfp4_cutlass",
    ("w4a16_mxfp4", "sglang_mxfp4_humming_moe"): "w4a16_mxfp4_humming",
}
GDN_NAMES = {
    "fused_recurrent_gated_delta_rule": "fused_sigmoid_gating_delta_rule_update",
    "fused_recurrent_gated_delta_rule_packed_decode": "fused_sigmoid_gating_delta_rule_update",
}


class DataError(Exception):
    """A source file that the rules do not understand."""


def text(rows, name, default=""):
    """Column of strings; absent columns and nulls give the default."""
    if name not in rows:
        return np.full(rows["latency"].shape[0], default, dtype=object)
    values = rows[name]
    return np.array([default if v is None or v == "" else v for v in values], dtype=object)


def whole(rows, name, default=0):
    """Column of whole numbers; absent columns and nulls give the default."""
    count = rows["latency"].shape[0]
    if name not in rows:
        return np.full(count, default, dtype=np.int64)
    values = rows[name]
    if values.dtype == object or values.dtype.kind == "f":
        return np.array([default if v is None or v != v else int(v) for v in values], dtype=np.int64)
    return values.astype(np.int64)


def each(function, *columns):
    return np.array([function(*values) for values in zip(*columns)], dtype=object)


def keep(columns, mask):
    return {name: values[mask] for name, values in columns.items()}


def gemm(rows, path):
    dtype = text(rows, "gemm_dtype")
    columns = {"gemm_dtype": dtype, "n": whole(rows, "n"), "k": whole(rows, "k"),
               "m": whole(rows, "m"), "latency": rows["latency"]}
    return keep(columns, (dtype != "awq") & (dtype != "gptq"))


def kv_heads(rows):
    heads, kv = whole(rows, "num_heads"), whole(rows, "num_key_value_heads")
    return np.where(heads == kv, 0, kv)


def context_attention(rows, path):
    return {"lane": text(rows, "kernel_source", "default"), "attn_dtype": text(rows, "attn_dtype"),
            "kv_cache_dtype": text(rows, "kv_cache_dtype"), "kv_heads": kv_heads(rows),
            "head_dim": whole(rows, "head_dim"), "window_size": whole(rows, "window_size"),
            "num_heads": whole(rows, "num_heads"), "isl": whole(rows, "isl"),
            "batch_size": whole(rows, "batch_size"), "latency": rows["latency"]}


def generation_attention(rows, path):
    return {"lane": text(rows, "kernel_source", "default"),
            "kv_cache_dtype": text(rows, "kv_cache_dtype"), "kv_heads": kv_heads(rows),
            "head_dim": whole(rows, "head_dim"), "window_size": whole(rows, "window_size"),
            "num_heads": whole(rows, "num_heads"), "batch_size": whole(rows, "batch_size"),
            "kv_length": whole(rows, "isl") + whole(rows, "step"), "latency": rows["latency"]}


def custom_allreduce(rows, path):
    columns = {"num_gpus": whole(rows, "num_gpus"), "message_size": whole(rows, "message_size"),
               "latency": rows["latency"]}
    if "/b60/" in path:
        return columns
    eager = each(lambda a, b: a.endswith("_eager") or b.endswith("_eager"),
                 text(rows, "kernel_source"), text(rows, "backend"))
    return keep(columns, ~eager.astype(bool))


def nccl(rows, path):
    return {"nccl_dtype": text(rows, "nccl_dtype"), "op_name": text(rows, "op_name"),
            "num_gpus": whole(rows, "num_gpus"), "message_size": whole(rows, "message_size"),
            "latency": rows["latency"]}


def moe(rows, path):
    kernel = text(rows, "kernel_source")
    columns = {
        "low_latency": (kernel == "moe_torch_flow_min_latency").astype(np.int64),
        "moe_dtype": each(lambda d, k: MOE_DTYPES.get((d, k), d), text(rows, "moe_dtype"), kernel),
        "distribution": text(rows, "distribution"), "topk": whole(rows, "topk"),
        "num_experts": whole(rows, "num_experts"), "hidden_size": whole(rows, "hidden_size"),
        "inter_size": whole(rows, "inter_size"), "moe_tp_size": whole(rows, "moe_tp_size"),
        "moe_ep_size": whole(rows, "moe_ep_size"), "num_tokens": whole(rows, "num_tokens"),
        "latency": rows["latency"]}
    if "default_eligible" not in rows:
        return columns
    return keep(columns, np.array([v is None or bool(v) for v in rows["default_eligible"]]))


def native_heads(rows, path):
    names = text(rows, "model")
    unknown = sorted({n for n in names if n not in NATIVE_HEADS})
    if unknown:
        raise DataError(f"{path}: the heads of the model '{unknown[0]}' are not known")
    return np.array([NATIVE_HEADS[n] for n in names], dtype=np.int64)


def mla_context_module(rows, path):
    return {"mla_dtype": text(rows, "mla_dtype"), "kv_cache_dtype": text(rows, "kv_cache_dtype"),
            "gemm_type": text(rows, "gemm_type"), "native_heads": native_heads(rows, path),
            "num_heads": whole(rows, "num_heads"), "isl": whole(rows, "isl"),
            "batch_size": whole(rows, "batch_size"), "latency": rows["latency"]}


def mla_generation_module(rows, path):
    return {"kv_cache_dtype": text(rows, "kv_cache_dtype"), "gemm_type": text(rows, "gemm_type"),
            "native_heads": native_heads(rows, path), "num_heads": whole(rows, "num_heads"),
            "batch_size": whole(rows, "batch_size"),
            "kv_length": whole(rows, "isl") + whole(rows, "step"), "latency": rows["latency"]}


def context_mla(rows, path):
    return {"mla_dtype": text(rows, "mla_dtype"), "kv_cache_dtype": text(rows, "kv_cache_dtype"),
            "num_heads": whole(rows, "num_heads"), "isl": whole(rows, "isl"),
            "batch_size": whole(rows, "batch_size"), "latency": rows["latency"]}


def generation_mla(rows, path):
    return {"kv_cache_dtype": text(rows, "kv_cache_dtype"), "num_heads": whole(rows, "num_heads"),
            "batch_size": whole(rows, "batch_size"),
            "kv_length": whole(rows, "isl") + whole(rows, "step"), "latency": rows["latency"]}


def mla_bmm(rows, path):
    return {"bmm_dtype": text(rows, "bmm_dtype"), "op_name": text(rows, "op_name"),
            "num_heads": whole(rows, "num_heads"), "num_tokens": whole(rows, "num_tokens"),
            "latency": rows["latency"]}


def quantize(rows, path):
    return {"quant_dtype": text(rows, "quant_dtype"), "m": whole(rows, "m"), "k": whole(rows, "k"),
            "latency": rows["latency"]}


def linear_attention(rows, names):
    phase = text(rows, "phase")
    kernel = each(lambda k: names.get(k, k), text(rows, "kernel_source"))
    length = np.where(phase == "generation", 0, whole(rows, "seq_len"))
    return {"kernel_source": kernel, "phase": phase, "d_model": whole(rows, "d_model"),
            "d_conv": whole(rows, "d_conv"), "num_k_heads": whole(rows, "num_k_heads"),
            "head_k_dim": whole(rows, "head_k_dim"), "num_v_heads": whole(rows, "num_v_heads"),
            "head_v_dim": whole(rows, "head_v_dim"), "batch_size": whole(rows, "batch_size"),
            "seq_len": length, "latency": rows["latency"]}


def gdn(rows, path):
    return linear_attention(rows, GDN_NAMES)


def kda(rows, path):
    return linear_attention(rows, {})


def mamba2(rows, path):
    phase = text(rows, "phase")
    columns = {"kernel_source": text(rows, "kernel_source"), "phase": phase,
               "d_model": whole(rows, "d_model"), "d_state": whole(rows, "d_state"),
               "d_conv": whole(rows, "d_conv"), "nheads": whole(rows, "nheads"),
               "head_dim": whole(rows, "head_dim"), "n_groups": whole(rows, "n_groups"),
               "chunk_size": whole(rows, "chunk_size"), "batch_size": whole(rows, "batch_size"),
               "seq_len": whole(rows, "seq_len"), "latency": rows["latency"]}
    return keep(columns, phase == "context")  # decode rows are never used


def in_buckets(columns, rows):
    """Rows by the kind of attention kernel that they measure; some count for both kinds."""
    kernel = text(rows, "kernel_source")
    both = (columns["kv_cache_dtype"] == "bfloat16") | (
        kernel == "sglang_dsa_dense_mha_trtllm_ragged")
    trtllm = both | each(lambda k: "trtllm" in k, kernel).astype(bool)
    flash = both | ~trtllm
    position = np.arange(kernel.shape[0])
    take = np.concatenate([position[trtllm], position[flash]])
    bucket = np.array(["trtllm"] * int(trtllm.sum()) + ["flashmla_kv"] * int(flash.sum()),
                      dtype=object)
    order = np.argsort(take, kind="stable")
    return {"bucket": bucket[order], **{n: v[take[order]] for n, v in columns.items()}}


def sparse_key(rows):
    skip = each(lambda n: "skip_indexer" in n, text(rows, "op_name")).astype(np.int64)
    return {"skip_indexer": skip, "architecture": text(rows, "architecture"),
            "mla_dtype": text(rows, "mla_dtype"), "kv_cache_dtype": text(rows, "kv_cache_dtype"),
            "gemm_type": text(rows, "gemm_type"), "num_heads": whole(rows, "num_heads")}


def dsa_context(rows, path):
    return in_buckets({**sparse_key(rows), "step": whole(rows, "step"), "isl": whole(rows, "isl"),
                       "batch_size": whole(rows, "batch_size"), "latency": rows["latency"]}, rows)


def dsa_generation(rows, path):
    return in_buckets({**sparse_key(rows), "batch_size": whole(rows, "batch_size"),
                       "kv_length": whole(rows, "isl") + whole(rows, "step"),
                       "latency": rows["latency"]}, rows)


def dsv4_key(rows):
    heads = whole(rows, "num_heads")
    plain = lambda name: each(lambda d: "fp8" if d == "fp8_e4m3" else d, text(rows, name))
    return {"mla_dtype": plain("mla_dtype"), "kv_cache_dtype": plain("kv_cache_dtype"),
            "gemm_type": plain("gemm_type"),
            "native_heads": heads * np.maximum(whole(rows, "tp_size"), 1), "num_heads": heads}


def dsv4_context(rows, path):
    return {**dsv4_key(rows), "step": whole(rows, "step"), "isl": whole(rows, "isl"),
            "batch_size": whole(rows, "batch_size"), "latency": rows["latency"]}


def dsv4_generation(rows, path):
    columns = dsv4_key(rows)
    del columns["mla_dtype"]
    step, isl = whole(rows, "step"), whole(rows, "isl")
    return {**columns, "batch_size": whole(rows, "batch_size"), "kv_length": isl + step,
            "step": step, "isl": isl, "latency": rows["latency"]}


def dsv4_topk(rows, path):
    if "num_heads" not in rows:
        return None
    present = np.array([v is not None and v == v for v in rows["num_heads"]])
    columns = {"score_mode": text(rows, "score_mode"), "native_heads": whole(rows, "num_heads"),
               "batch_size": whole(rows, "batch_size"), "isl": whole(rows, "isl"),
               "step": whole(rows, "step"), "latency": rows["latency"]}
    return keep(columns, present)


def mhc(rows, path):
    return {"op_name": text(rows, "op_name"), "hc_mult": whole(rows, "hc_mult"),
            "hidden_size": whole(rows, "hidden_size"), "num_tokens": whole(rows, "num_tokens"),
            "latency": rows["latency"]}


def trtllm_alltoall(rows, path):
    ranks = whole(rows, "moe_ep_size")
    nodes = whole(rows, "num_nodes", -1)
    return {"kernel_source": text(rows, "kernel_source", "NVLinkTwoSided"),
            "op_name": text(rows, "op_name"), "moe_dtype": text(rows, "moe_dtype"),
            "num_nodes": np.where(nodes < 0, np.maximum(ranks // 4, 1), nodes),
            "hidden_size": whole(rows, "hidden_size"), "topk": whole(rows, "topk"),
            "num_experts": whole(rows, "num_experts"), "moe_ep_size": ranks,
            "num_tokens": whole(rows, "num_tokens"), "latency": rows["latency"]}


class Table:
    """`coordinates` counts the columns, before the latency, that are axes rather than key."""

    def __init__(self, name, file, rule, coordinates, last_wins=False, prefer=()):
        self.name, self.file, self.rule, self.coordinates = name, file, rule, coordinates
        self.last_wins = last_wins  # within one file; the earlier file always wins
        self.prefer = prefer        # columns whose largest value wins, dropped afterwards


TABLES = [
    Table("gemm", "gemm_perf", gemm, 1),
    Table("context_attention", "context_attention_perf", context_attention, 3),
    Table("generation_attention", "generation_attention_perf", generation_attention, 3),
    Table("custom_allreduce", "custom_allreduce_perf", custom_allreduce, 1),
    Table("moe", "moe_perf", moe, 1),
    Table("mla_context_module", "mla_context_module_perf", mla_context_module, 3),
    Table("mla_generation_module", "mla_generation_module_perf", mla_generation_module, 3),
    Table("context_mla", "context_mla_perf", context_mla, 3),
    Table("generation_mla", "generation_mla_perf", generation_mla, 3),
    Table("mla_bmm", "mla_bmm_perf", mla_bmm, 1),
    Table("computescale", "computescale_perf", quantize, 2),
    Table("scale_matrix", "scale_matrix_perf", quantize, 2),
    Table("gdn", "gdn_perf", gdn, 2),
    Table("mamba2", "mamba2_perf", mamba2, 2),
    Table("kda", "kda_perf", kda, 2),
    Table("dsa_context", "dsa_context_module_perf", dsa_context, 4, last_wins=True),
    Table("dsa_generation", "dsa_generation_module_perf", dsa_generation, 3, last_wins=True),
    Table("msa_context", "msa_context_module_perf", dsa_context, 4, last_wins=True),
    Table("msa_generation", "msa_generation_module_perf", dsa_generation, 3, last_wins=True,
          prefer=("mla_dtype",)),
    Table("dsv4_csa_context", "dsv4_csa_context_module_perf", dsv4_context, 3),
    Table("dsv4_hca_context", "dsv4_hca_context_module_perf", dsv4_context, 3),
    Table("dsv4_csa_generation", "dsv4_csa_generation_module_perf", dsv4_generation, 2,
          prefer=("step", "isl")),
    Table("dsv4_hca_generation", "dsv4_hca_generation_module_perf", dsv4_generation, 2,
          prefer=("step", "isl")),
    Table("dsv4_topk", "dsv4_csa_topk_calib_perf", dsv4_topk, 3),
    Table("mhc", "mhc_module_perf", mhc, 1),
    Table("trtllm_alltoall", "trtllm_alltoall_perf", trtllm_alltoall, 1),
]
# Collective communication does not belong to a serving backend; one file by the library's version.
COLLECTIVES = [Table("nccl", "nccl_perf", nccl, 1), Table("oneccl", "oneccl_perf", nccl, 1)]
