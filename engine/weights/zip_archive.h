// ZipArchive: the directory of a ZIP file (PKWARE APPNOTE 6.3; ZIP64 too), as torch.save writes it.
// Entries must be stored, as PyTorch stores them: a compressed or encrypted one is an error when it
// is asked for.
//
// An archive that opens has a sound directory; `Find` gives ranges that lie within the file.
// Immutable: safe from any thread.
//
//   ASSIGN_OR_RETURN(const ZipArchive zip, ZipArchive::Open(source));
//   ASSIGN_OR_RETURN(const ByteRange range, zip.Find("archive/data.pkl"));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/weights/byte_source.h"

namespace capstan {

class ZipArchive {
 public:
  static absl::StatusOr<ZipArchive> Open(std::shared_ptr<const ByteSource> source);

  bool Has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  // The first name, by bytes, that ends so; empty where none does.
  std::string NameEndingWith(std::string_view suffix) const;
  // Where the bytes of an entry lie. NotFound; InvalidArgument where they are compressed.
  absl::StatusOr<ByteRange> Find(std::string_view name) const;

 private:
  struct Entry {
    uint64_t header = 0;  // offset of the local header
    uint64_t bytes = 0;
    std::string unreadable;  // why; empty: stored as it is
  };

  std::shared_ptr<const ByteSource> source_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace capstan
