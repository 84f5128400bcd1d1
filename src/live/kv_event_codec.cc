// SPDX-License-Identifier: Apache-2.0
#include "live/kv_event_codec.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <msgpack.hpp>

#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "kv/events.h"
#include "live/live_request.h"

namespace dynosim::live {

namespace {

// What msgpack needs of a stream.
class Bytes {
 public:
  void write(const char* data, std::size_t size) {
    text_.append(data, size);
  }  // NOLINT(readability-identifier-naming)
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};
using Packer = msgpack::packer<Bytes>;

void PackText(Packer& packer, std::string_view text) {
  packer.pack_str(static_cast<std::uint32_t>(text.size()));
  packer.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
}

void PackHashes(Packer& packer, std::span<const kv::BlockName> hashes) {
  packer.pack_array(static_cast<std::uint32_t>(hashes.size()));
  for (const kv::BlockName hash : hashes) {
    packer.pack_uint64(hash);
  }
}

// Writes events field by field, with keys or without.
class EventPacker {
 public:
  EventPacker(Packer& packer, bool positional) : packer_(packer), positional_(positional) {}

  void Begin(std::string_view type, std::uint32_t fields) {
    if (positional_) {
      packer_.pack_array(fields + 1);
    } else {
      packer_.pack_map(fields + 1);
      PackText(packer_, "type");
    }
    PackText(packer_, type);
  }
  Packer& Field(std::string_view key) {
    if (!positional_) {
      PackText(packer_, key);
    }
    return packer_;
  }

