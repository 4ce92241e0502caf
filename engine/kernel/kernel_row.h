// KernelRow: one implementation of one operator on one kind of device, and the table of all of
// them.
//
//   void ReluKernel(KernelContext& context, std::span<const TensorView> outputs,
//                   std::span<const TensorView> inputs, const AnyStruct& attrs);
//
//   std::vector<KernelRow> ReluReferenceKernels() {
//     return {{.op = "relu", .dtypes = kReferenceTypes, .fn = ReluKernel}};
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/op_def.h"
#include "engine/kernel/kernel_context.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {

enum class DeviceKind : uint8_t { kCpu, kCuda };
const char* NameOf(DeviceKind device);

// A set of element types.
struct DTypeSet {
  uint32_t bits = 0;
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> types) {
    for (const DType t : types) bits |= 1u << static_cast<int>(t);
  }
  constexpr bool Has(DType t) const { return (bits >> static_cast<int>(t) & 1u) != 0; }
};
inline constexpr DTypeSet kReferenceTypes = {DType::kF32, DType::kF64};

// Writes every element of every output. An absent optional input has data == nullptr. Sizes and
// types have been checked by infer.
using KernelFn = void (*)(KernelContext& context, std::span<const TensorView> outputs,
                          std::span<const TensorView> inputs, const AnyStruct& attrs);

struct KernelRow {
  const char* op = "";
  DeviceKind device = DeviceKind::kCpu;
  // Who wrote it: "reference", "fast" (ours), "onednn", "cudnn", ... Rows that hand opaque bytes to
  // each other share this name.
  const char* impl = "reference";
  int priority = 0;  // of the rows that support a call the highest is taken; reference rows have 0
  DTypeSet dtypes = kReferenceTypes;  // of OpCall::MainDType
  // Further conditions (sizes, memory formats); null: none.
  bool (*supports)(const OpCall& call) = nullptr;
  // State made once per step while planning (a library's primitive, packed constants). `libraries`
  // are those of the device that the plan is for.
  absl::StatusOr<std::shared_ptr<const void>> (*prepare)(const OpCall& call,
                                                         DeviceLibraries* libraries) = nullptr;
  // Scratch bytes the kernel needs while it runs.
  int64_t (*workspace_bytes)(const OpCall& call, const void* prepared) = nullptr;
  // Exact bytes of opaque output `output` (infer gives an upper bound).
  int64_t (*saved_bytes)(const OpCall& call, const void* prepared, int output) = nullptr;
  KernelFn fn = nullptr;

  // "conv2d/onednn"
  std::string Key() const { return std::string(op) + "/" + impl; }
};

// All kernel rows: what the tool hands to the engine. Immutable after construction.
class KernelTable {
 public:
  KernelTable() = default;
  explicit KernelTable(std::vector<KernelRow> rows);

  // The best row for the call: of implementation `impl` if one is named (opaque inputs, tests).
  // NotFound lists the rows that exist for the operator and why each does not fit.
  absl::StatusOr<const KernelRow*> Select(const OpCall& call, DeviceKind device,
                                          std::string_view impl = {}) const;
  const std::vector<KernelRow>& rows() const { return rows_; }

 private:
  std::vector<KernelRow> rows_;  // sorted by operator, then priority from high to low
};

}  // namespace capstan
