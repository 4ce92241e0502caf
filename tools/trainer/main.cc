// trainer COMMAND -c job.yaml [-o key=value ...]
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>

#include "engine/base/status.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"
#include "tools/trainer/registry.h"

namespace capstan {
namespace {

using Command = absl::StatusOr<int> (*)(const CommandLine&, const EngineTables&);

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
  sub->add_option("-c,--config", line->config, "job file")->required();
  sub->add_option("-o,--override", line->overrides,
                  "key=value: takes the place of what the job file says; may be repeated");
  return sub;
}

void AddRunOptions(CLI::App* sub, CommandLine* line) {
  sub->add_option("--threads", line->threads, "CPU threads of kernels; 0: all cores")
      ->check(CLI::Range(0, 4096));
  sub->add_option_function<std::string>(
      "--dump", [line](const std::string& text) { ParseDump(text, &line->dump); },
      "DIR[:regex]: write the graph after each pass whose name matches");
}

int Main(int argc, char** argv) {
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
  predict->add_option("pictures", line.pictures, "JPEG or PNG files")->required();
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
  add("render", "print the whole job, defaults and overrides included", RenderCommand);
  CLI::App* schema =
      add("schema", "print the JSON Schema of job files, for editors", SchemaCommand);
  schema->add_flag_callback(
      "--markdown", [&] { line.show = "markdown"; }, "print docs/job-file.md instead");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // -h is no error; everything else is a usage error.
    return app.exit(e) == 0 ? kExitDone : kExitBadJob;
  }
  const EngineTables tables = MakeTables();
  const absl::StatusOr<int> status = chosen(line, tables);
  if (status.ok()) return *status;
  std::fprintf(stderr, "trainer: %s\n", MessageOf(status.status()).c_str());
  return ExitStatusOf(status.status());
}

}  // namespace
}  // namespace capstan

int main(int argc, char** argv) { return capstan::Main(argc, argv); }
