#include "engine/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_testing.h"

namespace capstan {
namespace {

// A file of this header and `data_bytes` zeros.
std::string FileOf(const std::string& header, size_t data_bytes) {
  const uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

std::string OpenError(const std::string& bytes) {
  const ScratchFolder scratch;
  Spill(scratch.File("t.safetensors"), bytes);
  return MessageOf(SafetensorsFile::Open(scratch.File("t.safetensors")).status());
}

HostTensor Filled(const TensorType& type, uint32_t seed) {
  HostTensor tensor(type);
  std::mt19937 random(seed);
  auto* bytes = static_cast<uint8_t*>(tensor.data());
  for (int64_t i = 0; i < type.bytes(); ++i) {
    bytes[i] = static_cast<uint8_t>(type.dtype == DType::kBool ? random() % 2 : random());
  }
  return tensor;
}

TEST(Safetensors, RoundTripOfAllDtypes) {
  const ScratchFolder scratch;
  std::vector<HostTensor> tensors;
  std::vector<NamedTensor> named;
  uint32_t seed = 0;
  for (const DType dtype : {DType::kU8, DType::kBool, DType::kF16, DType::kBF16, DType::kF32,
                            DType::kI32, DType::kF64, DType::kI64}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 5}, Shape{2, 3, 5}}) {
      tensors.push_back(Filled(TensorType{dtype, shape}, ++seed));
      named.push_back({std::string(NameOf(dtype)) + shape.ToString(), tensors.back().view()});
    }
  }
  const std::string path = scratch.File("all.safetensors");
  auto written = WriteSafetensors(path, named, {{"job", "a \"b\"\n\x01 北京"}});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, *SummarizeFile(path));

  auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata().at("job"), "a \"b\"\n\x01 北京");
  ASSERT_EQ(file->entries().size(), named.size());
  for (const NamedTensor& t : named) {
    const SafetensorsEntry* entry = file->Find(t.name);
    ASSERT_NE(entry, nullptr) << t.name;
    EXPECT_EQ(entry->type, t.tensor.type);
    EXPECT_EQ(entry->offset % SizeOf(t.tensor.type.dtype), 0) << t.name;
    const HostTensor back(entry->type);
    ASSERT_TRUE(file->Read(t.name, back.view()).ok());
    EXPECT_EQ(std::memcmp(back.data(), t.tensor.data, static_cast<size_t>(entry->type.bytes())), 0)
        << t.name;
  }
}

