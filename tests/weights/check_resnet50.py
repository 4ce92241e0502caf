#!/usr/bin/env python3
"""ResNet-50 of full size: does Capstan answer as PyTorch and PaddlePaddle do, in and out?

Needs PyTorch, torchvision, PaddlePaddle and safetensors (README.md beside this), and the trainer:

    bazel build //tools/trainer
    venv/bin/python tests/weights/check_resnet50.py [.bazel/bin/tools/trainer/trainer]

Random weights go into torchvision's and paddle.vision's own models, each framework saves them in
its forms, and `trainer compare` reads every file and compares its logits, on one picture of
3x224x224, with those of both. Then `trainer export` gives them back and torchvision's model takes
them. Ends with 1 where a logit differs by more than 1e-4.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import make_goldens
import paddle
import torch
import torchvision
from safetensors.torch import load_file, save_file

ALLOWED = 1e-4

# Its one update moves no weight by more than 1e-30, and the statistics are kept.
JOB = """version: 1
model: {{name: resnet50, classes: 1000, batch_norm_momentum: 1.0}}
dataset:
  train: {{type: synthetic, classes: 1000, shape: [3, 224, 224], samples: 2, batch_size: 2}}
loss: {{name: cross_entropy}}
optimizer: {{name: momentum, lr: 1.0e-35}}
train: {{epochs: 1}}
output_dir: '{out}'
device: cpu
"""


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def save_all(folder):
    """Makes every file; returns the picture and what each framework makes of it."""
    torch.manual_seed(50)
    model = torchvision.models.resnet50(weights=None)
    make_goldens.randomize(model, 64)
    model.eval()
    state = model.state_dict()
    image = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        logits = {"PyTorch": model(image)}
    save_file(state, folder / "resnet50.safetensors")
    torch.save(state, folder / "resnet50.pth")
    torch.save(state, folder / "resnet50_old.pth", _use_new_zipfile_serialization=False)
    wrapped = {"epoch": 90, "state_dict": {"module." + n: v for n, v in state.items()}}
    torch.save(wrapped, folder / "resnet50_wrapped.pth")

    vision = paddle.vision.models.resnet50(pretrained=False)
    arrays = make_goldens.paddle_vision_names(state)
    missing, unexpected = vision.set_state_dict({n: paddle.to_tensor(a) for n, a in arrays.items()})
    assert not missing and not unexpected, (missing, unexpected)
    vision.eval()
    logits["PaddlePaddle"] = torch.from_numpy(vision(paddle.to_tensor(image.numpy())).numpy())
    for protocol in (2, 4):
        path = folder / f"resnet50_protocol{protocol}.pdparams"
        paddle.save(vision.state_dict(), str(path), protocol=protocol)
    clas = make_goldens.PaddleResNet(50, 64, 1000)
    names = make_goldens.clas_names(clas, state)
    clas.set_state_dict({n: paddle.to_tensor(a) for n, a in names.items()})
    paddle.save(clas.state_dict(), str(folder / "resnet50_clas.pdparams"))
    return model, image, logits


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trainer", nargs="?", default=".bazel/bin/tools/trainer/trainer")
    args = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, image, logits = save_all(folder)
        print(f"logits from {logits['PyTorch'].min():.3f} to {logits['PyTorch'].max():.3f}; "
              f"PyTorch and PaddlePaddle differ by "
              f"{(logits['PyTorch'] - logits['PaddlePaddle']).abs().max():.2e}")
        for peer, answer in logits.items():
            save_file({"input": image, "fc": answer}, folder / f"{peer}.golden")
        job = folder / "job.yaml"
        job.write_text(JOB.format(out=folder / "output"))

        print(f"{'file':<30} {'from PyTorch':>14} {'from Paddle':>14}")
        for file in sorted(folder.glob("resnet50*")):
            row = []
            for peer in logits:
                out = run(args.trainer, "compare", "-c", job, "--checkpoint", file,
                          "--golden", folder / f"{peer}.golden")
                found = re.search(r"^fc +\[1,1000\] +(\S+)", out, re.MULTILINE)
                if found is None:
                    sys.exit(out)
                row.append(float(found[1]))
            worst = max([worst, *row])
            print(f"{file.name:<30} {row[0]:>14.2e} {row[1]:>14.2e}")

        out = folder / "exported.safetensors"
        run(args.trainer, "train", "-c", job, "-o",
            f"model.pretrained={folder / 'resnet50_clas.pdparams'}")
        run(args.trainer, "export", "-c", job, "--to", out)
        back = torchvision.models.resnet50(weights=None)
        exported = load_file(out)
        # The counters that nobody needs are not ours to give.
        fault = back.load_state_dict(exported, strict=False)
        assert not fault.unexpected_keys, fault.unexpected_keys
        assert all(n.endswith("num_batches_tracked") for n in fault.missing_keys), fault.missing_keys
        state = model.state_dict()
        changed = {n: (v - state[n]).abs().max().item() for n, v in exported.items()
                   if not torch.allclose(v, state[n], rtol=0, atol=1e-30)}
        if changed:
            sys.exit(f"exported tensors differ: {changed}")
        print(f"exported: {len(exported)} tensors, those of torchvision's model within 1e-30")
    print(f"largest difference {worst:.2e}, {ALLOWED:.0e} allowed")
    return 0 if worst <= ALLOWED else 1


if __name__ == "__main__":
    sys.exit(main())
