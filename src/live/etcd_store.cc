// SPDX-License-Identifier: Apache-2.0
#include "live/etcd_store.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "live/discovery.h"
#include "live/http_client.h"

namespace dynosim::live {

namespace {

constexpr std::chrono::milliseconds kRenewEvery{1000};

std::string NameOf(const EtcdOptions& options) {
  return fmt::format("etcd at {}:{}", options.endpoint.host, options.endpoint.port);
}

// A member of an answer, which may stand in "result"; null when it is absent.
const Json* AnswerMember(const Json& answer, std::string_view name) {
  const Json* at = &answer;
  if (const Json* result = at->is_object() ? at->Find("result") : nullptr) {
    at = result;
  }
  return at->is_object() ? at->Find(name) : nullptr;
}

// Whole numbers travel as text.
std::string Number(const Json& answer, std::string_view name) {
  const Json* found = AnswerMember(answer, name);
  return found != nullptr && found->is_string() ? found->string() : "";
}

Result<Json> AnswerOf(const EtcdOptions& options, int status, const std::string& body) {
  if (status == 0) {
    return FailedError(NameOf(options), "does not answer");
  }
  if (status != 200) {
    return FailedError(NameOf(options), fmt::format("answers {}: {}", status, body));
  }
  return ParseJson(body, NameOf(options));
}

Result<Json> Call(const EtcdOptions& options, std::string_view method, const Json& request) {
  const HttpReply reply = AskHttpNow(
      options.endpoint, {.path = "/v3/" + std::string(method), .body = DumpJson(request)});
  return AnswerOf(options, reply.status, reply.body);
}

void Warn(const Error& error) {
  std::fprintf(stderr, "dynosim: warning: %s\n", error.Text().c_str());
}

}  // namespace

EtcdRegistration::EtcdRegistration(EtcdOptions options, const DirectoryEntry& entry)
    : options_(std::move(options)),
      key_(options_.prefix + entry.id),
      value_(EntryText(entry)),
      thread_([this] { Run(); }) {}

EtcdRegistration::~EtcdRegistration() {
  Withdraw();
  thread_.join();
}

void EtcdRegistration::Withdraw() {
  {
    const std::lock_guard lock(mutex_);
    withdrawn_ = true;
  }
  wake_.notify_all();
}

// Keeps the lease alive; without one, takes a new one for the key.
Result<void> EtcdRegistration::Renew() {
  Json request;
  if (!lease_.empty()) {
    request.Add("ID", lease_);
    DYNO_TRY(const Json kept, Call(options_, "lease/keepalive", request));
    if (std::strtoll(Number(kept, "TTL").c_str(), nullptr, 10) > 0) {
      return {};
    }
    lease_.clear();
    request = Json();
  }
  request.Add("TTL", static_cast<std::int64_t>(kEntryLivesMs / 1000.0));
  DYNO_TRY(const Json granted, Call(options_, "lease/grant", request));
  std::string lease = Number(granted, "ID");
  if (lease.empty()) {
    return FailedError(NameOf(options_), "gives no lease");
  }
  Json put;
  put.Add("key", absl::Base64Escape(key_));
  put.Add("value", absl::Base64Escape(value_));
  put.Add("lease", lease);
  DYNO_TRY_VOID(Call(options_, "kv/put", put));
  lease_ = std::move(lease);
  return {};
}

void EtcdRegistration::Run() {
  bool warned = false;
  std::unique_lock lock(mutex_);
  while (!withdrawn_) {
    lock.unlock();
    if (const auto renewed = Renew(); renewed) {
      warned = false;
    } else if (!std::exchange(warned, true)) {
      Warn(renewed.error());
    }
    lock.lock();
    wake_.wait_for(lock, kRenewEvery, [&] { return withdrawn_; });
  }
  lock.unlock();
  if (!lease_.empty()) {
    Json request;
    request.Add("ID", lease_);
    if (const auto revoked = Call(options_, "lease/revoke", request); !revoked) {
      Warn(revoked.error());
    }
  }
}

void ListEtcd(boost::asio::io_context& context, const EtcdOptions& options,
              std::function<void(Result<std::vector<DirectoryEntry>>)> done) {
  std::string end = options.prefix;  // the first key after those with the prefix
  ++end.back();
  Json request;
  request.Add("key", absl::Base64Escape(options.prefix));
  request.Add("range_end", absl::Base64Escape(end));
  AskHttp(context, options.endpoint, {.path = "/v3/kv/range", .body = DumpJson(request)},
          [options, done = std::move(done)](int status, const std::string& body) {
            done([&]() -> Result<std::vector<DirectoryEntry>> {
              DYNO_TRY(const Json answer, AnswerOf(options, status, body));
              std::vector<DirectoryEntry> out;
              const Json* pairs = AnswerMember(answer, "kvs");
              if (pairs == nullptr || !pairs->is_array()) {
                return out;
              }
              for (const Json& pair : pairs->array()) {
                std::string value;
                if (!absl::Base64Unescape(Number(pair, "value"), &value)) {
                  continue;
                }
                if (auto entry = ParseEntry(value, NameOf(options))) {
                  out.push_back(*std::move(entry));
                }
              }
              std::ranges::sort(out, {}, &DirectoryEntry::id);
              return out;
            }());
          });
}

}  // namespace dynosim::live
