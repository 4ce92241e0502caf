#include "engine/weights/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace capstan {
namespace {

using ::testing::HasSubstr;
using namespace std::string_view_literals;

// The source lives on: a Pickle reads texts from it.
struct Unpickled {
  std::string bytes;
  std::shared_ptr<const ByteSource> source;
  absl::StatusOr<Pickle> pickle;

  explicit Unpickled(std::string_view text)
      : bytes(text),
        source(MemoryBytes("x.pkl", bytes)),
        pickle(Pickle::Read(*source, {0, bytes.size()})) {}
  std::string error() const { return MessageOf(pickle.status()); }
  const PickleObject& item(size_t i) const { return pickle->at(pickle->root().items[i]); }
};

// What pickle.dumps({"a": (1, -2, 300, None, True)}, protocol=2) gives.
TEST(Pickle, Protocol2Values) {
  const Unpickled p("\x80\x02}q\0X\1\0\0\0aq\1(K\1J\xfe\xff\xff\xffM\x2c\1N\x88tq\2s."sv);
  ASSERT_TRUE(p.pickle.ok()) << p.error();
  ASSERT_EQ(p.pickle->root().kind, PickleKind::kDict);
  ASSERT_EQ(p.pickle->root().items.size(), 2u);
  EXPECT_EQ(*p.pickle->TextOf(p.item(0)), "a");
  const PickleObject& tuple = p.item(1);
  ASSERT_EQ(tuple.items.size(), 5u);
  EXPECT_EQ(p.pickle->at(tuple.items[0]).number, 1);
  EXPECT_EQ(p.pickle->at(tuple.items[1]).number, -2);
  EXPECT_EQ(p.pickle->at(tuple.items[2]).number, 300);
  EXPECT_EQ(p.pickle->at(tuple.items[3]).kind, PickleKind::kNone);
  EXPECT_EQ(p.pickle->at(tuple.items[4]).number, 1);
  EXPECT_EQ(p.pickle->end(), p.bytes.size());
}

// Frames, memoized short texts, appended lists: pickle.dumps(["ab", "ab"], protocol=4).
TEST(Pickle, Protocol4) {
  const Unpickled p("\x80\4\x95\x0c\0\0\0\0\0\0\0]\x94(\x8c\2ab\x94h\1e."sv);
  ASSERT_TRUE(p.pickle.ok()) << p.error();
  ASSERT_EQ(p.pickle->root().items.size(), 2u);
  EXPECT_EQ(p.pickle->root().items[0], p.pickle->root().items[1]);
  EXPECT_EQ(*p.pickle->TextOf(p.item(0)), "ab");
}

TEST(Pickle, LongIntegers) {
  const Unpickled p("\x80\2(\x8a\0\x8a\1\xff\x8a\2\0\x80\x8a\x08\1\0\0\0\0\0\0\x80t."sv);
  ASSERT_TRUE(p.pickle.ok()) << p.error();
  EXPECT_EQ(p.item(0).number, 0);
  EXPECT_EQ(p.item(1).number, -1);
  EXPECT_EQ(p.item(2).number, -32768);
  EXPECT_EQ(p.item(3).number, INT64_MIN + 1);
}

// An array of two floats as NumPy writes it under protocol 2: bytes as latin-1 text.
TEST(Pickle, NumpyArray) {
  const Unpickled p(
      "\x80\2cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R"
      "(K\1K\2\x85"
      "cnumpy\ndtype\nX\2\0\0\0f4K\0K\1\x87R(K\3X\1\0\0\0<NNNJ\xff\xff\xff\xff"
      "J\xff\xff\xff\xffK\0tb\x89"
      "c_codecs\nencode\nX\x0a\0\0\0\0\0\xc2\x80?\0\0\0\xc3\x80X\6\0\0\0"
      "latin1\x86Rtb."sv);
  ASSERT_TRUE(p.pickle.ok()) << p.error();
  ASSERT_EQ(p.pickle->root().kind, PickleKind::kTensor);
  const StoredTensor& tensor = p.pickle->tensors()[0].tensor;
  EXPECT_EQ(tensor.dims, std::vector<int64_t>{2});
  EXPECT_EQ(tensor.element->dtype, DType::kF32);
  EXPECT_TRUE(tensor.latin1);
  EXPECT_EQ(tensor.data.size, 10u);
}

struct BadCase {
  const char* name;
  std::string_view bytes;
  const char* message;
};
const BadCase kBad[] = {
    {"Empty", "", "cut off"},
    {"NoStop", "\x80\2}"sv, "cut off"},
    {"OldOpcode", "\x80\2I1\n."sv, "at byte 2, there is the opcode 0x49 ('I'), which"},
    {"UnknownOpcode", "\x80\2\xff."sv, "opcode 0xff"},
    {"NewProtocol", "\x80\x7f}."sv, "protocol 127"},
    {"System", "\x80\2cos\nsystem\nX\4\0\0\0true\x85R."sv,
     "at byte 2 its pickle names \"os.system\""},
    {"SystemByStack", "\x80\4\x8c\5posix\x8c\6system\x93)R."sv, "\"posix.system\""},
    {"Eval", "\x80\2c__builtin__\neval\n."sv, "\"__builtin__.eval\""},
    {"StorageIsCalled",
     "\x80\2"
     "ctorch\nFloatStorage\n)R."sv,
     "torch.FloatStorage is called"},
    {"TextIsCalled", "\x80\2X\1\0\0\0a)R."sv, "not a name"},
    {"HugeText",
     "\x80\2\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"
     "a."sv,
     "cut off"},
    {"LongTextCutOff",
     "\x80\2X\xff\xff\xff\x7f"
     "abc."sv,
     "cut off"},
    {"EmptyStack", "\x80\2R."sv, "there is none"},
    {"NoMark", "\x80\2t."sv, "a mark is due"},
    {"BelowMark", "\x80\2}(s."sv, "there is none"},
    {"NothingKept", "\x80\2h\7."sv, "the object 7"},
    {"OddDictionary", "\x80\2(K\1d."sv, "a key has no value"},
    {"ListIsNoDictionary", "\x80\2]K\1K\2s."sv, "no dictionary"},
    {"TwoRoots", "\x80\2K\1K\2."sv, "2 objects"},
    {"StateOfANumber", "\x80\2K\1}b."sv, "a state"},
    {"BadStorage", "\x80\2(X\7\0\0\0storageK\1K\1K\1K\1tQ."sv, "as PyTorch does"},
    {"StorageIsNoTensor",
     "\x80\2"
     "ctorch._utils\n_rebuild_tensor_v2\n(K\1K\0))tR."sv,
     "as PyTorch does"},
    {"Utf16",
     "\x80\2"
     "c_codecs\nencode\nX\1\0\0\0aX\5\0\0\0utf16\x86R."sv,
     "not as latin1"},
};

class BadPickle : public ::testing::TestWithParam<BadCase> {};
TEST_P(BadPickle, IsAnErrorWithItsPlace) {
  const Unpickled p(GetParam().bytes);
  EXPECT_FALSE(p.pickle.ok());
  EXPECT_THAT(p.error(), HasSubstr("x.pkl"));
  EXPECT_THAT(p.error(), HasSubstr("at byte"));
  EXPECT_THAT(p.error(), HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(All, BadPickle, ::testing::ValuesIn(kBad),
                         [](const auto& info) { return std::string(info.param.name); });

// A tensor of a storage of `count` elements with these sizes and strides (one byte each).
std::string TensorPickle(int count, int start, std::string_view sizes, std::string_view strides) {
  std::string text(
      "\x80\2"
      "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
      "ctorch\nFloatStorage\nX\1\0\0\0"
      "0X\3\0\0\0cpuK"sv);
  text += static_cast<char>(count);
  text += "tQK";
  text += static_cast<char>(start);
  for (const std::string_view list : {sizes, strides}) {
    text += '(';
    for (const char c : list) text += std::string("K") + c;
    text += 't';
  }
  return text + std::string("\x89NtR.");
}

TEST(Pickle, TensorsStayWithinTheirStorage) {
  EXPECT_TRUE(Unpickled(TensorPickle(6, 0, "\2\3"sv, "\3\1"sv)).pickle.ok());
  EXPECT_TRUE(Unpickled(TensorPickle(6, 1, "\2\2"sv, "\3\1"sv)).pickle.ok());
  EXPECT_TRUE(Unpickled(TensorPickle(1, 0, "\2\2"sv, "\0\0"sv)).pickle.ok());  // expanded
  EXPECT_TRUE(Unpickled(TensorPickle(6, 6, "\0\3"sv, "\3\1"sv)).pickle.ok());  // empty
  EXPECT_THAT(Unpickled(TensorPickle(5, 0, "\2\3"sv, "\3\1"sv)).error(), HasSubstr("5 elements"));
  EXPECT_THAT(Unpickled(TensorPickle(6, 1, "\2\3"sv, "\3\1"sv)).error(), HasSubstr("6 elements"));
  EXPECT_THAT(Unpickled(TensorPickle(6, 0, "\6"sv, "\2"sv)).error(), HasSubstr("beyond"));
  EXPECT_THAT(Unpickled(TensorPickle(6, 0, "\6"sv, "\1\1"sv)).error(), HasSubstr("do not match"));
}

TEST(Pickle, MemoryIsLimited) {
  // 3 million numbers, of one object each.
  std::string numbers("\x80\2(");
  numbers += std::string(3'000'000, 'N') + "l.";
  EXPECT_THAT(Unpickled(numbers).error(), HasSubstr("objects"));
  // One object, again and again.
  std::string copies("\x80\2N");
  copies += std::string(9'000'000, '2') + ".";
  EXPECT_THAT(Unpickled(copies).error(), HasSubstr("references"));
  // A tensor of 16 dimensions, four bytes each time.
  const std::string dims(16, '\1');
  std::string tensors = TensorPickle(1, 0, dims, dims);
  tensors.erase(tensors.size() - 2);  // the function and its arguments are on the stack
  tensors += "q\1\x30q\0\x30"sv;
  for (int i = 0; i < 300'000; ++i) tensors += "h\0h\1R0"sv;
  EXPECT_THAT(Unpickled(tensors + ".").error(), HasSubstr("references"));
  // A storage with a long key, three bytes each time.
  std::string storages("\x80\2(X\7\0\0\0storagectorch\nFloatStorage\nX\x00\x10\0\0"sv);
  storages += std::string(4096, 'k') + std::string("NK\1tq\0"sv);
  for (int i = 0; i < 1000; ++i) storages += "Q0h\0"sv;
  EXPECT_THAT(Unpickled(storages + ".").error(), HasSubstr("key of a storage has 4096 bytes"));
}

// Work that grows with the square of the file's size would be no crash, but no answer either.
TEST(Pickle, CallsHaveFewArguments) {
  std::string calls("\x80\2cargparse\nNamespace\nq\0("sv);
  calls += std::string(500'000, 'N') + "tq\1";
  for (int i = 0; i < 500'000; ++i) calls += "h\0h\1R0"sv;
  EXPECT_THAT(Unpickled(calls + ".").error(), HasSubstr("a call has 500000 arguments"));
}

}  // namespace
}  // namespace capstan