TEST(Safetensors, TheFormatByteForByte) {
  const ScratchFolder scratch;
  HostTensor a(TensorType{DType::kF32, {2}});
  a.Elements<float>()[1] = 1.0F;
  const std::string path = scratch.File("t.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, std::vector<NamedTensor>{{"a", a.view()}}).ok());
  std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string expected = FileOf(header, 8);
  expected[expected.size() - 2] = '\x80';
  expected[expected.size() - 1] = '\x3f';
  EXPECT_EQ(Slurp(path), expected);
}

TEST(Safetensors, MemoryFormatIsNotStored) {
  const ScratchFolder scratch;
  const TensorType plain{DType::kF32, {2, 3, 4, 5}};
  const TensorType last{DType::kF32, {2, 3, 4, 5}, MemoryFormat::kChannelsLast};
  const HostTensor a = Filled(plain, 1), b(last), c(last), d(plain);
  CopyTensor(a.view(), b.view());
  const std::string path = scratch.File("t.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, std::vector<NamedTensor>{{"x", b.view()}}).ok());
  auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file->Read("x", c.view()).ok());
  ASSERT_TRUE(file->Read("x", d.view()).ok());
  EXPECT_EQ(std::memcmp(b.data(), c.data(), static_cast<size_t>(last.bytes())), 0);
  EXPECT_EQ(std::memcmp(a.data(), d.data(), static_cast<size_t>(plain.bytes())), 0);
}

TEST(Safetensors, ReadErrorsNameTheTensor) {
  const ScratchFolder scratch;
  const HostTensor a(TensorType{DType::kF32, {2}}), b(TensorType{DType::kF64, {2}});
  const std::string path = scratch.File("t.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, std::vector<NamedTensor>{{"fc.weight", a.view()}}).ok());
  auto file = TensorFiles::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(MessageOf(file->Read("fc.wieght", a.view())),
            path + ": no tensor \"fc.wieght\" among 1; did you mean \"fc.weight\"?");
  EXPECT_EQ(MessageOf(file->Read("fc.weight", b.view())),
            path + ": tensor \"fc.weight\" is f32[2], wanted f64[2]");
}

TEST(Safetensors, WhatCannotBeWrittenIsRefused) {
  const ScratchFolder scratch;
  const std::string path = scratch.File("t.safetensors");
  const HostTensor a(TensorType{DType::kF32, {2}}), opaque(TensorType{DType::kOpaque, {2}});
  const auto error = [&path](const std::vector<NamedTensor>& tensors) {
    const std::string message = MessageOf(WriteSafetensors(path, tensors).status());
    EXPECT_FALSE(NameExists(path));
    EXPECT_FALSE(NameExists(path + ".part"));
    return message.substr(0, message.find('\n'));
  };
  EXPECT_EQ(error({{"a", a.view()}, {"a", a.view()}}), "two tensors named \"a\"");
  EXPECT_EQ(error({{"", a.view()}}), "\"\" cannot be the name of a stored tensor");
  EXPECT_EQ(error({{"__metadata__", a.view()}}),
            "\"__metadata__\" cannot be the name of a stored tensor");
  EXPECT_NE(error({{"\xff", a.view()}}), "");
  EXPECT_EQ(error({{"o", opaque.view()}}),
            "tensor \"o\" is opaque: only the kernel that wrote it can read it");
}

TEST(Safetensors, FullDiskIsAClearError) {
  if (!NameExists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  auto file = OutputFile::Create("/dev/full");
  ASSERT_TRUE(file.ok());
  const HostTensor a(TensorType{DType::kF32, {1 << 20}});
  const absl::Status status = WriteSafetensorsTo(*file, std::vector<NamedTensor>{{"a", a.view()}});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), "write /dev/full: No space left on device");
}

TEST(Safetensors, MalformedHeaders) {
  const auto contains = [](const std::string& bytes, const std::string& expected) {
    const std::string message = OpenError(bytes);
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_NE(message.find("t.safetensors"), std::string::npos) << message;
  };
  const auto f32 = [](const std::string& name, int begin, int end) {
    return "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  contains("", "it has 0 bytes");
  contains("1234567", "it has 7 bytes");
  contains(std::string(8, '\xff') + "{}", "its header claims 18446744073709551615 bytes but 2");
  contains(FileOf("{}", 0).substr(0, 9), "its header claims 2 bytes but 1");
  contains(FileOf("", 0), "does not begin with '{'");
  contains(FileOf(" {}", 0), "does not begin with '{'");
  contains(FileOf("{", 0), "not valid JSON");
  contains(FileOf("{}}", 0), "not valid JSON");
  contains(FileOf("{\"a\xff\":1}", 0), "not valid JSON");
  contains(FileOf("{}", 1), "bytes too many");
  contains(FileOf("{\"a\":1}", 0), "the number 1 is not expected at the key \"a\"");
  contains(FileOf("{\"a\":{}}", 0), "tensor \"a\" has no dtype");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\"}}", 0), "has no shape");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 0), "has no data_offsets");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4),
           "needs two");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4),
           "more than two");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4),
           "the number -1");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4),
           "the number 1.5");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[[1]],\"data_offsets\":[0,4]}}", 4),
           "a list is not expected");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],"
                  "\"data_offsets\":[0,0]}}",
                  0),
           "tensor \"a\" of F32[4294967296,4294967296] cannot have 0 bytes");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],"
                  "\"data_offsets\":[0,4]}}",
                  4),
           "the number 99999999999999999999");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4),
           "ends at 0 before it begins at 4");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4),
           "unknown key \"x\"");
  contains(FileOf("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],"
                  "\"data_offsets\":[0,4]}}",
                  4),
           "the key \"dtype\" occurs twice");
  contains(FileOf("{" + f32("a", 0, 4) + "," + f32("a", 4, 8) + "}", 8),
           "the key \"a\" occurs twice");
  contains(FileOf("{" + f32("a", 0, 4) + "," + f32("b", 0, 4) + "}", 4), "an overlap");
  contains(FileOf("{" + f32("a", 0, 4) + "," + f32("b", 8, 12) + "}", 12), "a hole");
  contains(FileOf("{" + f32("a", 0, 4) + "," + f32("b", 4, 8) + "}", 7), "is truncated");
  contains(FileOf("{" + f32("a", 0, 4) + "," + f32("b", 4, 8) + "}", 9), "bytes too many");
  contains(FileOf("{\"__metadata__\":{\"a\":1}}", 0), "the number 1");
  contains(FileOf("{\"__metadata__\":{\"a\":{}}}", 0), "a map is not expected");
  EXPECT_EQ(OpenError(FileOf("{" + f32("b", 4, 8) + "," + f32("a", 0, 4) + "}   ", 8)), "");
}

TEST(Safetensors, ForeignTensorsAreListedButNotRead) {
  const ScratchFolder scratch;
  const std::string path = scratch.File("t.safetensors");
  Spill(path, FileOf("{\"a\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]},"
                     "\"b\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],"
                     "\"data_offsets\":[4,8]},"
                     "\"c\":{\"dtype\":\"X9\",\"shape\":[7],\"data_offsets\":[8,9]},"
                     "\"d\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[9,10]}}",
                     9) +
                  "\x02");
  auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const HostTensor to(TensorType{DType::kF32, {1}}), flag(TensorType{DType::kBool, {1}});
  const auto error = [&](const char* name) { return MessageOf(file->Read(name, to.view())); };
  EXPECT_EQ(error("a"), path + ": tensor \"a\" cannot be read: its dtype I16 is not supported");
  EXPECT_EQ(error("b"), path + ": tensor \"b\" cannot be read: it has 9 dimensions, more than 8");
  EXPECT_EQ(error("c"), path + ": tensor \"c\" cannot be read: its dtype \"X9\" is unknown");
  EXPECT_EQ(MessageOf(file->Read("d", flag.view())),
            path + ": the bool tensor \"d\" holds the value 2");
}

