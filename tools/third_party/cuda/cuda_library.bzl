"""cuda_library: C++ that only CUDA's compiler, or a compiler that finds CUDA's headers, can read."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# Hopper, and nothing else: kernels use its own instructions (wgmma, the bulk copy engine).
_ARCHITECTURE = "-gencode=arch=compute_90a,code=sm_90a"

CudaToolkitInfo = provider(fields = ["home"])

def _toolkit_impl(ctx):
    return [CudaToolkitInfo(home = ctx.attr.home)]

cuda_toolkit = rule(
    implementation = _toolkit_impl,
    attrs = {"home": attr.string(mandatory = True)},
)

def _library_impl(ctx):
    home = ctx.attr.toolkit[CudaToolkitInfo].home
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    headers = cc_common.create_compilation_context(headers = depset(ctx.files.hdrs))
    inside = cc_common.merge_cc_infos(
        cc_infos = [CcInfo(compilation_context = headers)] + [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context

    # The flags of .bazelrc reach the host's half of every file. nvcc's own output does not pass
    # -Wextra; its warnings about our text come from its front end.
    host_flags = [f for f in ctx.fragments.cpp.copts if not f.startswith("-W")]
    objects = []
    for source in ctx.files.srcs:
        object = ctx.actions.declare_file("_cuda/%s/%s.o" % (ctx.label.name, source.basename))
        objects.append(object)
        arguments = ctx.actions.args()
        arguments.add("-c", source)
        arguments.add("-o", object)
        arguments.add_all([_ARCHITECTURE, "-std=c++20", "-O2", "--expt-relaxed-constexpr", "--extended-lambda"])
        # fmt's own choice is wrong for nvcc; 2810 warns of [[nodiscard]] in code of gtest's and fmt's.
        arguments.add_all(["-DFMT_USE_CONSTEXPR=1", "-diag-suppress=2810"])
        arguments.add_all(["--Werror=all-warnings", "-I."])
        arguments.add("-ccbin", toolchain.compiler_executable)
        arguments.add_joined(["-fPIC"] + host_flags, join_with = ",", format_joined = "-Xcompiler=%s")
        arguments.add_all(inside.defines, before_each = "-D")
        ctx.actions.run(
            executable = home + "/bin/nvcc",
            arguments = [arguments],
            inputs = depset([source], transitive = [inside.headers, toolchain.all_files]),
            outputs = [object],
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s" % source.short_path,
            use_default_shell_env = True,
        )
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        linking_contexts = [
            dep[CcInfo].linking_context
            for dep in ctx.attr.deps + [ctx.attr.runtime]
        ],
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(compilation_context = inside, linking_context = linking),
    ]

_cuda_library = rule(
    implementation = _library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu", ".cc"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "toolkit": attr.label(providers = [CudaToolkitInfo]),
        "runtime": attr.label(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, **kwargs):
    """A library that is compiled under --config=cuda only; elsewhere `//...` leaves it out.

    Args:
      name: of the target.
      **kwargs: srcs (.cu, .cc), hdrs, deps and what every rule takes. A target that depends on this
        one does so by `select` on //tools/third_party/cuda:enabled.
    """
    _cuda_library(
        name = name,
        tags = kwargs.pop("tags", []) + ["cuda"],
        target_compatible_with = select({
            "//tools/third_party/cuda:enabled": [],
            "//conditions:default": ["//tools/third_party/cuda:only_with_cuda"],
        }),
        toolkit = select({
            "//tools/third_party/cuda:enabled": "@local_cuda//:toolkit",
            "//conditions:default": None,
        }),
        runtime = select({
            "//tools/third_party/cuda:enabled": "@local_cuda//:runtime",
            "//conditions:default": None,
        }),
        **kwargs
    )
