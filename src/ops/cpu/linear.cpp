// Products with weights. A product is cut into tiles whose shape depends on the product's shape alone; each tile is one call of the
// BLAS, followed by what else has to be done to the tile (bias, dropout, residual) while it is in the cache.
#include "ops/cpu/dropout.h"
#include "ops/handle.h"

using namespace ckpt::ops;
using blas::Op;

namespace {

// Large enough that packing the operands costs little (within 5 % of the whole product's speed at 256 inputs), small enough for
// many threads and for a tile (256 KiB) to stay in the second cache.
constexpr size_t kTileRows = 128, kTileColumns = 512;
// Weight gradients: sums over all rows, so the tiles are of the weight.
constexpr size_t kWeightTileRows = 128, kWeightTileColumns = 256;
constexpr size_t kBiasStrip = 64, kBiasRows = 64;

class Tiles {
 public:
  Tiles(size_t rows, size_t columns, size_t most_rows, size_t most_columns) noexcept
      : rows_(rows), columns_(columns), tile_rows_(even(rows, most_rows)), tile_columns_(even(columns, most_columns)),
        across_(chunk_count(columns, tile_columns_)) {}
  size_t count() const noexcept { return chunk_count(rows_, tile_rows_) * across_; }
  struct Tile {
    size_t row, column, rows, columns;
  };
  Tile operator[](size_t index) const noexcept {
    const size_t row = index / across_ * tile_rows_, column = index % across_ * tile_columns_;
    return {row, column, rows_ - row < tile_rows_ ? rows_ - row : tile_rows_,
            columns_ - column < tile_columns_ ? columns_ - column : tile_columns_};
  }

 private:
  // Tiles of about the same size, a multiple of 16, at most `most`.
  static size_t even(size_t total, size_t most) noexcept {
    const size_t each = chunk_count(total, chunk_count(total, most));
    return (each + 15) / 16 * 16;
  }
  size_t rows_, columns_, tile_rows_, tile_columns_, across_;
};

// sums += column sums of a strip, in blocks of rows: shorter sums, smaller error.
void add_column_sums(const Kernels &kernels, const float *in, size_t ld, size_t rows, size_t columns, float *sums) noexcept {
  float block[kBiasStrip];
  float all[kBiasStrip];
  for (size_t row = 0; row < rows; row += kBiasRows) {
    float *const to = row == 0 ? all : block;
    kernels.column_sums(in + row * ld, ld, rows - row < kBiasRows ? rows - row : kBiasRows, columns, to);
    if (row != 0) kernels.add(all, block, columns, all);
  }
  kernels.add(sums, all, columns, sums);
}

}  // namespace

