#!/usr/bin/env python3
"""Makes the binary seeds of pickle_fuzzer and safetensors_fuzzer: small files of every form that is
read, and hostile ones.

Needs PyTorch, PaddlePaddle and safetensors (tests/weights/README.md has the command). Seeds that
came from findings bear other names and stay.
"""

import argparse
import collections
import os
import pathlib
import pickle
import struct
import subprocess

import numpy
import paddle
import safetensors.torch
import torch

here = pathlib.Path(__file__).parent / "corpus"


def pickles(folder):
    state = collections.OrderedDict(
        {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.tensor([1.0, 2.0])}
    )
    torch.save(state, folder / "torch.pth")
    torch.save(state, folder / "torch_old.pth", _use_new_zipfile_serialization=False)
    mixed = {
        "half": torch.ones(3, dtype=torch.float16),
        "bfloat": torch.ones(3, dtype=torch.bfloat16),
        "whole": torch.arange(3),
        "flags": torch.tensor([True, False]),
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "part": torch.arange(6.0)[2:4],
        "expanded": torch.ones(1).expand(4),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(3.0),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    wrapped = {
        "epoch": 3,
        "state_dict": mixed,
        "best": 0.5,
        "args": argparse.Namespace(lr=0.1, names=["a", "b"]),
        "array": numpy.arange(3.0, dtype="f4"),
        "number": numpy.float64(0.5),
    }
    torch.save(wrapped, folder / "torch_mixed.pth")
    torch.save(wrapped, folder / "torch_mixed_old.pth", _use_new_zipfile_serialization=False)

    arrays = {"w": numpy.arange(6, dtype="f4").reshape(2, 3), "turned": numpy.asfortranarray(
        numpy.arange(6, dtype="f8").reshape(2, 3)), "big_endian": numpy.arange(2, dtype=">f4")}
    for protocol in (2, 4):
        state = {name: paddle.to_tensor(a) for name, a in arrays.items() if a.dtype.byteorder != ">"}
        paddle.save(state, str(folder / f"paddle{protocol}.pdparams"), protocol=protocol)
        (folder / f"numpy{protocol}.pdparams").write_bytes(pickle.dumps(arrays, protocol))

    class Call:
        def __init__(self, function, *arguments):
            self.call = (function, arguments)

        def __reduce__(self):
            return self.call

    hostile = {
        "system": {"w": Call(os.system, "true")},
        "eval": {"w": Call(eval, "1")},
        "run": {"w": Call(subprocess.run, ["true"])},
        "getattr": {"w": Call(getattr, [], "append")},
        "deep": None,
    }
    for _ in range(400):
        hostile["deep"] = [hostile["deep"]]
    for name, value in hostile.items():
        for protocol in (0, 2, 4):
            (folder / f"hostile_{name}_{protocol}").write_bytes(pickle.dumps(value, protocol))
    (folder / "hostile_size").write_bytes(b"\x80\x04\x8e" + b"\xff" * 8 + b".")
    (folder / "hostile_frame").write_bytes(b"\x80\x04\x95" + b"\xff" * 8 + b"}.")


def safetensors_files(folder):
    tensors = {"w": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([True, False, True]),
               "n": torch.arange(3), "e": torch.empty(0, 3), "h": torch.ones(2, dtype=torch.bfloat16)}
    whole = safetensors.torch.save(tensors, {"format": "pt"})
    (folder / "whole").write_bytes(whole)
    index = '{"metadata": {"total_size": 64}, "weight_map": {"w": "part.safetensors", '
    index += '"b": "part.safetensors"}}'
    (folder / "index").write_bytes(index.encode() + b"\0" + whole)
    for name, header, data in (
        ("overlap", '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
                    '"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}', 6),
        ("huge", '{"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}}', 0),
        ("twice", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                  '"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', 2),
        ("other_types", '{"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},'
                        '"b":{"dtype":"X","shape":[],"data_offsets":[2,3]}}', 3),
    ):
        file = struct.pack("<Q", len(header)) + header.encode() + bytes(data)
        (folder / name).write_bytes(file)


def main():
    for name, make in (("pickle", pickles), ("safetensors", safetensors_files)):
        (here / name).mkdir(parents=True, exist_ok=True)
        make(here / name)


if __name__ == "__main__":
    main()
