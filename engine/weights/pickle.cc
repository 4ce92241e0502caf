#include "engine/weights/pickle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

// Generous for weights (a tensor makes about 30 objects), small enough for any machine.
constexpr size_t kMaxObjects = size_t{1} << 21;
// Of four bytes each: ids on the stack and in containers, and what is larger as so many of them.
constexpr size_t kMaxHeld = size_t{1} << 23;
constexpr size_t kMemoCost = 8;
constexpr size_t kRecordCost = 64;  // a tensor or a storage
// A call copies its arguments, a name is read as often as it is used: both must be short.
constexpr size_t kMaxArguments = 16;
constexpr uint64_t kMaxNameBytes = 4096;
constexpr size_t kMaxKeyBytes = 64;
constexpr size_t kMaxNdim = 64;  // NumPy's own limit
constexpr int64_t kHighestProtocol = 5;
constexpr size_t kBufferBytes = 65'536;

}  // namespace

// The stack machine; lives as long as one read.
class PickleMachine {
 public:
  PickleMachine(const ByteSource& source, const ByteRange& range)
      : source_(source), position_(range.offset), limit_(range.offset + range.size) {
    pickle_.source_ = &source;
  }

  absl::StatusOr<Pickle> Run();

 private:
  // An opcode: its code, its name in pickletools, what it does. `argument` is the number of bytes
  // of a size or value, or what the comment of the handler says.
  struct Opcode {
    uint8_t code;
    const char* name;
    absl::Status (PickleMachine::*run)(int argument);
    int argument;
  };
  // A name that a pickle may use, and what calling it gives. Null: it is never called.
  struct Global {
    const char* module;
    const char* name;
    absl::StatusOr<PickleId> (PickleMachine::*call)(const PickleObject& arguments);
  };
  static const Opcode kOpcodes[];
  static const Global kGlobals[];

  // Input.
  absl::Status Take(void* to, size_t size);
  absl::StatusOr<uint64_t> TakeNumber(int bytes);
  absl::StatusOr<ByteRange> TakeRange(int size_bytes);
  absl::StatusOr<std::string> TakeLine();

  // Objects and the stack.
  absl::StatusOr<PickleId> New(PickleObject object);
  absl::Status Push(PickleId id);
  absl::Status PushNew(PickleObject object);
  absl::StatusOr<PickleId> PopOne();
  absl::StatusOr<std::vector<PickleId>> PopToMark();
  absl::StatusOr<PickleId> Top() const;
  absl::Status Hold(size_t ids);
  PickleObject& Mutable(PickleId id) { return pickle_.objects_[static_cast<size_t>(id)]; }
  const PickleObject& At(PickleId id) const { return pickle_.at(id); }
  // The i-th item of a tuple or list, or null.
  const PickleObject* Item(const PickleObject& of, size_t i) const {
    return i < of.items.size() ? &At(of.items[i]) : nullptr;
  }

  // Opcodes.
  absl::Status Protocol(int);
  absl::Status Skip(int bytes);
  absl::Status None(int);
  absl::Status Bool(int value);
  absl::Status Unsigned(int bytes);
  absl::Status Signed(int bytes);
  absl::Status Long(int size_bytes);
  absl::Status Float(int bytes);
  absl::Status Text(int size_bytes);
  absl::Status Bytes(int size_bytes);
  absl::Status Empty(int kind);  // a PickleKind
  absl::Status Tuple(int items);
  absl::Status FromMark(int kind);  // a PickleKind
  absl::Status Append(int);
  absl::Status AppendMany(int);
  absl::Status SetItem(int);
  absl::Status SetMany(int);
  absl::Status Mark(int);
  absl::Status Pop(int);
  absl::Status PopMark(int);
  absl::Status Duplicate(int);
  absl::Status Put(int bytes);
  absl::Status Memoize(int);
  absl::Status Get(int bytes);
  absl::Status GlobalByLine(int);
  absl::Status GlobalByStack(int);
  absl::Status Call(int);
  absl::Status Build(int);
  absl::Status PersistentId(int);

  // Actions of names.
  absl::StatusOr<PickleId> MakeDict(const PickleObject& arguments);
  absl::StatusOr<PickleId> MakeTuple(const PickleObject& arguments);
  absl::StatusOr<PickleId> MakeBytes(const PickleObject& arguments);
  absl::StatusOr<PickleId> MakeOther(const PickleObject& arguments);
  absl::StatusOr<PickleId> Encode(const PickleObject& arguments);
  absl::StatusOr<PickleId> MakeArray(const PickleObject& arguments);
  absl::StatusOr<PickleId> MakeDtype(const PickleObject& arguments);
  absl::StatusOr<PickleId> MakeTensor(const PickleObject& arguments);
  absl::StatusOr<PickleId> MakeParameter(const PickleObject& arguments);

