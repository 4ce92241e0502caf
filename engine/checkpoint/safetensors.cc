#include "engine/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

// The limit of the reference implementation.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr uint64_t kMaxIndexBytes = 64'000'000;
constexpr int kIndexDepth = 2;  // of the names in {"weight_map": {name: file}}

struct DtypeRow {
  const char* name;
  uint64_t size;
  std::optional<DType> dtype;  // none: known to the format, not to us
};

constexpr DtypeRow kDtypes[] = {
    {"F64", 8, DType::kF64}, {"F32", 4, DType::kF32},
    {"F16", 2, DType::kF16}, {"BF16", 2, DType::kBF16},
    {"I64", 8, DType::kI64}, {"I32", 4, DType::kI32},
    {"U8", 1, DType::kU8},   {"BOOL", 1, DType::kBool},
    {"I8", 1, {}},           {"I16", 2, {}},
    {"U16", 2, {}},          {"U32", 4, {}},
    {"U64", 8, {}},          {"F8_E4M3", 1, {}},
    {"F8_E5M2", 1, {}},
};

const DtypeRow* DtypeRowOf(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// Receives the header's JSON as events: keeps the order, sees duplicate keys, and builds nothing
// but the entries. Offsets are those of the header, from the start of the data.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string error;

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("true or false"); }
  bool number_integer(number_integer_t value) override {
    return Unexpected(fmt::format("the number {}", value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      if (value > static_cast<uint64_t>(INT64_MAX)) {
        return Fail("tensor {} has the size {}", Quote(entries.back().name), value);
      }
      entries.back().dims.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ == Place::kOffsets) {
      if (offsets_seen_ == 2) {
        return Fail("tensor {} has more than two data_offsets", Quote(entries.back().name));
      }
      (offsets_seen_ == 0 ? entries.back().offset : end_) = value;
      ++offsets_seen_;
      return true;
    }
    return Unexpected(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected("the number " + text);
  }
  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      metadata[key_] = std::move(value);
      return true;
    }
    if (place_ == Place::kTensor && key_ == "dtype") {
      entries.back().dtype = std::move(value);
      return true;
    }
    return Unexpected("the text " + Quote(value));
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }
  bool start_object(size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kTop:
        if (key_ == "__metadata__") {
          place_ = Place::kMetadata;
        } else {
          place_ = Place::kTensor;
          entries.push_back({.name = key_});
          seen_shape_ = seen_offsets_ = false;
          end_ = 0;
        }
        keys_.clear();
        return true;
      default:
        return Unexpected("a map");
    }
  }
  bool key(string_t& value) override {
    key_ = std::move(value);
    // Duplicate tensor names would hide one of the two tensors; readers differ in which.
    const bool fresh =
        place_ == Place::kTop ? names_.insert(key_).second : keys_.insert(key_).second;
    if (!fresh) return Fail("the key {} occurs twice", Quote(key_));
    if (place_ == Place::kTensor && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
      return Fail("tensor {} has the unknown key {}", Quote(entries.back().name), Quote(key_));
    }
    return true;
  }
  bool end_object() override {
    switch (place_) {
      case Place::kTensor:
        place_ = Place::kTop;
        return EndTensor();
      case Place::kMetadata:
        place_ = Place::kTop;
        return true;
      default:
        place_ = Place::kEnd;
        return true;
    }
  }
  bool start_array(size_t) override {
    if (place_ != Place::kTensor || (key_ != "shape" && key_ != "data_offsets")) {
      return Unexpected("a list");
    }
    const bool shape = key_ == "shape";
    place_ = shape ? Place::kShape : Place::kOffsets;
    (shape ? seen_shape_ : seen_offsets_) = true;
    offsets_seen_ = 0;
    return true;
  }
  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_seen_ != 2) {
      return Fail("tensor {} needs two data_offsets", Quote(entries.back().name));
    }
    place_ = Place::kTensor;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& what) override {
    return Fail("it is not valid JSON at byte {} ({})", position, what.what());
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  template <typename... Args>
  bool Fail(fmt::format_string<Args...> format, Args&&... args) {
    error = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }
  bool Unexpected(const std::string& what) {
    if (place_ == Place::kStart) return Fail("it holds {} where a map is due", what);
    return Fail("{} is not expected at the key {}", what, Quote(key_));
  }

  bool EndTensor() {
    SafetensorsEntry& entry = entries.back();
    const std::string name = Quote(entry.name);
    if (entry.dtype.empty()) return Fail("tensor {} has no dtype", name);
    if (!seen_shape_) return Fail("tensor {} has no shape", name);
    if (!seen_offsets_) return Fail("tensor {} has no data_offsets", name);
    if (end_ < entry.offset) {
      return Fail("tensor {} ends at {} before it begins at {}", name, end_, entry.offset);
    }
    entry.bytes = end_ - entry.offset;

    const DtypeRow* row = DtypeRowOf(entry.dtype);
    if (row == nullptr) {
      entry.unreadable = fmt::format("its dtype {} is unknown", Quote(entry.dtype));
      return true;
    }
    uint64_t bytes = row->size;
    bool overflow = false;
    for (const int64_t dim : entry.dims) {
      overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes);
    }
    // A size of 0 makes the product small whatever the others are.
    overflow |= bytes > static_cast<uint64_t>(INT64_MAX);
    if (overflow || bytes != entry.bytes) {
      return Fail("tensor {} of {}[{}] cannot have {} bytes", name, entry.dtype,
                  fmt::join(entry.dims, ","), entry.bytes);
    }
    if (!row->dtype.has_value()) {
      entry.unreadable = fmt::format("its dtype {} is not supported", entry.dtype);
    } else if (entry.dims.size() > static_cast<size_t>(Shape::kMaxNdim)) {
      entry.unreadable =
          fmt::format("it has {} dimensions, more than {}", entry.dims.size(), Shape::kMaxNdim);
    } else {
      entry.type = TensorType{*row->dtype, Shape(entry.dims)};
    }
    return true;
  }

  Place place_ = Place::kStart;
  std::string key_;
  std::unordered_set<std::string> names_;  // keys of the header
  std::unordered_set<std::string> keys_;   // keys of the map inside it
  bool seen_shape_ = false, seen_offsets_ = false;
  int offsets_seen_ = 0;
  uint64_t end_ = 0;
};

