// tests/vectors/philox.txt through the public functions. Other languages read the same file.
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ckpt/rng.h"

namespace {

struct Row {
  std::string text, kind;
  std::istringstream rest;
  uint64_t number() {
    std::string token;
    EXPECT_TRUE(rest >> token) << text;
    size_t used = 0;
    const uint64_t value = std::stoull(token, &used, 16);
    EXPECT_EQ(used, token.size()) << text;
    return value;
  }
  float real32() { return std::bit_cast<float>(static_cast<uint32_t>(number())); }
  double real64() { return std::bit_cast<double>(number()); }
  template <class T>
  std::vector<T> list(size_t count) {
    std::vector<T> out;
    for (size_t i = 0; i < count; ++i) out.push_back(static_cast<T>(number()));
    return out;
  }
  void expect_end() {
    std::string token;
    EXPECT_FALSE(rest >> token) << text;
  }
};

// seed subsequence offset first
struct Start {
  ckpt_philox philox{};
  uint64_t first;
  explicit Start(Row &row) {
    philox.seed = row.number();
    philox.subsequence = row.number();
    philox.offset = row.number();
    first = row.number();
  }
};

std::vector<uint32_t> bits_of(const std::vector<float> &values) {
  std::vector<uint32_t> out;
  for (const float value : values) out.push_back(std::bit_cast<uint32_t>(value));
  return out;
}

void block(Row &row) {
  const auto counter = row.list<uint32_t>(4), key = row.list<uint32_t>(2), want = row.list<uint32_t>(4);
  std::vector<uint32_t> got(4);
  ckpt_philox_block(counter.data(), key.data(), got.data());
  EXPECT_EQ(got, want) << row.text;
}

void pack(Row &row) {
  const uint64_t seed = row.number(), step = row.number(), segment = row.number();
  const auto site = static_cast<uint32_t>(row.number());
  ckpt_philox philox;
  ASSERT_EQ(ckpt_philox_pack(seed, step, segment, site, &philox), CKPT_OK) << row.text;
  EXPECT_EQ(philox.seed, seed);
  EXPECT_EQ(philox.subsequence, row.number()) << row.text;
  EXPECT_EQ(philox.offset, row.number()) << row.text;
  EXPECT_EQ(philox.step_word, nullptr);
}

void refuse(Row &row) {
  const uint64_t seed = row.number(), step = row.number(), segment = row.number();
  const auto site = static_cast<uint32_t>(row.number());
  std::string part;
  row.rest >> part;
  ckpt_philox philox;
  EXPECT_EQ(ckpt_philox_pack(seed, step, segment, site, &philox), CKPT_ERROR_OVERFLOW) << row.text;
  const std::string message = ckpt_last_error();
  EXPECT_NE(message.find(part + " is "), std::string::npos) << message;
  const uint64_t value = part == "step" ? step : part == "segment" ? segment : site;
  EXPECT_NE(message.find(std::to_string(value)), std::string::npos) << message;
  const uint64_t bound = uint64_t{1} << (part == "step" ? 36 : part == "segment" ? 28 : 16);
  EXPECT_NE(message.find(std::to_string(bound)), std::string::npos) << message;
}

void threshold(Row &row) {
  const double probability = row.real64();
  EXPECT_EQ(ckpt_philox_threshold(probability), row.number()) << row.text;
}

void u32(Row &row) {
  const Start start(row);
  const auto want = row.list<uint32_t>(row.number());
  std::vector<uint32_t> got(want.size());
  ASSERT_EQ(ckpt_philox_u32(&start.philox, start.first, got.size(), got.data()), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(got, want) << row.text;
}

void uniform(Row &row) {
  const Start start(row);
  const auto want = row.list<uint32_t>(row.number());
  std::vector<float> got(want.size());
  ASSERT_EQ(ckpt_philox_uniform(&start.philox, start.first, got.size(), got.data()), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(bits_of(got), want) << row.text;
}

void normal(Row &row) {
  const Start start(row);
  const float mean = row.real32(), stddev = row.real32();
  const auto want = row.list<uint32_t>(row.number());
  std::vector<float> got(want.size());
  ASSERT_EQ(ckpt_philox_normal(&start.philox, start.first, got.size(), mean, stddev, got.data()), CKPT_OK)
      << ckpt_last_error();
  EXPECT_EQ(bits_of(got), want) << row.text;
}

void bernoulli(Row &row) {
  const Start start(row);
  const double probability = row.real64();
  const auto want = row.list<uint8_t>(row.number());
  std::vector<uint8_t> got(want.size());
  ASSERT_EQ(ckpt_philox_bernoulli(&start.philox, start.first, got.size(), probability, got.data()), CKPT_OK)
      << ckpt_last_error();
  EXPECT_EQ(got, want) << row.text;
}

TEST(PhiloxVectors, EveryRowHolds) {
  const std::map<std::string, void (*)(Row &)> kinds = {
      {"block", block}, {"pack", pack},       {"refuse", refuse}, {"threshold", threshold},
      {"u32", u32},     {"uniform", uniform}, {"normal", normal}, {"bernoulli", bernoulli}};
  const auto path = std::filesystem::path(CKPT_TEST_DIR) / "vectors" / "philox.txt";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::map<std::string, int> seen;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    Row row{line, {}, std::istringstream(line)};
    ASSERT_TRUE(row.rest >> row.kind);
    ASSERT_TRUE(kinds.contains(row.kind)) << line;
    kinds.at(row.kind)(row);
    row.expect_end();
    ++seen[row.kind];
  }
  for (const auto &[kind, check] : kinds) EXPECT_GE(seen[kind], 6) << kind;  // a truncated file is no pass
}

}  // namespace
