// For tests of checkpoints: scratch folders, small groups of tensors that tell their iteration.
// Belongs to one thread.
//
//   const ScratchFolder scratch;
//   const Tensors tensors(iteration);
//   store->Save(StateOf(iteration), tensors.groups());
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/checkpoint_store.h"

namespace capstan {

// An empty folder that goes with the test.
class ScratchFolder {
 public:
  ScratchFolder() : path_(testing::TempDir() + "capstan_checkpoint_XXXXXX") {
    CHECK(mkdtemp(path_.data()) != nullptr) << path_;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { (void)RemoveTree(path_); }

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::vector<std::string> NamesIn(const std::string& folder) {
  auto names = ListFolder(folder);
  CHECK_OK(names);
  return *std::move(names);
}

inline std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void Spill(const std::string& path, const std::string& bytes) {
  // Some file systems wait for the disk when a file is emptied and written again.
  std::remove(path.c_str());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  CHECK(file.good()) << path;
}

// Weights and moments whose every element is the iteration.
class Tensors {
 public:
  explicit Tensors(int64_t iteration, int64_t size = 16) {
    for (int i = 0; i < 4; ++i) {
      HostTensor tensor(TensorType{DType::kF32, {size, 2}});
      for (float& value : tensor.Elements<float>()) value = static_cast<float>(iteration);
      tensors_.push_back(std::move(tensor));
    }
  }
  std::vector<TensorGroup> groups() const {
    return {{"weights", {{"fc.weight", tensors_[0].view()}, {"fc.bias", tensors_[1].view()}}},
            {"optimizer",
             {{"fc.weight.moment", tensors_[2].view()}, {"fc.bias.moment", tensors_[3].view()}}}};
  }

 private:
  std::vector<HostTensor> tensors_;
};

inline TrainingState StateOf(int64_t iteration) {
  return {.iteration = iteration, .seed = 42, .job = "version: 1\nname: 简单\n"};
}

inline std::unique_ptr<CheckpointStore> StoreIn(const std::string& output_dir, int64_t keep = 3) {
  auto store = CheckpointStore::Create({.output_dir = output_dir, .keep = keep});
  CHECK_OK(store);
  return *std::move(store);
}

// Saves one that holds nothing but its iteration.
inline SavedCheckpoint SaveAt(CheckpointStore& store, int64_t iteration, bool best = false) {
  TrainingState state = StateOf(iteration);
  if (best) state.best_iteration = iteration;
  auto saved = store.Save(state, Tensors(iteration).groups());
  CHECK_OK(saved);
  return *std::move(saved);
}

// True where state and all tensors are of the reader's iteration.
inline bool IsOfOneIteration(const CheckpointReader& reader) {
  if (reader.state().iteration != reader.iteration()) return false;
  for (const std::string& group : reader.Groups()) {
    for (const std::string& name : reader.Group(group)->Names()) {
      const HostTensor tensor(*reader.Find(group, name));
      CHECK_OK(reader.Read(group, name, tensor.view()));
      for (const float value : tensor.Elements<float>()) {
        if (value != static_cast<float>(reader.iteration())) return false;
      }
    }
  }
  return reader.Groups().size() == 2;
}

}  // namespace capstan
