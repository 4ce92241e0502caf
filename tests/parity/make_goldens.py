#!/usr/bin/env python3
"""Makes tests/parity/goldens/*.json: what PyTorch computes for a narrow residual network.

Needs PyTorch and NumPy; the tests read the goldens and need neither:

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python tests/parity/make_goldens.py

The job: ResNet-18 with the small stem (3x3 convolution of stride 1, no pooling), width 8, 10
classes, images 3x32x32, batches of 8. 20 iterations of SGD with momentum 0.9, rate 1/128 (exact in
float; README.md says why so low) and L2 1e-4 added to the gradients of filters and of the
classifier's matrix, not of biases and norm parameters. Iteration i trains on fixed batch i mod 5.
First weights, images and labels follow the closed form of closed_form.h. Batch norm keeps 0.9 of
its running statistics. The double job is the same with images 3x16x16 and 10 iterations, because
reference kernels are slow.

Each file holds, for one float type: `closed_form` samples of that formula; `losses` of the
iterations; `logits0` and `gradients` of the first one; `weights` and `statistics` after the last
one; `eval_loss` and `eval_logits` of batch 0 in evaluation mode then. Tensors are given by their
L2 norm and the elements at the listed row-major indices (all of them where there are few).
"""

import argparse
import json
import math
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SPEC = {
    "model": "resnet18",
    "stem": "small",
    "width": 8,
    "classes": 10,
    "image": [8, 3, 32, 32],
    "batches": 5,
    "iterations": 20,
    "lr": 2.0**-7,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "batch_norm_momentum": 0.9,
    "batch_norm_epsilon": 1e-5,
}
# What differs by float type.
JOBS = {
    "f32": (torch.float32, {}),
    "f64": (torch.float64, {"image": [8, 3, 16, 16], "iterations": 10}),
}
# Tensors of up to ALL elements are given whole, larger ones by SOME of theirs.
ALL = 10
SOME = 6


