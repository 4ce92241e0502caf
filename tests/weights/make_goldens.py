#!/usr/bin/env python3
"""Makes tests/weights/goldens/*: one narrow ResNet-18 in every form that Capstan reads.

Needs PyTorch and PaddlePaddle; the tests read the goldens and need neither:

    python3 -m venv venv && venv/bin/pip install torch paddlepaddle safetensors
    venv/bin/python tests/weights/make_goldens.py

The files hold the same numbers under the names of the framework that wrote them:

    torchvision.safetensors   layer1.0.conv1.weight, bn1.running_mean, ...
    torchvision.pth           torch.save of the state dictionary
    torchvision_old.pth       the same in the form before PyTorch 1.6
    wrapped_half.pth          {"state_dict": ...}, names behind "module.", float16
    paddle_vision.pdparams    layer1.0.conv1.weight, bn1._mean, fc.weight as [in, out]; protocol 4
    paddle_clas.pdparams      stem.0.conv.weight, blocks.0.conv0.conv.weight, ...; protocol 2
    peers.safetensors         `input`, and what each framework makes of it: `torch`, `paddle`
    activations.safetensors   `input` and PyTorch's activations, by tools/compare's script

With --depth 50 --width 64 --classes 1000 --size 224 --out DIR it makes ResNet-50 of full size.
"""

import argparse
import importlib.util
import pathlib

import paddle
import torch
from safetensors.torch import save_file

DEPTHS = {18: (False, (2, 2, 2, 2)), 50: (True, (3, 4, 6, 3))}


def torch_conv_norm(inputs, outputs, kernel, stride):
    conv = torch.nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return conv, torch.nn.BatchNorm2d(outputs)


class TorchBlock(torch.nn.Module):
    """A block under torchvision's names."""

    def __init__(self, bottleneck, inputs, channels, stride):
        super().__init__()
        sizes = [(1, 1, 1), (3, stride, 1), (1, 1, 4)] if bottleneck else [(3, stride, 1), (3, 1, 1)]
        self.count = len(sizes)
        width = inputs
        for i, (kernel, step, times) in enumerate(sizes, 1):
            conv, norm = torch_conv_norm(width, channels * times, kernel, step)
            setattr(self, f"conv{i}", conv)
            setattr(self, f"bn{i}", norm)
            width = channels * times
        self.downsample = None
        if stride != 1 or inputs != width:
            self.downsample = torch.nn.Sequential(*torch_conv_norm(inputs, width, 1, stride))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = torch.relu(y) if i < self.count else y
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class TorchResNet(torch.nn.Module):
    def __init__(self, depth, width, classes):
        super().__init__()
        bottleneck, counts = DEPTHS[depth]
        self.conv1, self.bn1 = torch_conv_norm(3, width, 7, 2)
        self.maxpool = torch.nn.MaxPool2d(3, 2, 1)
        inputs = width
        for stage, count in enumerate(counts):
            blocks = []
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(TorchBlock(bottleneck, inputs, width << stage, stride))
                inputs = (width << stage) * (4 if bottleneck else 1)
            setattr(self, f"layer{stage + 1}", torch.nn.Sequential(*blocks))
        self.fc = torch.nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


class PaddleConvNorm(paddle.nn.Layer):
    """A convolution and its norm under PaddleClas' names."""

    def __init__(self, inputs, outputs, kernel, stride):
        super().__init__()
        self.conv = paddle.nn.Conv2D(inputs, outputs, kernel, stride, kernel // 2, bias_attr=False)
        self.bn = paddle.nn.BatchNorm2D(outputs)

    def forward(self, x):
        return self.bn(self.conv(x))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, bottleneck, inputs, channels, stride, first):
        super().__init__()
        sizes = [(1, 1, 1), (3, stride, 1), (1, 1, 4)] if bottleneck else [(3, stride, 1), (3, 1, 1)]
        self.count = len(sizes)
        width = inputs
        for i, (kernel, step, times) in enumerate(sizes):
            setattr(self, f"conv{i}", PaddleConvNorm(width, channels * times, kernel, step))
            width = channels * times
        # PaddleClas convolves the shortcut of every stage's first block.
        self.short = PaddleConvNorm(inputs, width, 1, stride) if first else None

    def forward(self, x):
        y = x
        for i in range(self.count):
            y = getattr(self, f"conv{i}")(y)
            y = paddle.nn.functional.relu(y) if i < self.count - 1 else y
        return paddle.nn.functional.relu(y + (x if self.short is None else self.short(x)))


