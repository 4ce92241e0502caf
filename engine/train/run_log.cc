#include "engine/train/run_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/checkpoint/file_io.h"
#include "engine/train/event_records.h"

namespace capstan {
namespace {

// Key order as written.
using OrderedJson = nlohmann::ordered_json;

// JSON has no NaN and no infinity: they become the texts "nan", "inf" and "-inf".
OrderedJson Number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// Messages and paths may hold bytes that are no UTF-8: they become U+FFFD.
std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// Names of files may hold control characters, which would steer a terminal; an inner line end
// would look like a line of ours.
std::string Printable(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\n    ";
    } else {
      out += c == '\t' || static_cast<unsigned char>(c) >= 0x20 ? c : '?';
    }
  }
  return out;
}

// Bytes up to the end of the last whole line.
int64_t WholeLines(std::ifstream& file, int64_t size) {
  while (size > 0) {
    file.seekg(size - 1);
    if (file.get() == '\n') break;
    --size;
  }
  return size;
}

// Removes what a killed run left of its last line.
absl::Status DropBrokenLine(const std::string& path) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) return absl::OkStatus();  // a new file
  std::ifstream file(path, std::ios::binary);
  const int64_t whole = WholeLines(file, size);
  if (whole == size) return absl::OkStatus();
  std::filesystem::resize_file(path, static_cast<uintmax_t>(whole), error);
  return error ? FailedPrecondition("{}: {}", path, error.message()) : absl::OkStatus();
}

double Gib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(now));
}

// "12.3 MiB" style values of /proc/self/status are in kB.
int64_t StatusField(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::stoll(line.substr(key.size())) * 1024;
  }
  return 0;
}

// Columns that a line may fill; one that wraps could not be drawn over.
size_t TerminalWidth(std::FILE* terminal) {
  winsize size{};
  if (ioctl(fileno(terminal), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 79;
  return size.ws_col - 1u;
}

// The iteration of a metrics line, for an evaluation a half more; none for a broken line.
std::optional<double> PlaceOf(const std::string& line) {
  const OrderedJson json = OrderedJson::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto it = json.find("iteration");
  if (it == json.end() || !it->is_number_integer()) return 0;
  const auto event = json.find("event");
  const bool evaluation = event != json.end() && *event == "eval";
  return it->get<double>() + (evaluation ? 0.5 : 0);
}

}  // namespace

int64_t ResidentBytes() { return StatusField("VmRSS:"); }
int64_t PeakResidentBytes() { return StatusField("VmHWM:"); }

namespace {

// The parts of a training line, in its order.
enum Part { kEpoch, kIteration, kLoss, kRate, kSpeed, kShares, kMemory, kEta, kParts };
using Parts = std::array<std::string, kParts>;

std::string MemoryPart(double gib) {
  return gib < 1 ? fmt::format("mem {:.0f} MiB", gib * 1024) : fmt::format("mem {:.1f} GiB", gib);
}

Parts TrainParts(const TrainRecord& r, double resident_gib) {
  const double seconds = r.data_s + r.compute_s + r.comm_s;
  const auto percent = [&](double part) {
    return seconds > 0 ? static_cast<int>(std::lround(100 * part / seconds)) : 0;
  };
  return {fmt::format("epoch {}/{}", r.epoch + 1, r.total_epochs),
          fmt::format("it {}/{}", r.iteration, r.total_iterations),
          fmt::format("loss {:.4g}", r.loss),
          fmt::format("lr {:.4g}", r.lr),
          fmt::format("{:.{}f} samples/s", r.samples_per_s, r.samples_per_s < 10 ? 2 : 0),
          fmt::format("data {}% compute {}% comm {}%", percent(r.data_s), percent(r.compute_s),
                      percent(r.comm_s)),
          MemoryPart(resident_gib),
          fmt::format("eta {}", HumanDuration(r.eta_s))};
}

std::string Join(const Parts& parts) {
  std::string line;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!line.empty()) line += "  ";
    line += part;
  }
  return line;
}

}  // namespace