 private:
  Packer& packer_;
  bool positional_;
};

void PackStored(const engine::KvEventBuffer& events, const engine::KvEventBuffer::Record& record,
                const RequestTable& table, const KvEventForm& form, Packer& packer) {
  const LiveRequest* request = table.Find(record.request);
  const auto blocks = events.blocks(record);
  const bool lora = request != nullptr && !request->lora.empty();
  EventPacker event(packer, form.positional);
  // Positional: block_hashes, parent_block_hash, token_ids, block_size, lora_id.
  event.Begin("BlockStored", form.positional ? 5 : lora ? 6 : 5);
  event.Field("block_hashes");
  PackHashes(packer, blocks);
  event.Field("parent_block_hash");
  if (record.first_block == 0 || request == nullptr ||
      record.first_block > request->blocks.size()) {
    packer.pack_nil();
  } else {
    packer.pack_uint64(request->blocks[record.first_block - 1]);
  }
  event.Field("token_ids");
  const std::uint64_t tokens = request == nullptr ? 0 : blocks.size() * form.block_size;
  packer.pack_array(static_cast<std::uint32_t>(tokens));
  const std::uint64_t first = std::uint64_t{record.first_block} * form.block_size;
  for (std::uint64_t i = 0; i < tokens; ++i) {
    packer.pack_uint32(request->TokenAt(first + i));
  }
  event.Field("block_size").pack_uint64(form.block_size);
  if (form.positional) {
    packer.pack_nil();
    return;
  }
  event.Field("group_idx").pack_uint32(0);
  if (lora) {
    event.Field("lora_name");
    PackText(packer, request->lora);
  }
}

void PackGroup(Packer& packer, std::string_view prefix, const engine::ForwardPassMetrics::Group& g,
               std::string_view sum, std::string_view variance) {
  PackText(packer, std::string(prefix) + "_requests");
  packer.pack_uint64(g.requests);
  PackText(packer, sum);
  packer.pack_uint64(g.tokens);
  PackText(packer, variance);
  packer.pack_double(g.variance);
}

}  // namespace

std::string EncodeKvEvents(const engine::KvEventBuffer& events, std::uint32_t rank,
                           double unix_time_s, const RequestTable& table, const KvEventForm& form) {
  Bytes bytes;
  Packer packer(bytes);
  packer.pack_array(3);
  packer.pack_double(unix_time_s);
  packer.pack_array(static_cast<std::uint32_t>(events.records().size()));
  for (const auto& record : events.records()) {
    if (record.kind == kv::KvEvent::Kind::kStored) {
      PackStored(events, record, table, form, packer);
      continue;
    }
    EventPacker event(packer, form.positional);
    event.Begin("BlockRemoved", form.positional ? 1 : 2);
    event.Field("block_hashes");
    PackHashes(packer, events.blocks(record));
    if (!form.positional) {
      event.Field("group_idx").pack_uint32(0);
    }
  }
  packer.pack_uint32(rank);
  return bytes.Take();
}

namespace {

std::string_view TextOf(const msgpack::object& object) {
  return object.type == msgpack::type::STR
             ? std::string_view(object.via.str.ptr, object.via.str.size)
             : std::string_view();
}

// Integers only: hashes of bytes belong to another scheme.
std::vector<std::uint64_t> HashesOf(const msgpack::object& object) {
  std::vector<std::uint64_t> out;
  if (object.type == msgpack::type::ARRAY) {
    for (const msgpack::object& item : std::span(object.via.array.ptr, object.via.array.size)) {
      if (item.type == msgpack::type::POSITIVE_INTEGER) {
        out.push_back(item.via.u64);
      }
    }
  }
  return out;
}

// An event as a map, or as an array [tag, hashes, ...].
std::optional<KvUpdate> UpdateOf(const msgpack::object& event) {
  std::string_view type;
  std::vector<std::uint64_t> blocks;
  if (event.type == msgpack::type::ARRAY && event.via.array.size >= 2) {
    type = TextOf(event.via.array.ptr[0]);
    blocks = HashesOf(event.via.array.ptr[1]);
  } else if (event.type == msgpack::type::MAP) {
    for (const auto& [key, value] : std::span(event.via.map.ptr, event.via.map.size)) {
      if (TextOf(key) == "type") {
        type = TextOf(value);
      } else if (TextOf(key) == "block_hashes") {
        blocks = HashesOf(value);
      }
    }
  }
  if (type != "BlockStored" && type != "BlockRemoved") {
    return std::nullopt;
  }
  return KvUpdate{.stored = type == "BlockStored", .blocks = std::move(blocks)};
}

}  // namespace

std::vector<KvUpdate> DecodeKvEvents(std::string_view payload) {
  std::vector<KvUpdate> out;
  try {
    const msgpack::object_handle handle = msgpack::unpack(payload.data(), payload.size());
    const msgpack::object& batch = handle.get();
    if (batch.type != msgpack::type::ARRAY || batch.via.array.size < 2 ||
        batch.via.array.ptr[1].type != msgpack::type::ARRAY) {
      return {};
    }
    const msgpack::object& events = batch.via.array.ptr[1];
    for (const msgpack::object& event : std::span(events.via.array.ptr, events.via.array.size)) {
      if (auto update = UpdateOf(event)) {
        out.push_back(*std::move(update));
      }
    }
  } catch (const std::exception&) {
    return {};
  }
  return out;
}

std::string EncodePassMetrics(const engine::ForwardPassMetrics& m, std::string_view worker_id,
                              std::uint32_t rank, std::uint64_t counter, double wall_time_s) {
  Bytes bytes;
  Packer packer(bytes);
  packer.pack_map(7);
  PackText(packer, "version");
  packer.pack_uint32(1);
  PackText(packer, "worker_id");
  PackText(packer, worker_id);
  PackText(packer, "dp_rank");
  packer.pack_uint32(rank);
  PackText(packer, "counter_id");
  packer.pack_uint64(counter);
  PackText(packer, "wall_time");
  packer.pack_double(wall_time_s);
  PackText(packer, "scheduled_requests");
  packer.pack_map(7);
  PackText(packer, "num_prefill_requests");
  packer.pack_uint64(m.prefill_requests);
  PackText(packer, "sum_prefill_tokens");
  packer.pack_uint64(m.prefill_tokens);
  PackText(packer, "var_prefill_length");
  packer.pack_double(m.prefill_length_variance);
  PackText(packer, "sum_prefill_kv_tokens");
  packer.pack_uint64(m.prefill_kv_tokens);
  PackGroup(packer, "num_decode", m.decode, "sum_decode_kv_tokens", "var_decode_kv_tokens");
  PackText(packer, "queued_requests");
  packer.pack_map(6);
  PackGroup(packer, "num_prefill", m.queued_prefill, "sum_prefill_tokens", "var_prefill_length");
  PackGroup(packer, "num_decode", m.queued_decode, "sum_decode_kv_tokens", "var_decode_kv_tokens");
  return bytes.Take();
}

}  // namespace dynosim::live