// Holes and overlaps: each tensor must begin where the one before it in the data ends.
std::string CoverageError(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes) {
  std::vector<const SafetensorsEntry*> order;
  for (const SafetensorsEntry& entry : entries) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
  });
  uint64_t end = 0;
  for (const SafetensorsEntry* entry : order) {
    if (entry->offset != end) {
      return fmt::format("tensor {} begins at byte {} of the data, where {} is due ({})",
                         Quote(entry->name), entry->offset, end,
                         entry->offset < end ? "an overlap" : "a hole");
    }
    end += entry->bytes;  // cannot wrap: offset + bytes was a header number
  }
  if (end != data_bytes) {
    return fmt::format("its tensors need {} bytes of data but {} follow the header ({})", end,
                       data_bytes, end > data_bytes ? "the file is truncated" : "bytes too many");
  }
  return "";
}

template <typename... Args>
absl::Status Damaged(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
  return DataLoss("{}: not a sound safetensors file: {}; make or download it again", path,
                  fmt::format(format, std::forward<Args>(args)...));
}

absl::Status NoSuchTensor(const std::string& where, std::string_view name,
                          const std::vector<std::string>& names) {
  const std::string nearest = Nearest(name, names);
  return NotFound("{}: no tensor {} among {}{}", where, Quote(name), names.size(),
                  nearest.empty() ? "" : "; did you mean " + Quote(nearest) + "?");
}

// File names of an index, each once, in the order of the first tensor's name.
absl::StatusOr<std::vector<std::string>> ReadIndex(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxIndexBytes));
  // Not an ordered map, which takes quadratic time. Deeper values are dropped while they are read.
  const auto index = nlohmann::json::parse(
      text, [](int depth, auto, const auto&) { return depth <= kIndexDepth; },
      /*allow_exceptions=*/false);
  const auto bad = [&path](const std::string& what) {
    return DataLoss(
        "{}: not a sound safetensors index: {}; expected {{\"weight_map\": "
        "{{\"tensor\": \"file.safetensors\"}}}}",
        path, what);
  };
  if (!index.is_object()) return bad("it is not a JSON map");
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) return bad("no weight_map");
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::vector<std::string> paths;
  std::unordered_set<std::string> seen;
  for (const auto& item : map->items()) {
    if (!item.value().is_string()) return bad("the file of " + Quote(item.key()) + " is no text");
    const std::string& name = item.value().get_ref<const std::string&>();
    // A file that was downloaded must not make us open what lies elsewhere.
    if (name.empty() || name.find('/') != std::string::npos || name == "..") {
      return bad(Quote(name) + " is not the name of a file beside it");
    }
    if (seen.insert(name).second) paths.push_back(folder + name);
  }
  return paths;
}

