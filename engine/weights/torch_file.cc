#include "engine/weights/torch_file.h"

#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/weights/state_dict.h"
#include "engine/weights/zip_archive.h"

namespace capstan {
namespace {

// 0x1950a86a20f9469cfc6c, as a pickled long integer has it.
constexpr char kOldMagic[] = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr size_t kOldMagicBytes = sizeof(kOldMagic) - 1;

// Gives each tensor the bytes of its storage: `find` knows where those are.
absl::StatusOr<std::vector<StoredTensor>> Place(
    const ByteSource& source, const Pickle& pickle,
    const std::function<absl::StatusOr<ByteRange>(const std::string& key)>& find) {
  ASSIGN_OR_RETURN(const std::vector<NamedPickleTensor> named, TensorsOf(pickle, source));
  std::vector<StoredTensor> tensors;
  for (const NamedPickleTensor& n : named) {
    StoredTensor& tensor = tensors.emplace_back(n.tensor->tensor);
    tensor.name = n.name;
    if (n.tensor->storage < 0) continue;  // an array of NumPy, with its own bytes
    const PickleStorage& storage = pickle.storages()[static_cast<size_t>(n.tensor->storage)];
    ASSIGN_OR_RETURN(tensor.data, find(storage.key));
    if (static_cast<uint64_t>(storage.count) > tensor.data.size / storage.element->size) {
      return DataLoss("{}: tensor {} needs a storage of {} elements, but there are {} bytes of it",
                      source.name(), Quote(tensor.name), storage.count, tensor.data.size);
    }
  }
  return tensors;
}

}  // namespace

absl::StatusOr<std::vector<StoredTensor>> ReadTorchZip(
    const std::shared_ptr<const ByteSource>& source) {
  ASSIGN_OR_RETURN(const ZipArchive zip, ZipArchive::Open(source));
  const std::string pickle_name = zip.NameEndingWith("/data.pkl");
  if (pickle_name.empty()) {
    return InvalidArgument(
        "{}: a ZIP file, but not one of torch.save: it has no data.pkl; wanted are safetensors, "
        ".pth, .pt or .pdparams",
        source->name());
  }
  const std::string folder = pickle_name.substr(0, pickle_name.size() - 8);
  if (zip.Has(folder + "constants.pkl")) {
    return InvalidArgument(
        "{}: a TorchScript program, not weights; in PyTorch: torch.save(torch.jit.load(path)"
        ".state_dict(), \"x.pth\")",
        source->name());
  }
  if (zip.Has(folder + "byteorder")) {
    ASSIGN_OR_RETURN(const ByteRange range, zip.Find(folder + "byteorder"));
    ASSIGN_OR_RETURN(const std::string order,
                     ReadText(*source, {range.offset, std::min<uint64_t>(range.size, 16)}));
    if (order != "little") {
      return InvalidArgument("{}: its byte order is {}; only little is read", source->name(),
                             Quote(order));
    }
  }
  ASSIGN_OR_RETURN(const ByteRange range, zip.Find(pickle_name));
  ASSIGN_OR_RETURN(const Pickle pickle, Pickle::Read(*source, range));
  return Place(*source, pickle,
               [&](const std::string& key) { return zip.Find(folder + "data/" + key); });
}

bool OpensOldTorchFile(const ByteSource& source, const Pickle& first) {
  if (first.root().kind != PickleKind::kBytes || first.root().range.size != kOldMagicBytes) {
    return false;
  }
  const absl::StatusOr<std::string> magic = ReadText(source, first.root().range);
  return magic.ok() && std::memcmp(magic->data(), kOldMagic, kOldMagicBytes) == 0;
}

absl::StatusOr<std::vector<StoredTensor>> ReadOldTorchFile(const ByteSource& source,
                                                           const Pickle& first) {
  // Five pickles: magic, version, system, the object, the keys of its storages; then for each key
  // the number of elements and the elements.
  uint64_t at = first.end();
  const auto next = [&]() -> absl::StatusOr<Pickle> {
    ASSIGN_OR_RETURN(Pickle pickle, Pickle::Read(source, {at, source.size() - at}));
    at = pickle.end();
    return pickle;
  };
  for (const char* skipped : {"version", "system"}) {
    RETURN_IF_ERROR(next().status(), "while reading the {}", skipped);
  }
  ASSIGN_OR_RETURN(const Pickle object, next());
  ASSIGN_OR_RETURN(const Pickle keys, next(), "while reading the list of storages");

  std::unordered_map<std::string, size_t> element_bytes;
  for (const PickleStorage& s : object.storages()) element_bytes[s.key] = s.element->size;
  std::unordered_map<std::string, ByteRange> places;
  for (const PickleId id : keys.root().items) {
    ASSIGN_OR_RETURN(const std::string key, keys.TextOf(keys.at(id)));
    int64_t count = 0;
    RETURN_IF_ERROR(source.Read(at, &count, sizeof(count)));
    at += sizeof(count);
    const auto size = element_bytes.find(key);
    if (size == element_bytes.end() || count < 0 ||
        static_cast<uint64_t>(count) > (source.size() - at) / size->second) {
      return DataLoss(
          "{}: at byte {} a storage of {} elements is due, but {} bytes are left; it "
          "is truncated",
          source.name(), at, count, source.size() - at);
    }
    places[key] = {at, static_cast<uint64_t>(count) * size->second};
    at += places[key].size;
  }
  return Place(source, object, [&](const std::string& key) -> absl::StatusOr<ByteRange> {
    const auto it = places.find(key);
    if (it == places.end()) return DataLoss("{}: its storage {} is missing", source.name(), key);
    return it->second;
  });
}

}  // namespace capstan
