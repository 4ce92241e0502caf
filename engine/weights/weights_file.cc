#include "engine/weights/weights_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/checkpoint/file_io.h"
#include "engine/tensor/half.h"
#include "engine/weights/pickle.h"
#include "engine/weights/state_dict.h"
#include "engine/weights/torch_file.h"

namespace capstan {
namespace {

// The bytes of `data`, from byte `skip` of what they stand for, `size` of them.
absl::Status ReadBytes(const ByteSource& source, const StoredTensor& tensor, uint64_t skip,
                       char* to, size_t size) {
  if (!tensor.latin1) return source.Read(tensor.data.offset + skip, to, size);
  // As text: 0 to 127 as they are, 128 to 255 as two bytes 110000xx 10xxxxxx.
  std::string buffer;
  uint64_t at = tensor.data.offset;
  const uint64_t end = tensor.data.offset + tensor.data.size;
  uint64_t seen = 0;
  int high = -1;
  while (at < end) {
    buffer.resize(std::min<uint64_t>(end - at, uint64_t{1} << 20));
    RETURN_IF_ERROR(source.Read(at, buffer.data(), buffer.size()));
    at += buffer.size();
    for (const char c : buffer) {
      auto byte = static_cast<uint8_t>(c);
      const bool follows = (byte & 0xc0) == 0x80;
      if (follows != (high >= 0) || (!follows && byte >= 0x80 && byte != 0xc2 && byte != 0xc3)) {
        return DataLoss("{}: the data of tensor {} are not sound", source.name(),
                        Quote(tensor.name));
      }
      if (byte >= 0xc0) {
        high = byte & 3;
        continue;
      }
      if (follows) byte = static_cast<uint8_t>(high << 6 | (byte & 0x3f));
      high = -1;
      if (seen >= skip && seen - skip < size) to[seen - skip] = static_cast<char>(byte);
      ++seen;
    }
  }
  if (high >= 0 || seen < skip + size) {
    return DataLoss("{}: tensor {} has {} bytes of data, it needs {}", source.name(),
                    Quote(tensor.name), seen, skip + size);
  }
  return absl::OkStatus();
}

// Copies the elements of a strided tensor, whose `from` begins at its first one, to row-major.
void Gather(const StoredTensor& tensor, const char* from, char* to) {
  const size_t size = tensor.element->size, ndim = tensor.dims.size();
  std::vector<int64_t> index(ndim, 0);
  int64_t at = 0;
  while (true) {
    std::memcpy(to, from + static_cast<size_t>(at) * size, size);
    to += size;
    size_t d = ndim;
    while (d-- > 0) {
      at += tensor.strides[d];
      if (++index[d] < tensor.dims[d]) break;
      at -= tensor.strides[d] * tensor.dims[d];
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

template <typename To>
absl::Status Convert(const TensorView& from, std::span<To> to) {
  const auto copy = [&](auto elements, auto&& value) {
    std::transform(elements.begin(), elements.end(), to.begin(), value);
    return absl::OkStatus();
  };
  switch (from.type.dtype) {
    case DType::kF64:
      return copy(from.Elements<double>(), [](double x) { return static_cast<To>(x); });
    case DType::kF32:
      return copy(from.Elements<float>(), [](float x) { return static_cast<To>(x); });
    case DType::kF16:
      return copy(from.Elements<Half>(), [](Half x) { return static_cast<To>(x.ToFloat()); });
    case DType::kBF16:
      return copy(from.Elements<BFloat16>(),
                  [](BFloat16 x) { return static_cast<To>(x.ToFloat()); });
    default:
      return InvalidArgument("it holds {}, not floats", NameOf(from.type.dtype));
  }
}

// The first bytes of a file, which tell what it is.
struct Head {
  std::array<char, 32> bytes{};
  size_t size = 0;
  std::string_view text() const { return {bytes.data(), size}; }
};

absl::StatusOr<Head> ReadHead(const ByteSource& source) {
  Head head;
  head.size = std::min<uint64_t>(source.size(), head.bytes.size());
  RETURN_IF_ERROR(source.Read(0, head.bytes.data(), head.size));
  return head;
}

// What a file is that holds no weights, where people meet such files; empty: no idea.
std::string KnownStranger(std::string_view head) {
  if (head.starts_with("version https://git-lfs")) {
    return "a Git LFS pointer, not the file itself; run `git lfs pull`";
  }
  if (head.starts_with("<")) return "a web page; the download went wrong";
  if (head.starts_with("\x1f\x8b")) return "packed with gzip; unpack it";
  if (head.starts_with("\x89HDF")) return "an HDF5 file; convert it to safetensors";
  return "";
}

}  // namespace

absl::StatusOr<WeightsFile> WeightsFile::Open(const std::string& path) {
  if (path.starts_with("http://") || path.starts_with("https://")) {
    return InvalidArgument("{}: nothing is downloaded; fetch the file and give its path", path);
  }
  if (!NameExists(path) && NameExists(path + ".pdparams")) return Open(path + ".pdparams");
  ASSIGN_OR_RETURN(std::shared_ptr<const ByteSource> source, OpenFileBytes(path));
  ASSIGN_OR_RETURN(const Head head, ReadHead(*source));
  const bool header = head.text().substr(std::min<size_t>(8, head.size)).starts_with('{');
  if (!header && !path.ends_with(".json")) return OpenPickled(std::move(source));

  WeightsFile file;
  file.path_ = path;
  file.format_ = "safetensors";
  ASSIGN_OR_RETURN(file.safetensors_, TensorFiles::Open(path));
  for (const SafetensorsFile& part : file.safetensors_->files()) {
    for (const SafetensorsEntry& entry : part.entries()) {
      file.entries_.push_back({entry.name, entry.type, entry.unreadable, file.entries_.size()});
    }
  }
  return file;
}

absl::StatusOr<WeightsFile> WeightsFile::OpenPickled(std::shared_ptr<const ByteSource> source) {
  WeightsFile file;
  file.path_ = source->name();
  ASSIGN_OR_RETURN(const Head head, ReadHead(*source));
  if (head.text().starts_with("PK\x03\x04")) {
    file.format_ = "PyTorch";
    ASSIGN_OR_RETURN(file.stored_, ReadTorchZip(source));
  } else if (head.text().starts_with('\x80')) {
    ASSIGN_OR_RETURN(const Pickle first, Pickle::Read(*source, {0, source->size()}));
    const bool torch = OpensOldTorchFile(*source, first);
    file.format_ = torch ? "PyTorch" : "PaddlePaddle";
    ASSIGN_OR_RETURN(file.stored_,
                     torch ? ReadOldTorchFile(*source, first) : ReadPaddleFile(*source, first));
  } else if (const std::string what = KnownStranger(head.text()); !what.empty()) {
    return InvalidArgument("{}: {}", source->name(), what);
  } else {
    return InvalidArgument(
        "{}: its first bytes are of no format that is known (it may be cut off); wanted are "
        "safetensors, .pth or .pt of torch.save, or .pdparams of paddle.save",
        source->name());
  }
  for (const StoredTensor& tensor : file.stored_) {
    WeightEntry& entry = file.entries_.emplace_back();
    entry.name = tensor.name;
    entry.index = file.entries_.size() - 1;
    if (tensor.element == nullptr || !tensor.element->dtype.has_value()) {
      entry.unreadable = "its element type is not supported";
    } else if (tensor.dims.size() > static_cast<size_t>(Shape::kMaxNdim)) {
      entry.unreadable =
          fmt::format("it has {} dimensions, more than {}", tensor.dims.size(), Shape::kMaxNdim);
    } else {
      entry.type = {*tensor.element->dtype, Shape(tensor.dims)};
      // Stride 0 repeats elements: a few bytes may claim to be terabytes.
      if (static_cast<uint64_t>(entry.type.bytes()) > source->size()) {
        entry.unreadable = fmt::format(
            "{} is expanded from fewer elements than it has, and larger "
            "than the file",
            entry.type.ToString());
      }
    }
  }
  file.source_ = std::move(source);
  return file;
}

absl::StatusOr<HostTensor> WeightsFile::ReadAsStored(const WeightEntry& entry) const {
  HostTensor raw(entry.type);
  if (safetensors_.has_value()) {
    RETURN_IF_ERROR(safetensors_->Read(entry.name, raw.view()));
    return raw;
  }
  const StoredTensor& tensor = stored_[entry.index];
  if (raw.type().count() == 0) return raw;
  const std::optional<int64_t> reach = ReachOf(tensor);
  CHECK(reach.has_value()) << "checked while opening";
  const size_t element = tensor.element->size;
  const uint64_t skip = static_cast<uint64_t>(tensor.start) * element;
  const size_t bytes = static_cast<size_t>(*reach - tensor.start) * element;
  auto* to = static_cast<char*>(raw.data());
  if (tensor.strides == RowMajorStrides(tensor.dims)) {
    RETURN_IF_ERROR(ReadBytes(*source_, tensor, skip, to, bytes));
    return raw;
  }
  std::string strided(bytes, '\0');
  RETURN_IF_ERROR(ReadBytes(*source_, tensor, skip, strided.data(), bytes));
  Gather(tensor, strided.data(), to);
  return raw;
}

absl::Status WeightsFile::Read(const WeightEntry& entry, const TensorView& to) const {
  if (!entry.unreadable.empty()) {
    return InvalidArgument("{}: tensor {} cannot be read: {}", path_, Quote(entry.name),
                           entry.unreadable);
  }
  CHECK(entry.type.shape == to.type.shape && to.type.format == MemoryFormat::kPlain);
  if (!IsFloat(entry.type.dtype)) {
    return InvalidArgument("{}: tensor {} is {}, wanted are floats", path_, Quote(entry.name),
                           entry.type.ToString());
  }
  ASSIGN_OR_RETURN(const HostTensor raw, ReadAsStored(entry));
  return to.type.dtype == DType::kF64 ? Convert(raw.view(), to.Elements<double>())
                                      : Convert(raw.view(), to.Elements<float>());
}

}  // namespace capstan
