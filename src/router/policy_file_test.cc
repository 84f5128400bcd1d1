// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/result.h"
#include "router/policy_profile.h"

namespace dynosim::router {
namespace {

constexpr std::string_view kGeneral = R"(default_policy_family: regular
uncached_isl_buckets:
  - {min_tokens: 0, bucket: small}
  - {min_tokens: 512, bucket: large}
policy_classes:
  - {name: r-small, policy_family: regular, cache_bucket: small, quantum: 128, queue_policy: wspt}
  - {name: r-large, policy_family: regular, cache_bucket: large, quantum: 64}
  - {name: p-small, policy_family: premium, cache_bucket: small, quantum: 1}
  - {name: p-large, policy_family: premium, cache_bucket: large, quantum: 1}
  - {name: direct, quantum: 5, prefill_busy_threshold: 300}
)";

Result<std::optional<PolicyProfile>> Load(std::string_view text, std::string_view model = "") {
  const std::string path = testing::TempDir() + "/policy_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  std::ofstream(path) << text;
  auto loaded = LoadPolicyFile(path, model);
  std::filesystem::remove(path);
  return loaded;
}

std::string ErrorOf(std::string_view text) {
  const auto loaded = Load(text);
  return loaded ? "" : loaded.error().Text();
}

std::string With(std::string_view from, std::string_view to) {
  std::string text(kGeneral);
  return text.replace(text.find(from), from.size(), to);
}

TEST(PolicyFile, ClassesFollowFamilyAndUncachedTokensExplicitOnesTheirName) {
  const auto loaded = Load(kGeneral);
  ASSERT_TRUE(loaded && *loaded) << loaded.error().Text();
  const PolicyProfile& p = **loaded;
  const auto name = [&](std::string_view policy_class, std::uint64_t uncached) {
    return p.classes[p.ClassOf(policy_class, uncached)].name;
  };
  EXPECT_EQ(name("", 511), "r-small");
  EXPECT_EQ(name("", 512), "r-large");
  EXPECT_EQ(name("premium", 0), "p-small");
  EXPECT_EQ(name("direct", 9999), "direct");
  EXPECT_EQ(name("p-large", 0), "r-small") << "a class of the matrix cannot be named";
  EXPECT_EQ(name("unknown", 9999), "r-large");
  EXPECT_EQ(p.classes[4].busy_tokens, std::optional<std::uint64_t>(300));
  EXPECT_FALSE(p.classes[0].CanQueue());
  EXPECT_TRUE(p.classes[4].CanQueue());
}

TEST(PolicyFile, AModelsOwnProfileReplacesTheGeneralOne) {
  const std::string text = std::string(kGeneral) + R"(models:
  big:
    default_policy_family: only
    uncached_isl_buckets: [{min_tokens: 0, bucket: all}]
    policy_classes: [{name: one, policy_family: only, cache_bucket: all, quantum: 7}]
)";
  const auto big = Load(text, "big");
  ASSERT_TRUE(big && *big);
  EXPECT_EQ((*big)->classes.size(), 1U);
  const auto other = Load(text, "other");
  ASSERT_TRUE(other && *other);
  EXPECT_EQ((*other)->classes.size(), 5U);
}

TEST(PolicyFile, ErrorsNameTheFieldAndWhatIsAllowed) {
  const std::pair<std::string, std::string_view> cases[] = {
      {With("queue_policy: wspt", "queue_policy: lcfs"), "queue_policy"},
      {With("quantum: 128", "quantum: 0"), "quantum"},
      {With("quantum: 128, ", ""), "quantum"},
      {With("quantum: 128", "quantum: 128, quanta: 1"), "quanta"},
      {With("name: r-large", "name: r-small"), "'r-small' is there twice"},
      {With("name: r-large", "name: premium x"), "name"},
      {With("cache_bucket: large, quantum: 64", "cache_bucket: small, quantum: 64"),
       "two classes for cache_bucket 'small'"},
      {With("cache_bucket: large, quantum: 64", "quantum: 64"), "cache_bucket"},
      {With("cache_bucket: large", "cache_bucket: huge"), "'huge'"},
      {With("  - {name: p-large, policy_family: premium, cache_bucket: large, quantum: 1}\n", ""),
       "'premium' has no class for cache_bucket 'large'"},
      {With("name: direct", "name: premium"), "'premium'"},
      {With("default_policy_family: regular", "default_policy_family: direct"), "\"direct\""},
      {With("default_policy_family: regular\n", ""), "given together"},
      {With("min_tokens: 0", "min_tokens: 1"), "min_tokens"},
      {With("min_tokens: 512", "min_tokens: 0"), "min_tokens"},
      {"worker_selection: {aggregated: mine}", "\"mine\" is not supported by replay"},
      {"request_classifier: {type: x}", "request_classifier"},
      {"nonsense: 1", "nonsense"},
      {"{}", "must define router settings"},
      {"a: [1", "failed to parse router policy config"},
  };
  for (const auto& [text, part] : cases) {
    const std::string error = ErrorOf(text);
    EXPECT_NE(error.find(part), std::string::npos) << error << "\nwants: " << part;
  }
}

TEST(PolicyFile, AFileThatIsNotThereIsAnErrorWithItsName) {
  const auto loaded = LoadPolicyFile("no/such/file.yaml", "");
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().Text().find("failed to read router policy config no/such/file.yaml"),
            std::string::npos);
}

}  // namespace
}  // namespace dynosim::router
