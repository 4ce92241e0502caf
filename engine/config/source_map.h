// Where each value of a job was written, by its dotted path. Filled while the job is read and kept
// with it, so that any later layer can say which line a value came from.
//
//   sources.Where("dataset.train.root");           // "job.yaml:4:31"
//   sources.Where("dataset.train.drop_last");      // not written: where dataset.train is
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "engine/config/diagnostics.h"

namespace capstan {

class SourceMap {
 public:
  void Set(std::string path, Position at) { places_[std::move(path)] = std::move(at); }

  // True if the job gives this value itself.
  bool Has(std::string_view path) const { return places_.find(path) != places_.end(); }
  // The place of the value, or of the nearest part around it that was written.
  Position Find(std::string_view path) const;
  std::string Where(std::string_view path) const { return Find(path).ToString(); }

 private:
  std::map<std::string, Position, std::less<>> places_;
};

}  // namespace capstan