class PaddleResNet(paddle.nn.Layer):
    def __init__(self, depth, width, classes):
        super().__init__()
        bottleneck, counts = DEPTHS[depth]
        self.stem = paddle.nn.Sequential(PaddleConvNorm(3, width, 7, 2))
        self.pool = paddle.nn.MaxPool2D(3, 2, 1)
        blocks, inputs = [], width
        for stage, count in enumerate(counts):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                outputs = (width << stage) * (4 if bottleneck else 1)
                first = block == 0 and (stride != 1 or inputs != outputs)
                blocks.append(PaddleBlock(bottleneck, inputs, width << stage, stride, first))
                inputs = outputs
        self.blocks = paddle.nn.Sequential(*blocks)
        self.fc = paddle.nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.blocks(self.pool(paddle.nn.functional.relu(self.stem(x))))
        return self.fc(x.mean((2, 3)))


def randomize(model, size):
    """Norms and biases away from 0 and 1, so that mixing them up shows; statistics as training
    gathers them, so that the answer depends on the image."""
    random = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.ndim == 1:
                noise = torch.rand(value.shape, generator=random)
                value.copy_(0.5 + noise if name.endswith("weight") else 0.4 * noise - 0.2)
        model.train()
        for _ in range(30):
            model(torch.randn(4, 3, size, size, generator=random))


def paddle_vision_names(state):
    """PyTorch's state dictionary as paddle.vision would have it, in NumPy."""
    names = {}
    for name, value in state.items():
        if name.endswith("num_batches_tracked"):
            continue
        name = name.replace("running_mean", "_mean").replace("running_var", "_variance")
        names[name] = value.numpy().T.copy() if name == "fc.weight" else value.numpy()
    return names


def clas_names(model, state):
    """The same under the names of PaddleResNet, matched by the order of the layers."""
    vision = paddle_vision_names(state)
    ours = [n for n in vision if ".downsample." not in n]
    short = [n for n in vision if ".downsample." in n]
    theirs = list(model.state_dict())
    names = dict(zip([n for n in theirs if ".short." not in n], ours))
    names.update(zip([n for n in theirs if ".short." in n], short))
    assert len(names) == len(vision)
    return {n: vision[v] for n, v in names.items()}


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=18)
    parser.add_argument("--width", type=int, default=2)
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--out", type=pathlib.Path, default=here / "goldens")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(3)

    model = TorchResNet(args.depth, args.width, args.classes)
    randomize(model, args.size)
    model.eval()
    state = model.state_dict()
    image = torch.randn(2, 3, args.size, args.size)
    with torch.no_grad():
        logits = model(image)

    save_file(state, args.out / "torchvision.safetensors")
    torch.save(state, args.out / "torchvision.pth")
    torch.save(state, args.out / "torchvision_old.pth", _use_new_zipfile_serialization=False)
    half = {"module." + n: v.half() if v.is_floating_point() else v for n, v in state.items()}
    torch.save({"epoch": 90, "state_dict": half, "best": 0.75}, args.out / "wrapped_half.pth")

    paddle_model = PaddleResNet(args.depth, args.width, args.classes)
    paddle_model.eval()
    clas = clas_names(paddle_model, state)
    paddle_model.set_state_dict({n: paddle.to_tensor(v) for n, v in clas.items()})
    paddle_logits = torch.from_numpy(paddle_model(paddle.to_tensor(image.numpy())).numpy())
    paddle.save(paddle_model.state_dict(), str(args.out / "paddle_clas.pdparams"), protocol=2)
    vision = {n: paddle.to_tensor(v) for n, v in paddle_vision_names(state).items()}
    paddle.save(vision, str(args.out / "paddle_vision.pdparams"), protocol=4)

    save_file({"input": image, "torch": logits, "paddle": paddle_logits},
              args.out / "peers.safetensors")
    print("largest difference of the two frameworks:", (logits - paddle_logits).abs().max().item())

    path = here.parent.parent / "tools/compare/save_activations.py"
    spec = importlib.util.spec_from_file_location("save_activations", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.save_activations(model, image[:1], args.out / "activations.safetensors")
    for file in args.out.glob("*.safetensors"):
        file.chmod(0o644)  # the library makes them private


if __name__ == "__main__":
    main()
