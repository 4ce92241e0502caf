#include "engine/kernel/kernel_context.h"

#include <algorithm>

namespace capstan {

void ParallelFor(const KernelContext& context, int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  const int64_t most = (n + std::max<int64_t>(grain, 1) - 1) / std::max<int64_t>(grain, 1);
  const int parts = static_cast<int>(std::min<int64_t>(most, context.threads));
  if (parts <= 1) {
    body(0, n);
    return;
  }
  // OpenMP, so that our kernels and oneDNN's share one pool of threads.
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int p = 0; p < parts; ++p) {
    body(n * p / parts, n * (p + 1) / parts);
  }
}

}  // namespace capstan