# --- The closed form; closed_form.h says the same in C++. ---


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def bits(name, count):
    """24 bits for each of the indices 0 .. count-1."""
    z = np.uint64(fnv1a(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return z >> np.uint64(40)


def unit(name, count):
    return bits(name, count).astype(np.float64) / 8388608.0 - 1.0


def parameter(name, shape):
    values = unit(name, math.prod(shape))
    if len(shape) == 4:
        values = values * math.sqrt(6.0 / (shape[0] * shape[2] * shape[3]))
    elif len(shape) == 2:
        values = values / math.sqrt(shape[1])
    elif name == "fc.bias":
        values = values / 4.0
    elif name.endswith("weight"):
        values = 0.5 + values / 8.0
    else:
        values = 1.0 + values / 4.0
    return values.reshape(shape)


def images(batch, shape):
    return (2.0 * unit(f"image/{batch}", math.prod(shape))).reshape(shape)


def labels(batch, count):
    return (bits(f"label/{batch}", count) % np.uint64(SPEC["classes"])).astype(np.int64)


# --- The network, with torchvision's names. ---


def conv(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def norm(channels):
    # PyTorch's momentum is the share that is replaced.
    return nn.BatchNorm2d(
        channels, eps=SPEC["batch_norm_epsilon"], momentum=1.0 - SPEC["batch_norm_momentum"]
    )


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = conv(inputs, outputs, 3, stride)
        self.bn1 = norm(outputs)
        self.conv2 = conv(outputs, outputs, 3, 1)
        self.bn2 = norm(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), norm(outputs))

    def forward(self, x):
        residual = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.relu(residual + shortcut)


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        width = SPEC["width"]
        self.conv1 = conv(SPEC["image"][1], width, 3, 1)
        self.bn1 = norm(width)
        channels = width
        for stage in range(4):
            outputs, stride = width << stage, 1 if stage == 0 else 2
            blocks = nn.Sequential(Block(channels, outputs, stride), Block(outputs, outputs, 1))
            setattr(self, f"layer{stage + 1}", blocks)
            channels = outputs
        self.fc = nn.Linear(channels, SPEC["classes"])

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean(dim=(2, 3)))


# --- The run. ---


def indices_of(count):
    if count <= ALL:
        return list(range(count))
    return [i * (count - 1) // (SOME - 1) for i in range(SOME)]


class Goldens:
    """Collects results of one float type, printed with enough digits for it."""

    def __init__(self, dtype):
        self.digits = 9 if dtype == torch.float32 else 16

    def number(self, value):
        return float(f"{float(value):.{self.digits}g}")

    def tensor(self, tensor):
        flat = tensor.detach().double().flatten()
        indices = indices_of(flat.numel())
        return {
            "shape": list(tensor.shape),
            "norm": self.number(flat.norm()),
            "index": indices,
            "value": [self.number(flat[i]) for i in indices],
        }


def make(dtype, changes):
    spec = SPEC | changes
    shape, batches = spec["image"], range(spec["batches"])
    goldens = Goldens(dtype)
    model = ResNet18().to(dtype)
    names = {id(p): name for name, p in model.named_parameters()}
    result = {"pytorch": torch.__version__, "dtype": str(dtype).split(".")[-1], "spec": spec}
    result["closed_form"] = {"parameters": {}, "images": [], "labels": []}
    with torch.no_grad():
        for name, p in model.named_parameters():
            values = parameter(name, tuple(p.shape))
            p.copy_(torch.from_numpy(values))
            if name in ("conv1.weight", "bn1.weight", "bn1.bias", "fc.weight", "fc.bias"):
                sample = Goldens(torch.float64).tensor(torch.from_numpy(values))
                result["closed_form"]["parameters"][name] = sample
    data = [(images(k, shape), labels(k, shape[0])) for k in batches]
    for image, label in data:
        sample = Goldens(torch.float64).tensor(torch.from_numpy(image))
        result["closed_form"]["images"].append(sample)
        result["closed_form"]["labels"].append(label.tolist())
    data = [(torch.from_numpy(i).to(dtype), torch.from_numpy(l)) for i, l in data]

    decay = [p for p in model.parameters() if p.ndim > 1]
    no_decay = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.SGD(
        [{"params": decay, "weight_decay": SPEC["weight_decay"]}, {"params": no_decay}],
        lr=SPEC["lr"],
        momentum=SPEC["momentum"],
    )
    model.train()
    result["losses"] = []
    for iteration in range(spec["iterations"]):
        image, label = data[iteration % len(data)]
        optimizer.zero_grad()
        logits = model(image)
        loss = F.cross_entropy(logits, label)
        loss.backward()
        if iteration == 0:
            result["logits0"] = [[goldens.number(v) for v in row] for row in logits.tolist()]
            result["gradients"] = {
                names[id(p)]: goldens.tensor(p.grad) for p in model.parameters()
            }
        optimizer.step()
        result["losses"].append(goldens.number(loss.detach()))
    result["weights"] = {name: goldens.tensor(p) for name, p in model.named_parameters()}
    result["statistics"] = {
        name: goldens.tensor(s) for name, s in model.named_buffers() if s.is_floating_point()
    }
    model.eval()
    with torch.no_grad():
        logits = model(data[0][0])
        result["eval_loss"] = goldens.number(F.cross_entropy(logits, data[0][1]))
        result["eval_logits"] = [[goldens.number(v) for v in row] for row in logits.tolist()]
    return result


def text_of(result):
    """JSON with one line for each tensor or list, so that differences read well."""

    def render(value, depth):
        if not isinstance(value, dict) or {"norm", "index"} <= set(value):
            return json.dumps(value)
        pad = "  " * (depth + 1)
        items = [f"{pad}{json.dumps(k)}: {render(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + "  " * depth + "}"

    return render(result, 0) + "\n"


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=here / "goldens")
    args = parser.parse_args()
    # One thread and no fused shortcuts: the same sums in the same order on every run.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    args.out.mkdir(parents=True, exist_ok=True)
    for short, (dtype, changes) in JOBS.items():
        path = args.out / f"resnet18_narrow_{short}.json"
        path.write_text(text_of(make(dtype, changes)))
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
