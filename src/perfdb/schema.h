// SPDX-License-Identifier: Apache-2.0
// The tables of a pack and their columns before the latency, in order: first the key, then as many
// coordinates as `axes` says. A leading '#' marks a number; the others are text. One list, shared
// by the reader that checks packs and by the operations that query them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace dynosim::perfdb {

struct TableSchema {
  std::string_view name;
  std::span<const std::string_view> columns;
  std::size_t axes = 0;
};

namespace columns {
using Names = std::string_view;
inline constexpr Names kGemm[] = {"gemm_dtype", "#n", "#k", "#order", "#m"};
inline constexpr Names kContextAttention[] = {"lane",       "attn_dtype", "kv_cache_dtype",
                                              "#kv_heads",  "#head_dim",  "#window_size",
                                              "#num_heads", "#isl",       "#batch_size"};
inline constexpr Names kGenerationAttention[] = {"lane",        "kv_cache_dtype", "#kv_heads",
                                                 "#head_dim",   "#window_size",   "#num_heads",
                                                 "#batch_size", "#kv_length"};
inline constexpr Names kAllReduce[] = {"#num_gpus", "#message_size"};
inline constexpr Names kCollective[] = {"nccl_dtype", "op_name", "#num_gpus", "#message_size"};
inline constexpr Names kMoe[] = {"#low_latency", "moe_dtype",    "distribution", "#topk",
                                 "#num_experts", "#hidden_size", "#inter_size",  "#moe_tp_size",
                                 "#moe_ep_size", "#num_tokens"};
inline constexpr Names kMlaContextModule[] = {"mla_dtype",     "kv_cache_dtype", "gemm_type",
                                              "#native_heads", "#num_heads",     "#isl",
                                              "#batch_size"};
inline constexpr Names kMlaGenerationModule[] = {"kv_cache_dtype", "gemm_type",   "#native_heads",
                                                 "#num_heads",     "#batch_size", "#kv_length"};
inline constexpr Names kContextMla[] = {"mla_dtype", "kv_cache_dtype", "#num_heads", "#isl",
                                        "#batch_size"};
inline constexpr Names kGenerationMla[] = {"kv_cache_dtype", "#num_heads", "#batch_size",
                                           "#kv_length"};
inline constexpr Names kMlaBmm[] = {"bmm_dtype", "op_name", "#num_heads", "#num_tokens"};
inline constexpr Names kQuantize[] = {"quant_dtype", "#m", "#k"};
inline constexpr Names kLinearAttention[] = {
    "kernel_source", "phase",        "#d_model",    "#d_conv",     "#num_k_heads",
    "#head_k_dim",   "#num_v_heads", "#head_v_dim", "#batch_size", "#seq_len"};
inline constexpr Names kMamba2[] = {"kernel_source", "phase",       "#d_model",  "#d_state",
                                    "#d_conv",       "#nheads",     "#head_dim", "#n_groups",
                                    "#chunk_size",   "#batch_size", "#seq_len"};
inline constexpr Names kSparseContext[] = {
    "bucket",    "#skip_indexer", "architecture", "mla_dtype", "kv_cache_dtype",
    "gemm_type", "#num_heads",    "#step",        "#isl",      "#batch_size"};
inline constexpr Names kSparseGeneration[] = {"bucket",     "#skip_indexer",  "architecture",
                                              "mla_dtype",  "kv_cache_dtype", "gemm_type",
                                              "#num_heads", "#batch_size",    "#kv_length"};
inline constexpr Names kMsaGeneration[] = {"bucket",         "#skip_indexer", "architecture",
                                           "kv_cache_dtype", "gemm_type",     "#num_heads",
                                           "#batch_size",    "#kv_length"};
inline constexpr Names kDsv4Context[] = {"mla_dtype",     "kv_cache_dtype", "gemm_type",
                                         "#native_heads", "#num_heads",     "#step",
                                         "#isl",          "#batch_size"};
inline constexpr Names kDsv4Generation[] = {"kv_cache_dtype", "gemm_type",   "#native_heads",
                                            "#num_heads",     "#batch_size", "#kv_length"};
inline constexpr Names kDsv4TopK[] = {"score_mode", "#native_heads", "#batch_size", "#isl",
                                      "#step"};
inline constexpr Names kMhc[] = {"op_name", "#hc_mult", "#hidden_size", "#num_tokens"};
inline constexpr Names kAllToAll[] = {"kernel_source", "op_name",      "moe_dtype",
                                      "#num_nodes",    "#hidden_size", "#topk",
                                      "#num_experts",  "#moe_ep_size", "#num_tokens"};
}  // namespace columns

inline constexpr std::array kSchemas = {
    TableSchema{"gemm", columns::kGemm, 1},
    TableSchema{"context_attention", columns::kContextAttention, 3},
    TableSchema{"generation_attention", columns::kGenerationAttention, 3},
    TableSchema{"custom_allreduce", columns::kAllReduce, 1},
    TableSchema{"nccl", columns::kCollective, 1},
    TableSchema{"oneccl", columns::kCollective, 1},
    TableSchema{"moe", columns::kMoe, 1},
    TableSchema{"mla_context_module", columns::kMlaContextModule, 3},
    TableSchema{"mla_generation_module", columns::kMlaGenerationModule, 3},
    TableSchema{"context_mla", columns::kContextMla, 3},
    TableSchema{"generation_mla", columns::kGenerationMla, 3},
    TableSchema{"mla_bmm", columns::kMlaBmm, 1},
    TableSchema{"computescale", columns::kQuantize, 2},
    TableSchema{"scale_matrix", columns::kQuantize, 2},
    TableSchema{"gdn", columns::kLinearAttention, 2},
    TableSchema{"kda", columns::kLinearAttention, 2},
    TableSchema{"mamba2", columns::kMamba2, 2},
    TableSchema{"dsa_context", columns::kSparseContext, 4},
    TableSchema{"dsa_generation", columns::kSparseGeneration, 3},
    TableSchema{"msa_context", columns::kSparseContext, 4},
    TableSchema{"msa_generation", columns::kMsaGeneration, 3},
    TableSchema{"dsv4_csa_context", columns::kDsv4Context, 3},
    TableSchema{"dsv4_hca_context", columns::kDsv4Context, 3},
    TableSchema{"dsv4_csa_generation", columns::kDsv4Generation, 2},
    TableSchema{"dsv4_hca_generation", columns::kDsv4Generation, 2},
    TableSchema{"dsv4_topk", columns::kDsv4TopK, 3},
    TableSchema{"mhc", columns::kMhc, 1},
    TableSchema{"trtllm_alltoall", columns::kAllToAll, 1},
};

// nullptr for a name that is no table.
constexpr const TableSchema* FindSchema(std::string_view name) {
  for (const TableSchema& schema : kSchemas) {
    if (schema.name == name) {
      return &schema;
    }
  }
  return nullptr;
}

}  // namespace dynosim::perfdb
