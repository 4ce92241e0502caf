#include "engine/kernel/kernel_row.h"

#include <algorithm>

#include "engine/base/status.h"

namespace capstan {
namespace {

struct ByOp {
  bool operator()(const KernelRow& row, std::string_view op) const { return row.op < op; }
  bool operator()(std::string_view op, const KernelRow& row) const { return op < row.op; }
};

// Why the row cannot serve the call; empty when it can.
std::string Obstacle(const KernelRow& row, const OpCall& call, DeviceKind device,
                     std::string_view impl) {
  if (row.device != device) return std::string("runs on ") + NameOf(row.device);
  if (!impl.empty() && row.impl != impl) {
    return "cannot read what the " + std::string(impl) + " kernel saved";
  }
  if (!row.dtypes.Has(call.MainDType())) {
    return std::string("does not take ") + NameOf(call.MainDType());
  }
  if (row.supports != nullptr && !row.supports(call)) return "does not support these sizes";
  return "";
}

}  // namespace

const char* NameOf(DeviceKind device) { return device == DeviceKind::kCpu ? "cpu" : "cuda"; }

KernelTable::KernelTable(std::vector<KernelRow> rows) : rows_(std::move(rows)) {
  std::stable_sort(rows_.begin(), rows_.end(), [](const KernelRow& a, const KernelRow& b) {
    const std::string_view op_a = a.op, op_b = b.op;
    return op_a != op_b ? op_a < op_b : a.priority > b.priority;
  });
}

absl::StatusOr<const KernelRow*> KernelTable::Select(const OpCall& call, DeviceKind device,
                                                     std::string_view impl) const {
  const auto [first, last] =
      std::equal_range(rows_.begin(), rows_.end(), std::string_view(call.op->name), ByOp());
  std::string tried;
  for (auto row = first; row != last; ++row) {
    const std::string obstacle = Obstacle(*row, call, device, impl);
    if (obstacle.empty()) return &*row;
    tried += "\n  " + row->Key() + " (" + NameOf(row->device) + "): " + obstacle;
  }
  return NotFound("no {} kernel for {}; {}{}", NameOf(device), call.ToString(),
                  tried.empty() ? "the operator has none at all" : "there are:", tried);
}

}  // namespace capstan