  absl::StatusOr<PickleId> FindGlobal(std::string_view module, std::string_view name);
  absl::Status FillArray(PickleTensor& array, const PickleObject& state);
  absl::StatusOr<std::vector<int64_t>> Integers(const PickleObject* of) const;
  absl::StatusOr<PickleId> AddTensor(PickleTensor tensor);

  template <typename... Args>
  absl::Status Fail(fmt::format_string<Args...> format, Args&&... args) const {
    return DataLoss("{}: not a sound pickle: at byte {}, {}", source_.name(), opcode_at_,
                    fmt::format(format, std::forward<Args>(args)...));
  }

  const ByteSource& source_;
  uint64_t position_;
  const uint64_t limit_;
  std::string buffer_;
  uint64_t buffer_start_ = 0;
  uint64_t opcode_at_ = 0;

  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::unordered_map<uint64_t, PickleId> memo_;
  std::unordered_map<size_t, PickleId> globals_;  // by row
  size_t held_ = 0;
};

const PickleMachine::Opcode PickleMachine::kOpcodes[] = {
    {0x80, "PROTO", &PickleMachine::Protocol, 0},
    {0x95, "FRAME", &PickleMachine::Skip, 8},
    {'N', "NONE", &PickleMachine::None, 0},
    {0x88, "NEWTRUE", &PickleMachine::Bool, 1},
    {0x89, "NEWFALSE", &PickleMachine::Bool, 0},
    {'K', "BININT1", &PickleMachine::Unsigned, 1},
    {'M', "BININT2", &PickleMachine::Unsigned, 2},
    {'J', "BININT", &PickleMachine::Signed, 4},
    {0x8a, "LONG1", &PickleMachine::Long, 1},
    {0x8b, "LONG4", &PickleMachine::Long, 4},
    {'G', "BINFLOAT", &PickleMachine::Float, 8},
    {'X', "BINUNICODE", &PickleMachine::Text, 4},
    {0x8c, "SHORT_BINUNICODE", &PickleMachine::Text, 1},
    {0x8d, "BINUNICODE8", &PickleMachine::Text, 8},
    // What Python 2 called a string may be a name or the bytes of an array.
    {'T', "BINSTRING", &PickleMachine::Text, 4},
    {'U', "SHORT_BINSTRING", &PickleMachine::Text, 1},
    {'B', "BINBYTES", &PickleMachine::Bytes, 4},
    {'C', "SHORT_BINBYTES", &PickleMachine::Bytes, 1},
    {0x8e, "BINBYTES8", &PickleMachine::Bytes, 8},
    {']', "EMPTY_LIST", &PickleMachine::Empty, static_cast<int>(PickleKind::kList)},
    {')', "EMPTY_TUPLE", &PickleMachine::Empty, static_cast<int>(PickleKind::kTuple)},
    {'}', "EMPTY_DICT", &PickleMachine::Empty, static_cast<int>(PickleKind::kDict)},
    {0x8f, "EMPTY_SET", &PickleMachine::Empty, static_cast<int>(PickleKind::kOther)},
    {'l', "LIST", &PickleMachine::FromMark, static_cast<int>(PickleKind::kList)},
    {'t', "TUPLE", &PickleMachine::FromMark, static_cast<int>(PickleKind::kTuple)},
    {'d', "DICT", &PickleMachine::FromMark, static_cast<int>(PickleKind::kDict)},
    {0x91, "FROZENSET", &PickleMachine::FromMark, static_cast<int>(PickleKind::kOther)},
    {0x85, "TUPLE1", &PickleMachine::Tuple, 1},
    {0x86, "TUPLE2", &PickleMachine::Tuple, 2},
    {0x87, "TUPLE3", &PickleMachine::Tuple, 3},
    {'a', "APPEND", &PickleMachine::Append, 0},
    {'e', "APPENDS", &PickleMachine::AppendMany, 0},
    {0x90, "ADDITEMS", &PickleMachine::AppendMany, 0},
    {'s', "SETITEM", &PickleMachine::SetItem, 0},
    {'u', "SETITEMS", &PickleMachine::SetMany, 0},
    {'(', "MARK", &PickleMachine::Mark, 0},
    {'0', "POP", &PickleMachine::Pop, 0},
    {'1', "POP_MARK", &PickleMachine::PopMark, 0},
    {'2', "DUP", &PickleMachine::Duplicate, 0},
    {'q', "BINPUT", &PickleMachine::Put, 1},
    {'r', "LONG_BINPUT", &PickleMachine::Put, 4},
    {0x94, "MEMOIZE", &PickleMachine::Memoize, 0},
    {'h', "BINGET", &PickleMachine::Get, 1},
    {'j', "LONG_BINGET", &PickleMachine::Get, 4},
    {'c', "GLOBAL", &PickleMachine::GlobalByLine, 0},
    {0x93, "STACK_GLOBAL", &PickleMachine::GlobalByStack, 0},
    {'R', "REDUCE", &PickleMachine::Call, 0},
    {0x81, "NEWOBJ", &PickleMachine::Call, 0},
    {'b', "BUILD", &PickleMachine::Build, 0},
    {'Q', "BINPERSID", &PickleMachine::PersistentId, 0},
};

