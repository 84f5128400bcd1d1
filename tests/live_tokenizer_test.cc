// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a tokenizer.json: its ids, damaged files, and the server over it. A build
// without the option skips all but the refusal.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/json.h"
#include "base/result.h"
#include "live/chat_template.h"
#include "live/text_stream.h"
#include "live/tokenizer.h"
#include "live/tokenizer_file.h"
#include "live_server.h"

namespace dynosim::testing {
namespace {

using live::Tokenizer;
using Ids = std::vector<std::uint32_t>;

// How byte-level vocabularies write a byte, in UTF-8.
std::string ByteName(int byte) {
  int code = byte;
  if (byte <= 0x20 || (byte >= 0x7F && byte <= 0xA0) || byte == 0xAD) {
    // Those are numbered in order from U+0100 on.
    code = 0x100 + (byte <= 0x20 ? byte : byte <= 0xA0 ? byte - 0x7F + 33 : 67);
  }
  if (code < 0x80) {
    return {static_cast<char>(code)};
  }
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// Byte-level BPE: ids 0 to 255 are the bytes, then one token per merge, then the added ones.
std::string TinyTokenizer(const std::vector<std::array<std::string, 2>>& merges,
                          const std::vector<std::string>& special, bool begins_with_first = false) {
  Json vocab;
  for (int byte = 0; byte < 256; ++byte) {
    vocab.Add(ByteName(byte), byte);
  }
  Json merge_list(Json::Array{});
  std::uint32_t id = 256;
  for (const auto& [left, right] : merges) {
    vocab.Add(left + right, id++);
    merge_list.array().emplace_back(left + " " + right);
  }
  const std::uint32_t first_special = id;
  Json added(Json::Array{});
  const auto add = [&](const std::string& content, bool is_special) {
    Json token;
    token.Add("id", id++);
    token.Add("content", content);
    for (const char* name : {"single_word", "lstrip", "rstrip", "normalized"}) {
      token.Add(name, false);
    }
    token.Add("special", is_special);
    added.array().push_back(std::move(token));
  };
  for (const std::string& content : special) {
    add(content, true);
  }
  add("<think>", false);
  const std::string byte_level =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  std::string post = "null";
  if (begins_with_first) {
    const std::string mark = DumpJson(Json(special.front()));
    const std::string begin = R"({"SpecialToken":{"id":)" + mark + R"(,"type_id":0}},)";
    post = R"({"type":"TemplateProcessing","single":[)" + begin +
           R"({"Sequence":{"id":"A","type_id":0}}],"pair":[)" + begin +
           R"({"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],)"
           R"("special_tokens":{)" +
           mark + R"(:{"id":)" + mark + R"(,"ids":[)" + std::to_string(first_special) +
           R"(],"tokens":[)" + mark + "]}}}";
  }
  return R"({"version":"1.0","truncation":{"direction":"Right","max_length":4,)"
         R"("strategy":"LongestFirst","stride":0},"padding":null,"added_tokens":)" +
         DumpJson(added) + R"(,"normalizer":null,"pre_tokenizer":)" + byte_level +
         R"(,"post_processor":)" + post + R"(,"decoder":)" + byte_level +
         R"(,"model":{"type":"BPE","dropout":null,"unk_token":null,)"
         R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)"
         R"("byte_fallback":false,"ignore_merges":false,"vocab":)" +
         DumpJson(vocab) + R"(,"merges":)" + DumpJson(merge_list) + "}}";
}

const std::string kSpace = ByteName(' ');
// th 256, the 257, " the" 258, " c" 259, " ca" 260, " cat" 261.
const std::vector<std::array<std::string, 2>> kMerges = {{"t", "h"},          {"th", "e"},
                                                         {kSpace, "the"},     {kSpace, "c"},
                                                         {kSpace + "c", "a"}, {kSpace + "ca", "t"}};

// 262 and 263, and "<think>" 264 which is not special.
std::string ChatMlTokenizer() { return TinyTokenizer(kMerges, {"<|im_start|>", "<|im_end|>"}); }

