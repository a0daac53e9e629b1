// Tables of tokens and positions: every way in which a token's rows lie in the sorted segments, tokens out of range, orders of threads.
#include "plugin.h"

using namespace test;

namespace {

struct Shape {
  size_t batch, sequence, channels, vocabulary;
};
constexpr Shape kShapes[] = {{1, 1, 1, 1}, {2, 3, 5, 4}, {3, 11, 8, 50}, {2, 70, 33, 3}, {1, 97, 40, 1}, {4, 64, 24, 3001}, {2, 9, 1100, 7}};

Floats floats_of(size_t count, uint64_t seed, uint32_t type) { return rounded(type, values(count, seed)); }

TEST(Embedding, ForwardEqualsReference) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kShapes) {
      const size_t rows = s.batch * s.sequence;
      const auto tokens = indices(rows, 1, s.vocabulary);
      const Floats table = floats_of(s.vocabulary * s.channels, 2, type), positions = floats_of(s.sequence * s.channels, 3, type);
      Values plain(rows * s.channels), both(rows * s.channels);
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < s.channels; ++c) {
          plain[r * s.channels + c] = static_cast<double>(table[static_cast<size_t>(tokens[r]) * s.channels + c]);
          both[r * s.channels + c] = plain[r * s.channels + c] + static_cast<double>(positions[r % s.sequence * s.channels + c]);
        }
      const Indices t(tokens);
      const Array token_table(type, table), position_table(type, positions), out(type, plain.size()), shifted(type, plain.size(), 1);
      OK(ops->embedding_forward(ops, t.data(), token_table.data(), position_table.data(), s.batch, s.sequence, s.channels, s.vocabulary, out.data()));
      expect_near(out.read(), both, 1e-7, type, "out");
      OK(ops->embedding_forward(ops, t.data(), token_table.data(), position_table.data(), s.batch, s.sequence, s.channels, s.vocabulary, shifted.data()));
      EXPECT_EQ(shifted.bytes(), out.bytes());
      OK(ops->embedding_forward(ops, t.data(), token_table.data(), nullptr, s.batch, s.sequence, s.channels, s.vocabulary, out.data()));
      expect_near(out.read(), plain, 0.0, type, "out without positions");
      OK(ops->check(ops));
    }
  }
}

void expect_gradients(const Ops &ops, const Shape &s, const std::vector<int32_t> &tokens) {
  const size_t rows = s.batch * s.sequence;
  const Floats grad = floats_of(rows * s.channels, 4, ops.type());
  const Floats tokens_before = values(s.vocabulary * s.channels, 5), positions_before = values(s.sequence * s.channels, 6);
  Values of_tokens(tokens_before.size()), of_positions(positions_before.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < s.channels; ++c) {
      const double g = static_cast<double>(grad[r * s.channels + c]);
      of_positions[r % s.sequence * s.channels + c] += g;
      if (tokens[r] >= 0 && static_cast<size_t>(tokens[r]) < s.vocabulary) of_tokens[static_cast<size_t>(tokens[r]) * s.channels + c] += g;
    }
  const Indices t(tokens);
  const Array out_grad(ops.type(), grad), token_grad(ops::kFloat32, tokens_before), position_grad(ops::kFloat32, positions_before);
  OK(ops->embedding_backward(ops, t.data(), out_grad.data(), s.batch, s.sequence, s.channels, s.vocabulary, token_grad.floats(), position_grad.floats()));
  expect_near(token_grad.read(), plus(of_tokens, tokens_before), 1e-6, ops::kFloat32, "token_grad");
  expect_near(position_grad.read(), plus(of_positions, positions_before), 1e-6, ops::kFloat32, "position_grad");
  const auto bits = token_grad.bytes();
  const Array shifted(ops.type(), grad, 1), alone(ops::kFloat32, tokens_before, 1), positions_alone(ops::kFloat32, positions_before);
  OK(ops->embedding_backward(ops, t.data(), shifted.data(), s.batch, s.sequence, s.channels, s.vocabulary, alone.floats(), nullptr));
  EXPECT_EQ(alone.bytes(), bits) << "alone, another alignment";
  OK(ops->embedding_backward(ops, t.data(), out_grad.data(), s.batch, s.sequence, s.channels, s.vocabulary, nullptr, positions_alone.floats()));
  EXPECT_EQ(positions_alone.bytes(), position_grad.bytes());
}

