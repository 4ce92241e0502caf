# One line per operator folder; ops/op_table.h is generated from it.
OPS = [
    "adam",
    "clamp",
    "global_norm",
    "matmul",
    "momentum",
    "mul",
    "reduce",
    "relu",
    "reshape",
    "sgd",
    "softmax",
    "softmax_cross_entropy",
    "transpose",
]
