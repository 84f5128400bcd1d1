// SPDX-License-Identifier: Apache-2.0
// Metrics pages as a scraper reads them: every line of the text format, of every kind of process.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "live_server.h"

namespace dynosim::testing {
namespace {

constexpr std::string_view kChat = "/v1/chat/completions";
constexpr std::string_view kFirst =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";  // of a name
constexpr std::string_view kDigits = "0123456789";

struct Histogram {
  std::vector<std::pair<double, double>> buckets;  // bound, count
  double count = -1.0;
  double sum = NAN;
};

// A page that has been read whole; problems are test failures.
class Page {
 public:
  explicit Page(std::string_view text) {
    EXPECT_TRUE(text.ends_with('\n'));
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size() - 1);
      Line(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
    for (const auto& [series, histogram] : histograms_) {
      Check(series, histogram);
    }
  }

  std::size_t series() const { return seen_.size(); }
  const std::map<std::string, std::string>& types() const { return types_; }
  std::size_t LabelValues(const std::string& label) const {
    const auto found = labels_.find(label);
    return found == labels_.end() ? 0 : found->second.size();
  }

 private:
  static bool IsName(std::string_view name, bool colons) {
    return !name.empty() && kFirst.find(name[0]) != std::string_view::npos &&
           std::ranges::all_of(name, [&](char c) {
             return (kFirst.find(c) != std::string_view::npos && (colons || c != ':')) ||
                    kDigits.find(c) != std::string_view::npos;
           });
  }

  static double Number(std::string_view text) {
    double value = NAN;
    const bool infinite = text == "+Inf";
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    EXPECT_TRUE(infinite || (error == std::errc() && end == text.data() + text.size())) << text;
    return infinite ? INFINITY : value;
  }

  void Line(std::string_view line) {
    SCOPED_TRACE(line);
    if (line.starts_with("# ")) {
      Header(line.substr(2));
      return;
    }
    const std::size_t brace = line.find('{');
    const std::size_t space = line.rfind(' ');
    ASSERT_NE(space, std::string_view::npos);
    const std::string name(line.substr(0, std::min(brace, line.find(' '))));
    ASSERT_TRUE(IsName(name, true));
    EXPECT_TRUE(seen_.insert(std::string(line.substr(0, space))).second) << "twice";
    std::string labels;
    double bound = NAN;
    if (brace != std::string_view::npos) {
      ASSERT_EQ(line[space - 1], '}');
      Labels(line.substr(brace + 1, space - brace - 2), labels, bound);
    }
    const double value = Number(line.substr(space + 1));
    EXPECT_FALSE(std::isnan(value));
    Sample(name, labels, bound, value);
  }

  void Header(std::string_view text) {
    const bool help = text.starts_with("HELP ");
    ASSERT_TRUE(help || text.starts_with("TYPE "));
    text.remove_prefix(5);
    const std::string name(text.substr(0, text.find(' ')));
    ASSERT_TRUE(IsName(name, true));
    ASSERT_LT(name.size() + 1, text.size()) << "no text";
    if (help) {
      EXPECT_TRUE(helps_.insert(name).second) << "HELP twice";
      return;
    }
    const std::string type(text.substr(name.size() + 1));
    EXPECT_TRUE(type == "gauge" || type == "counter" || type == "histogram") << type;
    EXPECT_TRUE(types_.emplace(name, type).second) << "TYPE twice";
    EXPECT_TRUE(helps_.contains(name)) << "no HELP before it";
    EXPECT_EQ(type == "counter" && !name.ends_with("_total") && !name.ends_with("_applied"), false);
    current_ = name;
  }

  void Labels(std::string_view text, std::string& others, double& bound) {
    std::set<std::string> names;
    while (!text.empty()) {
      const std::size_t equal = text.find("=\"");
      ASSERT_NE(equal, std::string_view::npos);
      const std::string name(text.substr(0, equal));
      EXPECT_TRUE(IsName(name, false)) << name;
      EXPECT_TRUE(names.insert(name).second) << name << " twice";
      std::size_t end = equal + 2;
      while (end < text.size() && text[end] != '"') {
        end += text[end] == '\\' ? 2 : 1;
      }
      ASSERT_LT(end, text.size());
      const std::string value(text.substr(equal + 2, end - equal - 2));
      labels_[name].insert(value);
      if (name == "le") {
        bound = Number(value);
      } else {
        others += name + "=" + value + ",";
      }
      text.remove_prefix(end + 1);
      if (!text.empty()) {
        ASSERT_EQ(text[0], ',');
        text.remove_prefix(1);
      }
    }
  }

  void Sample(const std::string& name, const std::string& labels, double bound, double value) {
    ASSERT_TRUE(name.starts_with(current_)) << "samples of a family stand together";
    const std::string part = name.substr(current_.size());
    if (types_[current_] != "histogram") {
      EXPECT_EQ(part, "");
      EXPECT_TRUE(types_[current_] != "counter" || value >= 0.0);
      return;
    }
    Histogram& histogram = histograms_[current_ + "{" + labels];
    if (part == "_bucket") {
      EXPECT_FALSE(std::isnan(bound));
      histogram.buckets.emplace_back(bound, value);
    } else if (part == "_count") {
      histogram.count = value;
    } else {
      EXPECT_EQ(part, "_sum");
      histogram.sum = value;
    }
  }

