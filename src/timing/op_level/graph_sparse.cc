// SPDX-License-Identifier: Apache-2.0
// Models with sparse attention modules and a shared expert beside the routed ones: DeepSeek-V3.2
// and GLM-5, DeepSeek-V4, MiniMax-M3.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "timing/op_level/dense_prefix.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/layer_pattern.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/module_patterns.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/quantization.h"

namespace dynosim::timing {
namespace {

bool ContainsAny(std::string_view text, const std::vector<std::string_view>& markers) {
  return std::any_of(markers.begin(), markers.end(), [text](std::string_view marker) {
    return text.find(marker) != std::string_view::npos;
  });
}

// Routed experts beside a shared one: after each other in the context phase, side by side in the
// generation phase.
struct SharedExpertShape {
  std::uint64_t inner = 0;  // per GPU
  std::string mode;
  double layers = 0.0;
  bool generation_is_context = true;  // flag of the dispatch operations
};

void WriteShared(GraphWriter& w, const SharedExpertShape& shape) {
  w.Gemm("shared_gate_up_gemm", shape.layers, 2 * shape.inner, w.model().hidden, shape.mode);
  w.Elementwise("shared_act_gate", shape.layers, 2 * shape.inner, shape.inner);
  w.Gemm("shared_ffn2_gemm", shape.layers, w.model().hidden, shape.inner, shape.mode);
}

void WriteRouted(GraphWriter& w, const SharedExpertShape& shape) {
  const DispatchShape dispatch{.hidden = w.model().hidden,
                               .quant = w.in().modes.moe,
                               .is_context = w.context() || shape.generation_is_context};
  w.Gemm("router_gemm", shape.layers, w.model().experts, w.model().hidden, "bfloat16");
  w.PreDispatch("moe_pre_dispatch", shape.layers, dispatch);
  w.Experts("moe", shape.layers, w.ExpertsOfModel("power_law_1.01"));
  w.PostDispatch("moe_post_dispatch", shape.layers, dispatch);
}

void WriteExperts(GraphWriter& w, const SharedExpertShape& shape) {
  if (w.context()) {
    WriteShared(w, shape);
    WriteRouted(w, shape);
    return;
  }
  auto routed = w.Group([&] { WriteRouted(w, shape); });
  auto shared = w.Group([&] { WriteShared(w, shape); });
  w.Add("moe_overlap", 1.0, OverlapOp{.group_a = std::move(routed), .group_b = std::move(shared)});
}

// ---------------------------------------------------------------- DeepSeek-V3.2 and GLM-5

// Projections of the attention block that the checkpoint leaves unquantized.
struct Excluded {
  bool q = false, kv = false, o = false, indexer = false;
  void All() { q = kv = o = indexer = true; }
};

const std::vector<std::string_view> kQ = {"q_a_proj", "q_b_proj", "q_proj"};
const std::vector<std::string_view> kKv = {"kv_a_proj", "kv_b_proj", "kv_proj", "k_proj", "v_proj"};
const std::vector<std::string_view> kO = {"o_proj"};
const std::vector<std::string_view> kIndexer = {"indexer"};
const std::vector<std::string_view> kIndexerProjections = {"indexer.wq_b", "indexer.wk",
                                                           "indexer.weights_proj"};

void MarkGroups(std::string_view pattern, const std::vector<std::string_view>& indexer,
                Excluded& out) {
  out.q = out.q || ContainsAny(pattern, kQ);
  out.kv = out.kv || ContainsAny(pattern, kKv);
  out.o = out.o || ContainsAny(pattern, kO);
  out.indexer = out.indexer || ContainsAny(pattern, indexer);
}

void MarkPlain(std::string_view pattern, Excluded& out) {
  Excluded found;
  MarkGroups(pattern, kIndexer, found);
  if (!found.q && !found.kv && !found.o && !found.indexer &&
      pattern.find("self_attn") != std::string_view::npos) {
    out.All();
  }
  MarkGroups(pattern, kIndexer, out);
}

// True when nothing but a wildcard follows the last mention of a module.
bool EndsAt(std::string_view pattern, std::string_view module) {
  const std::size_t at = pattern.rfind(module);
  if (at == std::string_view::npos) {
    return false;
  }
  const std::string_view tail = pattern.substr(at + module.size());
  return tail.empty() || tail == "*" || tail == ".*" || tail == "\\..*";
}

void MarkByExpression(const std::string& expression, std::uint64_t layers, Excluded& out) {
  const auto any = [&](const std::vector<std::string_view>& modules) {
    for (std::uint64_t layer = 0; layer < layers; ++layer) {
      for (const std::string_view module : modules) {
        if (MatchesFromStart(expression,
                             fmt::format("model.layers.{}.self_attn.{}", layer, module))) {
          return true;
        }
      }
    }
    return false;
  };
  std::vector<std::string_view> kv = kKv;
  kv.emplace_back("kv_a_proj_with_mqa");
  std::vector<std::string_view> indexer = kIndexerProjections;
  indexer.emplace_back("indexer.wk_weights_proj");
  out.q = out.q || any(kQ);
  out.kv = out.kv || any(kv);
  out.o = out.o || any(kO);
  out.indexer = out.indexer || any(indexer);
}

Excluded FindExcluded(const GraphInput& in) {
  Excluded out;
  for (const std::string& pattern : ExclusionPatterns(in.model)) {
    if (in.platform.backend != "vllm") {
      MarkPlain(pattern, out);
    } else if (pattern.starts_with("re:")) {
      MarkByExpression(pattern.substr(3), in.model.layers, out);
    } else {
      if (EndsAt(pattern, "self_attn")) {
        out.All();
      }
      out.indexer = out.indexer || EndsAt(pattern, "indexer");
      MarkGroups(pattern, kIndexerProjections, out);
    }
  }
  return out;
}

ProjectionModes FindProjectionModes(const GraphInput& in) {
  const Excluded excluded = FindExcluded(in);
  const auto mode = [&in](bool left_out) { return left_out ? "bfloat16" : in.modes.gemm; };
  return {.q = mode(excluded.q),
          .kv = mode(excluded.kv),
          .o = mode(excluded.o),
          .indexer = mode(excluded.indexer)};
}

// Share of the layers that choose tokens themselves; the others reuse an earlier choice.
double FullShare(const GraphInput& in) {
  const ModelSpec& m = in.model;
  const std::uint64_t every = std::max<std::uint64_t>(m.WholeOr("index_topk_freq", 1), 1);
  const Json* const given = m.text.Find("index_topk_pattern");
  const std::string pattern =
      given != nullptr && given->is_string() ? given->string() : std::string();
  if (in.platform.backend == "trtllm" || (every <= 1 && pattern.empty())) {
    return 1.0;
  }
  const std::uint64_t offset = m.Whole({"index_skip_topk_offset"}).value_or(2);
  std::uint64_t choosing = 0;
  for (std::uint64_t i = 0; i < m.layers; ++i) {
    const std::uint64_t position = i + 1 > offset ? i + 1 - offset : 0;
    const bool skips =
        pattern.empty() ? position % every != 0 : i < pattern.size() && pattern[i] == 'S';
    choosing += skips ? 0 : 1;
  }
  return ToDouble(choosing) / ToDouble(m.layers);
}

struct DsaParts {
  ProjectionModes projections;
  std::string shared_mode;
  double full_share = 1.0;
  std::vector<DensePrefixGroup> dense;
};

void WriteDenseGroups(GraphWriter& w, const std::vector<DensePrefixGroup>& groups) {
  const ModelSpec& m = w.model();
  const std::uint64_t inner = m.inter / w.tp();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string prefix = groups.size() == 1 ? "dense" : fmt::format("dense_{}", i);
    const double count = ToDouble(groups[i].layers);
    w.AllReduce(prefix + "_attn_ar", count);
    w.Gemm(prefix + "_gate_up_gemm", count, 2 * inner, m.hidden, groups[i].gate_up_mode);
    w.Elementwise(prefix + "_act_gate", count, 2 * inner, inner);
    w.Gemm(prefix + "_down_gemm", count, m.hidden, inner, groups[i].down_mode,
           {.low_precision_input = true});
    w.AllReduce(prefix + "_ffn_ar", count);
  }
}

void WriteDeepSeekV32(GraphWriter& w, const DsaParts& parts) {
  const ModelSpec& m = w.model();
  const double layers = ToDouble(m.layers);
  const ProjectionModes& p = parts.projections;
  const bool uniform = p.q == p.kv && p.kv == p.o && p.o == p.indexer;
  std::uint64_t expert_layers = m.layers;
  for (const DensePrefixGroup& group : parts.dense) {
    expert_layers -= group.layers;
  }
  w.Embedding(m.vocab);
  w.Norm("add_norm_1", layers);
  w.Add("attention", layers,
        DsaOp{.context = w.context(),
              .num_heads = m.heads / w.tp(),
              .kv_cache_dtype = w.in().modes.kv,
              .fmha_quant_mode = w.context() ? w.in().modes.fmha : "bfloat16",
              .gemm_quant_mode = uniform ? p.q : p.o,
              .architecture = m.architecture,
              .index_topk = m.WholeOr("index_topk", 2048),
              .full_frac = parts.full_share,
              .projections = p});
  w.Norm("add_norm_2", layers);
  WriteDenseGroups(w, parts.dense);
  WriteExperts(w, {.inner = m.moe_inter / w.in().layout.moe.moe_tp_size,
                   .mode = parts.shared_mode,
                   .layers = ToDouble(expert_layers),
                   .generation_is_context = false});
  w.Logits();
  w.P2P();
}

// ---------------------------------------------------------------- DeepSeek-V4

struct Dsv4Sizes {
  std::uint64_t q_rank = 0, o_rank = 0, o_groups = 0, rope = 0, head_dim = 0;
  std::uint64_t index_heads = 0, index_dim = 0, index_topk = 0, window = 0;
  std::uint64_t hc_mult = 0, sinkhorn = 0;
};

Result<Dsv4Sizes> FindDsv4Sizes(const ModelSpec& m) {
  Dsv4Sizes out;
  DYNO_TRY(out.q_rank, m.Need("q_lora_rank"));
  DYNO_TRY(out.o_rank, m.Need("o_lora_rank"));
  DYNO_TRY(out.o_groups, m.Need("o_groups"));
  DYNO_TRY(out.rope, m.Need("qk_rope_head_dim"));
  DYNO_TRY(out.head_dim, m.Need("head_dim"));
  DYNO_TRY(out.index_heads, m.Need("index_n_heads"));
  DYNO_TRY(out.index_dim, m.Need("index_head_dim"));
  DYNO_TRY(out.index_topk, m.Need("index_topk"));
  DYNO_TRY(out.window, m.Need("sliding_window"));
  DYNO_TRY(out.hc_mult, m.Need("hc_mult"));
  DYNO_TRY(out.sinkhorn, m.Need("hc_sinkhorn_iters"));
  return out;
}

// Layers by ratio, in the order of first appearance; layers without compression count as 128.
std::vector<std::pair<std::uint64_t, std::uint64_t>> CountRatios(
    const std::vector<std::uint64_t>& ratios) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> counts;
  std::uint64_t plain = 0;
  for (const std::uint64_t ratio : ratios) {
    if (ratio == 0) {
      ++plain;
      continue;
    }
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [ratio](const auto& entry) { return entry.first == ratio; });
    if (found == counts.end()) {
      counts.emplace_back(ratio, 1);
    } else {
      ++found->second;
    }
  }
  if (plain > 0) {
    constexpr std::uint64_t kPlainRatio = 128;
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [](const auto& entry) { return entry.first == kPlainRatio; });
    if (found == counts.end()) {
      counts.emplace_back(kPlainRatio, plain);
    } else {
      found->second += plain;
    }
  }
  return counts;
}