class TokenizerFile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!live::ReadsTokenizerFiles()) {
      GTEST_SKIP() << "this build has no DYNO_HF_TOKENIZER";
    }
    folder_ = ::testing::TempDir() + "live_tokenizer_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) {
      std::filesystem::remove_all(folder_);
    }
  }
  std::string File(std::string_view text) const {
    const std::string path = folder_ + "/tokenizer.json";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  Result<std::shared_ptr<const Tokenizer>> Open(std::string_view text) const {
    return live::OpenTokenizerFile("--tokenizer", File(text));
  }
  std::shared_ptr<const Tokenizer> Opened(std::string_view text) const {
    auto tokenizer = Open(text);
    EXPECT_TRUE(tokenizer) << tokenizer.error().Text();
    return tokenizer ? *tokenizer : nullptr;
  }

  std::string folder_;
};

Ids Encoded(const Tokenizer& tokenizer, std::string_view text, bool add_special = true) {
  Ids ids;
  const auto encoded = tokenizer.Encode(text, add_special, ids);
  EXPECT_TRUE(encoded) << text;
  return ids;
}

TEST_F(TokenizerFile, MergesPairsInTheirOrderAndKeepsAddedTokensWhole) {
  const auto tokenizer = Opened(ChatMlTokenizer());
  EXPECT_EQ(tokenizer->id_end(), 265U);
  EXPECT_EQ(Encoded(*tokenizer, "the cat"), (Ids{257, 261}));
  EXPECT_EQ(Encoded(*tokenizer, "the  cat"), (Ids{257, 32, 261}));
  EXPECT_EQ(Encoded(*tokenizer, " th\u00e9"), (Ids{32, 256, 0xC3, 0xA9}));
  EXPECT_EQ(Encoded(*tokenizer, "\u96ea"), (Ids{0xE9, 0x9B, 0xAA}));
  EXPECT_EQ(Encoded(*tokenizer, "a<|im_end|>b<think>"), (Ids{'a', 263, 'b', 264}));
  EXPECT_EQ(Encoded(*tokenizer, ""), Ids{});
  // The file says to cut after four tokens, which a server does not do.
  EXPECT_EQ(Encoded(*tokenizer, "the the the the the the"), (Ids{257, 258, 258, 258, 258, 258}));
  EXPECT_EQ(*tokenizer->Decode(Ids{262, 257, 261, 0xE9, 0x9B, 0xAA, 264}),
            "<|im_start|>the cat\u96ea<think>");
}

TEST_F(TokenizerFile, CharactersSplitOverTokensComeOutWhole) {
  const auto tokenizer = Opened(ChatMlTokenizer());
  live::Utf8Stream utf8;
  std::vector<std::string> pieces;
  for (const std::uint32_t id : Encoded(*tokenizer, "the\u96ea\U0001f642 cat")) {
    utf8.Push(tokenizer->Bytes(id), pieces.emplace_back());
  }
  EXPECT_EQ(pieces,
            (std::vector<std::string>{"the", "", "", "\u96ea", "", "", "", "\U0001f642", " cat"}));
  EXPECT_EQ(tokenizer->Bytes(263), "");  // special
  EXPECT_EQ(tokenizer->Bytes(264), "<think>");
  EXPECT_EQ(tokenizer->Bytes(265), "");
}

TEST_F(TokenizerFile, TheMarkOfTheBeginningIsAddedOnRequest) {
  const auto tokenizer = Opened(TinyTokenizer(kMerges, {"<s>"}, true));
  EXPECT_EQ(Encoded(*tokenizer, "the cat", true), (Ids{262, 257, 261}));
  EXPECT_EQ(Encoded(*tokenizer, "the cat", false), (Ids{257, 261}));
}