extern "C" {

ckpt_status ckpt_ops_linear_forward(ckpt_ops *ops, const float *in, const float *weight, const float *bias, size_t rows,
                                    size_t inputs, size_t outputs, float *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_linear_forward").pointers({{"ops", ops}, {"in", in}, {"weight", weight}, {"out", out}})
                   .sizes({{"rows", rows}, {"inputs", inputs}}).sizes({{"rows", rows}, {"outputs", outputs}})
                   .sizes({{"outputs", outputs}, {"inputs", inputs}}).status());
  const Turn turn(ops);
  const Tiles tiles(rows, outputs, kTileRows, kTileColumns);
  turn.run(tiles.count(), [&](size_t task, unsigned) {
    const auto t = tiles[task];
    float *const to = out + t.row * outputs + t.column;
    blas::product(Op::PLAIN, Op::TRANSPOSED, t.rows, t.columns, inputs, 1.0f, in + t.row * inputs, inputs,
                  weight + t.column * inputs, inputs, 0.0f, to, outputs);
    if (bias != nullptr) turn.kernels.add_bias(bias + t.column, t.rows, t.columns, to, outputs);
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_linear_residual_forward(ckpt_ops *ops, const float *in, const float *weight, const float *bias,
                                             const float *residual, float dropout_probability, const ckpt_philox *philox,
                                             size_t rows, size_t inputs, size_t outputs, float *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_linear_residual_forward")
                   .pointers({{"ops", ops}, {"in", in}, {"weight", weight}, {"residual", residual}, {"out", out}})
                   .sizes({{"rows", rows}, {"inputs", inputs}}).sizes({{"rows", rows}, {"outputs", outputs}})
                   .sizes({{"outputs", outputs}, {"inputs", inputs}})
                   .probability("dropout_probability", dropout_probability, philox).status());
  const Dropout dropout(dropout_probability, philox);
  CKPT_OPS_TRY(dropout.reaches(rows * outputs));
  Turn turn(ops);
  const Tiles tiles(rows, outputs, kTileRows, kTileColumns);
  CKPT_OPS_TRY(turn.reserve(0, kTileRows * kTileColumns));
  turn.run(tiles.count(), [&](size_t task, unsigned thread) {
    const auto t = tiles[task];
    float *const tile = turn.of_thread(thread);
    blas::product(Op::PLAIN, Op::TRANSPOSED, t.rows, t.columns, inputs, 1.0f, in + t.row * inputs, inputs,
                  weight + t.column * inputs, inputs, 0.0f, tile, t.columns);
    for (size_t row = 0; row < t.rows; ++row) {
      const size_t at = (t.row + row) * outputs + t.column;
      dropout.pieces(at, t.columns, [&](size_t offset, size_t n, Mask mask) {
        turn.kernels.bias_mask_residual(tile + row * t.columns + offset, bias == nullptr ? nullptr : bias + t.column + offset,
                                        residual + at + offset, mask, n, out + at + offset);
      });
    }
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_linear_backward(ckpt_ops *ops, const float *in, const float *weight, const float *out_grad, size_t rows,
                                     size_t inputs, size_t outputs, float *in_grad, uint32_t accumulate, float *weight_grad,
                                     float *bias_grad) {
  Check check("ckpt_ops_linear_backward");
  check.pointers({{"ops", ops}, {"out_grad", out_grad}}).sizes({{"rows", rows}, {"inputs", inputs}})
      .sizes({{"rows", rows}, {"outputs", outputs}}).sizes({{"outputs", outputs}, {"inputs", inputs}});
  if (weight_grad != nullptr) check.pointers({{"in", in}});
  if (in_grad != nullptr) check.pointers({{"weight", weight}});
  CKPT_OPS_TRY(check.status());
  const Turn turn(ops);
  const Tiles of_in(rows, inputs, kTileRows, kTileColumns), of_weight(outputs, inputs, kWeightTileRows, kWeightTileColumns);
  // One loop over the tasks of all three, the long ones first.
  const size_t weight_tasks = weight_grad == nullptr ? 0 : of_weight.count(), in_tasks = in_grad == nullptr ? 0 : of_in.count();
  const size_t bias_tasks = bias_grad == nullptr ? 0 : chunk_count(outputs, kBiasStrip);
  turn.run(weight_tasks + in_tasks + bias_tasks, [&](size_t task, unsigned) {
    if (task < weight_tasks) {
      const auto t = of_weight[task];
      blas::product(Op::TRANSPOSED, Op::PLAIN, t.rows, t.columns, rows, 1.0f, out_grad + t.row, outputs, in + t.column, inputs,
                    1.0f, weight_grad + t.row * inputs + t.column, inputs);
    } else if (task < weight_tasks + in_tasks) {
      const auto t = of_in[task - weight_tasks];
      blas::product(Op::PLAIN, Op::PLAIN, t.rows, t.columns, outputs, 1.0f, out_grad + t.row * outputs, outputs,
                    weight + t.column, inputs, accumulate != 0 ? 1.0f : 0.0f, in_grad + t.row * inputs + t.column, inputs);
    } else {
      const size_t column = (task - weight_tasks - in_tasks) * kBiasStrip;
      add_column_sums(turn.kernels, out_grad + column, outputs, rows, outputs - column < kBiasStrip ? outputs - column : kBiasStrip,
                      bias_grad + column);
    }
  });
  return CKPT_OK;
}

}  // extern "C"
