// SPDX-License-Identifier: Apache-2.0
// Discovery over etcd: a small store that speaks the JSON gateway's dialect, a worker process and a
// frontend that know nothing else of each other.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <absl/strings/escaping.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/json.h"
#include "live/http_server.h"
#include "live_server.h"

namespace dynosim::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::string TextOf(const Json& json, std::string_view name) {
  const Json* found = json.is_object() ? json.Find(name) : nullptr;
  return found != nullptr && found->is_string() ? found->string() : "";
}

std::string DecodedOf(const Json& json, std::string_view name) {
  std::string out;
  EXPECT_TRUE(absl::Base64Unescape(TextOf(json, name), &out));
  return out;
}

// Keys with leases. A lease lives for a third of the time that was asked for.
class FakeEtcd {
 public:
  FakeEtcd()
      : server_({.port = 0}, [this](const std::shared_ptr<live::Exchange>& exchange,
                                    live::HttpRequest&& request) { Answer(*exchange, request); }) {
    EXPECT_TRUE(server_.Listen());
    thread_ = std::thread([this] { server_.Run(); });
  }
  FakeEtcd(const FakeEtcd&) = delete;
  FakeEtcd& operator=(const FakeEtcd&) = delete;
  ~FakeEtcd() {
    server_.Stop();
    thread_.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
  // Whether requests are answered.
  void set_up(bool up) { up_ = up; }
  void ForgetAll() {
    OnThread([this] {
      leases_.clear();
      keys_.clear();
    });
  }
  std::vector<std::string> Keys() {
    std::vector<std::string> out;
    OnThread([&] {
      Expire();
      for (const auto& [key, value] : keys_) {
        out.push_back(key);
      }
    });
    return out;
  }
  bool HasKeys(std::size_t count) {
    for (int i = 0; i < 300; ++i) {
      if (Keys().size() == count) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

 private:
  struct Value {
    std::string text, lease;
  };

  void OnThread(const std::function<void()>& f) {
    std::promise<void> done;
    server_.Post([&] {
      f();
      done.set_value();
    });
    done.get_future().wait();
  }

  void Expire() {
    std::erase_if(leases_, [](const auto& lease) { return lease.second < Clock::now(); });
    std::erase_if(keys_, [&](const auto& key) { return !leases_.contains(key.second.lease); });
  }

  void Answer(live::Exchange& exchange, const live::HttpRequest& request) {
    const auto json = ParseJson(request.body, "request");
    if (!up_ || !json || request.method != "POST") {
      exchange.Abort();
      return;
    }
    Expire();
    const std::string lease = TextOf(*json, "ID");
    const auto end = Clock::now() + std::chrono::milliseconds(1700);
    std::string answer = R"({"header":{"revision":"1"}})";
    if (request.path == "/v3/lease/grant") {
      const std::string id = std::to_string(7587870000000000000 + ++last_lease_);
      leases_[id] = end;
      EXPECT_EQ(json->Find("TTL")->number(), 5);
      answer = R"({"header":{"revision":"1"},"ID":")" + id + R"(","TTL":"5"})";
    } else if (request.path == "/v3/lease/keepalive") {
      const bool there = leases_.contains(lease);
      if (there) {
        leases_[lease] = end;
      }
      answer = R"({"result":{"header":{"revision":"1"},"ID":")" + lease + "\"" +
               (there ? R"(,"TTL":"5")" : "") + "}}\n";
    } else if (request.path == "/v3/lease/revoke") {
      leases_.erase(lease);
    } else if (request.path == "/v3/kv/put") {
      keys_[DecodedOf(*json, "key")] = {.text = DecodedOf(*json, "value"),
                                        .lease = TextOf(*json, "lease")};
    } else if (request.path == "/v3/kv/range") {
      answer = Range(DecodedOf(*json, "key"), DecodedOf(*json, "range_end"));
    } else {
      exchange.Respond(404, live::kJson, R"({"error":"Not Found","code":5})");
      return;
    }
    exchange.Respond(200, live::kJson, answer);
  }

  std::string Range(const std::string& from, const std::string& to) const {
    std::string list;
    for (auto it = keys_.lower_bound(from); it != keys_.end() && it->first < to; ++it) {
      list += (list.empty() ? R"({"key":")" : R"(,{"key":")") + absl::Base64Escape(it->first) +
              R"(","version":"1","value":")" + absl::Base64Escape(it->second.text) + "\"}";
    }
    return list.empty() ? R"({"header":{"revision":"1"}})" : R"({"kvs":[)" + list + "]}";
  }

  std::map<std::string, Clock::time_point> leases_;  // end
  std::map<std::string, Value> keys_;
  std::int64_t last_lease_ = 0;
  std::atomic<bool> up_ = true;
  live::HttpServer server_;
  std::thread thread_;
};

bool Serves(const LiveServer& frontend, bool some) {
  for (int i = 0; i < 300; ++i) {
    const bool there =
        Get(frontend.port(), "/v1/models").body.find("\"mock\"") != std::string::npos;
    if (there == some) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

TEST(LiveEtcd, WorkersAreFoundServeAndAreForgottenWhenTheyLeaveOrDie) {
  FakeEtcd etcd;
  const LiveServer frontend({"--etcd-endpoint", etcd.url()}, "frontend");
  ASSERT_NE(frontend.port(), 0) << frontend.output();
  {
    LiveServer mocker({"--etcd-endpoint", etcd.url(), "--prefill-ms", "1", "--decode-ms", "1"},
                      "mocker");
    ASSERT_TRUE(Serves(frontend, true));
    ASSERT_EQ(etcd.Keys().size(), 1U);
    EXPECT_TRUE(etcd.Keys()[0].starts_with("dynosim/workers/"));
    EXPECT_EQ(
        Post(frontend.port(), "/v1/completions", R"({"model":"mock","prompt":"a","max_tokens":2})")
            .status,
        200);
    // Longer than the lease: it is kept alive.
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    EXPECT_EQ(etcd.Keys().size(), 1U);
    mocker.Signal(SIGTERM);
    EXPECT_EQ(mocker.Wait(), 0);
    EXPECT_EQ(etcd.Keys().size(), 0U);
    EXPECT_TRUE(Serves(frontend, false));
  }
  LiveServer victim({"--discovery-backend", "etcd", "--etcd-endpoint", etcd.url()}, "mocker");
  ASSERT_TRUE(Serves(frontend, true));
  victim.Signal(SIGKILL);
  EXPECT_TRUE(Serves(frontend, false));
  EXPECT_TRUE(etcd.HasKeys(0));
}

TEST(LiveEtcd, AStoreThatFailsOrForgetsChangesNothingForLong) {
  FakeEtcd etcd;
  etcd.set_up(false);
  const LiveServer frontend({"--etcd-endpoint", etcd.url(), "--etcd-prefix", "a/"}, "frontend");
  const LiveServer mocker({"--etcd-endpoint", etcd.url(), "--etcd-prefix", "a/"}, "mocker");
  const LiveServer other({"--etcd-endpoint", etcd.url(), "--etcd-prefix", "b/"}, "mocker");
  etcd.set_up(true);
  ASSERT_TRUE(Serves(frontend, true));
  ASSERT_TRUE(etcd.HasKeys(2));
  EXPECT_EQ(Get(frontend.port(), "/health").body.find(std::to_string(other.port()) + "-"),
            std::string::npos);
  etcd.set_up(false);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_TRUE(Serves(frontend, true));
  etcd.ForgetAll();
  etcd.set_up(true);
  EXPECT_TRUE(etcd.HasKeys(2));
  EXPECT_TRUE(Serves(frontend, true));
}

TEST(LiveEtcd, FlagsThatDoNotFitAreRefusedByName) {
  const auto refused = [](std::vector<std::string> flags, std::string_view why) {
    LiveServer server(std::move(flags), "mocker");
    EXPECT_EQ(server.Wait(), 2) << why;
    EXPECT_NE(server.output().find(why), std::string::npos) << server.output();
  };
  refused({"--discovery-backend", "etcd"}, "--etcd-endpoint");
  refused({"--discovery-backend", "directory"}, "--discovery-dir");
  refused({"--discovery-backend", "nats"}, "--discovery-backend");
  refused({"--etcd-prefix", "x"}, "--etcd-prefix");
  refused({"--etcd-endpoint", "nonsense"}, "--etcd-endpoint");
  refused({"--etcd-endpoint", "http://127.0.0.1:1", "--discovery-dir", "x"}, "--etcd-endpoint");
}

}  // namespace
}  // namespace dynosim::testing
