// trainer COMMAND -c job.yaml [-o key=value ...]
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"
#include "tools/trainer/registry.h"

namespace capstan {
namespace {

using Command = absl::StatusOr<int> (*)(const CommandLine&, const EngineTables&);

// A process may be started without standard streams (`>&-`); the next file opened would then take
// their numbers, and what is printed would land in a checkpoint.
void KeepStandardStreams() {
  for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    close(fd);
    return;
  }
}

// Any thread may run out of memory, in libraries too, where no status can come back.
[[noreturn]] void OutOfMemory() {
  constexpr char kMessage[] =
      "trainer: the job does not fit: the system gives no more memory. Lower batch_size, "
      "loader.prefetch or the model's size, or raise the limit (ulimit -v, container)\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  _exit(kExitDoesNotFit);
}

// Code generators of libraries crash where they get no pages; so that much must be there.
absl::Status CheckMemory() {
  constexpr size_t kLeast = size_t{96} << 20;
  void* memory =
      mmap(nullptr, kLeast, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return ResourceExhausted(
        "less than {} of memory may be used beside the program itself; raise "
        "the limit (ulimit -v)",
        HumanBytes(double(kLeast)));
  }
  munmap(memory, kLeast);
  return absl::OkStatus();
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "trainer: %s\n", MessageOf(status).c_str());
  return ExitStatusOf(status);
}

// `--dump=DIR[:regex]`
void ParseDump(const std::string& text, DumpOptions* dump) {
  const size_t colon = text.find(':');
  dump->folder = text.substr(0, colon);
  dump->regex = colon == std::string::npos ? "" : text.substr(colon + 1);
}

CLI::App* AddCommand(CLI::App& app, const char* name, const char* doc, Command command,
                     CommandLine* line, Command* chosen) {
  CLI::App* sub = app.add_subcommand(name, doc);
  sub->callback([=] { *chosen = command; });
  if (command == SchemaCommand) return sub;
  sub->add_option("-c,--config", line->config, "job file")->required()->type_name("FILE");
  sub->add_option("-o,--override", line->overrides,
                  "take the place of what the job file says; may be repeated")
      ->type_name("KEY=VALUE");
  return sub;
}

void AddRunOptions(CLI::App* sub, CommandLine* line) {
  sub->add_option("--threads", line->threads, "CPU threads of kernels; 0: all cores")
      ->check(CLI::Range(0, 4096));
  sub->add_option_function<std::string>(
      "--dump", [line](const std::string& text) { ParseDump(text, &line->dump); },
      "DIR[:regex]: write the graph after each pass whose name matches");
}

std::string Commands(const CLI::App& app) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + sub->get_name();
  }
  return names;
}

// What is wrong with the command line, or nothing.
absl::Status ParseCommandLine(int argc, char** argv, CLI::App* app, bool* help) {
  const std::string first = argc > 1 ? argv[1] : "";
  const bool known =
      !app->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == first; }).empty();
  if (!known && !first.starts_with('-')) {
    return InvalidArgument(
        "{}; there are {}",
        first.empty() ? "no command given" : fmt::format("no command '{}'", first), Commands(*app));
  }
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    *help = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (*help) {
      app->exit(e);
      return absl::OkStatus();
    }
    return InvalidArgument("{}; `trainer {}-h` tells more", e.what(), known ? first + " " : "");
  }
  return absl::OkStatus();
}

// `-o` takes all that follows it, so pictures may come there: they have no '='.
void TakePictures(CommandLine* line) {
  const auto is_override = [](const std::string& s) { return s.find('=') != std::string::npos; };
  auto& all = line->overrides;
  const auto end = std::stable_partition(all.begin(), all.end(), is_override);
  line->pictures.insert(line->pictures.end(), end, all.end());
  all.erase(end, all.end());
}

int Main(int argc, char** argv) {
  KeepStandardStreams();
  std::set_new_handler(OutOfMemory);
  // Beyond `ulimit -f` a write then fails, with a message, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  CommandLine line;
  Command chosen = nullptr;
  CLI::App app("Trains a network from one YAML file.", "trainer");
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* doc, Command command) {
    return AddCommand(app, name, doc, command, &line, &chosen);
  };
  AddRunOptions(add("train", "train, evaluate, save; goes on where it was stopped", TrainCommand),
                &line);
  CLI::App* eval = add("eval", "measure a checkpoint on dataset.eval", EvaluateCommand);
  CLI::App* predict = add("predict", "name what pictures show", PredictCommand);
  CLI::App* compare =
      add("compare", "find the first layer whose activations differ from a golden file's",
          CompareCommand);
  for (CLI::App* sub : {eval, predict, compare}) {
    AddRunOptions(sub, &line);
    sub->add_option("--checkpoint", line.checkpoint,
                    "best, latest, a checkpoint folder or a weights file; else the best one, the "
                    "newest, or model.pretrained");
  }
  compare
      ->add_option("--golden", line.golden,
                   "safetensors file with `input` and activations named by scope")
      ->required();
  compare
      ->add_option("--tolerance", line.tolerance,
                   "allowed difference, as a share of an activation's largest value")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI::App* export_ = add("export", "write a checkpoint's weights as safetensors", ExportCommand);
  export_->add_option("--checkpoint", line.checkpoint,
                      "best, latest, or a checkpoint folder; the best one if there is one");
  export_->add_option("--to", line.to, "file to write: weights.safetensors")->required();
  predict->add_option("--top", line.top, "classes to print")->check(CLI::PositiveNumber);
  predict->add_option("pictures", line.pictures, "JPEG or PNG files, or folders of them")
      ->type_name("FILE");
  CLI::App* explain = add("explain", "show what a job becomes, without running it", ExplainCommand);
  AddRunOptions(explain, &line);
  explain->add_option("--show", line.show,
                      "summary, parameters, model (graphs as written), graph (after all passes), "
                      "plan or memory");
  CLI::App* verify =
      add("verify-resume", "prove that stopping and going on changes no bit", VerifyResumeCommand);
  AddRunOptions(verify, &line);
  verify->add_option("--points", line.points, "iterations to stop at")->check(CLI::PositiveNumber);
  verify->add_option("--iterations", line.iterations, "length of the run")
      ->check(CLI::PositiveNumber);
  verify->add_option("--work-dir", line.work_dir,
                     "folder for the runs; default: output_dir/verify");
  add("check-data", "read every row and decode every picture of both data sets", CheckDataCommand);
  add("render", "print the whole job, defaults and overrides included", RenderCommand);
  CLI::App* schema =
      add("schema", "print the JSON Schema of job files, for editors", SchemaCommand);
  schema->add_flag_callback(
      "--markdown", [&] { line.show = "markdown"; }, "print docs/job-file.md instead");

  bool help = false;
  if (const absl::Status status = ParseCommandLine(argc, argv, &app, &help); !status.ok()) {
    return Fail(status);
  }
  if (help) return kExitDone;
  if (chosen == PredictCommand) TakePictures(&line);
  if (const absl::Status status = CheckMemory(); !status.ok()) return Fail(status);
  const EngineTables tables = MakeTables();
  const absl::StatusOr<int> status = chosen(line, tables);
  if (!status.ok()) return Fail(status.status());
  // A training run has its logs.
  if (chosen != TrainCommand && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    return Fail(ErrnoStatus(errno, "write standard output"));
  }
  return *status;
}

}  // namespace

void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }

}  // namespace capstan

int main(int argc, char** argv) { return capstan::Main(argc, argv); }
