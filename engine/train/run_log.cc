#include "engine/train/run_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

// Key order as written.
using OrderedJson = nlohmann::ordered_json;

// JSON has no NaN and no infinity: they become the texts "nan", "inf" and "-inf".
OrderedJson Number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double Gib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

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

int TerminalWidth(std::FILE* terminal) {
  winsize size{};
  if (ioctl(fileno(terminal), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// The iteration of a metrics line; none for a broken line.
std::optional<int64_t> IterationOf(const std::string& line) {
  const OrderedJson json = OrderedJson::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto it = json.find("iteration");
  return it != json.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

}  // namespace

int64_t ResidentBytes() { return StatusField("VmRSS:"); }
int64_t PeakResidentBytes() { return StatusField("VmHWM:"); }

std::string FormatTrainLine(const TrainRecord& r, double resident_gib) {
  const double seconds = r.data_s + r.compute_s + r.comm_s;
  const auto percent = [&](double part) {
    return seconds > 0 ? static_cast<int>(std::lround(100 * part / seconds)) : 0;
  };
  return fmt::format(
      "epoch {}/{}  it {}/{}  loss {:.4g}  lr {:.4g}  {:.0f} samples/s  data {}% compute {}% comm "
      "{}%  mem {:.1f} GiB  eta {}",
      r.epoch + 1, r.total_epochs, r.iteration, r.total_iterations, r.loss, r.lr, r.samples_per_s,
      percent(r.data_s), percent(r.compute_s), percent(r.comm_s), resident_gib,
      HumanDuration(r.eta_s));
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
    *file = std::fopen(path.c_str(), "ae");
    if (*file == nullptr) return ErrnoStatus(errno, "open " + path);
  }
  return absl::OkStatus();
}

RunLog::~RunLog() {
  for (std::FILE* file : {text_, metrics_}) {
    if (file != nullptr) std::fclose(file);
  }
}

void RunLog::Line(const char* level, const std::string& text) {
  fmt::print(text_, "{} {}{}\n", Now(), level, text);
  std::fflush(text_);
  if (options_.quiet) return;
  ClearBar();
  const bool warning = level[0] != '\0';
  fmt::print(options_.terminal, "{}{}{}{}\n", warning && is_terminal_ ? "\x1b[33m" : "", level,
             text, warning && is_terminal_ ? "\x1b[0m" : "");
  std::fflush(options_.terminal);
}

void RunLog::Json(const std::string& line) {
  fmt::print(metrics_, "{}\n", line);
  std::fflush(metrics_);
}

void RunLog::Info(const std::string& text) { Line("", text); }
void RunLog::Warning(const std::string& text) { Line("warning: ", text); }

void RunLog::Train(const TrainRecord& r) {
  const double resident = Gib(ResidentBytes());
  Json(OrderedJson{{"event", "train"},
                   {"iteration", r.iteration},
                   {"epoch", r.epoch},
                   {"loss", Number(r.loss)},
                   {"lr", Number(r.lr)},
                   {"samples_per_s", Number(r.samples_per_s)},
                   {"data_s", r.data_s},
                   {"compute_s", r.compute_s},
                   {"comm_s", r.comm_s},
                   {"mem_gib", resident}}
           .dump());
  const std::string line = FormatTrainLine(r, resident);
  if (is_terminal_) {
    fmt::print(text_, "{} {}\n", Now(), line);
    std::fflush(text_);
    DrawBar(r, line);
  } else {
    Line("", line);
  }
}

void RunLog::Eval(const EvalRecord& r) {
  OrderedJson metrics = OrderedJson::object();
  std::string text;
  for (const auto& [name, value] : r.metrics) {
    metrics[name] = Number(value);
    text += fmt::format("  {} {:.5f}", name, value);
  }
  Json(OrderedJson{{"event", "eval"},
                   {"iteration", r.iteration},
                   {"epoch", r.epoch},
                   {"metrics", metrics},
                   {"samples", r.samples}}
           .dump());
  Line("", fmt::format("eval after epoch {}  it {}{}  {} samples in {:.1f} s{}", r.epoch,
                       r.iteration, text, r.samples, r.seconds, r.best ? "  best so far" : ""));
}

void RunLog::Checkpoint(int64_t iteration, const std::string& path) {
  Json(OrderedJson{{"event", "checkpoint"}, {"iteration", iteration}, {"path", path}}.dump());
  fmt::print(text_, "{} saved {}\n", Now(), path);
  std::fflush(text_);
}

void RunLog::End(const std::string& status, const std::string& reason) {
  // Messages may quote bytes of broken files.
  Json(OrderedJson{{"event", "end"}, {"status", status}, {"reason", reason}}.dump(
      -1, ' ', false, OrderedJson::error_handler_t::replace));
  fmt::print(text_, "{} {}{}{}\n", Now(), status, reason.empty() ? "" : ": ", reason);
  std::fflush(text_);
  if (options_.quiet) return;
  ClearBar();
  if (reason.empty()) fmt::print(options_.terminal, "{}\n", status);
}

void RunLog::ClearBar() {
  if (!bar_drawn_) return;
  fmt::print(options_.terminal, "\r\x1b[K");
  bar_drawn_ = false;
}

void RunLog::DrawBar(const TrainRecord& r, const std::string& text) {
  const int width = TerminalWidth(options_.terminal);
  const double done = r.total_iterations > 0 ? static_cast<double>(r.iteration) /
                                                   static_cast<double>(r.total_iterations)
                                             : 0;
  const int cells = 12, full = static_cast<int>(std::min(1.0, done) * cells);
  std::string line = "[" + std::string(static_cast<size_t>(full), '=') +
                     std::string(static_cast<size_t>(cells - full), ' ') + "] " + text;
  // A line that wraps could not be drawn over.
  line.resize(std::min(line.size(), static_cast<size_t>(width - 1)));
  fmt::print(options_.terminal, "\r{}\x1b[K", line);
  std::fflush(options_.terminal);
  bar_drawn_ = true;
}

absl::Status RunLog::TruncateAfter(int64_t iteration) {
  const std::string path = options_.output_dir + "/metrics.jsonl";
  std::ifstream in(path);
  std::string kept;
  bool dropped = false;
  for (std::string line; std::getline(in, line);) {
    const std::optional<int64_t> at = IterationOf(line);
    if (at.has_value() && *at <= iteration) {
      kept += line + "\n";
    } else {
      dropped = true;
    }
  }
  if (!dropped) return absl::OkStatus();
  const std::string fresh = path + ".tmp";
  std::FILE* file = std::fopen(fresh.c_str(), "we");
  if (file == nullptr) return ErrnoStatus(errno, "open " + fresh);
  const bool written = std::fwrite(kept.data(), 1, kept.size(), file) == kept.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed || std::rename(fresh.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, "write " + path);
  }
  // The stream still appends to the file that was replaced.
  std::fclose(metrics_);
  metrics_ = std::fopen(path.c_str(), "ae");
  return metrics_ != nullptr ? absl::OkStatus() : ErrnoStatus(errno, "open " + path);
}

}  // namespace capstan
