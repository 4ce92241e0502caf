// KernelContext: what a kernel has besides its arguments: workspace, prepared state, the place of
// each argument in the whole tensor, random numbers, threads or stream.
//
// A kernel never allocates, never waits for a device and never sees the graph. One context serves
// one kernel at a time; ParallelFor spreads work over the CPU's threads.
#pragma once

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "engine/base/random.h"
#include "engine/kernel/device_libraries.h"
#include "engine/tensor/tensor_type.h"

namespace capstan {

// Which part of the whole (logical) tensor an argument holds. Without sharding: all of it.
struct ArgumentPlace {
  Shape logical;  // sizes of the whole tensor
  Shape offset;   // where this part begins, in elements along each dimension
};

// What differs from run to run of a recorded program: its kernels read it from device memory.
struct RunValues {
  uint64_t random_key = 0;    // of KernelContext::random
  int64_t sample_offset = 0;  // KernelContext::sample_offset
};

struct KernelContext {
  void* workspace = nullptr;  // 64-byte aligned
  int64_t workspace_bytes = 0;
  // What KernelRow::prepare returned.
  const void* prepared = nullptr;

  // Keyed by seed and iteration; a random kernel mixes in its stream's name.
  RandomKey random{0};
  // Place of the first sample within the update (accumulation: the samples before this batch).
  int64_t sample_offset = 0;
  // One per input resp. output where a tensor is cut; empty: every argument is whole.
  std::span<const ArgumentPlace> input_places;
  std::span<const ArgumentPlace> output_places;

  int threads = 1;                        // CPU
  void* stream = nullptr;                 // CUDA: a cudaStream_t
  DeviceLibraries* libraries = nullptr;   // the device's
  const RunValues* run_values = nullptr;  // CUDA: in device memory, in place of the two above

  // The first failure of a library call, read by the executor after the step.
  absl::Status status;

  template <typename T>
  const T& Prepared() const {
    return *static_cast<const T*>(prepared);
  }
};

// Calls body(begin, end) for parts of [0, n), each of at least `grain` (the last may be smaller),
// on the context's threads. How [0, n) is cut depends on n, grain and the number of threads only.
void ParallelFor(const KernelContext& context, int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace capstan