TEST(Embedding, BackwardEqualsReferenceAndAdds) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    for (const Shape &s : kShapes) {
      SCOPED_TRACE(testing::Message() << s.batch << " x " << s.sequence << " x " << s.channels << " of " << s.vocabulary);
      expect_gradients(ops, s, indices(s.batch * s.sequence, 1, s.vocabulary));
      OK(ops->check(ops));
    }
  }
}

// Segments are of 32 sorted rows: runs that fill segments exactly, that begin and end at their bounds, that go over one, two and many.
TEST(Embedding, RunsOfEveryLength) {
  const Ops ops(ops::kFloat32);
  for (const auto &lengths : std::vector<std::vector<size_t>>{{32, 32}, {31, 33}, {33, 31}, {1, 63}, {64}, {20, 30, 46}, {5, 100, 23}, {96, 1}, {31, 1, 32}, {40, 88, 7, 200, 1}}) {
    std::vector<int32_t> tokens;
    for (size_t k = 0; k < lengths.size(); ++k) tokens.insert(tokens.end(), lengths[k], static_cast<int32_t>(2 * k));
    // Rows of one token apart from each other.
    std::vector<int32_t> mixed(tokens.size());
    for (size_t k = 0, at = 0; k < tokens.size(); ++k, at = (at + 7) % tokens.size()) {
      while (mixed[at] < 0) at = (at + 1) % tokens.size();
      mixed[at] = -1 - tokens[k];
    }
    for (int32_t &token : mixed) token = -1 - token;
    const Shape s = {1, tokens.size(), 9, 2 * lengths.size()};
    expect_gradients(ops, s, tokens);
    expect_gradients(ops, s, mixed);
  }
}

TEST(Embedding, NamesTheFirstTokenOutOfRange) {
  for (const uint32_t type : kTypes) {
    const Ops ops(type);
    constexpr size_t kRows = 2100, kChannels = 12, kVocabulary = 9;
    auto tokens = indices(kRows, 1, kVocabulary);
    tokens[1700] = -1;
    tokens[1033] = kVocabulary;
    const Indices t(tokens);
    const Array table(type, Floats(kVocabulary * kChannels, 1.0f)), out(type, kRows * kChannels);
    OK(ops->embedding_forward(ops, t.data(), table.data(), nullptr, 1, kRows, kChannels, kVocabulary, out.data()));
    const Floats got = out.read();
    for (size_t r = 0; r < kRows; ++r)
      for (size_t c = 0; c < kChannels; ++c) ASSERT_EQ(std::isnan(got[r * kChannels + c]), r == 1033 || r == 1700) << r;
    // A later one does not take its place; check forgets it.
    tokens[3] = -7;
    const Indices later(tokens);
    OK(ops->embedding_forward(ops, later.data(), table.data(), nullptr, 1, kRows, kChannels, kVocabulary, out.data()));
    EXPECT_EQ(ops->check(ops), CKPT_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(last_text().find("tokens[1033] is 9, expected 0 <= tokens < 9"), std::string::npos) << last_text();
    OK(ops->check(ops));
    expect_gradients(ops, {3, 700, kChannels, kVocabulary}, tokens);
    EXPECT_EQ(ops->check(ops), CKPT_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(last_text().find("tokens[3] is -7, expected 0 <= tokens < 9"), std::string::npos) << last_text();
  }
}

TEST(Embedding, SameBitsInEveryOrder) {
  for (const uint32_t type : kTypes)
    expect_repeatable([&] {
      const Ops ops(type);
      const Shape s = {3, 150, 40, 17};
      const Indices t(indices(s.batch * s.sequence, 1, s.vocabulary));
      const Array grad(type, values(s.batch * s.sequence * s.channels, 2)), token_grad(ops::kFloat32, Floats(s.vocabulary * s.channels));
      const Array position_grad(ops::kFloat32, Floats(s.sequence * s.channels));
      EXPECT_EQ(ops->embedding_backward(ops, t.data(), grad.data(), s.batch, s.sequence, s.channels, s.vocabulary, token_grad.floats(), position_grad.floats()), CKPT_OK);
      auto bytes = token_grad.bytes();
      append(&bytes, position_grad.bytes());
      return bytes;
    });
}

}  // namespace