TEST_F(TokenizerFile, AConversationTakesTheFormOfTheMarkersThatTheVocabularyHas) {
  const std::vector<live::ChatTurn> turns = {{.role = "user", .parts = {" the", " cat\n"}}};
  const auto chat = [&](const std::string& file) {
    Ids ids;
    EXPECT_TRUE(Opened(file)->EncodeChat(turns, true, ids));
    return ids;
  };
  EXPECT_EQ(chat(ChatMlTokenizer()),
            (Ids{262, 'u', 's', 'e', 'r', '\n', 258, 261, '\n', 263, '\n',
                 262, 'a', 's', 's', 'i', 's',  't', 'a', 'n',  't', '\n'}));
  // 262 <|begin_of_text|>, 263 and 264 around the role, 265 at the end; the text is trimmed.
  EXPECT_EQ(chat(TinyTokenizer(kMerges, {"<|begin_of_text|>", "<|start_header_id|>",
                                         "<|end_header_id|>", "<|eot_id|>"})),
            (Ids{262, 263, 'u', 's', 'e', 'r', 264, '\n', '\n', 257, 261,  265, 263,
                 'a', 's', 's', 'i', 's', 't', 'a', 'n',  't',  264, '\n', '\n'}));
  // No markers: lines, with what the file puts in front of a text.
  EXPECT_EQ(chat(TinyTokenizer(kMerges, {"<s>"}, true)),
            (Ids{262, 'u', 's', 'e', 'r', ':', ' ', 258, 261, '\n', '\n',
                 'a', 's', 's', 'i', 's', 't', 'a', 'n', 't', ':'}));
}

TEST_F(TokenizerFile, WordsAreGeneratedAndWithoutWordsWhateverCanBeSeen) {
  const auto few = Opened(ChatMlTokenizer());
  Ids seen;
  for (std::uint32_t id = 0x21; id < 0x7F; ++id) {
    seen.push_back(id);
  }
  seen.insert(seen.end(), {256, 257, 258, 259, 260, 261, 264});
  EXPECT_EQ(few->output_ids(), seen);

  std::vector<std::array<std::string, 2>> words;
  Ids expected;
  for (char c = 'a'; c <= 'z'; ++c) {
    words.push_back({kSpace, std::string(1, c)});
    expected.push_back(256 + static_cast<std::uint32_t>(c - 'a'));
  }
  const auto many = Opened(TinyTokenizer(words, {"<s>"}));
  EXPECT_EQ(many->output_ids(), expected);
  for (const std::uint32_t id : many->output_ids()) {
    EXPECT_FALSE(many->IsSpecial(id));
    EXPECT_EQ(Encoded(*many, "x" + std::string(many->Bytes(id))), (Ids{'x', id}));
  }
}