absl::Status CheckNames(std::span<const NamedTensor> tensors) {
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& t : tensors) {
    if (t.name.empty() || t.name == "__metadata__" || !IsUtf8(t.name)) {
      return InvalidArgument("{} cannot be the name of a stored tensor", Quote(t.name));
    }
    if (!names.insert(t.name).second) return InvalidArgument("two tensors named {}", Quote(t.name));
    if (SafetensorsNameOf(t.tensor.type.dtype) == nullptr) {
      return InvalidArgument("tensor {} is opaque: only the kernel that wrote it can read it",
                             Quote(t.name));
    }
    if (t.tensor.absent()) return InvalidArgument("tensor {} has no memory", Quote(t.name));
  }
  return absl::OkStatus();
}

}  // namespace

const char* SafetensorsNameOf(DType dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.dtype == dtype) return row.name;
  }
  return nullptr;
}

bool IsUtf8(std::string_view text) {
  // Quote passes UTF-8 through and escapes what JSON forbids, so only bad UTF-8 is left to refuse.
  return nlohmann::json::accept(Quote(text));
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  uint64_t bytes = 0;
  ASSIGN_OR_RETURN(file.file_, OpenForReading(path, &bytes));
  if (bytes < 8) return Damaged(path, "it has {} bytes, the header alone needs 8", bytes);
  uint64_t header_bytes = 0;
  RETURN_IF_ERROR(ReadExactly(file.file_.get(), path, 0, &header_bytes, 8));
  if (header_bytes > bytes - 8) {
    return Damaged(path, "its header claims {} bytes but {} follow", header_bytes, bytes - 8);
  }
  if (header_bytes > kMaxHeaderBytes) {
    return Damaged(path, "its header of {} bytes is larger than {}", header_bytes, kMaxHeaderBytes);
  }
  std::string header(static_cast<size_t>(header_bytes), '\0');
  RETURN_IF_ERROR(ReadExactly(file.file_.get(), path, 8, header.data(), header.size()));

  HeaderReader reader;
  if (!header.starts_with('{')) return Damaged(path, "its header does not begin with '{{'");
  if (!nlohmann::json::sax_parse(header, &reader)) {
    return Damaged(path, "in its header, {}", reader.error);
  }
  const uint64_t data_start = 8 + header_bytes;
  const std::string coverage = CoverageError(reader.entries, bytes - data_start);
  if (!coverage.empty()) return Damaged(path, "{}", coverage);

  file.entries_ = std::move(reader.entries);
  file.metadata_ = std::move(reader.metadata);
  for (size_t i = 0; i < file.entries_.size(); ++i) {
    file.entries_[i].offset += data_start;
    file.index_[file.entries_[i].name] = i;
  }
  return file;
}

const SafetensorsEntry* SafetensorsFile::Find(std::string_view name) const {
  const auto it = index_.find(std::string(name));
  return it == index_.end() ? nullptr : &entries_[it->second];
}