// Everything that a pickle may name. Rows with MakeOther are what training scripts save beside the
// weights; their values are dropped.
const PickleMachine::Global PickleMachine::kGlobals[] = {
    {"collections", "OrderedDict", &PickleMachine::MakeDict},
    {"collections", "defaultdict", &PickleMachine::MakeDict},
    {"builtins", "dict", &PickleMachine::MakeDict},
    {"builtins", "tuple", &PickleMachine::MakeTuple},
    {"builtins", "bytes", &PickleMachine::MakeBytes},
    {"builtins", "set", &PickleMachine::MakeOther},
    {"builtins", "list", nullptr},
    {"builtins", "int", nullptr},
    {"builtins", "float", nullptr},
    {"argparse", "Namespace", &PickleMachine::MakeOther},
    {"_codecs", "encode", &PickleMachine::Encode},
    // NumPy; before version 2 the module was numpy.core.
    {"numpy", "ndarray", nullptr},
    {"numpy", "dtype", &PickleMachine::MakeDtype},
    {"numpy.core.multiarray", "_reconstruct", &PickleMachine::MakeArray},
    {"numpy.core.multiarray", "scalar", &PickleMachine::MakeOther},
    // PyTorch.
    {"torch._utils", "_rebuild_tensor", &PickleMachine::MakeTensor},
    {"torch._utils", "_rebuild_tensor_v2", &PickleMachine::MakeTensor},
    {"torch._utils", "_rebuild_parameter", &PickleMachine::MakeParameter},
    {"torch", "Size", &PickleMachine::MakeTuple},
    {"torch", "device", &PickleMachine::MakeOther},
    {"torch", "DoubleStorage", nullptr},
    {"torch", "FloatStorage", nullptr},
    {"torch", "HalfStorage", nullptr},
    {"torch", "BFloat16Storage", nullptr},
    {"torch", "LongStorage", nullptr},
    {"torch", "IntStorage", nullptr},
    {"torch", "ShortStorage", nullptr},
    {"torch", "CharStorage", nullptr},
    {"torch", "ByteStorage", nullptr},
    {"torch", "BoolStorage", nullptr},
    {"torch", "ComplexFloatStorage", nullptr},
    {"torch", "ComplexDoubleStorage", nullptr},
};

absl::StatusOr<Pickle> PickleMachine::Run() {
  std::array<const Opcode*, 256> opcodes{};
  for (const Opcode& opcode : kOpcodes) opcodes[opcode.code] = &opcode;
  while (true) {
    opcode_at_ = position_;
    uint8_t code = 0;
    RETURN_IF_ERROR(Take(&code, 1));
    if (code == '.') break;
    const Opcode* opcode = opcodes[code];
    if (opcode == nullptr) {
      const std::string letter = code > ' ' && code < 0x7f ? fmt::format(" ('{:c}')", code) : "";
      return Fail("there is the opcode {:#04x}{}, which is not known", code, letter);
    }
    RETURN_IF_ERROR((this->*opcode->run)(opcode->argument), "while reading {}", opcode->name);
  }
  if (stack_.size() != 1) return Fail("it ends with {} objects, not one", stack_.size());
  pickle_.root_ = stack_[0];
  pickle_.end_ = position_;
  return std::move(pickle_);
}