void WriteDeepSeekV4(GraphWriter& w, const Dsv4Sizes& z,
                     const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ratios) {
  const ModelSpec& m = w.model();
  const double layers = ToDouble(m.layers);
  const auto connect = [&](std::string_view name, std::string_view op) {
    w.Add(name, layers,
          MhcOp{.op = std::string(op),
                .hc_mult = z.hc_mult,
                .hidden_size = m.hidden,
                .architecture = m.architecture,
                .sinkhorn_iters = z.sinkhorn});
  };
  w.Embedding(m.vocab);
  connect("mhc_pre", "pre");
  w.Elementwise("attn_norm", layers, m.hidden, m.hidden);
  for (const auto& [ratio, count] : ratios) {
    w.Add("attention", ToDouble(count),
          Dsv4Op{.context = w.context(),
                 .csa = ratio == 4,
                 .num_heads = m.heads / w.tp(),
                 .native_heads = m.heads,
                 .tp_size = w.tp(),
                 .kv_cache_dtype = w.in().modes.kv,
                 .fmha_quant_mode = w.in().modes.fmha,
                 .gemm_quant_mode = w.in().modes.gemm,
                 .architecture = m.architecture,
                 .window_size = z.window,
                 .hidden_size = m.hidden,
                 .q_lora_rank = z.q_rank,
                 .o_lora_rank = z.o_rank,
                 .head_dim = z.head_dim,
                 .rope_head_dim = z.rope,
                 .index_n_heads = z.index_heads,
                 .index_head_dim = z.index_dim,
                 .index_topk = z.index_topk,
                 .o_groups = std::max<std::uint64_t>(z.o_groups / w.tp(), 1)});
  }
  connect("mhc_post", "post");
  w.Elementwise("ffn_norm", layers, m.hidden, m.hidden);
  WriteExperts(w, {.inner = m.moe_inter / w.tp(), .mode = w.in().modes.gemm, .layers = layers});
  w.Logits();
  w.P2P();
}

