// Tensors whose channels lie innermost in memory, seen as [rows, channels], and sums of such rows.
//
// The rows are cut into parts that depend on the sizes only, so sums are the same bits whatever the
// number of threads. Within a part blocks of rows are added in float, blocks and parts in double.
//
//   double* sums = SumRows<2>(context, rows, channels, context.workspace,
//                             [&](int64_t row, float* sums) { ... sums[c] += ...; });
#pragma once

#include <algorithm>

#include "engine/kernel/flat.h"
#include "engine/kernel/kernel_context.h"

namespace capstan {

// Whether memory is rows of all elements along the axis.
inline bool IsInnermost(const TensorType& type, int axis) {
  return type.Strides()[static_cast<size_t>(axis)] == 1;
}

// Rows of `channels` elements worth a thread.
inline int64_t RowGrain(int64_t channels) {
  return std::max<int64_t>(kFlatGrain / std::max<int64_t>(channels, 1), 1);
}

inline constexpr int64_t kRowsPerBlock = 64;
// More parts than this would not help: they bound the threads that one sum can use.
inline constexpr int64_t kMostParts = 64;

inline int64_t RowParts(int64_t rows) {
  return std::clamp<int64_t>(rows / kRowsPerBlock, 1, kMostParts);
}

// Workspace of SumRows: totals, then a double and a float of every sum for every part.
inline int64_t SumRowsBytes(int sums, int64_t rows, int64_t channels) {
  const int64_t parts = RowParts(rows), width = sums * channels;
  return width * 8 + parts * width * 12;
}

// `kSums` sums per channel over all rows: add_row(row, sums) adds the terms of a row to
// sums[s * channels + c]. The result lies in the workspace, indexed alike.
template <int kSums, typename AddRow>
const double* SumRows(const KernelContext& context, int64_t rows, int64_t channels, void* workspace,
                      AddRow&& add_row) {
  const int64_t parts = RowParts(rows), width = kSums * channels;
  double* const totals = static_cast<double*>(workspace);
  double* const part_sums = totals + width;
  float* const block_sums = reinterpret_cast<float*>(part_sums + parts * width);
  const int64_t grain =
      std::max<int64_t>(1, parts * RowGrain(channels) / std::max<int64_t>(rows, 1));
  ParallelFor(context, parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      double* const sums = part_sums + p * width;
      float* const block = block_sums + p * width;
      std::fill_n(sums, width, 0.0);
      const int64_t last = rows * (p + 1) / parts;
      for (int64_t row = rows * p / parts; row < last;) {
        std::fill_n(block, width, 0.f);
        const int64_t block_end = std::min(row + kRowsPerBlock, last);
        for (; row < block_end; ++row) add_row(row, block);
        for (int64_t i = 0; i < width; ++i) sums[i] += double(block[i]);
      }
    }
  });
  ParallelFor(context, width, kFlatGrain / parts, [&](int64_t begin, int64_t end) {
    std::copy(part_sums + begin, part_sums + end, totals + begin);
    for (int64_t p = 1; p < parts; ++p) {
      for (int64_t i = begin; i < end; ++i) totals[i] += part_sums[p * width + i];
    }
  });
  return totals;
}

}  // namespace capstan