absl::Status PickleMachine::Take(void* to, size_t size) {
  auto* out = static_cast<char*>(to);
  while (size > 0) {
    if (position_ >= limit_) return Fail("it is cut off at byte {}", position_);
    if (position_ < buffer_start_ || position_ >= buffer_start_ + buffer_.size()) {
      buffer_.resize(std::min<uint64_t>(kBufferBytes, limit_ - position_));
      buffer_start_ = position_;
      RETURN_IF_ERROR(source_.Read(position_, buffer_.data(), buffer_.size()));
    }
    const size_t from = position_ - buffer_start_;
    const size_t n = std::min(size, buffer_.size() - from);
    std::memcpy(out, buffer_.data() + from, n);
    out += n;
    position_ += n;
    size -= n;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> PickleMachine::TakeNumber(int bytes) {
  uint64_t value = 0;
  RETURN_IF_ERROR(Take(&value, static_cast<size_t>(bytes)));
  return value;
}

absl::StatusOr<ByteRange> PickleMachine::TakeRange(int size_bytes) {
  ASSIGN_OR_RETURN(const uint64_t size, TakeNumber(size_bytes));
  if (size > limit_ - position_) {
    return Fail("{} bytes are due and {} are left; it is cut off", size, limit_ - position_);
  }
  const ByteRange range{position_, size};
  position_ += size;
  return range;
}

absl::StatusOr<std::string> PickleMachine::TakeLine() {
  std::string line;
  while (true) {
    char c = 0;
    RETURN_IF_ERROR(Take(&c, 1));
    if (c == '\n') return line;
    line += c;
    if (line.size() > kMaxNameBytes) return Fail("a name is longer than {} bytes", kMaxNameBytes);
  }
}

absl::Status PickleMachine::Hold(size_t ids) {
  held_ += ids;
  return held_ > kMaxHeld ? Fail("it holds more than {} references", kMaxHeld) : absl::OkStatus();
}

absl::StatusOr<PickleId> PickleMachine::New(PickleObject object) {
  if (pickle_.objects_.size() >= kMaxObjects) {
    return Fail("it makes more than {} objects", kMaxObjects);
  }
  pickle_.objects_.push_back(std::move(object));
  return static_cast<PickleId>(pickle_.objects_.size() - 1);
}

absl::Status PickleMachine::Push(PickleId id) {
  RETURN_IF_ERROR(Hold(1));
  stack_.push_back(id);
  return absl::OkStatus();
}

absl::Status PickleMachine::PushNew(PickleObject object) {
  ASSIGN_OR_RETURN(const PickleId id, New(std::move(object)));
  return Push(id);
}

absl::StatusOr<PickleId> PickleMachine::Top() const {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) {
    return Fail("an object is due on the stack and there is none");
  }
  return stack_.back();
}

absl::StatusOr<PickleId> PickleMachine::PopOne() {
  ASSIGN_OR_RETURN(const PickleId id, Top());
  stack_.pop_back();
  --held_;
  return id;
}

absl::StatusOr<std::vector<PickleId>> PickleMachine::PopToMark() {
  if (marks_.empty()) return Fail("a mark is due on the stack and there is none");
  std::vector<PickleId> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                              stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return items;  // what the stack held, the caller's container holds
}

absl::Status PickleMachine::Protocol(int) {
  ASSIGN_OR_RETURN(const uint64_t protocol, TakeNumber(1));
  return protocol > kHighestProtocol ? Fail("its protocol {} is not known", protocol)
                                     : absl::OkStatus();
}

absl::Status PickleMachine::Skip(int bytes) { return TakeNumber(bytes).status(); }

absl::Status PickleMachine::None(int) { return PushNew({.kind = PickleKind::kNone}); }

absl::Status PickleMachine::Bool(int value) {
  return PushNew({.kind = PickleKind::kBool, .number = value});
}

absl::Status PickleMachine::Unsigned(int bytes) {
  ASSIGN_OR_RETURN(const uint64_t value, TakeNumber(bytes));
  return PushNew({.kind = PickleKind::kInt, .number = static_cast<int64_t>(value)});
}

absl::Status PickleMachine::Signed(int) {
  int32_t value = 0;
  RETURN_IF_ERROR(Take(&value, sizeof(value)));
  return PushNew({.kind = PickleKind::kInt, .number = value});
}

absl::Status PickleMachine::Long(int size_bytes) {
  ASSIGN_OR_RETURN(const ByteRange range, TakeRange(size_bytes));
  if (range.size > 8) return PushNew({.kind = PickleKind::kBytes, .range = range});
  // Little-endian two's complement of as many bytes as it takes.
  uint64_t bits = 0;
  RETURN_IF_ERROR(source_.Read(range.offset, &bits, range.size));
  const int unused = 64 - 8 * static_cast<int>(range.size);
  const int64_t value = unused == 64 ? 0 : static_cast<int64_t>(bits << unused) >> unused;
  return PushNew({.kind = PickleKind::kInt, .number = value});
}

absl::Status PickleMachine::Float(int bytes) {
  RETURN_IF_ERROR(Skip(bytes));
  return PushNew({.kind = PickleKind::kOther});
}

absl::Status PickleMachine::Text(int size_bytes) {
  ASSIGN_OR_RETURN(const ByteRange range, TakeRange(size_bytes));
  return PushNew({.kind = PickleKind::kText, .range = range});
}

absl::Status PickleMachine::Bytes(int size_bytes) {
  ASSIGN_OR_RETURN(const ByteRange range, TakeRange(size_bytes));
  return PushNew({.kind = PickleKind::kBytes, .range = range});
}

absl::Status PickleMachine::Empty(int kind) {
  return PushNew({.kind = static_cast<PickleKind>(kind)});
}

absl::Status PickleMachine::Tuple(int count) {
  PickleObject tuple{.kind = PickleKind::kTuple};
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const PickleId id, PopOne());
    tuple.items.push_back(id);
  }
  std::reverse(tuple.items.begin(), tuple.items.end());
  RETURN_IF_ERROR(Hold(tuple.items.size()));
  return PushNew(std::move(tuple));
}

