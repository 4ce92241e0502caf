"""Finds CUDA on this machine. Bazel runs this only when a target of the repository is wanted, so a
build without --config=cuda never does."""

_BUILD = """\
load("@capstan//tools/third_party/cuda:cuda_library.bzl", "cuda_toolkit")

package(default_visibility = ["//visibility:public"])

cuda_toolkit(
    name = "toolkit",
    home = "{home}",
)

# Static, so that a binary asks nothing but the driver of the machine that it runs on.
cc_library(
    name = "runtime",
    linkopts = [
        "-L{home}/lib64",
        "-lcudart_static",
        "-ldl",
        "-lpthread",
        "-lrt",
    ],
)
"""

def _impl(repository_ctx):
    found = repository_ctx.execute([repository_ctx.path(Label("//tools/third_party/cuda:find"))])
    if found.return_code != 0:
        fail(found.stderr)
    repository_ctx.file("BUILD", _BUILD.format(home = found.stdout.strip()))

cuda_repository = repository_rule(
    implementation = _impl,
    environ = ["CUDA_HOME"],
    local = True,
)
