# One line per operator folder; ops/op_table.h is generated from it.
OPS = [
    "relu",
]