absl::Status PickleMachine::FromMark(int kind) {
  PickleObject object{.kind = static_cast<PickleKind>(kind)};
  ASSIGN_OR_RETURN(object.items, PopToMark());
  if (object.kind == PickleKind::kOther) object.items.clear();
  if (object.kind == PickleKind::kDict && object.items.size() % 2 != 0) {
    return Fail("a key has no value");
  }
  return PushNew(std::move(object));
}

absl::Status PickleMachine::Append(int) {
  ASSIGN_OR_RETURN(const PickleId item, PopOne());
  ASSIGN_OR_RETURN(const PickleId list, Top());
  if (At(list).kind == PickleKind::kOther) return absl::OkStatus();
  if (At(list).kind != PickleKind::kList) return Fail("something is appended to what is no list");
  Mutable(list).items.push_back(item);
  return Hold(1);
}

absl::Status PickleMachine::AppendMany(int) {
  ASSIGN_OR_RETURN(const std::vector<PickleId> items, PopToMark());
  ASSIGN_OR_RETURN(const PickleId list, Top());
  if (At(list).kind == PickleKind::kOther) return absl::OkStatus();
  if (At(list).kind != PickleKind::kList) return Fail("something is appended to what is no list");
  auto& all = Mutable(list).items;
  all.insert(all.end(), items.begin(), items.end());
  return absl::OkStatus();
}

absl::Status PickleMachine::SetItem(int) {
  ASSIGN_OR_RETURN(const PickleId value, PopOne());
  ASSIGN_OR_RETURN(const PickleId key, PopOne());
  ASSIGN_OR_RETURN(const PickleId dict, Top());
  if (At(dict).kind == PickleKind::kOther) return absl::OkStatus();
  if (At(dict).kind != PickleKind::kDict) return Fail("an item is set in what is no dictionary");
  auto& all = Mutable(dict).items;
  all.push_back(key);
  all.push_back(value);
  return Hold(2);
}

absl::Status PickleMachine::SetMany(int) {
  ASSIGN_OR_RETURN(const std::vector<PickleId> items, PopToMark());
  ASSIGN_OR_RETURN(const PickleId dict, Top());
  if (At(dict).kind == PickleKind::kOther) return absl::OkStatus();
  if (At(dict).kind != PickleKind::kDict) return Fail("items are set in what is no dictionary");
  if (items.size() % 2 != 0) return Fail("a key has no value");
  auto& all = Mutable(dict).items;
  all.insert(all.end(), items.begin(), items.end());
  return absl::OkStatus();
}

absl::Status PickleMachine::Mark(int) {
  marks_.push_back(stack_.size());
  return Hold(1);
}

absl::Status PickleMachine::Pop(int) { return PopOne().status(); }

absl::Status PickleMachine::PopMark(int) { return PopToMark().status(); }

absl::Status PickleMachine::Duplicate(int) {
  ASSIGN_OR_RETURN(const PickleId id, Top());
  return Push(id);
}

absl::Status PickleMachine::Put(int bytes) {
  ASSIGN_OR_RETURN(const uint64_t key, TakeNumber(bytes));
  ASSIGN_OR_RETURN(const PickleId id, Top());
  memo_[key] = id;
  return Hold(kMemoCost);
}

absl::Status PickleMachine::Memoize(int) {
  ASSIGN_OR_RETURN(const PickleId id, Top());
  memo_[memo_.size()] = id;
  return Hold(kMemoCost);
}

absl::Status PickleMachine::Get(int bytes) {
  ASSIGN_OR_RETURN(const uint64_t key, TakeNumber(bytes));
  const auto it = memo_.find(key);
  if (it == memo_.end()) return Fail("the object {} is asked for and was not kept", key);
  return Push(it->second);
}