TEST_F(TokenizerFile, DamagedFilesAreOneClearLine) {
  const std::string whole = ChatMlTokenizer();
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  std::vector<std::string> bad = {
      "",
      "null",
      "{}",
      "[]",
      "\xff\xfe{",
      std::string(200000, '['),
      R"({"model":{"type":"BPE","vocab":{},"merges":[]}})",
      with(R"("th":256)", R"("th":4294967295)"),
      with(R"("th":256)", R"("th":1e300)"),
      with(R"("th":256)", R"("th":-1)"),
      with(R"("th":256)", R"("th":"256")"),
      with(R"("t h")", R"("t h e")"),
      with(R"("t h")", R"("q \u96ea")"),
      with(R"("type":"BPE")", R"("type":7)"),
      with(R"("added_tokens":[)", R"("added_tokens":[7,)"),
      with(R"("decoder":{"type":"ByteLevel")", R"("decoder":{"type":{})"),
      with(R"("decoder":{)", R"("decoder":{"type":"Strip","x":{)"),
      with(R"("normalizer":null)", R"("normalizer":{"type":"Replace","pattern":{"Regex":"(("},)"
                                   R"("content":""})"),
      with(R"("max_length":4)", R"("max_length":1e99)")};
  for (std::size_t size = 1; size < whole.size(); size += 97) {
    bad.push_back(whole.substr(0, size));
  }
  for (const std::string& text : bad) {
    const auto opened = Open(text);
    ASSERT_FALSE(opened) << text.substr(0, 100);
    EXPECT_EQ(opened.error().kind, ErrorKind::kUsage);
    const std::string line = opened.error().Text();
    EXPECT_TRUE(line.starts_with("--tokenizer: " + folder_)) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    EXPECT_LT(line.size(), 700U) << line;
  }
}

TEST_F(TokenizerFile, NoDamageToAByteIsMoreThanAnError) {
  const std::string whole = ChatMlTokenizer();
  std::uint64_t state = 1;
  int opened = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = whole;
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    // Mostly characters that leave it JSON.
    const auto byte = static_cast<char>(i % 4 == 0 ? state >> 20U : '0' + (state >> 20U) % 75);
    text[(state >> 33U) % text.size()] = byte;
    if (const auto tokenizer = Open(text)) {
      ++opened;
      Ids ids;
      // Whether it can is the file's business.
      static_cast<void>((*tokenizer)->Encode("the cat \u96ea<think>", true, ids));
      static_cast<void>((*tokenizer)->Decode(ids));
    }
  }
  EXPECT_GT(opened, 0);
}

TEST_F(TokenizerFile, ATextThatTheVocabularyCannotTakeIsAnErrorOfTheRequest) {
  const std::string path = File(R"({"version":"1.0","truncation":null,"padding":null,)"
                                R"("added_tokens":[],"normalizer":null,"pre_tokenizer":null,)"
                                R"("post_processor":null,"decoder":null,"model":)"
                                R"({"type":"WordLevel","vocab":{"the":0},"unk_token":"?"}})");
  const LiveServer server({"--tokenizer", path});
  ASSERT_NE(server.port(), 0) << server.output();
  EXPECT_EQ(Post(server.port(), "/tokenize", R"({"prompt":"the"})").status, 200);
  for (const char* route : {"/tokenize", "/v1/completions"}) {
    const HttpAnswer answer = Post(server.port(), route, R"({"prompt":"cat"})");
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_NE(answer.body.find("the tokenizer failed: WordLevel error"), std::string::npos)
        << answer.body;
  }
  EXPECT_EQ(Get(server.port(), "/live").status, 200);
}

Json Parsed(const std::string& text) {
  auto json = ParseJson(text, "answer");
  EXPECT_TRUE(json) << text;
  return json ? *json : Json();
}

Ids IdsOf(const Json* list) {
  Ids out;
  if (list == nullptr || !list->is_array()) {
    ADD_FAILURE() << "no list of ids";
    return out;
  }
  for (const Json& item : list->array()) {
    out.push_back(static_cast<std::uint32_t>(item.number()));
  }
  return out;
}

std::string Shown(const Ids& ids) {
  std::string out;
  for (const std::uint32_t id : ids) {
    out += (out.empty() ? "" : ",") + std::to_string(id);
  }
  return "[" + out + "]";
}

TEST_F(TokenizerFile, TheServerCountsAndAnswersInTheVocabulary) {
  File(TinyTokenizer(kMerges, {"<s>"}, true));
  const LiveServer server({"--tokenizer", folder_, "--prefill-ms", "1", "--decode-ms", "0.2"});
  ASSERT_NE(server.port(), 0) << server.output();
  const auto tokens = [&](const std::string& body) {
    return IdsOf(Parsed(Post(server.port(), "/tokenize", body).body).Find("tokens"));
  };
  EXPECT_EQ(tokens(R"({"prompt":"the cat"})"), (Ids{262, 257, 261}));
  EXPECT_EQ(tokens(R"({"prompt":"the cat","add_special_tokens":false})"), (Ids{257, 261}));
  EXPECT_EQ(tokens(R"({"messages":[{"role":"user","content":"a"}]})"),
            (Ids{262, 'u', 's', 'e', 'r', ':', ' ', 'a', '\n', 'a', 's', 's', 'i', 's', 't', 'a',
                 'n', 't', ':'}));
  EXPECT_EQ(Post(server.port(), "/detokenize", R"({"tokens":[262,257,261]})").body,
            R"({"prompt":"<s>the cat"})");
  for (const char* path : {"/detokenize", "/v1/completions"}) {
    const HttpAnswer refused =
        Post(server.port(), path, R"({"tokens":[264],"prompt":[5,264],"max_tokens":1})");
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_NE(refused.body.find("token ids must be below 264"), std::string::npos) << refused.body;
  }
  const Json answer =
      Parsed(Post(server.port(), "/v1/completions",
                  R"({"prompt":"the cat","max_tokens":200,"return_token_ids":true})")
                 .body);
  const Json& choice = answer.Find("choices")->array().front();
  const Ids ids = IdsOf(choice.Find("token_ids"));
  ASSERT_EQ(ids.size(), 200U);
  for (const std::uint32_t id : ids) {
    EXPECT_TRUE(id < 264 && id != 262) << id;
  }
  EXPECT_EQ(answer.Find("usage")->Find("prompt_tokens")->number(), 3);
  EXPECT_EQ(Parsed(Post(server.port(), "/detokenize", "{\"tokens\":" + Shown(ids) + "}").body)
                .Find("prompt")
                ->string(),
            choice.Find("text")->string());
}

TEST_F(TokenizerFile, StopStringsAndEchoesAreThoseOfTheVocabulary) {
  File(TinyTokenizer(kMerges, {"<s>"}, true));
  const LiveServer server(
      {"--tokenizer", folder_, "--echo", "--prefill-ms", "1", "--decode-ms", "0.2"});
  ASSERT_NE(server.port(), 0) << server.output();
  const auto choice = [&](const std::string& more) {
    const Json answer = Parsed(Post(server.port(), "/v1/completions",
                                    R"({"prompt":"the \u96ea cat","max_tokens":50,)"
                                    R"("return_token_ids":true)" +
                                        more + "}")
                                   .body);
    return answer.Find("choices")->array().front();
  };
  // The mark in front of the prompt is not generated.
  EXPECT_EQ(IdsOf(choice("").Find("token_ids")), (Ids{257, 32, 0xE9, 0x9B, 0xAA, 261}));
  EXPECT_EQ(choice("").Find("text")->string(), "the \u96ea cat");
  const Json stopped = choice(R"(,"stop":["\u96ea c"])");
  EXPECT_EQ(stopped.Find("text")->string(), "the ");
  EXPECT_EQ(stopped.Find("finish_reason")->string(), "stop");
  const HttpAnswer stream = Post(server.port(), "/v1/completions",
                                 R"({"prompt":"\u96ea\u96ea","max_tokens":6,"stream":true})");
  std::string text;
  for (const std::string& event : Events(stream.body)) {
    if (event != "[DONE]") {
      const Json json = Parsed(event);
      text += json.Find("choices")->array().front().Find("text")->string();
    }
  }
  EXPECT_EQ(text, "\u96ea\u96ea");
}

TEST_F(TokenizerFile, AFollowUpTurnHitsTheCacheInOneProcessAndInSeveral) {
  File(ChatMlTokenizer());
  const std::vector<std::string> engine = {"--prefill-ms", "1", "--decode-ms", "0.2",
                                           "--block-size", "4"};
  const auto check = [](std::uint16_t port) {
    const auto complete = [&](const Ids& prompt, int max_tokens) {
      return Parsed(
          Post(port, "/v1/completions",
               "{\"prompt\":" + Shown(prompt) +
                   ",\"return_token_ids\":true,\"max_tokens\":" + std::to_string(max_tokens) + "}")
              .body);
    };
    Ids prompt = {257, 261, 258, 261};
    const Json first = complete(prompt, 21);
    const Ids answer = IdsOf(first.Find("choices")->array().front().Find("token_ids"));
    prompt.insert(prompt.end(), answer.begin(), answer.end());
    // 25 tokens; the last generated one has no KV yet.
    const Json next = complete(prompt, 1);
    EXPECT_EQ(next.Find("usage")->Find("prompt_tokens_details")->Find("cached_tokens")->number(),
              24);
  };
  std::vector<std::string> flags = engine;
  flags.insert(flags.end(), {"--tokenizer", folder_});
  const LiveServer server(flags);
  ASSERT_NE(server.port(), 0) << server.output();
  check(server.port());

  const LiveServer worker(engine, "mocker");
  const LiveServer frontend(
      {"--tokenizer", folder_, "--worker", "http://127.0.0.1:" + std::to_string(worker.port())},
      "frontend");
  ASSERT_NE(frontend.port(), 0) << frontend.output();
  for (int i = 0;
       i < 400 && Get(frontend.port(), "/v1/models").body.find("mock") == std::string::npos; ++i) {
    usleep(10000);
  }
  check(frontend.port());
}

TEST_F(TokenizerFile, FlagsThatDoNotFitTheVocabularyEndTheServerAtOnce) {
  const std::string path = File(ChatMlTokenizer());
  const std::string rows = folder_ + "/rows.jsonl";
  std::ofstream(rows) << R"({"output_length":2,"output_token_ids":[257,265]})" << "\n";
  const auto refused = [](const std::vector<std::string>& flags, std::string_view why) {
    LiveServer server(flags);
    EXPECT_EQ(server.Wait(), 2) << why;
    EXPECT_NE(server.output().find(why), std::string::npos) << server.output();
  };
  refused({"--tokenizer", folder_ + "/none"}, "--tokenizer: " + folder_ + "/none is no file");
  refused({"--tokenizer", "/dev/null"}, "--tokenizer: /dev/null is no file");
  refused({"--tokenizer", rows}, "--tokenizer: " + rows + ": is no tokenizer.json");
  refused({"--tokenizer", path, "--response-replay-trace-path", rows},
          "--response-replay-trace-path: output_token_ids must be below 265, got 265");
  refused({"--tokenizer", path, "--reasoning",
           R"({"start_thinking_token_id":264,"end_thinking_token_id":300,"thinking_ratio":0.5})"},
          "--reasoning: token ids must be below 265, got 300");
}

TEST_F(TokenizerFile, AFolderOfAModelBringsItsTokenizerAlong) {
  File(ChatMlTokenizer());
  const LiveServer server({"--model-path", folder_});
  ASSERT_NE(server.port(), 0) << server.output();
  EXPECT_EQ(
      IdsOf(
          Parsed(Post(server.port(), "/tokenize", R"({"prompt":"the cat"})").body).Find("tokens")),
      (Ids{257, 261}));
}

TEST(TokenizerFlag, WithoutTheOptionItIsRefusedWithTheWayToHaveIt) {
  if (live::ReadsTokenizerFiles()) {
    GTEST_SKIP() << "this build has DYNO_HF_TOKENIZER";
  }
  const auto refused = [](const std::string& command, const std::vector<std::string>& flags) {
    LiveServer server(flags, command);
    EXPECT_EQ(server.Wait(), 2) << command;
    EXPECT_NE(server.output().find("--tokenizer: this program was built without"),
              std::string::npos)
        << server.output();
    EXPECT_NE(server.output().find("make build-tokenizers"), std::string::npos);
  };
  refused("serve", {"--tokenizer", "tokenizer.json"});
  refused("frontend", {"--tokenizer", "tokenizer.json", "--worker", "http://127.0.0.1:1"});
}

TEST(TokenizerFlag, WorkersOfTheirOwnProcessHaveNoText) {
  LiveServer server({"--tokenizer", "tokenizer.json"}, "mocker");
  EXPECT_EQ(server.Wait(), 2);
  EXPECT_NE(server.output().find("--tokenizer: is a flag of dynosim frontend"), std::string::npos)
      << server.output();
}

}  // namespace
}  // namespace dynosim::testing