TEST(Safetensors, AFileThatShrinksIsAnError) {
  const ScratchFolder scratch;
  const std::string path = scratch.File("t.safetensors");
  const HostTensor a(TensorType{DType::kF32, {1000}});
  ASSERT_TRUE(WriteSafetensors(path, std::vector<NamedTensor>{{"a", a.view()}}).ok());
  auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(truncate(path.c_str(), 1000), 0);
  EXPECT_EQ(file->Read("a", a.view()).code(), absl::StatusCode::kDataLoss);
}

TEST(Safetensors, IndexFiles) {
  const ScratchFolder scratch;
  const HostTensor a = Filled({DType::kF32, {2}}, 1), b = Filled({DType::kF32, {3}}, 2);
  ASSERT_TRUE(
      WriteSafetensors(scratch.File("1.safetensors"), std::vector<NamedTensor>{{"a", a.view()}})
          .ok());
  ASSERT_TRUE(
      WriteSafetensors(scratch.File("2.safetensors"), std::vector<NamedTensor>{{"b", b.view()}})
          .ok());
  const std::string index = scratch.File("w.safetensors.index.json");
  Spill(index, R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})");
  auto files = TensorFiles::Open(index);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->Names(), (std::vector<std::string>{"a", "b"}));
  const HostTensor back(b.type());
  ASSERT_TRUE(files->Read("b", back.view()).ok());
  EXPECT_EQ(std::memcmp(back.data(), b.data(), 12), 0);
  for (const char* bad : {"", "[]", "{}", R"({"weight_map": 1})", R"({"weight_map": {"a": 1}})",
                          R"({"weight_map": {"a": "../1.safetensors"}})",
                          R"({"weight_map": {"a": "3.safetensors"}})"}) {
    Spill(index, bad);
    EXPECT_FALSE(TensorFiles::Open(index).ok()) << bad;
  }

  // Lists in lists are dropped as they come, and many names take no quadratic time.
  const std::string deep(5'000'000, '[');
  Spill(index, "{\"x\": " + deep + std::string(deep.size(), ']') +
                   R"(, "weight_map": {"a": "1.safetensors"}})");
  EXPECT_TRUE(TensorFiles::Open(index).ok());
  std::string many = R"({"weight_map": {"a": "1.safetensors")";
  for (int i = 0; i < 300'000; ++i) many += fmt::format(R"(, "t{}": "1.safetensors")", i);
  Spill(index, many + "}}");
  EXPECT_TRUE(TensorFiles::Open(index).ok());
}

// Random changes of a good file: an error or a file whose tensors can be read, never a crash.
TEST(Safetensors, RandomHeadersNeverCrash) {
  const ScratchFolder scratch;
  const std::string path = scratch.File("t.safetensors");
  const HostTensor a = Filled({DType::kF32, {2, 3}}, 1), b = Filled({DType::kBool, {4}}, 2);
  ASSERT_TRUE(WriteSafetensors(path, std::vector<NamedTensor>{{"a", a.view()}, {"b", b.view()}},
                               {{"k", "v"}})
                  .ok());
  const std::string good = Slurp(path);
  std::mt19937 random(7);
  const std::string alphabet = "{}[]\",:0123456789-.eF32BOOL\\u\xff ";
  int opened = 0;
  for (int round = 0; round < 8000; ++round) {
    std::string bytes = good;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % (bytes.size() + 1);
      const char c =
          random() % 2 ? alphabet[random() % alphabet.size()] : static_cast<char>(random());
      switch (random() % 4) {
        case 0:
          bytes.insert(at, 1, c);
          break;
        case 1:
          bytes.erase(std::min(at, bytes.size()), 1 + random() % 8);
          break;
        case 2:
          bytes.insert(at, bytes.substr(random() % (bytes.size() + 1), random() % 30));
          break;
        default:
          if (at < bytes.size()) bytes[at] = c;
      }
      // Often keep the header's length right, so that more than the first check is tried.
      if (bytes.size() > 36 && random() % 2) {
        const uint64_t size = bytes.size() - 36;
        std::memcpy(bytes.data(), &size, 8);
      }
    }
    Spill(path, bytes);
    const auto file = SafetensorsFile::Open(path);
    if (!file.ok()) {
      ASSERT_FALSE(file.status().message().empty());
      continue;
    }
    ++opened;
    for (const SafetensorsEntry& entry : file->entries()) {
      if (!entry.unreadable.empty()) continue;
      ASSERT_LE(entry.bytes, bytes.size());
      const HostTensor to(entry.type);
      const absl::Status status = file->Read(entry.name, to.view());
      ASSERT_TRUE(status.ok() || entry.type.dtype == DType::kBool) << status;
    }
  }
  EXPECT_GT(opened, 40);
}

}  // namespace
}  // namespace capstan