absl::Status PickleMachine::GlobalByLine(int) {
  ASSIGN_OR_RETURN(const std::string module, TakeLine());
  ASSIGN_OR_RETURN(const std::string name, TakeLine());
  ASSIGN_OR_RETURN(const PickleId id, FindGlobal(module, name));
  return Push(id);
}

absl::Status PickleMachine::GlobalByStack(int) {
  ASSIGN_OR_RETURN(const PickleId name_id, PopOne());
  ASSIGN_OR_RETURN(const PickleId module_id, PopOne());
  ASSIGN_OR_RETURN(const std::string module, pickle_.TextOf(At(module_id)));
  ASSIGN_OR_RETURN(const std::string name, pickle_.TextOf(At(name_id)));
  ASSIGN_OR_RETURN(const PickleId id, FindGlobal(module, name));
  return Push(id);
}

absl::StatusOr<PickleId> PickleMachine::FindGlobal(std::string_view module, std::string_view name) {
  // Two modules have changed their names: Python 3's builtins, NumPy 2's core.
  std::string today(module);
  if (today == "__builtin__") today = "builtins";
  if (today.starts_with("numpy._core.")) today = "numpy.core." + today.substr(12);
  for (size_t row = 0; row < std::size(kGlobals); ++row) {
    if (today != kGlobals[row].module || name != kGlobals[row].name) continue;
    const auto known = globals_.find(row);
    if (known != globals_.end()) return known->second;
    ASSIGN_OR_RETURN(const PickleId id,
                     New({.kind = PickleKind::kGlobal, .number = static_cast<int64_t>(row)}));
    globals_[row] = id;
    return id;
  }
  return InvalidArgument(
      "{}: at byte {} its pickle names {}, which plain weights do not need; a pickle is read as "
      "data here, and nothing that it names is ever called. Save the bare tensors: "
      "torch.save(model.state_dict(), \"x.pth\") or paddle.save(model.state_dict(), "
      "\"x.pdparams\"), or a safetensors file",
      source_.name(), opcode_at_, Quote(std::string(module) + "." + std::string(name)));
}

absl::Status PickleMachine::Call(int) {
  ASSIGN_OR_RETURN(const PickleId arguments, PopOne());
  ASSIGN_OR_RETURN(const PickleId callee, PopOne());
  if (At(callee).kind != PickleKind::kGlobal) return Fail("what is called is not a name");
  if (At(arguments).kind != PickleKind::kTuple) return Fail("a call has no tuple of arguments");
  const Global& global = kGlobals[static_cast<size_t>(At(callee).number)];
  if (global.call == nullptr) return Fail("{}.{} is called", global.module, global.name);
  if (At(arguments).items.size() > kMaxArguments) {
    return Fail("a call has {} arguments", At(arguments).items.size());
  }
  // A copy: making objects moves those that are there.
  const PickleObject copy = At(arguments);
  ASSIGN_OR_RETURN(const PickleId result, (this->*global.call)(copy), "while making a {}.{}",
                   global.module, global.name);
  return Push(result);
}

absl::Status PickleMachine::Build(int) {
  ASSIGN_OR_RETURN(const PickleId state_id, PopOne());
  ASSIGN_OR_RETURN(const PickleId object_id, Top());
  const PickleObject& state = At(state_id);
  PickleObject& object = Mutable(object_id);
  switch (object.kind) {
    case PickleKind::kTensor:
      return FillArray(pickle_.tensors_[static_cast<size_t>(object.number)], state);
    case PickleKind::kDtype: {
      // (version, byte order, ...)
      const PickleObject* order = Item(state, 1);
      if (order == nullptr || order->kind != PickleKind::kText) return Fail("a dtype is broken");
      ASSIGN_OR_RETURN(const std::string text, pickle_.TextOf(*order));
      if (text == ">") object.number = -1;
      return absl::OkStatus();
    }
    case PickleKind::kDict:  // attributes of a dictionary: PyTorch's _metadata
    case PickleKind::kOther:
      return absl::OkStatus();
    default:
      return Fail("something is given a state that has none");
  }
}

