#include "estimate/pieces.h"

#include <algorithm>
#include <initializer_list>

#include "arena/size_rule.h"
#include "base/checked.h"

namespace ckpt::estimate {
namespace {

constexpr uint64_t kLogitBytes = 4, kLogSumExpBytes = 4, kMaskBytes = 1, kTokenBytes = 4, kLossBytes = 4;

// Products that remember whether one did not fit.
class Sizes {
 public:
  size_t operator()(std::initializer_list<uint64_t> factors) {
    uint64_t product = 1;
    for (uint64_t f : factors)
      if (f == 0) return 0;
    for (uint64_t f : factors) over_ |= mul_overflows(product, f, &product);
    over_ |= product > arena::SizeRule::kMaxBytes;
    return over_ ? 0 : product;
  }
  bool over() const { return over_; }

 private:
  bool over_ = false;
};

double number(size_t x) { return static_cast<double>(x); }

// What is left of the model on one rank.
struct Local {
  uint64_t sequence, tokens, rows, heads, kv_heads, ffn;  // rows: of what sequence parallelism cuts
};

Local cut(const Request &r) {
  const Model &m = r.model;
  const Layout &l = r.layout;
  Local c{};
  c.sequence = m.sequence / l.context;
  c.tokens = c.sequence * m.micro_batch;
  c.rows = l.sequence_parallel ? c.sequence / l.tensor * m.micro_batch : c.tokens;
  c.heads = m.heads / l.tensor;
  c.kv_heads = std::max<uint64_t>(m.kv_heads / l.tensor, 1);
  c.ffn = m.ffn / l.tensor;
  return c;
}

class Builder {
 public:
  Builder(const Request &r) : m_(r.model), c_(cut(r)), tensor_(r.layout.tensor) {}

  void embedding(Pieces *out) {
    Segment &s = out->embedding;
    out->token_bytes = size_({kTokenBytes, c_.tokens});
    if (m_.dropout) add(&s, {"dropout_mask", size_({kMaskBytes, c_.rows, m_.hidden}), {}});
    s.output = {"embedded", boundary(), all(s)};
    s.output.moved = 2 * number(boundary());
  }

  void layer(Pieces *out) {
    out->boundary_bytes = boundary();
    Segment &s = out->layer;
    const double x = number(boundary());
    const uint32_t norm = add(&s, {"qkv_input", boundary(), {}, 0, Part::other, 0, 2 * x});
    const uint32_t context = m_.flash ? flash_attention(&s, norm) : plain_attention(&s, norm);
    std::vector<uint32_t> reads = {context};
    if (m_.dropout) reads.push_back(mask(&s, "projection_mask"));
    const double context_bytes = number(s.slots[context].bytes);
    const uint32_t middle = add(&s, {"norm2_input", boundary(), reads, 0, Part::other, product(c_.tokens, c_.heads * m_.head_size, m_.hidden), context_bytes + 4 * x});
    const uint32_t input = add(&s, {"fc1_input", boundary(), {middle}, 0, Part::other, 0, 2 * x});
    const uint32_t last = feed_forward(&s, input);
    reads = {middle, last};
    if (m_.dropout) reads.push_back(mask(&s, "ffn_mask"));
    s.output = {"output", boundary(), reads, 0, Part::other, product(c_.tokens, c_.ffn, m_.hidden), number(s.slots[last].bytes) + 4 * x};
  }

  void head(Pieces *out) {
    Segment &s = out->head;
    const double x = number(boundary());
    const uint32_t input = add(&s, {"head_input", boundary(), {}, 0, Part::other, 0, 2 * x});
    const size_t logits = size_({kLogitBytes, c_.tokens, m_.vocabulary / tensor_});
    const uint32_t product_at = add(&s, {"logits", logits, {input}, 0, Part::other, product(c_.tokens, m_.hidden, m_.vocabulary / tensor_), x + number(logits)});
    s.output = {"loss", size_t{kLossBytes}, {product_at}, 0, Part::other, 0, number(logits)};
  }

  bool over() const { return size_.over(); }

 private:
  static double product(uint64_t rows, uint64_t inner, uint64_t columns) { return 2.0 * number(rows) * number(inner) * number(columns); }
  size_t boundary() { return size_({m_.element, c_.rows, m_.hidden}); }

  static uint32_t add(Segment *s, Piece piece) {
    s->slots.push_back(std::move(piece));
    return static_cast<uint32_t>(s->slots.size() - 1);
  }
  static std::vector<uint32_t> all(const Segment &s) {
    std::vector<uint32_t> k(s.slots.size());
    for (uint32_t j = 0; j < k.size(); ++j) k[j] = j;
    return k;
  }
  // Random numbers are a function of the step: a mask is made from nothing.
  uint32_t mask(Segment *s, const char *name) {
    const size_t bytes = size_({kMaskBytes, c_.rows, m_.hidden});
    return add(s, {name, bytes, {}, 0, Part::other, 0, number(bytes)});
  }

  // Q, K and V from one product: one slot.
  struct Qkv { uint32_t at; size_t q_bytes, kv_bytes; };
  Qkv qkv(Segment *s, uint32_t norm) {
    const uint64_t q_width = c_.heads * m_.head_size, kv_width = c_.kv_heads * m_.head_size;
    Qkv made{};
    made.q_bytes = size_({m_.element, c_.tokens, q_width});
    made.kv_bytes = size_({m_.element, c_.tokens, kv_width});
    const size_t bytes = made.q_bytes + 2 * made.kv_bytes;
    made.at = add(s, {"qkv", bytes, {norm}, 0, Part::other, product(c_.tokens, m_.hidden, q_width + 2 * kv_width), number(boundary()) + number(bytes)});
    return made;
  }
  // Of Q with K, or of the weights with V.
  double attention_product() const { return product(c_.tokens, c_.heads * m_.head_size, m_.sequence); }