  static void Check(const std::string& series, const Histogram& histogram) {
    SCOPED_TRACE(series);
    ASSERT_FALSE(histogram.buckets.empty());
    for (std::size_t i = 1; i < histogram.buckets.size(); ++i) {
      EXPECT_LT(histogram.buckets[i - 1].first, histogram.buckets[i].first);
      EXPECT_LE(histogram.buckets[i - 1].second, histogram.buckets[i].second);
    }
    EXPECT_EQ(histogram.buckets.back().first, INFINITY);
    EXPECT_EQ(histogram.buckets.back().second, histogram.count);
    EXPECT_GE(histogram.sum, 0.0);
  }

  std::string current_;
  std::set<std::string> seen_, helps_;
  std::map<std::string, std::string> types_;
  std::map<std::string, std::set<std::string>> labels_;  // values by name
  std::map<std::string, Histogram> histograms_;
};

void Ask(std::uint16_t port, const std::string& more) {
  EXPECT_EQ(Post(port, kChat,
                 R"({"model":"mock","messages":[{"role":"user","content":"a"}],"max_tokens":3)" +
                     more + "}")
                .status,
            200);
}

class LiveMetrics : public ::testing::TestWithParam<std::string> {};

TEST_P(LiveMetrics, AreValidTextOfWholeFamiliesWithBoundedLabels) {
  const LiveServer server({"--engine-type", GetParam(), "--num-workers", "2",
                           "--data-parallel-size", "2", "--prefill-ms", "1", "--decode-ms", "0.2",
                           "--router-mode", "kv"});
  const Page before(Get(server.port(), "/metrics").body);
  for (int i = 0; i < 8; ++i) {
    Ask(server.port(), i % 2 == 0 ? R"(,"stream":true)" : "");
  }
  const Page first(Get(server.port(), "/metrics").body);
  HttpConnection connection(server.port());
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "un\\\"known\\n" + std::to_string(i);
    ASSERT_TRUE(connection.Send(HttpText(
        "POST", kChat, R"({"messages":[{"role":"user","content":"x"}],"model":")" + name + "\"}")));
    ASSERT_EQ(connection.Read().status, 404);
  }
  const Page after(Get(server.port(), "/metrics").body);
  EXPECT_LE(after.series(), first.series() + 4);
  EXPECT_LE(after.LabelValues("model"), 2U);
  EXPECT_LE(after.LabelValues("model_name"), 1U);
  EXPECT_EQ(after.LabelValues("worker_id"), 2U);
  const std::string prefix = GetParam() + ":";
  for (const std::string name : {"time_to_first_token_seconds", "inter_token_latency_seconds",
                                 "e2e_request_latency_seconds"}) {
    EXPECT_EQ(after.types().at(prefix + name), "histogram");
    EXPECT_EQ(before.types().count(prefix + name), 0U);  // the model has no name before a request
  }
  EXPECT_EQ(after.types().at("dynamo_frontend_requests_total"), "counter");
}

INSTANTIATE_TEST_SUITE_P(Engines, LiveMetrics, ::testing::Values("vllm", "sglang", "trtllm"),
                         [](const auto& engine) { return engine.param; });

TEST(LiveMetricsOfProcesses, WorkersAndFrontendsHaveAPageEach) {
  const LiveServer mocker({"--prefill-ms", "1", "--decode-ms", "0.2"}, "mocker");
  const LiveServer frontend({"--worker", "http://127.0.0.1:" + std::to_string(mocker.port())},
                            "frontend");
  for (int i = 0;
       i < 400 && Get(frontend.port(), "/v1/models").body.find("\"mock\"") == std::string::npos;
       ++i) {
  }
  Ask(frontend.port(), R"(,"stream":true)");
  const Page worker(Get(mocker.port(), "/metrics").body);
  EXPECT_EQ(worker.types().at("vllm:num_requests_running"), "gauge");
  const Page page(Get(frontend.port(), "/metrics").body);
  EXPECT_EQ(page.types().at("dynamo_frontend_output_tokens_total"), "counter");
}

// A name that a metric page has to escape.
TEST(LiveMetricsOfProcesses, NamesOfModelsAreEscaped) {
  const LiveServer server({"--model-name", "a\"b\\c", "--prefill-ms", "1", "--decode-ms", "1"});
  const std::string model = R"(a\"b\\c)";
  EXPECT_EQ(Post(server.port(), "/v1/completions",
                 R"({"model":")" + model + R"(","prompt":"a","max_tokens":1})")
                .status,
            200);
  const std::string text = Get(server.port(), "/metrics").body;
  const Page page(text);
  EXPECT_NE(text.find("model_name=\"" + model + "\""), std::string::npos);
}

}  // namespace
}  // namespace dynosim::testing