absl::Status PickleMachine::PersistentId(int) {
  // ("storage", class, key, device, elements), and a sixth for views in old files.
  ASSIGN_OR_RETURN(const PickleId id, PopOne());
  const PickleObject& tuple = At(id);
  const PickleObject *kind = Item(tuple, 0), *type = Item(tuple, 1), *key = Item(tuple, 2),
                     *count = Item(tuple, 4), *view = Item(tuple, 5);
  if (tuple.kind != PickleKind::kTuple || count == nullptr || kind->kind != PickleKind::kText ||
      type->kind != PickleKind::kGlobal || key->kind != PickleKind::kText ||
      count->kind != PickleKind::kInt || count->number < 0) {
    return Fail("a storage is not described as PyTorch does");
  }
  if (view != nullptr && view->kind != PickleKind::kNone) {
    return Fail(
        "a storage is a view of another one, which is not supported; load the file in "
        "PyTorch and save it again");
  }
  PickleStorage storage{.count = count->number};
  storage.element = ElementOfTorch(kGlobals[static_cast<size_t>(type->number)].name);
  if (storage.element == nullptr) return Fail("a storage has no class");
  ASSIGN_OR_RETURN(storage.key, pickle_.TextOf(*key));
  if (storage.key.size() > kMaxKeyBytes) {
    return Fail("the key of a storage has {} bytes", storage.key.size());
  }
  RETURN_IF_ERROR(Hold(kRecordCost));
  pickle_.storages_.push_back(std::move(storage));
  return PushNew(
      {.kind = PickleKind::kStorage, .number = static_cast<int64_t>(pickle_.storages_.size()) - 1});
}

absl::StatusOr<PickleId> PickleMachine::MakeDict(const PickleObject& arguments) {
  PickleObject dict{.kind = PickleKind::kDict};
  // Python 2 gave a list of [key, value]; defaultdict is given a function.
  if (const PickleObject* pairs = Item(arguments, 0);
      pairs != nullptr && pairs->kind == PickleKind::kList) {
    for (const PickleId id : pairs->items) {
      const PickleObject& pair = At(id);
      if (pair.items.size() != 2) return Fail("a dictionary is made of what are no pairs");
      dict.items.insert(dict.items.end(), pair.items.begin(), pair.items.end());
    }
    RETURN_IF_ERROR(Hold(dict.items.size()));
  }
  return New(std::move(dict));
}

absl::StatusOr<PickleId> PickleMachine::MakeTuple(const PickleObject& arguments) {
  PickleObject tuple{.kind = PickleKind::kTuple};
  if (const PickleObject* items = Item(arguments, 0)) {
    if (items->kind != PickleKind::kTuple && items->kind != PickleKind::kList) {
      return Fail("a tuple is made of what is no list");
    }
    tuple.items = items->items;
    RETURN_IF_ERROR(Hold(tuple.items.size()));
  }
  return New(std::move(tuple));
}

absl::StatusOr<PickleId> PickleMachine::MakeBytes(const PickleObject& arguments) {
  if (!arguments.items.empty()) return Fail("bytes are made of something");
  return New({.kind = PickleKind::kBytes});
}

absl::StatusOr<PickleId> PickleMachine::MakeOther(const PickleObject&) {
  return New({.kind = PickleKind::kOther});
}

absl::StatusOr<PickleId> PickleMachine::Encode(const PickleObject& arguments) {
  const PickleObject *text = Item(arguments, 0), *encoding = Item(arguments, 1);
  if (encoding == nullptr || text->kind != PickleKind::kText) return Fail("no text is encoded");
  ASSIGN_OR_RETURN(const std::string name, pickle_.TextOf(*encoding));
  if (name != "latin1") return Fail("a text is encoded as {}, not as latin1", Quote(name));
  return New({.kind = PickleKind::kBytes, .latin1 = true, .range = text->range});
}

absl::StatusOr<PickleId> PickleMachine::AddTensor(PickleTensor tensor) {
  // Its sizes and strides have two places each; those of an array come later.
  RETURN_IF_ERROR(Hold(kRecordCost + 4 * tensor.tensor.dims.size()));
  pickle_.tensors_.push_back(std::move(tensor));
  return New(
      {.kind = PickleKind::kTensor, .number = static_cast<int64_t>(pickle_.tensors_.size()) - 1});
}

absl::StatusOr<PickleId> PickleMachine::MakeArray(const PickleObject& arguments) {
  // (numpy.ndarray, (0,), b"b"): an array that BUILD fills.
  const PickleObject* type = Item(arguments, 0);
  if (type == nullptr || type->kind != PickleKind::kGlobal ||
      std::string_view(kGlobals[static_cast<size_t>(type->number)].name) != "ndarray") {
    return Fail("an array has another class than numpy.ndarray");
  }
  return AddTensor({});
}

absl::StatusOr<PickleId> PickleMachine::MakeDtype(const PickleObject& arguments) {
  const PickleObject* code = Item(arguments, 0);
  if (code == nullptr || code->kind != PickleKind::kText) return Fail("a dtype has no name");
  ASSIGN_OR_RETURN(const std::string name, pickle_.TextOf(*code));
  const ElementRow* element = ElementOfNumpy(name);
  return New(
      {.kind = PickleKind::kDtype, .number = element == nullptr ? -1 : element - kElementRows});
}