absl::Status SafetensorsFile::Read(std::string_view name, const TensorView& to) const {
  const SafetensorsEntry* entry = Find(name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& e : entries_) names.push_back(e.name);
    return NoSuchTensor(path_, name, names);
  }
  if (!entry->unreadable.empty()) {
    return InvalidArgument("{}: tensor {} cannot be read: {}", path_, Quote(name),
                           entry->unreadable);
  }
  if (entry->type.dtype != to.type.dtype || entry->type.shape != to.type.shape) {
    return InvalidArgument("{}: tensor {} is {}, wanted {}", path_, Quote(name),
                           entry->type.ToString(),
                           TensorType{to.type.dtype, to.type.shape}.ToString());
  }
  const auto bytes = static_cast<size_t>(entry->bytes);
  if (!SameOrder(entry->type, to.type)) {
    const HostTensor plain(entry->type);
    RETURN_IF_ERROR(Read(name, plain.view()));
    CopyTensor(plain.view(), to);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(ReadExactly(file_.get(), path_, entry->offset, to.data, bytes));
  if (to.type.dtype == DType::kBool) {
    // A C++ bool that is neither 0 nor 1 is undefined behaviour wherever it is used.
    const auto* values = static_cast<const uint8_t*>(to.data);
    const auto* bad = std::find_if(values, values + bytes, [](uint8_t v) { return v > 1; });
    if (bad != values + bytes) {
      const int value = *bad;
      std::memset(to.data, 0, bytes);
      return DataLoss("{}: the bool tensor {} holds the value {}", path_, Quote(name), value);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorFiles> TensorFiles::Open(const std::string& path) {
  if (!path.ends_with(".json")) return OpenAll({path});
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, ReadIndex(path));
  auto files = OpenAll(paths);
  return files.ok() ? std::move(files)
                    : absl::StatusOr<TensorFiles>(
                          Annotate(files.status(), "while opening what {} lists", path));
}

absl::StatusOr<TensorFiles> TensorFiles::OpenAll(const std::vector<std::string>& paths) {
  TensorFiles all;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
    for (const SafetensorsEntry& entry : file.entries()) {
      const auto [it, fresh] = all.file_of_.emplace(entry.name, all.files_.size());
      if (!fresh) {
        return DataLoss("tensor {} is both in {} and in {}", Quote(entry.name),
                        all.files_[it->second].path(), path);
      }
    }
    all.files_.push_back(std::move(file));
  }
  return all;
}

std::vector<std::string> TensorFiles::Names() const {
  std::vector<std::string> names;
  for (const SafetensorsFile& file : files_) {
    for (const SafetensorsEntry& entry : file.entries()) names.push_back(entry.name);
  }
  return names;
}

const SafetensorsEntry* TensorFiles::Find(std::string_view name) const {
  const auto it = file_of_.find(std::string(name));
  return it == file_of_.end() ? nullptr : files_[it->second].Find(name);
}

absl::Status TensorFiles::Read(std::string_view name, const TensorView& to) const {
  const auto it = file_of_.find(std::string(name));
  if (it == file_of_.end()) {
    return NoSuchTensor(files_.empty() ? "no file" : files_.front().path(), name, Names());
  }
  return files_[it->second].Read(name, to);
}

absl::Status WriteSafetensorsTo(OutputFile& file, std::span<const NamedTensor> tensors,
                                const std::map<std::string, std::string>& metadata) {
  RETURN_IF_ERROR(CheckNames(tensors));
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&tensors](size_t a, size_t b) {
    return SizeOf(tensors[a].tensor.type.dtype) > SizeOf(tensors[b].tensor.type.dtype);
  });

  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (!IsUtf8(key) || !IsUtf8(value)) {
        return InvalidArgument("metadata {}: the text is not UTF-8", Quote(key));
      }
      if (!header.ends_with('{')) header += ",";
      header += Quote(key) + ":" + Quote(value);
    }
    header += "}";
  }
  int64_t end = 0;
  for (const size_t i : order) {
    const TensorType& type = tensors[i].tensor.type;
    const int64_t begin = end;
    end += type.bytes();
    if (header.size() > 1) header += ",";
    header += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          Quote(tensors[i].name), SafetensorsNameOf(type.dtype),
                          fmt::join(type.shape.dims(), ","), begin, end);
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  if (header.size() > kMaxHeaderBytes) {
    return InvalidArgument("{} tensors in one file: the header would be larger than {} bytes",
                           tensors.size(), kMaxHeaderBytes);
  }

  const uint64_t header_bytes = header.size();
  RETURN_IF_ERROR(file.Write(&header_bytes, 8));
  RETURN_IF_ERROR(file.Write(header));
  for (const size_t i : order) {
    const TensorView& tensor = tensors[i].tensor;
    const TensorType plain_type{tensor.type.dtype, tensor.type.shape};
    const auto bytes = static_cast<size_t>(tensor.type.bytes());
    if (bytes == 0) continue;
    if (SameOrder(tensor.type, plain_type)) {
      RETURN_IF_ERROR(file.Write(tensor.data, bytes));
    } else {
      const HostTensor plain(plain_type);
      CopyTensor(tensor, plain.view());
      RETURN_IF_ERROR(file.Write(plain.data(), bytes));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FileSummary> WriteSafetensors(const std::string& path,
                                             std::span<const NamedTensor> tensors,
                                             const std::map<std::string, std::string>& metadata) {
  const std::string part = path + ".part";
  const auto write = [&]() -> absl::StatusOr<FileSummary> {
    ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(part));
    RETURN_IF_ERROR(WriteSafetensorsTo(file, tensors, metadata));
    ASSIGN_OR_RETURN(const FileSummary summary, file.Finish());
    if (std::rename(part.c_str(), path.c_str()) != 0) {
      return WriteError(errno, "rename " + part + " to " + path);
    }
    const size_t slash = path.rfind('/');
    RETURN_IF_ERROR(SyncFolder(slash == std::string::npos ? "." : path.substr(0, slash + 1)));
    return summary;
  };
  absl::StatusOr<FileSummary> summary = write();
  if (!summary.ok()) {
    int64_t needed = 0;
    for (const NamedTensor& t : tensors) needed += t.tensor.type.bytes();
    (void)RemoveTree(part);
    return Annotate(summary.status(), "while writing {}, which needs {} bytes ({})", path, needed,
                    HumanBytes(static_cast<double>(needed)));
  }
  return summary;
}

}  // namespace capstan