  // Gives the slot that the projection reads.
  uint32_t plain_attention(Segment *s, uint32_t norm) {
    const Qkv made = qkv(s, norm);
    const uint64_t weights = size_({c_.heads, c_.tokens, m_.sequence});
    const size_t bytes = size_({m_.element, c_.heads, c_.tokens, m_.sequence});
    uint32_t last = add(s, {"softmax", bytes, {made.at}, 0, Part::attention, attention_product(), 3 * number(bytes)});
    if (m_.dropout) {
      const uint32_t drawn = add(s, {"attention_mask", size_({kMaskBytes, weights}), {}, 0, Part::attention, 0, number(weights)});
      last = add(s, {"attention_dropped", bytes, {last, drawn}, 0, Part::attention, 0, 2 * number(bytes) + number(weights)});
    }
    const size_t out = made.q_bytes;
    return add(s, {"context", out, {made.at, last}, 0, Part::other, attention_product(), number(bytes) + 2 * number(out)});
  }
  uint32_t flash_attention(Segment *s, uint32_t norm) {
    const Qkv made = qkv(s, norm);
    const size_t lse = size_({kLogSumExpBytes, c_.heads, c_.tokens}), out = made.q_bytes;
    const std::vector<uint32_t> reads = {made.at};
    const uint32_t context = add(s, {"context", out, reads, 1, Part::other, 2 * attention_product(), 2 * number(out) + 2 * number(made.kv_bytes)});
    add(s, {"log_sum_exp", lse, reads, 1, Part::attention, 0, number(lse)});
    return context;
  }
  // Gives the slot that the last product reads.
  uint32_t feed_forward(Segment *s, uint32_t input) {
    const size_t wide = size_({m_.element, c_.tokens, c_.ffn});
    const double flops = product(c_.tokens, m_.hidden, c_.ffn), w = number(wide), x = number(boundary());
    if (!m_.gated) {
      const uint32_t before = add(s, {"gelu_input", wide, {input}, 0, Part::feed_forward, flops, x + w});
      return add(s, {"fc2_input", wide, {before}, 0, Part::feed_forward, 0, 2 * w});
    }
    const uint32_t both = add(s, {"gate_and_up", size_({2, wide}), {input}, 0, Part::feed_forward, 2 * flops, x + 2 * w});
    return add(s, {"fc2_input", wide, {both}, 0, Part::feed_forward, 0, 3 * w});
  }

  const Model &m_;
  const Local c_;
  const uint64_t tensor_;
  Sizes size_;
};

double flops_of(const Segment &s, Part part) {
  double sum = 0;
  for (const Piece &p : s.slots)
    if (p.part == part) sum += p.flops;
  return sum;
}

}  // namespace

double Segment::flops() const {
  double sum = output.flops;
  for (const Piece &p : slots) sum += p.flops;
  return sum;
}

bool kept(uint32_t policy, const Piece &piece) {
  switch (policy) {
    case CKPT_RECOMPUTE_ATTENTION: return piece.part != Part::attention;
    case CKPT_RECOMPUTE_FEED_FORWARD: return piece.part != Part::feed_forward;
    case CKPT_RECOMPUTE_FULL: return false;
    default: return true;
  }
}

size_t Pieces::layer_bytes(uint32_t policy) const {
  size_t sum = boundary_bytes;
  for (const Piece &p : layer.slots)
    if (kept(policy, p)) sum += p.bytes;
  return sum;
}

double Pieces::replay_flops(uint32_t policy) const {
  switch (policy) {
    case CKPT_RECOMPUTE_ATTENTION:  // its second product is made with the weights
      for (const Piece &p : layer.slots)
        if (p.name == std::string_view("context")) return flops_of(layer, Part::attention) + p.flops;
      return 0;
    case CKPT_RECOMPUTE_FEED_FORWARD: return flops_of(layer, Part::feed_forward) + layer.output.flops;
    case CKPT_RECOMPUTE_FULL: return layer.flops();
    default: return 0;
  }
}

size_t Pieces::embedding_bytes() const {
  size_t sum = 0;
  for (const Piece &p : embedding.slots) sum += p.bytes;
  return sum;
}

size_t Pieces::head_bytes() const {
  size_t sum = boundary_bytes;
  for (const Piece &p : head.slots) sum += p.bytes;
  return sum;
}

Status count_pieces(const char *function, const Request &request, Pieces *out) {
  Builder b(request);
  b.embedding(out);
  b.layer(out);
  if (request.model.vocabulary != 0) b.head(out);
  if (b.over()) return fail(CKPT_ERROR_OVERFLOW, "%s: an activation of this model takes more than 2^60 bytes on a rank", function);
  return CKPT_OK;
}

double model_forward_flops(const Model &m) {
  const double tokens = number(m.sequence) * number(m.micro_batch), h = number(m.hidden), q = number(m.heads * m.head_size), kv = number(m.kv_heads * m.head_size);
  const double layer = 2 * tokens * (2 * h * q + 2 * h * kv + 2 * q * number(m.sequence) + (m.gated ? 3 : 2) * h * number(m.ffn));
  return number(m.layers) * layer + 2 * tokens * h * number(m.vocabulary);
}

double seconds(const Hardware &hardware, const Piece &piece) {
  return std::max(piece.flops / hardware.flops_per_second, piece.moved / hardware.bytes_per_second);
}

double seconds(const Hardware &hardware, const Segment &segment) {
  double sum = seconds(hardware, segment.output);
  for (const Piece &p : segment.slots) sum += seconds(hardware, p);
  return sum;
}

}  // namespace ckpt::estimate