absl::StatusOr<std::vector<int64_t>> PickleMachine::Integers(const PickleObject* of) const {
  if (of == nullptr || (of->kind != PickleKind::kTuple && of->kind != PickleKind::kList)) {
    return Fail("a list of sizes is due");
  }
  if (of->items.size() > kMaxNdim) return Fail("there are {} dimensions", of->items.size());
  std::vector<int64_t> values;
  for (const PickleId id : of->items) {
    if (At(id).kind != PickleKind::kInt) return Fail("a size is not a number");
    values.push_back(At(id).number);
  }
  return values;
}

absl::Status PickleMachine::FillArray(PickleTensor& array, const PickleObject& state) {
  // (version, shape, dtype, column-major?, bytes)
  const PickleObject *dtype = Item(state, 2), *fortran = Item(state, 3), *data = Item(state, 4);
  if (state.kind != PickleKind::kTuple || data == nullptr || dtype->kind != PickleKind::kDtype ||
      array.filled || array.storage >= 0) {
    return Fail("the state of an array is not as NumPy writes it");
  }
  StoredTensor& tensor = array.tensor;
  ASSIGN_OR_RETURN(tensor.dims, Integers(Item(state, 1)));
  RETURN_IF_ERROR(Hold(4 * tensor.dims.size()));
  tensor.strides =
      fortran->number != 0 ? ColumnMajorStrides(tensor.dims) : RowMajorStrides(tensor.dims);
  array.filled = true;
  const std::optional<int64_t> reach = ReachOf(tensor);
  if (!reach.has_value()) return Fail("an array has senseless sizes");
  if (dtype->number < 0) return absl::OkStatus();  // listed; refuses to be read
  tensor.element = &kElementRows[dtype->number];
  // Python 2's strings are bytes.
  if (data->kind != PickleKind::kBytes && data->kind != PickleKind::kText) {
    return Fail("the data of an array are not bytes");
  }
  tensor.data = data->range;
  tensor.latin1 = data->latin1;
  const uint64_t bytes = static_cast<uint64_t>(*reach) * tensor.element->size;
  // As text, a byte takes one or two.
  const bool fits = tensor.latin1 ? bytes <= tensor.data.size && tensor.data.size <= 2 * bytes
                                  : bytes == tensor.data.size;
  if (!fits) {
    return Fail("an array of {} elements has {} bytes", *reach, tensor.data.size);
  }
  return absl::OkStatus();
}

absl::StatusOr<PickleId> PickleMachine::MakeTensor(const PickleObject& arguments) {
  // (storage, first element, sizes, strides, ...)
  const PickleObject *storage = Item(arguments, 0), *start = Item(arguments, 1);
  if (start == nullptr || storage->kind != PickleKind::kStorage ||
      start->kind != PickleKind::kInt) {
    return Fail("a tensor is not described as PyTorch does");
  }
  PickleTensor made{.storage = storage->number, .filled = true};
  const PickleStorage& in = pickle_.storages_[static_cast<size_t>(storage->number)];
  StoredTensor& tensor = made.tensor;
  tensor.element = in.element;
  tensor.start = start->number;
  ASSIGN_OR_RETURN(tensor.dims, Integers(Item(arguments, 2)));
  ASSIGN_OR_RETURN(tensor.strides, Integers(Item(arguments, 3)));
  if (tensor.strides.size() != tensor.dims.size()) return Fail("sizes and strides do not match");
  const std::optional<int64_t> reach = ReachOf(tensor);
  if (!reach.has_value() || *reach > in.count) {
    return Fail("a tensor reaches beyond its storage of {} elements", in.count);
  }
  return AddTensor(std::move(made));
}

absl::StatusOr<PickleId> PickleMachine::MakeParameter(const PickleObject& arguments) {
  // (tensor, requires_grad, hooks)
  if (arguments.items.empty()) return Fail("a parameter has no tensor");
  return arguments.items[0];
}

absl::StatusOr<Pickle> Pickle::Read(const ByteSource& source, const ByteRange& range) {
  if (range.offset > source.size() || range.size > source.size() - range.offset) {
    return DataLoss("{}: {} bytes are due at byte {}, but it ends at {}", source.name(), range.size,
                    range.offset, source.size());
  }
  return PickleMachine(source, range).Run();
}

absl::StatusOr<std::string> Pickle::TextOf(const PickleObject& object) const {
  if (object.kind != PickleKind::kText || object.range.size > kMaxNameBytes) {
    return DataLoss("{}: not a sound pickle: where a name is due there is none", source_->name());
  }
  return ReadText(*source_, object.range);
}

}  // namespace capstan