// ---------------------------------------------------------------- MiniMax-M3

void WriteMiniMaxM3(GraphWriter& w) {
  const ModelSpec& m = w.model();
  const double layers = ToDouble(m.layers);
  w.Embedding(m.vocab);
  w.Norm("add_norm_1", layers);
  w.Add("attention", layers,
        MsaOp{.context = w.context(),
              .num_heads = std::max<std::uint64_t>(m.heads / w.tp(), 1),
              .num_kv_heads = std::max<std::uint64_t>(m.kv_heads / w.tp(), 1),
              .hidden_size = m.hidden,
              .head_dim = m.head_dim,
              .kv_cache_dtype = w.in().modes.kv,
              .fmha_quant_mode = w.in().modes.fmha,
              .gemm_quant_mode = w.in().modes.gemm});
  w.Norm("add_norm_2", layers);
  WriteExperts(w, {.inner = m.moe_inter / w.tp(), .mode = w.in().modes.gemm, .layers = layers});
  w.Logits();
  w.P2P();
}

}  // namespace

Result<ModelGraph> BuildDeepSeekV32(const GraphInput& input) {
  for (const std::string_view field :
       {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
        "index_head_dim", "index_n_heads", "index_topk"}) {
    if (auto needed = input.model.Need(field); !needed) {
      return std::unexpected(std::move(needed).error());
    }
  }
  DsaParts parts;
  parts.projections = FindProjectionModes(input);
  parts.full_share = FullShare(input);
  parts.shared_mode = input.modes.gemm;
  for (const std::string& pattern : ExclusionPatterns(input.model)) {
    if (pattern.find("shared_expert") != std::string::npos) {
      parts.shared_mode = "bfloat16";
    }
  }
  DYNO_TRY(parts.dense, FindDensePrefix(input));
  return WriteBoth(input, [&parts](GraphWriter& w) { WriteDeepSeekV32(w, parts); });
}

Result<ModelGraph> BuildDeepSeekV4(const GraphInput& input) {
  DYNO_TRY(const Dsv4Sizes sizes, FindDsv4Sizes(input.model));
  DYNO_TRY(const std::vector<std::uint64_t> ratios, FindCompressRatios(input.model));
  const auto counts = CountRatios(ratios);
  return WriteBoth(input, [&](GraphWriter& w) { WriteDeepSeekV4(w, sizes, counts); });
}

Result<ModelGraph> BuildMiniMaxM3(const GraphInput& input) {
  return WriteBoth(input, WriteMiniMaxM3);
}

}  // namespace dynosim::timing