std::string FormatTrainLine(const TrainRecord& record, double resident_gib) {
  return Join(TrainParts(record, resident_gib));
}

std::string FormatProgress(const TrainRecord& r, double resident_gib, size_t width) {
  constexpr size_t kCells = 12;
  const double done = r.total_iterations > 0 ? static_cast<double>(r.iteration) /
                                                   static_cast<double>(r.total_iterations)
                                             : 0;
  const auto full = static_cast<size_t>(std::clamp(done, 0.0, 1.0) * kCells);
  const std::string bar = "[" + std::string(full, '=') + std::string(kCells - full, ' ') + "] ";
  Parts parts = TrainParts(r, resident_gib);
  for (const Part part : {kMemory, kRate, kEpoch, kShares, kSpeed, kIteration}) {
    if (bar.size() + Join(parts).size() <= width) break;
    parts[part].clear();
  }
  return (bar + Join(parts)).substr(0, width);
}

absl::StatusOr<std::unique_ptr<RunLog>> RunLog::Create(const RunLogOptions& options) {
  std::unique_ptr<RunLog> log(new RunLog(options));
  RETURN_IF_ERROR(log->Open(), "while opening the logs of output_dir {}", options.output_dir);
  return log;
}

absl::Status RunLog::Open() {
  std::error_code error;
  std::filesystem::create_directories(options_.output_dir, error);
  if (error) return FailedPrecondition("{}: {}", options_.output_dir, error.message());
  is_terminal_ = !options_.quiet && isatty(fileno(options_.terminal)) != 0;
  for (const auto& [name, file] :
       {std::pair("train.log", &text_), std::pair("metrics.jsonl", &metrics_)}) {
    const std::string path = options_.output_dir + "/" + name;
    RETURN_IF_ERROR(DropBrokenLine(path));
    *file = std::fopen(path.c_str(), "ae");
    if (*file == nullptr) return ErrnoStatus(errno, "open " + path);
  }
  return absl::OkStatus();
}

RunLog::~RunLog() {
  for (std::FILE* file : {text_, metrics_, events_}) {
    if (file != nullptr) std::fclose(file);
  }
}

void RunLog::Write(std::FILE* file, const std::string& text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  if (!written && file != options_.terminal) WriteFailed();
}

void RunLog::WriteFailed() {
  // Once only: the next lines would fail in the same way.
  if (write_failed_) return;
  write_failed_ = true;
  const std::string why = ErrnoStatus(errno, "write logs in " + options_.output_dir).ToString();
  Show("warning: ", Printable(why) + "; training goes on, its logs have gaps");
}

void RunLog::Text(const std::string& text) { Write(text_, Now() + " " + text + "\n"); }

void RunLog::Show(const char* level, const std::string& text) {
  if (options_.quiet) return;
  ClearBar();
  const bool coloured = level[0] != '\0' && is_terminal_;
  Write(options_.terminal, fmt::format("{}{}{}{}\n", coloured ? "\x1b[33m" : "", level, text,
                                       coloured ? "\x1b[0m" : ""));
}

void RunLog::Line(const char* level, const std::string& raw) {
  const std::string text = Printable(raw);
  Text(level + text);
  Show(level, text);
}

void RunLog::Json(const std::string& line) { Write(metrics_, line + "\n"); }

void RunLog::OpenEvents() {
  const auto seconds = static_cast<int64_t>(SecondsNow());
  for (int number = 0; events_ == nullptr; ++number) {
    const std::string path = fmt::format("{}/events.out.tfevents.{:010}.{}.{}", options_.output_dir,
                                         seconds, getpid(), number);
    events_ = std::fopen(path.c_str(), "wxe");
    if (events_ == nullptr && errno != EEXIST) return;
  }
  Write(events_, VersionRecord(SecondsNow()) + StartRecord(SecondsNow(), resumed_at_ + 1));
}

