// CHECK: faults of our own. A failed check prints file:line, the condition and the context, then
// aborts; it is never used for what a user can cause.
//
//   CHECK(index < size) << "index " << index << " of " << size;
//   CHECK_EQ(a, b) << "sizes of " << name;
#pragma once

#include <sstream>

namespace capstan::internal {

// Collects the context of a failed check and aborts when destroyed.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;

  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Gives the whole `CHECK(...) << ...` expression the type void.
struct Voidify {
  void operator&(std::ostream&) {}
};

}  // namespace capstan::internal

#define CHECK(condition)                         \
  (condition) ? (void)0                          \
              : ::capstan::internal::Voidify() & \
                    ::capstan::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#define CAPSTAN_CHECK_OP_(op, a, b) CHECK((a)op(b)) << "(" << (a) << " vs " << (b) << ") "
#define CHECK_EQ(a, b) CAPSTAN_CHECK_OP_(==, a, b)
#define CHECK_NE(a, b) CAPSTAN_CHECK_OP_(!=, a, b)
#define CHECK_LE(a, b) CAPSTAN_CHECK_OP_(<=, a, b)
#define CHECK_LT(a, b) CAPSTAN_CHECK_OP_(<, a, b)
#define CHECK_GE(a, b) CAPSTAN_CHECK_OP_(>=, a, b)
#define CHECK_GT(a, b) CAPSTAN_CHECK_OP_(>, a, b)
// For statuses that cannot fail unless we are wrong.
#define CHECK_OK(expr)                                                                   \
  do {                                                                                   \
    const auto& capstan_check_ok_ = (expr);                                              \
    CHECK(capstan_check_ok_.ok()) << ::capstan::internal::StatusText(capstan_check_ok_); \
  } while (false)

namespace capstan::internal {
template <typename S>
std::string StatusText(const S& s) {
  if constexpr (requires { s.status(); }) {
    return s.status().ToString();
  } else {
    return s.ToString();
  }
}
}  // namespace capstan::internal
