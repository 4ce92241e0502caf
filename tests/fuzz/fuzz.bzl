"""Fuzzers: programs with LLVMFuzzerTestOneInput."""

def capstan_fuzz_test(name, corpus, srcs, deps):
    """A fuzzer and its seeds.

    `--config=fuzz` links libFuzzer, for tools/fuzz. Every other build makes a test that runs the
    seeds alone, so that what a fuzzer once found stays found.

    Args:
      name: of the target.
      corpus: folder of seeds below this package.
      srcs: C++ sources.
      deps: what they include.
    """
    native.cc_test(
        name = name,
        size = "small",
        srcs = srcs,
        args = ["%s/%s" % (native.package_name(), corpus)],
        data = native.glob([corpus + "/*"]),
        linkopts = select({
            "//tests/fuzz:fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        tags = ["fuzz"],
        deps = deps + select({
            "//tests/fuzz:fuzzing": [],
            "//conditions:default": ["//tests/fuzz:replay"],
        }),
    )