void RunLog::Scalars(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  if (events_ == nullptr) OpenEvents();
  if (events_ == nullptr) return WriteFailed();
  Write(events_, ScalarsRecord(SecondsNow(), step, scalars));
}

void RunLog::Info(const std::string& text) { Line("", text); }
void RunLog::Warning(const std::string& text) { Line("warning: ", text); }

void RunLog::Train(const TrainRecord& r) {
  const double resident = Gib(ResidentBytes());
  Json(Dump({{"event", "train"},
             {"iteration", r.iteration},
             {"epoch", r.epoch},
             {"loss", Number(r.loss)},
             {"lr", Number(r.lr)},
             {"samples_per_s", Number(r.samples_per_s)},
             {"data_s", r.data_s},
             {"compute_s", r.compute_s},
             {"comm_s", r.comm_s},
             {"mem_gib", resident}}));
  Scalars(r.iteration, {{"train/loss", r.loss},
                        {"train/lr", r.lr},
                        {"train/samples_per_s", r.samples_per_s},
                        {"train/mem_gib", resident}});
  const std::string line = FormatTrainLine(r, resident);
  if (is_terminal_) {
    Text(line);
    DrawBar(FormatProgress(r, resident, TerminalWidth(options_.terminal)));
  } else {
    Line("", line);
  }
}

void RunLog::Eval(const EvalRecord& r) {
  OrderedJson metrics = OrderedJson::object();
  std::string text;
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : r.metrics) {
    metrics[name] = Number(value);
    scalars.emplace_back("eval/" + name, value);
    text += fmt::format("  {} {:.5f}", name, value);
  }
  Json(Dump({{"event", "eval"},
             {"iteration", r.iteration},
             {"epoch", r.epoch},
             {"metrics", metrics},
             {"samples", r.samples}}));
  Scalars(r.iteration, scalars);
  Line("", fmt::format("eval after epoch {}  it {}{}  {} samples in {:.1f} s{}", r.epoch,
                       r.iteration, text, r.samples, r.seconds, r.best ? "  best so far" : ""));
}

void RunLog::Checkpoint(int64_t iteration, const std::string& path) {
  Json(Dump({{"event", "checkpoint"}, {"iteration", iteration}, {"path", path}}));
  Text("saved " + Printable(path));
}

void RunLog::End(const std::string& status, const std::string& reason) {
  Json(Dump({{"event", "end"}, {"status", status}, {"reason", reason}}));
  Text(status + (reason.empty() ? "" : ": " + Printable(reason)));
  if (options_.quiet) return;
  ClearBar();
  if (reason.empty()) Show("", status);
}

void RunLog::ClearBar() {
  if (!bar_drawn_) return;
  Write(options_.terminal, "\r\x1b[K");
  bar_drawn_ = false;
}

void RunLog::DrawBar(const std::string& bar) {
  Write(options_.terminal, "\r" + bar + "\x1b[K");
  bar_drawn_ = true;
}

absl::Status RunLog::TruncateAfter(int64_t iteration, bool evaluated) {
  resumed_at_ = iteration;
  if (events_ != nullptr) Write(events_, StartRecord(SecondsNow(), iteration + 1));
  const std::string path = options_.output_dir + "/metrics.jsonl";
  std::ifstream in(path);
  std::string kept;
  bool dropped = false;
  for (std::string line; std::getline(in, line);) {
    const std::optional<double> at = PlaceOf(line);
    if (at.has_value() && *at <= static_cast<double>(iteration) + (evaluated ? 0.5 : 0)) {
      kept += line + "\n";
    } else {
      dropped = true;
    }
  }
  if (!dropped) return absl::OkStatus();
  RETURN_IF_ERROR(ReplaceFile(path, kept));
  // The stream still appends to the file that was replaced.
  std::FILE* reopened = std::freopen(path.c_str(), "ae", metrics_);
  CHECK(reopened != nullptr) << "cannot open " << path << ", which was written just now";
  return absl::OkStatus();
}

}  // namespace capstan
